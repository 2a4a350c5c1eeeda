"""A robot's time on the wire: a message each cycle, one instruction after another that guides the arm.

    EGM_STATE_DISCONNECTED    before the first message, and after the last
    EGM_STATE_CONNECTED       messages are sent, nothing guides the arm
    EGM_STATE_RUNNING         an instruction waits for its first answer, guides, or comes to its end

as `EGMGetState` has them in RAPID.  Messages are sent at the sample rate all the time.  Their `mciState` is
RUNNING during an instruction, ERROR after a fault until the next instruction begins, and STOPPED else.

A cycle: the state is sent; one answer is taken, if there is one; the arm moves to the end of the cycle; the
robot waits until that is due.  So an answer acts from the beginning of the cycle after the message.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from twin.arrays import Floats
from twin.egm.guidance.frames import work_object
from twin.egm.guidance.guidance import Fault, Guidance
from twin.egm.guidance.run import Phase, Run
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.robot_side.channel import Channel
from twin.egm.robot_side.events import MOST_EVENTS, Event, Events
from twin.egm.robot_side.guided_arm import GuidedArm
from twin.egm.robot_side.inbox import Counts, Inbox
from twin.egm.robot_side.own_motion import OwnMotion
from twin.egm.robot_side.pace import Pace
from twin.egm.robot_side.stream_record import StreamRecord
from twin.egm.wire.messages import MotionState, RobotMessage, SensorMessage
from twin.egm.wire.robot_message import encode_robot
from twin.errors import DivergenceError, EgmError, TwinError
from twin.logs.log import Log

FOLLOWING_ERROR = np.deg2rad(5.0)
"""In [rad] of a joint, from where it was commanded to where it is: beyond it motion supervision stops the arm.
The manual tells no figure; ours."""

COMMUNICATION, SUPERVISION = 41822, 50204
"""Events of the controller's log."""


class EgmState(Enum):
    """What `EGMGetState` tells."""

    DISCONNECTED = "EGM_STATE_DISCONNECTED"
    CONNECTED = "EGM_STATE_CONNECTED"
    RUNNING = "EGM_STATE_RUNNING"


@dataclass(frozen=True)
class Plan:
    """How long a robot is on the wire, and what happens meanwhile.

    Attributes:
        runs: instructions, one after another, however they end; `None`: without end.
        pause: from the end of one to the next, in [s].
        wait: for an instruction's first answer at most, in [s]; `None`: as long as it takes.
        lag: by which answers act later, in [ms], rounded up to whole cycles.
        duration: after which it ends, in [s]; `None`: not by itself.
        keep: how much of the end is recorded, in [s].
    """

    runs: int | None = None
    pause: float = 1.0
    wait: float | None = None
    lag: float = 0.0
    duration: float | None = None
    keep: float = 120.0

    def __post_init__(self) -> None:
        if self.runs is not None and not self.runs >= 1:
            raise EgmError(f"expected runs of at least 1, got {self.runs}")
        for name, unit in (("pause", "s"), ("lag", "ms")):
            if not 0 <= getattr(self, name) <= 1e6:
                raise EgmError(f"expected a {name} of 0 to 1e6 {unit}, got {getattr(self, name)}")
        for name in ("wait", "duration", "keep"):
            value = getattr(self, name)
            if not (name != "keep" and value is None) and not 0 < value <= 1e6:
                raise EgmError(f"expected {name} above 0 s, to 1e6 s, got {value}")


class Session:
    """Of one robot.

    Attributes:
        state: see `EgmState`.
        sent: messages that left; `unsent`: that could not.
        faults: why instructions stopped, the last ones.
        events, inbox, pace: see there.

    Args:
        arm: what is guided.
        settings: how.
        guidance: what makes speeds of answers.
        channel: to the partner.
        pace: of the cycles.
        plan: how long.
        partner: what it is called in sentences.
        T_flange_tool: (4, 4) pose of the tool on the flange, in [m].
        start: (n,) where instructions have to begin, in [rad]; by default where the arm is.
        tell: called with every event.
    """

    def __init__(
        self, arm: GuidedArm, settings: GuidanceSettings, guidance: Guidance, channel: Channel, pace: Pace,
        plan: Plan, *, partner: str, T_flange_tool: Floats, start: Floats | None = None,
        tell: Callable[[Event], object] | None = None,
    ) -> None:  # fmt: skip
        self.arm, self.settings, self.channel, self.pace, self.plan = arm, settings, channel, pace, plan
        self._guidance, self._partner, self._tool, self._start = guidance, partner, T_flange_tool, start
        self._cycle = settings.cycle
        self._samples = whole_periods(self._cycle, arm.period)
        self._T_wobj_base = np.linalg.inv(work_object(settings))
        self.state, self.sent, self.unsent = EgmState.DISCONNECTED, 0, 0
        self.events, self.faults = Events(tell), deque[Fault](maxlen=MOST_EVENTS)
        lag = math.ceil(plan.lag / 1000.0 / self._cycle - 1e-9)
        self.inbox = Inbox(channel, arm.robot.n, settings.mode, lag, pace.virtual, self._tell)
        self._record = StreamRecord(arm.robot.n, settings.mode, round(plan.keep / self._cycle))
        self._run: Run | None = None
        self._phase, self._runs, self._failed = Phase.FINISHED, 0, False
        self._own = OwnMotion(arm.robot, arm.q, arm.period)
        self._until = 0  # the cycle in which the pause is over
        self._waited = 0  # since when the instruction has been waiting
        self._epoch, self._datagram = 0.0, b""
        self._looking = threading.Lock()

    @property
    def counts(self) -> Counts:
        """What has come."""
        return self.inbox.counts

    def serve(self, stopping: Callable[[], bool]) -> None:
        """Be on the wire, until the plan is over, somebody wants the robot to stop, or its window is closed.

        Raises:
            EgmError: no client answers within the time that is given.
            DivergenceError: the control law cannot even hold the arm.
        """
        self._epoch = 0.0 if self.pace.virtual else time.time()
        self.state = EgmState.CONNECTED
        try:
            self.pace.begin()
            while self._to_the_end_of_the_cycle():
                if not self.pace.wait(self.inbox, self._send_again, stopping):
                    break
        except TwinError:
            if not self.arm.lost:
                raise
            self._tell("left", "the window was closed")
        finally:
            self.state = EgmState.DISCONNECTED

    def rehearse(self) -> None:
        """Use once what is compiled or loaded at its first use."""
        q, T = self.arm.q, self.arm.poses(self.arm.q, self._tool)
        encode_robot(self._message())
        if self._start is not None:
            q = self._start
        run = Run(self.arm.robot, self.settings, self._guidance, q, self.arm.period)
        answers = {
            "joint": SensorMessage(q=q),
            "pose": SensorMessage(T=T, twist=np.zeros(6)),
            "path": SensorMessage(path_correction=np.zeros(3)),
        }
        run.take(answers[self.settings.mode])
        run.samples(self._samples)

    def log(self) -> Log | None:
        """The end of the motion and of the stream, see `StreamRecord.arrays`; `None` before the first cycle."""
        with self._looking:
            return self.arm.log(self._tool, self._record.arrays())

    def _to_the_end_of_the_cycle(self) -> bool:
        """Send, take and move; whether the plan has another cycle after this."""
        with self._looking:
            return self._one_cycle()

    def _one_cycle(self) -> bool:
        if self._run is None and not self._begin_or_go_on():
            return False
        if self._run is not None:
            self._run.measured(self.arm.q, self._cycle)
        t, message = self.arm.t, self._message()
        self._datagram = encode_robot(message)
        self._send()
        self.pace.sent(self.inbox)
        taken = self._take()
        if self._run is not None:
            self._supervise(self._run)
        self._move()
        self._record.add(t, message, taken)
        if self._run is not None:
            self._follow_up(self._run)
        return self.plan.duration is None or self.inbox.cycle * self._cycle < self.plan.duration - 1e-9

    def _begin_or_go_on(self) -> bool:
        """Begin the next instruction where it is due; False where there is none any more."""
        if self.inbox.cycle < self._until:
            return True
        if self.plan.runs is not None and self._runs >= self.plan.runs:
            return False
        if self._start is not None and not self._own.is_at(self._start):
            self._own.go_to(self._start)
        if not self._own.rests:
            return True
        robot, q = self.arm.robot, self._own.q
        self._run = Run(robot, self.settings, self._guidance, q, self.arm.period)
        self._runs += 1
        self._phase, self._failed, self._waited = Phase.WAITING, False, self.inbox.cycle
        self.inbox.restart()
        self.state = EgmState.RUNNING
        self._tell("waiting", f"{self._name} waits for the first answer from {self._partner}")
        return True

    @property
    def _name(self) -> str:
        """Of the present instruction, in sentences."""
        return f"{self.settings.mode} guidance {self._runs}"

    def _message(self) -> RobotMessage:
        """What the robot tells now."""
        arm, run = self.arm, self._run
        planned = self._own.q if run is None else run.q
        T, T_planned = self._T_wobj_base @ arm.poses(np.array([arm.q, planned]), self._tool)
        state = MotionState.STOPPED if run is None else MotionState.RUNNING
        guided = run is not None and run.phase is Phase.GUIDED
        told = self.settings.torque == "always" or (self.settings.level == 0 and guided)
        return RobotMessage(
            seqno=self.inbox.cycle,
            tm=round(1000.0 * arm.t),
            q=arm.q,
            q_planned=planned,
            T=T,
            T_planned=T_planned,
            time=self._epoch + arm.t,
            state=MotionState.ERROR if self._failed else state,
            converged=run is not None and run.converged,
            utilization=max(arm.utilization, 0.0 if run is None else min(1000.0, run.utilization)),
            tau=arm.tau if told else None,
            wrench=arm.push() if self.settings.force else None,
        )

    def _send_again(self) -> None:
        self.channel.send(self._datagram)

    def _send(self) -> None:
        if self.channel.send(self._datagram):
            self.sent += 1
            return
        self.unsent += 1
        if self.unsent == 1:
            self._tell("unsent", f"a message to {self._partner} could not be sent: there is no way there")

    def _take(self) -> SensorMessage | None:
        """Take the answer whose turn it is; `None` where nothing was guided by it."""
        answer, run = self.inbox.next(), self._run
        if answer is None:
            return None
        if run is None or run.phase not in (Phase.WAITING, Phase.GUIDED):
            self.counts.dropped += 1
            return None
        if isinstance(answer, Fault):
            run.stop(answer)
            return None
        run.take(answer)
        self.counts.taken += 1
        return answer

    def _supervise(self, run: Run) -> None:
        """Stop where nobody is heard of any more, or the arm does not follow."""
        silent = (self.inbox.cycle - 1 - self.inbox.heard) * self._cycle
        if run.phase is Phase.GUIDED and silent >= self.settings.comm_timeout - 1e-9:
            within = f"no message from {self._partner} for {silent:g} s"
            allowed = f"at most {self.settings.comm_timeout:g} s are allowed (CommTimeout)"
            run.stop(Fault(COMMUNICATION, "ERR_UDPUC_COMM", f"{within}, {allowed}"))
        waited = (self.inbox.cycle - self._waited) * self._cycle
        if run.phase is Phase.WAITING and self.plan.wait is not None and waited > self.plan.wait:
            raise EgmError(f"no client answered from {self._partner} within {self.plan.wait:g} s")
        error = np.abs(self.arm.q - run.q)
        if run.fault is None and not np.all(error <= FOLLOWING_ERROR):
            joint = int(np.argmax(~(error <= FOLLOWING_ERROR)))
            run.stop(
                Fault(
                    SUPERVISION,
                    "Motion supervision",
                    f"{self.arm.robot.joint_names[joint]} is {np.rad2deg(error[joint]):.3g} deg from where it "
                    f"was commanded, at most {np.rad2deg(FOLLOWING_ERROR):g} deg are allowed",
                )
            )

    def _move(self) -> None:
        """To the end of the cycle."""
        run = self._run
        source = self._own if run is None else run
        try:
            self.arm.move(source.samples(self._samples))
        except DivergenceError as error:
            if run is None:
                raise
            run.stop(Fault(0, "the arm ran away", f"{error}; it was put back to where it was commanded"))
            run.phase = Phase.FINISHED
            self.arm.put(run.q)

    def _follow_up(self, run: Run) -> None:
        """Tell what became of an instruction; end it, if that is it."""
        if run.fault is not None and not self._failed:
            self._failed = True
            self.faults.append(run.fault)
            number = f"{run.fault.number} " if run.fault.number else ""
            self._tell("fault", f"{self._name} stops: {number}{run.fault.name}: {run.fault.sentence}")
        if run.phase is self._phase:
            return
        self._phase = run.phase
        if run.phase is Phase.GUIDED:
            self._tell("guided", f"{self._name} is guided by {self._partner}")
        elif run.phase is Phase.RETURNING:
            self._tell("returning", f"{self._name} goes back to where it began")
        elif run.phase is Phase.FINISHED:
            self._tell("ended", f"{self._name} is over")
            self._run, self.state = None, EgmState.CONNECTED
            self._own.rest(run.q)
            self._until = self.inbox.cycle + math.ceil(self.plan.pause / self._cycle - 1e-9)

    def _tell(self, kind: str, sentence: str) -> None:
        self.events.add(self.arm.t, kind, sentence)
        self.arm.say(sentence)


def whole_periods(cycle: float, period: float) -> int:
    """How many periods of the control law there are in a cycle, both in [s].

    Raises:
        EgmError: they are no whole number.
    """
    count = round(cycle / period)
    if count < 1 or abs(count * period - cycle) > 1e-9 * cycle:
        raise EgmError(
            f"expected a control period that divides the cycle of {1e3 * cycle:g} ms, got {1e3 * period:g} ms"
        )
    return count

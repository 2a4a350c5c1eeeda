"""A robot's time on the wire: a message each cycle, one instruction after another that guides the arm.

Messages are sent at the sample rate all the time.  Their `mciState` is RUNNING during an instruction, ERROR
after a fault until the next instruction begins, and STOPPED else.  After the last instruction of a plan one
message more tells that it is over, which nobody has to answer.  They are numbered from 0; after a fault anew,
for a program then sets up EGM again, and ABB's client in C++ takes number 0 for the beginning of a session
(ours).

A cycle: the state is sent; one answer is taken, if there is one; the arm moves to the end of the cycle; the
next message is made ready; the robot waits until it is due.  So an answer acts from the beginning of the
cycle after the message.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

import numpy as np

from twin.arrays import Floats
from twin.egm.guidance.guidance import Fault, Guidance
from twin.egm.guidance.pose_guidance import work_object
from twin.egm.guidance.run import Phase, Run
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.robot.guided_arm import GuidedArm, RobotMotion
from twin.egm.robot.inbox import Counts, Inbox
from twin.egm.robot.pace import Lateness, Pace
from twin.egm.wire.channel import UdpChannel
from twin.egm.wire.encoding import decode_sensor, encode_robot, encode_sensor
from twin.egm.wire.messages import MotionState, RobotMessage, SensorMessage
from twin.errors import DivergenceError, EgmError, TwinError
from twin.logs.log import Log
from twin.rotations.rotations import pose_vector

MOST_EVENTS = 1000
"""Events, and faults, that a result holds: the last ones."""

FOLLOWING_ERROR = np.deg2rad(5.0)
"""In [rad] of a joint, from where it was commanded to where it is: beyond it the arm is stopped.  The manual
tells no figure; ours."""


class Event(NamedTuple):
    """An event of a session.

    Attributes:
        t: when, since the robot's start, in [s].
        kind: of an instruction `waiting`, `guided`, `returning`, `ended`, `fault`; of datagrams, once each,
            `broken`, `dropped`, `stranger`; `unsent`, of a message, once; `left`, where the window was
            closed; `cut`, where the robot's time was over in the midst of a motion.
        sentence: on it.
    """

    t: float
    kind: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.t:.3f} s: {self.sentence}"


@dataclass(eq=False)
class EgmResult:
    """The result of a robot's time on the wire.

    Attributes:
        events: what happened, the last 1000.
        faults: why instructions stopped, the last 1000; empty where nothing was wrong.
        runs: instructions that began.
        completed: of them, those that ended without a fault.
        sent: messages that left; one is sent every cycle.
        unsent: messages that could not be sent.
        counts: what came: answers taken, repeated, overtaken, unused, dropped, and what is no message.
        strangers: datagrams from others than the partner.
        lateness: of the messages; of none in virtual time.
        log: the end of the motion and of the stream, `None` where there was no cycle.
    """

    events: Sequence[Event] = ()
    faults: Sequence[Fault] = ()
    runs: int = 0
    completed: int = 0
    sent: int = 0
    unsent: int = 0
    counts: Counts = field(default_factory=Counts)
    strangers: int = 0
    lateness: Lateness = field(default_factory=Lateness)
    log: Log | None = None


class EgmState(Enum):
    """The states that `EGMGetState` tells."""

    DISCONNECTED = "EGM_STATE_DISCONNECTED"
    """Before the set-up, and after the last message."""
    CONNECTED = "EGM_STATE_CONNECTED"
    """Messages are sent, nothing guides the arm."""
    RUNNING = "EGM_STATE_RUNNING"
    """An instruction waits for its first answer, guides, or comes to its end."""


@dataclass(frozen=True)
class Plan:
    """The plan of a session: how long it is, and what happens meanwhile.

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
        for name, most, unit in (("pause", 1e6, "s"), ("lag", 1000.0, "ms")):
            if not 0 <= getattr(self, name) <= most:
                raise EgmError(f"expected a {name} of 0 to {most:g} {unit}, got {getattr(self, name)}")
        for name in ("wait", "duration", "keep"):
            value = getattr(self, name)
            if not (name != "keep" and value is None) and not 0 < value <= 1e6:
                raise EgmError(f"expected {name} above 0 s, to 1e6 s, got {value}")


def whole_periods(cycle: float, period: float) -> int:
    """Count the periods of the control law in a cycle, both in [s].

    Raises:
        EgmError: they are no whole number.
    """
    count = round(cycle / period)
    if count < 1 or abs(count * period - cycle) > 1e-9 * cycle:
        raise EgmError(
            f"expected a control period that divides the cycle of {1e3 * cycle:g} ms, got {1e3 * period:g} ms"
        )
    return count


class StreamRecord:
    """The last cycles of a robot on the wire: what it told and was answered, as arrays beside its log.

    Args:
        joints: of the robot.
        mode: how it is guided.
        cycles: how many are recorded.
    """

    def __init__(self, joints: int, mode: str, cycles: int) -> None:
        self._place, self._speed = {"joint": (joints, joints), "pose": (7, 6), "path": (3, 0)}[mode]
        self._rows: deque[tuple] = deque(maxlen=max(1, cycles))

    def add(self, t: float, message: RobotMessage, answer: SensorMessage | None) -> None:
        """Note a cycle, which began at t, in [s]: what was told in it, and what was taken."""
        place, speed = np.full(self._place, np.nan), np.full(self._speed, np.nan)
        seqno = -1
        if answer is not None:
            seqno = -1 if answer.seqno is None else answer.seqno
            pose = None if answer.T is None else pose_vector(answer.T)
            for row, parts in (
                (place, (answer.q, pose, answer.path_correction)),
                (speed, (answer.qd, answer.twist)),
            ):
                for part in parts:  # a mode has one of them at most
                    if part is not None:
                        row[:] = part
        told = (int(message.state), message.converged, message.utilization or 0.0)
        self._rows.append((t, message.seqno, answer is not None, seqno, place, speed, *told))

    def arrays(self) -> dict[str, Floats]:
        """Arrays with a row a cycle.

        `egm_t` when it began, in [s]; `egm_robot_seqno` of the robot's message; `egm_taken` whether an answer
        was taken, `egm_seqno` its number (-1: it had none); `egm_reference` and `egm_speed` what it said, NaN
        where nothing: in joint guidance (n,) in [rad] and [rad/s], in pose guidance (7,) `[x y z a b c d]` in
        [m] and (6,) `[v; omega]`, of path corrections (3,) in [m] and (0,).  `egm_state`, `egm_converged` and
        `egm_utilization` are what the robot told.
        """
        columns = [
            ("t", float), ("robot_seqno", np.int64), ("taken", bool), ("seqno", np.int64),
            ("reference", float, (self._place,)), ("speed", float, (self._speed,)),
            ("state", np.int64), ("converged", bool), ("utilization", float),
        ]  # fmt: skip
        table = np.array(list(self._rows), dtype=columns)
        return {f"egm_{name}": table[name].copy() for name in table.dtype.names or ()}


class Session:
    """One robot's time on the wire.

    Attributes:
        state: see `EgmState`.
        done: what became of it so far, still counting; `result` is a copy.
        inbox, pace: see there.

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
        self, arm: GuidedArm, settings: GuidanceSettings, guidance: Guidance, channel: UdpChannel, pace: Pace,
        plan: Plan, *, partner: str, T_flange_tool: Floats, start: Floats | None = None,
        tell: Callable[[Event], object] | None = None,
    ) -> None:  # fmt: skip
        self.arm, self.settings, self.channel, self.pace, self.plan = arm, settings, channel, pace, plan
        self._guidance, self._partner, self._tool, self._start = guidance, partner, T_flange_tool, start
        self._cycle = settings.cycle
        self._samples = whole_periods(self._cycle, arm.period)
        self._T_wobj_base = np.linalg.inv(work_object(settings))
        self.state, self._notify = EgmState.CONNECTED, tell
        lag = math.ceil(plan.lag / 1000.0 / self._cycle - 1e-9)
        self.inbox = Inbox(channel, arm.robot.n, settings.mode, lag, pace.virtual, self._tell)
        self._events, self._faults = deque[Event](maxlen=MOST_EVENTS), deque[Fault](maxlen=MOST_EVENTS)
        self.done = EgmResult(self._events, self._faults, counts=self.inbox.counts)
        self._record = StreamRecord(arm.robot.n, settings.mode, round(plan.keep / self._cycle))
        self._run: Run | None = None
        self._phase, self._failed = Phase.FINISHED, False
        self._own = RobotMotion(arm.robot, arm.q, arm.period)
        self._until = 0  # the cycle in which the pause is over
        self._waited = 0  # since when the instruction has been waiting
        self._numbered_from = 0  # the cycle of message 0
        self._t, self._epoch = 0.0, 0.0  # when the cycle begins, and what the clock said at the start
        self._datagram = self._sent_last = b""
        self._looking = threading.Lock()
        self._over = False  # the next message says so, and is the last

    def serve(self, stopping: Callable[[], bool]) -> None:
        """Be on the wire, until the plan is over, somebody wants the robot to stop, or its window is closed.

        Raises:
            EgmError: no client answers within the time that is given.
            DivergenceError: the control law cannot even hold the arm.
        """
        self._epoch = 0.0 if self.pace.virtual else time.time()
        try:
            self._make_ready()
            self.pace.begin()
            while self._run_cycle():
                if not self.pace.wait(self.inbox, self._send_again, stopping):
                    break
            if self._run is not None and self._run.qd.any():
                self._tell("cut", f"{self._name} was cut off in motion: the robot's time was over")
        except TwinError:
            if not self.arm.lost:
                raise
            self._tell("left", "the window was closed")
        finally:
            self.state = EgmState.DISCONNECTED

    def rehearse(self) -> None:
        """Use once what is compiled or loaded at its first use."""
        q, T = self.arm.q, self.arm.poses(self.arm.q, self._tool)
        answer = {
            "joint": SensorMessage(q=q),
            "pose": SensorMessage(T=T, twist=np.zeros(6)),
            "path": SensorMessage(path_correction=np.zeros(3)),
        }[self.settings.mode]
        decode_sensor(encode_sensor(answer), len(q), self.settings.mode)
        encode_robot(self._robot_message())
        run = self._new_run(q if self._start is None else self._start)
        run.take(answer)
        run.samples(self._samples)

    def log(self) -> Log | None:
        """The end of the motion, and of the stream, see `StreamRecord.arrays`; `None` without any."""
        with self._looking:
            return self.arm.log(self._tool, self._record.arrays())

    def result(self) -> EgmResult:
        """Copy the result so far."""
        return replace(
            self.done, events=tuple(self._events), faults=tuple(self._faults),
            counts=replace(self.done.counts), strangers=self.channel.strangers,
            lateness=self.pace.lateness(), log=self.log(),
        )  # fmt: skip

    def _run_cycle(self) -> bool:
        """Send, take and move, and make the next cycle ready; whether the plan has one."""
        with self._looking:
            self.pace.sending()
            self._send()
            if self._over:
                return False
            self.pace.sent(self.inbox)
            taken = self._take()
            if self._run is not None:
                self._supervise(self._run)
            self._move()
            self._record.add(self._t, self._message, taken)
            if self._run is not None:
                self._follow_up(self._run)
            self._make_ready()
            return self.plan.duration is None or self.inbox.cycle * self._cycle < self.plan.duration - 1e-9

    def _make_ready(self) -> None:
        """Do for the next cycle what can be done before its message is due."""
        self._t = self.arm.t
        if self._run is None:
            self._over = not self._start_next_instruction()
        if self._run is not None:
            self._run.measured(self.arm.q, self._cycle)
        self._message = self._robot_message()
        self._datagram = encode_robot(self._message)

    def _start_next_instruction(self) -> bool:
        """Begin the next instruction where it is due; False where there is none any more."""
        if self.plan.runs is not None and self.done.runs >= self.plan.runs:
            return False
        if self.inbox.cycle < self._until:
            return True
        if self._start is not None and not self._own.is_at(self._start):
            if self._own.rests:
                self._tell("returning", f"{self._name} is over: the arm goes back to where the path begins")
            self._own.go_to(self._start)
        if not self._own.rests:
            return True
        self._run = self._new_run(self._own.q)
        self.done.runs += 1
        if self._failed:
            self._numbered_from = self.inbox.cycle
        self._phase, self._failed, self._waited = Phase.WAITING, False, self.inbox.cycle
        self.state = EgmState.RUNNING
        self._tell("waiting", f"{self._name} waits for the first answer from {self._partner}")
        return True

    def _new_run(self, q: Floats) -> Run:
        return Run(self.arm.robot, self.settings, self._guidance, q, self.arm.period)

    @property
    def _name(self) -> str:
        """The present instruction, in sentences."""
        return f"{self.settings.mode} guidance {self.done.runs}"

    def _robot_message(self) -> RobotMessage:
        """Make the message that the robot sends now."""
        arm, run = self.arm, self._run
        planned = self._own.q if run is None else run.q
        T, T_planned = self._T_wobj_base @ arm.poses(np.array([arm.q, planned]), self._tool)
        state = MotionState.STOPPED if run is None else MotionState.RUNNING
        guided = run is not None and run.phase is Phase.GUIDED
        with_torque = self.settings.torque == "always" or (self.settings.level == 0 and guided)
        return RobotMessage(
            seqno=self.inbox.cycle - self._numbered_from,
            tm=round(1000.0 * self._t),
            q=arm.q,
            q_planned=planned,
            T=T,
            T_planned=T_planned,
            time=self._epoch + self._t,
            state=MotionState.ERROR if self._failed else state,
            converged=run is not None and run.converged,
            utilization=max(arm.utilization, 0.0 if run is None else min(1000.0, run.utilization)),
            tau=arm.tau if with_torque else None,
            wrench=arm.push() if self.settings.force else None,
        )

    def _send_again(self) -> None:
        self.channel.send(self._sent_last)

    def _send(self) -> None:
        if self._run is not None and self._waited == self.inbox.cycle:  # its first message
            if not self.pace.virtual:
                self.inbox.listen()  # answers to what was sent before, which are not for this instruction
            self.inbox.restart()
        self._sent_last = self._datagram
        if self.channel.send(self._datagram):
            self.done.sent += 1
            return
        self.done.unsent += 1
        if self.done.unsent == 1:
            self._tell("unsent", f"a message to {self._partner} could not be sent: there is no way there")

    def _take(self) -> SensorMessage | None:
        """Take the answer whose turn it is; `None` where nothing was guided by it."""
        run = self._run
        if run is not None and run.phase is Phase.WAITING:
            self.inbox.catch_up()
        answer = self.inbox.next()
        if answer is None:
            return None
        if run is None or run.phase not in (Phase.WAITING, Phase.GUIDED):
            self.inbox.counts.unused += 1
            return None
        if isinstance(answer, Fault):
            run.stop(answer)
            return None
        run.take(answer)
        self.inbox.counts.taken += 1
        return answer

    def _supervise(self, run: Run) -> None:
        """Stop where nobody is heard of any more, or the arm does not follow."""
        now = self.inbox.cycle - 1
        waited, silent = (self._cycle * (now - since) for since in (self._waited, self.inbox.heard))
        if run.phase is Phase.WAITING and self.plan.wait is not None and waited >= self.plan.wait:
            raise EgmError(f"no client answered from {self._partner} within {self.plan.wait:g} s")
        fault = self._following_error(run.q)
        if fault is None and run.phase is Phase.GUIDED:
            fault = self._silence(silent)
        if fault is not None and run.fault is None:
            run.stop(fault)

    def _following_error(self, q_commanded: Floats) -> Fault | None:
        """The fault of an arm that is not where it was commanded to be (n,), in [rad]."""
        off = np.abs(self.arm.q - q_commanded)
        if np.all(off <= FOLLOWING_ERROR):
            return None
        joint = int(np.argmax(~(off <= FOLLOWING_ERROR)))
        return Fault(
            50204, "Motion supervision",
            f"{self.arm.robot.joint_names[joint]} is {np.rad2deg(off[joint]):.3g} deg from where it is to "
            f"be, at most {np.rad2deg(FOLLOWING_ERROR):g} deg are allowed",
        )  # fmt: skip

    def _silence(self, seconds: float) -> Fault | None:
        """The fault of a partner of whom nothing was heard for so long, in [s]."""
        allowed, broken = self.settings.comm_timeout, self.inbox.counts.broken
        if seconds < allowed - 1e-9:  # round-off of a sum
            return None
        return Fault(
            41822, "ERR_UDPUC_COMM",
            f"no message from {self._partner} for {seconds:g} s, at most {allowed:g} s are allowed "
            "(CommTimeout)" + f"; {broken} datagrams came that are none" * (broken > 0),
        )  # fmt: skip

    def _move(self) -> None:
        """Move the arm to the end of the cycle; one that ran away is put back to where it was commanded."""
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
            self._faults.append(run.fault)
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
            self.done.completed += not self._failed
            self._tell("ended", f"{self._name} is over")
            self._run, self.state = None, EgmState.CONNECTED
            self._own.rest(run.q)
            self._until = self.inbox.cycle + math.ceil(self.plan.pause / self._cycle - 1e-9)

    def _tell(self, kind: str, sentence: str) -> None:
        event = Event(self._t, kind, sentence)
        self._events.append(event)
        if self._notify is not None:
            self._notify(event)
        self.arm.say(sentence)

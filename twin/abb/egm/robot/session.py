"""Session of an EGM robot: one message per cycle, one instruction after another that guides the arm.

The robot sends messages at the sample rate during the whole session.  Their `mciState` is RUNNING during an
instruction, ERROR from a fault until the next instruction, else STOPPED.  After the last instruction of a
plan the robot sends one more message with the final state, which needs no answer.  Messages are numbered from
0, and again from 0 after a fault: a RAPID program then sets up EGM again, and ABB's C++ client takes number 0
as the beginning of a session (ours).

Each cycle has these steps: send the state; take one answer, if any; move the arm to the end of the cycle;
prepare the next message; wait until it is due.  An answer therefore acts from the beginning of the cycle
after the message.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from twin.abb.egm.guidance.guidance import Fault, Guidance
from twin.abb.egm.guidance.run import Phase, Run, make_guidance
from twin.abb.egm.guidance.settings import LAG, GuidanceSettings
from twin.abb.egm.guidance.tool_guidance import work_object
from twin.abb.egm.robot.exchange import (
    AnswerCounts,
    EgmState,
    Event,
    Inbox,
    Lateness,
    Pace,
    StreamRecord,
    garbage_collection_frozen,
    make_pace,
)
from twin.abb.egm.robot.guided_arm import Controller, GuidedArm, RobotMotion
from twin.abb.egm.wire.channel import HOST, PORT, UdpChannel
from twin.abb.egm.wire.encoding import decode_sensor, encode_robot, encode_sensor, require_turning_joints
from twin.abb.egm.wire.messages import MotionState, RobotMessage, SensorMessage
from twin.base.arrays import Floats
from twin.base.errors import DivergenceError, EgmError, TwinError
from twin.data.logs.log import Log
from twin.data.logs.recordings.recording import Recording
from twin.physics.control.signals import whole_steps
from twin.physics.dynamics.environment import Environment
from twin.physics.kinematics.forward import tool_pose as checked_tool
from twin.physics.robot.drives.motors import Sensors
from twin.physics.robot.evaluation import joint_vector
from twin.physics.robot.limits import check_position
from twin.physics.robot.robot import Robot

MAX_EVENTS = 1000
"""Largest number of events, and of faults, in a result; the last ones are stored."""

REST = np.deg2rad(1e-3)
"""Speed of a joint, in [rad/s], below which it rests: a filtered speed comes near 0 without end."""

FOLLOWING_ERROR = np.deg2rad(5.0)
"""Largest distance between measured and commanded joint angle, in [rad]; a larger one stops the arm.  The
manual states no value; this one is ours."""


@dataclass(eq=False)
class EgmResult:
    """Result of a session.

    Attributes:
        events: the last 1000 events.
        faults: the last 1000 faults; empty if no instruction stopped with a fault.
        runs: number of instructions that began.
        completed: number of instructions that ended without a fault.
        guided: time in which a client guided the arm, in [s].
        limited: time in which MaxSpeedDeviation limited its speed, in [s].
        limit: the last MaxSpeedDeviation that did, in [deg/s].
        sent: number of messages sent, one per cycle.
        unsent: number of messages that could not be sent.
        counts: counts of the received answers.
        strangers: number of datagrams from other senders than the client.
        lateness: lateness of the messages; empty in virtual time.
        log: log of the end of the motion and of the stream; `None` before the first cycle.
        plant: what simulated the arm: PyBullet, or, if it is not installed, the analytic model.
    """

    events: Sequence[Event] = ()
    faults: Sequence[Fault] = ()
    runs: int = 0
    completed: int = 0
    guided: float = 0.0
    limited: float = 0.0
    limit: float = 0.0
    sent: int = 0
    unsent: int = 0
    counts: AnswerCounts = field(default_factory=AnswerCounts)
    strangers: int = 0
    lateness: Lateness = field(default_factory=Lateness)
    log: Log | None = None
    plant: str = "PyBullet"


@dataclass(frozen=True)
class SessionPlan:
    """Plan of a session: number and timing of its instructions.

    Attributes:
        runs: number of instructions, including those with a fault; `None` for no limit.
        pause: time between the end of an instruction and the next one, in [s].
        wait: longest wait for the first answer of an instruction, in [s]; `None` for no limit.
        lag: delay until an answer acts, beside its cycle, in [ms], rounded up to whole cycles.
        duration: duration of the session, in [s]; `None` for no limit.
        keep: duration of the log, which contains the end of the session, in [s].
    """

    runs: int | None = None
    pause: float = 1.0
    wait: float | None = None
    lag: float = LAG
    duration: float | None = None
    keep: float = 120.0

    def __post_init__(self) -> None:
        if self.runs is not None and not self.runs >= 1:
            raise EgmError(f"expected at least 1 run, got {self.runs}")
        for name, most, unit in (("pause", 1e6, "s"), ("lag", 1000.0, "ms")):
            if not 0 <= getattr(self, name) <= most:
                raise EgmError(f"expected a {name} of 0 to {most:g} {unit}, got {getattr(self, name)}")
        for name in ("wait", "duration", "keep"):
            value = getattr(self, name)
            if not (name != "keep" and value is None) and not 0 < value <= 1e6:
                raise EgmError(f"expected {name} above 0 s and up to 1e6 s, got {value}")


def whole_periods(cycle: float, period: float) -> int:
    """Return the number of control periods in a cycle, both in [s].

    Raises:
        EgmError: the period does not divide the cycle.
    """
    count = round(cycle / period)
    if count < 1 or abs(count * period - cycle) > 1e-9 * cycle:
        raise EgmError(
            f"expected a control period that divides the cycle of {1e3 * cycle:g} ms, got {1e3 * period:g} ms"
        )
    return count


class Session:
    """Session of one EGM robot.

    Attributes:
        state: present state of the robot.
        done: result so far, updated during the session; `result` returns a copy.
        inbox: queue of the received answers.
        pace: timing of the cycles.

    Args:
        arm: arm that is guided.
        settings: guidance settings.
        guidance: guidance mode, which computes speeds from answers; `None` until `use` (of a program).
        channel: channel to the partner.
        pace: timing of the cycles.
        plan: number and timing of the instructions.
        partner: name of the partner in messages.
        T_flange_tool: (4, 4) pose of the tool on the flange, in [m].
        start: (n,) position at which every instruction must begin, in [rad]; by default the present one.
        on_event: callback for every event.
        motion: reference of the arm without guidance; by default it rests, or moves to the start of the path.
        done: result of a session before, which is continued.
    """

    def __init__(
        self, arm: GuidedArm, settings: GuidanceSettings, guidance: Guidance | None, channel: UdpChannel,
        pace: Pace, plan: SessionPlan, *, partner: str, T_flange_tool: Floats, start: Floats | None = None,
        on_event: Callable[[Event], object] | None = None, motion: RobotMotion | None = None,
        done: EgmResult | None = None,
    ) -> None:  # fmt: skip
        self.arm, self.settings, self.channel, self.pace, self.plan = arm, settings, channel, pace, plan
        self._guidance, self._partner, self._tool, self._start = guidance, partner, T_flange_tool, start
        self._cycle = settings.cycle
        self._samples = whole_periods(self._cycle, arm.period)
        self._T_wobj_base = np.linalg.inv(work_object(settings))
        self.state, self._on_event = EgmState.CONNECTED, on_event
        lag = math.ceil(plan.lag / 1000.0 / self._cycle - 1e-9)
        self.done = EgmResult(plant=arm.plant) if done is None else done
        self._events = deque(self.done.events, MAX_EVENTS)
        self._faults = deque(self.done.faults, MAX_EVENTS)
        self.done.events, self.done.faults = self._events, self._faults
        self.inbox = Inbox(
            channel, arm.robot.n, settings.mode, lag, pace.virtual, self._emit, self.done.counts
        )
        self._record = StreamRecord(arm.robot.n, settings.mode, round(plan.keep / self._cycle))
        self._run: Run | None = None
        self._phase, self._failed = Phase.FINISHED, False
        self._robot_motion = RobotMotion(arm.robot, arm.q, arm.period) if motion is None else motion
        self._until = 0  # first cycle after the pause
        self._waited = 0  # cycle in which the instruction began to wait
        self._numbered_from = 0  # cycle of message 0
        self._t, self._epoch = 0.0, 0.0  # start of the cycle, and system time at the start of the session
        self._datagram = self._sent_last = b""
        self._lock = threading.Lock()
        self._over = False  # whether the next message is the last one

    def use(self, settings: GuidanceSettings, T_flange_tool: Floats) -> None:
        """Use other settings and another tool, with the same mode and cycle."""
        self.settings, self._tool = settings, T_flange_tool
        self._T_wobj_base = np.linalg.inv(work_object(settings))

    def serve(self, stopping: Callable[[], bool]) -> None:
        """Run cycles until the plan is complete, a stop is requested, or the window is closed.

        Args:
            stopping: function that returns whether a stop was requested.

        Raises:
            EgmError: no client answered in time.
            DivergenceError: the motion diverged without guidance.
        """
        self._epoch = 0.0 if self.pace.virtual else time.time()
        try:
            self._prepare_cycle()
            self.pace.begin()
            while self._run_cycle() and self.pace.wait(self.inbox, self.send_again, stopping):
                pass
            if self._run is not None and not np.all(np.abs(self._run.qd) <= REST):
                self._emit("cut", f"{self._name} was interrupted in motion: the session ended")
        except TwinError:
            if not self.arm.lost:
                raise
            self._emit("left", "the window was closed")
        finally:
            self.state = EgmState.DISCONNECTED

    def rehearse(self) -> None:
        """Execute once everything that is compiled or loaded at first use."""
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
        """Return the log of the end of the motion and of the stream; `None` before the first cycle.

        The arrays of the stream are described in `StreamRecord.arrays`.
        """
        with self._lock:
            return self.arm.log(self._tool, self._record.arrays())

    def result(self) -> EgmResult:
        """Return a copy of the result so far."""
        return replace(
            self.done, events=tuple(self._events), faults=tuple(self._faults),
            counts=replace(self.done.counts), strangers=self.channel.strangers,
            lateness=self.pace.lateness(), log=self.log(),
        )  # fmt: skip

    def _run_cycle(self) -> bool:
        """Send a message, take an answer, move the arm and prepare the next cycle.

        Returns:
            whether the plan continues with another cycle.
        """
        with self._lock:
            self.pace.sending()
            if self._on_event is not None and (delay := self.pace.new_delay()):
                self._on_event(Event(self._t, "late", delay))
            taken = self._exchange()
            if self._over:
                return False
            self._move(self._samples)
            self._complete(taken)
            return self.plan.duration is None or self.inbox.cycle * self._cycle < self.plan.duration - 1e-9

    def _exchange(self) -> SensorMessage | None:
        """Send a message, and take the next answer, if any; return the one that guides the robot."""
        self._send()
        if self._over:
            return None
        self.pace.sent(self.inbox)
        taken = self._take()
        if self._run is not None:
            self._supervise(self._run)
        return taken

    def _complete(self, taken: SensorMessage | None) -> None:
        """End a cycle after the motion of the arm, and prepare the next one."""
        self._record.add(self._t, self._message, taken)
        if self._run is not None:
            self._update_instruction(self._run)
        self._prepare_cycle()

    def _prepare_cycle(self) -> None:
        """Prepare the message of the next cycle before it is due."""
        self._t = self.arm.t
        if self._run is None:
            self._over = not self._start_next_instruction()
        if self._run is not None:
            self._run.measured(self.arm.q, self._cycle)
        self._message = self._robot_message()
        self._datagram = encode_robot(self._message)

    def _start_next_instruction(self) -> bool:
        """Start the next instruction if it is due; return False if the plan has no further one."""
        if self.plan.runs is not None and self.done.runs >= self.plan.runs:
            return False
        if self.inbox.cycle < self._until:
            return True
        if self._start is not None and not self._robot_motion.is_at(self._start):
            if self._robot_motion.rests:
                self._emit("returning", f"{self._name} has ended: the arm returns to the start of the path")
            self._robot_motion.go_to(self._start)
        if self._robot_motion.rests:
            self._begin_instruction()
        return True

    def _begin_instruction(self) -> None:
        """Begin an instruction, which waits for its first answer."""
        self._run = self._new_run(self._robot_motion.q)
        self.done.runs += 1
        if self._failed:
            self._numbered_from = self.inbox.cycle
        self._phase, self._failed, self._waited = Phase.WAITING, False, self.inbox.cycle
        self.state = EgmState.RUNNING
        self._emit("waiting", f"{self._name} waits for the first answer from {self._partner}")

    def _new_run(self, q: Floats) -> Run:
        assert self._guidance is not None, "an instruction of a program sets it before"
        return Run(self.arm.robot, self.settings, self._guidance, q, self.arm.period)

    @property
    def _name(self) -> str:
        """Name of the present instruction in messages."""
        return f"{self.settings.mode} guidance {self.done.runs}"

    def _robot_message(self) -> RobotMessage:
        """Return the robot's message on the present state."""
        arm, run = self.arm, self._run
        planned = self._robot_motion.q if run is None else run.q
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

    def send_again(self) -> None:
        """Send the message of this cycle again."""
        self.channel.send(self._sent_last)

    def _send(self) -> None:
        if self._run is not None and self._waited == self.inbox.cycle:  # first message of the instruction
            if not self.pace.virtual:
                self.inbox.listen()  # read and discard answers to messages before this instruction
            self.inbox.restart()
        self._sent_last = self._datagram
        if self.channel.send(self._datagram):
            self.done.sent += 1
            return
        self.done.unsent += 1
        if self.done.unsent == 1:
            self._emit(
                "unsent", f"cannot send messages to {self._partner}: check its address and the network"
            )

    def _take(self) -> SensorMessage | None:
        """Take the next answer; return `None` if no answer guided the robot in this cycle."""
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
        """Stop if the client is silent or the arm does not follow its reference."""
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
        """Return a fault if the arm is too far from its commanded position (n,), in [rad]; else `None`."""
        off = np.abs(self.arm.q - q_commanded)
        if np.all(off <= FOLLOWING_ERROR):
            return None
        joint = int(np.argmax(~(off <= FOLLOWING_ERROR)))
        return Fault(
            50204, "Motion supervision",
            f"{self.arm.robot.joint_names[joint]} is {np.rad2deg(off[joint]):.3g} deg from its commanded "
            f"position, at most {np.rad2deg(FOLLOWING_ERROR):g} deg are allowed",
        )  # fmt: skip

    def _silence(self, seconds: float) -> Fault | None:
        """Return a fault if the client has been silent for too long, in [s]; else `None`."""
        allowed, broken = self.settings.comm_timeout, self.inbox.counts.broken
        if seconds < allowed - 1e-9:  # tolerance for round-off
            return None
        return Fault(
            41822, "ERR_UDPUC_COMM",
            f"no message from {self._partner} for {seconds:g} s, at most {allowed:g} s are allowed "
            "(CommTimeout)" + f"; {broken} datagrams could not be decoded" * (broken > 0),
        )  # fmt: skip

    def _move(self, count: int) -> None:
        """Move the arm by `count` samples; after a divergence place it at its commanded position."""
        run = self._run
        source = self._robot_motion if run is None else run
        try:
            self.arm.move(source.samples(count))
        except DivergenceError as error:
            if run is None:
                raise
            run.stop(Fault(0, "the motion diverged", f"{error}; the arm was reset to its commanded position"))
            run.phase = Phase.FINISHED
            self.arm.put(run.q)

    def _update_instruction(self, run: Run) -> None:
        """Emit the events of an instruction, and end it when it has finished."""
        if run.fault is not None and not self._failed:
            self._failed = True
            self._faults.append(run.fault)
            number = f"{run.fault.number} " if run.fault.number else ""
            self._emit("fault", f"{self._name} stops: {number}{run.fault.name}: {run.fault.sentence}")
        if run.phase is self._phase:
            return
        self._phase = run.phase
        if run.phase is Phase.GUIDED:
            self._emit("guided", f"{self._name} is guided by {self._partner}")
        elif run.phase is Phase.RETURNING:
            self._emit("returning", f"{self._name} returns to its start")
        elif run.phase is Phase.FINISHED:
            self.done.completed += not self._failed
            guided = self.arm.period * run.guided
            self.done.guided += guided
            if run.limited:
                self.done.limited += self.arm.period * run.limited
                self.done.limit = run.settings.max_speed_deviation
            self._emit("ended", f"{self._name} has ended {run.reason}, guided for {guided:.3g} s")
            self._run, self.state = None, EgmState.CONNECTED
            self._robot_motion.rest(run.q)
            self._until = self.inbox.cycle + math.ceil(self.plan.pause / self._cycle - 1e-9)

    def _emit(self, kind: str, sentence: str) -> None:
        event = Event(self._t, kind, sentence)
        self._events.append(event)
        if self._on_event is not None:
            self._on_event(event)
        self.arm.show_message(sentence)


BENT_WRIST = np.radians(30.0)
"""Default angle of joint 5 at the start of pose guidance, in [rad]."""


class EgmRobot:
    """Simulated robot that an EGM client guides (`EGMRunJoint`, `EGMRunPose`, `EGMMoveL`).

    The robot sends a message every cycle by the clock.  If created within `virtual_time`, it runs in lockstep
    with its client.

        with EgmRobot(robot, controller, to=("127.0.0.1", port)) as arm:
            ...                                     # the robot runs in a background thread
        arm.log

    Attributes:
        to: address of the client; answers from other addresses are ignored.
        port: local port of the robot.
        settings: settings of the guidance.

    Args:
        robot: plant with drives and payload.
        controller: controller `(state, reference) -> tau` of this robot; it must not be shared.
        settings: arguments of the RAPID instructions.
        plan: number and timing of the instructions.
        to: host and port of the client.
        bind: local host and port that receive the answers; required if `to` is another machine, see
            `UdpChannel`.
        start: (n,) initial joint position, in [rad].  By default all joints are at 0, or as near to 0 as
            their ranges allow.  In pose mode joint 5 starts at 30 degrees by default, because a straight
            wrist is singular.  In path mode the default is the start of the path.
        T_flange_tool: (4, 4) pose of the tool on the flange, in [m]; the flange itself by default.
        path: path in path mode, see `make_guidance`.
        sensors: sensors between motors and controller; by default the controller gets the exact motor state.
        time_step: time step of the engine, in [s].
        steps_per_period: engine steps per control period; the control period must divide the cycle.
        gui: whether to show the robot in a window; closing the window ends the run.
        environment: pushes on the tool, in the time since the start, and surfaces.
        on_event: callback for every `Event`, called in the thread of the robot.

    Raises:
        EgmError: settings or addresses are invalid, a port is in use, or the robot has a prismatic joint.
        LimitError: the start is beyond the range of a joint.
        ValueError: start or tool has the wrong shape or invalid values.
    """

    def __init__(
        self,
        robot: Robot,
        controller: Controller,
        settings: GuidanceSettings | None = None,
        plan: SessionPlan | None = None,
        *,
        to: tuple[str, int] = (HOST, PORT),
        bind: tuple[str, int] | None = None,
        start: ArrayLike | None = None,
        T_flange_tool: ArrayLike | None = None,
        path: str | Path | Recording | None = None,
        sensors: Sensors | None = None,
        time_step: float = 1e-3,
        steps_per_period: int = 1,
        gui: bool = False,
        environment: Environment | None = None,
        on_event: Callable[[Event], object] | None = None,
    ) -> None:
        require_turning_joints(robot)
        self.settings = GuidanceSettings() if settings is None else settings
        self._tool = checked_tool(T_flange_tool)
        self._plan = SessionPlan() if plan is None else plan
        self._guidance: Guidance = make_guidance(robot, self.settings, self._tool, path)
        self._path_start = getattr(self._guidance, "start", None)  # only in path mode
        self._start = self._start_position(robot, start)
        whole_periods(self.settings.cycle, time_step * whole_steps(steps_per_period))
        self._make_arm = partial(
            GuidedArm, robot, controller, self._start, sensors=sensors, time_step=time_step,
            steps_per_period=steps_per_period, gui=gui, keep=self._plan.keep, environment=environment,
        )  # fmt: skip
        self._on_event = on_event
        self._pace = make_pace(self.settings.cycle, self._plan.wait)
        self._channel = UdpChannel(to, bind)
        self.to, self.port = self._channel.to, self._channel.port
        self._stopping = threading.Event()
        self._session: Session | None = None
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def _start_position(self, robot: Robot, start: ArrayLike | None) -> Floats:
        """Return the initial joint position (n,), in [rad]."""
        if start is not None:
            q = np.array(joint_vector(robot, "start", start))
        elif self._path_start is not None:
            q = self._path_start
        else:
            q = np.zeros(robot.n)
            if self.settings.mode == "pose":
                q[4:5] = BENT_WRIST
            q = np.clip(q, robot.q_min, robot.q_max)
        check_position(robot, q, " at the start")
        return q

    def run(self) -> EgmResult:
        """Run in this thread until the plan is complete or the window is closed.

        Raises:
            EgmError: no client answered in time.
            DivergenceError: the motion diverged without guidance.
            TwinError: the window has no display.
        """
        self._prepare()
        self._serve()
        return self.result

    def __enter__(self) -> EgmRobot:
        """Start the robot in a background thread; it is ready on return."""
        self._prepare()
        self._thread = threading.Thread(target=self._serve_in_thread, name="EgmRobot", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the robot; raise the error of its thread, if any, even after an error of the `with` block."""
        self.stop()
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Request the end of the run, from any thread.

        In virtual time the robot first takes the answers sent before the request.
        """
        self._stopping.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end of the run, at most `seconds`; return whether it has ended."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self._thread is None or not self._thread.is_alive()

    def close(self) -> None:
        """Free the port of a robot that was never run; a run frees it at its end."""
        self._channel.close()

    @property
    def state(self) -> EgmState:
        """Present state, as `EGMGetState` returns it."""
        return EgmState.DISCONNECTED if self._session is None else self._session.state

    @property
    def q(self) -> Floats:
        """Last measured joint angles (n,), in [rad]."""
        return self._start.copy() if self._session is None else self._session.arm.q.copy()

    @property
    def log(self) -> Log | None:
        """Log of the end of the motion and of the stream so far; `None` before the first cycle.

        The arrays of the stream are described in `StreamRecord.arrays`.  Reading the log during a run delays
        the robot by some milliseconds.
        """
        return None if self._session is None else self._session.log()

    @property
    def result(self) -> EgmResult:
        """Result so far."""
        return EgmResult() if self._session is None else self._session.result()

    def _prepare(self) -> None:
        """Create the arm, and execute once everything that is compiled or loaded at first use."""
        if self._session is not None:
            raise EgmError("this EgmRobot has already been run: create a new one for another run")
        try:
            arm = self._make_arm()
            arm.show_tool(self._tool)
            self._session = Session(
                arm, self.settings, self._guidance, self._channel, self._pace, self._plan,
                partner=str(self.to), T_flange_tool=self._tool, start=self._path_start,
                on_event=self._on_event,
            )  # fmt: skip
            self._session.rehearse()
        except BaseException:
            self._channel.close()
            raise

    def _serve(self) -> None:
        """Run the session, then close the arm and the channel."""
        session = self._session
        assert session is not None
        try:
            with garbage_collection_frozen(not self._pace.virtual):
                session.serve(self._stopping.is_set)
        finally:
            session.arm.close()
            self._channel.close()

    def _serve_in_thread(self) -> None:
        try:
            self._serve()
        except BaseException as error:  # `__exit__` raises it
            self._error = error

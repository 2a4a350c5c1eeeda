"""One guidance instruction of a robot, from the wait for the first answer to the final standstill.

The speed ramps in and out linearly.  The return motion to the start is a straight line in joint space.  The
manual defines neither; both are ours.
"""

import math
from enum import Enum
from pathlib import Path

import numpy as np

from twin.abb.egm.guidance.guidance import OUT_OF_RANGE, Fault, Guidance, GuidanceStop, JointGuidance
from twin.abb.egm.guidance.limits import DriveLimits, Ranges, top_speed
from twin.abb.egm.guidance.settings import GuidanceSettings
from twin.abb.egm.wire.messages import SensorMessage
from twin.base.arrays import Floats
from twin.base.errors import EgmError
from twin.data.logs.recordings.recording import Recording
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.joint_trajectories import Trajectory
from twin.physics.trajectories.sampling import Samples


def count_periods(duration: float, period: float) -> int:
    """Return the number of periods in a duration, both in [s]; at least 1."""
    return max(1, round(duration / period))


class ReturnMotion:
    """Straight joint motion from the present position back to the start.

    The time law is the polynomial `s = 10 x^3 - 15 x^4 + 6 x^5`, which starts and ends with zero speed and
    acceleration.  The joint ranges, including those of passive joints, are convex.  The line between two
    positions within the ranges therefore stays within them.

    Attributes:
        count: number of periods of the motion.

    Args:
        q, start: (n,) first and last joint position, in [rad].
        duration: shortest duration, in [s].
        speed, acceleration: (n,) limits, in [rad/s] and [rad/s^2].
        period: sampling period, in [s].
    """

    PEAK_SPEED = 1.875  # largest ds/dx
    PEAK_ACCELERATION = 10.0 / math.sqrt(3.0)  # largest d2s/dx2

    def __init__(
        self, q: Floats, start: Floats, duration: float, speed: Floats, acceleration: Floats, period: float
    ) -> None:
        self.q, self.start = q, start
        distance = np.abs(start - q)
        needed = max(
            duration,
            float(np.max(self.PEAK_SPEED * distance / speed)),
            math.sqrt(float(np.max(self.PEAK_ACCELERATION * distance / acceleration))),
        )
        self.count = max(1, math.ceil(needed / period * (1.0 - 1e-12)))

    def __call__(self, k: int) -> Floats:
        """Return the joint position (n,) after k periods, in [rad]."""
        if k >= self.count:
            return self.start
        x = k / self.count
        return self.q + x**3 * (10.0 - 15.0 * x + 6.0 * x * x) * (self.start - self.q)


class Phase(Enum):
    """Phase of an instruction."""

    WAITING = "waiting"
    """The robot waits at rest for the first answer."""
    GUIDED = "guided"
    """The robot follows the answers."""
    STOPPING = "stopping"
    """The speed ramps down to 0."""
    RETURNING = "returning"
    """The robot moves back to the start of the instruction."""
    FINISHED = "finished"
    """The instruction has ended."""


class Run:
    """Execution of one `EGMRunJoint`, `EGMRunPose` or `EGMMoveL`.

    In every period guidance requests a speed v, which includes the speed p of the programmed path (0 without
    a path).  The limits reduce it in this order:

        v <- p + (v - p) min(1, max_speed_deviation / max abs(v - p))    all joints by one factor
        v <- v min(1, 1 / max abs(v / qd_max)), and p with it            all joints by one factor
        v <- p + r (v - p), with the ramp r from 0 to 1 since the first answer
        v <- qd + s (v - qd), with s from the torque of the drives, see `twin.egm.guidance.limits`
        v <- v reduced before the ends of joint ranges, see `twin.egm.guidance.limits`

    A stop reduces the present speed linearly to 0 within `ramp_out`, the whole stopping time according to the
    manual.  It is faster before the end of a range, and slower if the drives lack the torque.  With the
    setting `ramp_down` the joints then move back to the start.

    Attributes:
        phase: present phase of the instruction.
        fault: reason for a stop by a fault, else `None`.
        q, qd: (n,) commanded position and speed, in [rad] and [rad/s].
        converged: whether the arm was within the convergence window at the last measurement; False before the
            first answer.
        utilization: largest requested share of a joint's speed limit or of a motor's torque, in [%]; above
            100 only a part of the request is executed.

    Args:
        robot: robot whose ranges and speed limits bound the motion.
        settings: guidance settings.
        guidance: guidance mode, which computes speeds from messages.
        q: (n,) joint position at the start, at rest, in [rad].
        period: sampling period, in [s].
    """

    def __init__(
        self, robot: Robot, settings: GuidanceSettings, guidance: Guidance, q: Floats, period: float
    ) -> None:
        self.robot, self.settings, self.guidance, self.period = robot, settings, guidance, period
        self.phase = Phase.WAITING
        self.fault: Fault | None = None
        self.q = np.array(q, dtype=np.float64)
        self.qd = np.zeros_like(self.q)
        self.converged, self.utilization = False, 0.0
        self._start, self._sample = self.q.copy(), 0
        self._inside = 0.0  # time for which the arm has been within its convergence window, in [s]
        self._k = 0  # periods since the beginning of the present ramp or return motion
        self._ramp_in = count_periods(settings.ramp_in, period)
        self._ramp_out = count_periods(settings.ramp_out, period)
        self._qd_stop = self.qd
        self._return_motion: ReturnMotion | None = None
        limit = np.inf if settings.mode == "path" else settings.position_limit
        self._ranges = Ranges(robot, period, self._start - limit, self._start + limit)
        self._drives = DriveLimits(robot, period, self._ranges.deceleration)
        guidance.begin(self.q, period)

    def take(self, message: SensorMessage) -> None:
        """Set the references of a message; stop with a `fault` if the robot cannot follow them."""
        if self.phase not in (Phase.WAITING, Phase.GUIDED):
            return
        try:
            self.guidance.take(message, self.q)
        except GuidanceStop as stop:
            self.stop(stop.fault)
        else:
            self.phase = Phase.GUIDED

    def measured(self, q: Floats, elapsed: float) -> None:
        """Check the convergence once a cycle; stop after `cond_time` within the convergence window.

        Args:
            q: (n,) measured joint angles, in [rad].
            elapsed: time since the last call, in [s].
        """
        self.converged = self.phase is not Phase.WAITING and self.guidance.converged(q)
        self._inside = self._inside + elapsed if self.converged else 0.0
        waits = self.settings.mode != "path" and not self.settings.no_wait_cond
        if (
            self.phase is Phase.GUIDED
            and waits
            and self.converged
            and self._inside >= self.settings.cond_time - 1e-9  # tolerance for round-off
        ):
            self.stop()

    def stop(self, fault: Fault | None = None) -> None:
        """Ramp down to rest, and then return to the start if the settings request it.

        After a fault the arm does not return.  The first of several faults is stored.  A stop without a fault
        has no effect during a stop or a return motion.
        """
        if self.phase is Phase.FINISHED:
            return
        if self.fault is None:
            self.fault = fault
        if self.phase is Phase.STOPPING or (self.phase is Phase.RETURNING and fault is None):
            return
        self.phase, self._k, self._qd_stop = Phase.STOPPING, 0, self.qd
        if not self.qd.any():
            self._rest()

    def end(self, settings: GuidanceSettings) -> None:
        """Stop in the way and with the ramp of these settings."""
        self.settings, self._ramp_out = settings, count_periods(settings.ramp_out, self.period)
        self.stop()

    def samples(self, count: int) -> Samples:
        """Return the next `count` samples of the motion, each with the acceleration to the next sample.

        They obey `qd[k+1] = qd[k] + dt qdd[k]`, `q[k+1] = q[k] + dt qd[k+1]`.  A controller with an exact
        model of the arm therefore follows them up to round-off.  Afterwards `q` and `qd` of the run are the
        state one period after the last sample.
        """
        dt = self.period
        t = np.arange(self._sample, self._sample + count, dtype=np.float64) * dt
        q, qd, qdd = np.empty((3, count, len(self.q)))
        for k in range(count):
            q[k], qd[k] = self.q, self.qd
            speed = self._speed()
            qdd[k] = (speed - self.qd) / dt
            self.q, self.qd = self.q + dt * speed, speed
        self._sample += count
        return Samples(t, q, qd, qdd)

    def _speed(self) -> Floats:
        """Return the speed (n,) of the next period, in [rad/s]."""
        if self.phase is Phase.GUIDED and self.guidance.ended():
            self.stop()
        if self.phase is Phase.GUIDED:
            try:
                return self._guided()
            except GuidanceStop as stop:
                self.stop(stop.fault)
        if self.phase is Phase.STOPPING:
            return self._stopping()
        if self.phase is Phase.RETURNING:
            return self._returning()
        self.utilization = 0.0
        return np.zeros_like(self.qd)

    def _guided(self) -> Floats:
        """Return the speed (n,) that guidance requests, within all limits, in [rad/s]."""
        asked, program = self.guidance.speed(self.q), self.guidance.programmed()
        deviation = asked - program
        largest, limit = float(np.abs(deviation).max()), self.settings.speed_limit
        if not largest < np.inf:
            sentence = "guidance expected finite joint speeds, the references require infinite ones"
            raise GuidanceStop(Fault(0, "invalid message", sentence))
        if largest > limit:
            deviation = deviation / largest * limit
        share = float((np.maximum(np.abs(program + deviation), np.abs(program)) / self.robot.qd_max).max())
        self.utilization = 100.0 * share
        if share > 1.0:
            program, deviation = program / share, deviation / share
        self._k += 1
        unramped = program + deviation
        speed = unramped if self._k >= self._ramp_in else program + self._k / self._ramp_in * deviation
        possible, needed = self._drives.within(self.q, self.qd, speed)
        self.utilization = max(self.utilization, needed)
        braked = self._ranges.braked(self.q, possible)
        held_back = speed - braked
        if held_back.any() and (end := self._ranges.at_end(self.q, self.qd, speed)):
            raise GuidanceStop(Fault(OUT_OF_RANGE, "Joint Out of Range", end))
        self.guidance.follow(unramped - held_back)
        return braked

    def _stopping(self) -> Floats:
        """Return the speed (n,) of the stopping ramp, in [rad/s]."""
        self._k += 1
        ramp = max(0.0, 1.0 - self._k / self._ramp_out) * self._qd_stop
        possible, _ = self._drives.within(self.q, self.qd, ramp)
        speed = self._ranges.braked(self.q, possible)
        if not speed.any():
            self._rest()
        return speed

    def _returning(self) -> Floats:
        """Return the speed (n,) of the return motion, in [rad/s]; finish at its end."""
        motion = self._return_motion
        if motion is None or self._k >= motion.count:
            self.phase = Phase.FINISHED
            return np.zeros_like(self.qd)
        self._k += 1
        return (motion(self._k) - self.q) / self.period

    def _rest(self) -> None:
        """Finish at rest, or start the return motion."""
        self.utilization = 0.0
        if self.settings.stop == "hold" or self.fault is not None or (self.q == self._start).all():
            self.phase = Phase.FINISHED
            return
        speed = np.minimum(self.settings.speed_limit, top_speed(self.robot))
        self.phase, self._k = Phase.RETURNING, 0
        self._return_motion = ReturnMotion(
            self.q, self._start, self.settings.ramp_out, speed, self._ranges.deceleration, self.period
        )


def make_guidance(
    robot: Robot,
    settings: GuidanceSettings,
    T_flange_tool: Floats | None = None,
    path: str | Path | Recording | Trajectory | None = None,
) -> Guidance:
    """Return the guidance of a robot in the mode of its settings.

    Args:
        robot: robot to be guided.
        settings: guidance settings, including the mode.
        T_flange_tool: (4, 4) pose of the tool on the flange, in [m]; the flange itself by default.
        path: path in path mode: a recording of the tool or of the joints, the path of its file, or a motion.

    Raises:
        EgmError: the robot does not support the mode, or a path is missing or superfluous.
        RecordingError and others: the robot cannot move along the path, see `recorded_motion`.

    Example:
        >>> import twin
        >>> from twin.abb.egm import GuidanceSettings
        >>> from twin.abb.egm.guidance.run import make_guidance
        >>> type(make_guidance(twin.load("irb140"), GuidanceSettings(mode="pose"))).__name__
        'PoseGuidance'
    """
    if settings.mode == "path":
        from twin.abb.egm.guidance.path_guidance import PathGuidance

        if path is None:
            raise EgmError("mode path requires a path: a recording of the tool or of the joints")
        return PathGuidance(robot, settings, path, T_flange_tool)
    if path is not None:
        raise EgmError(f"mode {settings.mode} accepts no path: a path is valid only in mode path")
    if settings.mode == "pose":
        from twin.abb.egm.guidance.pose_guidance import PoseGuidance

        return PoseGuidance(robot, settings, T_flange_tool)

    return JointGuidance(robot, settings)

"""One instruction that guides a robot: from waiting for the first answer to standing still again.

Ramps of the speed are linear, in and out, and the way back to the start is a line of the joints.  The manual
tells neither; these are ours.
"""

import math
from enum import Enum
from pathlib import Path

import numpy as np

from twin.arrays import Floats
from twin.egm.guidance.guidance import OUT_OF_RANGE, Fault, Guidance, GuidanceStop, JointGuidance
from twin.egm.guidance.limits import DriveLimits, Ranges, top_speed
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.wire.messages import SensorMessage
from twin.errors import EgmError
from twin.logs.recordings.recording import Recording
from twin.robot.robot import Robot
from twin.trajectories.sampling import Samples


def periods(duration: float, period: float) -> int:
    """Count the periods in a duration, in [s]: at least one."""
    return max(1, round(duration / period))


class ReturnMotion:
    """The straight line of the joints from where they stand to where they began.

    Its law of time is the polynomial `s = 10 x^3 - 15 x^4 + 6 x^5`, which begins and ends without speed and
    acceleration.  Ranges are convex, also those between joints: a line between two points in them is in them.

    Attributes:
        count: periods that it takes.

    Args:
        q, start: (n,) where the joints stand, and where they go, in [rad].
        duration: the least, in [s].
        speed, acceleration: (n,) the largest, in [rad/s] and [rad/s^2].
        period: in [s].
    """

    PEAK_SPEED = 1.875  # of s, in distances by duration
    PEAK_ACCELERATION = 10.0 / math.sqrt(3.0)  # in distances by duration^2

    def __init__(
        self, q: Floats, start: Floats, duration: float, speed: Floats, acceleration: Floats, period: float
    ) -> None:
        self.q, self.start = q, start
        way = np.abs(start - q)
        needed = max(
            duration,
            float(np.max(self.PEAK_SPEED * way / speed)),
            math.sqrt(float(np.max(self.PEAK_ACCELERATION * way / acceleration))),
        )
        self.count = max(1, math.ceil(needed / period * (1.0 - 1e-12)))

    def __call__(self, k: int) -> Floats:
        """Where the joints are after k periods: (n,) in [rad]."""
        if k >= self.count:
            return self.start
        x = k / self.count
        return self.q + x**3 * (10.0 - 15.0 * x + 6.0 * x * x) * (self.start - self.q)


class Phase(Enum):
    """Where an instruction is."""

    WAITING = "waiting"
    """For the first answer, at rest."""
    GUIDED = "guided"
    STOPPING = "stopping"
    """On its ramp."""
    RETURNING = "returning"
    """To where it began."""
    FINISHED = "finished"


class Run:
    """One `EGMRunJoint`, `EGMRunPose` or `EGMMoveL`.

    In every period guidance asks for a speed v, of which p is the robot's own program (0 but on a path), and

        v <- p + (v - p) min(1, max_speed_deviation / max abs(v - p))    all joints by one factor
        v <- v min(1, 1 / max abs(v / qd_max)), and p with it            all joints by one factor
        v <- p + r (v - p), the ramp r from 0 to 1 since the first answer
        v <- qd + s (v - qd), s what the drives can bring about, see `twin.egm.guidance.limits`
        v <- what stops in front of the ends of ranges, see `twin.egm.guidance.limits`

    A stop goes from the speed that is there to 0, linearly, within `ramp_out` (the whole time of stopping, as
    the manual tells), or faster in front of the end of a range, or slower where the drives cannot do it; with
    `ramp_down` the joints then go back.

    Attributes:
        phase: where it is.
        fault: why it stopped, `None` where nothing was wrong.
        q, qd: (n,) commanded now, in [rad] and [rad/s].
        converged: whether the arm was within the convergence window when it was last measured; not before
            the first answer.
        utilization: the greatest share of a joint's largest speed, or of a motor's torque, that guidance asks
            for, in [%]; above 100 a part of it is not done.

    Args:
        robot: its ranges and speeds bound the motion.
        settings: how it is guided.
        guidance: what makes speeds of the messages.
        q: (n,) where it begins, at rest, in [rad].
        period: of the samples, in [s].
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
        self._inside = 0.0  # s, how long the arm has been within its window
        self._k = 0  # periods since the present ramp, or the way back, began
        self._ramp_in, self._ramp_out = (periods(t, period) for t in (settings.ramp_in, settings.ramp_out))
        self._qd_stop = self.qd
        self._way_back: ReturnMotion | None = None
        far = np.inf if settings.mode == "path" else settings.position_limit
        self._ranges = Ranges(robot, period, self._start - far, self._start + far)
        self._drives = DriveLimits(robot, period, self._ranges.deceleration)
        guidance.begin(self.q, period)

    def take(self, message: SensorMessage) -> None:
        """Take over what a message says; one that asks for what cannot be done is a `fault`, and a stop."""
        if self.phase not in (Phase.WAITING, Phase.GUIDED):
            return
        try:
            self.guidance.take(message, self.q)
        except GuidanceStop as stop:
            self.stop(stop.fault)
        else:
            self.phase = Phase.GUIDED

    def measured(self, q: Floats, elapsed: float) -> None:
        """Be told once a cycle where the arm is; within its window for `cond_time`, the instruction ends.

        Args:
            q: (n,) measured joint angles, in [rad].
            elapsed: since the last call, in [s].
        """
        self.converged = self.phase is not Phase.WAITING and self.guidance.converged(q)
        self._inside = self._inside + elapsed if self.converged else 0.0
        waits = self.settings.mode != "path" and not self.settings.no_wait_cond
        if (
            self.phase is Phase.GUIDED
            and waits
            and self.converged
            and self._inside >= self.settings.cond_time - 1e-9  # round-off of a sum
        ):
            self.stop()

    def stop(self, fault: Fault | None = None) -> None:
        """Come to rest, and then go back if that is how the instruction ends; after a fault the arm stays.

        Of several faults the first is kept.  A stop without a fault changes nothing where it is stopping or
        on its way back.
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

    def samples(self, count: int) -> Samples:
        """The next so many samples of the motion: each is where it is, with the acceleration to the next.

        They obey `qd[k+1] = qd[k] + dt qdd[k]`, `q[k+1] = q[k] + dt qd[k+1]`, so that a law that knows the
        arm follows them to round-off; the run is then one period behind the last of them.
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
        """The speed (n,) of the next period, in [rad/s]."""
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
        """The speed that guidance asks for, within all limits."""
        asked, program = self.guidance.speed(self.q), self.guidance.programmed()
        deviation = asked - program
        largest, limit = float(np.abs(deviation).max()), self.settings.speed_limit
        if not largest < np.inf:
            raise GuidanceStop(Fault(0, "invalid message", "guidance asks for speeds that are not finite"))
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
        """The speed of the stop's ramp, at whose end the arm rests."""
        self._k += 1
        ramp = max(0.0, 1.0 - self._k / self._ramp_out) * self._qd_stop
        possible, _ = self._drives.within(self.q, self.qd, ramp)
        speed = self._ranges.braked(self.q, possible)
        if not speed.any():
            self._rest()
        return speed

    def _returning(self) -> Floats:
        """The speed to the next point of the way back; 0 once it is at its end."""
        way = self._way_back
        if way is None or self._k >= way.count:
            self.phase = Phase.FINISHED
            return np.zeros_like(self.qd)
        self._k += 1
        return (way(self._k) - self.q) / self.period

    def _rest(self) -> None:
        """Finish, or go back first."""
        self.utilization = 0.0
        if self.settings.stop == "hold" or self.fault is not None or (self.q == self._start).all():
            self.phase = Phase.FINISHED
            return
        speed = np.minimum(self.settings.speed_limit, top_speed(self.robot))
        self.phase, self._k = Phase.RETURNING, 0
        self._way_back = ReturnMotion(
            self.q, self._start, self.settings.ramp_out, speed, self._ranges.deceleration, self.period
        )


def guidance_of(
    robot: Robot,
    settings: GuidanceSettings,
    T_flange_tool: Floats | None = None,
    path: str | Path | Recording | None = None,
) -> Guidance:
    """The guidance of a robot in the mode of its settings.

    Args:
        robot: the robot.
        settings: how it is guided.
        T_flange_tool: (4, 4) pose of the tool on the flange, in [m]; the flange itself by default.
        path: a recording of the tool or of the joints, or its file: what the robot moves along in path mode.

    Raises:
        EgmError: the robot cannot be guided so, or a path is missing, or there is one in another mode.
        RecordingError and others: the robot cannot move along the path, see `recorded_motion`.
    """
    if settings.mode == "path":
        from twin.egm.guidance.path_guidance import PathGuidance

        if path is None:
            raise EgmError("mode path needs a path: a recording of the tool or of the joints")
        return PathGuidance(robot, settings, path, T_flange_tool)
    if path is not None:
        raise EgmError(f"mode {settings.mode} has no path: a path is corrected in mode path")
    if settings.mode == "pose":
        from twin.egm.guidance.pose_guidance import PoseGuidance

        return PoseGuidance(robot, settings, T_flange_tool)

    return JointGuidance(robot, settings)

"""One guidance instruction of a robot, from the first answer to the final standstill, and its limits.

At a distance d from the end of its range, the speed of a joint is limited so that a constant deceleration a
stops it within d.  This speed is about `sqrt(2 a d)`.  For the recursion `q+ = q + dt v` it is computed
exactly: no command leaves the range, and the joint comes to rest at its end.  The manual does not describe
how a robot brakes; this rule is ours.

If a motion needs more torque than the drives can give ("utilization above 100 %"), a robot executes a part of
it, according to the manual.  The choice of this part is ours: all joints change their speeds by one common
factor s, the largest value up to 1 at which no motor needs more than `TORQUE_SHARE` of its available torque,

    tau(s) = h(q, qd) + f + s (M(q) + A) qdd,

with h the Coriolis and gravity torques, f the friction, and A the rotor inertia.  The feedback of the
controller corrects the rest.  A joint may always brake with its braking deceleration at the end of its range.

The speed ramps in and out linearly.  The return motion to the start is a straight line in joint space.  The
manual defines neither; both are ours.
"""

import math
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import numpy as np

from twin.abb.egm.guidance.guidance import OUT_OF_RANGE, Fault, Guidance, GuidanceStop, JointGuidance
from twin.abb.egm.guidance.settings import GuidanceSettings
from twin.abb.egm.wire.messages import SensorMessage
from twin.base.arrays import Floats
from twin.base.errors import EgmError
from twin.data.logs.recordings.recording import Recording
from twin.physics.control.control_law import Model
from twin.physics.robot.drives.drive_step import add_drive_torque
from twin.physics.robot.drives.motors import MotorLimits, available_torque, motor_side
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.joint_trajectories import Trajectory
from twin.physics.trajectories.sampling import Samples

BRAKING_TIME = 0.6
"""Time in which a joint stops from its largest speed, in [s]; 0.4 s would overload an IRB 1600."""
SPEED_WITHOUT_LIMIT = 4.0
"""Speed limit that is assumed for a joint without one, in [rad/s]."""
DISTANCE_WITHOUT_END = 1e9
"""Distance that is assumed to the end of an unbounded range, in [rad]."""
END_TOLERANCE = 1e-9
"""Largest distance, in [rad], and speed, in [rad/s], of a joint that rests at the end of its range."""
PUSH_SPEED = 1e-6
"""Smallest outward speed that counts as a request to leave the range, in [rad/s]; less is round-off."""


class Ranges:
    """Ranges of the joints and of passive joints, such as `q3 - q2` of a parallelogram.

    Attributes:
        deceleration: (n,) braking decelerations of the joints, in [rad/s^2].

    Args:
        robot: robot whose joint ranges apply.
        period: period dt of the recursion, in [s].
        low, high: (n,) additional bounds, in [rad]; the narrower of these and the joint ranges apply.
    """

    def __init__(self, robot: Robot, period: float, low: Floats, high: Floats) -> None:
        self.robot, self.period = robot, period
        self.low, self.high = np.maximum(low, robot.q_min), np.minimum(high, robot.q_max)
        self.deceleration = top_speed(robot) / BRAKING_TIME
        self.passive = robot.embedding[list(robot.passive)]
        least = np.where(self.passive == 0.0, np.inf, np.abs(self.passive) * self.deceleration)
        self.passive_deceleration = np.min(least, axis=1)

    def braked(self, q: Floats, qd: Floats) -> Floats:
        """Return the speeds (n,) of the next period, limited so that no joint leaves its range, in [rad/s].

        Each joint brakes independently.  For a passive joint, all joints that drive it towards the end of its
        range brake by a common factor.

        Args:
            q: (n,) commanded angles, in [rad].
            qd: (n,) requested speeds, in [rad/s].
        """
        ahead = np.where(qd > 0.0, self.high - q, q - self.low)
        if not self._far(ahead, qd, self.deceleration):
            bound = self._bound(ahead, self.deceleration)
            qd = np.minimum(np.maximum(qd, -bound), bound)
        if not len(self.passive) or self._far(*self._passive_ahead(q, qd), self.passive_deceleration):
            return qd
        for row, bound in self._passive_bounds(q, qd):
            parts = row * qd
            beyond = float(parts.sum()) - bound
            if beyond > 0.0:
                outward = parts > 0.0
                qd = np.where(outward, qd * max(0.0, 1.0 - beyond / float(parts[outward].sum())), qd)
        # Braking for one passive joint may drive another one outwards: then all joints brake alike.
        shares = [bound / rate for row, bound in self._passive_bounds(q, qd) if (rate := row @ qd) > bound]
        return qd * min(shares, default=1.0)

    def at_end(self, q: Floats, qd: Floats, asked: Floats) -> str | None:
        """Describe a joint that rests at the end of its range and is guided outwards; `None` without one.

        Args:
            q: (n,) commanded angles, in [rad].
            qd: (n,) commanded speeds, in [rad/s].
            asked: (n,) speeds that guidance requests, in [rad/s].
        """
        robot = self.robot
        names, low, high = list(robot.joint_names), robot.q_min, robot.q_max
        rates = np.stack([q, qd, asked])
        if len(self.passive):
            names += [robot.tree.names[i] for i in robot.passive]
            low, high = np.append(low, robot.passive_min), np.append(high, robot.passive_max)
            rates = np.hstack([rates, rates @ self.passive.T])
            rates[0, robot.n :] = robot.passive_angles(q)
        angle, now, desired = rates
        near = np.where(desired > 0.0, high - angle, angle - low) <= END_TOLERANCE
        resting = near & (np.abs(now) <= END_TOLERANCE) & (np.abs(desired) > PUSH_SPEED)
        if not resting.any():
            return None
        i = int(np.argmax(resting))
        return (
            f"{names[i]} is at the end of its range, {np.rad2deg(angle[i]):.6g} deg, and is guided beyond "
            f"it; valid are {np.rad2deg(low[i]):.6g} to {np.rad2deg(high[i]):.6g} deg"
        )

    def _far(self, ahead: Floats, rate: Floats, deceleration: Floats) -> bool:
        """Return whether all ends are certainly far away (a quick, conservative test)."""
        speed = np.abs(rate) + deceleration * self.period
        return bool((speed * speed <= 2.0 * deceleration * ahead).all())

    def _bound(self, ahead: Floats, deceleration: Floats) -> Floats:
        """Return the largest speed from which a joint stops within the distance `ahead`.

        From a speed v between m h and (m + 1) h, braking by h = a dt each period covers
        dt (v + (v - h) + ... + (v - m h)) = dt (m + 1) (v - m h / 2).
        """
        h = deceleration * self.period
        left = np.minimum(np.maximum(ahead, 0.0), DISTANCE_WITHOUT_END) / self.period
        m = np.floor(0.5 * (np.sqrt(1.0 + 8.0 * left / h) - 1.0))
        return left / (m + 1.0) + 0.5 * m * h

    def _passive_ahead(self, q: Floats, qd: Floats) -> tuple[Floats, Floats]:
        """Return the distances of passive joints to their ends, in [rad], and their speeds, in [rad/s]."""
        angle, rate = self.robot.passive_angles(q), self.passive @ qd
        return np.where(rate > 0.0, self.robot.passive_max - angle, angle - self.robot.passive_min), rate

    def _passive_bounds(self, q: Floats, qd: Floats) -> Iterator[tuple[Floats, float]]:
        """Yield for each passive joint a row, whose product with qd is the outward speed, and its bound."""
        ahead, rate = self._passive_ahead(q, qd)
        bounds = self._bound(ahead, self.passive_deceleration)
        for row, speed, bound in zip(self.passive, rate, bounds, strict=True):
            yield (row if speed > 0.0 else -row), float(bound)


def top_speed(robot: Robot) -> Floats:
    """Return the speed limits (n,) of the joints, in [rad/s]; `SPEED_WITHOUT_LIMIT` if undefined."""
    return np.where(np.isfinite(robot.qd_max), robot.qd_max, SPEED_WITHOUT_LIMIT)


MAX_UTILIZATION = 1000.0
"""Upper bound of the reported utilization, in [%]; at its highest speed a motor has no torque left."""


def torque_utilization(motors: MotorLimits, demand: Floats, qd_motor: Floats) -> float:
    """Return the largest ratio of demanded to available torque of any motor, in [%].

    Above 100 a motor delivers less than the demand.

    Args:
        motors: torque limits of the motors, see `twin.robot.drives.motors.torque_at_speed`.
        demand: (..., n) demanded torques at the joints, in [N m].
        qd_motor: (..., n) speeds of the motors in joint units, in [rad/s].
    """
    torque = motor_side(motors.coupling, 1, demand)
    available = available_torque(motors, torque, motor_side(motors.coupling, 0, qd_motor))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(torque == 0.0, 0.0, np.abs(torque) / available)
    return float(min(MAX_UTILIZATION, 100.0 * np.max(share)))


TORQUE_SHARE = 0.9
"""Share of a motor's available torque that guided motion may use."""


class DriveLimits:
    """Limits of the speed change by the torque of the drives.

    Args:
        robot: robot with drives and payload.
        period: sampling period, in [s].
        always: (n,) acceleration that is always allowed, independent of the torque, in [rad/s^2].
    """

    def __init__(self, robot: Robot, period: float, always: Floats) -> None:
        self._period, self._always = period, always
        self._motors = MotorLimits.of(robot.active_drives, robot.tau_max)
        self._known = robot.has_inertia and bool(np.isfinite(self._motors.limits[0]).any())
        if self._known:
            self._model = Model.of(robot, period)

    def within(self, q: Floats, qd: Floats, desired: Floats) -> tuple[Floats, float]:
        """Limit the speeds of the next period by the torque of the drives.

        Args:
            q: (n,) commanded angles, in [rad].
            qd: (n,) commanded speeds, in [rad/s].
            desired: (n,) requested speeds of the next period, in [rad/s].

        Returns:
            the limited speeds (n,), in [rad/s], and the utilization of the drives by `desired`, in [%].
        """
        if not self._known:
            return desired, 0.0
        qdd = (desired - qd) / self._period
        still, moving = self._torques(q, qd, qdd)
        available = available_torque(self._motors, moving, motor_side(self._motors.coupling, 0, desired))
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            needed = float(np.max(np.where(moving == 0.0, 0.0, np.abs(moving) / available)))
            if needed <= TORQUE_SHARE:
                return desired, 100.0 * needed
            change, limit = moving - still, TORQUE_SHARE * available
            # A motor that cannot even hold the arm does not reduce the motion of the other joints.
            shares = np.where(np.abs(still) <= limit, (limit - np.sign(change) * still) / np.abs(change), 1.0)
            least = float(np.min(self._always / np.abs(qdd)))
        share = min(1.0, max(float(np.nanmin(shares)), least))
        return (desired if share == 1.0 else qd + share * (desired - qd)), 100.0 * needed

    def _torques(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Floats]:
        """Return motor torques (n,) without and with the acceleration; both include the same friction."""
        model = self._model
        still, moving, rubbing = np.empty_like(q), np.empty_like(q), np.zeros_like(q)
        model.bias(q, qd, model.inertias, model.gravity, still)
        model.arm_torque(q, qd, qdd, model.inertias, model.gravity, moving)
        add_drive_torque(model.drives, qd, qdd, self._period, moving, rubbing)
        moving = moving + rubbing
        still = still + rubbing - model.drives.inertia @ qdd
        coupling = self._motors.coupling
        return motor_side(coupling, 1, still), motor_side(coupling, 1, moving)


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
        v <- qd + s (v - qd), with s from the torque of the drives, see `twin.egm.guidance.run`
        v <- v reduced before the ends of joint ranges, see `twin.egm.guidance.run`

    A stop reduces the present speed linearly to 0 within `ramp_out`, the whole stopping time according to the
    manual.  It is faster before the end of a range, and slower if the drives lack the torque.  With the
    setting `ramp_down` the joints then move back to the start.

    Attributes:
        phase: present phase of the instruction.
        fault: reason for a stop by a fault, else `None`.
        q, qd: (n,) commanded position and speed, in [rad] and [rad/s].
        converged: whether the arm was within the convergence window at the last measurement; False before the
            first answer.
        reason: why the instruction stops, "" before.
        guided, limited: numbers of periods in which the client guided the arm, and in which MaxSpeedDeviation
            limited its speed.
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
        self.reason, self.guided, self.limited = "", 0, 0
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
            self.stop(reason=f"by its condition, {self.settings.cond_time:g} s in its window")

    def stop(self, fault: Fault | None = None, reason: str = "by a fault") -> None:
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
        self.phase, self._k, self._qd_stop, self.reason = Phase.STOPPING, 0, self.qd, reason
        if not self.qd.any():
            self._rest()

    def end(self, settings: GuidanceSettings, reason: str) -> None:
        """Stop in the way and with the ramp of these settings, for a reason."""
        self.settings, self._ramp_out = settings, count_periods(settings.ramp_out, self.period)
        self.stop(reason=reason)

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
            self.stop(reason="at the end of its path")
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
        self.guided += 1
        if largest > limit:
            self.limited += 1
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
        from twin.abb.egm.guidance.tool_guidance import PathGuidance

        if path is None:
            raise EgmError("mode path requires a path: a recording of the tool or of the joints")
        return PathGuidance(robot, settings, path, T_flange_tool)
    if path is not None:
        raise EgmError(f"mode {settings.mode} accepts no path: a path is valid only in mode path")
    if settings.mode == "pose":
        from twin.abb.egm.guidance.tool_guidance import PoseGuidance

        return PoseGuidance(robot, settings, T_flange_tool)

    return JointGuidance(robot, settings)

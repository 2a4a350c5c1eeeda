"""Limits of guided motion: joint ranges and the torque of the drives.

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
"""

from collections.abc import Iterator

import numpy as np

from twin.base.arrays import Floats
from twin.physics.control.control_law import Model
from twin.physics.robot.drives.drive_step import add_drive_torque
from twin.physics.robot.drives.motors import MotorLimits, available_torque, motor_side
from twin.physics.robot.robot import Robot

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

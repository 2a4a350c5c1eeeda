"""The limits of guided motion: ends of ranges, and what the drives can give.

At a distance d from the end of its range a joint may have the speed from which a constant deceleration a
stops it within d, about `sqrt(2 a d)`; for the recursion `q+ = q + dt v` it is taken exactly, so that no
command leaves a range, and the joint just comes to rest on the end.  The manual does not tell how a robot
brakes; ours.

Of a motion that takes more than the drives can give, "utilization above 100 %", a robot does a part, as the
manual tells.  Which part is ours: all joints change their speeds by one factor s, the largest up to 1 with
which no motor needs more than `USED` of what it gives,

    tau(s) = h(q, qd) + f + s (M(q) + A) qdd,

h Coriolis and gravity torques, f friction, A the rotors.  The rest is left to the feedback of the control
law.  A joint may always brake as it does in front of the end of its range.
"""

from collections.abc import Iterator

import numpy as np

from twin.arrays import Floats
from twin.control.control_law import Model
from twin.robot.drives.drive_step import add_drive_torque
from twin.robot.drives.motors import MotorLimits, available_torque, motor_side
from twin.robot.robot import Robot

BRAKING_TIME = 0.6
"""In which a joint stops from its largest speed, in [s]; in 0.4 s the drives of an IRB 1600 could not."""
SPEED_WITHOUT_LIMIT = 4.0
"""Counts for a joint that has no speed limit, in [rad/s]."""
FAR = 1e9
"""Counts as the distance of an end that is not there, in [rad]."""
AT_END = 1e-9
"""A joint nearer to its end than this, in [rad], and slower than this, in [rad/s], rests on it."""
PUSHES = 1e-6
"""A speed beyond the end from this on is asked for, in [rad/s]; less is round-off of what ends on it."""


class Ranges:
    """The ranges of joints, and of the passive joints that they turn (`q3 - q2` of a parallelogram).

    Attributes:
        deceleration: (n,) of the joints, in [rad/s^2].

    Args:
        robot: whose ranges.
        period: dt of the recursion, in [s].
        low, high: (n,) in [rad]; the robot's own ranges count where they are narrower.
    """

    def __init__(self, robot: Robot, period: float, low: Floats, high: Floats) -> None:
        self.robot, self.period = robot, period
        self.low, self.high = np.maximum(low, robot.q_min), np.minimum(high, robot.q_max)
        self.deceleration = top_speed(robot) / BRAKING_TIME
        self.passive = robot.embedding[list(robot.passive)]
        least = np.where(self.passive == 0.0, np.inf, np.abs(self.passive) * self.deceleration)
        self.passive_deceleration = np.min(least, axis=1)

    def braked(self, q: Floats, qd: Floats) -> Floats:
        """Speeds (n,) of the next period of which none runs past the end of a range, in [rad/s].

        Each joint brakes by itself; where a passive joint has to, those joints brake that drive it to its
        end, all by one factor.

        Args:
            q: (n,) commanded now, in [rad].
            qd: (n,) asked for, in [rad/s].
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
        # Joints that brake for one passive joint may have held back another one: then all brake alike.
        shares = [bound / rate for row, bound in self._passive_bounds(q, qd) if (rate := row @ qd) > bound]
        return qd * min(shares, default=1.0)

    def at_end(self, q: Floats, qd: Floats, asked: Floats) -> str | None:
        """A sentence on a joint that rests on its end while more is asked for; `None` where none does.

        Args:
            q: (n,) commanded now, in [rad].
            qd: (n,) speeds now, in [rad/s].
            asked: (n,) speeds that guidance asks for, in [rad/s].
        """
        robot = self.robot
        names, low, high = list(robot.joint_names), robot.q_min, robot.q_max
        rates = np.stack([q, qd, asked])
        if len(self.passive):
            names += [robot.tree.names[i] for i in robot.passive]
            low, high = np.append(low, robot.passive_min), np.append(high, robot.passive_max)
            rates = np.hstack([rates, rates @ self.passive.T])
            rates[0, robot.n :] = robot.passive_angles(q)
        angle, now, wanted = rates
        near = np.where(wanted > 0.0, high - angle, angle - low) <= AT_END
        resting = near & (np.abs(now) <= AT_END) & (np.abs(wanted) > PUSHES)
        if not resting.any():
            return None
        i = int(np.argmax(resting))
        return (
            f"{names[i]} is at the end of its range, {np.rad2deg(angle[i]):.6g} deg, and guided beyond it, "
            f"valid is {np.rad2deg(low[i]):.6g} to {np.rad2deg(high[i]):.6g} deg"
        )

    def _far(self, ahead: Floats, rate: Floats, deceleration: Floats) -> bool:
        """Whether no end is near: a quick answer, which may be no where it could be yes."""
        speed = np.abs(rate) + deceleration * self.period
        return bool((speed * speed <= 2.0 * deceleration * ahead).all())

    def _bound(self, ahead: Floats, deceleration: Floats) -> Floats:
        """The speed from which a joint stops within what is ahead of it, period by period.

        From a speed v between m h and (m + 1) h, braking by h = a dt each period covers
        dt (v + (v - h) + ... + (v - m h)) = dt (m + 1) (v - m h / 2).
        """
        h = deceleration * self.period
        left = np.minimum(np.maximum(ahead, 0.0), FAR) / self.period
        m = np.floor(0.5 * (np.sqrt(1.0 + 8.0 * left / h) - 1.0))
        return left / (m + 1.0) + 0.5 * m * h

    def _passive_ahead(self, q: Floats, qd: Floats) -> tuple[Floats, Floats]:
        """Return what is ahead of the passive joints, in [rad], and their speeds, in [rad/s]."""
        angle, rate = self.robot.passive_angles(q), self.passive @ qd
        return np.where(rate > 0.0, self.robot.passive_max - angle, angle - self.robot.passive_min), rate

    def _passive_bounds(self, q: Floats, qd: Floats) -> Iterator[tuple[Floats, float]]:
        """Yield for each passive joint the row that makes its speed towards its end of qd, and its bound."""
        ahead, rate = self._passive_ahead(q, qd)
        bounds = self._bound(ahead, self.passive_deceleration)
        for row, speed, bound in zip(self.passive, rate, bounds, strict=True):
            yield (row if speed > 0.0 else -row), float(bound)


def top_speed(robot: Robot) -> Floats:
    """The largest speeds (n,) of the joints, in [rad/s], where they have any, else `SPEED_WITHOUT_LIMIT`."""
    return np.where(np.isfinite(robot.qd_max), robot.qd_max, SPEED_WITHOUT_LIMIT)


MOST = 1000.0
"""In [%]: more is told as this, say where a motor is to push at its highest speed, and can give nothing."""


def torque_utilization(motors: MotorLimits, demand: Floats, qd_motor: Floats) -> float:
    """The largest share of a motor's torque, in [%], of what it gives at its speed; above 100 it gives less.

    Args:
        motors: their limits, see `twin.robot.drives.motors.torque_at_speed`.
        demand: (..., n) torques that are demanded at the joints, in [N m].
        qd_motor: (..., n) speeds of the motors in joint units, in [rad/s].
    """
    torque = motor_side(motors.coupling, 1, demand)
    available = available_torque(motors, torque, motor_side(motors.coupling, 0, qd_motor))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(torque == 0.0, 0.0, np.abs(torque) / available)
    return float(min(MOST, 100.0 * np.max(share)))


USED = 0.9
"""The share of the torque that a motor gives at its speed."""


class DriveLimits:
    """The limits that a robot's drives put on a change of speed.

    Args:
        robot: whose drives; with its payload.
        period: of the samples, in [s].
        always: (n,) acceleration that every joint may have whatever its drive gives, in [rad/s^2].
    """

    def __init__(self, robot: Robot, period: float, always: Floats) -> None:
        self._period, self._always = period, always
        self._motors = MotorLimits.of(robot.active_drives, robot.tau_max)
        self._known = robot.has_inertia and bool(np.isfinite(self._motors.limits[0]).any())
        if self._known:
            self._model = Model.of(robot, period)

    def within(self, q: Floats, qd: Floats, wanted: Floats) -> tuple[Floats, float]:
        """The speed (n,) of the next period, in [rad/s], and how much of the drives that would take, in [%].

        Args:
            q: (n,) commanded now, in [rad].
            qd: (n,) commanded now, in [rad/s].
            wanted: (n,) speeds for the next period, in [rad/s]; returned as they are where they can be.
        """
        if not self._known:
            return wanted, 0.0
        qdd = (wanted - qd) / self._period
        still, moving = self._torques(q, qd, qdd)
        available = available_torque(self._motors, moving, motor_side(self._motors.coupling, 0, wanted))
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            needed = float(np.max(np.where(moving == 0.0, 0.0, np.abs(moving) / available)))
            if needed <= USED:
                return wanted, 100.0 * needed
            change, limit = moving - still, USED * available
            # Of a motor that has not enough to hold the arm, nothing is asked.
            shares = np.where(np.abs(still) <= limit, (limit - np.sign(change) * still) / np.abs(change), 1.0)
            least = float(np.min(self._always / np.abs(qdd)))
        share = min(1.0, max(float(np.nanmin(shares)), least))
        return (wanted if share == 1.0 else qd + share * (wanted - qd)), 100.0 * needed

    def _torques(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Floats]:
        """Torques (n,) of the motors without and with the acceleration, with the friction of the latter."""
        model = self._model
        still, moving, rubbing = np.empty_like(q), np.empty_like(q), np.zeros_like(q)
        model.bias(q, qd, model.inertias, model.gravity, still)
        model.inverse_dynamics(q, qd, qdd, model.inertias, model.gravity, moving)
        add_drive_torque(model.drives, qd, qdd, self._period, rubbing)
        moving = moving + rubbing
        still = still + rubbing - model.drives.inertia @ qdd
        coupling = self._motors.coupling
        return motor_side(coupling, 1, still), motor_side(coupling, 1, moving)

"""How fast a commanded speed may change: as far as the drives can bring it about.

Of a motion that takes more than the drives can give, "utilization above 100 %", a robot does a part, as the
manual tells.  Which part is ours: all joints change their speeds by one factor s, the largest up to 1 with
which no motor needs more than `USED` of what it gives,

    tau(s) = h(q, qd) + f + s (M(q) + A) qdd,

h Coriolis and gravity torques, f friction, A the rotors.  The rest is left to the feedback of the control
law.  A joint may always brake as it does in front of the end of its range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from twin.arrays import Floats
from twin.control.control_law import Model
from twin.drives.drive_train import add_drive_torque
from twin.drives.motors import MotorLimits
from twin.egm.guidance.utilization import available_torque, motor_side

if TYPE_CHECKING:
    from twin.robot.robot import Robot

USED = 0.9
"""Of the torque that a motor gives at its speed."""


class DriveLimits:
    """Of a robot.

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

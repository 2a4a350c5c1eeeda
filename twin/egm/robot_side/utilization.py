"""How much of what its drives can give a motion takes."""

from __future__ import annotations

import numpy as np

from twin.arrays import Floats
from twin.drives.motors import MotorLimits

MOST = 1000.0
"""In [%]: more is told as this, say where a motor is to push at its highest speed, and can give nothing."""


def torque_utilization(motors: MotorLimits, demand: Floats, qd_motor: Floats) -> float:
    """The largest share of a motor's torque, in [%], of what it gives at its speed; above 100 it gives less.

    Args:
        motors: their limits, see `twin.drives.motors.torque_at_speed`.
        demand: (..., n) torques that are demanded at the joints, in [N m].
        qd_motor: (..., n) speeds of the motors in joint units, in [rad/s].
    """
    torque, speed = demand, qd_motor
    if motors.coupling.shape[1] > 0:
        speed, torque = qd_motor @ motors.coupling[0].T, demand @ motors.coupling[1].T
    limit, rated, top = motors.limits
    fast = np.abs(speed)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.clip((top - fast) / (top - rated), 0.0, 1.0)
        weaker = (fast > rated) & (top < np.inf) & (torque * speed > 0.0)
        share = np.where(torque == 0.0, 0.0, np.abs(torque) / (limit * np.where(weaker, left, 1.0)))
    return float(min(MOST, 100.0 * np.max(share)))

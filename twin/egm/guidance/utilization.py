"""How much of what its drives can give a motion takes."""

from __future__ import annotations

import numpy as np

from twin.arrays import Floats
from twin.drives.motors import MotorLimits

MOST = 1000.0
"""In [%]: more is told as this, say where a motor is to push at its highest speed, and can give nothing."""


def motor_side(coupling: Floats, which: int, values: Floats) -> Floats:
    """Speeds (`which` 0) or torques (1) of the motors (..., n) in joint units, of those of the joints."""
    return values @ coupling[which].T if coupling.shape[1] > 0 else values


def available_torque(motors: MotorLimits, torque: Floats, speed: Floats) -> Floats:
    """What motors give (..., n) in the direction of a torque (..., n) at a speed (..., n), in [N m].

    See `twin.drives.motors.torque_at_speed`: less at high speed, but for braking.
    """
    limit, rated, top = motors.limits
    fast = np.abs(speed)
    weaker = (fast > rated) & (top < np.inf) & (torque * speed > 0.0)
    if not np.any(weaker):
        return np.broadcast_to(limit, np.shape(torque))
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.clip((top - fast) / (top - rated), 0.0, 1.0)
    return limit * np.where(weaker, left, 1.0)


def torque_utilization(motors: MotorLimits, demand: Floats, qd_motor: Floats) -> float:
    """The largest share of a motor's torque, in [%], of what it gives at its speed; above 100 it gives less.

    Args:
        motors: their limits, see `twin.drives.motors.torque_at_speed`.
        demand: (..., n) torques that are demanded at the joints, in [N m].
        qd_motor: (..., n) speeds of the motors in joint units, in [rad/s].
    """
    torque = motor_side(motors.coupling, 1, demand)
    available = available_torque(motors, torque, motor_side(motors.coupling, 0, qd_motor))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(torque == 0.0, 0.0, np.abs(torque) / available)
    return float(min(MOST, 100.0 * np.max(share)))

"""How much of what motors and joints can do was used, sample by sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from twin.drives.motors import MotorLimits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from twin.logs.log import Log


def motor_load(log: Log) -> NDArray:
    """Torque of each motor over what it can give at its speed: (N, n), of the torque's sign.

    It is 1 or -1 where the motor is at its limit. While a motor brakes, and where the drives are ideal, the
    limit is that at standstill. What a motor gives is counted at the joints, behind its gear; where motors
    are coupled it is the motor of that number, which then also holds other joints.
    """
    limits, coupling = MotorLimits.of(log.robot.active_drives, log.robot.tau_max)
    tau, demand, speed = log.tau, log.tau_demand, log.qd_motor
    if coupling.shape[1]:
        tau, demand, speed = tau @ coupling[1].T, demand @ coupling[1].T, speed @ coupling[0].T
    standstill, rated, top = limits
    with np.errstate(invalid="ignore"):
        falling = (np.abs(speed) > rated) & (demand * speed > 0.0) & (top < np.inf)
        left = np.clip((top - np.abs(speed)) / np.where(top > rated, top - rated, 1.0), 0.0, 1.0)
        there = standstill * np.where(falling, left, 1.0)
        # From its top speed on a motor gives nothing, and that is all it can.
        return np.where(there > 0.0, tau / np.where(there > 0.0, there, 1.0), np.sign(demand))


def speed_load(log: Log) -> NDArray:
    """Speed of each joint over its limit: (N, n), of the speed's sign."""
    return log.qd / log.robot.qd_max

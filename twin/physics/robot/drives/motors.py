"""Torque limits of motors, and their decrease with speed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twin.base.jit import compiled
from twin.physics.robot.drives.drives import Drives


class MotorLimits(NamedTuple):
    """Limits of n motors in joint units, for compiled code.

    Attributes:
        limits: (3, n) torque at standstill in [N m], rated speed and maximum speed in [rad/s].
        coupling: (2, n, n) the drives' coupling R and R^-T; (2, 0, 0) if each motor turns one joint.
    """

    limits: np.ndarray
    coupling: np.ndarray

    @classmethod
    def of(cls, drives: Drives | None, tau_max: np.ndarray) -> MotorLimits:
        """Return the limits of these drives; those of ideal ones, `None`, are `tau_max` (n,), in [N m]."""
        n = len(tau_max)
        alone = np.zeros((2, 0, 0))
        if drives is None:
            endless = np.full(n, np.inf)
            return cls(np.array([tau_max, endless, endless]), alone)
        ratio = np.abs(drives.ratio)
        torque = drives.torque_limits(tau_max)
        limits = [torque, drives.motor_speed_rated / ratio, drives.motor_speed_max / ratio]
        if np.array_equal(drives.coupling, np.eye(n)):
            return cls(np.array(limits), alone)
        return cls(np.array(limits), np.array([drives.coupling, np.linalg.inv(drives.coupling).T]))


def motor_side(coupling: np.ndarray, which: int, values: np.ndarray) -> np.ndarray:
    """Convert speeds (`which` 0) or torques (1) of joints (..., n) to those of motors in joint units."""
    return values @ coupling[which].T if coupling.shape[1] > 0 else values


def torque_shares(motors: MotorLimits, tau: np.ndarray) -> np.ndarray:
    """Return the shares of the motors' torques at standstill (..., n) for torques at the joints (..., n)."""
    torque = np.abs(motor_side(motors.coupling, 1, tau))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(torque == 0.0, 0.0, torque / motors.limits[0])


def available_torque(motors: MotorLimits, torque: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """Return the torque limit of motors (..., n) for torques (..., n) at speeds (..., n), in [N m].

    It decreases at high speed, except for braking; see `torque_at_speed`.
    """
    limit, rated, top = motors.limits
    fast = np.abs(speed)
    weaker = (fast > rated) & (top < np.inf) & (torque * speed > 0.0)
    if not np.any(weaker):
        return np.broadcast_to(limit, np.shape(torque))
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.clip((top - fast) / (top - rated), 0.0, 1.0)
    return limit * np.where(weaker, left, 1.0)


@compiled
def torque_at_speed(limits, i, torque, speed):
    """Return the torque limit of motor i at a speed; while it brakes, that at standstill."""
    limit, rated, top = limits[0, i], limits[1, i], limits[2, i]
    fast = abs(speed)
    if fast > rated and top < np.inf and torque * speed > 0.0:
        limit = limit * (top - fast) / (top - rated) if fast < top else 0.0
    if torque > limit:
        return limit
    if torque < -limit:
        return -limit
    return torque


@compiled
def limited_torque(limits, coupling, demand, qd_motor, tau):
    """Limit the demand (n,) to the motors' torques, and store it in `tau` (n,), both at the joints, in [N m].

    Args:
        limits: see `MotorLimits`.
        coupling: see `MotorLimits`.
        demand: (n,) demanded torque, in [N m]; NaN remains NaN.
        qd_motor: (n,) speeds of the motors in joint units, in [rad/s].
        tau: (n,) output; equal to the demand, to the bit, if no motor is at its limit.

    Returns:
        True if the torques are finite.
    """
    finite = True
    if coupling.shape[1] > 0:
        limit_together(limits, coupling, demand, qd_motor, tau)
    else:
        for i in range(len(demand)):
            tau[i] = torque_at_speed(limits, i, demand[i], qd_motor[i])
    for i in range(len(demand)):
        finite = finite and abs(tau[i]) < np.inf
    return finite


@compiled
def limit_together(limits, coupling, demand, qd_motor, tau):
    """Apply `limited_torque` to coupled motors, with their torques R^-T demand and speeds R qd."""
    n, limited, beyond = len(demand), np.empty(len(demand)), False
    for i in range(n):
        torque, speed = 0.0, 0.0
        for j in range(n):
            if coupling[1, i, j] != 0.0:  # a NaN affects only the motors that it is coupled to
                torque += coupling[1, i, j] * demand[j]
            speed += coupling[0, i, j] * qd_motor[j]
        limited[i] = torque_at_speed(limits, i, torque, speed)
        beyond = beyond or limited[i] != torque
    for i in range(n):
        tau[i] = 0.0 if beyond else demand[i]
        for j in range(n):
            if beyond and coupling[0, j, i] != 0.0:
                tau[i] += coupling[0, j, i] * limited[j]

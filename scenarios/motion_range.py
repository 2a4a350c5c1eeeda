"""Where and how fast a scenario may move a robot: its limits, and what stands in for those it does not have.

A URDF may leave limits out, and a continuous joint has no range. A motion still needs an end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from twin.robot import Robot

HALF_RANGE = {"revolute": np.pi, "prismatic": 0.5}
"""Half of the range of a joint without one, in [rad] or [m]: about zero, or off the only limit it has."""
SPEED = {"revolute": 1.0, "prismatic": 0.5}
"""Speed limit of a joint without one, in [rad/s] or [m/s]."""


def finite_range(robot: Robot) -> tuple[NDArray, NDArray]:
    """The ends of every joint's range, (n,) each, in [rad] or [m], with `HALF_RANGE` where there is none."""
    half = np.array([HALF_RANGE[kind] for kind in robot.joint_kinds])
    has_low, has_high = np.isfinite(robot.q_min), np.isfinite(robot.q_max)
    low = np.where(has_low, robot.q_min, np.where(has_high, robot.q_max - 2 * half, -half))
    high = np.where(has_high, robot.q_max, np.where(has_low, robot.q_min + 2 * half, half))
    return low, high


def middle_and_half(robot: Robot) -> tuple[NDArray, NDArray]:
    """The middle and half the width of every joint's `finite_range`, (n,) each, in [rad] or [m]."""
    low, high = finite_range(robot)
    return (low + high) / 2, (high - low) / 2


def finite_speed(robot: Robot) -> NDArray:
    """The speed limits (n,), in [rad/s] or [m/s], with `SPEED` where there is none."""
    stand_in = np.array([SPEED[kind] for kind in robot.joint_kinds])
    return np.where(np.isfinite(robot.qd_max), robot.qd_max, stand_in)

"""Where and how fast a scenario may move a robot: its limits, and what stands in for those it does not have.

A URDF may leave limits out, and a continuous joint has no range. A motion still needs an end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scenarios.base import Metric
from twin.errors import RobotError
from twin.robot.robot import Robot

if TYPE_CHECKING:
    from twin.logs.log import Log
    from twin.trajectories.joint_trajectories import Trajectory


HALF_RANGE = {"revolute": np.pi, "prismatic": 0.5}
"""Half of the range of a joint without one, in [rad] or [m]: about zero, or off the only limit it has."""
SPEED = {"revolute": 1.0, "prismatic": 0.5}
"""Speed limit of a joint without one, in [rad/s] or [m/s]."""
SWING = 0.6
"""Of the way from the middle of its range to an end, what a joint swings at most in `cosines`."""
DRAWS = 1000
"""How often a position is drawn anew that brings a passive joint beyond its range; one in five of the IRB
1400's does."""


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


def cosines(
    robot: Robot, duration: float, speed_fraction: float, slowest: float, fastest: float
) -> Trajectory:
    """All joints swing about the middle of their ranges, from rest, each at a frequency of its own.

    Args:
        robot: the robot.
        duration: in [s].
        speed_fraction: peak speed of every joint over its limit, less where `SWING` ends it.
        slowest: frequency of the first joint, in [Hz].
        fastest: frequency of the last joint, in [Hz].
    """
    from twin.trajectories.joint_trajectories import sines

    frequency = np.linspace(slowest, fastest, robot.n)
    middle, half = middle_and_half(robot)
    speed = finite_speed(robot)
    amplitude = np.minimum(speed_fraction * speed / (2 * np.pi * frequency), SWING * half)
    return sines(middle, amplitude, frequency, duration, phase=-np.pi / 2, qd_max=speed)


def random_positions(robot: Robot, rng: np.random.Generator, count: int, share: float = 1.0) -> NDArray:
    """Positions (count, n), in [rad], uniform over the middle `share` of what the joints' ranges allow.

    Those that bring a passive joint beyond its range are drawn again.

    Raises:
        RobotError: nearly all of them do.
    """
    middle, half = middle_and_half(robot)
    positions = middle + share * half * rng.uniform(-1, 1, (count, robot.n))
    if not robot.passive:
        return positions
    for _ in range(DRAWS):
        folded = beyond_passive_range(robot, positions) > 0
        if not folded.any():
            return positions
        positions[folded] = middle + share * half * rng.uniform(-1, 1, (int(folded.sum()), robot.n))
    raise RobotError(
        f"robot {robot.name!r}: no positions found that keep its passive joints within their ranges, "
        f"within the ranges of its joints (the middle {share:.0%} of them)"
    )


def beyond_passive_range(robot: Robot, q: NDArray) -> NDArray:
    """How far (N,) any passive joint is beyond its range at positions (N, n), in [rad]; below 0 inside it."""
    angles = robot.passive_angles(q)
    beyond = np.maximum(angles - robot.passive_max, robot.passive_min - angles)
    return np.max(beyond, axis=1, initial=-np.inf)


def arm_metrics(log: Log, leaves_limits: str = "") -> tuple[Metric, ...]:
    """How far joints were beyond their ranges, and their speeds over their limits; each names the worst.

    Args:
        log: of the run.
        leaves_limits: why the run is made to leave them; then the figures are reported without a limit.
    """
    from twin.logs.figures import unit_of_largest
    from twin.robot.limits import ROUND_OFF

    robot = log.robot
    found = {violation.quantity: str(violation) for violation in log.violations()}
    excess = np.maximum(log.q - robot.q_max, robot.q_min - log.q)
    return (
        Metric(
            "position beyond the range",
            float(np.maximum(np.max(excess, initial=0.0), 0.0)),
            unit_of_largest(log, np.maximum(excess, 0.0)),
            None if leaves_limits else ROUND_OFF,
            leaves_limits or "of any joint, as the engine had it; ranges of the robot's URDF",
            found.get("position", ""),
        ),
        Metric(
            "speed / its limit",
            float(np.max(np.abs(log.qd) / robot.qd_max, initial=0.0)),
            "",
            None if leaves_limits else 1.0 + ROUND_OFF,
            leaves_limits or "of any joint, as the engine had it; speed limits of the robot's URDF",
            found.get("speed", ""),
        ),
    )

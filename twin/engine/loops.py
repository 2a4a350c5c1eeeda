"""Closed loops in the engine: constraints that hold them, solved tightly, and the measure of how tightly.

The parallelogram makes its passive joints affine in the driven ones, so the integrator keeps a loop closed
whose accelerations are right: over a run the gap stays where rounding puts it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from twin.errors import LoopError
from twin.robot.limits import check_folding
from twin.robot.robot import Robot

LARGEST_GAP = 1e-9
"""A loop that is open by more than this, in [m], is an error; held as below it stays at 1e-14."""

LARGEST_FORCE = 1e9  # N: more than any loop needs

CORRECTION = 0.005
"""What part of a gap the engine takes back in a step. Each step rounds the gap anew by 1e-16 m, and taking
that back at PyBullet's own 0.2 shows as 1e-12 rad/s in the speeds; with 0 the gap wanders off slowly."""


NEAR = 1e-6
"""So near to the end of its range, in [rad], a passive joint of the engine is judged by the driven joints
that it follows, as everywhere else; further inside the gap, small as it is, cannot matter."""


def close(
    client: Any,
    body: int,
    robot: Robot,
    joints: Sequence[int],
    inertial_frame: Callable[[int], np.ndarray],
) -> None:
    """Hold the two links of every loop together at the point that they share.

    Args:
        client: PyBullet's world.
        body: its number for the robot.
        robot: whose loops are held.
        joints: PyBullet's index of every joint of the robot's tree.
        inertial_frame: gives, for PyBullet's index of a link, the pose (4, 4) of its inertial frame in it.
    """
    if not robot.loops:
        return
    # By default a loop is solved to 1e-6 only. The solver stops once the residual, a square, is below the
    # threshold; far below this one rounding keeps it from ever stopping early.
    client.setPhysicsEngineParameter(numSolverIterations=5000, solverResidualThreshold=1e-27, erp=CORRECTION)
    for loop in robot.loops:
        links, pivots = [joints[joint] for joint in loop.joints], []
        for link, point in zip(links, loop.points, strict=True):
            # A constraint's points are in the inertial frames, their rotation included.
            T = np.linalg.inv(inertial_frame(link))
            pivots.append((T[:3, :3] @ point + T[:3, 3]).tolist())
        held = client.createConstraint(
            body, links[0], body, links[1], client.JOINT_POINT2POINT, [0, 0, 0], *pivots
        )
        client.changeConstraint(held, maxForce=LARGEST_FORCE)


def checked_gap(robot: Robot, q_tree: np.ndarray) -> float:
    """How far the loops are open at most, in [m].

    Args:
        robot: with loops.
        q_tree: (n_tree,) positions of all joints of its tree in the engine, in [rad].

    Raises:
        LoopError: a loop is open by more than `LARGEST_GAP`.
        LimitError: a loop folds.
    """
    # Called at every step: arithmetic on a few floats, which numpy would take ten times as long for.
    gaps = np.empty(3 * len(robot.loops))
    robot.kernels.loop_gaps(q_tree, gaps)
    x_y_z, widest = iter(gaps.tolist()), 0.0
    for loop in robot.loops:
        gap = math.hypot(next(x_y_z), next(x_y_z), next(x_y_z))
        if not gap <= LARGEST_GAP:
            first, second = (robot.tree.links[joint] for joint in loop.joints)
            raise LoopError(
                f"loop {loop.name} came open: {first} and {second} are {gap:.3g} m apart where they meet, "
                f"at most {LARGEST_GAP:g} m is allowed; is the motion too fast for the time step?"
            )
        widest = max(widest, gap)
    angles = q_tree.tolist()
    ranges = zip(robot.passive, robot.passive_min.tolist(), robot.passive_max.tolist(), strict=True)
    if not all(low + NEAR <= angles[joint] <= high - NEAR for joint, low, high in ranges):
        check_folding(robot, q_tree[list(robot.driven)])
    return widest

"""Closed loops of a robot's tree: whether they are closed, and how far they are from folding flat.

A parallelogram makes its passive joints affine in the driven ones, `q_tree = G q + g0`; where that holds, the
loop is closed.  In the engine it is closed by a constraint, and may come open.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from twin.multibody import recursions
from twin.multibody.tree import Loop

if TYPE_CHECKING:
    from twin.robot.robot import Robot


def gaps(robot: Robot, q_tree: np.ndarray) -> np.ndarray:
    """How far the loops are open.

    Args:
        robot: with m loops.
        q_tree: (n_tree,) positions of all joints of the tree, in [rad].

    Returns:
        (m, 3) from the shared point as the loop's second link has it to that of the first, base axes, in [m].
    """
    frames = _frames(robot, q_tree)
    return np.array([recursions.loop_gap(loop, frames) for loop in robot.loops]).reshape(-1, 3)


def gap_rates(robot: Robot, q_tree: np.ndarray) -> np.ndarray:
    """How fast each joint of the tree opens the loops: derivatives of `gaps`.

    Args:
        robot: with m loops.
        q_tree: (n_tree,) positions of all joints of the tree, in [rad].

    Returns:
        (3 m, n_tree) in [m/rad] (of a prismatic joint in [1]); times `robot.embedding` it is 0 where loops
        stay closed.
    """
    frames = _frames(robot, q_tree)
    rates = np.zeros((len(robot.loops), 3, robot.tree.n))
    for rate, loop in zip(rates, robot.loops, strict=True):
        for side, sign in enumerate((1.0, -1.0)):
            point = np.array(recursions.shared_point(loop, frames, side))
            for joint in robot.tree.carriers(loop.joints[side]):
                z = np.array(frames.z[joint])
                revolute = robot.tree.kinds[joint] == "revolute"
                rate[:, joint] += sign * (np.cross(z, point - frames.o[joint]) if revolute else z)
    return rates.reshape(-1, robot.tree.n)


def clearance(robot: Robot, loop: Loop, q: np.ndarray) -> float:
    """How far a loop is from folding flat, in [m]: 0 where the links that close it fall into line.

    That is the distance of the second link's joint from the line through the first link's joint and the
    shared point.  In a parallelogram that is the distance between its two long sides.

    Args:
        robot: the loop's.
        loop: one of `robot.loops`.
        q: (n,) joint positions, in [rad].
    """
    return float(np.linalg.norm(_across(robot, loop, q)))


def is_past_fold(robot: Robot, loop: Loop, q: np.ndarray) -> bool:
    """Whether a loop is beyond the place where it folds flat, as seen from the zero pose.

    Args:
        robot: the loop's.
        loop: one of `robot.loops`.
        q: (n,) joint positions, in [rad].
    """
    return bool(_across(robot, loop, q) @ _across(robot, loop, np.zeros(robot.n)) < 0)


def _across(robot: Robot, loop: Loop, q: np.ndarray) -> np.ndarray:
    """A vector (3,) as long as the clearance, in [m], along the loop's axis; in the first link's frame."""
    frames = _frames(robot, robot.tree_positions(q))
    first, second = (np.array(frames.o[joint]) for joint in loop.joints)
    along = np.array(recursions.shared_point(loop, frames, 0)) - first
    return np.cross(second - first, along) @ frames.R[loop.joints[0]] / np.linalg.norm(along)


def _frames(robot: Robot, q_tree: np.ndarray) -> recursions.WorldFrames:
    return recursions.world_frames(robot.tree, recursions.placements(robot.tree, q_tree.tolist(), math))

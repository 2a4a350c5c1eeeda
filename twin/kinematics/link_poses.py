"""Where every link of a robot is: what is drawn of it, closed loops included."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from twin.multibody.recursions import placements, world_frames
from twin.robot.evaluation import joint_vectors
from twin.robot.robot import Robot


def link_poses(robot: Robot, q: ArrayLike) -> np.ndarray:
    """Pose of every moving link in the base frame, passive links of closed loops included.

    Args:
        robot: the robot.
        q: (..., n) joint positions, in [rad].

    Returns:
        (..., n_tree, 4, 4) `T_base_link`, in the order of the tree's joints, lengths in [m].

    Raises:
        ValueError: q is not (..., n).
    """
    (q,) = joint_vectors(robot, q=q)
    q_tree = robot.tree_positions(q)
    frames = world_frames(robot.tree, placements(robot.tree, list(np.moveaxis(q_tree, -1, 0)), np))
    T = np.zeros((*q_tree.shape, 4, 4))
    T[..., 3, 3] = 1.0
    for link, (R, origin) in enumerate(zip(frames.R, frames.o, strict=True)):
        for row in range(3):
            T[..., link, row, 3] = origin[row]
            for column in range(3):
                T[..., link, row, column] = R[row][column]
    return T

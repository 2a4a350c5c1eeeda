"""A short tool path, and gains of the feedback that follows it."""

import numpy as np

import twin
from twin.trajectories.tool_paths import through_poses

K = np.diag([20.0, 10, 15, 12, 8, 9]) + 1.5 * np.triu(np.ones((6, 6)), 1)  # not even symmetric


def path_of(robot, T_tool=None, duration=0.5):
    q = np.array([[0.3, -0.4, 0.3, 0.5, 0.8, -0.2, 0.4], [0.6, -0.1, 0.6, 0.3, 1.1, 0.3, 0.1]])[:, : robot.n]
    return q[0], through_poses(twin.forward_kinematics(robot, q, T_tool), durations=duration)

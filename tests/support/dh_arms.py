"""Kinematics of six-joint DH arms by plain matrix products, as a second oracle, and pose errors."""

import numpy as np

from scenarios.judging.motion_range import random_positions

TURN = 2 * np.pi
T_TOOL = np.array([[0.0, 0, 1, 0.05], [1, 0, 0, -0.02], [0, 1, 0, 0.12], [0, 0, 0, 1]])


def dh_frames(dh, theta):
    """Return the poses of all DH frames as plain products of the four elementary transforms."""
    T = np.zeros((*theta.shape[:-1], 4, 4)) + np.eye(4)
    frames = []
    for i in range(len(dh.d)):
        turn, shift, twist = (np.zeros((*theta.shape[:-1], 4, 4)) + np.eye(4) for _ in range(3))
        c, s = np.cos(theta[..., i]), np.sin(theta[..., i])
        turn[..., 0, 0], turn[..., 0, 1], turn[..., 1, 0], turn[..., 1, 1] = c, -s, s, c
        shift[..., :3, 3] = (dh.a[i], 0.0, dh.d[i])
        c, s = np.cos(dh.alpha[i]), np.sin(dh.alpha[i])
        twist[..., 1:3, 1:3] = [[c, -s], [s, c]]
        T = T @ turn @ shift @ twist
        frames.append(T)
    return frames


def dh_pose(robot, q):
    return dh_frames(robot.dh, q @ robot.dh_coupling.T + robot.dh.theta0)[-1]


def pose_errors(robot, q, T, fk=dh_pose):
    """Return the largest entry of `|FK(q) - T|` for each of the solutions (..., 8, 6), 0 for NaN rows."""
    none = np.isnan(q[..., :1])
    errors = np.max(np.abs(fk(robot, np.where(none, 0.0, q)) - T[..., None, :, :]), axis=(-2, -1))
    return np.where(none[..., 0], 0.0, errors)


def distance_mod_turn(q, q_ref):
    """Return the largest joint difference modulo 2 pi of each row of q (..., 8, 6) from q_ref (..., 6)."""
    difference = q - q_ref[..., None, :]
    return np.max(np.abs(difference - TURN * np.round(difference / TURN)), axis=-1)


def geometry(robot, q):
    """Compute from the DH frames the three signs that number a solution: forward, bend, sine of theta_5."""
    theta = q @ robot.dh_coupling.T + robot.dh.theta0
    frames = dh_frames(robot.dh, theta)
    wrist = frames[3][..., :3, 3]
    forward = np.sum(frames[0][..., :3, 0] * wrist, axis=-1)  # of the wrist centre from axis 1
    lower_arm = frames[1][..., :3, 3] - frames[0][..., :3, 3]
    forearm = wrist - frames[1][..., :3, 3]
    turn = np.sum(np.cross(lower_arm, forearm) * frames[0][..., :3, 2], axis=-1)
    bend = turn / (np.linalg.norm(lower_arm, axis=-1) * np.linalg.norm(forearm, axis=-1))
    return forward, bend, np.sin(theta[..., 4])


def random_poses_of(robot, rng, count):
    """Draw joint angles within all limits, passive joints included; return them and their poses."""
    q = random_positions(robot, rng, count)
    return q, dh_pose(robot, q)


def states_of(robot, count=25, seed=11):
    rng = np.random.default_rng(seed)
    low, high = np.maximum(robot.q_min, -3), np.minimum(robot.q_max, 3)
    q = rng.uniform(low, high, (count, robot.n))
    return q, *rng.uniform(-2, 2, (2, count, robot.n))


def times(A, b):
    """Return the products `A b` of stacked matrices and vectors."""
    return np.einsum("...ij,...j->...i", A, b)


def fourth_order(function, h):
    """Return the derivative at 0 by central differences of fourth order in h."""
    return (8 * (function(h) - function(-h)) - (function(2 * h) - function(-2 * h))) / (12 * h)

"""Conversions between arrays and the arguments and results of PyBullet."""

import struct
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import real_array
from twin.physics.robot.evaluation import joint_vector
from twin.physics.robot.robot import Robot
from twin.physics.rotations.rotations import pose_matrix


def state_reader(n: int) -> Callable[[Sequence[Any], np.ndarray], None]:
    """Return a function `(states, out)` that stores the `getJointStates` of n joints in out (2, n).

    Its source is generated for n joints: it runs at every step, and `zip(*states)` takes three times as long.
    """
    joints = ", ".join(f"(q{i}, qd{i}, _, _)" for i in range(n))
    values = ", ".join([f"q{i}" for i in range(n)] + [f"qd{i}" for i in range(n)])
    made: dict[str, Any] = {"pack": struct.Struct(f"{2 * n}d").pack_into}
    exec(f"def read(states, out):\n    {joints}, = states\n    pack(out, 0, {values})", made)
    return made["read"]


def checked_out(out: np.ndarray, n: int) -> np.ndarray:
    """Check the array that `state_reader` fills, and return it.

    Raises:
        ValueError: it is not a writable C-contiguous float64 array of the right shape.
    """
    if not (
        isinstance(out, np.ndarray)
        and out.shape == (2, n)
        and out.dtype == np.float64
        and out.flags.c_contiguous
        and out.flags.writeable
    ):
        got = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else repr(out)
        raise ValueError(f"expected out to be a writable C-contiguous float64 array (2, {n}), got {got}")
    return out


def finite_list(robot: Robot, tau: ArrayLike) -> list[float]:
    """Return torques as a list; raise `TypeError`, as PyBullet does, if they are not finite."""
    forces = (tau if type(tau) is np.ndarray else joint_vector(robot, "tau", tau)).tolist()
    if not isfinite(sum(forces)):
        raise TypeError
    return forces


def checked_wrench(wrench: ArrayLike) -> np.ndarray:
    """Return a wrench (6,) `[f; mu]`; raise `ValueError` unless it is 6 finite numbers."""
    F = real_array(wrench, "wrench")
    if F.shape != (6,) or not np.all(np.isfinite(F)):
        raise ValueError(f"expected a finite wrench of shape (6,), got {F.tolist()}")
    return F


def link_pose(position: Sequence[float], quaternion: Sequence[float]) -> np.ndarray:
    """Return the pose (4, 4) of a position and a quaternion in PyBullet's order, scalar last."""
    x, y, z, w = quaternion
    return pose_matrix([*position, w, x, y, z])


def inertial_frame(client: Any, body: int, link: int) -> np.ndarray:
    """Return the pose (4, 4) of a link's inertial frame in its joint's frame."""
    return link_pose(*client.getDynamicsInfo(body, link)[3:5])


def tree_jacobian(
    client: Any, body: int, link: int, point: np.ndarray, q_tree: np.ndarray, joints: Sequence[int]
) -> np.ndarray:
    """Return the Jacobian (6, n_tree) `[v; omega]` of a point of a link, columns in the tree's order.

    Args:
        client: client of PyBullet.
        body: PyBullet's number of the robot.
        link: PyBullet's number of the link.
        point: (3,) position relative to the joint's origin, in the axes of the link's inertial frame, in [m].
        q_tree: (n_tree,) positions of all joints, in [rad].
        joints: PyBullet's index of every joint of the tree.
    """
    ordered, zeros = q_tree[np.argsort(joints)].tolist(), [0.0] * len(q_tree)
    return np.vstack(client.calculateJacobian(body, link, point.tolist(), ordered, zeros, zeros))[:, joints]

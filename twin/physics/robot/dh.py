"""Denavit-Hartenberg tables and their frames."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, float_array


class DH(NamedTuple):
    """Standard Denavit-Hartenberg rows `Rz(theta) Tz(d) Tx(a) Rx(alpha)`: (n,) arrays, in [rad, m, m, rad].

    The angle of a row is `theta = S q + theta0`.  For a prismatic joint its row of S is 0, and `d + q`
    replaces d.
    """

    theta0: np.ndarray
    d: np.ndarray
    a: np.ndarray
    alpha: np.ndarray


def dh_transforms(dh: DH, theta: ArrayLike) -> Floats:
    """Return the transform of every row, `A = Rz(theta) Tz(d) Tx(a) Rx(alpha)`.

    Args:
        dh: table of n rows; for a prismatic joint, its column d may be of shape (..., n).
        theta: (..., n) DH angles, in [rad]; `twin.kinematics.dh_from_joint_angles` converts joint
            angles to them.

    Returns:
        (..., n, 4, 4) pose of frame i in frame i - 1, lengths in [m].

    Raises:
        ValueError: theta is not of shape (..., n).

    Example:
        >>> import twin
        >>> dh = twin.robot.DH(theta0=[0, 0], d=[0, 0], a=[1, 0.5], alpha=[0, 0])
        >>> twin.robot.dh_transforms(dh, [0, 0])[:, :3, 3].tolist()
        [[1.0, 0.0, 0.0], [0.5, 0.0, 0.0]]

    Source: Norrlöf 1999, eq. (2.23).
    """
    theta = float_array(theta, "theta", (len(dh.alpha),))
    d, theta = np.broadcast_arrays(np.asarray(dh.d, dtype=np.float64), theta)
    c, s = np.cos(theta), np.sin(theta)
    ca, sa = np.cos(dh.alpha), np.sin(dh.alpha)
    A = np.zeros((*theta.shape, 4, 4))
    A[..., 0, 0], A[..., 0, 1], A[..., 0, 2], A[..., 0, 3] = c, -s * ca, s * sa, dh.a * c
    A[..., 1, 0], A[..., 1, 1], A[..., 1, 2], A[..., 1, 3] = s, c * ca, -c * sa, dh.a * s
    A[..., 2, 1], A[..., 2, 2], A[..., 2, 3] = sa, ca, d
    A[..., 3, 3] = 1.0
    return A


def dh_poses(dh: DH, theta: ArrayLike) -> Floats:
    """Return the poses of frames 1 to n in the base frame, the products of the transforms up to each.

    Args:
        dh: table as for `dh_transforms`.
        theta: (..., n) DH angles, in [rad].

    Returns:
        (..., n, 4, 4); the last one is the flange's, equal to `forward_kinematics` of the same robot.

    Raises:
        ValueError: theta is not of shape (..., n).

    Example:
        >>> import twin
        >>> dh = twin.robot.DH(theta0=[0, 0], d=[0, 0], a=[1, 0.5], alpha=[0, 0])
        >>> twin.robot.dh_poses(dh, [0, 0])[:, :3, 3].tolist()
        [[1.0, 0.0, 0.0], [1.5, 0.0, 0.0]]

    Source: Norrlöf 1999, eq. (2.65); Aliaga 2019, eq. (2.4).
    """
    T = dh_transforms(dh, theta)
    for i in range(1, T.shape[-3]):
        T[..., i, :, :] = T[..., i - 1, :, :] @ T[..., i, :, :]
    return T

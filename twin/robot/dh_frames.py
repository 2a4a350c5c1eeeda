"""The frames of a Denavit-Hartenberg table: what each row does, and where its frame comes to lie.

The twin computes over the URDF tree, whose frames are parallel to the base at the zero pose; these are the
frames in which the sources write their intermediate results.
"""

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats, float_array
from twin.robot.robot import DH


def dh_transforms(dh: DH, theta: ArrayLike) -> Floats:
    """Return the transform of every row, `A = Rz(theta) Tz(d) Tx(a) Rx(alpha)`.

    Args:
        dh: a table of n rows; where a joint slides, its column d may be of shape (..., n).
        theta: (..., n) DH angles, in [rad]; `twin.dh_angles` makes them of a robot's joint angles.

    Returns:
        (..., n, 4, 4) pose of frame i in frame i - 1, lengths in [m].

    Raises:
        ValueError: theta is not of shape (..., n).

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
    """Return the poses of frames 1 to n in the base frame, `T_0i = A_1 ... A_i`.

    Args:
        dh: as for `dh_transforms`.
        theta: (..., n) DH angles, in [rad].

    Returns:
        (..., n, 4, 4); the last one is that of the flange, `forward_kinematics` of the same robot.

    Raises:
        ValueError: theta is not of shape (..., n).

    Source: Norrlöf 1999, eq. (2.65); Aliaga 2019, eq. (2.4).
    """
    T = dh_transforms(dh, theta)
    for i in range(1, T.shape[-3]):
        T[..., i, :, :] = T[..., i - 1, :, :] @ T[..., i, :, :]
    return T

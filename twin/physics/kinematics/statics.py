"""Velocities and forces of one body seen from two frames, their duality, and the mobility of a mechanism.

A twist is `[v; omega]`, a wrench `[f; mu]`, linear parts first, both with respect to the origin of a frame
and along its axes.  Power is the same in every frame, so the matrix that transforms twists from A to B
transforms wrenches, when transposed, from B to A.  A Jacobian maps joint speeds to twists; its transpose maps
wrenches to joint torques.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats
from twin.physics.kinematics.forward import jacobian
from twin.physics.robot.robot import Robot
from twin.physics.rotations.rotations import float_array, rigid_poses


def cross_matrix(r: ArrayLike) -> Floats:
    """Return the skew-symmetric matrices S (..., 3, 3) of vectors r (..., 3): `S(r) a = r x a`.

    Example:
        >>> import twin
        >>> S = twin.kinematics.cross_matrix([0, 0, 1])
        >>> (S @ [1, 0, 0]).tolist()  # z cross x
        [0.0, 1.0, 0.0]

    Source: Ljubljana lab manual, eq. (4.48)-(4.51); Norrlöf 1999, eq. (3.28), whose third row should be
    `[-w2, w1, 0]`.
    """
    r = float_array(r, "r", (3,))
    S = np.zeros((*r.shape, 3))
    S[..., 2, 1], S[..., 0, 2], S[..., 1, 0] = np.moveaxis(r, -1, 0)
    return S - np.swapaxes(S, -1, -2)


def twist_transform(T_AB: ArrayLike) -> Floats:
    """Return the matrix that transforms the twist of frame A, in its axes, to frame B, in the axes of B.

    Both frames are fixed to the same body: `V_B = X V_A`.

    Args:
        T_AB: (..., 4, 4) pose of B in A, positions in [m].

    Returns:
        (..., 6, 6), in [1] and [m].

    Example:
        >>> import twin
        >>> T = twin.pose_matrix([0.2, 0, 0, 1, 0, 0, 0])  # B is 0.2 m along x of A
        >>> X = twin.kinematics.twist_transform(T)
        >>> (X @ [0, 0, 0, 0, 0, 1]).tolist()
        [0.0, 0.2, 0.0, 0.0, 0.0, 1.0]

    Source: Ljubljana lab manual, eq. (4.47)-(4.60), A and B as its frames 1 and 2; (4.56) prints omega_0 for
    omega_2.
    """
    T = rigid_poses(T_AB, "T_AB")
    R_BA = np.swapaxes(T[..., :3, :3], -1, -2)
    X = np.zeros((*T.shape[:-2], 6, 6))
    X[..., :3, :3] = X[..., 3:, 3:] = R_BA
    X[..., :3, 3:] = -R_BA @ cross_matrix(T[..., :3, 3])
    return X


def wrench_transform(T_AB: ArrayLike) -> Floats:
    """Return the matrix that transforms a wrench at frame B, in its axes, to frame A, in the axes of A.

    It is `twist_transform(T_AB)` transposed: `F_A = X^T F_B`.

    Args:
        T_AB: (..., 4, 4) pose of B in A, positions in [m].

    Returns:
        (..., 6, 6), in [1] and [m].

    Example:
        >>> import twin
        >>> T = twin.pose_matrix([0.2, 0, 0, 1, 0, 0, 0])  # B is 0.2 m along x of A
        >>> (twin.kinematics.wrench_transform(T) @ [0, 5, 0, 0, 0, 0]).tolist()
        [0.0, 5.0, 0.0, 0.0, 0.0, 1.0]

    Source: Ljubljana lab manual, eq. (4.61)-(4.67).
    """
    return np.swapaxes(twist_transform(T_AB), -1, -2)


def wrench_torque(
    robot: Robot, q: ArrayLike, wrench: ArrayLike, T_flange_tool: ArrayLike | None = None
) -> Floats:
    """Return the joint torques of a wrench at the tool, `tau = J^T F`.

    Drives that produce these torques, besides those that carry the arm, exert F on the environment, with
    the arm at rest.  If F acts on the robot, the drives must oppose these torques.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        wrench: (..., 6) `[f; mu]` at the tool's origin, base axes, in [N, N m].
        T_flange_tool: (4, 4) pose of the tool on the flange.

    Returns:
        (..., n) torques, in [N m]; of prismatic joints forces, in [N].

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> tau = twin.kinematics.wrench_torque(robot, robot.poses["zero"], [0, 10, 0, 0, 0, 0])
        >>> round(float(tau[0]), 4)  # 10 N at 0.515 m from axis 1
        5.15

    Source: Ljubljana lab manual, eq. (4.61), (4.62).
    """
    F = float_array(wrench, "wrench", (6,))
    if not np.all(np.isfinite(F)):
        raise ValueError(f"expected a finite wrench, got {F.tolist()}")
    return np.einsum("...ji,...j->...i", jacobian(robot, q, T_flange_tool), F)


def mobility(moving_links: int, joint_freedoms: Sequence[int]) -> int:
    """Return the mobility of a spatial mechanism, `M = 6 (L - N) + sum of l`: the freedoms of all its links.

    It counts freedoms and constraints as if no constraint repeated another.  A mechanism all of whose axes
    are parallel, such as a planar parallelogram, repeats some, and moves more than this says.

    Args:
        moving_links: L, how many links move.
        joint_freedoms: the freedoms l of each of the N joints, 1 to 5 (a spherical joint has 3).

    Raises:
        ValueError: a number that is not a whole one, or out of range.

    Example:
        >>> import twin
        >>> twin.kinematics.mobility(6, [1, 1, 1, 1, 1, 1])  # an arm of six joints
        6
        >>> twin.kinematics.mobility(13, [1] * 6 + [3] * 12)  # a Stewart platform
        12

    Source: Kawasaki, eq. (1), whose Stewart platform has L = 13, N = 18, and M = 12: six for the plate, and
    one for each leg, which may turn about itself.
    """
    if not (moving_links >= 0 and int(moving_links) == moving_links):
        raise ValueError(f"expected an integer number of moving links, got {moving_links}")
    for freedoms in joint_freedoms:
        if freedoms not in (1, 2, 3, 4, 5):
            raise ValueError(f"expected joints of 1 to 5 freedoms, got {freedoms}")
    return 6 * (int(moving_links) - len(joint_freedoms)) + int(sum(joint_freedoms))

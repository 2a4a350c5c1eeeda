"""The tool's pose by coordinates, position first and then orientation, and how they change with its motion.

- `"zyx"`, `"zyz"`: `x = [x y z phi theta psi]`, Euler angles (`twin.spatial.euler_angles`);
- `"quaternion"`: `x = [x y z a b c d]`, the pose vector of ABB (`twin.spatial.rotations`), `a >= 0`.

Where the angles are singular (`euler_rate_inverse`) their rates do not exist, although the tool is free to
move.
"""

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats
from twin.kinematics.forward import forward_kinematics
from twin.robot.robot import Robot
from twin.spatial.euler_angles import euler_from_matrix, euler_rate_inverse, euler_rate_matrix_dot
from twin.spatial.rotations import float_array, pose_vector, quaternion_rate, rigid_poses

Coordinates: TypeAlias = Literal["zyx", "zyz", "quaternion"]

SIZES = {"zyx": 6, "zyz": 6, "quaternion": 7}
"""How many numbers each kind of coordinates has."""


def tool_coordinates(
    robot: Robot, q: ArrayLike, T_flange_tool: ArrayLike | None = None, coordinates: Coordinates = "zyx"
) -> Floats:
    """Return the coordinates of the tool's pose.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        T_flange_tool: (4, 4) pose of the tool on the flange.
        coordinates: "zyx", "zyz" or "quaternion".

    Returns:
        (..., 6) or, with a quaternion, (..., 7): position in [m] and orientation.

    Source: Ljubljana lab manual, eq. (3.26), and its q2ZYXeul; Aliaga 2019, eq. (2.12).
    """
    return coordinates_from_pose(forward_kinematics(robot, q, T_flange_tool), coordinates)


def coordinates_from_pose(T: ArrayLike, coordinates: Coordinates) -> Floats:
    """Return the coordinates (..., 6) or (..., 7) of poses (..., 4, 4)."""
    require_coordinates(coordinates)
    if coordinates == "quaternion":
        return pose_vector(T)
    T = rigid_poses(T, "T", nan=True)
    return np.concatenate([T[..., :3, 3], euler_from_matrix(T[..., :3, :3], coordinates)], axis=-1)


def coordinate_rates(x: ArrayLike, twist: ArrayLike, coordinates: Coordinates) -> Floats:
    """Return the rates of coordinates that a twist of the tool makes, `xd = T_A(x)^-1 V`.

    Args:
        x: (..., 6) or (..., 7) coordinates.
        twist: (..., 6) `[v; omega]`, base frame, in [m/s] and [rad/s].
        coordinates: "zyx", "zyz" or "quaternion".

    Returns:
        (..., 6) or (..., 7), in [m/s] and [rad/s] or [1/s].

    Raises:
        SingularityError: Euler angles at their singularity.

    Source: Ljubljana lab manual, eq. (3.33)-(3.37).
    """
    x, V = _checked(x, coordinates), float_array(twist, "twist", (6,))
    if coordinates == "quaternion":
        rates = quaternion_rate(x[..., 3:], V[..., 3:])
    else:
        rates = np.einsum("...ij,...j->...i", euler_rate_inverse(x[..., 3:], coordinates), V[..., 3:])
    return np.concatenate([np.broadcast_to(V[..., :3], (*rates.shape[:-1], 3)), rates], axis=-1)


def coordinate_accelerations(
    x: ArrayLike, twist: ArrayLike, twist_rate: ArrayLike, coordinates: Coordinates
) -> Floats:
    """Return the second derivatives of coordinates for a twist and its time derivative.

    Args:
        x: (..., 6) or (..., 7) coordinates.
        twist: (..., 6) `[v; omega]`, base frame, in [m/s] and [rad/s].
        twist_rate: (..., 6) its time derivative, in [m/s^2] and [rad/s^2].
        coordinates: "zyx", "zyz" or "quaternion".

    Returns:
        (..., 6) or (..., 7), in [m/s^2] and [rad/s^2] or [1/s^2].

    Raises:
        SingularityError: Euler angles at their singularity.
    """
    x, Vd = _checked(x, coordinates), float_array(twist_rate, "twist_rate", (6,))
    rates = coordinate_rates(x, twist, coordinates)[..., 3:]
    if coordinates == "quaternion":
        omega = float_array(twist, "twist", (6,))[..., 3:]
        second = quaternion_rate(x[..., 3:], Vd[..., 3:]) + quaternion_rate(rates, omega)
    else:
        T_dot = euler_rate_matrix_dot(x[..., 3:], rates, coordinates)
        omega_dot = Vd[..., 3:] - np.einsum("...ij,...j->...i", T_dot, rates)
        second = np.einsum("...ij,...j->...i", euler_rate_inverse(x[..., 3:], coordinates), omega_dot)
    return np.concatenate([np.broadcast_to(Vd[..., :3], (*second.shape[:-1], 3)), second], axis=-1)


def require_coordinates(coordinates: str, *others: str) -> None:
    """Raise `ValueError` for a kind of coordinates that is none of the three, nor of the others."""
    known = (*others, *SIZES)
    if coordinates not in known:
        raise ValueError(f"unknown coordinates {coordinates!r}: known are {', '.join(map(repr, known))}")


def _checked(x: ArrayLike, coordinates: Coordinates) -> Floats:
    """Return coordinates as an array of the right last dimension."""
    require_coordinates(coordinates)
    return float_array(x, "x", (SIZES[coordinates],))

"""Differential kinematics and statics: Jacobians of the tool's coordinates, twists and wrenches.

The analytic Jacobian is the derivative of the coordinates of the tool's pose
(`twin.kinematics.differential`), `xd = J_A qd`, as the geometric one gives the twist, `V = J qd`.  The two
have the same position rows, and `J = T_A(x) J_A`.  Where Euler angles are singular J_A does not exist
although the arm is free to move; the twist has no such places, hence `"twist"`, the default of the inverse
functions.

A twist is `[v; omega]`, a wrench `[f; mu]`, linear parts first, both with respect to the origin of a frame
and along its axes.  Power is the same in every frame, so the matrix that transforms twists from A to B
transforms wrenches, when transposed, from B to A.  A Jacobian maps joint speeds to twists; its transpose maps
wrenches to joint torques.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats
from twin.physics.kinematics.forward import forward_kinematics, jacobian, jacobian_dot, pose_jacobian
from twin.physics.robot.evaluation import joint_vectors
from twin.physics.robot.robot import Robot
from twin.physics.rotations.euler_angles import euler_from_matrix, euler_rate_inverse, euler_rate_matrix_dot
from twin.physics.rotations.linear_maps import full_rank_inverse, solution_in_range
from twin.physics.rotations.rotations import float_array, pose_vector, quaternion_rate, rigid_poses

Coordinates: TypeAlias = Literal["zyx", "zyz", "quaternion"]

SIZES = {"zyx": 6, "zyz": 6, "quaternion": 7}
"""Number of coordinates of each kind."""

Rates: TypeAlias = Literal["twist", "zyx", "zyz", "quaternion"]


def analytic_jacobian(
    robot: Robot, q: ArrayLike, T_flange_tool: ArrayLike | None = None, coordinates: Coordinates = "zyx"
) -> Floats:
    """Return the Jacobian of the coordinates, `xd = J_A qd`.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        T_flange_tool: (4, 4) pose of the tool on the flange.
        coordinates: "zyx", "zyz" or "quaternion".

    Returns:
        (..., 6, n) or, with a quaternion, (..., 7, n), in [m] and [1].

    Raises:
        SingularityError: Euler angles at their singularity.

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> J_A = twin.kinematics.analytic_jacobian(robot, [0, 0, 0, 0, 0.3, 0])
        >>> J_A[[1, 3], 0].round(4).tolist()  # v_y and the rate of phi per unit speed of joint 1
        [0.5121, 1.0]

    Source: Ljubljana lab manual, eq. (3.30)-(3.38); Aliaga 2019, eq. (2.13)-(2.15).
    """
    require_coordinates(coordinates)
    if coordinates == "quaternion":
        return pose_jacobian(robot, q, T_flange_tool)
    x = tool_coordinates(robot, q, T_flange_tool, coordinates)
    J = jacobian(robot, q, T_flange_tool)
    rows = euler_rate_inverse(x[..., 3:], coordinates) @ J[..., 3:, :]
    return np.concatenate([J[..., :3, :], rows], axis=-2)


def analytic_jacobian_dot(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike,
    T_flange_tool: ArrayLike | None = None,
    coordinates: Coordinates = "zyx",
) -> Floats:
    """Return the time derivative of `analytic_jacobian`, so that `xdd = J_A qdd + J_A_dot qd`.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].
        T_flange_tool: (4, 4) pose of the tool on the flange.
        coordinates: "zyx", "zyz" or "quaternion".

    Returns:
        (..., 6, n) or (..., 7, n), in [m/s] and [1/s].

    Raises:
        SingularityError: Euler angles at their singularity.

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> q, qd = [0, 0, 0, 0, 0.3, 0], [1, 0, 0, 0, 0, 0]
        >>> J_A_dot = twin.kinematics.analytic_jacobian_dot(robot, q, qd)
        >>> round(float(J_A_dot[0, 0]), 4)
        -0.5121

    Source: Norrlöf 1999, eq. (2.67); Aliaga 2019, eq. (2.16), whose minus sign is a misprint.
    """
    q, qd = joint_vectors(robot, q=q, qd=qd)
    x = tool_coordinates(robot, q, T_flange_tool, coordinates)
    J, J_dot = jacobian(robot, q, T_flange_tool), jacobian_dot(robot, q, qd, T_flange_tool)
    V = np.einsum("...ij,...j->...i", J, qd)
    # The columns of J and J_dot are twists and twist rates, but with the rates of x of the whole motion.
    rates = coordinate_rates(x, V, coordinates)[..., 3:]
    if coordinates == "quaternion":
        omegas, omega_rates = (np.swapaxes(A[..., 3:, :], -1, -2) for A in (J, J_dot))  # (..., n, 3)
        columns = quaternion_rate(x[..., None, 3:], omega_rates) + quaternion_rate(
            rates[..., None, :], omegas
        )
        rows = np.swapaxes(columns, -1, -2)
    else:
        inverse = euler_rate_inverse(x[..., 3:], coordinates)
        T_dot = euler_rate_matrix_dot(x[..., 3:], rates, coordinates)
        rows = inverse @ (J_dot[..., 3:, :] - T_dot @ inverse @ J[..., 3:, :])
    return np.concatenate([np.broadcast_to(J_dot[..., :3, :], (*rows.shape[:-2], 3, robot.n)), rows], axis=-2)


def analytic_jacobian_inverse(
    robot: Robot, q: ArrayLike, T_flange_tool: ArrayLike | None = None, coordinates: Coordinates = "zyx"
) -> Floats:
    """Return the inverse of `analytic_jacobian`, or its pseudo-inverse where it is not square.

    Of fewer joints than coordinates it is `(J_A^T J_A)^-1 J_A^T`, least squares *in these coordinates*: of a
    motion that the arm cannot make, the nearest depends on how the orientation is described.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        T_flange_tool: (4, 4) pose of the tool on the flange.
        coordinates: "zyx", "zyz" or "quaternion".

    Returns:
        (..., n, 6) or (..., n, 7), right to 1e-16 times the square of the condition number.

    Raises:
        SingularityError: J_A lacks rank, or Euler angles are at their singularity.

    Example:
        >>> import twin
        >>> robot, q = twin.load("irb140"), [0, 0, 0, 0, 0.3, 0]
        >>> inverse = twin.kinematics.analytic_jacobian_inverse(robot, q)
        >>> (inverse @ twin.kinematics.analytic_jacobian(robot, q)).diagonal().round(4).tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]

    Source: Ljubljana lab manual, eq. (3.40), and its ijacZYXeul; Aliaga 2019, eq. (2.17), which no 7x6 matrix
    allows.
    """
    J_A = analytic_jacobian(robot, q, T_flange_tool, coordinates)
    return full_rank_inverse(J_A, "the analytic Jacobian")


def inverse_velocity(
    robot: Robot,
    q: ArrayLike,
    rates: ArrayLike,
    T_flange_tool: ArrayLike | None = None,
    *,
    coordinates: Rates = "twist",
    least_squares: bool = False,
) -> Floats:
    """Return the joint velocities of a motion of the tool, `J qd = rates`.

    They exist where the rates lie in the range of J, also in a singular configuration and for arms with fewer
    than six joints.  Where several do, those of least norm are returned.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        rates: (..., 6) twist `[v; omega]`, base frame, or the rates of coordinates, (..., 7) of a quaternion.
        T_flange_tool: (4, 4) pose of the tool on the flange.
        coordinates: kind of the rates, "twist", "zyx", "zyz" or "quaternion".
        least_squares: return the best approximation in these coordinates if the motion is impossible.

    Returns:
        (..., n), in [rad/s].

    Raises:
        SingularityError: the motion is impossible, by more than 1e-10 of the rates; the message has the rest.

    Example:
        >>> import twin
        >>> robot, q = twin.load("irb140"), [0, 0, 0, 0, 0.3, 0]
        >>> qd = twin.inverse_velocity(robot, q, [0, 0, 0.1, 0, 0, 0])  # lift the flange at 0.1 m/s
        >>> qd[[2, 4]].round(4).tolist()  # joints 3 and 5, forearm of 0.38 m level
        [-0.2632, 0.2632]

    Source: Norrlöf 1999, eq. (2.66), (2.68) and the rank test below it; Aliaga 2019, eq. (2.18).
    """
    J, rates = _jacobian(robot, q, T_flange_tool, coordinates), _checked_rates(rates, "rates", coordinates)
    return solution_in_range(J, rates, "the velocity of the tool", least_squares=least_squares)


def inverse_acceleration(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike,
    accelerations: ArrayLike,
    T_flange_tool: ArrayLike | None = None,
    *,
    coordinates: Rates = "twist",
    least_squares: bool = False,
) -> Floats:
    """Return the joint accelerations of a motion of the tool, `J qdd = accelerations - Jd qd`.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].
        accelerations: (..., 6) time derivative of the twist, or second derivatives of coordinates, (..., 7)
            of a quaternion.
        T_flange_tool: (4, 4) pose of the tool on the flange.
        coordinates: kind of the accelerations, "twist", "zyx", "zyz" or "quaternion".
        least_squares: return the best approximation in these coordinates if the motion is impossible.

    Returns:
        (..., n), in [rad/s^2], of least norm if there are several.

    Raises:
        SingularityError: the motion is impossible; the message contains the missing part.

    Example:
        >>> import twin
        >>> robot, q = twin.load("irb140"), [0, 0, 0, 0, 0.3, 0]
        >>> qd = twin.inverse_velocity(robot, q, [0, 0, 0.1, 0, 0, 0])  # at constant speed
        >>> qdd = twin.inverse_acceleration(robot, q, qd, [0, 0, 0, 0, 0, 0])
        >>> qdd[1:3].round(4).tolist()
        [0.0731, -0.0731]

    Source: Norrlöf 1999, eq. (2.67), (2.69); Aliaga 2019, eq. (2.19), which prints a plus before Jd qd.
    """
    q, qd = joint_vectors(robot, q=q, qd=qd)
    J = _jacobian(robot, q, T_flange_tool, coordinates)
    desired = _checked_rates(accelerations, "accelerations", coordinates)
    if coordinates == "twist":
        J_dot = jacobian_dot(robot, q, qd, T_flange_tool)
    else:
        J_dot = analytic_jacobian_dot(robot, q, qd, T_flange_tool, coordinates)
    of_speed = np.einsum("...ij,...j->...i", J_dot, qd)
    size = np.linalg.norm(desired, axis=-1) + np.linalg.norm(of_speed, axis=-1)
    what = "the acceleration of the tool"
    return solution_in_range(J, desired - of_speed, what, size=size, least_squares=least_squares)


def _jacobian(robot: Robot, q: ArrayLike, T_flange_tool: ArrayLike | None, coordinates: Rates) -> Floats:
    """Return the Jacobian that gives the rates."""
    require_coordinates(coordinates, "twist")
    if coordinates == "twist":
        return jacobian(robot, q, T_flange_tool)
    return analytic_jacobian(robot, q, T_flange_tool, coordinates)


def _checked_rates(values: ArrayLike, name: str, coordinates: Rates) -> Floats:
    """Return rates or accelerations as a finite array of the right last dimension."""
    array = float_array(values, name, (SIZES.get(coordinates, 6),))
    if not np.all(np.isfinite(array)):
        raise ValueError(f"expected finite {name}, got {array[~np.isfinite(array)][0]}")
    return array


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

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> x = twin.kinematics.tool_coordinates(robot, [0.5, 0, 0, 0, 0.3, 0.2], coordinates="zyz")
        >>> x.round(4).tolist()  # x, y, z, phi, theta, psi
        [0.4494, 0.2455, 0.6928, 0.5, 1.8708, 0.2]

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
    """Return the rates of coordinates for a twist of the tool, `xd = T_A(x)^-1 V`.

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
    """Raise `ValueError` unless the kind of coordinates is one of the three, or of the others."""
    known = (*others, *SIZES)
    if coordinates not in known:
        raise ValueError(f"unknown coordinates {coordinates!r}: known are {', '.join(map(repr, known))}")


def _checked(x: ArrayLike, coordinates: Coordinates) -> Floats:
    """Return coordinates as an array of the right last dimension."""
    require_coordinates(coordinates)
    return float_array(x, "x", (SIZES[coordinates],))


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

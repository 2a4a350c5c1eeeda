"""Aliaga 2019: Denavit-Hartenberg matrices, quaternions, test poses, and rates of poses."""

from functools import reduce
from types import SimpleNamespace
from typing import Any

import numpy as np

import twin
from scenarios.judging.motion_range import random_positions
from tests.published.items import SAMPLES, Finding, Item, against_printed, computes, largest, rng
from tests.published.norrlof.kinematics import matrix, modulo_turn
from twin.data.logs.figures import tool_turn
from twin.physics.kinematics.differential import analytic_jacobian_dot, inverse_acceleration, inverse_velocity
from twin.physics.robot.robot import DH, Robot, dh_poses, dh_transforms
from twin.physics.rotations import matrix_from_axis_angle, quaternion_from_polar
from twin.physics.rotations.linear_maps import solution_in_range
from twin.physics.rotations.rotations import (
    matrix_from_quaternion,
    pose_matrix,
    pose_vector,
    quaternion_from_matrix,
    quaternion_product,
)

X, Z = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])


def dh_matrix(theta, d, a, alpha) -> np.ndarray:
    """Return the matrices (..., 4, 4) of (2.3) as printed; the angles may be complex."""
    c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    return matrix(
        [[c, -ca * s, sa * s, a * c], [s, ca * c, -sa * c, a * s], [0.0, sa, ca, d], [0.0, 0.0, 0.0, 1.0]]
    )


def configurations(robot: Robot) -> np.ndarray:
    """Return joint angles (N, 6): random ones and, for the IRB 140, special cases.

    The special cases are wrist, elbow and shoulder singularities, the flange rotated by 0 and 180 degrees,
    and configurations 1e-8 rad away from them.
    """
    q = random_positions(robot, rng(), SAMPLES)
    if robot.name != "irb140":
        return q
    over_axis_1 = -np.arccos(-0.070 / 0.380)
    awkward = np.zeros((7, 6))
    awkward[1:3, 4] = -np.pi / 2, np.pi / 2  # the flange as the base, and turned by pi
    awkward[3:5, 2] = -np.pi / 2, np.pi / 2  # stretched, folded
    awkward[5] = (0.3, 0.0, over_axis_1, 0.4, 0.5, 0.6)
    awkward[6] = (0.3, 0.0, over_axis_1, 0.4, 0.0, 0.6)
    return np.concatenate([q, np.stack(list(robot.poses.values())), awkward, awkward + 1e-8, awkward - 1e-8])


def quaternions() -> np.ndarray:
    """Return unit quaternions (N, 4), a >= 0: random ones, and rotations by exactly and nearly 0 and pi."""
    quats = rng().normal(size=(SAMPLES, 4))
    axes = np.concatenate([rng().normal(size=(20, 3)), np.eye(3), -np.eye(3), [[1, 1, 0], [0, -1, 1]]])
    axes /= np.linalg.norm(axes, axis=-1, keepdims=True)
    halves = np.array([0.0, 1e-8, np.pi / 2 - 1e-8, np.pi / 2])  # of the angles
    special = quaternion_from_polar(1.0, axes[:, None], halves).reshape(-1, 4)
    quats = np.concatenate([quats / np.linalg.norm(quats, axis=-1, keepdims=True), special])
    return np.where(quats[:, :1] < 0, -quats, quats)


@computes("T-2.3")
def dh_row(item: Item) -> Finding:
    """Compare the printed row with the four motions of (2.1), and with the library's row."""
    theta, alpha, d, a = rng().uniform(-4, 4, (4, SAMPLES))
    corners = np.arange(-4, 5) * np.pi / 2
    theta, alpha = np.append(theta, corners), np.append(alpha, corners[::-1])
    d, a = np.append(d, 0 * corners), np.append(a, 1 + corners)

    def moved(axis, length, angle):
        """Shift along and turn about the same axis, which commute."""
        T = np.tile(np.eye(4), (len(angle), 1, 1))
        T[:, :3, :3], T[:, :3, 3] = matrix_from_axis_angle(axis, angle), np.outer(length, axis)
        return T

    product = moved(Z, d, theta) @ moved(X, a, alpha)
    printed = dh_matrix(theta, d, a, alpha)
    library = dh_transforms(DH(0 * theta, d, a, alpha), theta)
    return Finding(f"{len(theta)} rows", largest(printed - product, library - printed))


@computes("T-2.4")
def dh_product(item: Item) -> Finding:
    """Compare the last DH frame with forward kinematics of the URDF, for two robots."""
    differences, count = [], 0
    for name in ("irb140", "irb1400"):
        robot = twin.load(name)
        q = configurations(robot)
        assert robot.dh is not None
        last = dh_poses(robot.dh, twin.kinematics.dh_from_joint_angles(robot, q))[..., -1, :, :]
        differences.append(last - twin.forward_kinematics(robot, q))
        count += len(q)
    return Finding(f"{count} poses of two robots", largest(*differences))


@computes("T-DH9")
def frame_at_the_end_effector(item: Item) -> Finding:
    """Compute the distances of the IRB 140's flange from its frames n, and 1 to n - 1."""
    robot = twin.load("irb140")
    assert robot.dh is not None
    q = configurations(robot)
    origins = dh_poses(robot.dh, twin.kinematics.dh_from_joint_angles(robot, q))[..., :3, 3]
    distance = np.linalg.norm(origins - twin.forward_kinematics(robot, q)[:, None, :3, 3], axis=-1)
    return Finding(f"{len(q)} poses", largest(distance[:, -1]), float(np.min(distance[:, :-1])))


@computes("T-DH10")
def angle_between_x_axes(item: Item) -> Finding:
    """Compare theta of random rows with the angle about z_(i-1) from x_(i-1) to x_i."""
    theta, alpha, d, a = rng().uniform(-np.pi, np.pi, (4, SAMPLES))
    x = dh_transforms(DH(0 * theta, d, a, alpha), theta)[:, :3, 0]
    error = np.arctan2(np.cross(X, x) @ Z, x @ X) - theta
    return Finding(f"{SAMPLES} rows", largest(modulo_turn(error)))


def printed_quaternions(R: np.ndarray) -> np.ndarray:
    """Return the square roots (..., 4) of (2.8)-(2.11) as printed, with eta = 0 and without signs."""
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = np.moveaxis(R.reshape(*R.shape[:-2], 9), -1, 0)

    def component(trace, x, y, z):
        ratio = (x**2 + y**2 + z**2) / np.maximum(3 - trace, 1)  # 3 - trace is 3 or more where it is used
        return np.sqrt(np.where(trace > 0, 1 + trace, ratio)) / 2

    a = component(r11 + r22 + r33, r32 - r23, r13 - r31, r21 - r12)
    b = component(r11 - r22 - r33, r32 - r23, r12 + r21, r31 + r13)
    c = component(-r11 + r22 - r33, r13 - r31, r12 + r21, r23 + r32)
    d = component(-r11 - r22 + r33, r21 - r12, r31 + r13, r32 + r23)
    return np.stack([a, b, c, d], axis=-1)


@computes("T-2.8")
def magnitudes(item: Item) -> Finding:
    """Compare printed and computed magnitudes with the quaternions from which the matrices are made."""
    quats = quaternions()
    R = matrix_from_quaternion(quats)
    library = np.abs(quaternion_from_matrix(R))
    residual = largest(library - np.abs(quats), printed_quaternions(R) - library)
    return Finding(f"{len(quats)} rotations", residual)


@computes("T-2.8s")
def signs(item: Item) -> Finding:
    """Check that the quaternion reproduces its matrix; the printed form is tried on test pose 2."""
    robot = twin.load("irb140")
    R_test = twin.forward_kinematics(robot, robot.poses["test_2"])[:3, :3]
    quat = quaternion_from_matrix(R_test)
    R = np.concatenate([matrix_from_quaternion(quaternions()), R_test[None]])
    rebuilt = matrix_from_quaternion(quaternion_from_matrix(R)) - R
    unsigned = matrix_from_quaternion(printed_quaternions(R_test)) - R_test
    return Finding(quat, largest(quat - np.array(item.expected), rebuilt), largest(unsigned))


@computes("T-qq")
def two_quaternions_of_a_rotation(item: Item) -> Finding:
    """Compare poses whose quaternions are q and -q: matrices, the angle between them, and components."""
    quats = quaternions()
    R, R_negative = matrix_from_quaternion(quats), matrix_from_quaternion(-quats)
    poses = np.concatenate([np.zeros((len(quats), 3)), quats], axis=1)
    compared: Any = SimpleNamespace(pose_ref=poses, pose=-poses)
    return Finding(
        f"{len(quats)} rotations", largest(R - R_negative, tool_turn(compared)), largest(quats - -quats)
    )


@computes("T-FK1", "T-FK2", "T-FK3")
def test_pose(item: Item) -> Finding:
    """Compute the pose vector of the flange at the joint angles of a test."""
    robot = twin.load("irb140")
    pose = twin.forward_kinematics(robot, robot.poses[item.inputs["pose"]])
    return against_printed(item, pose_vector(pose))


@computes("T-IK1", "T-IK2", "T-IK3")
def test_solution(item: Item) -> Finding:
    """Compute the solution for the pose of a test that is nearest to the printed angles, in degrees."""
    robot = twin.load("irb140")
    name = item.inputs["pose"]
    if name in robot.published:
        T = pose_matrix(robot.published[name].flange)
    else:
        T = twin.forward_kinematics(robot, robot.poses[name])
    q = twin.inverse_kinematics(robot, T, near=np.deg2rad(item.expected), limits=False)
    return against_printed(item, np.rad2deg(q))


@computes("T-reach")
def reach(item: Item) -> Finding:
    """Compute the largest distance of the wrist centre from axis 1, in [mm], reached by the stretched arm."""
    robot = twin.load("irb140")
    assert robot.dh is not None
    to_wrist = np.eye(4)
    to_wrist[2, 3] = -robot.dh.d[5]
    stretched = np.deg2rad([0.0, 90.0, -90.0, 0.0, 0.0, 0.0])
    q = np.concatenate([stretched[None], configurations(robot)])
    wrist = twin.forward_kinematics(robot, q, to_wrist)[:, :2, 3]
    return against_printed(item, 1e3 * np.max(np.linalg.norm(wrist, axis=-1)))


# Aliaga 2019: velocities and accelerations of the pose vector, and the inverse problem for the joints.


POINTS, RADIUS = 32, 0.1


def derivatives(
    robot: Robot, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives (..., 7) of the pose vector (2.15) at t = 0 along `q + qd t + qdd t^2 / 2`.

    The first and second derivatives are coefficients of the Taylor series.  The Fourier transform of the
    values on a circle of complex times gives them to round-off, without a Jacobian.  The pose is computed by
    (2.3), which accepts complex angles, unlike the library's kinematics.  The quaternion describes the small
    rotation since t = 0.
    """
    t = RADIUS * np.exp(2j * np.pi * np.arange(POINTS) / POINTS)[:, None]
    path = q[..., None, :] + qd[..., None, :] * t + qdd[..., None, :] * t**2 / 2
    dh = robot.dh
    assert dh is not None
    rows = dh_matrix(path @ robot.dh_coupling.T + dh.theta0, dh.d, dh.a, dh.alpha)
    T = reduce(np.matmul, np.moveaxis(rows, -3, 0))
    start = twin.forward_kinematics(robot, q)[..., :3, :3]
    turn = np.swapaxes(start, -1, -2)[..., None, :, :] @ T[..., :3, :3]
    four_aa = 1 + np.trace(turn, axis1=-2, axis2=-1)
    four_av = [turn[..., i, j] - turn[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0))]
    turned = np.stack([four_aa, *four_av], axis=-1) / (2 * np.sqrt(four_aa))[..., None]
    values = np.concatenate([T[..., :3, 3], turned], axis=-1)
    series = np.fft.fft(values, axis=-2)[..., 1:3, :].real / POINTS
    first, second = series[..., 0, :] / RADIUS, series[..., 1, :] * 2 / RADIUS**2
    quat = quaternion_from_matrix(start)
    return tuple(  # pyright: ignore[reportReturnType]
        np.concatenate([x[..., :3], quaternion_product(quat, x[..., 3:])], axis=-1) for x in (first, second)
    )


def motions() -> tuple[Robot, np.ndarray, np.ndarray, np.ndarray]:
    """Return the IRB 140 with random and special joint angles, velocities and accelerations (N, 6)."""
    robot = twin.load("irb140")
    q = configurations(robot)
    qd, qdd = rng().uniform(-2, 2, (2, *q.shape))
    qdd[-1] = 0.0
    return robot, q, qd, qdd


@computes("T-2.13")
def pose_jacobian(item: Item) -> Finding:
    """Compare the columns with the derivatives of (2.15) by each joint angle."""
    robot, q, _, _ = motions()
    rates, _ = derivatives(robot, q[:, None, :], np.eye(6), np.zeros((6, 6)))
    J = twin.kinematics.pose_jacobian(robot, q)
    return Finding(f"7x6 in {len(q)} configurations", largest(J - np.swapaxes(rates, -1, -2)))


@computes("T-2.16")
def acceleration(item: Item) -> Finding:
    """Compare the acceleration with the second derivative of the pose vector along a motion."""
    robot, q, qd, qdd = motions()
    _, second = derivatives(robot, q, qd, qdd)
    of_qdd = np.einsum("nij,nj->ni", twin.kinematics.pose_jacobian(robot, q), qdd)
    of_qd = np.einsum("nij,nj->ni", analytic_jacobian_dot(robot, q, qd, coordinates="quaternion"), qd)
    right, printed = of_qdd + of_qd - second, of_qdd - of_qd - second
    return Finding(f"{len(q)} motions", largest(right), largest(printed))


@computes("T-2.18")
def joint_velocity(item: Item) -> Finding:
    """Check that joint velocities reproduce the pose rates, and equal the given ones up to conditioning."""
    robot, q, qd, qdd = motions()
    rates, _ = derivatives(robot, q, qd, qdd)
    J = twin.kinematics.pose_jacobian(robot, q)
    found = inverse_velocity(robot, q, rates, coordinates="quaternion")
    error = np.einsum("nij,nj->ni", J, found) - rates
    return Finding(f"{len(q)} motions", largest(error, (found - qd) / np.linalg.cond(J)[:, None]))


@computes("T-2.19")
def joint_acceleration(item: Item) -> Finding:
    """Check joint accelerations in the same sense, with the right and with the printed sign."""
    robot, q, qd, qdd = motions()
    _, second = derivatives(robot, q, qd, qdd)
    J = twin.kinematics.pose_jacobian(robot, q)
    of_qd = np.einsum("nij,nj->ni", analytic_jacobian_dot(robot, q, qd, coordinates="quaternion"), qd)
    found = inverse_acceleration(robot, q, qd, second, coordinates="quaternion")
    printed = solution_in_range(J, second + of_qd, "the printed right-hand side", least_squares=True)

    error, printed_error = (np.einsum("nij,nj->ni", J, x) + of_qd - second for x in (found, printed))
    residual = largest(error, (found - qdd) / np.linalg.cond(J)[:, None])
    return Finding(f"{len(q)} motions", residual, largest(printed_error))

"""Aliaga 2019: velocities and accelerations of the pose vector, and the inverse problem for the joints."""

from __future__ import annotations

from functools import reduce

import numpy as np

import twin
from tests.published.aliaga.poses import configurations, dh_matrix
from tests.published.items import Finding, Item, computes, largest, rng
from twin.kinematics.differential import analytic_jacobian_dot, inverse_acceleration, inverse_velocity
from twin.robot.robot import Robot
from twin.rotations.linear_maps import solution_in_range
from twin.rotations.rotations import quaternion_from_matrix, quaternion_product

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

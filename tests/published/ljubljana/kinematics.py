"""Ljubljana lab manual, chapters 1 to 3: printed results of its kinematics, and Z-Y-X Euler angles."""

from __future__ import annotations

import itertools

import numpy as np

from tests.published.items import SAMPLES, Finding, Item, against_printed, computes, largest, rng
from tests.published.kawasaki import angles, printed_matrix
from tests.published.ljubljana.arms import Floats, arm, configurations, table
from tests.published.norrlof.jacobians import STEP, times
from tests.published.norrlof.samples import modulo_turn
from twin.kinematics.differential import analytic_jacobian_inverse, tool_coordinates
from twin.kinematics.forward import dh_from_joint_angles, forward_kinematics, jacobian
from twin.robot.robot import DH, dh_poses, dh_transforms
from twin.rotations.euler_angles import euler_from_matrix, euler_rate_matrix, matrix_from_euler


@computes("B-hdh")
def single_row(item: Item) -> Finding:
    """Compute one row of a Denavit-Hartenberg table."""
    theta, d, a, alpha = item.inputs["row"]
    row = DH(*np.array([[0.0], [d], [a], [alpha]]))
    return against_printed(item, dh_transforms(row, [theta])[0])


@computes("B-RX90", "B-YB")
def flange_pose(item: Item) -> Finding:
    """Compute the pose of the last frame."""
    return against_printed(item, forward_kinematics(arm(item.inputs["robot"]), item.inputs["q"]))


@computes("B-jac", "B-q2e", "B-ijac")
def result_for_the_youbot(item: Item) -> Finding:
    """Compute jacobi0, the position and Z-Y-X angles, or the pseudo-inverse of the analytic Jacobian."""
    functions = {"B-jac": jacobian, "B-q2e": tool_coordinates, "B-ijac": analytic_jacobian_inverse}
    return against_printed(item, functions[item.id](arm("youbot"), item.inputs["q"]))


@computes("B-2.16")
def joint_axes(item: Item) -> Finding:
    """Compare the axes of joints 2, 3, ... with the third columns of T_1, T_2, ... and of A_1, A_2, ..."""
    right, printed = [], []
    for robot in map(arm, ("rx90", "youbot")):
        q = configurations(robot.n)
        axes = np.swapaxes(jacobian(robot, q)[:, 3:, 1:], -1, -2)
        theta = dh_from_joint_angles(robot, q)
        right.append(dh_poses(table(robot), theta)[:, :-1, :3, 2] - axes)
        printed.append(dh_transforms(table(robot), theta)[:, :-1, :3, 2] - axes)
    return Finding(f"{2 * SAMPLES} configurations", largest(*right), largest(*printed))


def printed_angles(R: Floats) -> Floats:
    """Return the angles (N, 3) of (3.25)."""
    phi, psi = np.arctan2(R[:, 1, 0], R[:, 0, 0]), np.arctan2(R[:, 2, 1], R[:, 2, 2])
    theta = np.arctan2(-R[:, 2, 0], np.hypot(R[:, 2, 1], R[:, 2, 2]))
    return np.stack([phi, theta, psi], axis=-1)


@computes("B-3.21")
def euler_angles(item: Item) -> Finding:
    """Check the matrix, the angles, and the angular velocity as the derivative of the matrix.

    phi and psi of (3.25) are ill-conditioned near theta = +-90 degrees, so their errors are weighted by
    cos(theta).
    """
    triplets = angles()
    rates = rng().uniform(-1, 1, triplets.shape)
    R = matrix_from_euler(triplets, "zyx")
    found = euler_from_matrix(R, "zyx")
    cosine = np.abs(np.cos(found[:, 1]))
    weights = np.stack([cosine, np.ones_like(cosine), cosine], axis=-1)
    errors = weights * modulo_turn(printed_angles(R) - found)
    spin = np.imag(printed_matrix(triplets + 1j * STEP * rates)) / STEP @ np.swapaxes(R, -1, -2)
    omega = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=-1)
    residual = largest(
        printed_matrix(triplets) - R,
        errors[cosine > 1e-9],
        matrix_from_euler(found, "zyx") - R,
        times(euler_rate_matrix(triplets, "zyx"), rates) - omega,
    )
    return Finding(f"{len(triplets)} triplets", residual)


@computes("B-3.22")
def where_phi_is_determined(item: Item) -> Finding:
    """Count the rotations for which a condition on phi is wrong.

    phi is determined where the rates of the angles are, for det T = -cos(theta) != 0.  The rotations are
    those of a cube into itself, whose entries are exact zeros and ones, and random ones.
    """
    permutations = [np.eye(3)[list(order)] for order in itertools.permutations(range(3))]
    signs = [np.diag(signs) for signs in itertools.product((1.0, -1.0), repeat=3)]
    cube = np.array([P @ S for P in permutations for S in signs])
    R = np.concatenate([cube[np.linalg.det(cube) > 0], matrix_from_euler(angles()[:SAMPLES], "zyx")])
    T = euler_rate_matrix(euler_from_matrix(R, "zyx"), "zyx")
    determined = np.abs(np.linalg.det(T)) > 1e-12
    r11, r21 = R[:, 0, 0] != 0, R[:, 1, 0] != 0
    wrong = (float(np.sum(condition != determined)) for condition in (r11 | r21, r11 & r21))
    return Finding(f"{len(R)} rotations", *wrong)


@computes("B-3.23")
def range_of_theta(item: Item) -> Finding:
    """Apply (3.23) to theta of the right range, and to theta of the printed range."""
    phi, fraction, psi = rng().uniform(0, 1, (3, SAMPLES))
    fraction[:6] = (0.0, 1e-8, 0.25, 0.75, 1 - 1e-8, 1.0)
    errors = []
    for start in (-np.pi / 2, 0.0):
        triplets = np.stack([6 * phi - 3, start + np.pi * fraction, 6 * psi - 3], axis=-1)
        R = matrix_from_euler(triplets, "zyx")
        found = np.stack([printed_angles(R), euler_from_matrix(R, "zyx")])
        errors.append(largest(found[..., 1] - triplets[:, 1]))
    return Finding(f"{SAMPLES} rotations each", *errors)

"""Ljubljana lab manual, chapters 1 to 3: arms, kinematics and rates."""

import itertools
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tests.published.items import SAMPLES, Finding, Item, against_printed, computes, largest, rng
from tests.published.kawasaki import angles, printed_matrix
from tests.published.norrlof.jacobians import STEP, accelerated, differentiated, times, turning
from tests.published.norrlof.kinematics import modulo_turn
from twin.physics.kinematics import differential
from twin.physics.kinematics.differential import analytic_jacobian_inverse, tool_coordinates
from twin.physics.kinematics.forward import dh_from_joint_angles, forward_kinematics, jacobian
from twin.physics.robot.evaluation import uncompiled
from twin.physics.robot.loading import load
from twin.physics.robot.robot import DH, Robot, dh_poses, dh_transforms
from twin.physics.rotations import euler_from_matrix, euler_rate_matrix, matrix_from_euler
from twin.physics.trajectories.closed_loop_inverse import FeedbackLaw, error_decay, track
from twin.physics.trajectories.tool_paths import ToolMotion, through_poses

Floats = NDArray[np.float64]
AWKWARD = (0.0, 1e-8, np.pi / 2, np.pi - 1e-8, np.pi, -np.pi / 2)


@cache
def arm(name: str) -> Robot:
    """Load a robot of the manual, without compilation, since it is used little."""
    return uncompiled(load(name))


def table(robot: Robot) -> DH:
    """Return the Denavit-Hartenberg table of a robot that has one."""
    assert robot.dh is not None
    return robot.dh


def configurations(n: int) -> Floats:
    """Return joint angles (N, n): random, and at or near multiples of 90 degrees (stretched, folded)."""
    q = rng().uniform(-np.pi, np.pi, (SAMPLES, n))
    q[: SAMPLES // 4] = rng().choice(AWKWARD, (SAMPLES // 4, n))
    q[0] = 0.0
    return q


# Ljubljana lab manual, chapters 1 to 3: printed results of its kinematics, and Z-Y-X Euler angles.


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


@computes("B-ZYZ")
def sequence_of_angles(item: Item) -> Finding:
    """Compute the youBot's Euler angles by the right and by the printed sequence."""
    R = forward_kinematics(arm("youbot"), item.inputs["q"])[:3, :3]
    found = against_printed(item, euler_from_matrix(R, "zyx"))
    printed = (euler_from_matrix(R, "zyz", lower=lower) - item.expected for lower in (False, True))
    return Finding(found.computed, found.residual, min(map(largest, printed)))


@computes("B-6joints")
def number_of_joints(item: Item) -> Finding:
    """Compare the number of the youBot's joints with that of the test's angles, and with the printed one."""
    n = arm("youbot").n
    return Finding(n, float(len(item.inputs["q"]) - n), float(item.inputs["printed"] - n))


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


# Ljubljana lab manual, chapters 2 and 3: forward and inverse differential kinematics of the tool.


@computes("B-2.11")
def velocity(item: Item) -> Finding:
    """Check that J qd is the derivative of the pose, not of the velocity; least squares invert it."""
    robot = arm("youbot")
    q = configurations(robot.n)[::4]
    qd, qdd = rng().uniform(-1, 1, (2, *q.shape))
    V = times(jacobian(robot, q), qd)
    derivative = [differentiated(robot, one) @ rate for one, rate in zip(q, qd, strict=True)]
    met = times(jacobian(robot, q), differential.inverse_velocity(robot, q, V))
    V_dot = [accelerated(robot, *sample) for sample in zip(q, qd, qdd, strict=True)]
    return Finding(f"{len(q)} motions", largest(V - derivative, met - V), largest(V - V_dot))


@computes("B-xref")
def reference_velocity(item: Item) -> Finding:
    """Check (2.20) in its right reading, with the arm in the x-z plane, where five joints suffice."""
    robot, desired = arm("youbot"), np.array(item.inputs["rates"])
    q = configurations(robot.n) * [0, 1, 1, 1, 1]
    q = q[np.linalg.matrix_rank(jacobian(robot, q), tol=1e-3) == robot.n]
    qd = differential.inverse_velocity(robot, q, desired)
    return Finding(f"{len(q)} configurations", largest(times(jacobian(robot, q), qd) - desired))


def differentiated_coordinates(robot: Robot, q: Floats) -> Floats:
    """Return dx/dq (6, n) of (3.27), with the angles (3.25) by the chain rule."""
    J_A = np.empty((6, robot.n))
    for joint, direction in enumerate(np.eye(robot.n)):
        _, R, p = turning(robot, q + 1j * STEP * direction)
        r, dr = np.real(R), np.imag(R) / STEP
        J_A[:3, joint] = np.imag(p) / STEP
        J_A[3:, joint] = (
            (r[0, 0] * dr[1, 0] - r[1, 0] * dr[0, 0]) / (r[0, 0] ** 2 + r[1, 0] ** 2),
            -dr[2, 0] / np.hypot(r[2, 1], r[2, 2]),
            (r[2, 2] * dr[2, 1] - r[2, 1] * dr[2, 2]) / (r[2, 1] ** 2 + r[2, 2] ** 2),
        )
    return J_A


@computes("B-3.38")
def jacobians(item: Item) -> Finding:
    """Check J_A as the derivative of x, and J = T_A J_A.

    Near theta = +-90 degrees, where half of the youBot's samples are, J_A grows as 1 / cos(theta), and its
    condition number by the same factor again.
    """
    errors = []
    for robot in (arm("rx90"), arm("youbot")):
        q = configurations(robot.n)[SAMPLES // 2 :: 2]
        if robot.name == "youbot":  # theta = q2 + q3 + q4 for q5 = 0
            theta = np.resize([1, -1], 25) * np.pi / 2 + np.resize([0.01, 1e-4, -1e-4], 25)
            q[:25, 3:] = np.stack([theta - q[:25, 1] - q[:25, 2], 0 * theta], axis=-1)
        x = differential.tool_coordinates(robot, q)
        T_A = np.tile(np.eye(6), (len(q), 1, 1))
        T_A[:, 3:, 3:] = euler_rate_matrix(x[:, 3:], "zyx")
        J_A = differential.analytic_jacobian(robot, q)
        derivative = np.array([differentiated_coordinates(robot, one) for one in q])
        cosine = np.abs(np.cos(x[:, 4, None, None]))
        errors += [cosine * (T_A @ J_A - jacobian(robot, q)), cosine**2 * (derivative - J_A)]
    return Finding(f"{len(q)} configurations of each arm", largest(*errors))


@computes("B-3.46")
def error_dynamics(item: Item) -> Finding:
    """Check that an initial error of the RX90 decays as exp(-K t), with e_dot + K e = 0 at any time.

    For the youBot's five joints, the remainder is orthogonal to all feasible rates: J_A^T (e_dot + K e) = 0.
    """
    K, ends = np.array(item.inputs["K"]), np.array(item.inputs["q"])
    path = through_poses(forward_kinematics(arm("rx90"), ends), durations=1.0)
    law = FeedbackLaw(arm("rx90"), K)
    tracked = track(law, path, ends[0] + 0.02, 0.01, integration="runge-kutta")
    t = tracked.samples.t
    errors = [tracked.error - error_decay(tracked.error[0], K, t)]
    for robot in (arm("rx90"), arm("youbot")):
        q = configurations(robot.n)[SAMPLES // 4 :]
        q = q[np.linalg.cond(differential.analytic_jacobian(robot, q)) < 100]
        J_A, T = differential.analytic_jacobian(robot, q), forward_kinematics(robot, q + 0.05)
        twists = rng().uniform(-1, 1, (len(q), 6))
        law = FeedbackLaw(robot, K)
        x_dot = differential.coordinate_rates(differential.coordinates_from_pose(T, "zyx"), twists, "zyx")
        e_dot = x_dot - times(J_A, law.speeds(q, ToolMotion(T, twists, 0 * twists)))
        left = e_dot + K * law.error(q, T)
        errors.append(left if robot.n == 6 else times(np.swapaxes(J_A, -1, -2), left))
    return Finding(f"{len(t)} instants, {len(q)} states", largest(*errors))


# Ljubljana lab manual, chapter 4 and its home exercises on a robot whose drawing is lost.

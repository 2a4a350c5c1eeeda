"""Norrlöf's report, sections 2.2.2 and 2.3: inverse kinematics and Jacobians."""

import cmath
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from tests.published.items import Finding, Item, against_printed, computes, largest, rng
from tests.published.norrlof.kinematics import configurations, irb1400, modulo_turn, wrist_centres
from twin import dh_robot, inverse_acceleration, inverse_velocity
from twin.errors import SingularityError
from twin.kinematics.forward import jacobian, jacobian_dot, joint_from_dh_angles
from twin.kinematics.inverse import main_axis_angles, wrist_axis_angles
from twin.multibody import recursions
from twin.robot.robot import DH, Robot, dh_poses
from twin.rotations.euler_angles import matrix_from_axis_angle
from twin.rotations.linear_maps import singular_values

Floats = NDArray[np.float64]
FACING = np.array([1.0, 1.0, -1.0, -1.0])
"""Signs of the four rows of `ikin1`: 1 in front of axis 1, -1 behind it."""

SIGN = np.array([1.0, -1.0])
"""Signs of theta_5 in both rows of `ikin2`."""


class Arm(NamedTuple):
    """Wrist centres and the library's four solutions for each, NaN for none.

    Attributes:
        p: wrist centres (N, 3).
        theta: DH angles (N, 4, 3).
        t2: angle theta_2 of Figure 2.8 (N, 4).
        t3: angle theta_3 of Figure 2.8 (N, 4).
        r: horizontal distance (N, 4) of the wrist centre from axis 2, in the plane of the arm.
        z: height (N, 4) of the wrist centre above axis 2.
    """

    p: Floats
    theta: Floats
    t2: Floats
    t3: Floats
    r: Floats
    z: Floats


def arms() -> tuple[Arm, Floats, Floats]:
    """Solve the wrist centres of all configurations; return them with the arm lengths a2 and b3."""
    robot, dh = irb1400()
    p = wrist_centres(configurations())
    theta = main_axis_angles(robot, p)
    t2, t3 = FACING * (theta[..., 1] + np.pi / 2), FACING * (theta[..., 2] + np.arctan2(dh.d[3], dh.a[2]))
    r = np.hypot(p[:, 0], p[:, 1])[:, None] - FACING * dh.a[0]
    z = np.broadcast_to(p[:, 2:] - dh.d[0], r.shape)
    return Arm(p, theta, t2, t3, r, z), dh.a[1], np.hypot(dh.a[2], dh.d[3])


def by_the_report(p: Floats) -> Floats:
    """Compute DH angles (N, 4, 3) of wrist centres (N, 3) by (2.31)-(2.40), reading (2.34) correctly."""
    _, dh = irb1400()
    a2, b3 = dh.a[1], np.hypot(dh.a[2], dh.d[3])
    r, z = np.hypot(p[:, 0], p[:, 1])[:, None] - FACING * dh.a[0], p[:, 2:] - dh.d[0]
    D = (r**2 + z**2 - a2**2 - b3**2) / (2 * a2 * b3)
    D = np.where(np.abs(D) < 1 + 1e-12, np.clip(D, -1, 1), np.nan)
    t3 = np.array([1, -1, 1, -1]) * np.arccos(D)
    t2 = np.arctan2(r, z) - np.arctan2(b3 * np.sin(t3), a2 + b3 * np.cos(t3))
    theta_1 = np.arctan2(FACING * p[:, 1:2], FACING * p[:, :1])
    theta_3 = FACING * t3 - np.arctan2(dh.d[3], dh.a[2])
    return np.stack([theta_1, FACING * t2 - np.pi / 2, theta_3], axis=-1)


def wrongly_lost(arm: Arm) -> int:
    """Count the solutions whose existence differs from that by (2.31)."""
    _, dh = irb1400()
    a2, b3 = dh.a[1], np.hypot(dh.a[2], dh.d[3])
    D = (arm.r**2 + arm.z**2 - a2**2 - b3**2) / (2 * a2 * b3)
    missing = np.any(np.isnan(arm.theta), axis=-1)
    return int(np.sum(missing != (np.abs(D) > 1 + 1e-12)))


def reached(*differences: np.ndarray | int) -> float:
    """Return the largest magnitude over all existing solutions, without NaN rows, which are out of reach."""
    return float(np.max([np.nanmax(np.abs(difference)) for difference in differences]))


@computes("N-ikin1")
def example_1(item: Item) -> Finding:
    """Compute all four solutions."""
    robot, _ = irb1400()
    return against_printed(item, main_axis_angles(robot, item.inputs["p_wrist"]))


@computes("N-ikin1-exact")
def example_1_exactly(item: Item) -> Finding:
    """Compute all four solutions of a wrist centre that rounds to the printed one, and their positions."""
    robot, _ = irb1400()
    p = np.array(item.inputs["p_wrist"])
    found = against_printed(item, main_axis_angles(robot, p))
    met = wrist_centres(np.column_stack([found.computed, np.zeros((4, 3))])) - p
    return Finding(found.computed, largest(found.residual, p - item.inputs["printed_p_wrist"], met))


@computes("N-ikin2")
def example_2(item: Item) -> Finding:
    """Compute both solutions for the rotation nearest to the product of the rounded, printed matrices."""
    robot, _ = irb1400()
    product = np.transpose(item.inputs["R03"]) @ item.inputs["R"]
    theta, s = wrist_axis_angles(robot, Rotation.from_matrix(product).as_matrix())
    return against_printed(item, np.column_stack([theta, s]))


@computes("N-ikin2-exact")
def example_2_exactly(item: Item) -> Finding:
    """Compute both solutions of a pose that rounds to the printed one; the library solves for frame 3."""
    robot, dh = irb1400()
    R = np.array(item.inputs["R"])
    theta = np.append(main_axis_angles(robot, item.inputs["p_wrist"])[0], np.zeros(3))
    angles, s = wrist_axis_angles(robot, dh_poses(dh, theta)[2, :3, :3].T @ R)
    found = against_printed(item, np.column_stack([angles, s]))
    return Finding(found.computed, largest(found.residual, R - item.inputs["printed_R"]))


@computes("N-2.29")
def axis_1(item: Item) -> Finding:
    """Compare the first theta_1; its error times the distance from axis 1 is a position error."""
    arm, _, _ = arms()
    error = modulo_turn(arm.theta[:, :2, 0] - np.arctan2(arm.p[:, 1], arm.p[:, 0])[:, None])
    radius = np.hypot(arm.p[:, 0], arm.p[:, 1])[:, None]
    return Finding(f"{len(arm.p)} wrist centres", reached(error * radius, wrongly_lost(arm)))


@computes("N-2.29b")
def axis_1_behind(item: Item) -> Finding:
    """Compare the second theta_1; its error times the distance from axis 1 is a position error."""
    arm, _, _ = arms()
    x, y, radius = arm.p[:, :1], arm.p[:, 1:2], np.hypot(arm.p[:, :1], arm.p[:, 1:2])
    behind = arm.theta[:, 2:, 0]
    right, same, printed = np.arctan2(y, x) + np.pi, np.arctan2(-y, -x), np.arctan2(x, y) + np.pi
    off, also_off, missed = (modulo_turn(behind - angle) * radius for angle in (right, same, printed))
    return Finding(f"{len(arm.p)} wrist centres", reached(off, also_off, wrongly_lost(arm)), reached(missed))


@computes("N-2.30")
def wrist_centre_from_axis_2(item: Item) -> Finding:
    """Compute the wrist centre relative to the origin of frame 1, which lies on axis 2."""
    _, dh = irb1400()
    theta = configurations()
    frame_1, p, offset = dh_poses(dh, theta)[:, 0], wrist_centres(theta), np.array([dh.a[0], 0.0, dh.d[0]])
    expected = p - frame_1[:, :3, 3]
    right = p - matrix_from_axis_angle([0.0, 0.0, 1.0], theta[:, 0]) @ offset
    printed = p - frame_1[:, :3, :3] @ offset
    return Finding(f"{len(p)} wrist centres", reached(right - expected), reached(printed - expected))


@computes("N-2.31")
def elbow(item: Item) -> Finding:
    """Compare the cosine of the elbow angle in every solution, and check both signs of (2.33)."""
    arm, a2, b3 = arms()
    c_squared = arm.r**2 + arm.z**2
    D = (c_squared - a2**2 - b3**2) / (2 * a2 * b3)
    law = (a2**2 + b3**2 - c_squared) / (2 * a2 * b3) - np.cos(np.pi - arm.t3)
    signs = np.sin(arm.t3[:, ::2]) + np.sin(arm.t3[:, 1::2])
    return Finding(f"{len(arm.p)} wrist centres", reached(np.cos(arm.t3) - D, law, signs, wrongly_lost(arm)))


@computes("N-2.34")
def axis_2(item: Item) -> Finding:
    """Compare theta_2 in every solution; the literal readings use base coordinates or a plain arctan."""
    arm, a2, b3 = arms()
    across, along = b3 * np.sin(arm.t3), a2 + b3 * np.cos(arm.t3)
    right = np.arctan2(arm.r, arm.z) - np.arctan2(across, along)
    with np.errstate(divide="ignore", invalid="ignore"):  # on axis 1
        of_base = np.arctan(arm.p[:, :1] / arm.p[:, 1:2]) - np.arctan(across / along)
        of_plane = np.arctan(arm.r / arm.z) - np.arctan(across / along)
    literal = min(reached(modulo_turn(arm.t2 - of_base)), reached(modulo_turn(arm.t2 - of_plane)))
    residual = reached(modulo_turn(arm.t2 - right), wrongly_lost(arm))
    return Finding(f"{len(arm.p)} wrist centres", residual, literal)


@computes("N-2.36", "N-2.38")
def against_the_report(item: Item) -> Finding:
    """Check two of the report's four solutions by their positions and against those of the library.

    (2.35)-(2.37) give those in front of axis 1, (2.38)-(2.40) those behind.
    """
    rows = {"N-2.36": slice(0, 2), "N-2.38": slice(2, 4)}[item.id]
    arm, _, _ = arms()
    theta = by_the_report(arm.p)[:, rows]
    lost = np.isnan(theta[..., 2])
    reach = np.sum(lost != np.isnan(arm.theta[:, rows, 2]))
    wrist = np.concatenate([theta, np.zeros_like(theta)], axis=-1)
    met = wrist_centres(np.where(lost[..., None], 0.0, wrist)) - arm.p[:, None]
    # Near 1 and -1, arccos loses digits of theta_3 and theta_2 in proportion to 1 / sin(elbow angle).
    errors = modulo_turn(theta - arm.theta[:, rows])[..., 1:] * np.sin(arm.t3[:, rows, None])
    residual = reached(np.where(lost[..., None], 0.0, met), errors, reach, wrongly_lost(arm))
    return Finding(f"{np.sum(~lost)} solutions", residual)


def wrists(theta: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return R36 (N, 3, 3) at DH angles (N, 6), its solutions (N, 2, 3), and their flags s (N, 2)."""
    robot, dh = irb1400()
    T = dh_poses(dh, theta)
    U = T[:, 2, :3, :3].swapaxes(1, 2) @ T[:, 5, :3, :3]
    return U, *wrist_axis_angles(robot, U)


@computes("N-2.47")
def axes_5_and_6(item: Item) -> Finding:
    """Compare the cosine of theta_5, and theta_6 with errors weighted by sin(theta_5)."""
    U, theta, _ = wrists(configurations())
    u31, u32, u33 = (U[:, 2, i, None] for i in range(3))
    theta_6 = np.arctan2(-SIGN * u32, SIGN * u31)
    errors = modulo_turn(theta[..., 2] - theta_6) * np.sin(theta[..., 1])
    signs = modulo_turn(theta[:, 0, 1] + theta[:, 1, 1])
    return Finding(f"{len(U)} orientations", largest(np.cos(theta[..., 1]) - u33, signs, errors))


@computes("N-2.48")
def axis_4(item: Item) -> Finding:
    """Compare theta_4 with errors weighted by sin(theta_5); the printed first line has u11 for u13."""
    U, theta, _ = wrists(configurations())
    u11, u13, u23 = U[:, 0, 0, None], U[:, 0, 2, None], U[:, 1, 2, None]
    size = np.sin(theta[..., 1])
    right, printed = np.arctan2(-SIGN * u23, -SIGN * u13), np.arctan2(-SIGN * u23, -SIGN * u11)
    errors = (largest(modulo_turn(theta[..., 0] - angle) * size) for angle in (right, printed))
    return Finding(f"{len(U)} orientations", *errors)


@computes("N-2.50")
def singular_wrist(item: Item) -> Finding:
    """Compare theta_4 + s theta_6 for theta_5 = 0 and theta_5 = pi."""
    drawn = configurations()
    drawn[:, 4] = np.resize([0.0, np.pi, -np.pi], len(drawn))
    U, theta, s = wrists(drawn)
    theta, s = theta[:, 0], s[:, 0]
    together = theta[:, 0] + s * theta[:, 2]
    right, printed = np.arctan2(s * U[:, 1, 0], s * U[:, 0, 0]), np.arccos(np.clip(s * U[:, 0, 0], -1, 1))
    residual = largest(modulo_turn(together - right), s - np.sign(np.cos(theta[:, 1])))
    return Finding(f"{len(U)} singular wrists", residual, largest(modulo_turn(together - printed)))


# Velocities and accelerations in Norrlöf's report: section 2.3.
#
# Derivatives of the library's forward kinematics are computed by a complex step, `df = Im f(x + i h dx) / h`
# with h = 1e-30.  They are exact to round-off, since nothing is subtracted.


Floats = NDArray[np.float64]
STEP = 1e-30
FLANGE = np.eye(4).tolist()


def turning(robot: Robot, q: NDArray) -> tuple[recursions.WorldFrames, Any, recursions.Vector]:
    """Return the frames of all links, and the flange's rotation and position; q may be complex."""
    functions = cmath if np.iscomplexobj(q) else math
    at = recursions.placements(robot.tree, robot.tree_positions(q).tolist(), functions)
    frames = recursions.world_frames(robot.tree, at)
    return frames, *recursions.tool_frame(robot.tree, frames, FLANGE)


def differentiated(robot: Robot, q: Floats) -> Floats:
    """Return the Jacobian (6, n) as the derivative of the flange's position and orientation."""
    J = np.empty((6, robot.n))
    for joint, direction in enumerate(np.eye(robot.n)):
        _, R, p = turning(robot, q + 1j * STEP * direction)
        S = np.imag(R) / STEP @ np.real(R).T
        J[:, joint] = *(np.imag(p) / STEP), S[2, 1], S[0, 2], S[1, 0]
    return J


def by_columns(T: Floats) -> Floats:
    """Return the Jacobian (..., 6, n) of DH angles by (2.54), (2.63), (2.64) from DH poses (..., n, 4, 4)."""
    base = np.broadcast_to(np.eye(4), (*T.shape[:-3], 1, 4, 4))
    before = np.concatenate([base, T[..., :-1, :, :]], axis=-3)
    z, arm = before[..., :3, 2], T[..., -1:, :3, 3] - before[..., :3, 3]
    return np.concatenate([np.cross(z, arm), z], axis=-1).swapaxes(-1, -2)


@computes("N-Jv", "N-Jw", "N-jacob0")
def zero_pose_jacobian(item: Item) -> Finding:
    """Compute the linear, the angular or all rows at q = 0, for DH angles, by both methods of the report."""
    robot, dh = irb1400()
    rows = {"N-Jv": slice(0, 3), "N-Jw": slice(3, 6), "N-jacob0": slice(0, 6)}[item.id]
    J = jacobian(robot, np.zeros(6)) @ np.linalg.inv(robot.dh_coupling)
    found = against_printed(item, J[rows])
    by_loop = by_columns(dh_poses(dh, dh.theta0))[rows]
    return Finding(found.computed, largest(found.residual, by_loop - item.expected))


@computes("N-2.51")
def columns(item: Item) -> Finding:
    """Compare the printed columns and the derivative of the pose with the library's Jacobian."""
    robot, dh = irb1400()
    theta = configurations()[::5]
    q = joint_from_dh_angles(robot, theta)
    J = jacobian(robot, q)
    derivative = np.array([differentiated(robot, one) for one in q])
    printed = by_columns(dh_poses(dh, theta)) @ robot.dh_coupling
    return Finding(f"{len(q)} configurations", largest(printed - J, derivative - J))


@computes("N-2.58")
def prismatic_columns(item: Item) -> Finding:
    """Compare the library's columns, the printed ones and the derivative for arms with prismatic joints."""
    random, kinds = rng(), item.inputs["kinds"]
    prismatic = [i for i, kind in enumerate(kinds) if kind == "prismatic"]
    errors = []
    for table in random.uniform(-1, 1, (30, 4, len(kinds))):
        dh = DH(*table * [[np.pi], [1], [1], [np.pi]])
        robot = dh_robot("random", dh, kinds=kinds)
        q = random.uniform(-np.pi, np.pi, len(kinds))
        frames, _, p = turning(robot, q)
        J = np.array(recursions.jacobian(robot.tree, frames, p)).reshape(-1, 6).T
        slid = dh._replace(d=dh.d + np.where(robot.dh_coupling.diagonal() == 0, q, 0))
        frames = np.concatenate([np.eye(4)[None], dh_poses(slid, robot.dh_coupling @ q + dh.theta0)])
        z = frames[prismatic, :3, 2]
        errors += [J - differentiated(robot, q), J[:, prismatic] - np.column_stack([z, 0 * z]).T]
    return Finding("30 arms", largest(*errors))


@computes("N-2.67")
def inverse_motion(item: Item) -> Finding:
    """Check accelerations against the pose's second derivative, their inverse, and the rank test."""
    robot, _ = irb1400()
    q = joint_from_dh_angles(robot, configurations()[::5])
    qd, qdd = rng().uniform(-1, 1, (2, *q.shape))
    J, J_dot = jacobian(robot, q), jacobian_dot(robot, q, qd)
    V, A = times(J, qd), times(J, qdd) + times(J_dot, qd)
    derivative = np.array([accelerated(robot, *sample) for sample in zip(q, qd, qdd, strict=True)])
    velocity_met = times(J, inverse_velocity(robot, q, V)) - V
    acceleration_met = times(J, inverse_acceleration(robot, q, qd, A)) + times(J_dot, qd) - A
    wrong, singular = rank_test(robot)
    residual = largest(derivative - A, velocity_met, acceleration_met, wrong)
    return Finding(f"{len(q)} motions, {singular} singular configurations", residual)


def times(matrices: Floats, vectors: Floats) -> Floats:
    """Return the products of matrices (..., m, n) and vectors (..., n)."""
    return np.einsum("...ij,...j->...i", matrices, vectors)


def accelerated(robot: Robot, q: Floats, qd: Floats, qdd: Floats) -> Floats:
    """Return the derivative (6,) of `J qd` along a motion."""
    frames, _, p = turning(robot, q + 1j * STEP * qd)
    J = np.array(recursions.jacobian(robot.tree, frames, p)).reshape(-1, 6).T
    return np.imag(J @ robot.embedding @ (qd + 1j * STEP * qdd)) / STEP


def rank_test(robot: Robot) -> tuple[int, int]:
    """Return how often the library contradicts `rank J = rank [J x]` for J qd = x, and the number of J.

    All these Jacobians are singular.
    """
    theta = configurations()
    theta = theta[singular_values(jacobian(robot, joint_from_dh_angles(robot, theta))).rank < 6]
    wrong = 0
    for q in joint_from_dh_angles(robot, theta):
        outputs, _, _, rank = singular_values(J := jacobian(robot, q))
        for x in (J @ rng().uniform(-1, 1, 6), outputs[:, -1]):
            same = singular_values(np.column_stack([J, x])).rank == rank
            try:
                inverse_velocity(robot, q, x)
                wrong += not same
            except SingularityError:
                wrong += bool(same)
        wrong += bool(same)  # no motion gives the last x
    return wrong, len(theta)

"""Forward kinematics and orientations of the IRB 1400 in Norrlöf's report: sections 2.2.1 and 2.2.2."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.published.items import SAMPLES, Finding, Item, against_printed, computes, largest, rng
from twin.physics.kinematics.forward import (
    dh_from_joint_angles,
    forward_kinematics,
    jacobian,
    joint_from_dh_angles,
)
from twin.physics.kinematics.inverse import main_axis_angles
from twin.physics.robot.loading import load
from twin.physics.robot.robot import DH, Robot, dh_poses, dh_transforms
from twin.physics.rotations.rotations import matrix_from_quaternion, quaternion_from_matrix

NEAR = (0.0, 1e-8, -1e-8)


@lru_cache(maxsize=1)
def irb1400() -> tuple[Robot, DH]:
    """Return the robot of the report and its Denavit-Hartenberg table."""
    robot = load("irb1400")
    assert robot.dh is not None
    return robot, robot.dh


def rotations() -> NDArray[np.float64]:
    """Return unit quaternions (N, 4): random, and rotations by 0 and pi (exact, or off by 1e-8)."""
    random = rng()
    free = random.normal(size=(SAMPLES, 4))
    axes = np.concatenate([np.eye(3), -np.eye(3), random.normal(size=(20, 3)), random.normal(size=(20, 3))])
    axes[26:, 0] = 0.0  # in a coordinate plane
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    half = np.array([(turn + d) / 2 for turn in (0.0, np.pi) for d in NEAR])[:, None]
    awkward = np.concatenate(
        [np.repeat(np.cos(half), len(axes), axis=1)[..., None], np.sin(half)[..., None] * axes], axis=-1
    )
    return np.concatenate([free / np.linalg.norm(free, axis=1, keepdims=True), awkward.reshape(-1, 4)])


def configurations() -> NDArray[np.float64]:
    """Return DH angles (N, 6) of the IRB 1400: random, and singular in wrist, elbow and shoulder.

    Joint limits are ignored.
    """
    _, dh = irb1400()
    theta = rng().uniform(-np.pi, np.pi, (SAMPLES + 36, 6))
    wrist, elbow, shoulder = np.split(theta[SAMPLES:], 3)
    beside, turned = np.tile(NEAR, 4), np.repeat([0.0, np.pi], 6)
    gamma, b3 = np.arctan2(dh.d[3], dh.a[2]), np.hypot(dh.a[2], dh.d[3])
    wrist[:, 4] = turned + beside
    elbow[:, 2] = turned + beside - gamma  # stretched, and folded
    # The wrist centre, along and across the lower arm from axis 2, is rotated onto axis 1.
    bend = shoulder[:, 2] / 2
    shoulder[:, 2] = bend - gamma
    along, across = dh.a[1] + b3 * np.cos(bend), b3 * np.sin(bend)
    lean = np.arcsin(-dh.a[0] / np.hypot(along, across)) - np.arctan2(across, along)
    shoulder[:, 1] = lean + beside - np.pi / 2
    return theta


def modulo_turn(difference: Any) -> NDArray[np.float64]:
    """Reduce differences of angles to [-pi, pi] by full turns."""
    difference = np.asarray(difference, dtype=float)
    return difference - 2 * np.pi * np.round(difference / (2 * np.pi))


def wrist_centres(theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the common origin (..., 3) of frames 4 and 5 of the IRB 1400, in the base frame, in [m]."""
    return dh_poses(irb1400()[1], theta)[..., 3, :3, 3]


# Forward kinematics and orientations of the IRB 1400 in Norrlöf's report: sections 2.2.1 and 2.2.2.


Floats = NDArray[np.float64]


def matrix(rows: list[list]) -> Floats:
    """Stack entries, which are numbers or arrays of samples, into matrices (..., m, n)."""
    flat = np.broadcast_arrays(*(entry for row in rows for entry in row))
    return np.stack(flat, axis=-1).reshape(*flat[0].shape, len(rows), len(rows[0]))


def orientations() -> tuple[Floats, Floats, Floats]:
    """Return DH angles (N, 6) of the IRB 1400, and its R03 and R06 (N, 3, 3)."""
    theta = configurations()
    T = dh_poses(irb1400()[1], theta)
    return theta, T[:, 2, :3, :3], T[:, 5, :3, :3]


@computes("N-2.23")
def elementary_transforms(item: Item) -> Finding:
    """Compare the product of the four printed transforms with the library's rows, also for right angles."""
    random = rng()
    theta, alpha, d, a = random.uniform(-np.pi, np.pi, (4, SAMPLES))
    alpha[::2] = random.choice([-np.pi / 2, 0, np.pi / 2, np.pi], SAMPLES // 2)
    c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    printed = (
        matrix([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
        @ matrix([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, d], [0, 0, 0, 1]])
        @ matrix([[1, 0, 0, a], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
        @ matrix([[1, 0, 0, 0], [0, ca, -sa, 0], [0, sa, ca, 0], [0, 0, 0, 1]])
    )
    A = dh_transforms(DH(0 * theta, d, a, alpha), theta)
    return Finding(f"{SAMPLES} rows", largest(A - printed))


@computes("N-T2.1")
def zero_pose(item: Item) -> Finding:
    """Compute the flange at q = 0 by the robot's tree, and by the printed table at the angles (2.24)."""
    robot, dh = irb1400()
    printed = DH(*(np.array(item.inputs[column]) for column in ("theta0", "d", "a", "alpha")))
    flange = against_printed(item, forward_kinematics(robot, np.zeros(6)))
    table = largest(dh_poses(printed, printed.theta0)[-1] - item.expected, np.array(dh) - np.array(printed))
    return Finding(flange.computed, largest(flange.residual, table))


@computes("N-step3")
def origins_on_parallel_axes(item: Item) -> Finding:
    """Compute how far the frames' origins, and joints i, are from axes z_i that are parallel to z_(i-1)."""
    robot, dh = irb1400()
    T = np.concatenate(
        [np.tile(np.eye(4), (SAMPLES, 1, 1, 1)), dh_poses(dh, configurations()[:SAMPLES])], axis=1
    )
    # The axes of joints i + 1, from the robot's Jacobian: z, and (z x (p - o)) for a point o on the axis.
    J = jacobian(robot, joint_from_dh_angles(robot, configurations()[:SAMPLES]))
    flange, right, printed = T[:, -1, :3, 3], [], []
    for i in np.flatnonzero(np.abs(np.sin(dh.alpha[:-1])) < 1e-9) + 1:
        z = J[:, 3:, i]
        for errors, origin in ((right, T[:, i, :3, 3]), (printed, T[:, i - 1, :3, 3])):
            errors.append(np.cross(z, flange - origin) - J[:, :3, i])
    return Finding("axes 2 and 3 of the IRB 1400", largest(*right), largest(*printed))


@computes("N-plane")
def plane_of_the_robot(item: Item) -> Finding:
    """Compute the distances of the frames' origins at the zero pose from the planes x0-z0 and y0-z0."""
    robot, dh = irb1400()
    origins = dh_poses(dh, dh_from_joint_angles(robot, np.zeros(6)))[:, :3, 3]
    return Finding(np.max(np.abs(origins), axis=0), largest(origins[:, 1]), largest(origins[:, 0]))


@computes("N-tr2q")
def zero_pose_quaternion(item: Item) -> Finding:
    """Compute the orientation of the flange at q = 0."""
    robot, _ = irb1400()
    return against_printed(item, quaternion_from_matrix(forward_kinematics(robot, np.zeros(6))[:3, :3]))


@computes("N-2.25")
def coupling(item: Item) -> Finding:
    """Compare the printed coupling with the library's; motor 2 must not change the upper arm's slope."""
    robot, dh = irb1400()
    q = rng().uniform(-np.pi, np.pi, (SAMPLES, 6))
    theta = dh_from_joint_angles(robot, q)
    printed = q @ np.array(item.inputs["M"]).T + item.inputs["theta0"]
    moved = q.copy()
    moved[:, 1] = rng().uniform(-np.pi, np.pi, SAMPLES)
    height = dh_poses(dh, [theta, dh_from_joint_angles(robot, moved)])[:, :, 2, 2, 0]  # of x3, along z0
    residual = largest(theta - printed, joint_from_dh_angles(robot, theta) - q, height[1] - height[0])
    return Finding(f"{SAMPLES} joint angles", residual)


@computes("N-2.28")
def wrist_centre(item: Item) -> Finding:
    """Compare the point d6 behind the flange with the origins of frames 4 and 5, for any wrist angles."""
    robot, dh = irb1400()
    theta = configurations()
    T = forward_kinematics(robot, joint_from_dh_angles(robot, theta))
    printed = T[:, :3, 3] - dh.d[5] * T[:, :3, 2]
    other_wrist = np.column_stack([theta[:, :3], theta[::-1, 3:]])
    frame_5 = dh_poses(dh, theta)[:, 4, :3, 3]
    found = np.array([wrist_centres(theta), wrist_centres(other_wrist), frame_5])
    return Finding(f"{len(theta)} poses", largest(found - printed))


@computes("N-2.42")
def orientation_of_frame_3(item: Item) -> Finding:
    """Compare the closed form with the library's frame 3."""
    theta, R_03, _ = orientations()
    (c1, c2, c3), (s1, s2, s3) = np.cos(theta[:, :3].T), np.sin(theta[:, :3].T)
    c23, s23 = np.cos(theta[:, 1] + theta[:, 2]), np.sin(theta[:, 1] + theta[:, 2])
    factors = (
        matrix([[c1, 0, -s1], [s1, 0, c1], [0, -1, 0]])
        @ matrix([[c2, -s2, 0], [s2, c2, 0], [0, 0, 1]])
        @ matrix([[c3, 0, -s3], [s3, 0, c3], [0, -1, 0]])
    )
    printed = matrix([[c1 * c23, s1, -c1 * s23], [s1 * c23, -c1, -s1 * s23], [-s23, 0, -c23]])
    return Finding(f"{len(theta)} configurations", largest(R_03 - printed, R_03 - factors))


@computes("N-2.44")
def orientation_of_the_wrist(item: Item) -> Finding:
    """Compare the closed form with R03' R06 of the library's frames (2.43)."""
    theta, R_03, R_06 = orientations()
    (c4, c5, c6), (s4, s5, s6) = np.cos(theta[:, 3:].T), np.sin(theta[:, 3:].T)
    printed = matrix(
        [
            [c4 * c5 * c6 - s4 * s6, -c4 * c5 * s6 - s4 * c6, -c4 * s5],
            [s4 * c5 * c6 + c4 * s6, -s4 * c5 * s6 + c4 * c6, -s4 * s5],
            [s5 * c6, -s5 * s6, c5],
        ]
    )
    return Finding(f"{len(theta)} configurations", largest(R_03.swapaxes(1, 2) @ R_06 - printed))


@computes("N-2.46")
def orientation_left_to_the_wrist(item: Item) -> Finding:
    """Compare the nine printed entries of U, for any R06, with R03' R06 and the library's frame 3."""
    theta, R_03, _ = orientations()
    R_06 = matrix_from_quaternion(rotations()[: len(theta)])
    c1, s1 = np.cos(theta[:, 0]), np.sin(theta[:, 0])
    c23, s23 = np.cos(theta[:, 1] + theta[:, 2]), np.sin(theta[:, 1] + theta[:, 2])
    columns = [R_06[:, :, i].T for i in range(3)]
    printed = matrix(
        [
            [c1 * c23 * r1 + s1 * c23 * r2 - s23 * r3 for r1, r2, r3 in columns],
            [-c1 * r2 + s1 * r1 for r1, r2, _ in columns],
            [-c23 * r3 - c1 * s23 * r1 - s1 * s23 * r2 for r1, r2, r3 in columns],
        ]
    )
    return Finding(f"{len(theta)} orientations", largest(R_03.swapaxes(1, 2) @ R_06 - printed))


@computes("N-R03")
def example_2_frame_3(item: Item) -> Finding:
    """Compute frame 3 of the library's first solution for the wrist centre."""
    robot, dh = irb1400()
    theta = np.append(main_axis_angles(robot, item.inputs["p_wrist"])[0], np.zeros(3))
    return against_printed(item, dh_poses(dh, theta)[2, :3, :3])


# Rotations and quaternions of Norrlöf's report: section 2.1.


Floats = NDArray[np.float64]

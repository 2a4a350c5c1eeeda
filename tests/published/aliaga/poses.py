"""Aliaga 2019: Denavit-Hartenberg matrices, quaternions of rotation matrices, and the three test poses."""

from __future__ import annotations

import numpy as np

import twin
from scenarios.checks.motion_range import random_positions
from tests.published.items import SAMPLES, Finding, Item, against_printed, computes, largest, rng
from twin.robot.robot import DH, Robot, dh_poses, dh_transforms
from twin.rotations.euler_angles import matrix_from_axis_angle
from twin.rotations.quaternions import quaternion_from_polar
from twin.rotations.rotations import matrix_from_quaternion, pose_matrix, pose_vector, quaternion_from_matrix

X, Z = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])


def dh_matrix(theta, d, a, alpha) -> np.ndarray:
    """(2.3) as it is printed, (..., 4, 4); the angles may be complex."""
    c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    entries = [
        *(c, -ca * s, sa * s, a * c),
        *(s, ca * c, -sa * c, a * s),
        *(0.0, sa, ca, d),
        *(0.0, 0.0, 0.0, 1.0),
    ]
    stacked = np.stack(np.broadcast_arrays(*entries), axis=-1)
    return stacked.reshape(*stacked.shape[:-1], 4, 4)


def configurations(robot: Robot) -> np.ndarray:
    """Joint angles (N, 6): random ones, and of the IRB 140 the awkward ones.

    These are wrist, elbow and shoulder singularities, the flange turned by nothing and by half a turn, and
    what lies 1e-8 rad beside them.
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
    """Unit quaternions (N, 4), a >= 0: random ones, and turns by 0 and pi, exactly and nearly."""
    quats = rng().normal(size=(SAMPLES, 4))
    axes = np.concatenate([rng().normal(size=(20, 3)), np.eye(3), -np.eye(3), [[1, 1, 0], [0, -1, 1]]])
    axes /= np.linalg.norm(axes, axis=-1, keepdims=True)
    halves = np.array([0.0, 1e-8, np.pi / 2 - 1e-8, np.pi / 2])  # of the angles
    special = quaternion_from_polar(1.0, axes[:, None], halves).reshape(-1, 4)
    quats = np.concatenate([quats / np.linalg.norm(quats, axis=-1, keepdims=True), special])
    return np.where(quats[:, :1] < 0, -quats, quats)


@computes("T-2.3")
def dh_row(item: Item) -> Finding:
    """The four moves of (2.1), turned by the library's rotation about an axis; and the library's rows."""
    theta, alpha, d, a = rng().uniform(-4, 4, (4, SAMPLES))
    corners = np.arange(-4, 5) * np.pi / 2
    theta, alpha = np.append(theta, corners), np.append(alpha, corners[::-1])
    d, a = np.append(d, 0 * corners), np.append(a, 1 + corners)

    def turned(axis, angle):
        T = np.tile(np.eye(4), (len(angle), 1, 1))
        T[:, :3, :3] = matrix_from_axis_angle(axis, angle)
        return T

    def shifted(axis, length):
        T = np.tile(np.eye(4), (len(length), 1, 1))
        T[:, :3, 3] = np.outer(length, axis)
        return T

    product = turned(Z, theta) @ shifted(Z, d) @ shifted(X, a) @ turned(X, alpha)
    printed = dh_matrix(theta, d, a, alpha)
    library = dh_transforms(DH(0 * theta, d, a, alpha), theta)
    return Finding(f"{len(theta)} rows", largest(printed - product, library - printed))


@computes("T-2.4")
def dh_product(item: Item) -> Finding:
    """The last frame of the table against forward kinematics over the URDF, of both robots."""
    differences, count = [], 0
    for name in ("irb140", "irb1400"):
        robot = twin.load(name)
        q = configurations(robot)
        assert robot.dh is not None
        last = dh_poses(robot.dh, twin.kinematics.dh_from_joint_angles(robot, q))[..., -1, :, :]
        differences.append(last - twin.forward_kinematics(robot, q))
        count += len(q)
    return Finding(f"{count} poses of two robots", largest(*differences))


def printed_quaternions(R: np.ndarray) -> np.ndarray:
    """(2.8)-(2.11) as they are printed, with eta = 0: (..., 4), square roots alone."""
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
    """The printed magnitudes and the library's against the quaternions that the matrices were made of."""
    quats = quaternions()
    R = matrix_from_quaternion(quats)
    library = np.abs(quaternion_from_matrix(R))
    residual = largest(library - np.abs(quats), printed_quaternions(R) - library)
    return Finding(f"{len(quats)} rotations", residual)


@computes("T-2.8s")
def signs(item: Item) -> Finding:
    """The quaternion must give the matrix back; of the printed form, the matrix of test pose 2."""
    robot = twin.load("irb140")
    R_test = twin.forward_kinematics(robot, robot.poses["test_2"])[:3, :3]
    quat = quaternion_from_matrix(R_test)
    R = np.concatenate([matrix_from_quaternion(quaternions()), R_test[None]])
    rebuilt = matrix_from_quaternion(quaternion_from_matrix(R)) - R
    unsigned = matrix_from_quaternion(printed_quaternions(R_test)) - R_test
    return Finding(quat, largest(quat - np.array(item.expected), rebuilt), largest(unsigned))


@computes("T-FK1", "T-FK2", "T-FK3")
def test_pose(item: Item) -> Finding:
    """The pose vector of the flange at the joint angles of a test."""
    robot = twin.load("irb140")
    pose = twin.forward_kinematics(robot, robot.poses[item.inputs["pose"]])
    return against_printed(item, pose_vector(pose))


@computes("T-IK1", "T-IK2", "T-IK3")
def test_solution(item: Item) -> Finding:
    """Of the eight solutions for the pose of a test, the one nearest to the printed angles, in degrees."""
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
    """How far the wrist centre comes from axis 1, in [mm]: nowhere further than at full stretch."""
    robot = twin.load("irb140")
    assert robot.dh is not None
    to_wrist = np.eye(4)
    to_wrist[2, 3] = -robot.dh.d[5]
    stretched = np.deg2rad([0.0, 90.0, -90.0, 0.0, 0.0, 0.0])
    q = np.concatenate([stretched[None], configurations(robot)])
    wrist = twin.forward_kinematics(robot, q, to_wrist)[:, :2, 3]
    return against_printed(item, 1e3 * np.max(np.linalg.norm(wrist, axis=-1)))

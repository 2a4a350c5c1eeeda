"""The kinematics of Norrlöf 1999, sections 2.2 and 2.3, on the IRB 1400: every printed digit, every identity.

The report prints four decimals. Its equations are in DH angles theta = S q + theta0. Its misprints are in
test_norrlof_kinematic_misprints.py.
"""

import math

import numpy as np
import pytest

import twin
from tests.support.dh_arms import dh_frames, random_poses_of
from twin.kinematics import dh_from_joint_angles, joint_from_dh_angles, main_axis_angles, wrist_axis_angles
from twin.multibody import recursions
from twin.rotations.rotations import quaternion_from_matrix

DIGITS = 5e-5
"""Half a unit of the last of four printed decimals."""

ZERO_POSE = [[0, 0, 1, 0.955], [0, 1, 0, 0], [-1, 0, 0, 1.195], [0, 0, 0, 1]]
JV = [[0, 0.72, 0.12, 0, 0, 0], [0.955, 0, 0, 0, 0, 0], [0, -0.805, -0.805, 0, -0.085, 0]]
JW = [[0, 0, 0, 1, 0, 1], [0, 1, 1, 0, 1, 0], [1, 0, 0, 0, 0, 0]]
# Example 1 (ikin1) and Example 2 (ikin2), as printed.
P_WRIST = [1.0877, 0.1091, 0.8235]
MAIN_AXES = [[0.1, -1.1567, 0.0297], [0.1, 0.4488, -2.841], [-3.0416, -2.6007, -1.8924]]
MAIN_AXES += [[-3.0416, -3.1359, -0.9189]]
R_06 = [[-0.0003, -0.1983, 0.9801], [0.0007, 0.9801, 0.1983], [-1.0, 0.0007, -0.0001]]
R_03 = [[0.4272, 0.0998, 0.8986], [0.0429, -0.995, 0.0902], [0.9031, 0, -0.4294]]
WRIST_AXES = [[2.9128, 0.454, 0.207], [-0.2288, -0.454, -2.9346]]
# One wrist centre and one orientation that round to the printed ones, and lead to every printed digit.
P_WRIST_EXACT = [1.0877356, 0.1091376, 0.8235145]
R_06_EXACT = [
    [-0.00026659691686703457, -0.19832051027769504, 0.9801371863822322],
    [0.000665630392495703, 0.9801369688886475, 0.19832064732133914],
    [-0.9999997429310993, 0.0007052807731981886, -0.00012929333491706885],
]


@pytest.fixture(scope="module")
def states(irb1400):
    """Joint angles q (500, 6) and their DH angles."""
    q, _ = random_poses_of(irb1400, np.random.default_rng(30), 500)
    return q, dh_from_joint_angles(irb1400, q)


@pytest.fixture(scope="module")
def R03(irb1400):
    """The orientation of DH frame 3 (..., 3, 3) as a function of theta_1 to theta_3 (..., 3)."""

    def orientation(theta):
        wrist = np.zeros(np.shape(theta))
        return dh_frames(irb1400.dh, np.concatenate([theta, wrist], axis=-1))[2][..., :3, :3]

    return orientation


def link_frames(robot, q, link):
    """Orientations (N, 3, 3) and origins (N, 3) of a link's frame in the base frame."""
    index = robot.tree.links.index(link)
    found = [
        recursions.world_frames(robot.tree, recursions.placements(robot.tree, angles.tolist(), math))
        for angles in robot.tree_positions(q)
    ]
    return np.array([frames.R[index] for frames in found]), np.array([frames.o[index] for frames in found])


def nearest_rotation(R):
    U, _, Vt = np.linalg.svd(R)
    return U @ np.diag([1, 1, np.linalg.det(U @ Vt)]) @ Vt


def apart(a, b):
    """Largest difference of angles modulo 2 pi."""
    return np.max(np.abs(np.angle(np.exp(1j * (np.asarray(a) - b)))))


# What is printed.


def test_pose_and_quaternion_at_the_zero_pose(irb1400):
    T = twin.forward_kinematics(irb1400, np.zeros(6))
    np.testing.assert_allclose(T, ZERO_POSE, rtol=0, atol=1e-15)  # 955 and 1195 mm are exact
    quat = quaternion_from_matrix(T[:3, :3])
    np.testing.assert_allclose(quat, [0.7071, 0, 0.7071, 0], rtol=0, atol=DIGITS)


def test_jacobians_at_the_zero_pose(irb1400):
    """The report's are with respect to theta: `J_q = J_theta S`."""
    jacob0 = twin.jacobian(irb1400, np.zeros(6)) @ np.linalg.inv(irb1400.dh_coupling)
    np.testing.assert_allclose(jacob0[:3], JV, rtol=0, atol=1e-15)
    np.testing.assert_allclose(jacob0[3:], JW, rtol=0, atol=1e-15)
    assert np.linalg.matrix_rank(jacob0) == 5  # axes 4 and 6 are in line
    with_coupling = twin.jacobian(irb1400, np.zeros(6))
    np.testing.assert_allclose(with_coupling[:3, 1], [0.6, 0, 0], rtol=0, atol=1e-15)  # q2 alone: no turn


def test_jacobian_columns(irb1400, states):
    """Eq. (2.51)-(2.65): z x (d_n - d_{i-1}) over z."""
    q, theta = states
    frames = [np.broadcast_to(np.eye(4), (len(q), 4, 4)), *dh_frames(irb1400.dh, theta)]
    columns = []
    for frame in frames[:6]:
        z, arm = frame[:, :3, 2], frames[6][:, :3, 3] - frame[:, :3, 3]
        columns.append(np.concatenate([np.cross(z, arm), z], axis=1))
    J_theta = np.stack(columns, axis=-1)
    np.testing.assert_allclose(twin.jacobian(irb1400, q), J_theta @ irb1400.dh_coupling, rtol=0, atol=5e-15)


def test_ikin1(irb1400):
    exact = main_axis_angles(irb1400, P_WRIST_EXACT)
    np.testing.assert_allclose(P_WRIST_EXACT, P_WRIST, rtol=0, atol=DIGITS)
    np.testing.assert_allclose(exact, MAIN_AXES, rtol=0, atol=DIGITS)
    # From the printed wrist centre its rounding, magnified, comes on top.
    np.testing.assert_allclose(main_axis_angles(irb1400, P_WRIST), MAIN_AXES, rtol=0, atol=4.7e-4)


def test_ikin2_and_the_orientation_between(irb1400, R03):
    main_axes = main_axis_angles(irb1400, P_WRIST_EXACT)
    np.testing.assert_allclose(R03(main_axes[0]), R_03, rtol=0, atol=DIGITS)
    np.testing.assert_allclose(R_06_EXACT, R_06, rtol=0, atol=DIGITS)
    theta, s = wrist_axis_angles(irb1400, R03(main_axes[0]).T @ R_06_EXACT)
    np.testing.assert_allclose(theta, WRIST_AXES, rtol=0, atol=DIGITS)
    assert s.tolist() == [0, 0]
    # The printed matrices are orthogonal to their four digits only: the rotation next to their product.
    printed, s = wrist_axis_angles(irb1400, nearest_rotation(np.transpose(R_03) @ R_06))
    np.testing.assert_allclose(printed, WRIST_AXES, rtol=0, atol=3.2e-4)
    assert s.tolist() == [0, 0]


def test_both_examples_at_once(irb1400):
    """Return all eight solutions, as joint angles, of the pose that the examples share."""
    T = np.eye(4)
    T[:3, :3] = R_06_EXACT
    T[:3, 3] = P_WRIST_EXACT + irb1400.dh.d[5] * T[:3, 2]
    theta = dh_from_joint_angles(irb1400, twin.inverse_kinematics(irb1400, T, limits=False))
    rows = np.array(MAIN_AXES)[[0, 1, 3, 2]]  # of the rear solutions the one in front of the lower arm first
    assert apart(theta[0::2, :3], rows) <= DIGITS
    assert apart(theta[1::2, :3], rows) <= DIGITS
    assert apart(theta[:2, 3:], WRIST_AXES) <= DIGITS


# What must hold for any angles.


def test_the_coupling(irb1400, states):
    """Eq. (2.24), (2.25), his abb2dh and dh2abb: axis 2 alone moves the upper arm without turning it."""
    q, theta = states
    expected = q + np.array([0, -np.pi / 2, 0, 0, 0, np.pi])
    expected[:, 2] -= q[:, 1]
    np.testing.assert_allclose(theta, expected, rtol=0, atol=1e-15)
    np.testing.assert_allclose(joint_from_dh_angles(irb1400, theta), q, rtol=0, atol=2e-15)

    moved = q.copy()
    moved[:, 1] += 0.3
    moved_theta = dh_from_joint_angles(irb1400, moved)
    before, after = (dh_frames(irb1400.dh, angles)[2][:, :3, :3] for angles in (theta, moved_theta))
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-15)
    orientation, origin = link_frames(irb1400, q, "link_3")
    moved_orientation, moved_origin = link_frames(irb1400, moved, "link_3")
    np.testing.assert_allclose(moved_orientation, orientation, rtol=0, atol=1e-15)
    chord = 2 * 0.6 * np.sin(0.3 / 2)  # of axis 3 about axis 2
    np.testing.assert_allclose(np.linalg.norm(moved_origin - origin, axis=1), chord, rtol=1e-14)
    # Motor 3 alone turns the upper arm about axis 3, which stays where it is.
    turned = q.copy()
    turned[:, 2] += 0.3
    np.testing.assert_allclose(link_frames(irb1400, turned, "link_3")[1], origin, rtol=0, atol=1e-15)


def test_the_wrist_centre(irb1400, states):
    """Eq. (2.27), (2.28): where axes 4 to 6 meet, whatever their angles are."""
    q, _ = states
    T = twin.forward_kinematics(irb1400, q)
    p_wrist = T[:, :3, 3] - irb1400.dh.d[5] * T[:, :3, 2]
    for link in ("link_5", "link_6"):
        np.testing.assert_allclose(link_frames(irb1400, q, link)[1], p_wrist, rtol=0, atol=1e-15)
    solutions = main_axis_angles(irb1400, p_wrist)
    nearest = np.angle(np.exp(1j * (solutions - dh_from_joint_angles(irb1400, q)[:, None, :3])))
    assert np.max(np.nanmin(np.max(np.abs(nearest), axis=2), axis=1)) <= 1e-12


def test_orientations_in_closed_form(irb1400, states, R03):
    """Eq. (2.42), (2.44), (2.46) and (2.47)-(2.49), the second forms of (2.48) and (2.49)."""
    q, theta = states
    T = twin.forward_kinematics(irb1400, q)
    (c1, _, _, c4, c5, c6), (s1, _, _, s4, s5, s6) = np.cos(theta).T, np.sin(theta).T
    c23, s23 = np.cos(theta[:, 1] + theta[:, 2]), np.sin(theta[:, 1] + theta[:, 2])
    closed_R03 = np.array([[c1 * c23, s1, -c1 * s23], [s1 * c23, -c1, -s1 * s23], [-s23, 0 * c1, -c23]])
    closed_R03 = closed_R03.transpose(2, 0, 1)
    np.testing.assert_allclose(closed_R03, R03(theta[:, :3]), rtol=0, atol=1e-15)
    # Link frames are parallel to the base at the zero pose, where frame 3 is R03 of theta0.
    by_link = link_frames(irb1400, q, "link_3")[0] @ R03(irb1400.dh.theta0[:3])
    np.testing.assert_allclose(closed_R03, by_link, rtol=0, atol=1e-15)

    closed_R36 = np.array(
        [
            [c4 * c5 * c6 - s4 * s6, -c4 * c5 * s6 - s4 * c6, -c4 * s5],
            [s4 * c5 * c6 + c4 * s6, -s4 * c5 * s6 + c4 * c6, -s4 * s5],
            [s5 * c6, -s5 * s6, c5],
        ]
    ).transpose(2, 0, 1)
    R06 = T[:, :3, :3]
    U = closed_R03.transpose(0, 2, 1) @ R06
    np.testing.assert_allclose(U, closed_R36, rtol=0, atol=2e-15)

    (r11, r12, r13), (r21, r22, r23), (r31, r32, r33) = R06.transpose(1, 2, 0)
    closed_U = [
        [
            c1 * c23 * a + s1 * c23 * b - s23 * c
            for a, b, c in ((r11, r21, r31), (r12, r22, r32), (r13, r23, r33))
        ],
        [-c1 * b + s1 * a for a, b in ((r11, r21), (r12, r22), (r13, r23))],
        [
            -c23 * c - c1 * s23 * a - s1 * s23 * b
            for a, b, c in ((r11, r21, r31), (r12, r22, r32), (r13, r23, r33))
        ],
    ]
    np.testing.assert_allclose(np.array(closed_U).transpose(2, 0, 1), U, rtol=0, atol=1e-15)

    solutions, s = wrist_axis_angles(irb1400, U)
    assert not s.any()
    for row, sign in enumerate((1, -1)):
        # The arccos loses digits close to the wrist singularity; the library does not.
        assert apart(solutions[:, row, 1], sign * np.arccos(U[:, 2, 2])) <= 1e-10
        theta_4 = np.arctan2(-sign * U[:, 1, 2], -sign * U[:, 0, 2])
        theta_6 = np.arctan2(-sign * U[:, 2, 1], sign * U[:, 2, 0])
        assert apart(solutions[:, row, 0], theta_4) <= 1e-12
        assert apart(solutions[:, row, 2], theta_6) <= 1e-12
    first = np.where(theta[:, 4:5] >= 0, solutions[:, 0], solutions[:, 1])
    assert apart(first, theta[:, 3:]) <= 1e-11

"""Misprints in the kinematics of Norrlöf 1999: the printed form fails, what the library does holds.

Those of its quaternions, (2.9), (2.10), (2.19) and (2.22), are in test_quaternions.py.
"""

import math

import numpy as np
import pytest

import twin
from tests.support.dh_arms import dh_frames, random_poses_of
from twin.multibody import recursions

P_WRIST = np.array([1.0877356, 0.1091376, 0.8235145])  # Example 1, to more digits than are printed


def turned(angle):
    """Rot_z."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def apart(a, b):
    """Differences of angles modulo 2 pi."""
    return np.abs(np.angle(np.exp(1j * (np.asarray(a) - b))))


@pytest.fixture(scope="module")
def wrist_centres(irb1400):
    """Wrist centres (500, 3) within the limits, and the DH angles (500, 6) that lead there."""
    q, T = random_poses_of(irb1400, np.random.default_rng(40), 500)
    return T[:, :3, 3] - irb1400.dh.d[5] * T[:, :3, 2], twin.kinematics.dh_from_joint_angles(irb1400, q)


def test_the_second_solution_of_axis_1(irb1400):
    """After (2.29): arctan2(p_x, p_y) + pi has its arguments exchanged; (2.38) has them right."""
    px, py, _ = P_WRIST
    theta_1 = twin.kinematics.main_axis_angles(irb1400, P_WRIST)[2:, 0]
    assert np.max(apart(theta_1, np.arctan2(-py, -px))) <= 1e-15
    assert np.max(apart(theta_1, np.arctan2(py, px) + np.pi)) <= 1e-15
    assert np.min(apart(theta_1, np.arctan2(px, py) + np.pi)) > 1.3
    # What is printed does not reach the point either: axis 1 turns the arm's plane past it.
    assert abs(turned(np.arctan2(px, py) + np.pi)[:, 1] @ P_WRIST) > 1.0
    assert abs(turned(theta_1[0])[:, 1] @ P_WRIST) <= 1e-15


def test_the_wrist_centre_from_axis_2(irb1400):
    """(2.30): R01 [a1 0 d1] is not where axis 2 is; Rot_z(theta_1) [a1 0 d1] is, or R01 [a1 -d1 0].

    For the y axis of frame 1 points down.
    """
    a1, d1 = irb1400.dh.a[0], irb1400.dh.d[0]
    theta = np.array([0.3, 0, 0, 0, 0, 0])
    frame_1 = dh_frames(irb1400.dh, theta)[0]
    q_tree = irb1400.tree_positions(twin.kinematics.joint_from_dh_angles(irb1400, theta))
    axis_2 = recursions.world_frames(
        irb1400.tree, recursions.placements(irb1400.tree, q_tree.tolist(), math)
    ).o[irb1400.tree.links.index("link_2")]
    for right in (turned(0.3) @ [a1, 0, d1], frame_1[:3, :3] @ [a1, -d1, 0]):
        np.testing.assert_allclose(right, axis_2, rtol=0, atol=1e-15)
    printed = frame_1[:3, :3] @ [a1, 0, d1]
    assert np.max(np.abs(printed - axis_2)) == pytest.approx(0.475, abs=1e-12)

    # The two-link arm of (2.31) has its c from there: the printed vector gives another elbow angle.
    a2, b3 = irb1400.dh.a[1], np.hypot(irb1400.dh.a[2], irb1400.dh.d[3])
    theta_1, _, theta_3 = twin.kinematics.main_axis_angles(irb1400, P_WRIST)[0]
    bend = theta_3 + np.arctan2(irb1400.dh.d[3], irb1400.dh.a[2])
    R_01 = dh_frames(irb1400.dh, np.array([theta_1, 0, 0, 0, 0, 0]))[0][:3, :3]
    for offset, holds in (([a1, -d1, 0], True), ([a1, 0, d1], False)):
        c = np.linalg.norm(P_WRIST - R_01 @ offset)
        missed = abs((c**2 - a2**2 - b3**2) / (2 * a2 * b3) - np.cos(bend))
        assert missed <= 1e-14 if holds else missed > 0.1


def ikin1(dh, p_wrist, first, second):
    """The report's (2.31)-(2.40) as a recipe: theta (4, N, 3), with two readings of the terms of (2.34)."""
    px, py, pz = p_wrist.T
    a2, b3, gamma = dh.a[1], np.hypot(dh.a[2], dh.d[3]), np.arctan(dh.d[3] / dh.a[2])
    rows = []
    for side in (1, -1):
        r, z = np.hypot(px, py) - side * dh.a[0], pz - dh.d[0]  # from axis 2, towards the wrist centre and up
        D = (r**2 + z**2 - a2**2 - b3**2) / (2 * a2 * b3)
        reached = np.where(np.abs(D) <= 1, D, np.nan)
        for sign in (1, -1):
            bend = sign * np.arccos(reached)
            raised = first(r, z, px, py) - second(b3 * np.sin(bend), a2 + b3 * np.cos(bend))
            theta_1 = np.arctan2(side * py, side * px)
            rows.append(np.stack([theta_1, side * raised - np.pi / 2, side * bend - gamma], axis=-1))
    return np.array(rows)


def along_the_arm(r, z, px, py):
    return np.arctan2(r, z)


def of_one_argument(y, x):
    return np.arctan(y / x)


READINGS = {  # of the two terms, and whether they hold
    "horizontal over vertical distance from axis 2": (along_the_arm, np.arctan2, True),
    "the same, one argument": (lambda r, z, px, py: np.arctan(r / z), np.arctan2, False),
    "the second term of one argument": (along_the_arm, of_one_argument, False),
    "base coordinates": (lambda r, z, px, py: np.arctan2(px, py), np.arctan2, False),
}


@pytest.mark.parametrize("reading", READINGS)
def test_the_direction_to_the_wrist_centre(irb1400, wrist_centres, reading):
    """(2.34): p_x and p_y are not those of (2.29), and arctan has to know both signs of either quotient."""
    first, second, holds = READINGS[reading]
    p_wrist, theta = wrist_centres
    solutions = np.moveaxis(twin.kinematics.main_axis_angles(irb1400, p_wrist), 1, 0)
    by_recipe = ikin1(irb1400.dh, p_wrist, first, second)
    reached = ~np.isnan(solutions[..., 0])
    np.testing.assert_array_equal(np.isnan(by_recipe[..., 1]), ~reached)
    assert np.all(reached.sum(axis=1) > 300)
    differences = np.max(apart(solutions, by_recipe)[reached], axis=-1)
    missed = np.nanmin(np.max(apart(by_recipe, theta[:, :3]), axis=-1), axis=0)
    if holds:
        # In the printed order too. The arccos costs half of the digits where the arm is nearly stretched.
        assert np.max(differences) <= 1e-10
        assert np.max(missed) <= 1e-10
    else:
        assert np.mean(missed > 1e-3) > 0.02
        assert np.max(missed) > 1.0


def test_axis_4(irb1400, wrist_centres):
    """(2.48): the first form has r11, r21, r31, which make u11; the second one's u13 needs r13, r23, r33."""
    theta = wrist_centres[1]
    frames = dh_frames(irb1400.dh, theta)
    R06 = frames[5][:, :3, :3]
    U = frames[2][:, :3, :3].transpose(0, 2, 1) @ R06
    solutions, _ = twin.kinematics.wrist_axis_angles(irb1400, U)
    c1, s1 = np.cos(theta[:, 0]), np.sin(theta[:, 0])
    c23, s23 = np.cos(theta[:, 1] + theta[:, 2]), np.sin(theta[:, 1] + theta[:, 2])
    for row, sign in enumerate((1, -1)):
        expanded = [c1 * c23 * R06[:, 0, k] + s1 * c23 * R06[:, 1, k] - s23 * R06[:, 2, k] for k in (0, 2)]
        u23 = -c1 * R06[:, 1, 2] + s1 * R06[:, 0, 2]
        printed, right = (np.arctan2(-sign * u23, -sign * second) for second in expanded)
        assert np.max(apart(solutions[:, row, 0], right)) <= 1e-12
        assert np.mean(apart(solutions[:, row, 0], printed) > 0.1) > 0.8
        assert np.max(apart(solutions[:, row, 0], printed)) > 3.0


@pytest.mark.parametrize("sign", [1, -1])
def test_axes_4_and_6_in_line(irb1400, sign):
    """(2.50): an arccos loses the sign of theta_4 + sign(c5) theta_6, which arctan2(u21, u11) keeps.

    Where it is 0 or pi, the arccos also loses half of the digits.
    """
    theta_4, theta_6 = np.random.default_rng(41).uniform(-np.pi, np.pi, (2, 200))
    theta_4[0], theta_6[0] = -0.9, 0.4 * sign
    theta = np.zeros((200, 6))
    theta[:, 3], theta[:, 4], theta[:, 5] = theta_4, 0.0 if sign == 1 else np.pi, theta_6
    frames = dh_frames(irb1400.dh, theta)
    U = frames[2][:, :3, :3].transpose(0, 2, 1) @ frames[5][:, :3, :3]
    solutions, s = twin.kinematics.wrist_axis_angles(irb1400, U)
    assert np.all(s == sign)
    expected = theta_4 + sign * theta_6
    assert np.max(apart(solutions[..., 0] + sign * solutions[..., 2], expected[:, None])) <= 1e-14
    assert np.max(apart(np.arctan2(sign * U[:, 1, 0], sign * U[:, 0, 0]), expected)) <= 1e-14
    printed = np.arccos(np.clip(sign * U[:, 0, 0], -1, 1))
    assert apart(printed, expected)[0] == pytest.approx(1.0, abs=1e-12)  # +0.5 for -0.5
    negative = np.angle(np.exp(1j * expected)) < 0
    assert np.max(apart(printed, expected)[~negative]) <= 1e-7
    assert np.max(apart(printed, -expected)[negative]) <= 1e-7
    assert 50 < negative.sum() < 150

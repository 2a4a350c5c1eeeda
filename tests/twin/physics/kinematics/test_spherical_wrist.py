"""The eight closed-form solutions: over all poses, the whole family of arms, and every singularity.

Representatives modulo 2 pi, joint by joint, against trying every number of turns.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.support import dh_arms
from tests.support.refusals import refused
from twin import forward_kinematics, pose_matrix
from twin.base.errors import RobotError
from twin.physics.kinematics import dh_from_joint_angles, joint_from_dh_angles
from twin.physics.kinematics.inverse import BRANCHES, inverse_kinematics
from twin.physics.kinematics.spherical_wrist import (
    LIMIT_TOLERANCE,
    PER_TURN,
    TURN,
    arc_tangents,
    choose_nearest,
    joint_angles_of,
    principal,
)
from twin.physics.robot.robot import DH


def test_the_row_is_cfx(arm):
    q, T = dh_arms.random_poses_of(arm, np.random.default_rng(1), 1000)
    signs = dh_arms.geometry(arm, q)
    regular = np.min(np.abs(signs), axis=0) > 1e-3
    row = np.tensordot([4, 2, 1], np.array(signs) < 0, 1)
    # The limit between its arms keeps the IRB 1400's wrist centre in front of the lower arm.
    assert set(row[regular]) == ({0, 1, 4, 5} if arm.name == "irb1400" else set(range(8)))
    solutions = inverse_kinematics(arm, T)[np.arange(len(q)), row]
    difference = solutions - q
    difference -= dh_arms.TURN * np.round(difference / dh_arms.TURN)
    assert np.max(np.abs(difference[regular])) <= 1e-8
    # And every other solution has the bits of its own row.
    every = inverse_kinematics(arm, T[regular], limits=False)
    signs = dh_arms.geometry(arm, np.nan_to_num(every))
    rows = np.tensordot([4, 2, 1], np.array(signs) < 0, 1)
    clear = ~np.isnan(every[..., 0]) & (np.min(np.abs(signs), axis=0) > 1e-9)
    assert np.all((rows == np.arange(8))[clear])
    assert set(rows[clear]) == set(range(8))
    assert len(set(BRANCHES)) == 8
    assert BRANCHES[0] == "wrist centre in front of axis 1, in front of the lower arm, axis 5 positive"
    assert BRANCHES[6] == "wrist centre behind axis 1, behind the lower arm, axis 5 positive"


@pytest.mark.parametrize("signs", list(itertools.product((1, -1), repeat=4)))
def test_the_whole_family(robot, signs):
    rng = np.random.default_rng([1 + sign for sign in signs])
    sign_3, sign_4, sign_a2, sign_d4 = signs
    half = np.pi / 2
    for _ in range(20):
        lengths = rng.uniform(-0.5, 0.5, 6)
        lengths[rng.uniform(size=6) < 0.2] = 0.0
        d1, a1, a3, d6, _, _ = lengths
        dh = DH(
            theta0=np.append(rng.uniform(-np.pi, np.pi, 5), np.pi),
            d=np.array([d1, 0, 0, sign_d4 * rng.uniform(0.05, 1), 0, d6]),
            a=np.array([a1, sign_a2 * rng.uniform(0.05, 1), a3, 0, 0, 0]),
            alpha=np.array([-half, 0, sign_3 * half, sign_4 * half, -sign_4 * half, 0]),
        )
        arm = replace(robot, dh=dh, q_min=np.full(6, -np.pi), q_max=np.full(6, np.pi))
        q, T = dh_arms.random_poses_of(arm, rng, 50)
        solutions = inverse_kinematics(arm, T)
        assert np.max(dh_arms.pose_errors(arm, solutions, T)) <= 1e-12
        regular = np.min(np.abs(dh_arms.geometry(arm, q)), axis=0) > 1e-3
        assert np.max(np.nanmin(dh_arms.distance_mod_turn(solutions, q), axis=1)[regular]) <= 1e-8


OFFSETS = [0.0, *(sign * 10.0**-k for k in range(4, 18) for sign in (1, -1))]


def check_singular(robot, q):
    """Poses of joint angles q, in front: solutions exist and meet them; return all and the nearest to q."""
    T = forward_kinematics(robot, q)
    every = inverse_kinematics(robot, T, limits=False)
    nearest = inverse_kinematics(robot, T, near=q, limits=False)
    assert not np.any(np.isnan(every[:, :4]))
    assert np.max(dh_arms.pose_errors(robot, every, T)) <= 1e-12
    assert np.max(dh_arms.pose_errors(robot, nearest[:, None], T)) <= 1e-12
    return every, nearest


@pytest.mark.parametrize("q5", [0.0, np.pi])
def test_wrist_singularity(arm, q5):
    rng = np.random.default_rng(3)
    q = rng.uniform(-1, 1, (len(OFFSETS), 6))
    q[:, 4] = q5 + np.array(OFFSETS)
    _, nearest = check_singular(arm, q)
    np.testing.assert_allclose(nearest[0, 3:], q[0, 3:], rtol=0, atol=1e-14)
    T = forward_kinematics(arm, q[0])
    every = inverse_kinematics(arm, T, limits=False)
    rows = slice(0, 2)  # of the elbow that q has; with the other one the wrist is not in line
    assert np.all(every[rows, 3] == 0.0)
    np.testing.assert_array_equal(every[0], every[1])
    other = q[0] + np.array([0, 0, 0, 0.7, 0, 0])
    assert inverse_kinematics(arm, T, near=other, limits=False)[3] == pytest.approx(other[3], abs=1e-15)


def straight(arm, rng, count, bend=0.0):
    """Joint angles of an arm that leans forward, its forearm at an angle `bend` to the lower arm."""
    q = rng.uniform(-1, 1, (count, 6))
    q[:, 1] = np.abs(q[:, 1])
    theta = dh_from_joint_angles(arm, q)
    # The directions of the lower arm and of the forearm in the frames that turn with axes 2 and 3.
    lower_arm = np.arctan2(0.0, arm.dh.a[1])
    theta[:, 2] = lower_arm + bend - np.arctan2(-np.sin(arm.dh.alpha[2]) * arm.dh.d[3], arm.dh.a[2])
    return joint_from_dh_angles(arm, theta)


@pytest.mark.parametrize("bend", [0.0, np.pi], ids=["stretched", "folded"])
def test_elbow_stretched_and_folded(arm, bend):
    q = straight(arm, np.random.default_rng(4), len(OFFSETS), bend + np.array(OFFSETS))
    every, _ = check_singular(arm, q)
    stretched = np.abs(OFFSETS) <= 1e-8  # a length is then short of its greatest by less than 1e-16
    np.testing.assert_array_equal(every[stretched, 0:2], every[stretched, 2:4])
    apart = dh_from_joint_angles(arm, every[stretched, 0])[:, 2] - dh_from_joint_angles(arm, q[0])[2]
    np.testing.assert_allclose(apart - dh_arms.TURN * np.round(apart / dh_arms.TURN), 0.0, atol=1e-15)


def test_full_stretch_is_reachable_up_to_rounding_and_no_further(arm):
    rng = np.random.default_rng(5)
    q = straight(arm, rng, 500)
    T_flange_tool = pose_matrix([0.3, -0.2, 0.5, 0.5, -0.5, 0.5, 0.5])
    T = forward_kinematics(arm, q, T_flange_tool)
    frames = dh_arms.dh_frames(arm.dh, q @ arm.dh_coupling.T + arm.dh.theta0)
    outwards = frames[3][..., :3, 3] - frames[0][..., :3, 3]
    outwards /= np.linalg.norm(outwards, axis=-1, keepdims=True)
    for excess in (-1e-9, -1e-13, -1e-15, 0.0, 1e-15, 1e-13, 5e-13, 2e-12, 1e-9):
        moved = T.copy()
        moved[:, :3, 3] += excess * outwards
        solutions = inverse_kinematics(arm, moved, T_flange_tool=T_flange_tool, limits=False)
        reached = ~np.isnan(solutions[:, 0, 0])
        assert np.all(reached) if excess <= 5e-13 else not np.any(reached), excess
        met = forward_kinematics(arm, np.nan_to_num(solutions), T_flange_tool) - moved[:, None]
        assert np.max(np.abs(met[~np.isnan(solutions[..., 0])]), initial=0.0) <= 1e-12


def test_shoulder_singularity(arm):
    rng = np.random.default_rng(6)
    azimuth = rng.uniform(-np.pi, np.pi, len(OFFSETS))
    T = np.zeros((len(OFFSETS), 4, 4)) + np.eye(4)
    T[:, :3, :3] = Rotation.random(len(OFFSETS), rng).as_matrix()
    radius = np.abs(OFFSETS)
    wrist = np.column_stack([radius * np.cos(azimuth), radius * np.sin(azimuth), 0 * azimuth + 0.8])
    T[:, :3, 3] = wrist + arm.dh.d[5] * T[:, :3, 2]
    T[0, :3, :3] = np.eye(3)  # so that the wrist centre is on axis 1 to the last bit
    T[0, :3, 3] = (0, 0, 0.8 + arm.dh.d[5])
    every = inverse_kinematics(arm, T, limits=False)
    assert not np.any(np.isnan(every))
    assert np.max(dh_arms.pose_errors(arm, every, T)) <= 1e-12
    assert np.all(every[0, :, 0] == 0.0)
    near = rng.uniform(-1, 1, 6)
    nearest = inverse_kinematics(arm, T, near=near, limits=False)
    noise = radius <= 1e-8 * (abs(arm.dh.a[1]) + np.hypot(arm.dh.a[2], arm.dh.d[3]))
    np.testing.assert_array_equal(nearest[noise, 0], near[0])
    missed = dh_arms.pose_errors(arm, nearest[:, None], T)[:, 0]
    assert np.all(missed <= np.where(noise, radius, 0.0) + 1e-12)


def test_all_singularities_at_once(robot):
    """Arm stretched straight up with the wrist in line: axes 1, 4 and 6 parallel where a1 is 0."""
    arm = replace(robot, dh=robot.dh._replace(a=np.array([0.0, -0.36, 0, 0, 0, 0])))
    q = np.array([[0.3, 0.0, -np.pi / 2, 0.2, 0.0, -0.4]])
    T = dh_arms.dh_pose(arm, q)
    every = inverse_kinematics(arm, T)
    assert np.max(dh_arms.pose_errors(arm, every, T)) <= 1e-12
    np.testing.assert_allclose(every[0, :, [0, 3]], 0.0, atol=0)
    np.testing.assert_allclose(every[0, :, 5], 0.1, atol=1e-12)
    np.testing.assert_allclose(inverse_kinematics(arm, T, near=q), q, rtol=0, atol=1e-7)


def test_wrist_centre_on_axis_2_of_an_arm_that_can_reach_there(robot):
    arm = replace(robot, dh=robot.dh._replace(a=np.array([0.07, -0.38, 0, 0, 0, 0])))
    rng = np.random.default_rng(7)
    q = rng.uniform(-1, 1, (len(OFFSETS), 6))
    q[:, 2] = np.pi / 2 + np.array(OFFSETS)
    T = dh_arms.dh_pose(arm, q)
    solutions = inverse_kinematics(arm, T, limits=False)
    assert np.max(dh_arms.pose_errors(arm, solutions, T)) <= 1e-12
    nearest = inverse_kinematics(arm, T, limits=False, near=q)
    assert np.max(dh_arms.pose_errors(arm, nearest[:, None], T)) <= 1e-12
    assert nearest[0, 1] == pytest.approx(q[0, 1], abs=1e-15)
    assert inverse_kinematics(arm, T[0], limits=False)[0, 1] == 0.0


def test_an_arm_outside_the_family_is_refused_and_its_entry_named(robot):
    def solved(**changes):
        return lambda: inverse_kinematics(replace(robot, **changes), np.eye(4))

    def entry(letter, axis, value):
        column = np.where(np.arange(1, 7) == axis, value, getattr(robot.dh, letter))
        return solved(dh=robot.dh._replace(**{letter: column}))

    refused(
        (entry("alpha", 1, np.pi / 2), "DH alpha_1 is 90 degrees, expected -90"),
        (entry("alpha", 3, 0.0), "DH alpha_3 is 0 degrees, expected -90 or 90"),
        (entry("alpha", 6, np.nan), "DH alpha_6 is nan degrees, expected 0"),
        (entry("a", 2, 0.0), "DH a_2 is 0 m, expected more than 0"),
        (entry("a", 4, 0.01), "DH a_4 is 0.01 m, expected 0"),
        (entry("d", 4, 0.0), "DH hypot(a_3, d_4) is 0 m, expected more than 0"),
        (entry("d", 5, -0.01), "DH d_5 is -0.01 m, expected 0"),
        (solved(dh=DH(*(column[:5] for column in robot.dh))), "it has 5 DH rows, expected 6"),
        (solved(dh_coupling=np.diag([1, 1, 1, 1, 1, 2.0])), "S must hold whole numbers"),
        error=RobotError,
    )


SHEAR = np.eye(6) - np.eye(6, k=-1)  # whole numbers, determinant 1


def representatives(theta, near, q_min, q_max, inverse_S=SHEAR, theta0=0.0):
    q, theta0 = np.empty_like(theta), np.broadcast_to(theta0, 6)
    joint_angles_of(theta, theta0, inverse_S, near, q_min, q_max, q)
    return q


def test_against_trying_every_turn(rng):
    theta, near = rng.uniform(-4, 4, (6, 300)), rng.uniform(-20, 20, (6, 300))
    theta0, q_min = rng.uniform(-1, 1, 6), rng.uniform(-9, 0, 6)
    q_max = q_min + rng.uniform(5, 15, 6)
    found = representatives(theta, near, q_min, q_max, theta0=theta0)
    q = SHEAR @ (theta - theta0[:, None])
    turned = q[..., None] + TURN * np.arange(-9, 10)
    allowed = (turned >= q_min[:, None, None]) & (turned <= q_max[:, None, None])
    distance = np.where(allowed, np.abs(turned - near[..., None]), np.inf)
    expected = np.take_along_axis(turned, np.argmin(distance, axis=-1)[..., None], axis=-1)[..., 0]
    expected[~allowed.any(axis=-1)] = np.nan
    assert 0 < np.isnan(expected).sum() < 600
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("beyond", [0.0, 0.9 * LIMIT_TOLERANCE])
def test_rounding_beyond_a_limit_is_put_onto_it(beyond):
    limits = np.full(6, 1.25)
    for theta in (1.25 + beyond, -1.25 - beyond):
        q = representatives(np.full((6, 3), theta), np.zeros((6, 3)), -limits, limits, np.eye(6))
        assert np.all(np.abs(q) == 1.25)
    q = representatives(np.full((6, 3), 1.25 + 3e-12), np.zeros((6, 3)), -limits, limits, np.eye(6))
    assert np.all(np.isnan(q))


def test_half_a_turn_is_positive_and_nan_does_not_spread():
    assert TURN * PER_TURN == 1.0
    assert principal(-np.pi) == principal(np.pi) == principal(3 * np.pi) == np.pi
    assert principal(np.nextafter(np.pi, 4)) < -3
    theta = np.full((6, 4), 0.5)
    theta[2, 1] = np.nan
    q = representatives(theta, np.zeros((6, 4)), np.full(6, -np.inf), np.full(6, np.inf), np.eye(6))
    assert np.argwhere(np.isnan(q)).tolist() == [[2, 1]]


def test_the_nearest_of_equals_is_the_first_row():
    q = np.full((2, 8, 6), np.nan)
    q[0, 3], q[0, 5], q[0, 6] = 0.1, -0.1, 0.2
    nearest = np.empty((2, 6))
    choose_nearest(q, np.zeros((2, 6)), nearest)
    assert np.all(nearest[0] == 0.1)
    assert np.all(np.isnan(nearest[1]))


# The arc tangents of many directions, against the C library's.


def angles_of(y, x):
    y, x = np.array(y, dtype=float), np.array(x, dtype=float)
    angles = np.empty(len(y))
    arc_tangents(y, x, angles)
    return angles


def test_two_units_of_the_last_digit_in_all_directions_and_lengths(rng):
    angle, length = rng.uniform(-np.pi, np.pi, 50_000), 10.0 ** rng.uniform(-150, 150, 50_000)
    y, x = length * np.sin(angle), length * np.cos(angle)
    exact = np.arctan2(y, x)
    assert np.max(np.abs(angles_of(y, x) - exact) / np.spacing(np.abs(exact))) <= 2


def test_along_the_axes_it_is_exact_and_nan_stays_nan():
    y, x = [0.0, -0.0, 1.0, -1.0, 0.0, -0.0, 0.0], [2.0, 2.0, 0.0, 0.0, -3.0, -3.0, 0.0]
    assert angles_of(y, x).tolist() == [0, 0, math.pi / 2, -math.pi / 2, math.pi, -math.pi, 0]
    assert np.all(np.isnan(angles_of([np.nan, 1.0, np.nan], [1.0, np.nan, np.nan])))

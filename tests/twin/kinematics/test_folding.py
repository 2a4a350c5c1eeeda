"""The limit between the arms of the IRB 1400, in its inverse kinematics and in paths of its tool.

Rod and lever fall into line, and the parallelogram folds flat, where q2 - q3 is 90 degrees: |q3 - q2| stays
within 75 degrees, which the range of the passive joints says.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

import twin
from scenarios.checks.motion_range import beyond_passive_range
from tests.support.dh_arms import distance_mod_turn, geometry, pose_errors, random_poses_of
from twin import forward_kinematics, inverse_kinematics, joint_path
from twin.errors import LimitError
from twin.kinematics.joint_turns import (
    LIMIT_TOLERANCE,
    PER_TURN,
    TURN,
    choose_nearest,
    joint_angles_of,
    principal,
)
from twin.robot.limits import check_folding
from twin.rotations.rotations import matrix_from_quaternion
from twin.trajectories.tool_paths import through_poses

FOLD = np.deg2rad(75.0)
DOWN = matrix_from_quaternion([0.0, 1.0, 0.0, 0.0])


@pytest.fixture(scope="module")
def without_fold(irb1400):
    """Return the robot with only the ranges of its driven joints."""
    endless = np.full(len(irb1400.passive), np.inf)
    return replace(irb1400, passive_min=-endless, passive_max=endless)


def test_no_solution_of_3000_poses_folds_the_parallelogram(irb1400, without_fold):
    """Also of poses that fold it in one solution, and can be reached by another."""
    q, _ = random_poses_of(without_fold, np.random.default_rng(20), 3000)
    T = twin.forward_kinematics(irb1400, q)
    solutions = twin.inverse_kinematics(irb1400, T)
    assert np.max(pose_errors(irb1400, solutions, T, twin.forward_kinematics)) <= 1e-12
    there = solutions[~np.isnan(solutions[..., 0])]
    assert len(there) > 3000
    assert np.max(np.abs(there[:, 2] - there[:, 1])) <= FOLD + 1e-12
    assert np.all((there >= irb1400.q_min) & (there <= irb1400.q_max))
    # The joints' own ranges would admit more; exactly those that fold are left out.
    every = twin.inverse_kinematics(without_fold, T)
    folds = np.abs(every[..., 2] - every[..., 1]) > FOLD + 1e-12
    assert np.mean(np.any(folds, axis=1)) > 0.1
    every[folds] = np.nan
    np.testing.assert_array_equal(solutions, every)
    # And what does not fold is found again.
    found = (np.min(np.abs(geometry(irb1400, q)), axis=0) > 1e-3) & (beyond_passive_range(irb1400, q) < -1e-9)
    assert np.max(np.nanmin(distance_mod_turn(solutions[found], q[found]), axis=1)) <= 1e-8


def test_the_nearest_solution_does_not_fold_either(irb1400, without_fold):
    q, T = random_poses_of(without_fold, np.random.default_rng(21), 2000)
    nearest = twin.inverse_kinematics(irb1400, T, near=q)
    folded = beyond_passive_range(irb1400, q) > 1e-9
    within = beyond_passive_range(irb1400, nearest[folded]) <= 1e-12
    assert np.all(np.isnan(nearest[folded]) | within[:, None])
    loose = twin.inverse_kinematics(irb1400, T, near=q, limits=False)
    regular = np.min(np.abs(geometry(irb1400, q)), axis=0) > 1e-3
    np.testing.assert_allclose(loose[regular], q[regular], rtol=0, atol=1e-8)


@pytest.mark.parametrize("joint", ["joint_elbow", "joint_rod"])
@pytest.mark.parametrize("end", ["passive_min", "passive_max"])
def test_either_end_of_either_passive_joint_counts(irb1400, without_fold, joint, end):
    """Elbow and rod turn against each other, one's lower end is the other's upper: here each by itself."""
    passive = [irb1400.tree.names[i] for i in irb1400.passive].index(joint)
    ends = np.array(getattr(without_fold, end))
    ends[passive] = 0.2
    _, T = random_poses_of(irb1400, np.random.default_rng(22), 500)
    every = twin.inverse_kinematics(without_fold, T)
    angle = without_fold.passive_angles(every)[..., passive]
    every[angle < 0.2 if end == "passive_min" else angle > 0.2] = np.nan
    solutions = twin.inverse_kinematics(replace(without_fold, **{end: ends}), T)
    np.testing.assert_array_equal(solutions, every)
    assert not np.all(np.isnan(solutions))


MET = {  # from here to there, by which angle, and its limit
    "forearm raised": ([10, 60, 5, 10, 30, 0], [10, 60, -18, 10, 30, 0], r"-75\.0\d+ deg"),
    "lower arm back": ([10, -40, 20, 10, 30, 0], [10, -60, 20, 10, 30, 0], r"75\.0\d+ deg"),
}


@pytest.mark.parametrize("name", MET)
def test_a_path_into_the_fold_or_out_of_it_names_link_and_distance(irb1400, name):
    start, end, angle = MET[name]
    q = np.deg2rad(np.array([start, end], float))
    told = (
        rf"^joint_elbow \(q3 - q2\) would be at {angle} .* at t = .*, its range is -75 deg .* to 75 "
        r"deg .*: link_rod would be 0\.0439 m from folding parallelogram flat$"
    )
    with pytest.raises(LimitError, match=told):
        joint_path(irb1400, through_poses(twin.forward_kinematics(irb1400, q)), near=q[0])
    if name == "lower arm back":
        back = through_poses(twin.forward_kinematics(irb1400, q[::-1]))
        with pytest.raises(LimitError, match=r"near must be .*: joint_elbow \(q3 - q2\) would be at 80 "):
            joint_path(irb1400, back, near=q[1])
        with pytest.raises(LimitError, match=r"no solution .*: joint_elbow .* link_rod would be 0\.0295"):
            joint_path(irb1400, back, near=q[0])


def test_a_path_through_the_fold_between_two_good_poses_is_refused(irb1400):
    """A straight line of the tool close by axis 2; around it, by way of a third pose, it may go."""
    T = np.zeros((3, 4, 4)) + np.eye(4)
    T[:, :3, :3] = DOWN
    for k, azimuth in enumerate(np.deg2rad([-60.0, 0.0, 60.0])):
        T[k, :3, 3] = 0.5 * np.cos(azimuth), 0.5 * np.sin(azimuth), 0.64
    ends = twin.inverse_kinematics(irb1400, T)[:, 0]
    assert np.all(np.abs(ends[:, 2] - ends[:, 1]) < FOLD)
    with pytest.raises(LimitError, match=r"link_rod would be 0\.044 m from folding parallelogram flat"):
        joint_path(irb1400, through_poses(T[[0, 2]]), near=ends[0])
    path = joint_path(irb1400, through_poses(T), near=ends[0])
    assert np.max(np.abs(path.checked.q[:, 2] - path.checked.q[:, 1])) < FOLD


@pytest.mark.parametrize(
    ("elbow_deg", "told"),
    [(-80, "0.0295 m from"), (-100, "0.0295 m past"), (89, "0.00297 m from"), (91, "0.00297 m past")],
)
@pytest.mark.parametrize("column", [0.0, 2.5])
def test_before_the_fold_and_past_it(irb1400, elbow_deg, told, column):
    """Wherever the column has turned the loop's plane."""
    q = np.array([column, 0.2, 0.2 + np.deg2rad(elbow_deg), 0.0, 0.0, 0.0])
    with pytest.raises(LimitError, match=rf": link_rod would be {told} folding parallelogram flat"):
        check_folding(irb1400, q)


# Angles that a singularity leaves free: chosen so that the rest keeps its limits, and not from noise.


LARGEST_TURN = np.deg2rad(100)


def wrist_centre(arm, T):
    return T[..., :3, 3] - arm.dh.d[5] * T[..., :3, 2]


def above_axis_1(arm, rng, count):
    """Joint angles within all limits that put the wrist centre on axis 1, and their poses, exact there."""
    found = []
    while len(found) < count:
        q = rng.uniform(arm.q_min, arm.q_max)

        def forward(angle, q=q):
            bent = np.array([0, q[1], angle, 0, 0, 0])
            return wrist_centre(arm, forward_kinematics(arm, bent))[0]

        if forward(arm.q_min[2]) * forward(arm.q_max[2]) < 0:
            q[2] = brentq(forward, arm.q_min[2], arm.q_max[2], xtol=1e-16)
            if np.all(beyond_passive_range(arm, q[None]) <= 0):
                found.append(q)
    T = forward_kinematics(arm, np.array(found))
    T[:, :2, 3] -= wrist_centre(arm, T)[:, :2]
    return np.array(found), T


def test_a_pose_above_axis_1_that_the_arm_can_take_has_a_solution(arm):
    """With q1 = 0 alone axis 4 or 5 is beyond its limits in all rows of some of these."""
    q, T = above_axis_1(arm, np.random.default_rng(0), 1000)
    rows = inverse_kinematics(arm, T)
    there = ~np.isnan(rows[..., 0])
    assert np.all(np.any(there, axis=1))
    assert np.all((rows >= arm.q_min) & (rows <= arm.q_max) | ~there[..., None])
    assert np.max(pose_errors(arm, rows, T)) <= 1e-12
    by_rule = inverse_kinematics(arm, T, limits=False)[..., 0] == 0.0
    assert np.all(by_rule)
    turned = rows[..., 0][there & (rows[..., 0] != 0.0)]
    assert 0 < len(turned) < np.sum(there) / 2
    in_steps = np.abs(turned - np.pi / 12 * np.round(turned / (np.pi / 12))) <= 1e-12
    assert np.mean(in_steps) > 0.95
    far = inverse_kinematics(arm, T, near=0 * q)
    assert np.max(pose_errors(arm, far[:, None], T)) <= 1e-12
    assert not np.any(np.isnan(far))


def test_axis_4_is_turned_where_axis_6_cannot_make_up_for_it(robot):
    """In line, q4 = 0 leaves all of the turn to axis 6, which here ends at 100 degrees."""
    ends = (
        np.append(limits[:5], end)
        for limits, end in ((robot.q_min, -LARGEST_TURN), (robot.q_max, LARGEST_TURN))
    )
    arm = replace(robot, **dict(zip(("q_min", "q_max"), ends, strict=True)))
    q = np.deg2rad([10.0, 20.0, -30.0, 90.0, 0.0, 80.0])
    T = forward_kinematics(arm, q)
    rows = inverse_kinematics(arm, T)
    np.testing.assert_allclose(np.rad2deg(rows[0]), [10, 20, -30, 75, 0, 95], rtol=0, atol=1e-10)
    np.testing.assert_allclose(inverse_kinematics(arm, T, near=q), q, rtol=0, atol=1e-12)


def test_near_determines_axis_4_of_an_aligned_wrist_and_axis_1_to_nine_decimals(arm):
    q, _ = random_poses_of(arm, np.random.default_rng(1), 300)
    q[:, 4] = np.deg2rad(5e-8)
    exact = forward_kinematics(arm, q)
    T = np.round(exact, 9)
    nearest = inverse_kinematics(arm, T, near=q)
    forward, bend, _ = geometry(arm, q)
    here = np.minimum(np.abs(forward), np.abs(bend)) > 0.2  # elsewhere the arm magnifies the rounding
    assert np.mean(here) > 0.5
    np.testing.assert_array_equal(nearest[here, 3], q[here, 3])
    assert np.max(np.abs(forward_kinematics(arm, nearest) - T)) <= 1e-8
    # Every solution meets the pose itself, as far as that is one, with an axis 4 that says nothing.
    rows = inverse_kinematics(arm, T, limits=False)
    assert np.max(pose_errors(arm, rows, T)) <= 5e-9

    q, exact = above_axis_1(arm, np.random.default_rng(2), 100)
    T = np.round(exact, 9)
    nearest = inverse_kinematics(arm, T, near=q)
    bent = np.abs(nearest - q).max(axis=1) < 1e-3
    assert np.mean(bent) > 0.95
    np.testing.assert_array_equal(nearest[bent, 0], q[bent, 0])
    assert np.max(np.abs(forward_kinematics(arm, nearest) - T)) <= 1e-8


@pytest.mark.parametrize("sine", [0.9e-8, 1.1e-8])
def test_what_near_may_cost_of_the_pose_is_the_sine_of_axis_5_and_no_more_above_its_bound(arm, sine):
    q, _ = random_poses_of(arm, np.random.default_rng(3), 300)
    q[:, 4] = sine
    T = forward_kinematics(arm, q)
    near = q + np.array([0, 0, 0, 0.3, 0, -0.3])
    missed = np.max(pose_errors(arm, inverse_kinematics(arm, T, near=near)[:, None], T))
    assert 0.1 * sine < missed <= sine if sine < 1e-8 else missed <= 1e-12


# Representatives modulo 2 pi, joint by joint, against trying every number of turns.


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

"""Inverse kinematics as it is called: published results, limits, representatives, `near`, shapes, misuse.

Numerical inverse kinematics: poses met to round-off, singular ones too, limits held, failures told.
"""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

import twin
from scenarios.judging.motion_range import beyond_passive_range
from tests.support.dh_arms import (
    T_TOOL,
    TURN,
    dh_frames,
    distance_mod_turn,
    geometry,
    pose_errors,
    random_poses_of,
)
from tests.support.laboratory_arms import SEVEN, laboratory_arm, urdf_of
from tests.support.random_trees import random_urdf
from tests.support.refusals import refused
from twin import pose_matrix
from twin.base.errors import RobotError, UnreachableError
from twin.physics.kinematics import dh_from_joint_angles, main_axis_angles, wrist_axis_angles
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.kinematics.inverse import inverse_kinematics, numerical_inverse_kinematics


def representatives(robot, row):
    """Return all angles modulo 2 pi within the limits, by trying every number of turns of every joint."""
    turned = row + TURN * np.arange(-3, 4)[:, None]
    inside = (turned >= robot.q_min) & (turned <= robot.q_max)
    return [turned[inside[:, j], j] for j in range(6)]


@pytest.mark.parametrize("q_min_deg", [-np.inf, [10.0, -np.inf, -np.inf, 100.0, -np.inf, 200.0]])
def test_limits_and_representatives_against_trying_every_turn(arm, q_min_deg):
    rng = np.random.default_rng(8)
    arm = replace(arm, q_min=np.maximum(arm.q_min, np.deg2rad(q_min_deg)))
    _, T = random_poses_of(arm, rng, 150)
    free = inverse_kinematics(arm, T, limits=False)
    assert np.all((free > -np.pi) & (free <= np.pi) | np.isnan(free))
    limited = inverse_kinematics(arm, T)
    near = rng.uniform(arm.q_min - 1, arm.q_max + 1, (len(T), 6))
    nearest = inverse_kinematics(arm, T, near=near)
    assert np.all((limited >= arm.q_min) & (limited <= arm.q_max) | np.isnan(limited))
    for sample in range(len(T)):
        candidates = []
        for row in range(8):
            allowed = representatives(arm, free[sample, row])
            folded = beyond_passive_range(arm, free[sample, row, None]) > 1e-12
            if folded or any(len(angles) == 0 for angles in allowed):
                assert np.all(np.isnan(limited[sample, row]))
                continue
            principal = [angles[np.argmin(np.abs(angles))] for angles in allowed]
            np.testing.assert_allclose(limited[sample, row], principal, rtol=0, atol=1e-14)
            candidates += itertools.product(*allowed)
        metric = np.sum((np.array(candidates) - near[sample]) ** 2, axis=1)
        best = candidates[np.argmin(metric)]
        np.testing.assert_allclose(nearest[sample], best, rtol=0, atol=1e-14)


def test_near_brings_back_the_joint_angles_themselves_any_number_of_turns_away(arm):
    q, T = random_poses_of(arm, np.random.default_rng(9), 1000)
    regular = np.min(np.abs(geometry(arm, q)), axis=0) > 1e-3
    for turns, limits in ((0, True), (TURN * np.array([3, 0, -2, 5, 0, -7]), False)):
        found = inverse_kinematics(arm, T, near=q + turns, limits=limits)
        np.testing.assert_allclose(found[regular], (q + turns)[regular], rtol=0, atol=1e-8)


def test_an_angle_on_its_limit_counts_as_within(arm):
    rng = np.random.default_rng(10)
    for joint, limit in itertools.product(range(6), (arm.q_min, arm.q_max)):
        q = rng.uniform(arm.q_min / 2, arm.q_max / 2, (200, 6))
        q[:, joint] = limit[joint]
        q = q[(beyond_passive_range(arm, q) < 0) & (np.min(np.abs(geometry(arm, q)), axis=0) > 1e-2)]
        T = forward_kinematics(arm, q)
        nearest = inverse_kinematics(arm, T, near=q)
        np.testing.assert_allclose(nearest, q, rtol=0, atol=1e-11)
        assert np.all((nearest >= arm.q_min) & (nearest <= arm.q_max))
        assert np.max(pose_errors(arm, nearest[:, None], T)) <= 1e-12


def test_a_free_angle_taken_from_near_obeys_its_limits(robot):
    q = np.array([0.1, 0.2, 0.3, 0.0, 0.0, 0.5])
    T = forward_kinematics(robot, q)
    nearest = inverse_kinematics(robot, T, near=q + np.array([0, 0, 0, 4.0, 0, 0]))  # axis 4 ends at 3.49
    assert nearest[3] == robot.q_max[3]
    np.testing.assert_allclose(forward_kinematics(robot, nearest), T, rtol=0, atol=1e-12)


def test_out_of_reach_is_nan(robot):
    for position in ((2.0, 0, 0.5), (0, 0, -3.0), (0.07, 0, 0.352 + 0.065)):  # the last: too near to axis 2
        T = np.eye(4)
        T[:3, 3] = position
        rows = inverse_kinematics(robot, T, limits=False)
        assert rows.shape == (8, 6)
        assert np.all(np.isnan(rows[:4]))
        assert np.all(np.isnan(inverse_kinematics(robot, T, near=np.zeros(6))))


def test_shapes_and_a_tool(robot):
    rng = np.random.default_rng(12)
    q, T = random_poses_of(robot, rng, 6)
    flat, batch = inverse_kinematics(robot, T), inverse_kinematics(robot, T.reshape(2, 3, 4, 4))
    np.testing.assert_array_equal(batch.reshape(6, 8, 6), flat)
    assert inverse_kinematics(robot, np.empty((0, 4, 4))).shape == (0, 8, 6)
    near = rng.uniform(-1, 1, (5, 1, 6))
    both = inverse_kinematics(robot, T, near=near)
    assert both.shape == (5, 6, 6)
    np.testing.assert_array_equal(both[2, 4], inverse_kinematics(robot, T[4], near=near[2, 0]))
    before, tool = T.copy(), pose_matrix([0.1, -0.2, 0.35, 0.5, 0.5, -0.5, 0.5])
    inverse_kinematics(robot, T, near=q)
    np.testing.assert_array_equal(T, before)
    with_tool = inverse_kinematics(robot, T @ tool, T_flange_tool=tool, near=q)
    np.testing.assert_allclose(with_tool, q, rtol=0, atol=1e-8)


def test_a_pose_that_is_none_a_wrong_near_and_a_wrong_tool_are_refused(robot):
    T = np.zeros((3, 4, 4)) + np.eye(4)
    T[1, 0, 1] = 1e-8

    unit = np.eye(4)

    def solved(pose=unit, **changed):
        return lambda: inverse_kinematics(robot, pose, **changed)

    refused(
        (solved(np.zeros(7)), "expected T_base_tool of shape (..., 4, 4), got (7,)"),
        (solved(np.full((4, 4), np.nan)), "expected T_base_tool to be finite, got nan at [0, 0]"),
        (solved(T), "expected T_base_tool[1] to be rigid within 1e-09"),
        (solved(near=np.zeros(5)), "expected near of shape (..., 6), got (5,)"),
        (solved(near=[0, 0, np.nan, 0, 0, 0]), "expected near to be finite"),
        (solved(T_flange_tool=2 * np.eye(4)), "expected T_flange_tool"),
    )
    q = robot.poses["test_1"]  # but rotations rounded within the tolerance are accepted
    T = np.round(forward_kinematics(robot, q), 10)
    np.testing.assert_allclose(inverse_kinematics(robot, T, near=q), q, rtol=0, atol=1e-8)


# Inverse kinematics of one pose and of many: the same bits; and the ranges of passive joints.


def test_many_poses_are_solved_as_one_by_one(arm, monkeypatch):
    """Regular and singular, more of them than are solved at a time, on one thread or on several."""
    rng = np.random.default_rng(14)
    q, T = random_poses_of(arm, rng, 4_000)
    q[::3, 4] = 0.0
    T[::3] = forward_kinematics(arm, q[::3])
    monkeypatch.setenv("IRB_TWIN_THREADS", "3")
    rows, nearest = inverse_kinematics(arm, T), inverse_kinematics(arm, T, near=q)
    kept = np.abs(nearest[::3, 3] - q[::3, 3]) <= 1e-15  # but where another solution is nearer
    assert np.mean(kept) > 0.99
    monkeypatch.setenv("IRB_TWIN_THREADS", "1")
    assert inverse_kinematics(arm, T).tobytes() == rows.tobytes()
    assert inverse_kinematics(arm, T, near=q).tobytes() == nearest.tobytes()
    for sample in rng.integers(0, len(T), 100):
        assert inverse_kinematics(arm, T[sample]).tobytes() == rows[sample].tobytes()
        assert inverse_kinematics(arm, T[sample], near=q[sample]).tobytes() == nearest[sample].tobytes()


def test_the_end_of_a_passive_joint_s_range(irb1400):
    q = np.tile(np.deg2rad([10.0, 40.0, -35.0, 20.0, 30.0, 10.0]), (4, 1))
    q[:, 1] = q[:, 2] - irb1400.passive_min[0] + np.array([-1e-9, 0.0, 1e-14, 1e-9])
    excess = beyond_passive_range(irb1400, q)
    assert excess[0] < 0 < excess[3]
    T = forward_kinematics(irb1400, q)
    found = np.nanmin(distance_mod_turn(inverse_kinematics(irb1400, T, limits=False), q), axis=1)
    assert np.max(found) < 1e-12
    kept = ~np.isnan(inverse_kinematics(irb1400, T, near=q)[:, 0])
    rows = inverse_kinematics(irb1400, T)
    nearest = [np.nanmin(distance_mod_turn(rows[i : i + 1], q[i : i + 1]), initial=9.0) for i in range(4)]
    assert kept[:3].all()
    assert [bool(distance < 1e-8) for distance in nearest] == [True, True, True, False]


# The two stages of inverse kinematics: together they are the whole, and what they do at singularities.


HALF = np.pi / 2


def wrist_centre(robot, T):
    return T[..., :3, 3] - robot.dh.d[5] * T[..., :3, 2]


def test_both_stages_are_the_whole(arm):
    _, T = random_poses_of(arm, np.random.default_rng(50), 500)
    whole = dh_from_joint_angles(arm, np.nan_to_num(twin.inverse_kinematics(arm, T, limits=False), nan=9.0))
    main_axes = main_axis_angles(arm, wrist_centre(arm, T))
    assert main_axes.shape == (500, 4, 3)
    reached = ~np.isnan(main_axes[..., 0])
    np.testing.assert_array_equal(reached, ~np.isnan(main_axes[..., 2]))
    assert reached.sum() > 1000
    for row, whole_row in enumerate((0, 2, 6, 4)):
        rows = reached[:, row]
        theta = np.concatenate([main_axes[rows, row], np.zeros((rows.sum(), 3))], axis=1)
        R_03 = dh_frames(arm.dh, theta)[2][:, :3, :3]
        wrist, s = wrist_axis_angles(arm, R_03.transpose(0, 2, 1) @ T[rows, :3, :3])
        assert not s.any()
        for k in range(2):
            theta[:, 3:] = wrist[:, k]
            difference = theta - whole[rows, whole_row + k]
            assert np.max(np.abs(difference - TURN * np.round(difference / TURN))) <= 1e-10
        assert np.all(wrist[:, 0, 1] >= 0)
        assert np.all(wrist[:, 1, 1] <= 0)
    for angles in (main_axes[reached], wrist):
        assert np.all((angles > -np.pi) & (angles <= np.pi))


def test_undefined_angles_are_those_of_the_zero_pose(robot):
    shifted = replace(robot, dh=robot.dh._replace(theta0=np.array([0.3, 0, 0, 3.5, 0, 0])))
    theta = main_axis_angles(shifted, [0.0, 0.0, 0.9])
    assert np.all(theta[:, 0] == 0.3)
    wrist, s = wrist_axis_angles(shifted, np.eye(3))
    np.testing.assert_allclose(wrist, [[3.5 - TURN, 0, TURN - 3.5]] * 2, rtol=0, atol=2e-15)
    assert s.tolist() == [1, 1]
    dh = robot.dh._replace(a=np.array([0.07, -0.38, 0, 0, 0, 0]), theta0=np.full(6, 0.2))
    folded = replace(robot, dh=dh)
    assert np.all(main_axis_angles(folded, [0.07 * np.cos(0.5), 0.07 * np.sin(0.5), 0.352])[:2, 1] == 0.2)


@pytest.mark.parametrize("alpha_4", [-HALF, HALF])
@pytest.mark.parametrize("theta_5", [0.0, np.pi])
def test_flag_shows_which_sum_of_angles_is_determined(irb1400, alpha_4, theta_5):
    alpha = np.array([-HALF, 0, -HALF, alpha_4, -alpha_4, 0])
    arm = replace(irb1400, dh=irb1400.dh._replace(alpha=alpha))
    sign = 1 if theta_5 == 0.0 else -1
    for off in (0.0, 1e-15, 1e-12, -1e-12, 1e-6, 0.5):
        theta = np.array([0.1, 0.2, 0.3, 0.7, theta_5 + off, -1.1])
        frames = dh_frames(arm.dh, theta)
        R_36 = frames[2][:3, :3].T @ frames[5][:3, :3]
        wrist, s = wrist_axis_angles(arm, R_36)
        assert s.tolist() == ([sign, sign] if abs(off) < 1e-13 else [0, 0])
        combined = wrist[:, 0] + sign * wrist[:, 2] - (0.7 - sign * 1.1)
        assert np.max(np.abs(np.sin(combined / 2))) <= 1e-14
        again = dh_frames(arm.dh, np.concatenate([np.tile([0.1, 0.2, 0.3], (2, 1)), wrist], axis=1))
        np.testing.assert_allclose(again[5][:, :3, :3], [frames[5][:3, :3]] * 2, rtol=0, atol=1e-13)


def test_misuse_is_one_clear_sentence(irb1400):
    bent = replace(irb1400, dh=irb1400.dh._replace(alpha=np.zeros(6)))
    for stage, given in ((main_axis_angles, np.ones(3)), (wrist_axis_angles, np.eye(3))):
        with pytest.raises(RobotError, match=r"outside the family .* DH alpha_1 is 0 degrees, expected -90"):
            stage(bent, given)
    nearly = [np.eye(3), np.eye(3) + 1e-8]
    refused(
        (lambda r: main_axis_angles(r, [[0, np.nan, 1]]), "expected p_wrist to be finite, got nan at [0, 1]"),
        (lambda r: wrist_axis_angles(r, np.eye(4)[:3]), "expected R_36 of shape (..., 3, 3), got (3, 4)"),
        (lambda r: wrist_axis_angles(r, nearly), "expected R_36[1] to be rigid within 1e-09"),
        given=(irb1400,),
    )


END = np.deg2rad(100)


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
    q, T = above_axis_1(arm, np.random.default_rng(0), 400)
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
    ends = (np.append(limits[:5], end) for limits, end in ((robot.q_min, -END), (robot.q_max, END)))
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


def missed(robot, q, T, tool=None):
    return np.max(np.abs(twin.forward_kinematics(robot, q, tool) - T))


def within(robot, q):
    return np.all((q >= robot.q_min) & (q <= robot.q_max))


def awkward_poses(robot, rng, count):
    """Random positions, singular wrists and near ones, arms at full stretch, both, joints at limits."""
    q = rng.uniform(robot.q_min, robot.q_max, (count, 6))
    q[:8, 4], q[8:16, 4] = 0.0, 1e-8
    q[16:24, 2] = -np.pi / 2
    q[20:24, 4] = 0.0
    q[24:30] = np.where(rng.uniform(size=(6, 6)) < 0.5, robot.q_max, q[24:30])
    return q, twin.forward_kinematics(robot, q, T_TOOL)


def test_poses_are_met_to_round_off_singular_or_not(robot):
    q, T = awkward_poses(robot, np.random.default_rng(3), 60)
    found = numerical_inverse_kinematics(robot, T, T_flange_tool=T_TOOL)
    assert within(robot, found)
    assert missed(robot, found, T, T_TOOL) < 2e-15
    assert np.max(np.abs(found - q)) > 1  # from the middle of the ranges other solutions are found as well


def test_a_parallelogram_is_not_folded():
    robot = twin.load("irb1400")
    rng = np.random.default_rng(6)
    q = rng.uniform(robot.q_min, robot.q_max, (60, 6))
    angles = robot.passive_angles(q)
    q = q[np.all((angles >= robot.passive_min) & (angles <= robot.passive_max), axis=-1)]
    assert len(q) > 15
    T = twin.forward_kinematics(robot, q)
    found = numerical_inverse_kinematics(robot, T)
    assert missed(robot, found, T) < 2e-15
    assert within(robot, found)
    angles = robot.passive_angles(found)
    assert np.all((angles >= robot.passive_min) & (angles <= robot.passive_max))
    folded = np.deg2rad([10.0, -60, 40, 20, 30, 40])
    assert within(robot, folded)
    T = twin.forward_kinematics(robot, folded)
    assert missed(robot, numerical_inverse_kinematics(robot, T, near=folded, limits=False), T) < 2e-15
    assert np.all(np.isnan(twin.inverse_kinematics(robot, T)))
    with pytest.raises(UnreachableError):
        numerical_inverse_kinematics(robot, T, near=folded, restarts=5)


@pytest.mark.parametrize("name", ["youbot", "seven"])
def test_arms_without_a_closed_form_are_solved(name):
    robot = laboratory_arm(name)
    q = np.random.default_rng(7).uniform(-2.5, 2.5, (6, robot.n))
    T = twin.forward_kinematics(robot, q, T_TOOL)
    found = numerical_inverse_kinematics(robot, T, T_flange_tool=T_TOOL)
    assert missed(robot, found, T, T_TOOL) < 4e-15
    assert within(robot, found)


def test_solutions_with_joints_at_their_limits_are_found_from_nearby(load):
    """Where a joint on its limit were not held there, a fifth of these would not be."""
    robot = load(urdf_of(SEVEN).replace('lower="-10" upper="10"', 'lower="-1.5" upper="1.5"'))
    rng = np.random.default_rng(10)
    q = rng.uniform(-1.5, 1.5, (20, 7))
    q = np.where(rng.uniform(size=q.shape) < 0.4, np.where(rng.uniform(size=q.shape) < 0.5, -1.5, 1.5), q)
    reached = 0
    for T, start in zip(twin.forward_kinematics(robot, q), q + rng.normal(size=q.shape) * 0.2, strict=True):
        try:
            found = numerical_inverse_kinematics(robot, T, near=start, restarts=0)
        except UnreachableError:
            continue
        assert within(robot, found)
        assert missed(robot, found, T) < 1e-12
        reached += 1
    assert reached >= 18


@pytest.mark.parametrize("seed", range(2))
def test_random_trees_with_prismatic_joints(load, seed):
    rng = np.random.default_rng(seed)
    robot = load(random_urdf(rng, 7))
    carriers = robot.tree.carriers(robot.tree.flange_joint)
    q = rng.uniform(-1, 1, robot.n)
    T = twin.forward_kinematics(robot, q)
    found = numerical_inverse_kinematics(robot, T, near=q + 0.1)
    assert missed(robot, found, T) < 2e-14
    idle = np.setdiff1d(np.arange(robot.n), carriers)
    np.testing.assert_allclose(found[idle], (q + 0.1)[idle], rtol=0, atol=1e-15)  # not the tool's carriers


def test_limits_hold_and_without_them_the_pose_is_reached(robot):
    q = np.deg2rad([10.0, 20, -30, 40, 118.0, 50])  # axis 5 has +-115 degrees
    T = twin.forward_kinematics(robot, q)
    assert np.all(np.isnan(twin.inverse_kinematics(robot, T)))
    message = r"of 4 starts the best comes within \S+ m and \S+ deg, with .*joint_5.* at a limit"
    with pytest.raises(UnreachableError, match=message):
        numerical_inverse_kinematics(robot, T, near=q, restarts=3)
    free = numerical_inverse_kinematics(robot, T, near=q, limits=False)
    np.testing.assert_allclose(free, q, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", ["irb1400"])
def test_a_pose_has_the_same_solution_in_any_company(name):
    """To the bit: some are found at once, others after restarts, which the first leave to them."""
    robot = twin.load(name)
    rng = np.random.default_rng(11)
    low, high = np.maximum(robot.q_min, -np.pi), np.minimum(robot.q_max, np.pi)
    q = rng.uniform(low, high, (20, robot.n))
    angles = robot.passive_angles(q)
    q = q[np.all((angles >= robot.passive_min) & (angles <= robot.passive_max), axis=-1)]
    T = twin.forward_kinematics(robot, q)
    near = rng.uniform(low, high, q.shape)
    near[::3] = q[::3] + rng.normal(size=q[::3].shape) * 0.02
    found = numerical_inverse_kinematics(robot, T, near=near)
    assert missed(robot, found, T) < 2e-15
    at_once = []
    for sample in range(len(q)):
        alone = numerical_inverse_kinematics(robot, T[sample], near=near[sample])
        np.testing.assert_array_equal(alone, found[sample])
        try:
            first = numerical_inverse_kinematics(robot, T[sample], near=near[sample], restarts=0)
        except UnreachableError:
            continue
        np.testing.assert_array_equal(first, found[sample])
        at_once.append(sample)
    assert 0 < len(at_once) < len(q)
    other = numerical_inverse_kinematics(robot, T, near=near, seed=1)
    assert np.any(np.abs(other - found) > 0.1)


def test_the_first_pose_out_of_reach_is_named_with_the_nearest_pose(robot):
    q = np.random.default_rng(12).uniform(-1, 1, (2, 3, 6))
    T = twin.forward_kinematics(robot, q)
    T[0, 2, :, 3] = T[1, 1, :, 3] = 2.0, 0.0, 0.352, 1.0  # 2 m from axis 1 at the height of axis 2
    named = r"^sample \[0, 2\]: no joint angles found .* x = 2 m, y = 0 m, z = 0\.352 m: of 3 starts the best"
    with pytest.raises(UnreachableError, match=named):
        numerical_inverse_kinematics(robot, T, near=q, restarts=2)
    with pytest.raises(UnreachableError) as alone:
        numerical_inverse_kinematics(robot, T[0, 2], near=q[0, 2], restarts=2)
    distance = float(re.search(r"within (\S+) m", str(alone.value)).group(1))
    assert "millimetres" not in str(alone.value)
    in_mm = twin.forward_kinematics(robot, q[0, 0])
    in_mm[:3, 3] *= 1e3
    with pytest.raises(UnreachableError, match=r"; are these millimetres\?$"):
        numerical_inverse_kinematics(robot, in_mm, restarts=0)
    assert 1.1 <= distance < 1.4  # 0.81 m is what the wrist reaches, and the tool 0.065 m more
    with pytest.raises(UnreachableError, match=re.escape(f"sample [2]: {alone.value}")):
        numerical_inverse_kinematics(robot, T[0], near=q[0], restarts=2)
    with pytest.raises(UnreachableError, match=r"^sample \[1\]: "):  # one pose, several starts
        numerical_inverse_kinematics(robot, T[0, 0], near=[q[0, 0], q[0, 0] + 2.0], restarts=0)


def test_misuse_of_the_numerical_solution_is_one_clear_sentence(robot):
    unit = np.eye(4)

    def solved(T=unit, **changed):
        return lambda: numerical_inverse_kinematics(robot, T, **changed)

    refused(
        (solved(np.eye(3)), "expected T_base_tool of shape (..., 4, 4), got (3, 3)"),
        (solved([np.eye(4), np.eye(4) * (1 + 1e-8)]), "expected T_base_tool[1] to be rigid"),
        (solved(restarts=-1), "expected restarts of at least 0"),
        (solved(tolerance=np.nan), "a tolerance above 0, got 50, nan"),
    )

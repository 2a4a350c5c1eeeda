"""Inverse kinematics as it is called: published results, limits, representatives, `near`, shapes, misuse."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from scenarios.checks.motion_range import beyond_passive_range
from tests.support.dh_arms import TURN, geometry, pose_errors, random_poses_of
from tests.support.refusals import refused
from twin.kinematics.forward import forward_kinematics
from twin.kinematics.inverse import inverse_kinematics
from twin.rotations.rotations import pose_matrix


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


def test_the_principal_value_of_a_half_turn_is_positive(robot):
    T = np.diag([1.0, -1.0, -1.0, 1.0])
    for y in (0.0, -0.0):  # atan2 gives pi for the one and -pi for the other
        T[:3, 3] = (-0.45, y, 0.4)
        assert np.all(inverse_kinematics(robot, T, limits=False)[:4, 0] == np.pi)


def test_near_brings_back_the_joint_angles_themselves_any_number_of_turns_away(arm):
    q, T = random_poses_of(arm, np.random.default_rng(9), 5000)
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
    np.testing.assert_array_equal(inverse_kinematics(robot, T[3].tolist()), flat[3])
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

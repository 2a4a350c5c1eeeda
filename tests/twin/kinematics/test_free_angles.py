"""Angles that a singularity leaves free: chosen so that the rest keeps its limits, and not from noise."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from scenarios.judging.motion_range import beyond_passive_range
from tests.support.dh_arms import geometry, pose_errors, random_poses_of
from twin.kinematics.forward import forward_kinematics
from twin.kinematics.inverse import inverse_kinematics

TURN = np.deg2rad(100)


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
    ends = (np.append(limits[:5], end) for limits, end in ((robot.q_min, -TURN), (robot.q_max, TURN)))
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

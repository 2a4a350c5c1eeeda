"""Inverse kinematics as it is called: published results, limits, representatives, `near`, shapes, misuse."""

import itertools
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from scenarios.checks.motion_range import beyond_passive_range
from tests.support.dh_arms import TURN, distance_mod_turn, geometry, pose_errors, random_poses_of
from twin.kinematics.forward import forward_kinematics
from twin.kinematics.inverse import inverse_kinematics
from twin.rotations.rotations import pose_matrix


def test_the_printed_results_of_the_thesis(robot):
    """Aliaga 2019, section 3.1.4: fsolve's results, exact to about 2e-9 degrees."""
    printed = {
        "test_1": "28.789999998961303 -34.07000000078503 19.540000000894274 "
        "7.620000001600972 38.930000000019035 56.379999998312144",
        "test_2": "-79.5600000000176 -95.3067957443123 -35.7399999982214 "
        "82.6735661715858 71.6844008779341 -115.1240977575642",
        "test_3": "-16.1499999999874 34.6399999999286 -9.1099999998241 "
        "-66.8899999998916 -46.5300000000301 107.329999999854",
    }
    poses = {  # of test 2 the thesis prints no pose: it is that of its joint angles
        "test_1": "0.256169020979862 0.146951811198975 0.71904173343258 "
        "0.355266700974361 0.220219321995462 0.809549214980808 0.412212433003434",
        "test_3": "0.651650430407853 -0.143535605813641 0.481847014812847 "
        "0.542604000206256 0.158528784053503 0.703280404944469 0.431098823482308",
    }
    found = {}
    for name, q_deg in printed.items():
        T = (
            pose_matrix(np.array(poses[name].split(), float))
            if name in poses
            else forward_kinematics(robot, robot.poses[name])
        )
        for limits in (False, True):
            distance = distance_mod_turn(
                inverse_kinematics(robot, T, limits=limits), np.deg2rad(np.array(q_deg.split(), float))
            )
            found[name, limits] = np.rad2deg(np.nanmin(distance)) <= 5e-9
    assert all(found[name, False] for name in printed)
    # The printed result of test 2 has q2 = -95.3 degrees, beyond the limit of -90.
    assert [name for name in printed if not found[name, True]] == ["test_2"]


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


def test_near_brings_back_the_joint_angles_themselves(arm):
    q, T = random_poses_of(arm, np.random.default_rng(9), 5000)
    regular = np.min(np.abs(geometry(arm, q)), axis=0) > 1e-3
    np.testing.assert_allclose(inverse_kinematics(arm, T, near=q)[regular], q[regular], rtol=0, atol=1e-8)
    far = q + TURN * np.array([3, 0, -2, 5, 0, -7])
    unlimited = inverse_kinematics(arm, T, near=far, limits=False)
    np.testing.assert_allclose(unlimited[regular], far[regular], rtol=0, atol=1e-8)


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


def test_a_tool(robot):
    rng = np.random.default_rng(11)
    tool = pose_matrix([0.1, -0.2, 0.35, 0.5, 0.5, -0.5, 0.5])
    q = rng.uniform(robot.q_min, robot.q_max, (500, 6))
    T = forward_kinematics(robot, q, tool)
    with_tool = inverse_kinematics(robot, T, T_flange_tool=tool)
    assert np.max(pose_errors(robot, with_tool, T, lambda arm, q: forward_kinematics(arm, q, tool))) <= 1e-12
    assert np.all(np.any(~np.isnan(with_tool[..., 0]), axis=-1))


def test_out_of_reach_is_nan(robot):
    for position in ((2.0, 0, 0.5), (0, 0, -3.0), (0.07, 0, 0.352 + 0.065)):  # the last: too near to axis 2
        T = np.eye(4)
        T[:3, 3] = position
        rows = inverse_kinematics(robot, T, limits=False)
        assert rows.shape == (8, 6)
        assert np.all(np.isnan(rows[:4]))
        assert np.all(np.isnan(inverse_kinematics(robot, T, near=np.zeros(6))))


def test_shapes(robot):
    rng = np.random.default_rng(12)
    q, T = random_poses_of(robot, rng, 6)
    flat, batch = inverse_kinematics(robot, T), inverse_kinematics(robot, T.reshape(2, 3, 4, 4))
    np.testing.assert_array_equal(batch.reshape(6, 8, 6), flat)
    np.testing.assert_array_equal(inverse_kinematics(robot, T[3].tolist()), flat[3])
    np.testing.assert_array_equal(inverse_kinematics(robot, np.asfortranarray(T)), flat)
    assert inverse_kinematics(robot, np.empty((0, 4, 4))).shape == (0, 8, 6)
    near = rng.uniform(-1, 1, (5, 1, 6))
    both = inverse_kinematics(robot, T, near=near)
    assert both.shape == (5, 6, 6)
    np.testing.assert_array_equal(both[2, 4], inverse_kinematics(robot, T[4], near=near[2, 0]))
    assert inverse_kinematics(robot, T[0], near=near[:, 0]).shape == (5, 6)
    before = T.copy()
    inverse_kinematics(robot, T, near=q)
    np.testing.assert_array_equal(T, before)


def spoilt(change):
    T = np.zeros((3, 4, 4)) + np.eye(4)
    change(T[1])
    return T


@pytest.mark.parametrize(
    ("T", "message"),
    [
        (np.eye(3), "expected T_base_tool of shape (..., 4, 4), got (3, 3)"),
        (np.zeros(7), "expected T_base_tool of shape (..., 4, 4), got (7,)"),
        (
            spoilt(lambda T: T.__setitem__((0, 3), np.nan)),
            "expected T_base_tool to be finite, got nan at [1, 0, 3]",
        ),
        (
            spoilt(lambda T: T.__setitem__((2, 1), np.inf)),
            "expected T_base_tool to be finite, got inf at [1, 2, 1]",
        ),
        (spoilt(lambda T: T.__imul__(1 + 1e-8)), "expected T_base_tool[1] to be rigid within 1e-09"),
        (spoilt(lambda T: T.__setitem__((0, 0), -1.0)), "right-handed"),
        (spoilt(lambda T: T.__setitem__((0, 1), 1e-8)), "expected T_base_tool[1] to be rigid within 1e-09"),
        (spoilt(lambda T: T.__setitem__((3, 0), 1e-8)), "last row 0 0 0 1), got a deviation of 1e-08"),
        (np.zeros((4, 4)), "expected T_base_tool to be rigid within 1e-09"),
    ],
)
def test_a_pose_that_is_none_is_refused(robot, T, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        inverse_kinematics(robot, T)


def test_rotations_rounded_within_the_tolerance_are_accepted(robot):
    q = robot.poses["test_1"]
    T = np.round(forward_kinematics(robot, q), 10)
    np.testing.assert_allclose(inverse_kinematics(robot, T, near=q), q, rtol=0, atol=1e-8)


def test_a_wrong_near_or_tool_is_refused(robot):
    T = np.eye(4)
    with pytest.raises(ValueError, match=re.escape("expected near of shape (..., 6), got (5,)")):
        inverse_kinematics(robot, T, near=np.zeros(5))
    with pytest.raises(ValueError, match="expected near to be finite"):
        inverse_kinematics(robot, T, near=[0, 0, np.nan, 0, 0, 0])
    with pytest.raises(ValueError, match="expected T_flange_tool"):
        inverse_kinematics(robot, T, T_flange_tool=2 * np.eye(4))


def test_without_compilation_the_result_is_the_same(robot, tmp_path):
    q, T = random_poses_of(robot, np.random.default_rng(13), 20)
    T[0] = forward_kinematics(robot, np.zeros(6))  # wrist singular
    np.savez(tmp_path / "poses.npz", q=q, T=T)
    script = (
        "import numpy as np, sys; from twin import load; from twin.kinematics.inverse import *;"
        "data = np.load(sys.argv[1] + '/poses.npz'); robot = load('irb140');"
        "np.savez(sys.argv[1] + '/out.npz', rows=inverse_kinematics(robot, data['T']),"
        " near=inverse_kinematics(robot, data['T'], near=data['q']))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-W", "error", "-c", script, str(tmp_path)], env=environment, check=True)
    plain = np.load(tmp_path / "out.npz")
    np.testing.assert_allclose(plain["rows"], inverse_kinematics(robot, T), rtol=0, atol=1e-12)
    np.testing.assert_allclose(plain["near"], inverse_kinematics(robot, T, near=q), rtol=0, atol=1e-12)

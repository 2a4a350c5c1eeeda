"""Numerical inverse kinematics: poses met to round-off, singular ones too, limits held, failures told."""

import re

import numpy as np
import pytest

import twin
from tests.support.dh_arms import T_TOOL
from tests.support.laboratory_arms import SEVEN, laboratory_arm, urdf_of
from tests.support.random_trees import random_urdf
from tests.support.refusals import refused
from twin.base.errors import UnreachableError
from twin.physics.kinematics.inverse import numerical_inverse_kinematics


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


def test_misuse_is_one_clear_sentence(robot):
    unit = np.eye(4)

    def solved(T=unit, **changed):
        return lambda: numerical_inverse_kinematics(robot, T, **changed)

    refused(
        (solved(np.eye(3)), "expected T_base_tool of shape (..., 4, 4), got (3, 3)"),
        (solved([np.eye(4), np.eye(4) * (1 + 1e-8)]), "expected T_base_tool[1] to be rigid"),
        (solved(restarts=-1), "expected restarts of at least 0"),
        (solved(tolerance=np.nan), "a tolerance above 0, got 50, nan"),
    )

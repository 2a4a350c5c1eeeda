"""The limit between the arms of the IRB 1400, in its inverse kinematics and in paths of its tool.

Rod and lever fall into line, and the parallelogram folds flat, where q2 - q3 is 90 degrees: |q3 - q2| stays
within 75 degrees, which the range of the passive joints says.
"""

from dataclasses import replace

import numpy as np
import pytest

import twin
from scenarios.judging.motion_range import beyond_passive_range
from tests.support.dh_arms import distance_mod_turn, geometry, pose_errors, random_poses_of
from twin.base.errors import LimitError
from twin.physics.rotations.rotations import matrix_from_quaternion
from twin.physics.trajectories.joint_paths import joint_path
from twin.physics.trajectories.tool_paths import through_poses

FOLD = np.deg2rad(75.0)
DOWN = matrix_from_quaternion([0.0, 1.0, 0.0, 0.0])


@pytest.fixture(scope="module")
def without_fold(irb1400):
    """Return the robot with only the ranges of its driven joints."""
    endless = np.full(len(irb1400.passive), np.inf)
    return replace(irb1400, passive_min=-endless, passive_max=endless)


def test_no_solution_of_1000_poses_folds_the_parallelogram(irb1400, without_fold):
    """Also of poses that fold it in one solution, and can be reached by another."""
    q, _ = random_poses_of(without_fold, np.random.default_rng(20), 1000)
    T = twin.forward_kinematics(irb1400, q)
    solutions = twin.inverse_kinematics(irb1400, T)
    assert np.max(pose_errors(irb1400, solutions, T, twin.forward_kinematics)) <= 1e-12
    there = solutions[~np.isnan(solutions[..., 0])]
    assert len(there) > 1000
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

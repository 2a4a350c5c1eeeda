"""The two stages of inverse kinematics: together they are the whole, and what they do at singularities."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import twin
from tests.support.dh_arms import TURN, dh_frames, random_poses_of
from tests.support.refusals import refused
from twin.errors import RobotError
from twin.kinematics import dh_from_joint_angles, main_axis_angles, wrist_axis_angles

HALF = np.pi / 2


def wrist_centre(robot, T):
    return T[..., :3, 3] - robot.dh.d[5] * T[..., :3, 2]


def test_both_stages_are_the_whole(arm):
    _, T = random_poses_of(arm, np.random.default_rng(50), 2000)
    whole = dh_from_joint_angles(arm, np.nan_to_num(twin.inverse_kinematics(arm, T, limits=False), nan=9.0))
    main_axes = main_axis_angles(arm, wrist_centre(arm, T))
    assert main_axes.shape == (2000, 4, 3)
    reached = ~np.isnan(main_axes[..., 0])
    np.testing.assert_array_equal(reached, ~np.isnan(main_axes[..., 2]))
    assert reached.sum() > 4000
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
        (lambda r: main_axis_angles(r, [1.0, 2.0]), "expected p_wrist of shape (..., 3), got (2,)"),
        (lambda r: main_axis_angles(r, [[0, np.nan, 1]]), "expected p_wrist to be finite, got nan at [0, 1]"),
        (lambda r: wrist_axis_angles(r, np.eye(4)[:3]), "expected R_36 of shape (..., 3, 3), got (3, 4)"),
        (lambda r: wrist_axis_angles(r, nearly), "expected R_36[1] to be rigid within 1e-09"),
        given=(irb1400,),
    )


def test_one_or_many_and_rows_out_of_reach_are_nan(irb1400):
    p_wrist = np.array([[[0.5, 0.3, 0.8], [0.8, 0.1, 0.4]], [[2.0, 0.0, 0.5], [1.3, 0.0, 0.8]]])
    R_36 = Rotation.random(4, np.random.default_rng(52)).as_matrix().reshape(2, 2, 3, 3)
    theta, (wrist, s) = main_axis_angles(irb1400, p_wrist), wrist_axis_angles(irb1400, R_36)
    assert (theta.shape, wrist.shape, s.shape) == ((2, 2, 4, 3), (2, 2, 2, 3), (2, 2, 2))
    np.testing.assert_array_equal(main_axis_angles(irb1400, p_wrist[0, 1].tolist()), theta[0, 1])
    np.testing.assert_array_equal(wrist_axis_angles(irb1400, R_36[1, 1].tolist())[0], wrist[1, 1])
    assert main_axis_angles(irb1400, np.empty((0, 3))).shape == (0, 4, 3)
    assert np.all(np.isnan(theta[1, 0]))
    np.testing.assert_array_equal(np.isnan(theta[1, 1]), np.repeat([[0, 0, 1, 1]], 3, axis=0).T == 1)

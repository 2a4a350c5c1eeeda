"""The frames of a Denavit-Hartenberg table, against a product of elementary transforms and the tree."""

import re

import numpy as np
import pytest

from tests.support.dh_arms import dh_frames
from twin.kinematics.forward import dh_from_joint_angles, forward_kinematics
from twin.robot.robot import DH, dh_poses, dh_transforms


def random_table(rng, n=6):
    return DH(rng.normal(size=n), rng.normal(size=n), rng.normal(size=n), rng.uniform(-np.pi, np.pi, n))


def test_every_frame_is_the_product_of_elementary_transforms():
    rng = np.random.default_rng(0)
    for _ in range(20):
        dh, theta = random_table(rng), rng.uniform(-np.pi, np.pi, (3, 4, 6))
        poses, expected = dh_poses(dh, theta), np.stack(dh_frames(dh, theta), axis=-3)
        np.testing.assert_allclose(poses, expected, rtol=0, atol=1e-14)
        row = dh_transforms(dh, theta)
        np.testing.assert_array_equal(row[..., 0, :, :], poses[..., 0, :, :])
        product = poses[..., 2, :, :] @ row[..., 3, :, :]
        np.testing.assert_allclose(product, expected[..., 3, :, :], rtol=0, atol=1e-14)


def test_the_last_frame_is_the_flange_of_the_tree(arm):
    q = np.random.default_rng(1).uniform(-1, 1, (100, 6))
    last = dh_poses(arm.dh, dh_from_joint_angles(arm, q))[:, -1]
    np.testing.assert_allclose(last, forward_kinematics(arm, q), rtol=0, atol=1e-14)


def test_a_joint_that_slides_moves_along_the_axis_before_it():
    rng = np.random.default_rng(2)
    dh, theta = random_table(rng), rng.uniform(-np.pi, np.pi, 6)
    stroke = np.zeros((5, 6))
    stroke[:, 3] = np.linspace(-1, 1, 5)
    moved = dh_poses(dh._replace(d=dh.d + stroke), theta)
    still = dh_poses(dh, theta)
    np.testing.assert_array_equal(moved[:, :3], np.broadcast_to(still[:3], (5, 3, 4, 4)))
    z = still[2, :3, 2]
    shift = (moved - still)[:, 3:, :3, 3]
    np.testing.assert_allclose(
        shift, np.broadcast_to(stroke[:, 3, None, None] * z, (5, 3, 3)), rtol=0, atol=1e-14
    )
    np.testing.assert_allclose(
        moved[:, :, :3, :3], np.broadcast_to(still[:, :3, :3], (5, 6, 3, 3)), rtol=0, atol=0
    )


def test_a_wrong_number_of_angles_is_refused():
    with pytest.raises(ValueError, match=re.escape("expected theta of shape (..., 6), got (5,)")):
        dh_poses(random_table(np.random.default_rng(3)), np.zeros(5))

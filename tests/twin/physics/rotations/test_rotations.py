"""Rotations: exact near the identity and near a half turn, group laws, rates."""

import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import twin
from tests.published.norrlof.rotations import printed_matrix
from tests.support.refusals import refused
from twin.physics.rotations.rotations import (
    continuous_quaternions,
    matrix_from_quaternion,
    pose_matrix,
    pose_vector,
    quaternion_by_largest_axis,
    quaternion_from_matrix,
    quaternion_from_polar,
    quaternion_inverse,
    quaternion_polar,
    quaternion_rate,
    rigid_poses,
    rigidity_error,
    rotated_vector,
)

SMALL = (0.0, 1e-16, 1e-15, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)


def random_axes(rng, count):
    axes = rng.normal(size=(count, 3))
    axes[: count // 4] *= rng.uniform(size=(count // 4, 3)) < 0.5  # coordinate planes and axes too
    axes[np.all(axes == 0, axis=1)] = (0.0, 0.0, 1.0)
    return axes / np.linalg.norm(axes, axis=1, keepdims=True)


def half_angle_quaternions(axes, cosine, sine):
    return np.concatenate([np.full((len(axes), 1), cosine), sine * axes], axis=1)


def products_matrix(quat):
    """R written out from the definition, v -> quat v conj(quat): independent of scipy and of the module."""
    a, b, c, d = np.moveaxis(quat, -1, 0)
    rows = [
        [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
        [2 * (b * c + a * d), a * a - b * b + c * c - d * d, 2 * (c * d - a * b)],
        [2 * (b * d - a * c), 2 * (c * d + a * b), a * a - b * b - c * c + d * d],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


HALVES = [(np.cos(a / 2), np.sin(a / 2)) for a in (*SMALL, 1.0, 2 * np.pi / 3, 2.5)]
HALVES += [(sine, cosine) for cosine, sine in HALVES[: len(SMALL)]]
"""Cosines and sines of half of the angles near 0, between, and near a half turn."""


@pytest.mark.parametrize("conversion", [quaternion_from_matrix, quaternion_by_largest_axis])
def test_a_rotation_by_any_angle_keeps_every_digit(conversion):
    axes = random_axes(np.random.default_rng(0), 400)
    for cosine, sine in HALVES:
        quat = half_angle_quaternions(axes, cosine, sine)
        R = products_matrix(quat)
        np.testing.assert_allclose(printed_matrix(quat), R, rtol=0, atol=1e-15)
        found = conversion(R)
        # Within rounding of a half turn either sign is the right one.
        same = np.sign(np.sum(found * quat, axis=1, keepdims=True)) if cosine < 1e-15 else 1.0
        np.testing.assert_allclose(found * same, quat, rtol=0, atol=1e-15)
        np.testing.assert_allclose(matrix_from_quaternion(found), R, rtol=0, atol=2e-15)
        assert np.all(found[:, 0] >= 0)
    rotations = Rotation.random(5000, np.random.default_rng(2))
    expected = rotations.as_quat(canonical=True)[:, [3, 0, 1, 2]]
    np.testing.assert_allclose(conversion(rotations.as_matrix()), expected, rtol=0, atol=1e-15)
    np.testing.assert_allclose(matrix_from_quaternion(-expected), rotations.as_matrix(), rtol=0, atol=2e-15)
    assert np.all(np.isnan(conversion(np.full((3, 3), np.nan))))


@pytest.mark.parametrize("conversion", [quaternion_from_matrix, quaternion_by_largest_axis])
def test_at_a_half_turn_the_largest_component_is_positive_of_two_equals_the_first(conversion):
    for n in (*np.eye(3), (-1 / 3, 2 / 3, -2 / 3), (0.6, 0, -0.8), (-0.48, 0.6, -0.64), (0, -1, 0)):
        R = 2 * np.outer(n, n) - np.eye(3)  # symmetric to the last bit, hence a = 0
        expected = np.sign(n[np.argmax(np.abs(n))]) * np.array([0, *n])
        np.testing.assert_allclose(conversion(R), expected, rtol=0, atol=1e-15)


def test_continuous_quaternions_never_jump_and_stay_the_same_rotations():
    t = np.linspace(0, 8 * np.pi, 400)
    smooth = half_angle_quaternions(np.array([[0.6, 0.0, 0.8]]), 0.0, 1.0) * np.sin(t)[:, None]
    smooth[:, 0] = np.cos(t)
    folded = quaternion_from_matrix(matrix_from_quaternion(smooth))
    assert np.sum(np.linalg.norm(np.diff(folded, axis=0), axis=1) > 1) == 8
    np.testing.assert_allclose(continuous_quaternions(folded), smooth, rtol=0, atol=1e-15)
    flipped = continuous_quaternions(-smooth)
    np.testing.assert_array_equal(flipped[0], -smooth[0])
    assert continuous_quaternions(np.empty((0, 4))).shape == (0, 4)


def test_quaternion_rate_is_the_derivative_for_an_angular_velocity_in_the_base_frame():
    rng = np.random.default_rng(4)
    R = Rotation.random(50, rng)
    omega = rng.normal(size=(50, 3))
    quat = quaternion_from_matrix(R.as_matrix())
    h = 1e-5
    ahead, behind = ((Rotation.from_rotvec(s * h * omega) * R).as_matrix() for s in (1, -1))
    differences = (quaternion_from_matrix(ahead) - quaternion_from_matrix(behind)) / (2 * h)
    np.testing.assert_allclose(quaternion_rate(quat, omega), differences, rtol=0, atol=1e-9)
    # A unit quaternion stays one, and the rate is odd in quat: both covers of the rotation move alike.
    np.testing.assert_allclose(np.sum(quaternion_rate(quat, omega) * quat, axis=1), 0, atol=1e-15)
    np.testing.assert_array_equal(quaternion_rate(-quat, omega), -quaternion_rate(quat, omega))


def test_pose_vectors_and_matrices_are_inverse_in_any_batch_shape():
    rng = np.random.default_rng(5)
    quat = quaternion_from_matrix(Rotation.random(24, rng).as_matrix())
    pose = np.concatenate([rng.normal(size=(24, 3)), quat], axis=1).reshape(2, 3, 4, 7)
    T = pose_matrix(pose)
    assert T.shape == (2, 3, 4, 4, 4)
    np.testing.assert_array_equal(T[..., 3, :], np.broadcast_to([0, 0, 0, 1], (2, 3, 4, 4)))
    np.testing.assert_allclose(pose_vector(T), pose, rtol=0, atol=1e-15)
    assert pose_matrix(np.empty((0, 7))).shape == (0, 4, 4)


def test_a_printed_quaternion_is_normalised_and_a_wrong_one_refused():
    quat = np.array([0.27029422076516885, -0.5842193219534629, 0.020946045331934296, -0.7649771769550636])
    R = matrix_from_quaternion(np.round(quat, 9))
    np.testing.assert_allclose(R @ R.T, np.eye(3), rtol=0, atol=1e-15)
    np.testing.assert_allclose(R, products_matrix(quat[None])[0], rtol=0, atol=4e-9)
    for wrong in (quat * 1.00001, quat * 0, quat * np.nan):
        with pytest.raises(ValueError, match="expected unit quaternions"):
            matrix_from_quaternion(wrong)


def test_rigidity_error_is_the_distance_to_the_nearest_rigid_pose():
    """The stretch of a polar decomposition is what is left of the nearest rotation."""
    rng = np.random.default_rng(6)
    T = np.zeros((200, 4, 4)) + np.eye(4)
    T[:, :3, :3], T[:, :3, 3] = Rotation.random(200, rng).as_matrix(), rng.normal(size=(200, 3))
    entries = np.moveaxis(T, 0, -1)
    assert np.max(rigidity_error(entries)) < 1e-15
    stretch = rng.normal(size=(200, 3, 3)) * 1e-6
    stretch += np.swapaxes(stretch, 1, 2)
    T[:, :3, :3] = (np.eye(3) + stretch) @ T[:, :3, :3]
    np.testing.assert_allclose(rigidity_error(entries), np.abs(stretch).max(axis=(1, 2)), rtol=1e-4)
    T[:, :3, 0] *= -1.0
    np.testing.assert_allclose(rigidity_error(entries), 2.0, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("row", "column"), [(2, 1), (1, 3), (3, 0)])
def test_every_number_of_a_pose_is_looked_at(row, column):
    T = np.zeros((2, 3, 4, 4)) + np.eye(4)
    T[1, 2, :3, 3] = 5.0, -2.0, 1e3
    assert rigid_poses(T, "T_A").shape == (2, 3, 4, 4)
    for value in (np.nan, np.inf, -np.inf):
        T[1, 0, row, column] = value
        with pytest.raises(ValueError, match=re.escape(f"got {value} at [1, 0, {row}, {column}]")):
            rigid_poses(T, "T_A")
        with np.errstate(invalid="ignore"):
            assert not rigidity_error(T[1, 0]) < np.inf
    T[1, 0, row, column] = 1e200
    if column < 3:
        with pytest.raises(ValueError, match=re.escape("expected T_A[1, 0] to be rigid within 1e-09")):
            rigid_poses(T, "T_A")


def test_misuse_is_one_clear_sentence():
    four = np.ones(4)
    refused(
        (lambda: matrix_from_quaternion(np.ones(3)), "expected quat of shape (..., 4), got (3,)"),
        (lambda: continuous_quaternions(four), "expected quats of shape (N, 4), got (4,)"),
        (lambda: quaternion_rate(four, four), "expected omega of shape (..., 3), got (4,)"),
        (lambda: quaternion_inverse([0, 0, 0, 0]), "quaternions that have an inverse, got one of norm 0"),
        (lambda: rotated_vector([1, 1, 0, 0], [1, 2, 3]), "expected unit quaternions (norm 1 within 1e-06)"),
        (lambda: quaternion_from_polar(1, [1, 2], 0), "expected k of shape (..., 3), got (2,)"),
    )


def test_nearest_rotation_removes_the_rounding_of_typed_matrices():
    R = twin.rotations.matrix_from_euler(np.random.default_rng(0).uniform(-1, 1, (20, 3)), "zyx")
    found = twin.rotations.nearest_rotation(np.round(R, 4))
    np.testing.assert_allclose(found @ np.swapaxes(found, -1, -2), np.tile(np.eye(3), (20, 1, 1)), atol=1e-15)
    np.testing.assert_allclose(found, R, rtol=0, atol=1e-4)
    T = np.eye(4)
    T[:3, :3] = np.round(R[0], 4)
    with pytest.raises(ValueError, match=r"nearest_rotation removes rounding"):
        twin.pose_vector(T)
    nearest = twin.rotations.nearest_rotation
    refused(
        (lambda: nearest(np.diag([1.0, 1.0, -1.0])), "its determinant is negative"),
        (lambda: nearest(1.01 * np.eye(3)), "expected A within 0.001 of a rotation, got a deviation of 0.01"),
        (lambda: nearest(np.full((3, 3), np.nan)), "expected A to be finite"),
    )


# Quaternions of rotations of every size; their algebra and Norrlöf's misprints are in tests/published.


def test_batches_of_any_shape_and_real_numbers_have_the_z_axis():
    r, k, phi = quaternion_polar([(2.0, 0, 0, 0), (-3.0, 0, 0, 0), (0.0, 0, 0, 0)])
    np.testing.assert_array_equal(
        np.column_stack([r, phi, k]), [[2, 0, 0, 0, 1], [3, np.pi, 0, 0, 1], [0, 0, 0, 0, 1]]
    )
    assert np.all(np.isnan(quaternion_polar(np.full(4, np.nan)).k))
    q = np.random.default_rng(0).normal(size=(2, 3, 4, 4))
    r, k, phi = quaternion_polar(q)
    np.testing.assert_allclose(quaternion_from_polar(r, k, phi), q, rtol=0, atol=5e-15)

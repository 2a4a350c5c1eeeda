"""Quaternions of rotations of every size; their algebra and Norrlöf's misprints are in tests/published."""

import numpy as np
import pytest

from tests.published.norrlof.rotations import printed_matrix
from tests.support.refusals import refused
from twin.rotations.quaternions import (
    quaternion_by_largest_axis,
    quaternion_conjugate,
    quaternion_from_polar,
    quaternion_inverse,
    quaternion_polar,
    rotated_vector,
)
from twin.rotations.rotations import (
    matrix_from_quaternion,
    quaternion_from_matrix,
    unit_quaternion,
)

NEAR = (0.0, 1e-16, 1e-12, 1e-8, 1e-6, 1e-3)


def turns(angle, seed=1):
    """Unit quaternions of turns by `angle` about random axes, coordinate axes and planes among them."""
    axes = np.random.default_rng(seed).normal(size=(400, 3))
    axes[:150] *= np.random.default_rng(seed).uniform(size=(150, 3)) < 0.5
    axes = axes[np.any(axes != 0, axis=1)]
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    return np.concatenate([np.full((len(axes), 1), np.cos(angle / 2)), np.sin(angle / 2) * axes], axis=1)


@pytest.mark.parametrize("angle", [*NEAR, 1.0, 2 * np.pi / 3, 2.5, *(np.pi - d for d in NEAR)])
def test_both_conversions_from_a_matrix_agree(angle):
    quat = turns(angle)
    R = printed_matrix(quat)  # Norrlöf 1999, eq. (2.15), term by term
    found = quaternion_by_largest_axis(R)
    same = np.sign(np.sum(found * quat, axis=1, keepdims=True)) if angle > np.pi - 1e-15 else 1.0
    np.testing.assert_allclose(found * same, quat, rtol=0, atol=1e-15)
    other = quaternion_from_matrix(R)
    agree = np.sign(np.sum(found * other, axis=1, keepdims=True)) if angle > np.pi - 1e-15 else 1.0
    np.testing.assert_allclose(found * agree, other, rtol=0, atol=1e-15)
    assert np.all(found[:, 0] >= 0)


def test_at_a_half_turn_the_largest_component_is_positive():
    n = np.array([(1, 0, 0), (0, -1, 0), (0.6, 0, -0.8), (-0.48, 0.6, -0.64), (-1 / 3, 2 / 3, -2 / 3)])
    R = 2 * n[:, :, None] * n[:, None] - np.eye(3)
    np.testing.assert_allclose(quaternion_by_largest_axis(R), quaternion_from_matrix(R), rtol=0, atol=1e-15)


def test_batches_of_any_shape_and_real_numbers_have_the_z_axis():
    r, k, phi = quaternion_polar([(2.0, 0, 0, 0), (-3.0, 0, 0, 0), (0.0, 0, 0, 0)])
    np.testing.assert_array_equal(
        np.column_stack([r, phi, k]), [[2, 0, 0, 0, 1], [3, np.pi, 0, 0, 1], [0, 0, 0, 0, 1]]
    )
    assert np.all(np.isnan(quaternion_polar(np.full(4, np.nan)).k))
    q = np.random.default_rng(0).normal(size=(2, 3, 4, 4))
    r, k, phi = quaternion_polar(q)
    np.testing.assert_allclose(quaternion_from_polar(r, k, phi), q, rtol=0, atol=5e-15)
    R = matrix_from_quaternion(q / r[..., None])
    found = quaternion_by_largest_axis(R)
    np.testing.assert_array_equal(found[1, 2, 3], quaternion_by_largest_axis(R[1, 2, 3]))
    assert rotated_vector(found[0, 0, 0], np.ones((5, 3))).shape == (5, 3)
    assert quaternion_by_largest_axis(np.empty((0, 3, 3))).shape == (0, 4)
    assert np.all(np.isnan(quaternion_by_largest_axis(np.full((3, 3), np.nan))))


def test_misuse_is_one_clear_sentence():
    refused(
        (lambda: quaternion_conjugate([1, 2]), "expected q of shape (..., 4), got (2,)"),
        (lambda: quaternion_inverse([0, 0, 0, 0]), "quaternions that have an inverse, got one of norm 0"),
        (lambda: rotated_vector([1, 1, 0, 0], [1, 2, 3]), "expected unit quaternions (norm 1 within 1e-06)"),
        (lambda: quaternion_from_polar(1, [1, 2], 0), "expected k of shape (..., 3), got (2,)"),
        (lambda: quaternion_by_largest_axis(np.eye(2)), "expected R of shape (..., 3, 3), got (2, 2)"),
        (lambda: unit_quaternion([1, 2, 3]), "expected quat of shape (..., 4), got (3,)"),
    )

"""The algebra of quaternions: its laws, its corrections to Norrlöf's report, and rotations of every size."""

import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from twin.rotations.quaternions import (
    quaternion_by_largest_axis,
    quaternion_conjugate,
    quaternion_from_polar,
    quaternion_inverse,
    quaternion_norm,
    quaternion_polar,
    rotated_vector,
)
from twin.rotations.rotations import (
    matrix_from_quaternion,
    quaternion_from_matrix,
    quaternion_product,
    unit_quaternion,
)

ONE, *UNITS = np.eye(4)
NEAR = (0.0, 1e-16, 1e-12, 1e-8, 1e-6, 1e-3)


def random_quaternions(count=200, seed=0):
    return np.random.default_rng(seed).normal(size=(count, 4)) * np.logspace(-3, 3, count)[:, None]


def turns(angle, seed=1):
    """Unit quaternions of turns by `angle` about random axes, coordinate axes and planes among them."""
    axes = np.random.default_rng(seed).normal(size=(400, 3))
    axes[:150] *= np.random.default_rng(seed).uniform(size=(150, 3)) < 0.5
    axes = axes[np.any(axes != 0, axis=1)]
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    return np.concatenate([np.full((len(axes), 1), np.cos(angle / 2)), np.sin(angle / 2) * axes], axis=1)


def written_out(quat):
    """Norrlöf 1999, eq. (2.15), term by term."""
    s, x, y, z = np.moveaxis(quat, -1, 0)
    rows = [
        [1 - 2 * y**2 - 2 * z**2, 2 * x * y - 2 * s * z, 2 * x * z + 2 * s * y],
        [2 * x * y + 2 * s * z, 1 - 2 * x**2 - 2 * z**2, 2 * y * z - 2 * s * x],
        [2 * x * z - 2 * s * y, 2 * y * z + 2 * s * x, 1 - 2 * x**2 - 2 * y**2],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def test_the_units_multiply_as_hamilton_carved():
    product, (i, j, k) = quaternion_product, UNITS
    for unit in UNITS:
        np.testing.assert_array_equal(product(unit, unit), -ONE)
    np.testing.assert_array_equal(product(product(i, j), k), -ONE)
    np.testing.assert_array_equal(product(i, j), k)
    np.testing.assert_array_equal(product(j, k), i)
    np.testing.assert_array_equal(product(k, i), j)


def test_conjugate_norm_and_inverse():
    p, q = random_quaternions(), random_quaternions(seed=5)
    norm = quaternion_norm(q)
    with_conjugate = quaternion_product(q, quaternion_conjugate(q))
    np.testing.assert_allclose(
        with_conjugate / norm[:, None] ** 2, np.tile(ONE, (200, 1)), rtol=0, atol=1e-15
    )
    for product in (
        quaternion_product(q, quaternion_inverse(q)),
        quaternion_product(quaternion_inverse(q), q),
    ):
        np.testing.assert_allclose(product, np.tile(ONE, (200, 1)), rtol=0, atol=1e-15)
    pq = quaternion_product(p, q)
    np.testing.assert_allclose(quaternion_norm(pq), quaternion_norm(p) * norm, rtol=1e-15)
    reverse = quaternion_product(quaternion_conjugate(q), quaternion_conjugate(p))
    np.testing.assert_allclose(
        quaternion_conjugate(pq) - reverse, 0 * pq, rtol=0, atol=1e-15 * np.abs(pq).max()
    )
    unit = unit_quaternion(turns(0.7))
    np.testing.assert_allclose(quaternion_inverse(unit), quaternion_conjugate(unit), rtol=0, atol=5e-16)


def test_the_printed_inverse_holds_for_unit_quaternions_only():
    q = np.array([1.0, 2.0, -3.0, 0.5])
    expected = (0.07017543859649122, -0.14035087719298245, 0.21052631578947367, -0.03508771929824561)
    np.testing.assert_allclose(quaternion_inverse(q), expected, rtol=1e-15)
    printed = quaternion_conjugate(q) / quaternion_norm(q)  # (2.9)
    np.testing.assert_allclose(quaternion_product(q, printed), quaternion_norm(q) * ONE, rtol=0, atol=1e-15)
    assert abs(quaternion_norm(q) - 3.774917217635375) < 1e-15


def test_polar_form_and_back():
    q = np.concatenate(
        [random_quaternions(), turns(np.pi), turns(1e-8), turns(2 * np.pi - 1e-8), -turns(0.3)]
    )
    r, k, phi = quaternion_polar(q)
    size = np.maximum(1.0, r)[:, None]
    np.testing.assert_allclose(quaternion_from_polar(r, k, phi) / size, q / size, rtol=0, atol=5e-16)
    np.testing.assert_allclose(np.linalg.norm(k, axis=1), 1, rtol=0, atol=5e-16)
    assert np.all((phi >= 0) & (phi <= np.pi))
    # exp(k phi) by its series, for the one-parameter group that Euler's formula makes of it.
    half = quaternion_from_polar(1.0, k, phi / 2)
    np.testing.assert_allclose(
        r[:, None] * quaternion_product(half, half) / size, q / size, rtol=0, atol=1e-15
    )


def test_the_printed_arctan_leads_to_minus_q():
    q = np.array([-0.5, 0.3, -0.6, 0.2])
    r, k, phi = quaternion_polar(q)
    assert abs(phi - 2.191045812777718) < 1e-15
    printed = np.arctan(np.linalg.norm(q[1:]) / q[0])  # (2.10)
    error = np.abs(quaternion_from_polar(r, k, printed) - q)
    np.testing.assert_allclose(np.max(error), 1.2, rtol=0, atol=1e-15)


def test_real_numbers_have_the_z_axis():
    for real, angle in ((2.0, 0.0), (-3.0, np.pi), (0.0, 0.0)):
        r, k, phi = quaternion_polar((real, 0, 0, 0))
        assert (r, phi) == (abs(real), angle)
        np.testing.assert_array_equal(k, (0, 0, 1))
    assert np.all(np.isnan(quaternion_polar(np.full(4, np.nan)).k))


@pytest.mark.parametrize("angle", [*NEAR, 1.0, 2.5, *(np.pi - d for d in NEAR), 4.0, 2 * np.pi - 1e-8])
def test_a_vector_turns_as_by_the_matrix(angle):
    quat = turns(angle)
    vectors = np.random.default_rng(2).normal(size=(len(quat), 3))
    b = rotated_vector(quat, vectors)
    np.testing.assert_allclose(
        b, Rotation.from_quat(quat[:, [1, 2, 3, 0]]).apply(vectors), rtol=0, atol=4e-15
    )
    np.testing.assert_allclose(b, np.einsum("kij,kj->ki", written_out(quat), vectors), rtol=0, atol=4e-15)
    np.testing.assert_allclose(matrix_from_quaternion(quat), written_out(quat), rtol=0, atol=2e-15)
    np.testing.assert_allclose(rotated_vector(-quat, vectors), b, rtol=0, atol=1e-15)


@pytest.mark.parametrize("angle", [*NEAR, 1.0, 2 * np.pi / 3, 2.5, *(np.pi - d for d in NEAR)])
def test_both_conversions_from_a_matrix_agree(angle):
    quat = turns(angle)
    R = written_out(quat)
    found = quaternion_by_largest_axis(R)
    same = np.sign(np.sum(found * quat, axis=1, keepdims=True)) if angle > np.pi - 1e-15 else 1.0
    np.testing.assert_allclose(found * same, quat, rtol=0, atol=1e-15)
    other = quaternion_from_matrix(R)
    agree = np.sign(np.sum(found * other, axis=1, keepdims=True)) if angle > np.pi - 1e-15 else 1.0
    np.testing.assert_allclose(found * agree, other, rtol=0, atol=1e-15)
    assert np.all(found[:, 0] >= 0)


def printed_and_corrected(R):
    """Norrlöf 1999, eq. (2.16)-(2.22) for a largest x component: k of (2.22) as printed, and with k'''."""
    s = 0.5 * np.sqrt(max(np.trace(R) + 1, 0.0))
    first = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    second = np.array([R[0, 0] - R[1, 1] - R[2, 2] + 1, R[1, 0] + R[0, 1], R[2, 0] + R[0, 2]])
    third = first + (1.0 if first[0] >= 0 else -1.0) * second
    length = np.sqrt(max(1 - s**2, 0.0))
    return [np.concatenate([[s], length * k / np.linalg.norm(k)]) for k in (second, third)]


def test_the_printed_last_step_loses_the_sign_of_the_axis():
    R = np.array([[1, 0, 0], [0, 0.5, np.sqrt(3) / 2], [0, -np.sqrt(3) / 2, 0.5]])  # Rot_x(-60 deg)
    printed, corrected = printed_and_corrected(R)
    expected = (np.sqrt(3) / 2, -0.5, 0, 0)
    np.testing.assert_allclose(quaternion_by_largest_axis(R), expected, rtol=0, atol=1e-15)
    np.testing.assert_allclose(corrected, expected, rtol=0, atol=1e-15)
    np.testing.assert_allclose(printed, (np.sqrt(3) / 2, 0.5, 0, 0), rtol=0, atol=1e-15)


def test_the_printed_off_diagonal_sum_is_another_component():
    quat = np.array([0.8, 0.4, 0.2, 0.4])
    R = written_out(quat)
    assert abs(4 * quat[1] * quat[3] - 0.64) < 1e-15
    assert abs(R[2, 0] + R[0, 2] - 0.64) < 1e-15
    assert abs(R[1, 2] + R[0, 2] - 0.64) > 0.4  # (2.19) as printed
    np.testing.assert_allclose(quaternion_by_largest_axis(R), quat, rtol=0, atol=1e-15)


def test_the_formulas_as_printed_lose_half_the_digits_where_ours_do_not():
    """Why the function does not end as (2.16) and (2.22) do."""
    axis = np.array([0.8, 0.36, 0.48])
    for angle in (1e-8, np.pi - 1e-8):
        quat = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis])
        _, corrected = printed_and_corrected(written_out(quat))
        assert 1e-10 < np.max(np.abs(corrected - quat)) < 1e-7
        np.testing.assert_allclose(quaternion_by_largest_axis(written_out(quat)), quat, rtol=0, atol=1e-15)


def test_at_a_half_turn_the_largest_component_is_positive():
    for n in ((1, 0, 0), (0, -1, 0), (0.6, 0, -0.8), (-0.48, 0.6, -0.64), (-1 / 3, 2 / 3, -2 / 3)):
        R = 2 * np.outer(n, n) - np.eye(3)
        np.testing.assert_allclose(
            quaternion_by_largest_axis(R), quaternion_from_matrix(R), rtol=0, atol=1e-15
        )


def test_batches_of_any_shape():
    q = random_quaternions(24).reshape(2, 3, 4, 4)
    r, k, phi = quaternion_polar(q)
    assert (r.shape, k.shape, phi.shape) == ((2, 3, 4), (2, 3, 4, 3), (2, 3, 4))
    assert quaternion_from_polar(r, k, phi).shape == q.shape
    assert quaternion_from_polar(r, (0, 0, 1), phi).shape == q.shape
    assert quaternion_from_polar(1.0, k, 0.5).shape == q.shape
    unit = q / r[..., None]
    R = matrix_from_quaternion(unit)
    assert quaternion_by_largest_axis(R).shape == q.shape
    np.testing.assert_array_equal(
        quaternion_by_largest_axis(R)[1, 2, 3], quaternion_by_largest_axis(R[1, 2, 3])
    )
    assert rotated_vector(unit, (1, 2, 3)).shape == (2, 3, 4, 3)
    assert rotated_vector(unit[0, 0, 0], np.ones((5, 3))).shape == (5, 3)
    assert quaternion_by_largest_axis(np.empty((0, 3, 3))).shape == (0, 4)
    assert np.all(np.isnan(quaternion_by_largest_axis(np.full((3, 3), np.nan))))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quaternion_conjugate([1, 2]), "expected q of shape (..., 4), got (2,)"),
        (
            lambda: quaternion_inverse([0, 0, 0, 0]),
            "expected quaternions that have an inverse, got one of norm 0",
        ),
        (lambda: quaternion_inverse([0, 0, np.nan, 0]), "expected quaternions that have an inverse"),
        (lambda: rotated_vector([1, 1, 0, 0], [1, 2, 3]), "expected unit quaternions (norm 1 within 1e-06)"),
        (lambda: rotated_vector([1, 0, 0, 0], [1, 2]), "expected vector of shape (..., 3), got (2,)"),
        (lambda: quaternion_from_polar(1, [1, 2], 0), "expected k of shape (..., 3), got (2,)"),
        (lambda: quaternion_by_largest_axis(np.eye(2)), "expected R of shape (..., 3, 3), got (2, 2)"),
        (lambda: unit_quaternion([1, 2, 3]), "expected quat of shape (..., 4), got (3,)"),
    ],
)
def test_misuse_is_one_clear_sentence(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()

"""Euler angles and axis and angle: both ways, at and near their singularities, and their rates.

The printed equations are in tests/published.
"""

import itertools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.support.refusals import refused
from twin.base.errors import SingularityError
from twin.physics.rotations.euler_angles import (
    axis_angle_from_matrix,
    euler_from_matrix,
    euler_rate_inverse,
    euler_rate_matrix,
    euler_rate_matrix_dot,
    matrix_from_axis_angle,
    matrix_from_euler,
)

SEQUENCES = ("zyx", "zyz")
TURN = 2 * np.pi
NEAR = (0.0, 1e-300, 1e-17, 1e-15, 1e-13, 1e-12, 1e-8, 1e-7, 1e-4)
SINGULAR_THETA = {"zyx": (np.pi / 2, -np.pi / 2), "zyz": (0.0, np.pi, -np.pi)}


def about(axis, angle):
    """The matrix of a turn about a coordinate axis, written out: independent of scipy and of the module."""
    c, s = np.cos(angle), np.sin(angle)
    x, y, z = (
        ([1, 0, 0], [0, c, -s], [0, s, c]),
        ([c, 0, s], [0, 1, 0], [-s, 0, c]),
        ([c, -s, 0], [s, c, 0], [0, 0, 1]),
    )
    return np.array({"x": x, "y": y, "z": z}[axis])


def product(angles, sequence):
    matrices = [[about(axis, x) for axis, x in zip(sequence, row, strict=True)] for row in angles]
    return np.array([A @ B @ C for A, B, C in matrices])


def random_angles(count=300, seed=0):
    return np.random.default_rng(seed).uniform(-np.pi, np.pi, (count, 3))


def awkward_angles(sequence):
    """Theta at and beside its singular values, with special values of phi and psi."""
    special = (0.0, np.pi, -np.pi, np.pi / 2, 1e-8, 0.7, -2.1)
    thetas = [base + s * d for base in SINGULAR_THETA[sequence] for d in NEAR for s in (1, -1)]
    return np.array([(p, t, s) for t in thetas for p, s in itertools.product(special, special)])


def apart(angles, others):
    difference = angles - others
    return np.max(np.abs(difference - TURN * np.rint(difference / TURN)))


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_angles_give_the_product_of_three_turns_and_come_back_wherever_it_is(sequence):
    angles = np.concatenate([random_angles(), awkward_angles(sequence)])
    R = product(angles, sequence)
    np.testing.assert_allclose(matrix_from_euler(angles, sequence), R, rtol=0, atol=2e-15)
    # Within 1e-13 of the singularity phi is put at 0, which costs as much of the rotation.
    tolerance = np.where(np.arange(len(angles)) < 300, 2e-15, 3e-13)[:, None, None]
    for lower in (False, True):
        found = euler_from_matrix(R, sequence, lower=lower)
        assert np.all(np.abs(product(found, sequence) - R) <= tolerance)
        assert np.all(np.abs(found[:, [0, 2]]) <= np.pi)
        middle = {"zyx": 0.0, "zyz": np.pi / 2}[sequence]
        assert lower or np.all(np.abs(found[:, 1] - middle) <= np.pi / 2 + 1e-12)


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_of_the_two_triplets_one_is_the_given_one_and_where_they_are_one_phi_is_zero(sequence):
    angles = random_angles()
    R = product(angles, sequence)
    upper, lower = (euler_from_matrix(R, sequence, lower=b) for b in (False, True))
    theta = upper[:, 1]
    assert np.all((np.cos(theta) if sequence == "zyx" else np.sin(theta)) >= 0)
    other = upper + np.array([np.pi, 0, np.pi])
    other[:, 1] = np.pi - theta if sequence == "zyx" else -theta
    assert apart(lower, other) < 1e-12
    nearest = [min(apart(a, u), apart(a, v)) for a, u, v in zip(angles, upper, lower, strict=True)]
    assert max(nearest) < 1e-12
    for theta in SINGULAR_THETA[sequence]:  # phi is 0, and psi takes the turn
        R = product([(0.9, theta, 0.4)], sequence)
        upper, lower = (euler_from_matrix(R, sequence, lower=b)[0] for b in (False, True))
        assert upper[0] == lower[0] == 0.0
        assert apart(upper, lower) < 1e-15
        together = theta == -np.pi / 2 if sequence == "zyx" else theta == 0.0
        assert abs(upper[2] - (0.4 + 0.9 if together else 0.4 - 0.9)) < 1e-15


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_the_rate_matrix_makes_the_angular_velocity(sequence):
    angles, rates = random_angles(100), random_angles(100, seed=2)
    h = 1e-4

    def turn(step):
        ahead, behind = (Rotation.from_matrix(product(angles + s * step * rates, sequence)) for s in (1, -1))
        return (ahead * behind.inv()).as_rotvec() / (2 * step)

    omega = (4 * turn(h) - turn(2 * h)) / 3
    found = np.einsum("kij,kj->ki", euler_rate_matrix(angles, sequence), rates)
    np.testing.assert_allclose(found, omega, rtol=0, atol=2e-10)  # fourth differences
    ahead, behind = (euler_rate_matrix(angles + s * 1e-5 * rates, sequence) for s in (1, -1))
    derivative = (ahead - behind) / 2e-5
    np.testing.assert_allclose(euler_rate_matrix_dot(angles, rates, sequence), derivative, rtol=0, atol=3e-9)


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_the_inverse_of_the_rate_matrix_and_where_there_is_none(sequence):
    near = [base + d for base in SINGULAR_THETA[sequence] for d in (1e-11, -1e-8, 1e-4)]
    angles = np.concatenate([random_angles(200), [(0.7, theta, -2.0) for theta in near]])
    T, inverse = euler_rate_matrix(angles, sequence), euler_rate_inverse(angles, sequence)
    a = np.abs(np.linalg.det(T))
    assert np.all(np.abs(T @ inverse - np.eye(3)) <= 1e-15 / a[:, None, None])
    expected = np.cos(angles[:, 1]) if sequence == "zyx" else np.sin(angles[:, 1])
    np.testing.assert_allclose(np.linalg.det(T), -expected, rtol=0, atol=1e-15)
    assert np.all(np.max(np.abs(inverse), axis=(1, 2)) <= 1.01 / a + 1)
    for theta in SINGULAR_THETA[sequence]:
        with pytest.raises(SingularityError, match=f"rates of {sequence} angles .* at theta = "):
            euler_rate_inverse([(0.1, 0.5, 0.2), (0.1, theta, 0.2)], sequence)
    with pytest.raises(SingularityError, match="theta = nan deg"):
        euler_rate_inverse((0.0, np.nan, 0.0), sequence)


@pytest.mark.parametrize("angle", [1e-100, 1e-16, 1e-8, 1e-3, 1.0, 3.0, np.pi - 1e-3, np.pi - 1e-8])
def test_axis_and_angle_come_back(angle):
    rng = np.random.default_rng(3)
    axes = rng.normal(size=(300, 3))
    axes[:100] *= rng.uniform(size=(100, 3)) < 0.6
    axes = axes[np.any(axes != 0, axis=1)]
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    R = matrix_from_axis_angle(axes, angle)
    K = np.swapaxes(np.cross(axes[:, None], np.eye(3)), 1, 2)  # K v = axis x v
    rodrigues = np.eye(3) + np.sin(angle) * K + 2 * np.sin(angle / 2) ** 2 * (K @ K)
    np.testing.assert_allclose(R, rodrigues, rtol=0, atol=2e-15)
    found, found_angle = axis_angle_from_matrix(R)
    np.testing.assert_allclose(found_angle, angle, rtol=1e-15, atol=0)
    np.testing.assert_allclose(found, axes, rtol=0, atol=2e-15)


def test_half_a_turn_and_none():
    axis, angle = axis_angle_from_matrix(np.eye(3))
    assert (axis.tolist(), angle) == ([0, 0, 1], 0.0)
    for k, sign in (((0, -1, 0), -1), ((-0.6, 0, 0.8), 1), ((0.6, 0, -0.8), -1)):
        axis, angle = axis_angle_from_matrix(2 * np.outer(k, k) - np.eye(3))
        np.testing.assert_allclose(axis, sign * np.array(k), rtol=0, atol=1e-15)
        assert angle == np.pi
    assert np.all(np.isnan(axis_angle_from_matrix(np.full((3, 3), np.nan))[0]))


def test_misuse_is_one_clear_sentence():
    refused(
        (lambda: matrix_from_euler([1, 2], "zyx"), "expected angles of shape (..., 3), got (2,)"),
        (lambda: matrix_from_euler([1, 2, 3], "xyz"), "unknown sequence of Euler angles 'xyz'"),
        (lambda: euler_rate_matrix_dot([1, 2, 3], [1], "zyx"), "expected rates of shape (..., 3), got (1,)"),
        (lambda: matrix_from_axis_angle((0, 0, 2), 1.0), "expected unit axes (length 1 within 1e-06), got 2"),
    )

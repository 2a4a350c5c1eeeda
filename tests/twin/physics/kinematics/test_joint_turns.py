"""Representatives modulo 2 pi, joint by joint, against trying every number of turns."""

import math

import numpy as np
import pytest

from twin.physics.kinematics.spherical_wrist import (
    LIMIT_TOLERANCE,
    PER_TURN,
    TURN,
    arc_tangents,
    choose_nearest,
    joint_angles_of,
    principal,
)

SHEAR = np.eye(6) - np.eye(6, k=-1)  # whole numbers, determinant 1


def representatives(theta, near, q_min, q_max, inverse_S=SHEAR, theta0=0.0):
    q, theta0 = np.empty_like(theta), np.broadcast_to(theta0, 6)
    joint_angles_of(theta, theta0, inverse_S, near, q_min, q_max, q)
    return q


def test_against_trying_every_turn(rng):
    theta, near = rng.uniform(-4, 4, (6, 300)), rng.uniform(-20, 20, (6, 300))
    theta0, q_min = rng.uniform(-1, 1, 6), rng.uniform(-9, 0, 6)
    q_max = q_min + rng.uniform(5, 15, 6)
    found = representatives(theta, near, q_min, q_max, theta0=theta0)
    q = SHEAR @ (theta - theta0[:, None])
    turned = q[..., None] + TURN * np.arange(-9, 10)
    allowed = (turned >= q_min[:, None, None]) & (turned <= q_max[:, None, None])
    distance = np.where(allowed, np.abs(turned - near[..., None]), np.inf)
    expected = np.take_along_axis(turned, np.argmin(distance, axis=-1)[..., None], axis=-1)[..., 0]
    expected[~allowed.any(axis=-1)] = np.nan
    assert 0 < np.isnan(expected).sum() < 600
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("beyond", [0.0, 0.9 * LIMIT_TOLERANCE])
def test_rounding_beyond_a_limit_is_put_onto_it(beyond):
    limits = np.full(6, 1.25)
    for theta in (1.25 + beyond, -1.25 - beyond):
        q = representatives(np.full((6, 3), theta), np.zeros((6, 3)), -limits, limits, np.eye(6))
        assert np.all(np.abs(q) == 1.25)
    q = representatives(np.full((6, 3), 1.25 + 3e-12), np.zeros((6, 3)), -limits, limits, np.eye(6))
    assert np.all(np.isnan(q))


def test_half_a_turn_is_positive_and_nan_does_not_spread():
    assert TURN * PER_TURN == 1.0
    assert principal(-np.pi) == principal(np.pi) == principal(3 * np.pi) == np.pi
    assert principal(np.nextafter(np.pi, 4)) < -3
    theta = np.full((6, 4), 0.5)
    theta[2, 1] = np.nan
    q = representatives(theta, np.zeros((6, 4)), np.full(6, -np.inf), np.full(6, np.inf), np.eye(6))
    assert np.argwhere(np.isnan(q)).tolist() == [[2, 1]]


def test_the_nearest_of_equals_is_the_first_row():
    q = np.full((2, 8, 6), np.nan)
    q[0, 3], q[0, 5], q[0, 6] = 0.1, -0.1, 0.2
    nearest = np.empty((2, 6))
    choose_nearest(q, np.zeros((2, 6)), nearest)
    assert np.all(nearest[0] == 0.1)
    assert np.all(np.isnan(nearest[1]))


# The arc tangents of many directions, against the C library's.


def angles_of(y, x):
    y, x = np.array(y, dtype=float), np.array(x, dtype=float)
    angles = np.empty(len(y))
    arc_tangents(y, x, angles)
    return angles


def test_two_units_of_the_last_digit_in_all_directions_and_lengths(rng):
    angle, length = rng.uniform(-np.pi, np.pi, 50_000), 10.0 ** rng.uniform(-150, 150, 50_000)
    y, x = length * np.sin(angle), length * np.cos(angle)
    exact = np.arctan2(y, x)
    assert np.max(np.abs(angles_of(y, x) - exact) / np.spacing(np.abs(exact))) <= 2


def test_along_the_axes_it_is_exact_and_nan_stays_nan():
    y, x = [0.0, -0.0, 1.0, -1.0, 0.0, -0.0, 0.0], [2.0, 2.0, 0.0, 0.0, -3.0, -3.0, 0.0]
    assert angles_of(y, x).tolist() == [0, 0, math.pi / 2, -math.pi / 2, math.pi, -math.pi, 0]
    assert np.all(np.isnan(angles_of([np.nan, 1.0, np.nan], [1.0, np.nan, np.nan])))

"""The arc tangents of many directions, against the C library's."""

import math

import numpy as np
import pytest

from twin.kinematics.joint_turns import STEEP, arc_tangents


def angles_of(y, x):
    y, x = np.array(y, dtype=float), np.array(x, dtype=float)
    angles = np.empty(len(y))
    arc_tangents(y, x, angles)
    return angles


def test_two_units_of_the_last_digit_in_all_directions_and_lengths(rng):
    angle, length = rng.uniform(-np.pi, np.pi, 200_000), 10.0 ** rng.uniform(-150, 150, 200_000)
    y, x = length * np.sin(angle), length * np.cos(angle)
    exact = np.arctan2(y, x)
    assert np.max(np.abs(angles_of(y, x) - exact) / np.spacing(np.abs(exact))) <= 2


def test_small_angles_keep_their_digits(rng):
    y = 10.0 ** rng.uniform(-300, 0, 20_000)
    for x in (1.0, 0.7):
        np.testing.assert_allclose(angles_of(y, np.full(len(y), x)), np.arctan2(y, x), rtol=4e-16, atol=0)


@pytest.mark.parametrize("slope", [STEEP, 1.0, 1 / STEEP])
def test_where_the_formulas_meet(slope):
    slopes = slope * (1 + np.arange(-50, 51) * 2.0**-52)
    for side in (1.0, -1.0):
        exact = np.arctan2(slopes, side)
        np.testing.assert_allclose(angles_of(slopes, np.full(101, side)), exact, rtol=4e-16, atol=0)


def test_along_the_axes_it_is_exact_and_nan_stays_nan():
    y, x = [0.0, -0.0, 1.0, -1.0, 0.0, -0.0, 0.0], [2.0, 2.0, 0.0, 0.0, -3.0, -3.0, 0.0]
    assert angles_of(y, x).tolist() == [0, 0, math.pi / 2, -math.pi / 2, math.pi, -math.pi, 0]
    assert np.all(np.isnan(angles_of([np.nan, 1.0, np.nan], [1.0, np.nan, np.nan])))


def test_one_alone_has_the_bits_that_it_has_among_many(rng):
    y, x = rng.normal(size=(2, 61))
    many = angles_of(y, x)
    assert all(angles_of(y[i : i + 1], x[i : i + 1])[0] == many[i] for i in range(61))

"""The laboratory's trapezoid: its limits, and what it refuses; its formulas are in tests/published."""

import re

import numpy as np
import pytest

from tests.support.refusals import refused
from twin.errors import LimitError
from twin.trajectories.joint_trajectories import (
    acceleration_time,
    cruising_trapezoid,
    timed_trapezoid,
    trapezoid,
)


def test_longest_axis_has_the_limits_and_others_follow_the_line():
    p0, p1 = np.array([0.1, 0.7, -0.3]), np.array([0.3, -1.3, 0.2])
    move = cruising_trapezoid(p0, p1, 0.5, 2.0)
    t = np.linspace(0, move.duration, 1001)
    p, v, a = move(t)
    scale = np.abs(p1 - p0) / 2.0
    np.testing.assert_allclose(np.abs(v).max(axis=0), 0.5 * scale, rtol=1e-13)
    np.testing.assert_allclose(np.abs(a).max(axis=0), 2.0 * scale, rtol=1e-13)
    np.testing.assert_allclose(np.cross(p - p0, p1 - p0), 0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(move.duration, 2.0 / 0.5 + 0.5 / 2.0, rtol=1e-15)
    # The other two ways to ask for the same move.
    np.testing.assert_allclose(timed_trapezoid(p0, p1, move.duration, 2.0)(t)[0], p, rtol=0, atol=1e-13)
    np.testing.assert_allclose(trapezoid(p0, p1, 0.5, 2.0)(t)[0], p, rtol=0, atol=1e-13)


@pytest.mark.parametrize("sharpness", [1e6, 1e12])
def test_the_time_of_hard_acceleration_keeps_its_digits(sharpness):
    """Printed as a difference it would cancel; to the second order it is p / (a t_f)."""
    t_c = acceleration_time(1.0, 2.0, sharpness)
    np.testing.assert_allclose(t_c, (1 + 1 / (4 * sharpness)) / (2 * sharpness), rtol=1e-12)
    move = timed_trapezoid([0.0], [1.0], 2.0, sharpness)
    np.testing.assert_allclose(move(0.0)[2], sharpness, rtol=1e-12)


def test_times_that_only_a_triangle_keeps_and_moves_to_where_it_is():
    move = timed_trapezoid([0.0], [-0.9], 3.0, 0.4)
    np.testing.assert_allclose(move.acceleration_time, 1.5, rtol=1e-15)
    np.testing.assert_allclose(move([1.5, 3.0])[0], [[-0.45], [-0.9]], rtol=1e-15)
    move = cruising_trapezoid([0.0], [0.1], 0.2, 0.4)
    np.testing.assert_allclose([move.duration, move.acceleration_time], [1.0, 0.5], rtol=1e-15)
    still = cruising_trapezoid([1.0], [1.0], 0.1, 0.1)
    assert still.duration == 0.0
    for move in (still, timed_trapezoid([1.0], [1.0], 2.0, 0.1)):
        np.testing.assert_array_equal(np.ravel(move([-1.0, 1.0, 3.0])), [1.0] * 3 + [0.0] * 6)


def test_what_has_no_real_time_of_acceleration_or_of_cruising_is_refused():
    with pytest.raises(LimitError) as error:
        timed_trapezoid([0.0, 0.5], [1.0, 0.0], 5.0, 0.1, unit="m")
    assert str(error.value) == (
        "an acceleration of 0.1 m/s^2 is too low for a distance of 1 m in 5 s; valid are an acceleration of "
        "at least 0.16 m/s^2 or a duration of at least 6.32456 s"
    )
    timed_trapezoid([0.0, 0.5], [1.0, 0.0], 5.0, 0.16)
    timed_trapezoid([0.0, 0.5], [1.0, 0.0], np.sqrt(40.0), 0.1)
    with pytest.raises(LimitError, match=r"a distance of 1 rad in 5 s"):
        acceleration_time(-1.0, 5.0, 0.1599999)
    with pytest.raises(LimitError, match=r"1 m is too short .* alone take 1\.6 m; .* 0\.316227 m/s"):
        cruising_trapezoid([0.0, 0.0], [1.0, -0.5], 0.4, 0.1, unit="m")
    with pytest.raises(LimitError):
        cruising_trapezoid([0.0], [1.0], 0.4, 0.1599999)


def test_what_a_refusal_advises_is_accepted(rng):
    """The six digits of the messages are rounded to the safe side."""
    for way, a in rng.uniform(0.1, 2.0, (50, 2)) * 10.0 ** rng.integers(-4, 4, (50, 2)):
        with pytest.raises(LimitError) as error:
            cruising_trapezoid([0.0], [way], 2.0 * np.sqrt(a * way), a)
        speed, stronger = map(float, re.findall(r"(?:most|least) (\S+)", str(error.value)))
        cruising_trapezoid([0.0], [way], speed, a)
        cruising_trapezoid([0.0], [way], 2.0 * np.sqrt(a * way), stronger)
        with pytest.raises(LimitError) as error:
            timed_trapezoid([0.0], [way], np.sqrt(way / a), a)
        stronger, longer = map(float, re.findall(r"least (\S+)", str(error.value)))
        timed_trapezoid([0.0], [way], np.sqrt(way / a), stronger)
        timed_trapezoid([0.0], [way], longer, a)


def test_misuse_message_states_the_expectation():
    refused(
        (lambda: cruising_trapezoid([0.0], [1.0, 2.0], 1.0, 1.0), "expected q1 of shape (1,), got (2,)"),
        (lambda: cruising_trapezoid([0.0], [1.0], np.nan, 1.0), "expected finite speed, got [nan]"),
        (lambda: cruising_trapezoid([0.0], [1.0], 0.1, 0.0), "expected positive acceleration, got [0.]"),
        (lambda: timed_trapezoid([0.0], [1.0], np.nan, 1.0), "expected a positive, finite duration in s"),
        (lambda: acceleration_time(np.nan, 1.0, 1.0), "expected finite distance, got [nan]"),
    )

"""The laboratory's trapezoid: its formulas, its template, its home exercise, and what it refuses."""

import re

import numpy as np
import pytest

from twin.errors import LimitError
from twin.trajectories.joint_trajectories import (
    acceleration_time,
    cruising_trapezoid,
    timed_trapezoid,
    trapezoid,
)


def manual_path(t, p_i, p_f, t_c, t_f, a_c):
    """Ljubljana lab manual, eq. (5.79), (5.81), (5.82), as printed."""
    return np.select(
        [t <= t_c, t <= t_f - t_c],
        [p_i + a_c * t**2 / 2, p_i + a_c * t_c * (t - t_c / 2)],
        p_f - a_c * (t - t_f) ** 2 / 2,
    )


def test_a_given_time_makes_the_manuals_path():
    rng = np.random.default_rng(1)
    for _ in range(200):
        p_i, p_f = rng.uniform(-2, 0), rng.uniform(0, 2)
        t_f = rng.uniform(0.1, 20)
        a_c = 4 * (p_f - p_i) / t_f**2 * rng.uniform(1.001, 30)
        t_c = t_f / 2 - np.sqrt((t_f**2 * a_c - 4 * (p_f - p_i)) / a_c) / 2  # (5.78)
        np.testing.assert_allclose(acceleration_time(p_f - p_i, t_f, a_c), t_c, rtol=1e-12)
        np.testing.assert_allclose(a_c * t_c**2 - a_c * t_f * t_c + p_f - p_i, 0, rtol=0, atol=1e-12)
        move = timed_trapezoid([p_i], [p_f], t_f, a_c)
        t = np.linspace(0, t_f, 101)
        np.testing.assert_allclose(
            move(t)[0][:, 0], manual_path(t, p_i, p_f, t_c, t_f, a_c), rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(move(t_f / 2)[1], a_c * t_c, rtol=1e-11)  # (5.72)
        np.testing.assert_allclose(move(0.0)[2], a_c, rtol=1e-11)


def test_the_platform_path_of_the_template():
    """v_c = 0.25 m/s, a_c = 0.1 m/s^2, both ways 1 m; the figures follow from the formulas."""
    move = cruising_trapezoid([0.0, 0.0], [1.0, 1.0], 0.25, 0.1, unit="m")
    t_c, t_f = move.acceleration_time, move.duration
    np.testing.assert_allclose([t_c, t_f, t_f - 2 * t_c], [2.5, 6.5, 1.5], rtol=1e-15)
    p, v, a = move([t_c, t_f - t_c])
    np.testing.assert_allclose(p, [[0.3125] * 2, [0.6875] * 2], rtol=1e-15)  # p_c, and d_1 = 0.375 later
    np.testing.assert_allclose(v, 0.25, rtol=1e-15)
    np.testing.assert_allclose(a, [[0.0] * 2, [-0.1] * 2], rtol=1e-14)  # to the right of the corners
    t = np.linspace(0, 6.5, 651)
    expected = manual_path(t, 0.0, 1.0, 2.5, 6.5, 0.1)
    np.testing.assert_allclose(move(t)[0], np.column_stack([expected, expected]), rtol=0, atol=1e-15)
    np.testing.assert_allclose(acceleration_time(1.0, 6.5, 0.1), 2.5, rtol=1e-15)


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


def test_home_exercise_5_the_worm_drive():
    """0.1 m/s^2 up to 0.5 m/s, half of the way at 10 s: the manual prints no answers, these follow."""
    t_c, half = 0.5 / 0.1, 10.0
    distance = 2 * 0.5 * (half - t_c / 2)
    drive = cruising_trapezoid([0.0], [distance], 0.5, 0.1, unit="m")
    np.testing.assert_allclose([distance, drive.duration, drive.acceleration_time], [7.5, 20, 5], rtol=1e-15)
    np.testing.assert_allclose(drive(half)[0], 3.75, rtol=1e-15)
    np.testing.assert_allclose(drive(15.0)[0], 6.25, rtol=1e-15)  # the constant speed ends
    assert not drive(20.0)[1]  # it stops
    np.testing.assert_allclose(drive(7.5)[0], 7.5 / 3, rtol=1e-15)  # a third of the whole way
    p_c = drive(5.0)[0]
    np.testing.assert_allclose(drive(np.sqrt(25 / 3))[0], p_c / 3, rtol=1e-15)  # a third of the first phase


def test_a_time_that_only_a_triangle_keeps():
    move = timed_trapezoid([0.0], [-0.9], 3.0, 0.4)
    np.testing.assert_allclose(move.acceleration_time, 1.5, rtol=1e-15)
    np.testing.assert_allclose(move([1.5, 3.0])[0], [[-0.45], [-0.9]], rtol=1e-15)
    move = cruising_trapezoid([0.0], [0.1], 0.2, 0.4)
    np.testing.assert_allclose([move.duration, move.acceleration_time], [1.0, 0.5], rtol=1e-15)


@pytest.mark.parametrize("sharpness", [1e6, 1e12])
def test_the_time_of_hard_acceleration_keeps_its_digits(sharpness):
    """Printed as a difference it would cancel; to the second order it is p / (a t_f)."""
    t_c = acceleration_time(1.0, 2.0, sharpness)
    np.testing.assert_allclose(t_c, (1 + 1 / (4 * sharpness)) / (2 * sharpness), rtol=1e-12)
    move = timed_trapezoid([0.0], [1.0], 2.0, sharpness)
    np.testing.assert_allclose(move(0.0)[2], sharpness, rtol=1e-12)


def test_a_move_to_where_it_is():
    assert cruising_trapezoid([1.0, 2.0], [1.0, 2.0], 0.1, 0.1).duration == 0.0
    for move in (cruising_trapezoid([1.0], [1.0], 0.1, 0.1), timed_trapezoid([1.0], [1.0], 2.0, 0.1)):
        for part, expected in zip(move([-1.0, 0.0, 1.0, 3.0]), (1.0, 0.0, 0.0), strict=True):
            np.testing.assert_array_equal(part, np.full((4, 1), expected))


def test_what_has_no_real_time_of_acceleration_is_refused():
    with pytest.raises(LimitError) as error:
        timed_trapezoid([0.0, 0.5], [1.0, 0.0], 5.0, 0.1, unit="m")
    assert str(error.value) == (
        "an acceleration of 0.1 m/s^2 is too low for a distance of 1 m in 5 s; valid are an acceleration of "
        "at least 0.16 m/s^2 or a duration of at least 6.32456 s"
    )
    timed_trapezoid([0.0, 0.5], [1.0, 0.0], 5.0, 0.16)
    timed_trapezoid([0.0, 0.5], [1.0, 0.0], np.sqrt(40.0), 0.1)
    with pytest.raises(LimitError):
        acceleration_time(1.0, 5.0, 0.1599999)
    with pytest.raises(LimitError, match=r"a distance of 1 rad in 5 s"):
        acceleration_time(-1.0, 5.0, 0.1)


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


def test_a_linear_phase_of_negative_length_is_refused():
    with pytest.raises(LimitError) as error:
        cruising_trapezoid([0.0, 0.0], [1.0, -0.5], 0.4, 0.1, unit="m")
    assert str(error.value) == (
        "a distance of 1 m is too short for 0.4 m/s at 0.1 m/s^2, speeding up and braking alone take 1.6 m; "
        "valid are a speed of at most 0.316227 m/s or an acceleration of at least 0.16 m/s^2"
    )
    for speed, acceleration in ((0.4, 0.16), (np.sqrt(0.1), 0.1)):
        cruising_trapezoid([0.0, 0.0], [1.0, -0.5], speed, acceleration)
    with pytest.raises(LimitError):
        cruising_trapezoid([0.0], [1.0], 0.4, 0.1599999)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cruising_trapezoid([0.0], [1.0, 2.0], 1.0, 1.0), "expected q1 of shape (1,), got (2,)"),
        (lambda: cruising_trapezoid([0.0], [1.0], np.nan, 1.0), "expected finite speed, got [nan]"),
        (lambda: cruising_trapezoid([0.0], [1.0], 0.1, 0.0), "expected positive acceleration, got [0.]"),
        (lambda: timed_trapezoid([0.0], [1.0], np.nan, 1.0), "expected a positive, finite duration in s"),
        (lambda: timed_trapezoid([0.0], [np.inf], 1.0, 1.0), "expected finite q1"),
        (lambda: timed_trapezoid([0.0], [0.0], 0.0, 1.0), "expected a positive, finite duration in s"),
        (lambda: acceleration_time(np.nan, 1.0, 1.0), "expected finite distance, got [nan]"),
        (lambda: acceleration_time(1.0, 1.0, -1.0), "expected positive acceleration, got [-1.]"),
    ],
)
def test_misuse_message_states_the_expectation(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()

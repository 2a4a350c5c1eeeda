import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.dh_arms import fourth_order
from tests.support.refusals import refused
from twin.base.errors import LimitError
from twin.physics.trajectories.joint_trajectories import (
    acceleration_time,
    cruising_trapezoid,
    cubic,
    hold,
    quintic,
    sequence,
    sines,
    timed_trapezoid,
    trapezoid,
)
from twin.physics.trajectories.sampling import sample, sample_semi_implicit, semi_implicit_from_positions

Q0 = np.array([0.3, -1.0, 0.5, 2.0, -0.7, 0.0])
Q1 = np.array([-1.2, 0.4, 0.5, -1.0, 0.9, 4.0])
QD_MAX = np.deg2rad([200.0, 200.0, 260.0, 360.0, 360.0, 450.0])
UNIT = {"qd_max": 1.0, "qdd_max": 1.0}
QDD_MAX = np.array([8.0, 8.0, 10.0, 20.0, 20.0, 30.0])


def central_differences(trajectory, t, h):
    """Derivatives of position and of speed by central differences of fourth order."""
    return fourth_order(lambda step: np.array(trajectory(t + step)[:2]), h)


TRAPEZOID = trapezoid(Q0, Q1, QD_MAX, QDD_MAX)
MOVES = {
    "trapezoid": TRAPEZOID,
    "quintic": quintic(Q0, Q1, 1.7),
    "cubic": cubic(Q0, Q1, 1.7),
    "sines": sines(Q0, 0.3, [0.5, 0.7, 1.0, 0.2, 0.4, 1.5], 3.0, phase=Q1),
    "sequence": sequence(quintic(Q0, Q1, 1.1), hold(Q1, 0.3), quintic(Q1, Q0, 0.9)),
}


@pytest.mark.parametrize("name", MOVES)
def test_speed_and_acceleration_are_the_derivatives(name):
    trajectory = MOVES[name]
    # Keep the stencil on one side of a join of a sequence and of a corner of a trapezoid.
    t = np.linspace(0.013, trajectory.duration - 0.013, 211)
    ramp = TRAPEZOID.acceleration_time
    joins = {"sequence": [1.1, 1.4], "trapezoid": [ramp, TRAPEZOID.duration - ramp]}.get(name, [])
    t = t[np.all(np.abs(t[:, None] - np.array(joins)) > 3e-3, axis=1)]
    q, qd, qdd = trajectory(t)
    numeric_qd, numeric_qdd = central_differences(trajectory, t, 1e-3)
    assert q.shape == qd.shape == qdd.shape == (len(t), 6)
    np.testing.assert_allclose(qd, numeric_qd, rtol=0, atol=3e-9)
    np.testing.assert_allclose(qdd, numeric_qdd, rtol=0, atol=3e-8)


@pytest.mark.parametrize(
    "move", [quintic(Q0, Q1, 1.3), cubic(Q0, Q1, 1.3), trapezoid(Q0, Q1, QD_MAX, QDD_MAX)]
)
def test_a_move_ends_at_rest_and_holds_its_ends(move):
    q, qd, qdd = move([-5.0, -1e-9, move.duration + 1e-9, 9.0])
    np.testing.assert_allclose(q, [Q0, Q0, Q1, Q1], rtol=0, atol=1e-15)
    assert not qd.any()
    assert not qdd.any()
    start = Q0.copy()
    copied = quintic(start, Q1, 1.0)
    start[:] = 99.0
    np.testing.assert_array_equal(copied(0.0)[0], Q0)
    with pytest.raises(ValueError, match="read-only"):
        move.q0[0] = 1.0


def test_a_move_to_where_it_is_takes_no_time_or_that_given():
    for kind, limits in ((quintic, {"qd_max": 1.0}), (cubic, {"qdd_max": 1.0}), (trapezoid, UNIT)):
        for move, duration in ((kind(Q0, Q0, **limits), 0.0), (kind(Q0, Q0, **limits, duration=2.0), 2.0)):
            assert move.duration == duration
            for part, value in zip(move(np.linspace(-1, 3, 7)), (Q0, 0, 0), strict=True):
                np.testing.assert_array_equal(part, np.tile(value + 0 * Q0, (7, 1)))


def test_cubic_peaks_at_half_time_and_at_its_ends():
    """Published for a unit move in a unit time: 3/2 and 6, so that the shortest move is on one limit."""
    for limits in ({"qd_max": QD_MAX}, {"qdd_max": QDD_MAX}, {"qd_max": QD_MAX, "qdd_max": QDD_MAX}):
        move = cubic(Q0, Q1, **limits)
        _, qd, qdd = np.abs(move(np.linspace(0, move.duration, 20001)))
        used = [
            part.max(axis=0) / limits.get(name, np.inf) for part, name in ((qd, "qd_max"), (qdd, "qdd_max"))
        ]
        np.testing.assert_allclose(np.max(used), 1.0, rtol=1e-12)
        assert cubic(Q0, Q1, move.duration * (1 + 1e-15), **limits)
    dq, T = np.abs(Q1 - Q0), move.duration
    np.testing.assert_allclose(qd.max(axis=0), 1.5 * dq / T, rtol=1e-14)
    np.testing.assert_allclose(qdd[0], 6 * dq / T**2, rtol=1e-14)
    told = rf"joint 2 would reach an? acceleration of 12 rad/s\^2 at t = 0.*takes at least {np.sqrt(6):.6g} s"
    with pytest.raises(LimitError, match=told):
        cubic([0.0, 0.0], [0.5, 2.0], 1.0, qdd_max=2.0)


def test_shortest_moves_are_on_their_limits_and_slower_trapezoids_cruise_lower():
    move = quintic(Q0, Q1, qd_max=QD_MAX)
    np.testing.assert_allclose(move.duration, np.max(15 / 8 * np.abs(Q1 - Q0) / QD_MAX), rtol=1e-15)
    assert quintic(Q0, Q1, move.duration, qd_max=QD_MAX).duration == move.duration
    move = trapezoid(Q0, Q1, QD_MAX, QDD_MAX)
    t = np.linspace(0, move.duration, 20001)
    np.testing.assert_allclose((np.abs(move(t)[1]) / QD_MAX).max(), 1.0, rtol=1e-12)
    again = trapezoid(Q0, Q1, QD_MAX, QDD_MAX, move.duration)
    np.testing.assert_allclose(again(t)[0], move(t)[0], rtol=0, atol=1e-12)
    slower = trapezoid(Q0, Q1, QD_MAX, QDD_MAX, 2.0 * move.duration)
    assert (np.abs(slower(2 * t)[1]) / QD_MAX).max() < 0.6
    for one, times in ((move, t), (slower, 2 * t)):
        np.testing.assert_allclose((np.abs(one(times)[2]) / QDD_MAX).max(), 1.0, rtol=1e-12)


def test_too_fast_a_move_names_joint_value_limit_unit_and_time():
    with pytest.raises(LimitError) as error:
        quintic(np.zeros(3), [0.1, -2.0, 0.3], 1.0, qd_max=[3.0, 2.5, 3.0])
    assert str(error.value) == (
        "joint 2 would reach a speed of 3.75 rad/s at t = 0.5 s, its limit is 2.5 rad/s; "
        "the move takes at least 1.5 s"
    )
    move = quintic(np.zeros(3), [0.1, -2.0, 0.3], 1.5, qd_max=[3.0, 2.5, 3.0])
    np.testing.assert_allclose(move(0.75)[1][1], -2.5, rtol=1e-14)
    with pytest.raises(LimitError, match=r"joint 1 .* acceleration of 16 rad/s\^2 at t = 0 s, .* 5 rad/s\^2"):
        trapezoid([0.0], [1.0], 5.0, 5.0, 0.5)
    with pytest.raises(LimitError, match=r"joint 1 .* speed of .* its limit is 1 rad/s; .* at least 1\.2 s"):
        trapezoid([0.0], [1.0], 1.0, 5.0, 1.0)


def test_sines_go_on_and_too_fast_ones_name_the_time_of_the_first_peak():
    with pytest.raises(LimitError, match="joint 2 would reach a speed of") as error:
        sines([0.0, 0.0], [0.1, 1.0], [1.0, -1.0], 3.0, phase=[0.0, 0.5], qd_max=3.0)
    time = float(str(error.value).split("t = ")[1].split(" s")[0])
    trajectory = sines([0.0, 0.0], [0.1, 1.0], [1.0, -1.0], 3.0, phase=[0.0, 0.5])
    np.testing.assert_allclose(np.abs(trajectory(time)[1][1]), 2 * np.pi, rtol=1e-10)
    assert np.abs(trajectory(np.linspace(0, time - 1e-3, 100))[1][:, 1]).max() < 2 * np.pi * (1 - 1e-6)
    from_rest = sines(Q0, 0.2, 0.5, 1.0, phase=-np.pi / 2)
    np.testing.assert_allclose(from_rest(0.0)[0], Q0 - 0.2, rtol=0, atol=1e-15)
    np.testing.assert_allclose(from_rest([-0.7, 7.3])[0], from_rest([1.3, 1.3])[0], rtol=0, atol=1e-14)


def test_one_time_and_arrays_of_times_agree():
    for trajectory in MOVES.values():
        t = np.linspace(-0.5, trajectory.duration + 0.5, 24)
        batch = trajectory(t.reshape(2, 3, 4))
        for i, part in enumerate(batch):
            assert part.shape == (2, 3, 4, 6)
            np.testing.assert_array_equal(part.reshape(24, 6), [trajectory(float(time))[i] for time in t])


def test_sequence_runs_its_parts_in_turn():
    there, back = quintic(Q0, Q1, 1.1), quintic(Q1, Q0, 0.9)
    both = sequence(there, hold(Q1, 0.3), back)
    np.testing.assert_allclose(both.duration, 2.3, rtol=1e-12)
    np.testing.assert_array_equal(both(0.4)[0], there(0.4)[0])
    np.testing.assert_array_equal(both(1.2)[0], Q1)
    np.testing.assert_allclose(both(2.0)[1], back(2.0 - 1.4)[1], rtol=1e-14)
    np.testing.assert_allclose(both(99.0)[0], Q0, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(both(-1.0)[0], Q0)


joint_angles = st.lists(st.floats(-7, 7).map(lambda q: round(q, 12)), min_size=3, max_size=3)
limits = st.lists(st.floats(0.1, 10), min_size=3, max_size=3)


@settings(max_examples=60, deadline=None)
@given(joint_angles, joint_angles, limits, limits, st.floats(1.0, 5.0))
def test_moves_stay_within_limits_and_between_their_ends(q0, q1, qd_max, qdd_max, slower):
    for move in (
        quintic(q0, q1, qd_max=qd_max),
        trapezoid(q0, q1, qd_max, qdd_max),
        trapezoid(q0, q1, qd_max, qdd_max, slower * trapezoid(q0, q1, qd_max, qdd_max).duration or 1.0),
    ):
        q, qd, qdd = move(np.linspace(-0.1, move.duration + 0.1, 301))
        assert np.all(np.abs(qd) <= np.array(qd_max) * (1 + 1e-9))
        assert np.all((q >= np.minimum(q0, q1) - 1e-12) & (q <= np.maximum(q0, q1) + 1e-12))
        assert np.all(np.isfinite(qdd))
        if move.__class__.__name__ == "Trapezoid":
            assert np.all(np.abs(qdd) <= np.array(qdd_max) * (1 + 1e-6))
        np.testing.assert_allclose(move(move.duration)[0], q1, rtol=0, atol=1e-14)


# The laboratory's trapezoid: its limits, and what it refuses; its formulas are in tests/published.


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


# sampling


WAVES = sines(Q0, 0.4, [0.5, 0.7, 1.0, 0.2, 0.4, 1.5], 20.0, phase=Q1)


def obeys_the_recursion(samples, period):
    """Whether every sample follows from the one before in the engine's step, to the last bit."""
    qd = samples.qd[:-1] + period * samples.qdd[:-1]
    q = samples.q[:-1] + period * qd
    return np.array_equal(samples.qd[1:], qd) and np.array_equal(samples.q[1:], q)


def test_sample_is_the_trajectory_at_whole_periods():
    move = quintic(Q0, Q1, 0.95)
    samples = sample(move, 0.1)
    np.testing.assert_array_equal(samples.t, np.arange(11) * 0.1)
    for got, expected in zip(samples[1:], move(np.arange(11) * 0.1), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert not samples.qd[-1].any()  # the last lies beyond the end, where the move holds
    for duration, period, N in ((0.3, 0.1, 4), (4.0, 1e-3, 4001), (0.0, 1.0, 1)):
        assert len(sample(hold(Q0, duration), period).t) == N  # a whole number is not rounded up


@pytest.mark.parametrize(("trajectory", "period"), [(WAVES, 1e-3), (quintic(Q0, Q1, 20.0), 1 / 240)])
def test_consistent_samples_obey_the_recursion_and_keep_the_positions(trajectory, period):
    samples = sample_semi_implicit(trajectory, period)
    assert obeys_the_recursion(samples, period)
    np.testing.assert_allclose(samples.q, trajectory(samples.t)[0], rtol=0, atol=2e-15)
    if trajectory is not WAVES:  # a move starts and ends at rest
        assert not samples.qd[0].any()
        assert np.abs(samples.qd[-1]).max() < 1e-4  # the mean over the last period
        np.testing.assert_allclose(samples.qd[-1] + period * samples.qdd[-1], 0.0, rtol=0, atol=1e-12)


def test_rough_positions_do_not_build_up_an_error():
    rng = np.random.default_rng(3)
    for q in (rng.normal(size=(20001, 3)), np.cumsum(1e-3 * rng.normal(size=(20001, 3)), axis=0)):
        samples = semi_implicit_from_positions(q, 1e-3)
        assert obeys_the_recursion(samples, 1e-3)
        np.testing.assert_allclose(samples.q, q, rtol=0, atol=4e-15)


def test_positions_before_and_after_give_the_speeds_at_the_ends():
    q = np.array([[1.0], [1.5], [2.0]])
    samples = semi_implicit_from_positions(q, 0.5, before=[0.5], after=[2.5])
    np.testing.assert_array_equal(samples.qd, [[1.0], [1.0], [1.0]])
    np.testing.assert_array_equal(samples.qdd, 0.0 * q)
    at_rest = semi_implicit_from_positions(q, 0.5)
    np.testing.assert_array_equal(at_rest.qd, [[0.0], [1.0], [1.0]])
    np.testing.assert_array_equal(at_rest.qdd, [[2.0], [0.0], [-2.0]])
    one = semi_implicit_from_positions([Q0], 1e-3)
    np.testing.assert_array_equal([one.q, one.qd, one.qdd], [[Q0], [0 * Q0], [0 * Q0]])


def test_misuse_message_states_the_expectation():
    refused(
        (lambda: quintic(Q0, Q1[:5], 1.0), r"expected q1 of shape \(6,\), got \(5,\)"),
        (lambda: sequence(*[quintic(Q0, Q1, 1.0)] * 2), "of joint 6 jumps from 4 to 0 rad .* t = 1 s"),
        (lambda: sequence(quintic(Q0, Q1, 1.0), sines(Q1, 0.1, 1.0, 2.0)), "speed of joint"),
        (lambda: sequence(hold(Q0, 1.0), hold([1.0], 1.0)), "one number of joints, got 6 and 1"),
        (lambda: sequence(), "at least one"),
        (lambda: quintic(Q0, Q1, 0.0), "expected a positive, finite duration"),
        (lambda: cubic(Q0, Q1), "expected a duration or a limit, as qd_max"),
        (lambda: trapezoid(Q0, Q1, QD_MAX, 0.0), "expected positive qdd_max"),
        (lambda: sines(Q0, np.ones(3), 1.0, 1.0), r"expected amplitude of shape \(6,\), got \(3,\)"),
        (lambda: cruising_trapezoid([0.0], [1.0], np.nan, 1.0), "expected finite speed, got [nan]"),
        (lambda: timed_trapezoid([0.0], [1.0], np.nan, 1.0), "expected a positive, finite duration in s"),
        (lambda: acceleration_time(np.nan, 1.0, 1.0), "expected finite distance, got [nan]"),
        (lambda: sample_semi_implicit(WAVES, 0.0), "expected a positive period in s, got 0"),
        (lambda: sample(WAVES, np.nan), "expected a positive period in s, got nan"),
        (lambda: semi_implicit_from_positions([Q0 * np.nan], 1e-3), "finite"),
        (lambda: semi_implicit_from_positions([Q0], 1e-3, before=[1.0]), "before of shape (6,) and finite"),
        (lambda: semi_implicit_from_positions([Q0], 1e-3, after=Q0 * np.nan), r"after of .*, got \[nan"),
        (lambda: sample(hold(Q0, 1e300), 1e-3), r"makes 1e\+303 samples, at most 10000000 are taken"),
    )

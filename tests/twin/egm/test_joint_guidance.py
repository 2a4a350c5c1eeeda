"""Joint guidance compared with its law in closed form, by matrix powers, and by scipy."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

from tests.support.guided_runs import DT, EXACT, FAST, HOME
from twin.egm.guidance.guidance import GuidanceStop, JointGuidance
from twin.egm.guidance.run import Phase, Run
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.wire.messages import SensorMessage

STEP = np.deg2rad([10.0, -5.0, 2.5, 0.0, 8.0, -10.0])


def guided(robot, settings, message, samples, period=DT):
    """Return the samples of a run that gets one message at its beginning."""
    run = Run(robot, settings, JointGuidance(robot, settings), HOME, period)
    run.take(message)
    return run.samples(samples)


@pytest.mark.parametrize(("bandwidth", "gain"), [(20.0, 5.0), (100.0, 20.0), (2.0, 20.0)])
def test_gain_and_filter_equal_scipy_transfer_function(irb140, bandwidth, gain):
    """With a ramp of one period the loop is a transfer function from reference to position.

    With p = exp(-2 pi f dt), b = dt k (1 - p) and z^-1 = s it is b s / ((1 - s) (1 - p s) + b s).
    """
    period, p = 0.005, np.exp(-2.0 * np.pi * bandwidth * 0.005)
    settings = GuidanceSettings(position_gain=gain, lp_filter=bandwidth, **FAST)
    unlimited = replace(irb140, tau_max=np.full(6, np.inf))
    found = guided(unlimited, settings, SensorMessage(q=HOME + STEP), 400, period)
    loop = period * gain * (1.0 - p)
    expected = lfilter([0.0, loop], [1.0, -1.0 - p + loop, p], np.ones(400))
    np.testing.assert_allclose(found.q, HOME + expected[:, None] * STEP, **EXACT)


def of_period(a, k):
    """Return the transition matrix of (error, v) over one period, for the filter's share a."""
    return np.array([[1.0 - DT * a * k, -DT * (1.0 - a)], [a * k, 1.0 - a]])


@pytest.mark.parametrize("bandwidth", [None, 20.0])
def test_motion_runs_at_speed_limit_then_obeys_the_law(irb140, bandwidth):
    """One factor scales all speeds, with the fastest at the limit, until the law requests less.

    The gain times the error falls below the limit L where the error is L / k; from there it is the linear
    law, which begins at the speed L.
    """
    level, k, limit = (0 if bandwidth is None else 1), 20.0, np.deg2rad(20.0)
    settings = GuidanceSettings(level=level, position_gain=k, max_speed_deviation=20.0)
    N, n = 500, 2000
    found = guided(irb140, settings, SensorMessage(q=HOME + STEP), n)
    largest = np.abs(STEP).max()
    a = 1.0 if bandwidth is None else 1.0 - np.exp(-2.0 * np.pi * bandwidth * DT)
    assert a * k * largest > limit  # from the first period
    j = np.arange(n)
    way = limit * DT * np.where(j <= N, j * (j + 1) / (2 * N), j - (N - 1) / 2)
    last = int(np.argmax(k * (largest - way) < limit))  # the first position at which the law requests less
    assert 500 < last < 1000, last
    np.testing.assert_allclose(found.q[: last + 1], HOME + way[: last + 1, None] * STEP / largest, **EXACT)
    state = np.array([largest - way[last], limit])
    for q, qd in zip(found.q[last:], found.qd[last:], strict=True):
        np.testing.assert_allclose(q, HOME + (largest - state[0]) * STEP / largest, **EXACT)
        np.testing.assert_allclose(qd, state[1] * STEP / largest, rtol=0.0, atol=1e-12)
        state = of_period(a, k) @ state


def test_unguided_joints_hold_their_position(irb140):
    settings = GuidanceSettings(axes="1,5", **FAST)
    beyond = HOME + np.array([0.1, 0.1, 99.0, 0.1, 0.1, 0.1])
    found = guided(irb140, settings, SensorMessage(q=beyond, qd=np.full(6, 0.1)), 3000)
    moved = found.q[-1] - HOME
    np.testing.assert_allclose(moved[[0, 4]], 0.1 + 0.1 / 5.0, rtol=0.0, atol=1e-6)
    assert moved[[1, 2, 3, 5]].tolist() == [0.0] * 4


@pytest.mark.parametrize("step", [{"q": HOME + STEP}, {"qd": 10.0 * STEP}])
def test_reference_is_clipped_to_max_pos_deviation(irb140, step):
    settings = GuidanceSettings(max_pos_deviation=3.0, **FAST)
    guidance = JointGuidance(irb140, settings)
    run = Run(irb140, settings, guidance, HOME, DT)
    run.take(SensorMessage(**step))
    run.samples(4000)
    way = STEP if "q" in step else 2.0 * STEP  # u = k (q_ref - q) + qd_ref is 0 at the offset qd_ref / k
    np.testing.assert_allclose(run.q, HOME + np.clip(way, -np.deg2rad(3), np.deg2rad(3)), rtol=0, atol=1e-7)
    assert run.phase is Phase.GUIDED
    assert not guidance.converged(run.q)


def test_joint_at_its_deviation_limit_does_not_slow_the_others(irb140):
    """A joint at its largest deviation requests no speed, so it does not reduce the common factor."""
    settings = GuidanceSettings(max_pos_deviation=3.0, max_speed_deviation=2.0, ramp_time=0.005)
    step = np.deg2rad([90.0, -2.9, 0, 0, 0, 0])
    found = guided(irb140, settings, SensorMessage(q=HOME + step), 3000)
    moved = np.rad2deg(found.q[-1] - HOME)
    np.testing.assert_allclose(moved, [3.0, -2.9, 0, 0, 0, 0], rtol=0.0, atol=0.1)


def begun(robot, **settings):
    """Return guidance that has begun."""
    guidance = JointGuidance(robot, GuidanceSettings(**settings))
    guidance.begin(HOME, DT)
    return guidance


def test_positions_stay_valid_and_speeds_do_not(irb140):
    guidance = begun(irb140, level=0)
    guidance.take(SensorMessage(q=HOME + STEP, qd=STEP), HOME)
    np.testing.assert_allclose(guidance.speed(HOME), 5.0 * STEP + STEP, **EXACT)
    guidance.take(SensorMessage(qd=-STEP), HOME)
    np.testing.assert_allclose(guidance.speed(HOME), 5.0 * STEP - STEP, **EXACT)
    for message in (SensorMessage(q=HOME - STEP), SensorMessage(seqno=3)):  # the latter has no effect
        guidance.take(message, HOME)
        np.testing.assert_allclose(guidance.speed(HOME), -5.0 * STEP, **EXACT)


def test_invalid_reference_is_a_fault_and_has_no_effect(irb140, irb1400):
    for message, number, sentence in (
        ({"T": np.eye(4)}, 41826, "without joints"),
        ({"q": np.zeros(7)}, 0, "expects 6 finite joint angles, got 7"),
        ({"qd": np.zeros(5)}, 0, "expects 6 finite joint speeds, got 5"),
        ({"q": np.full(6, np.nan)}, 0, "expects 6 finite joint angles, got values that are not finite"),
        ({"q": np.full(6, 1e308)}, 50027, "joint_1 would be at"),
        ({"q": np.array([0, 1.95, 0, 0, 0, 0])}, 50027, "its range is -90 deg"),
    ):
        guidance = begun(irb140)
        guidance.take(SensorMessage(q=HOME + STEP), HOME)
        before = guidance.speed(HOME)
        with pytest.raises(GuidanceStop) as stop:
            guidance.take(SensorMessage(**message), HOME)
        assert stop.value.fault.number == number
        assert sentence in stop.value.fault.sentence
        guidance.follow(np.zeros(6))
        np.testing.assert_array_equal(guidance.speed(HOME), before)
    with pytest.raises(GuidanceStop, match="q3 - q2"):  # the range of a passive joint
        begun(irb1400).take(SensorMessage(q=np.deg2rad([0, 50.0, -50.0, 0, 0, 0])), HOME)

import numpy as np
import pytest

from tests.support.refusals import refused
from twin.trajectories.joint_trajectories import hold, quintic, sines
from twin.trajectories.sampling import sample, sample_semi_implicit, semi_implicit_from_positions

Q0 = np.array([0.3, -1.0, 0.5, 2.0, -0.7, 0.0])
Q1 = np.array([-1.2, 0.4, 0.5, -1.0, 0.9, 4.0])
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


def test_consistent_speeds_are_the_trajectory_s_half_a_period_earlier():
    samples = sample_semi_implicit(WAVES, 1e-3)
    third_derivative = 0.4 * (2 * np.pi * 1.5) ** 3
    speed, acceleration = WAVES(samples.t - 0.5e-3)[1], WAVES(samples.t)[2]
    np.testing.assert_allclose(samples.qd, speed, rtol=0, atol=1.01e-6 / 24 * third_derivative)
    fourth_derivative = third_derivative * 2 * np.pi * 1.5
    bound = 1.01e-6 / 12 * fourth_derivative + 1e-8
    np.testing.assert_allclose(samples.qdd, acceleration, rtol=0, atol=bound)


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
        (lambda: sample_semi_implicit(WAVES, 0.0), "expected a positive period in s, got 0"),
        (lambda: sample(WAVES, np.nan), "expected a positive period in s, got nan"),
        (lambda: semi_implicit_from_positions([Q0], np.inf), "expected a positive period in s, got inf"),
        (lambda: semi_implicit_from_positions(Q0, 1e-3), r"expected q of shape \(N, n\), got \(6,\)"),
        (lambda: semi_implicit_from_positions([Q0 * np.nan], 1e-3), "finite"),
        (lambda: semi_implicit_from_positions([Q0], 1e-3, before=[1.0]), "before of shape (6,) and finite"),
        (lambda: semi_implicit_from_positions([Q0], 1e-3, after=Q0 * np.nan), r"after of .*, got \[nan"),
        (lambda: sample(hold(Q0, 1e300), 1e-3), r"makes 1e\+303 samples, at most 10000000 are taken"),
    )

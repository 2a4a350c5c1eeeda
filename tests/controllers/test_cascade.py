"""The cascade of a position loop around a speed loop: its equation, its gains, its poles."""

import numpy as np
import pytest

import twin
from controllers.cascade import Cascade
from controllers.gains import cascade_gains, diagonal_inertia
from tests.support.refusals import refused
from tests.support.sample_drives import uncoupled
from twin.data.logs.closed_loop import run_closed_loop
from twin.physics.control.plant import AnalyticPlant
from twin.physics.trajectories.joint_trajectories import hold, quintic
from twin.physics.trajectories.sampling import Reference, State, sample, sample_semi_implicit

PERIOD = 1e-3


@pytest.mark.parametrize("omega", [3.0, 20.0])
def test_the_speed_loop_has_a_double_pole_and_the_whole_the_cubic_that_is_written(robot, omega):
    kp, Kv, Ti = cascade_gains(robot, omega)
    M = diagonal_inertia(robot)
    for m, p, v, t in zip(M, kp, Kv, Ti, strict=True):
        np.testing.assert_allclose([1, v / m, v / t / m], np.poly([-omega, -omega]), rtol=1e-14)
        cubic = [1, v / m, v * (p + 1 / t) / m, v * p / t / m]
        np.testing.assert_allclose(cubic, [1, 2 * omega, 1.5 * omega**2, 0.25 * omega**3], rtol=1e-14)
        poles = np.sort_complex(np.roots(cubic) / omega)
        np.testing.assert_allclose(poles, [-0.886 - 0.557j, -0.886 + 0.557j, -0.228], atol=6e-4)


def test_it_is_stable_up_to_twelve_times_the_inertia_of_its_gains(robot):
    kp, Kv, Ti = (column[0] for column in cascade_gains(robot, 20.0))
    for factor, stable in ((0.01, True), (1.0, True), (11.99, True), (12.01, False)):
        m = factor * diagonal_inertia(robot)[0]
        poles = np.roots([m, Kv, Kv * (kp + 1 / Ti), Kv * kp / Ti])
        assert (poles.real.max() < 0) == stable


def test_it_is_its_equation(robot):
    robot, rng = uncoupled(robot), np.random.default_rng(8)
    kp, Kv, Ti, hold_torque = *rng.uniform([[1], [1], [0.05]], [[5], [9], [1]], (3, 6)), np.arange(6)
    state = State(0.3, 0.1 * rng.uniform(-1, 1, 6), 0.1 * rng.uniform(-1, 1, 6))
    reference = Reference(state.q + 1e-3, state.qd + 0.01 * rng.uniform(-1, 1, 6), rng.uniform(-1, 1, 6))
    u = reference.qd + kp * (reference.q - state.q) - state.qd
    ideal, drives, after = (
        twin.inverse_dynamics(robot, *reference),
        robot.drives,
        reference.qd + 0.002 * reference.qdd,
    )
    fall = np.exp(-((reference.qd / drives.stribeck_speed) ** 2))
    level = drives.coulomb + (drives.static - drives.coulomb) * fall
    rigid = ideal + drives.reflected_inertia @ reference.qdd + level * np.sign(after) + drives.viscous * after
    for mode, forward in (("ideal", ideal), ("rigid", rigid)):
        model = robot.with_drives(mode)
        for share in (True, False):
            law = Cascade(model, kp=kp, Kv=Kv, Ti=Ti, tau_hold=hold_torque, feed_forward=share, period=0.002)
            for tick in range(1, 4):
                expected = Kv * (u + tick * 0.002 * u / Ti) + hold_torque + share * forward
                np.testing.assert_allclose(law(state, reference), expected, rtol=1e-12)
            np.testing.assert_allclose(law.integral, 3 * 0.002 * u, rtol=1e-14)


def test_the_gains_that_are_not_given_are_derived(robot):
    derived = cascade_gains(robot, 10.0)
    law = Cascade(robot, bandwidth=10.0, kp=5.0)
    np.testing.assert_array_equal(law.gains.kp, np.full(6, 5.0))
    np.testing.assert_array_equal(law.gains.Kv, derived.Kv)
    np.testing.assert_array_equal(law.gains.Ti, derived.Ti)
    without = Cascade(robot, Ti=np.inf, feed_forward=False)
    ask = State(0.0, np.zeros(6), np.zeros(6)), Reference(np.full(6, 0.1), np.zeros(6), np.zeros(6))
    np.testing.assert_array_equal(without(*ask), without(*ask))


def test_feed_forward_of_an_exact_model_leaves_nothing_to_correct(arm):
    start = arm.poses["zero"] + 0.1
    reference = sample_semi_implicit(quintic(start, start + 0.2, 0.4), PERIOD)
    for share, most in ((True, 1e-13), (False, 1.0)):
        log = run_closed_loop(AnalyticPlant(arm), Cascade(arm, feed_forward=share), reference)
        error = np.abs(log.q - reference.q).max()
        assert error <= most
        assert share or error > 1e-3


def test_the_integral_takes_over_a_weight_that_nothing_feeds_forward(arm):
    """With the weight as the holding torque it does not sag at all."""
    q = arm.poses["zero"] + 0.1
    reference = sample(hold(q, 2.0), PERIOD)
    law = Cascade(arm, feed_forward=False)
    log = run_closed_loop(AnalyticPlant(arm), law, reference)
    assert np.abs(log.q - q).max() > 1e-3
    assert np.abs(log.q[-1] - q).max() < 1e-4
    held = Cascade(arm, feed_forward=False, tau_hold=twin.gravity_torque(arm, q))
    assert np.abs(run_closed_loop(AnalyticPlant(arm), held, reference).q - q).max() < 1e-13


def test_the_integral_stops_at_the_motors_limit_and_only_there(robot):
    law = Cascade(robot, feed_forward=False)
    at_zero = State(0.0, np.zeros(6), np.zeros(6))
    far = Reference(np.array([5.0, 0.01, 0, 0, 0, 0]), np.zeros(6), np.zeros(6))
    u = law.gains.kp * far.q
    assert law.gains.Kv[0] * u[0] > robot.tau_max[0]
    for _ in range(100):
        law(at_zero, far)
    np.testing.assert_allclose(law.integral, [0, 0.1 * u[1], 0, 0, 0, 0], rtol=1e-12)
    law.integral[0] = 2 * robot.tau_max[0] * law.gains.Ti[0] / law.gains.Kv[0]
    before, back = law.integral[0], Reference(np.full(6, -0.01), np.zeros(6), np.zeros(6))
    assert law(at_zero, back)[0] > robot.tau_max[0]
    assert law.integral[0] < before, "an error that pulls the torque back still counts"


def test_bad_settings_are_refused(robot):
    refused(
        (lambda: Cascade(robot, Ti=0.0), "expected Ti above 0 s, inf for no integral, got 0.0"),
        (lambda: Cascade(robot, Ti=[0.1, -1, 1, 1, 1, 1]), "expected Ti above 0 s"),
        (
            lambda: Cascade(robot, kp=np.nan),
            "expected kp to be one number, or one for each of 6 joints, got nan",
        ),
        (lambda: Cascade(robot, tau_hold=[1.0, 2.0]), r"parameters of 'cascade' of shape \(m, 6\)"),
    )

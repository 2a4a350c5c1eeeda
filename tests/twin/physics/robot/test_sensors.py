"""Sensors match their definitions written out in numpy, and controllers receive their measurements."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import cont2discrete

import controllers
import twin
from tests.support.sample_drives import SLOWLY, WRIST, uncoupled
from tests.support.short_runs import PERIOD, path
from twin.base.errors import RobotError
from twin.data.logs.closed_loop import run_closed_loop
from twin.physics.control.plant import AnalyticPlant
from twin.physics.engine.simulation import Simulation
from twin.physics.robot.drives.motors import Sensors, observe, sensor_numbers
from twin.physics.trajectories.sampling import sample

N = 400
t = PERIOD * np.arange(N)
SWING = np.sin(np.outer(t, 1.0 + np.arange(6.0)) + np.arange(6.0))
SPEED = np.cos(np.outer(t, 1.0 + np.arange(6.0)) + np.arange(6.0)) * (1.0 + np.arange(6.0))


def seen(sensors, drives=None, period=PERIOD):
    """Return the measured positions and speeds of the swing, each (N, 6)."""
    numbers, past, out = sensor_numbers(sensors, drives, period), sensors.past(N, 6), np.empty((N, 2, 6))
    draws = sensors.draws(0, N, 6)
    for k in range(N):
        observe(numbers, k, np.array([SWING[k], SPEED[k]]), draws[k], past, out[k])
    return out[:, 0], out[:, 1]


def test_default_sensors_measure_exactly():
    for ours, true in zip(seen(Sensors()), (SWING, SPEED), strict=True):
        np.testing.assert_array_equal(ours, true)


def test_an_encoder_rounds_the_motors_angles_to_counts(irb140):
    drives = replace(irb140.drives, coupling=WRIST, encoder_counts=[64, 128, 64, 100, 50, 1000])
    q, qd = seen(Sensors(encoder=True), drives)
    np.testing.assert_array_equal(qd, SPEED)
    counts = q @ drives.motor_matrix.T * drives.encoder_counts / (2 * np.pi)
    np.testing.assert_allclose(counts, np.round(counts), rtol=0, atol=1e-9)
    off = (q - SWING) @ drives.motor_matrix.T * drives.encoder_counts / (2 * np.pi)
    assert 0.49 < np.max(np.abs(off)) <= 0.5 + 1e-9
    assert np.all(np.abs(np.mean(off, axis=0)) < 0.1), "it rounds, it does not cut"


def test_a_differentiated_speed_uses_the_measured_positions():
    q, qd = seen(Sensors(noise=1e-4, speed_cutoff=np.inf, seed=3))
    np.testing.assert_allclose(qd[1:], np.diff(q, axis=0) / PERIOD, rtol=1e-12)
    np.testing.assert_array_equal(qd[0], SPEED[0])


def test_the_low_pass_is_the_exact_response_to_a_held_input():
    """The reference is scipy's discretisation of `a / (s + a)` with a zero-order hold."""
    for cutoff in (5.0, 80.0, 400.0):
        a = 2 * np.pi * cutoff
        A, B, *_ = cont2discrete(tuple(np.array([[x]]) for x in (-a, a, 1.0, 0.0)), PERIOD, "zoh")
        q, qd = seen(Sensors(speed_cutoff=cutoff))
        speed = SPEED[0]
        for k in range(1, N):
            speed = A[0, 0] * speed + B[0, 0] * (q[k] - q[k - 1]) / PERIOD
            np.testing.assert_allclose(qd[k], speed, rtol=1e-11, atol=1e-13)


def test_noise_is_white_has_the_requested_size_and_precedes_rounding(irb140):
    q, qd = seen(Sensors(noise=1e-3, seed=4))
    noise = (q - SWING) / 1e-3
    np.testing.assert_array_equal(qd, SPEED)
    np.testing.assert_allclose(noise, np.random.default_rng([4, 0]).standard_normal((N, 6)), atol=1e-10)
    later = np.random.default_rng([4, 7]).standard_normal((3, 6))
    np.testing.assert_array_equal(Sensors(noise=1e-3, seed=4).draws(7, 3, 6), later)
    rounded, _ = seen(Sensors(noise=1e-3, seed=4, encoder=True), uncoupled(irb140).drives)
    half = np.pi / (irb140.drives.encoder_counts * irb140.drives.ratio)
    assert np.all(np.abs(rounded - q) <= half * (1 + 1e-9))


def test_a_delay_shifts_by_whole_samples_and_repeats_the_first_sample():
    now = seen(Sensors(noise=1e-4, speed_cutoff=50.0))
    for delay in (1, 3, N - 1, 10**9):
        late = seen(Sensors(noise=1e-4, speed_cutoff=50.0, delay=delay))
        then = np.maximum(np.arange(N) - delay, 0)
        for early, ours in zip(now, late, strict=True):
            np.testing.assert_array_equal(ours, early[then])


def test_invalid_sensors_are_rejected():
    for values, told in (
        ({"encoder": 1}, "encoder to be true or false, got 1"),
        ({"noise": -1e-3}, "noise to be at least 0 rad and finite, got -0.001"),
        ({"noise": np.inf}, "noise to be at least 0 rad and finite, got inf"),
        ({"speed_cutoff": -1.0}, "speed_cutoff to be at least 0 Hz, got -1"),
        ({"speed_cutoff": np.nan}, "speed_cutoff to be at least 0 Hz, got nan"),
        ({"speed_cutoff": True}, "speed_cutoff to be a number, got True"),
        ({"delay": -1}, "delay to be an integer of at least 0, got -1"),
        ({"seed": None}, "seed to be an integer of at least 0, got None"),
    ):
        with pytest.raises(ValueError, match=re.escape(told)):
            Sensors(**values)


def test_an_encoder_requires_a_motor_with_counts(irb140):
    reference, law = sample(path(irb140, 0.01), PERIOD), controllers.make("pd_gravity", irb140)
    bare = replace(irb140, drives=None)
    part = irb140.with_drives("ideal", replace(irb140.drives, encoder_counts=[64, 64, 0, 64, 64, 64]))
    for robot, told in ((bare, "its file has no table"), (part, "the drive of axis 3 has no encoder")):
        with pytest.raises(RobotError, match=told):
            run_closed_loop(AnalyticPlant(robot), law, reference, sensors=Sensors(encoder=True))
        with pytest.raises(RobotError, match=told):
            twin.run_rollouts(robot, law, reference, sensors=Sensors(encoder=True))
        run_closed_loop(AnalyticPlant(robot), law, reference, sensors=Sensors(noise=1e-5))


def test_runs_with_the_same_seed_are_identical_and_default_sensors_change_nothing(irb140):
    reference, law = sample(path(irb140, 0.1), PERIOD), controllers.make("computed_torque", irb140)
    noisy = [Sensors(noise=1e-5, seed=seed) for seed in (1, 1, 2)]
    with Simulation(irb140) as simulation:
        first, second, other, plain, seen_as_it_is = (
            run_closed_loop(simulation, law, reference, sensors=sensors)
            for sensors in (*noisy, None, Sensors())
        )
    assert first.identical(second)
    assert not first.identical(other)
    assert plain.identical(seen_as_it_is)
    assert plain.q_seen is plain.q


@SLOWLY
def test_the_law_receives_the_logged_measurement_of_each_sample(irb140):
    reference, states = sample(path(irb140, 0.1), PERIOD), []
    sensors = Sensors(encoder=True, noise=1e-5, speed_cutoff=30.0, delay=2)

    def law(state, _):
        states.append((state.t, state.q.copy(), state.qd.copy()))
        state.q[:] = 7.0
        return np.zeros(6)

    log = run_closed_loop(AnalyticPlant(irb140.with_drives("elastic")), law, reference, sensors=sensors)
    times, q, qd = (np.array(column) for column in zip(*states, strict=True))
    np.testing.assert_array_equal(times, reference.t)
    np.testing.assert_array_equal(q, log.q_seen)
    np.testing.assert_array_equal(qd, log.qd_seen)
    assert np.max(np.abs(q[2:] - log.q_motor[:-2])) < 1e-4
    assert np.max(np.abs(q[2:] - log.q[:-2])) > 3e-4, "gravity has wound the springs up"

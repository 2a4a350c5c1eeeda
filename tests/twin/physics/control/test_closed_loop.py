import time
from dataclasses import replace

import numpy as np
import pytest

from tests.support.sample_drives import SLOWLY, uncoupled
from tests.support.short_runs import PERIOD, still
from twin.data.logs.closed_loop import run_closed_loop
from twin.physics.control.plant import AnalyticPlant
from twin.physics.dynamics.equation_of_motion import gravity_torque, inverse_dynamics
from twin.physics.engine.simulation import Simulation
from twin.physics.robot.drives.motors import Sensors
from twin.physics.robot.robot import Payload
from twin.physics.trajectories.joint_trajectories import sines
from twin.physics.trajectories.sampling import Samples, sample, sample_semi_implicit


class ComputedTorque:
    """The law whose error is round-off when model and plant are one; written out, to stand on its own."""

    name = "exact"

    def __init__(self, robot):
        self.robot = robot
        self.resets = 0

    def reset(self):
        self.resets += 1

    def __call__(self, state, reference):
        qdd = reference.qdd + 40.0 * (reference.qd - state.qd) + 400.0 * (reference.q - state.q)
        return inverse_dynamics(self.robot, state.q, state.qd, qdd)


@pytest.fixture(scope="module")
def swing(irb140):
    middle = 0.5 * (irb140.q_min + irb140.q_max)
    return sines(middle, np.full(6, 0.5), np.array([0.31, 0.43, 0.57, 0.61, 0.73, 0.89]), 0.5)


@pytest.fixture(scope="module")
def simulation(irb140):
    with Simulation(irb140) as simulation:
        yield simulation


LOAD = Payload(6.0, [0.0, 0.01, 0.08], np.diag([0.02, 0.02, 0.01]))


@pytest.mark.parametrize(("where", "payload"), [("floor", None), ("inverted", LOAD)])
def test_an_exact_model_tracks_a_consistent_reference_to_round_off(irb140, swing, where, payload):
    """And the analytic plant is the engine, run after run."""
    robot = irb140.mounted(where).with_payload(payload)
    reference, law = sample_semi_implicit(swing, PERIOD), ComputedTorque(robot)
    with Simulation(robot) as simulation:
        log, again = (run_closed_loop(simulation, law, reference) for _ in range(2))
    with Simulation(robot) as another:
        assert log.identical(again)
        assert log.identical(run_closed_loop(another, law, reference))
    assert law.resets == 3
    assert not log.saturated.any()
    assert np.max(np.abs(log.q - log.q_ref)) <= 1e-13
    assert np.max(np.abs(log.pose - log.pose_ref)) <= 1e-13
    assert log.model_residual() <= 1e-12
    assert np.ptp(log.q, axis=0).min() > 0.3, "every joint moved"
    analytic = run_closed_loop(AnalyticPlant(robot), law, reference)
    assert np.max(np.abs(log.q - analytic.q)) <= 1e-13
    assert np.max(np.abs(log.qd - analytic.qd)) <= 1e-12


def test_round_off_tracking_notices_a_model_that_is_off_by_a_millionth(simulation, irb140, swing):
    almost = irb140.with_payload(Payload(98e-6))
    log = run_closed_loop(simulation, ComputedTorque(almost), sample_semi_implicit(swing, PERIOD))
    assert np.max(np.abs(log.q - log.q_ref)) > 1e-9


def test_a_continuous_reference_costs_what_a_step_costs(simulation, irb140, swing):
    log = run_closed_loop(simulation, ComputedTorque(irb140), sample(swing, PERIOD))
    assert 1e-6 < np.max(np.abs(log.q - log.q_ref)) < 2e-3


def test_torques_are_held_for_the_steps_of_a_period(irb140):
    reference, steps = still(irb140), 5
    tau = gravity_torque(irb140, np.zeros(6)) + np.array([3.0, 2.0, 1.0, 0.1, 0.1, 0.1])
    plant = AnalyticPlant(irb140, PERIOD / steps)
    held = run_closed_loop(plant, lambda *_: tau, reference, steps_per_period=steps)
    plant.reset(np.zeros(6))
    for _ in range(19 * steps):
        plant.step(tau)
    np.testing.assert_array_equal(held.q[-1], plant.state()[0])
    assert held.model_residual() <= 1e-12
    with Simulation(irb140, time_step=PERIOD / steps) as simulation:
        engine = run_closed_loop(simulation, lambda *_: tau, reference, steps_per_period=steps)
        np.testing.assert_array_equal(simulation.state()[0], engine.q[-1])  # it ends with the last sample
    np.testing.assert_allclose(engine.q, held.q, rtol=0, atol=1e-14)


def test_what_the_controller_is_given_and_what_is_logged(irb140):
    reference = Samples(*(np.arange(5)[:, None] * np.ones(6) * scale for scale in (PERIOD, 1e-4, 0.1, 0.3)))
    reference = reference._replace(t=reference.t[:, 0])
    seen = []

    def controller(state, wanted):
        seen.append((state, wanted))
        return np.full(6, 1e6 if len(seen) == 3 else 0.005)

    robot = replace(irb140, tau_max=np.full(6, 0.007))
    log = run_closed_loop(AnalyticPlant(robot), controller, reference)
    assert log.controller == "controller"
    assert len(seen) == 5
    for k, (state, wanted) in enumerate(seen):
        assert state.t == reference.t[k]
        for ours, theirs in ((state.q, log.q), (state.qd, log.qd)):
            np.testing.assert_array_equal(ours, theirs[k])
        for ours, theirs in ((wanted.q, reference.q), (wanted.qd, reference.qd), (wanted.qdd, reference.qdd)):
            np.testing.assert_array_equal(ours, theirs[k])
    np.testing.assert_array_equal(log.q[0], reference.q[0])
    np.testing.assert_array_equal(log.qd[0], reference.qd[0])
    np.testing.assert_array_equal(log.saturated.any(axis=1), [False, False, True, False, False])
    np.testing.assert_array_equal(log.tau[2], np.full(6, 0.007))
    np.testing.assert_array_equal(log.tau_demand[2], np.full(6, 1e6))
    assert log.model_residual() < 1e-12, "it is the limited torque that moved the arm"


def test_a_controller_cannot_rewrite_its_reference(irb140):
    reference = still(irb140)

    def vandal(_, wanted):
        wanted.q[:] = 7.0

    with pytest.raises(ValueError, match="read-only"):
        run_closed_loop(AnalyticPlant(irb140), vandal, reference)
    assert not reference.q.any()


def test_progress_is_reported_rarely_and_at_the_end(irb140):
    told = []

    def slow(*_):
        time.sleep(0.002)
        return np.zeros(6)

    run_closed_loop(AnalyticPlant(irb140), slow, still(irb140, 100), progress=told.append)
    assert 2 <= len(told) <= 15
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_one_sample_is_a_run_from_a_start_off_the_reference(irb140):
    """A plant may return a new array of its state."""

    class Noisy(AnalyticPlant):
        def state(self, out=None):
            return super().state() + 1e-3

    start = np.full(6, 0.1), np.full(6, 0.2)
    log = run_closed_loop(Noisy(irb140), lambda *_: np.zeros(6), still(irb140, 1), start=start)
    np.testing.assert_array_equal(log.q, np.full((1, 6), 0.1 + 1e-3))
    np.testing.assert_array_equal(log.qd, np.full((1, 6), 0.2 + 1e-3))
    assert log.model_residual() is None


@SLOWLY
@pytest.mark.parametrize(("mode", "steps"), [("rigid", 3), ("elastic", 1)])
def test_what_is_logged_of_the_drives_is_what_the_plant_had(irb140, swing, mode, steps):
    robot = irb140.with_drives(mode)
    had, seen = [], []

    class Watched(AnalyticPlant):
        def step(self, tau):
            super().step(tau)
            had.append(self.tau_joint)

    def controller(state, reference):
        seen.append(np.array(plant.motor_state()))
        return inverse_dynamics(irb140, state.q, state.qd, 400.0 * (reference.q - state.q) - 40.0 * state.qd)

    plant = Watched(robot, PERIOD / steps)
    reference = Samples(*(part[:100] for part in sample(swing, PERIOD)))
    log = run_closed_loop(plant, controller, reference, steps_per_period=steps)
    np.testing.assert_array_equal(log.tau_joint[:-1], had[::steps])
    np.testing.assert_array_equal(log.tau_joint[-1], had[-steps])
    np.testing.assert_array_equal(np.array([log.q_motor, log.qd_motor]).swapaxes(0, 1), seen)
    assert log.q_seen is log.q_motor
    assert (log.q_motor is log.q) == (mode == "rigid")
    assert log.drives == mode
    # Newton's law of the arm alone, from the log alone: what it got is what its speeds tell.
    if steps == 1:
        qdd = np.diff(log.qd, axis=0) / PERIOD
        tau = inverse_dynamics(irb140, log.q[:-1], log.qd[:-1], qdd)
        assert np.max(np.abs(tau - log.tau_joint[:-1])) <= 1e-9


def test_drives_limit_torque_by_the_motors_and_their_speed(irb140):
    """Not by `tau_max`, which is of ideal drives."""
    drives = uncoupled(irb140).drives
    drives = replace(drives, motor_torque_max=0.5, motor_speed_rated=1.0, motor_speed_max=200.0)
    robot = replace(irb140.with_drives("rigid", drives), tau_max=np.full(6, 1e-3))
    start = (np.zeros(6), np.full(6, 0.5))
    log = run_closed_loop(AnalyticPlant(robot), lambda *_: np.full(6, 1e3), still(irb140, 3), start=start)
    speed = drives.ratio * log.qd[0]
    np.testing.assert_allclose(log.tau_motor[0], 0.5 * (200.0 - speed) / (200.0 - 1.0), rtol=1e-12)
    assert log.saturated.all()


class Bare:
    """A plant of one's own, from before there were drives."""

    def __init__(self, robot):
        self.robot, self.time_step, self.loop_gap = robot, PERIOD, 0.0
        self.x = np.zeros((2, robot.n))

    def reset(self, q, qd=None):
        self.x[:] = q, 0.0 if qd is None else qd

    def state(self, out=None):
        return self.x.copy()

    def step(self, tau):
        self.x[0] += PERIOD * tau


def test_a_plant_without_drives_serves_robots_whose_drives_are_ideal(irb140):
    log = run_closed_loop(Bare(irb140), lambda *_: np.ones(6), still(irb140))
    assert log.tau_joint is log.tau
    log = run_closed_loop(Bare(irb140), lambda *_: np.ones(6), still(irb140), sensors=Sensors(delay=1))
    np.testing.assert_array_equal(log.q_seen[1:], log.q[:-1])
    with pytest.raises(ValueError, match=r"are rigid, and this plant has none: .* got a Bare"):
        run_closed_loop(Bare(irb140.with_drives("rigid")), lambda *_: np.ones(6), still(irb140))

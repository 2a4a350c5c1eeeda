"""The disturbance observer finds what acts on the arm, and computed torque cancels it."""

import numpy as np
import pytest

import controllers
import twin
from scenarios.joint_tracking import JointTracking
from scenarios.setup import Setup
from twin.physics.trajectories.sampling import Reference, State

ARM = twin.load("irb140").with_payload(twin.Payload(3.0, [0.05, 0.0, 0.1], np.diag([0.02, 0.02, 0.02])))
MOVE = twin.sample_semi_implicit(twin.quintic([0.1] * 6, [0.5, 0.3, -0.2, 0.6, 0.8, -0.5], 0.8), 1e-3)
FORCE = np.array([20.0, -15.0, 30.0, 1.0, 2.0, -1.0])


class Pushed(twin.AnalyticPlant):
    """Plant on whose flange a constant wrench acts."""

    def step(self, tau, wrench=None, T_flange_tool=None):
        super().step(tau, FORCE, T_flange_tool)


def observed(robot, plant, reference=None, **settings):
    """Return the log of a run, and the estimates (N, n) of the observer."""
    law = controllers.make("dob", robot, **settings)
    log = twin.run_closed_loop(plant, law, MOVE if reference is None else reference)
    return log, log.law_signals["disturbance"]


def filtered(disturbance, K):
    """Return the disturbance (N, n) of each period, filtered as the observer does."""
    estimates = np.zeros_like(disturbance)
    for k in range(1, len(disturbance)):
        estimates[k] = estimates[k - 1] + K * 1e-3 * (disturbance[k - 1] - estimates[k - 1])
    return estimates


@pytest.mark.parametrize("K", [30.0, 2000.0])
def test_estimate_is_the_filtered_torque_of_the_push(K):
    log, estimates = observed(ARM, Pushed(ARM), K=K)
    push = np.array([twin.jacobian(ARM, q).T @ FORCE for q in log.q])
    np.testing.assert_allclose(estimates, filtered(push, min(K, 1000.0)), rtol=0, atol=1e-10)
    assert np.max(np.abs(push)) > 10


def test_estimate_with_rotors_and_friction_is_exact_in_motion_and_within_static_friction_at_rest():
    robot = ARM.with_drives("rigid")
    log, estimates = observed(robot, Pushed(robot), K=1000.0)
    push = np.array([twin.jacobian(ARM, q).T @ FORCE for q in log.q])
    moving = (np.abs(log.qd) > 0.02).all(axis=1)
    later = np.flatnonzero(moving[1:] & moving[:-1]) + 1
    assert len(later) > 500
    np.testing.assert_allclose(estimates[later], push[later - 1], rtol=0, atol=1e-9)
    excess = np.abs(estimates[1:] - push[:-1]) - np.abs(robot.drives.friction_matrix.T) @ robot.drives.static
    assert np.max(excess) < 1e-9


def test_torque_limit_is_no_disturbance():
    fast = twin.sample_semi_implicit(twin.quintic([0.0] * 6, [1.2] * 6, 0.25), 1e-3)
    log, estimates = observed(ARM, twin.AnalyticPlant(ARM), fast, K=1000.0)
    assert log.saturated.any()
    assert np.max(np.abs(estimates)) < 1e-8 * np.max(np.abs(log.tau))


def test_estimate_of_an_exact_model_at_rest_is_rounding():
    still = twin.sample(twin.hold([0.2] * 6, 0.2), 1e-3)
    log, estimates = observed(ARM, twin.AnalyticPlant(ARM), still)
    assert np.max(np.abs(log.q - log.q_ref)) < 1e-13
    assert np.max(np.abs(estimates[-1])) < 1e-9


@pytest.mark.parametrize(
    ("settings", "limit", "times"),
    [
        ({"drives": "rigid", "law_settings": (("K", 300.0),)}, 0.0025, 4),
        (
            {"drives": "rigid", "law_settings": (("K", 300.0),), "encoder": True, "speed_cutoff": 100.0},
            0.01,
            4,
        ),
        ({"drives": "elastic", "encoder": True, "speed_cutoff": 100.0, "delay": 2}, 0.05, 2),
    ],
)
@pytest.mark.filterwarnings("ignore::twin.errors.DriveWarning")
def test_unknown_payload_costs_computed_torque_several_times_as_much(settings, limit, times):
    """Least with delayed measurements behind springs, where the observer follows a reversal late."""
    errors = []
    for law in ("dob", "computed_torque"):
        chosen = settings if law == "dob" else {**settings, "law_settings": ()}
        setup = Setup(controller=law, payload="6", model_payload="0", **chosen)
        log = JointTracking().run(setup).log
        errors.append(np.max(np.abs(log.q - log.q_ref)))
    assert errors[0] < limit
    assert errors[1] > times * errors[0]


def test_gains_are_settings_and_torques_are_needed():
    assert controllers.settings("dob") == ("bandwidth", "period", "Kp", "Kv", "K")
    law = controllers.make("dob", ARM, K=[1, 2, 3, 4, 5, 6])
    assert law.gains.K.tolist() == [1, 2, 3, 4, 5, 6]
    with pytest.raises(ValueError, match="expected K to be one number, or one for each of 6 joints"):
        controllers.make("dob", ARM, K=[1.0, 2.0])
    zeros = np.zeros(6)
    with pytest.raises(ValueError, match="expected the torques that the motors gave"):
        law(State(0.0, zeros, zeros), Reference(zeros, zeros, zeros))


def test_observed_torque_is_in_the_log_and_its_plot(tmp_path):
    setup = Setup(controller="dob", payload="3", model_payload="0")
    log = JointTracking(duration=0.1).run(setup).log
    observed = log.law_signals["disturbance"]
    assert observed.shape == log.q.shape
    assert np.max(np.abs(observed)) > 1.0
    log.save(tmp_path / "run.npz")
    again = twin.Log.load(tmp_path / "run.npz")
    assert np.array_equal(again.law_signals["disturbance"], observed)
    assert len(again.plot("disturbance").axes) == 6
    plain = JointTracking(duration=0.02).run().log
    assert not plain.law_signals
    with pytest.raises(ValueError, match="no controller of these logs has signals"):
        plain.plot("disturbance")

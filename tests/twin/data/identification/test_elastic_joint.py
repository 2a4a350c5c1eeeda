"""Identification of an elastic joint: parameters, their deviations, and Norrlöf's experiment on the twin."""

import dataclasses

import numpy as np
import pytest
from scipy.signal import lfilter

from tests.published import identify_joint as experiment
from twin.base.errors import IdentificationError
from twin.data.identification import elastic_joint
from twin.data.identification.elastic_joint import difference_equation, exact, identify_elastic_joint
from twin.physics.dynamics import flexible_joint
from twin.physics.dynamics.flexible_joint import FlexibleJoint, frequency_response, poles, velocity_model

R, PERIOD = 13 / 1540, 0.002
JM, JA, FM, K = experiment.PUBLISHED
NORRLOF = FlexibleJoint.reported(JM, JA, K, R, FM)
DAMPED = dataclasses.replace(NORRLOF, d=60.0, r=-R)
N, NOISE = 1000, 6.0
SLOW = np.cumsum(np.random.default_rng(0).standard_normal(N))
T = PERIOD * np.arange(N)


def multisine(seed):
    """The experiment's torque: half a newton metre from 0.5 to 40 Hz, for 2 s."""
    return experiment.multisine(np.arange(1, 81) / 2, 0.5, T, np.random.default_rng(seed))


def moved(joint, torque, model=exact, **sampling):
    return lfilter(*difference_equation(model(joint, PERIOD, **sampling)), torque)


def relative(found, joint, names=("Jm", "Ja", "fm", "k", "d")):
    return max(abs(getattr(found, name) / getattr(joint, name) - 1) for name in names if getattr(joint, name))


def test_deviations_are_honest_over_100_seeds_and_of_the_size_of_his():
    torque = multisine(0)
    speed = moved(NORRLOF, torque)
    found = []
    for seed in range(100):
        noise = NOISE * np.random.default_rng(seed).standard_normal(N)
        estimate = identify_elastic_joint(torque, speed + noise, PERIOD, R)
        found.append((*estimate.reported(), estimate.noise))
    values, deviations, noise = map(np.array, zip(*found, strict=True))
    errors = np.abs(values - experiment.PUBLISHED) / deviations
    within = np.mean(errors < 2, axis=0)
    assert np.all(within >= 0.90), within
    assert 0.60 <= np.mean(errors < 1) <= 0.76
    assert np.mean(noise) == pytest.approx(NOISE, rel=0.01)
    ratio = np.mean(deviations / values, axis=0) / (experiment.PUBLISHED_DEVIATIONS / experiment.PUBLISHED)
    assert np.all((ratio > 0.5) & (ratio < 2)), ratio
    assert np.exp(np.mean(np.log(ratio))) == pytest.approx(1.0, abs=0.3)


def test_without_noise_the_parameters_come_back():
    """Whatever is known of the start, the sign of the gear, and the mean."""
    torque = multisine(1)
    speed = moved(NORRLOF, torque)
    found = identify_elastic_joint(torque[200:] + 0.3, speed[200:] - 7.0, PERIOD, R)
    assert relative(found.joint, NORRLOF) < 1e-8
    np.testing.assert_allclose(found.speed, speed[200:] - 7.0, rtol=0, atol=1e-8)
    damped = identify_elastic_joint(torque, moved(DAMPED, torque), PERIOD, -R, damping=True)
    assert damped.names == ("Jm", "Ja", "fm", "k", "d")
    assert relative(damped.joint, DAMPED) < 1e-8


@pytest.mark.parametrize("steps", [1, 4])
def test_the_model_in_steps_is_the_motion_of_the_twin(steps):
    torque = multisine(2)[:60]
    held = np.repeat(torque, steps)
    friction = dataclasses.replace(DAMPED, fa=3.0)
    twins = flexible_joint.simulate_flexible_joint(friction, held, PERIOD / steps)[:-1:steps, 1]
    found = moved(friction, torque, elastic_joint.in_steps, steps=steps)
    np.testing.assert_allclose(found, twins, rtol=0, atol=1e-10)


def test_the_model_of_continuous_time_is_its_frequency_response_and_poles():
    """The poles are exp(T poles).

    For slow signals the response is that of continuous time, half a period later.
    """
    b, a = difference_equation(exact(DAMPED, PERIOD))
    expected = np.exp(PERIOD * poles(velocity_model(DAMPED)))
    np.testing.assert_allclose(np.sort_complex(np.roots(a)), np.sort_complex(expected), rtol=0, atol=1e-11)
    omega = np.array([1.0, 20.0])
    z = np.exp(1j * omega * PERIOD)
    late = frequency_response(velocity_model(DAMPED), omega) * np.exp(-0.5j * omega * PERIOD)
    np.testing.assert_allclose(np.polyval(b, z) / np.polyval(a, z), late, rtol=1e-3)


@pytest.mark.parametrize("seed", [3, 8])
def test_several_starts_find_what_the_likeliest_one_does_not(seed):
    """Hardly any friction, a damped spring, and more noise than signal."""
    joint = dataclasses.replace(NORRLOF, fm=0.002, d=64.0)
    torque = multisine(seed)
    speed = moved(joint, torque) + 18.0 * np.random.default_rng(seed).standard_normal(N)
    found = identify_elastic_joint(torque, speed, PERIOD, R, damping=True)
    true = np.array([getattr(joint, name) for name in found.names])
    assert np.all(np.abs(found.values - true) < 3 * found.deviations)


def test_the_deviations_are_those_of_all_that_is_fitted_together():
    """By differences of the motion in its states, with the start and the offset among the unknowns."""
    short = 60
    torque = multisine(6)[:short]
    true = np.array([*(getattr(NORRLOF, name) for name in ("Jm", "Ja", "fm", "k")), 5.0, 0.1, 1e-3, 2.0])

    def motion(unknown):
        A, B = exact(FlexibleJoint(unknown[0], unknown[1], unknown[3], R, unknown[2]), PERIOD)
        x, speed = unknown[4:7], np.empty(short)
        for k in range(short):
            speed[k] = x[0] + unknown[7]
            x = A @ x + B * torque[k]
        return speed

    measured = motion(true) + 0.01 * np.random.default_rng(0).standard_normal(short)
    found = identify_elastic_joint(torque, measured, PERIOD, R)
    at = np.concatenate([found.values, true[4:]])
    steps = 1e-5 * at * np.eye(8)
    J = np.array([(motion(at + step) - motion(at - step)) / 2e-5 for step in steps]).T  # by relative changes
    cov = found.noise**2 * np.linalg.inv(J.T @ J)
    relative = np.sqrt(np.diag(cov))
    np.testing.assert_allclose(found.deviations / found.values, relative[:4], rtol=1e-3)
    np.testing.assert_allclose(found.correlation, (cov / np.outer(relative, relative))[:4, :4], atol=1e-3)


def test_validation_is_by_simulation_alone():
    torque, other = multisine(4), multisine(5)
    speed = moved(NORRLOF, other) + 3.0
    found = identify_elastic_joint(torque, moved(NORRLOF, torque), PERIOD, R)
    simulated = elastic_joint.simulated_speed(found.joint, other, speed, PERIOD)
    np.testing.assert_allclose(simulated, speed, rtol=0, atol=1e-7 * np.ptp(speed))
    stiffer = dataclasses.replace(NORRLOF, k=1.3 * NORRLOF.k)
    assert np.std(elastic_joint.simulated_speed(stiffer, other, speed, PERIOD) - speed) > 0.1 * np.std(speed)


@pytest.mark.parametrize(
    ("changed", "error", "told"),
    [
        ({"tau": np.zeros((2, 3))}, ValueError, r"tau and speed of one shape \(N,\), got \(2, 3\) and"),
        ({"period": 0.0}, ValueError, "expected a period above 0 s, got 0"),
        ({"r": 0.0}, ValueError, "expected r to be a finite number other than 0, got 0"),
        ({"tau": np.ones(N)}, IdentificationError, "the torque of the motor is constant: nothing excites"),
        ({"speed": np.ones(N)}, IdentificationError, "the speed of the motor is constant"),
        ({"tau": [0, 1.0], "speed": [0, 1.0]}, IdentificationError, "2 samples is too short, expected at le"),
        ({"speed": SLOW}, IdentificationError, r"does not determine \w+ of the elastic joint: its deviation"),
        ({"tau": -multisine(0)}, IdentificationError, "is not a response to its torque"),
    ],
)
def test_parameters_that_cannot_be_estimated_are_reported(changed, error, told):
    arguments = {"tau": multisine(0), "speed": moved(NORRLOF, multisine(0)), "period": PERIOD, "r": R}
    with pytest.raises(error, match=told):
        identify_elastic_joint(**arguments | changed)


@pytest.fixture(scope="module")
def found():
    return experiment.run(duration=1.0)


def test_friction_that_is_not_linear_is_reported_without_limits():
    """Coulomb friction looks viscous: f_m is found many times too large."""
    found = experiment.run(linear=False, torque=1.5, speed_noise=1.0, duration=1.0)
    metrics = {metric.name: metric for metric in experiment.metrics(found)}
    assert metrics["f_m: error / its deviation"].limit is None
    assert all(metric.passes for metric in metrics.values())
    assert found.truth[2] == pytest.approx(34 * R**2)
    assert found.values[2] > 3 * found.truth[2]


def test_an_estimate_that_is_off_does_not_hold(found):
    np.testing.assert_allclose(found.truth, experiment.PUBLISHED, rtol=2e-3)
    assert all(metric.passes for metric in experiment.metrics(found))
    spoilt = {"values": found.truth + 5 * found.deviations, "clean": found.clean * (1 + 1e-7)}
    judged = experiment.metrics(found._replace(**spoilt))
    assert [metric.passes for metric in judged[:4]] == [False] * 4
    wrong = [metric.name for metric in judged[4:] if not metric.passes]
    assert wrong == ["without noise: largest relative error"]
    judged = experiment.metrics(found._replace(model_speed=found.model_speed * 1.2))
    assert [metric.name for metric in judged if not metric.passes] == ["validation: error / noise"]

"""Letting go at rest: the predicted sag, and how long it takes to get there."""

import dataclasses

import numpy as np
import pytest

from scenarios.gravity_hold import decay, settled_error
from scenarios.running import registry
from twin.logs.figures import joint_error

SCENARIO = registry.find("gravity_hold")


def test_sag_under_pd_agrees_with_prediction_and_another_one_fails():
    log = SCENARIO.run(SCENARIO.Config(controller="pd"))
    predicted = settled_error(log)
    assert np.abs(predicted).max() > 0.05
    np.testing.assert_allclose(joint_error(log)[-1], predicted, rtol=0, atol=1e-13)
    assert all(metric.passes for metric in SCENARIO.metrics(log))
    moved = log.q.copy()
    moved[-1, 4] += 2e-9
    broken = [one.name for one in SCENARIO.metrics(dataclasses.replace(log, q=moved)) if not one.passes]
    assert "last error - predicted one" in broken


@pytest.mark.parametrize(
    ("controller", "bandwidth", "duration", "limited"),
    [
        ("pd", 5.0, 4.0, False),
        ("pid", 5.0, 1.0, False),
        ("pd", 1e-200, 0.5, False),
        ("pid", 1.0, 2.0, False),  # the integral outruns springs that soft
        ("pd", 20.0, 6.0, True),
        ("pid", 20.0, 6.0, True),
        ("pd_gravity", 5.0, 0.01, True),
        ("computed_torque", 5.0, 0.01, True),
    ],
)
def test_settled_error_has_limit_only_after_settling(controller, bandwidth, duration, limited):
    log = SCENARIO.run(SCENARIO.Config(controller=controller, bandwidth=bandwidth, duration=duration))
    metrics = SCENARIO.metrics(log)
    assert all(metric.passes for metric in metrics)
    limits = [metric.limit for metric in metrics if metric.name == "last error - predicted one"]
    assert limits == ([1e-9] if limited else [] if bandwidth < 1e-100 else [None])


@pytest.mark.parametrize(
    ("controller", "bandwidth", "pose", "duration"), [("pd", 5.0, "zero", 20.0), ("pid", 5.0, "zero", 10.0)]
)
def test_decay_rate_agrees_with_simulated_transient(controller, bandwidth, pose, duration):
    config = SCENARIO.Config(controller=controller, bandwidth=bandwidth, pose=pose, duration=duration)
    log = SCENARIO.run(config)
    settled = settled_error(log)
    left = np.linalg.norm(joint_error(log) - settled, axis=1)
    late = log.t > 0.5 * duration
    measured = -np.polyfit(log.t[late], np.log(left[late]), 1)[0]
    assert decay(log, settled) == pytest.approx(measured, rel=1e-3)  # a step of 1 ms changes poles by as much

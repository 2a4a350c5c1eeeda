"""Letting go at rest: the predicted sag, and how long it takes to get there."""

import numpy as np
import pytest

from scenarios.gravity_hold import GravityHold, decay, settled_error
from scenarios.setup import Setup
from tests.support.changed_runs import with_log
from twin.data.logs.figures import joint_error


def test_sag_under_pd_agrees_with_prediction_and_another_one_fails():
    run = GravityHold().run(Setup(controller="pd"))
    log = run.log
    predicted = settled_error(log, run.loop.bandwidth)
    assert np.abs(predicted).max() > 0.05
    np.testing.assert_allclose(joint_error(log)[-1], predicted, rtol=0, atol=1e-13)
    assert all(metric.passes for metric in GravityHold().metrics(run))
    moved = log.q.copy()
    moved[-1, 4] += 2e-9
    broken = [one.name for one in GravityHold().metrics(with_log(run, q=moved)) if not one.passes]
    assert "last error - predicted one" in broken


@pytest.mark.parametrize(
    ("controller", "bandwidth", "duration", "limited"),
    [
        ("pid", 5.0, 1.0, False),
        ("pd", 1e-200, 0.5, False),
        ("pid", 1.0, 2.0, False),  # the integral outruns springs that soft
        ("pd", 40.0, 3.0, True),
        ("pid", 40.0, 3.0, True),
        ("computed_torque", 5.0, 0.01, True),
    ],
)
def test_settled_error_has_limit_only_after_settling(controller, bandwidth, duration, limited):
    scenario = GravityHold(duration=duration)
    metrics = scenario.metrics(scenario.run(Setup(controller=controller, bandwidth=bandwidth)))
    assert all(metric.passes for metric in metrics)
    limits = [metric.limit for metric in metrics if metric.name == "last error - predicted one"]
    assert limits == ([1e-9] if limited else [] if bandwidth < 1e-100 else [None])


@pytest.mark.parametrize(("controller", "duration"), [("pd", 20.0), ("pid", 10.0)])
def test_decay_rate_agrees_with_simulated_transient(controller, duration):
    scenario, bandwidth = GravityHold(pose="zero", duration=duration), 5.0
    log = scenario.run(Setup(controller=controller, bandwidth=bandwidth)).log
    settled = settled_error(log, bandwidth)
    left = np.linalg.norm(joint_error(log) - settled, axis=1)
    late = log.t > 0.5 * duration
    measured = -np.polyfit(log.t[late], np.log(left[late]), 1)[0]
    # A step of 1 ms changes poles by as much.
    assert decay(log, bandwidth, settled) == pytest.approx(measured, rel=1e-3)

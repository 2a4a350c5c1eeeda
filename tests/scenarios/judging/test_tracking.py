"""Checks of a run besides its error: ranges, speed limits and torque limits."""

from dataclasses import replace

import numpy as np
import pytest

from scenarios.judging.agreement import agreement_metrics
from scenarios.judging.following import DECAY, RADIUS
from scenarios.judging.tracking import bound_metric, error_metrics, validity_metrics
from tests.support import tasks
from tests.support.changed_runs import with_log
from tests.support.example_logs import sliding_log
from twin.data.logs.figures import place_of_largest, unit_of_largest


@pytest.fixture(scope="module")
def run():
    return tasks.run("joint_tracking", duration=0.05)


@pytest.fixture(scope="module")
def log(run):
    return run.log


def named(metrics, name):
    return next(metric for metric in metrics if metric.name == name)


def test_motion_within_limits_passes_every_check(log):
    assert all(metric.passes for metric in validity_metrics(log))
    assert [metric.value for metric in validity_metrics(log)][:2] == [0.0, 0.0]


@pytest.mark.parametrize(("joint", "end"), [(0, "q_min"), (2, "q_max"), (5, "q_min"), (5, "q_max")])
def test_check_reports_excess_of_reference_beyond_range(log, joint, end):
    """Test one sample of one joint at either end of its range."""
    for beyond in (0.25, 0.0):
        q_ref = log.q_ref.copy()
        q_ref[7, joint] = getattr(log.robot, end)[joint] + (-beyond if end == "q_min" else beyond)
        metric = named(validity_metrics(replace(log, q_ref=q_ref)), "reference beyond the range")
        assert metric.value == pytest.approx(beyond, abs=1e-15)
        assert metric.passes is (beyond == 0.0)


def test_checks_of_speed_and_torque_report_ratio_and_samples(log):
    qd_ref, cut = log.qd_ref.copy(), log.saturated.copy()
    qd_ref[3, 4] = -1.5 * log.robot.qd_max[4]
    cut[2:5, 1] = cut[4, 3] = True
    metrics = validity_metrics(replace(log, qd_ref=qd_ref, saturated=cut))
    for name, value in (("reference speed / its limit", 1.5), ("samples at the torque limit", 4.0)):
        assert named(metrics, name).value == pytest.approx(value, rel=1e-15)
        assert not named(metrics, name).passes


def test_every_check_names_joint_and_time(run):
    """With a disturbed sample 7 of joint 3, the checks of error, model, range, speed and torque name it."""
    log = run.log
    struck = {name: getattr(log, name).copy() for name in ("q", "q_ref", "qd_ref", "saturated")}
    struck["q"][7, 2] += 5.0
    struck["q_ref"][7, 2] = log.robot.q_max[2] + 1.0
    struck["qd_ref"][7, 2] = -2 * log.robot.qd_max[2]
    struck["saturated"][7:9, 2] = True
    struck = with_log(run, **struck)
    metrics = (*error_metrics(struck), bound_metric(with_log(struck, controller="pd")))
    metrics += (*agreement_metrics(struck), *validity_metrics(struck.log))
    places = {metric.name: metric.where for metric in metrics}
    assert places.pop("largest tool error") == "at t = 0.007 s"
    assert places.pop("engine - model, one step") != ""  # of velocities, which are undisturbed
    assert places.pop("engine - model, every state / its limit") == "joint_3 at t = 0.008 s"  # next step
    assert places.pop("samples not replayed") == ""
    assert places.pop("joint error / its bound").startswith("joint_3 at t = 0.007 s, whose bound is ")
    for name in (RADIUS, DECAY, "1 mrad, model - its recursion"):  # of another run
        places.pop(name)
    assert len(places) == 5
    assert set(places.values()) == {"joint_3 at t = 0.007 s"}


def test_place_of_largest_names_largest_magnitude_or_first_nan(log):
    error = np.zeros((51, 6))
    assert place_of_largest(log, error) == ""
    error[3, 1], error[20, 4] = 1.0, -2.0
    assert place_of_largest(log, error) == "joint_5 at t = 0.02 s"
    error[40, 0] = np.nan
    assert place_of_largest(log, error) == "joint_1 at t = 0.04 s"
    assert place_of_largest(log, error[:, 4]) == "at t = 0.02 s"
    assert place_of_largest(log, error[:0]) == ""


def test_unit_of_an_error_is_that_of_its_joint():
    log = sliding_log()
    for kind, unit in (("prismatic", "m"), ("revolute", "rad")):
        error = np.zeros_like(log.q)
        error[3, log.robot.joint_kinds.index(kind)] = 1.0
        assert unit_of_largest(log, error) == unit
        assert unit_of_largest(log, error, "speed") == f"{unit}/s"

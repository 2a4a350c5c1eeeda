"""Limits that follow from the closed loop, and comparisons with published poses."""

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from scenarios.judging.agreement import agreement_metrics
from scenarios.judging.bounds import whole_run_limit
from scenarios.judging.tracking import torque_limit_metric, tracking_metrics
from scenarios.pose_path import PosePath
from tests.support import tasks
from tests.support.changed_runs import with_log, with_loop
from tests.support.scenario_cases import full_run


def test_whole_run_limit_follows_rounding_amplified_by_the_loop():
    """The limit is near the observed difference in a soft and in a stiff loop."""
    for name, settings in (
        ("joint_tracking", {"duration": 1.0}),
        ("payload_mismatch", {"mounting": "inverted", "bandwidth": 19.0}),
    ):
        run = tasks.run(name, robot="irb1400", controller="pid", **settings)
        log, rounding = run.log, run.prediction.rounding
        seen, limit = np.max(np.abs(log.q - run.prediction.q)), whole_run_limit(log, rounding)
        assert 0.2 * seen < np.max(rounding.spread) < 10 * seen
        assert seen <= limit
        nudged = with_log(run, q=log.q + 2 * limit)
        whole = agreement_metrics(nudged)[0]
        assert whole.name == "engine - model, whole run"
        assert not whole.passes


LAWS = """
import numpy as np
from twin import ControlLaw, mass_matrix

def spring(state, reference, parameters, memory, model):
    return parameters[0] * (reference.q - state.q) - parameters[1] * state.qd

def spoken(state, reference, parameters, memory, model):
    return spring(state, reference, parameters, memory, model) + 0.0 * float(f"{state.t:.3f}")

class Spring(ControlLaw):
    def __init__(self, robot, bandwidth, period, law=spring):
        M = np.diag(mass_matrix(robot, np.zeros(6)))
        super().__init__(robot, law, [400 * M, 40 * M])

class Spoken(Spring):
    def __init__(self, robot, bandwidth, period):
        super().__init__(robot, bandwidth, period, spoken)
"""


def test_user_controller_has_whole_run_limit_if_it_compiles(tmp_path):
    """The kinematic loop of the IRB 1400 rounds more in PyBullet than in the model, so kicks are needed."""
    (tmp_path / "laws.py").write_text(LAWS, encoding="utf-8")
    limits = {}
    for law in ("Spring", "Spoken"):
        controller = f"{tmp_path}/laws.py:{law}"
        run = tasks.run("joint_tracking", robot="irb1400", controller=controller, duration=2.0)
        metrics = {metric.name: metric for metric in agreement_metrics(run)}
        assert all(metric.passes for metric in metrics.values())
        assert metrics["samples not replayed"].limit == 0
        limits[law] = metrics["engine - model, whole run"].limit
    assert 1e-15 < limits["Spring"] < 1e-10
    assert limits["Spoken"] is None


def test_unknown_controller_has_no_bound():
    run, _ = full_run("joint_tracking", "computed_torque")
    names = [metric.name for metric in tracking_metrics(full_run("joint_tracking", "pd")[0])]
    assert "joint error / its bound" in names
    strange = with_loop(run, known_law=False)
    assert "joint error / its bound" not in [metric.name for metric in tracking_metrics(strange)]
    error = tracking_metrics(strange)[0]
    assert (error.name, error.limit) == ("largest joint error", None)


def test_engine_tool_is_compared_with_printed_poses():
    """The tool is in the printed pose under computed torque; under PD it has the error of the arm."""
    for law in ("computed_torque", "pd"):
        run, metrics = full_run("pose_path", law)
        log = run.log
        assert run.stop_names == ("test_3", "test_1", "test_1", "test_3")
        rows = {metric.name: metric for metric in metrics if metric.name.startswith("tool at")}
        names = [f"tool at {name} - printed" for name in ("test_1", "test_3")]
        assert rows.keys() == {f"{name}{of}" for name in names for of in ("", ", distance", ", angle")}
        for row in rows.values():
            assert (row.limit is None) == (law == "pd")
            assert row.value < 3e-15 if law == "computed_torque" else 0.02 < row.value < 0.2
        for name in names:
            assert [rows[f"{name}, {of}"].unit for of in ("distance", "angle")] == ["m", "rad"]
        printed = log.robot.published["test_3"].flange
        at = run.stops.poses[[0, -1]]
        distance = np.max(np.linalg.norm(at[:, :3] - printed[:3], axis=1))
        turn = Rotation.from_quat(at[:, 3:], scalar_first=True).inv() * Rotation.from_quat(
            np.array(printed[3:]), scalar_first=True
        )
        assert rows["tool at test_3 - printed, distance"].value == pytest.approx(distance, rel=1e-12)
        found = rows["tool at test_3 - printed, angle"].value
        assert found == pytest.approx(np.max(turn.magnitude()), rel=1e-9, abs=3e-15)
        first, last = run.stops.poses[[0, -1]]
        np.testing.assert_allclose(np.abs(first), np.abs(log.pose[0]), rtol=0, atol=1e-14)
        np.testing.assert_allclose(np.abs(last), np.abs(log.pose[-1]), rtol=0, atol=1e-14)


def test_printed_pose_outside_the_tour_is_compared_with_the_engine():
    run, metrics = full_run("pose_path", "computed_torque", "irb1400")
    assert run.put_names == ("zero",)
    (row,) = (metric for metric in metrics if metric.name == "tool put at zero - printed")
    assert row.passes
    moved = dataclasses.replace(run, put_poses=run.put_poses + 1e-4)
    (row,) = (m for m in PosePath().metrics(moved) if m.name.startswith("tool put"))
    assert not row.passes


def test_torques_are_not_judged_where_no_limit_is_known():
    log = tasks.run(duration=0.05).log
    limits = np.where(np.arange(6) == 1, np.inf, log.robot.tau_max)
    unknown = dataclasses.replace(log, robot=dataclasses.replace(log.robot, tau_max=limits))
    for one, outcome in ((log, "passes"), (unknown, "not judged")):
        assert torque_limit_metric(one, "the limits").outcome == outcome
    assert torque_limit_metric(unknown, "").why == "not judged: no torque limit is known of joint_2"

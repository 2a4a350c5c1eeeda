"""Contract tests: scenarios with robots and laws, and what the scenarios' own limits can tell apart."""

import dataclasses

import numpy as np
import pytest

import controllers
import twin
from scenarios.judging.motion_range import beyond_passive_range, random_positions
from scenarios.judging.run import TrackingRun
from scenarios.judging.tracking import tracking_metrics
from scenarios.metric import Metric
from scenarios.options import fields
from scenarios.pose_path import from_printed
from scenarios.running import registry
from scenarios.setup import Setup
from tests.support import tasks
from tests.support.scenario_cases import CASES, NAMES, ROBOTS, SHORT, SUITED, full_run
from twin import Log, quintic
from twin.base.errors import LimitError, RecordingError, RobotError, UnknownNameError
from twin.data.logs.figures import joint_error

pytestmark = pytest.mark.slow("runs every scenario")


def test_registry_lists_every_scenario():
    assert ROBOTS == ("irb140", "irb1400", "irb1600")
    assert tuple(SHORT) == NAMES
    assert [pair for pair in SUITED if pair[1] == "parallelogram"] == [("irb1400", "parallelogram")]


def test_each_arm_meets_each_scenario_and_controller_and_each_variant_runs():
    assert {(case[0], case[1]) for case in CASES} == set(SUITED)
    assert {(case[0], case[2]) for case in CASES} == {
        (arm, law) for arm in ROBOTS for law in controllers.NAMES
    }
    for name in {name for _, name in SUITED}:
        runs = [{"controller": law, **more} for _, scenario, law, more in CASES if scenario == name]
        assert {"controller": "computed_torque"} in runs
        for variant in registry.find(name).kind.variants:
            assert any(variant.items() <= run.items() for run in runs)


def test_docstrings_and_options_are_complete():
    for kind in (registry.find(name).kind for name in NAMES):
        assert len(kind.title()) <= 90
        assert "What it shows:" in kind.description()
        assert "What must hold:" in kind.description()
    without_help = {"progress", "law_settings", "simulated", "beside", "changes", "limits"}
    for kind, others in (*((registry.find(name).kind, set()) for name in NAMES), (Setup, without_help)):
        assert {item.name for item in dataclasses.fields(kind)} == others | set(fields(kind))
        assert all(item.metadata["help"] for item in fields(kind).values())


@pytest.mark.parametrize(("robot", "name", "controller", "more"), CASES)
def test_every_check_passes_and_joints_move(robot, name, controller, more):
    run, metrics = full_run(name, controller, robot, **more)
    log = run.log
    assert [metric for metric in metrics if not metric.passes] == []
    assert sum(metric.limit is not None for metric in metrics) >= 5
    assert all(metric.why for metric in metrics)
    assert len({metric.name for metric in metrics}) == len(metrics)
    for item in ("t", "q_ref", "qd_ref", "qdd_ref", "q", "qd", "tau", "tau_demand", "pose", "pose_ref"):
        assert np.all(np.isfinite(getattr(log, item))), item
    travel = np.ptp(log.q, axis=0)
    if name == "gravity_hold":
        assert np.all(travel < 0.2)
    elif name == "payload_mismatch":
        assert np.all(travel[[0, 1, 2, 4, 5]] > 0.05)  # axis 4 is not meant to move on this path
    elif name == "velocity_control":
        assert np.all(travel > 1e-3)  # the tool moves 4 mm
    elif name == "press":
        assert np.all(np.delete(travel, 3) > 5e-3)  # axis 4 is not meant to move, axis 3 moves by 9 mrad
    else:
        assert np.all(travel > 0.05)


@pytest.mark.parametrize("law", controllers.NAMES)
def test_every_check_passes_on_two_joints_where_laws_with_the_whole_model_track_to_rounding(law):
    for name in ("gravity_hold", "joint_tracking", "model_agreement"):
        run, metrics = full_run(name, law, "two_link")
        assert [metric for metric in metrics if not metric.passes] == [], name
        if name == "joint_tracking":
            error = np.abs(joint_error(run.log)).max()
            assert error > 1e-3 if law in ("pd", "pd_gravity", "pid") else error < 1e-14


def test_every_check_passes_with_other_mountings():
    for mounting in ("wall", "inverted"):
        checks = tasks.checks("joint_tracking", mounting=mounting, duration=0.2)
        assert all(metric.passes for metric in checks.values())


def test_saved_run_has_equal_metrics(tmp_path):
    """A loaded run has no fields of a study's subclass, but all that tracking is judged by."""
    for name in ("model_agreement", "drive_check", "payload_mismatch"):
        run, metrics = full_run(name, "computed_torque")
        run.save(tmp_path / "a.npz")
        loaded = TrackingRun.load(tmp_path / "a.npz")
        assert tracking_metrics(loaded) == tracking_metrics(run)
        assert set(tracking_metrics(loaded)) <= set(metrics)
        assert loaded.log.drives == ("rigid" if name == "drive_check" else "ideal")
        assert Log.load(tmp_path / "a.npz").identical(run.log)


def test_model_agreement_depends_on_seed():
    one, other = (tasks.run("model_agreement", seed=seed, **SHORT["model_agreement"]) for seed in (1, 2))
    assert not np.allclose(one.step_model, other.step_model)


# What the limits can tell apart: each of these would pass if its check were blind.


def test_unknown_payload_causes_error_and_known_one_none():
    unknown = full_run("payload_mismatch", "computed_torque")[0].log
    assert np.abs(joint_error(unknown)).max() > 0.05
    known = tasks.run("payload_mismatch", payload_known=True).log
    assert np.abs(joint_error(known)).max() < 1e-13
    assert known.robot.payload is not None
    assert known.robot.payload.mass == 6.0


def test_pose_path_visits_printed_poses():
    """Each printed pose is met by a sample of the reference, at rest, to what a sample apart makes."""
    log = full_run("pose_path", "computed_torque")[0].log
    resting = np.flatnonzero(np.abs(log.qd_ref).max(axis=1) < 1e-4)
    assert set(log.robot.published) == {"test_1", "test_3"}
    for name, printed in log.robot.published.items():
        near = np.abs(log.pose_ref[resting] - printed.flange).max(axis=1)
        assert near.min() < 1e-6, name
        other_sign = printed.flange * np.array([1, 1, 1, -1, -1, -1, -1])  # the same orientation
        assert from_printed(log.robot, name, other_sign) == 0.0
    q_1 = twin.load("irb140").poses["test_1"]
    assert np.abs(log.q_ref - q_1).max(axis=1).min() < 1e-6  # on the branch of the printed angles


def test_pose_path_follows_a_recording(tmp_path):
    from twin.data.logs.recordings.recording import tool_recording, write_recording
    from twin.physics.kinematics.forward import forward_kinematics
    from twin.physics.rotations.rotations import pose_vector

    robot = twin.load("irb140")
    move = quintic([0.1, 0.2, 0.1, 0.3, 0.5, -0.2], [0.4, 0.3, 0.2, 0.1, 0.6, 0.1], 1.0)
    t = np.linspace(0, 1, 21)
    poses = pose_vector(forward_kinematics(robot, move(t)[0]))
    write_recording(tmp_path / "path.csv", tool_recording(t, poses))
    _, scenario, setup = tasks.task("pose_path", csv=str(tmp_path / "path.csv"))
    run = scenario.run(setup)
    np.testing.assert_allclose(run.log.pose_ref[::50], poses, rtol=0, atol=1e-12)
    assert all(metric.passes for metric in scenario.metrics(run))
    assert not any("printed" in metric.name for metric in scenario.metrics(run))


def test_ignoring_the_parallelogram_causes_error():
    for model, least, most in (("exact", 0.0, 1e-14), ("no_rod", 0.01, 0.5), ("open_chain", 0.05, 0.5)):
        log = tasks.run("parallelogram", model=model, **SHORT["parallelogram"]).log
        assert least <= np.abs(joint_error(log)).max() < most
        assert log.loop_gap.max() < 1e-13


@pytest.mark.parametrize(("free_time", "expected"), [(0.1, 0.1), (5.0, 0.531)])
def test_free_fall_ends_before_parallelogram_folds(free_time, expected):
    settings = {"start": "hanging", "free_time": free_time, "duration": 0.1}
    _, scenario, setup = tasks.task("parallelogram", **settings)
    run = scenario.run(setup)
    length = next(m for m in scenario.metrics(run) if m.name == "length of the free motion")
    assert length.value == pytest.approx(expected, rel=1e-12)
    q, qd = run.fall.engine[-1]
    now, soon = beyond_passive_range(run.log.robot, np.array([q, q + 2 * setup.time_step * qd]))
    assert now <= 0
    assert (soon > 0) == (free_time > 1)


def test_parallelogram_needs_a_loop_that_can_move():
    with pytest.raises(RobotError, match="robot 'irb140' has no closed loop"):
        tasks.run("parallelogram", robot="irb140")
    robot = dataclasses.replace(twin.load("irb1400"), passive_min=np.deg2rad([150.0, -180.0]))
    with pytest.raises(RobotError, match=r"robot 'irb1400': no positions .* the ranges of its joints"):
        random_positions(robot, np.random.default_rng(0), 3)


@pytest.mark.parametrize(
    ("name", "settings", "error", "told"),
    [
        ("joint_tracking", {"controller": "lqr"}, UnknownNameError, "unknown controller 'lqr'"),
        ("joint_tracking", {"speed_fraction": 0.0}, ValueError, "speed fraction"),
        ("model_agreement", {"states": 0}, ValueError, "states"),
        ("parallelogram", {"free_time": 1e-4}, ValueError, "at least one time step, 0.001 s, got 0.0001 s"),
        ("parallelogram", {"free_time": np.nan}, ValueError, "finite free time in s, got nan"),
        ("parallelogram", {"model": "closed"}, UnknownNameError, "known are exact, no_rod, open_chain"),
        ("pose_path", {"csv": "nowhere.csv"}, RecordingError, "nowhere.csv"),
    ],
)
def test_invalid_setting_raises(name, settings, error, told):
    with pytest.raises(error, match=told):
        tasks.task(name, **settings)


def test_path_too_fast_for_the_arm_raises():
    with pytest.raises(LimitError, match="joint_6 would move at 45"):
        tasks.run("pose_path", speed=1.0, angular_speed=4.0)


@pytest.mark.parametrize(
    ("value", "limit", "span", "outcome"),
    [
        (1.0, 1.0, None, "passes"), (np.nextafter(1, 2), 1.0, None, "fails"), (np.inf, 1.0, None, "fails"),
        (3.0, None, None, "not judged"), (None, 1.0, None, "not judged"),
        (np.nan, None, None, "not computed"), (np.nan, 2.0, None, "not computed"),
        (np.nan, 2.0, (1.0, 1.5), "not computed"),
        (1.0, 2.0, (1.0, 2.0), "passes"), (1.0, 2.0, (1.0, 2.1), "undetermined"),
        (1.0, 2.0, (1.0, np.inf), "undetermined"), (3.0, 2.0, (2.0, 3.0), "undetermined"),
        (3.0, 2.0, (2.1, 3.0), "fails"), (3.0, None, (2.1, 3.0), "not judged"),
    ],
)  # fmt: skip
def test_outcome_requires_every_figure_of_the_span(value, limit, span, outcome):
    metric = Metric("x", value, "rad", limit, "why", span=span)
    assert metric.outcome == outcome
    assert metric.passes is (outcome in ("passes", "not judged"))
    with pytest.raises(ValueError, match=r"span of 'x' with the least first, got \(2, 1\)"):
        Metric("x", value, "rad", limit, "why", span=(2, 1))

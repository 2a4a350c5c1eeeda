"""Runs of scenarios with a push: verdicts, files, curves, and the commands that refuse one."""

import dataclasses

import numpy as np
import pytest

import twin
from scenarios import Setup
from scenarios.joint_tracking import JointTracking
from scenarios.judging.agreement import agreement_metrics
from scenarios.judging.bounds import is_exact
from scenarios.judging.following import follow
from scenarios.report.page import curve_count, curve_figures
from scenarios.running.registry import find
from scenarios.running.runs import diagnose, repeat_command, run_one
from scenarios.shell.command_line import main
from scenarios.studies.learning.learn import Learn, Study
from twin.base.errors import IdentificationError, RecordingError, TwinError, VariationError
from twin.data.logs.annotations import LoadChange
from twin.data.logs.columns import columns
from twin.data.logs.loads import torque_residual
from twin.data.logs.log import Log
from twin.studies.views.browser import Logged
from twin.studies.views.curves import panels

PUSH = "0.05:0.15 20,10,-30; 0.1:0.2 0,5,5,0.1,0,0.2 tool"
AGREEMENT = {
    "engine - model, whole run", "engine - model, one step", "engine - model, every state / its limit",
    "samples not replayed",
}  # fmt: skip


def task(push=PUSH, scenario="joint_tracking", **settings):
    return find(scenario).task({"drives": "rigid", "push": push, "duration": 0.3, **settings})


@pytest.fixture(scope="module")
def pushed():
    return run_one(task())


def test_engine_is_judged_and_tracking_is_not(pushed):
    outcomes = {metric.name: metric.outcome for metric in pushed.metrics}
    assert {name for name in outcomes if name in AGREEMENT and outcomes[name] == "passes"} == AGREEMENT
    assert outcomes["friction - its law"] == "passes"
    assert outcomes["largest joint error"] == "not judged"
    assert pushed.outcome == "not judged"
    assert pushed.tracking.reason == "no bound known under a wrench on the tool"
    assert not is_exact(pushed.run)
    assert is_exact(JointTracking(duration=0.1).run(JointTracking.setup(drives="rigid")))


@pytest.mark.parametrize(
    "settings",
    [
        {"controller": "pid", "mounting": "wall", "tool": "0.1,0.02,0.3", "payload": "3"},
        {"robot": "irb1400", "steps_per_period": 3, "encoder": True},
        {"drives": "ideal", "controller": "dob", "push": "0.05:0.15 5,0,2"},
    ],
    ids=str,
)
def test_engine_agrees_with_the_model_in_other_setups(settings):
    run = run_one(task(**settings))
    assert run.error is None
    judged = {metric.name: metric.outcome for metric in run.metrics if metric.name in AGREEMENT}
    assert judged == dict.fromkeys(AGREEMENT, "passes")


def test_parts_with_other_payloads_keep_their_part_of_the_push():
    setup = JointTracking.setup(drives="rigid", push=PUSH)
    reference = setup.sampling().sampled(twin.hold([0.1] * 6, 0.3))
    body = twin.Payload(3.0, (0.02, -0.01, 0.08))
    loads = [LoadChange(0, None, None), LoadChange(120, body, body)]
    run = follow(setup, reference, setup.nominal_robot(), loads=loads)
    first, second = twin.logs.parts(run.log)
    np.testing.assert_array_equal(second.wrench, run.log.wrench[120:])
    assert second.robot.payload.mass == 3.0
    assert first.wrench.any()
    for metric in agreement_metrics(run):
        assert metric.outcome == "passes", metric.name


def test_limits_judge_a_pushed_run():
    limits = (("joint_error", 1e-6),)
    failed = run_one(task().with_setup(limits=limits))
    assert failed.outcome == "fails"
    for run in failed, failed.without_log():  # `validate` has no logs
        assert diagnose(run) == "not determined: a wrench acts on the tool"


def test_log_is_stored_with_its_wrench(pushed, tmp_path):
    path, log = tmp_path / "run.npz", pushed.log
    log.save(path)
    again = Log.load(path)
    assert again.identical(log)
    np.testing.assert_array_equal(again.wrench, log.wrench)
    assert again.model_residual() == log.model_residual()
    assert np.ptp(log.wrench, axis=0).min() > 0
    half = log.samples(np.arange(100, 150))
    np.testing.assert_array_equal(half.wrench, log.wrench[100:150])
    named = {column.name: column.values for column in columns(log)}
    np.testing.assert_array_equal(named["tool_fz_N"], log.wrench[:, 2])
    np.testing.assert_array_equal(named["tool_mx_Nm"], log.wrench[:, 3])
    assert not [name for name in named if name.startswith("own_")]
    assert torque_residual(log) < 1e-9
    broken = dataclasses.replace(log.surroundings, wrench=log.wrench[1:])
    with pytest.raises(TwinError, match=r"expected wrench to be of shape"):
        dataclasses.replace(log, surroundings=broken).require_consistent()


def test_log_without_a_push_has_no_array_of_one(tmp_path):
    log = JointTracking(duration=0.1).run(Setup()).log
    log.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as stored:
        assert not [name for name in stored.files if "wrench" in name or "push" in name]
    assert log.surroundings is None
    np.testing.assert_array_equal(log.wrench, np.zeros((101, 6)))


def test_push_has_curves(pushed):
    drawn = panels({"run": pushed.log}, "wrench")
    assert [(panel.title, panel.unit) for panel in drawn][::3] == [("fx", "N"), ("mx", "N m")]
    np.testing.assert_array_equal(drawn[2].curves[0].values, pushed.log.wrench[:, 2])
    with pytest.raises(ValueError, match="joints can be chosen for all quantities but the wrench"):
        panels({"run": pushed.log}, "wrench", ["joint_1"])
    free = JointTracking(duration=0.1).run(Setup()).log
    shown = [Logged(pushed.log, "pushed", "red"), Logged(free, "free", "blue")]
    figures = curve_figures(shown, 500)
    assert "Wrench of the environment on the tool, in base axes" in figures
    assert "Wrench of the environment on the tool, in base axes" not in curve_figures(shown[1:], 500)
    assert curve_count(shown[:1]) == curve_count(shown[1:]) + 6


def test_command_is_repeated_with_its_push(pushed):
    assert f"--push '{PUSH}'" in repeat_command(pushed)


def test_push_after_the_end_or_without_effect_is_refused():
    late = run_one(task("5:6 1,0,0"))
    assert late.refused
    assert late.error == (
        "nothing acts on the tool in scenario joint_tracking, which ends at 0.3 s: expected an earlier "
        "--push, or a --surface that the tool touches"
    )
    with pytest.raises(ValueError, match="the constraint alone acts on the tool here: omit push and surface"):
        run_one(task("0:1 1,0,0", "constrained_circle", drives="ideal", duration=2.0))


def test_learning_refuses_pushes_and_surfaces():
    for pushed in (task(), find("press").task({})):
        with pytest.raises(VariationError, match="learning is for an arm that nothing pushes"):
            Study(pushed, Learn())


@pytest.mark.parametrize("command", ["learn joint_tracking", "gui"])
def test_other_commands_have_no_such_option(command, capsys):
    assert main([*command.split(), "--push", "0:1 1,0,0"]) == 2
    assert "--push" in capsys.readouterr().err


def test_identification_refuses_a_push(pushed, tmp_path):
    with pytest.raises(IdentificationError, match="a wrench acted on the tool; identify a run without one"):
        twin.identification.measurements_of_log(pushed.log)
    pushed.log.save(tmp_path / "a.npz")
    assert main(["export", str(tmp_path / "a.npz"), "--csv", str(tmp_path / "a.csv")]) == 0
    with pytest.raises(RecordingError, match="a wrench acted on the tool; identify a run without one"):
        twin.logs.read_torque_recording(tmp_path / "a.csv", pushed.log.robot)


def test_command_line_names_the_wrong_part(capsys):
    assert main(["run", "joint_tracking", "--push", "2:1 1,0,0"]) == 2
    assert "push 1: expected two or more rising times in s, got 2, 1" in capsys.readouterr().err

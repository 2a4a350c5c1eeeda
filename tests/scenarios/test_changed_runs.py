"""`irb-twin run --with`: an arm that is not as the controller believes, in run, log and report."""

import json

import numpy as np
import pytest

import controllers
import twin
from scenarios.cli.command_line import main
from scenarios.running import registry
from scenarios.running.runs import run_one
from twin.sweeps.robot_quantities import changed

SHORT = ["run", "joint_tracking", "--duration", "0.05", "--drives", "rigid", "--controller", "pd"]
CHANGES = ["mass=1.2", "torque_limit.2=900", "drives.coulomb=1.5", "model.mass=0.9"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Folder of the log and the results of one run."""
    folder = tmp_path_factory.mktemp("changed")
    files = ["--log", str(folder / "a.npz"), "--json", str(folder / "a.json")]
    assert main([*SHORT, "--with", *CHANGES, *files]) == 0
    return folder


def test_log_contains_changed_arm_and_changes(written):
    log = twin.Log.load(written / "a.npz")
    robot = twin.load("irb140").with_drives("rigid")
    plant = changed(robot, [("mass", 1.2), ("torque_limit.2", 900.0), ("drives.coulomb", 1.5)])
    assert np.array_equal(log.robot.tree.inertias, plant.tree.inertias)
    assert np.array_equal(log.robot.drive_torque_max, plant.drive_torque_max)
    assert np.array_equal(log.robot.drives.static, plant.drives.static)
    assert log.model_residual() < 1e-11
    assert json.loads(str(log.arrays["settings"]))["changes.model.mass"] == 0.9
    pd = controllers.make("pd", changed(robot, [("mass", 0.9)]), period=1e-3)
    np.testing.assert_allclose(log.arrays["gains"], pd.gains, rtol=1e-13)


def test_log_restores_torque_limits_of_ideal_drives(tmp_path):
    scenario = registry.find("joint_tracking")
    settings = {"duration": 0.01, "payload": "2,0,0,0.1", "changes": (("torque_limit", 0.7), ("mass", 1.1))}
    log = run_one(scenario, scenario.Config(**settings)).log
    log.save(tmp_path / "a.npz")
    again = twin.Log.load(tmp_path / "a.npz").robot
    np.testing.assert_allclose(again.tau_max, 0.7 * twin.load("irb140").tau_max, rtol=1e-15)
    assert np.array_equal(again.tree.inertias, log.robot.tree.inertias)
    assert np.array_equal(again.with_payload(None).tree.inertias, log.robot.bare.inertias)


def test_results_name_changes_and_have_no_error_limit(written):
    (run,) = json.loads((written / "a.json").read_text())["runs"]
    assert run["config"]["changes.mass"] == 1.2
    assert "mass 1.2, torque_limit.2 900.0, drives.coulomb 1.5, model.mass 0.9" in run["name"]
    assert run["repeat"].endswith("--with mass=1.2 torque_limit.2=900.0 drives.coulomb=1.5 model.mass=0.9")
    limits = {metric["name"]: metric["limit"] for metric in run["metrics"]}
    assert limits["largest joint error"] is None
    assert limits["engine - model, whole run"] < 1e-11


def test_drive_mismatch_predicts_errors_of_changed_arm():
    """The analytic model predicts the engine's run for each knowledge of the controller."""
    scenario = registry.find("drive_mismatch")
    changes = (("drives.coulomb", 1.4), ("mass", 1.1), ("model.drives.rotor_inertia", 0.9))
    run = run_one(scenario, scenario.Config(duration=0.1, knows="no_friction", changes=changes))
    assert run.passes, run.error
    error = np.max(np.abs(run.log.q - run.log.q_ref))
    predicted = run.log.arrays["joint_errors"]
    assert predicted[1] == pytest.approx(error, abs=1e-12)
    assert predicted[0] > 1e-5, "which knows all of the nominal drives"


def test_wrong_use_prints_one_sentence(capsys):
    for words, told in (
        ([*SHORT, "--with", "mass"], "--with mass: expected NAME=NUMBER"),
        ([*SHORT, "--with", "mass=heavy"], "--with mass=heavy: expected NAME=NUMBER"),
        ([*SHORT, "--with", "=2"], "--with =2: expected NAME=NUMBER"),
        ([*SHORT, "--with", "model.mas=1.1"], "no quantity 'model.mas': the nearest are model.mass"),
        ([*SHORT, "--with", "mass=1", "mass=2"], "mass is given twice"),
        (
            [*SHORT, "--with", "drives.stiffness=2"],
            "drives.stiffness has no effect: robot 'irb140' has rigid",
        ),
        (
            ["run", "model_agreement", "--with", "mass=1.1"],
            "'model_agreement' has no reference(robot, config)",
        ),
    ):
        assert main(words) == 2
        error = capsys.readouterr().err
        assert told in error
        assert len(error.strip().splitlines()) == 1

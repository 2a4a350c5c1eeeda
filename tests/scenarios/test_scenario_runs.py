"""Scenarios with every arm run from the command line, and a second time to the bit."""

import dataclasses
import json
from dataclasses import replace

import numpy as np
import pytest

import controllers
import twin
from scenarios.shell.command_line import main
from scenarios.running import registry
from scenarios.running.runs import run_one
from scenarios.sweeps.scenario_experiment import Memoized
from tests.support.scenario_cases import CASES, SHORT, full_run
from twin.logs.log import Log
from twin.robot.quantities import changed


def unstamped(log):
    """A log without what the command line says of its origin."""
    own = {name: array for name, array in log.arrays.items() if name not in ("provenance", "settings")}
    return replace(log, arrays=own)


SOME = CASES[:: len(controllers.NAMES) + 1]
"""Each scenario once, with the arms and controllers in turn."""


@pytest.mark.parametrize(("robot", "name", "controller"), SOME)
def test_command_line_run_equals_run_from_python(robot, name, controller, tmp_path, capsys):
    file = tmp_path / "run.npz"
    options = [
        word for key, value in SHORT[name].items() for word in (f"--{key.replace('_', '-')}", str(value))
    ]
    words = ["run", name, "--robot", robot, "--controller", controller, "--log", str(file), *options]
    assert main(words) == 0
    assert controller in capsys.readouterr().out
    log, _ = full_run(name, controller, robot)
    assert log.identical(unstamped(Log.load(file)))


# `irb-twin run --with`: an arm that is not as the controller believes, in run, log and report.


BRIEF = ["run", "joint_tracking", "--duration", "0.05", "--drives", "rigid", "--controller", "pd"]
CHANGES = ["mass=1.2", "torque_limit.2=900", "drives.coulomb=1.5", "model.mass=0.9"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Folder of the log and the results of one run."""
    folder = tmp_path_factory.mktemp("changed")
    files = ["--log", str(folder / "a.npz"), "--json", str(folder / "a.json")]
    assert main([*BRIEF, "--with", *CHANGES, *files]) == 0
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
        ([*BRIEF, "--with", "mass"], "--with mass: expected NAME=NUMBER"),
        ([*BRIEF, "--with", "mass=heavy"], "--with mass=heavy: expected NAME=NUMBER"),
        ([*BRIEF, "--with", "=2"], "--with =2: expected NAME=NUMBER"),
        ([*BRIEF, "--with", "model.mas=1.1"], "no quantity 'model.mas': the nearest are model.mass"),
        ([*BRIEF, "--with", "mass=1", "mass=2"], "mass is given twice"),
        (
            [*BRIEF, "--with", "drives.stiffness=2"],
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


# Values that are cached for settings belong to the attributes they were computed from.


def test_memoized_value_depends_only_on_settings_that_were_read():
    made = []

    def make(config):
        made.append(None)
        copied = dataclasses.replace(config, seed=1)
        return copied.duration if config.seed else (type(copied), vars(config)["duration"])

    config = registry.find("joint_tracking").Config()
    remembered = Memoized(make, 2)
    kind, duration = remembered(config)
    assert (kind, duration) == (type(config), config.duration)
    assert remembered(dataclasses.replace(config)) is remembered(config)
    assert len(made) == 1
    assert remembered(dataclasses.replace(config, seed=2, duration=7.0)) == 7.0
    assert len(made) == 2
    single = Memoized(lambda config: (config.plant_changes, config.period), 2)
    first = single(config)
    assert single(dataclasses.replace(config, seed=2, changes=(("model.mass", 1.1),))) is first
    assert single(dataclasses.replace(config, changes=(("mass", 1.1),))) is not first
    assert single(dataclasses.replace(config, time_step=0.01)) is not first

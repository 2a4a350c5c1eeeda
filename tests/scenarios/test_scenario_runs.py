"""Scenarios with every arm run from the command line, and a second time to the bit."""

import json
from dataclasses import replace

import numpy as np
import pytest

import controllers
import twin
from scenarios.judging.run import TrackingRun
from scenarios.setup import Sampling
from scenarios.shell.command_line import main
from scenarios.studies.sweeps.scenario_experiment import Memoized, ScenarioExperiment
from tests.support import tasks
from tests.support.scenario_cases import CASES, SHORT, full_run
from twin.data.logs.log import Log
from twin.physics.robot.quantities import changed


def unstamped(log):
    """A log without what the command line says of its origin."""
    own = {name: array for name, array in log.arrays.items() if name not in ("provenance", "settings")}
    return replace(log, arrays=own)


SOME = {name: (arm, name, law) for arm, name, law, more in CASES if not more and law != "computed_torque"}


@pytest.mark.parametrize(("robot", "name", "controller"), SOME.values())
def test_command_line_run_equals_run_from_python(robot, name, controller, tmp_path, capsys):
    file = tmp_path / "run.npz"
    options = [
        word for key, value in SHORT[name].items() for word in (f"--{key.replace('_', '-')}", str(value))
    ]
    words = ["run", name, "--robot", robot, "--controller", controller, "--log", str(file), *options]
    assert main(words) == 0
    assert controller in capsys.readouterr().out
    log = full_run(name, controller, robot)[0].log
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
    loop = TrackingRun.load(written / "a.npz").loop
    assert list(loop.gains) == list(pd.gains._fields)
    np.testing.assert_allclose(list(loop.gains.values()), pd.gains, rtol=1e-13)


def test_log_restores_torque_limits_of_ideal_drives(tmp_path):
    settings = {"duration": 0.01, "payload": "2,0,0,0.1", "changes": (("torque_limit", 0.7), ("mass", 1.1))}
    log = tasks.executed("joint_tracking", **settings).log
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


def test_wrong_use_prints_one_sentence(capsys):
    for words, told in (
        ([*BRIEF, "--with", "mass"], "--with mass: expected NAME=NUMBER"),
        ([*BRIEF, "--with", "model.mas=1.1"], "no quantity 'model.mas': the nearest are model.mass"),
        ([*BRIEF, "--with", "mass=1", "mass=2"], "mass is given twice"),
    ):
        assert main(words) == 2
        error = capsys.readouterr().err
        assert told in error
        assert len(error.strip().splitlines()) == 1


# Values that are cached by their keys.


def test_memoized_values_are_made_once_and_the_oldest_are_dropped():
    made = []

    def make():
        made.append(None)
        return [len(made)]

    remembered = Memoized(2)
    first = remembered(("a", 1.0), make)
    assert remembered(("a", 1.0), make) is first
    second = remembered(("a", 2.0), make)
    assert (first, second) == ([1], [2])
    assert remembered(("b",), make) == [3]
    assert remembered(("a", 2.0), make) is second
    assert remembered(("a", 1.0), make) == [4]


@pytest.mark.parametrize(
    ("settings", "equal"),
    [
        ({"payload_mass": 3.0, "payload_known": True}, True), ({"controller": "pd", "seed": 3}, True),
        ({"tool": "0,0,0.1"}, True), ({"payload": "1"}, True), ({"time_step": 2e-3}, False),
        ({"reference": "continuous"}, False), ({"robot": "irb1600"}, False), ({"mounting": "wall"}, False),
    ],
)  # fmt: skip
def test_motion_depends_on_options_sampling_robot_and_stated_needs(settings, equal):
    """A reference is cached by this key, so that it must not depend on anything else."""
    keys = [
        ScenarioExperiment(task)._reference_key(task)
        for task in (tasks.task("payload_mismatch"), tasks.task("payload_mismatch", **settings))
    ]
    assert (keys[0] == keys[1]) is equal


def test_sampling_has_what_a_scenario_needs():
    settings = {"tool": "0,0,0.1", "payload": "1", "seed": 7}
    for name in ("pose_path", "drive_check", "excitation"):
        task = tasks.task(name, **settings)
        sampling = task.setup.sampling(task.scenario.needs)
        given = {one: getattr(sampling, one) for one in settings if getattr(sampling, one) == settings[one]}
        assert set(given) == set(task.scenario.needs)
        assert [getattr(sampling, one) for one in settings if one not in given] == [
            getattr(Sampling(), one) for one in settings if one not in given
        ]

"""Scenarios with every arm run from the command line, and a second time to the bit."""

import dataclasses
import json
import shlex
import subprocess
from dataclasses import replace
from importlib.metadata import version

import matplotlib.image
import numpy as np
import pytest
from PIL import Image

import controllers
import twin
from scenarios.base import Config
from scenarios.cli.command_line import main
from scenarios.running import registry
from scenarios.running.provenance import commit, provenance
from scenarios.running.runs import Run, repeat_command, run_one
from scenarios.sweeping.scenario_experiment import Memoized
from tests.support import user_scenarios
from tests.support.command_lines import parsed_back
from tests.support.scenario_cases import CASES, SHORT, full_run
from twin.logs.log import Log
from twin.plugins import plugin_entries
from twin.sweeps.robot_quantities import changed


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


# Every file says what it was made with, and with which settings.


def git(folder, *words):
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_provenance_has_installed_versions():
    assert twin.__version__ == version("irb-twin")
    told = provenance()
    assert {name: version(name) for name in ("numpy", "numba", "pybullet")}.items() <= told.items()


def test_commit_marks_modified_checkout(tmp_path):
    assert commit(tmp_path) == ""
    git(tmp_path, "init", "-q")
    assert commit(tmp_path) == ""  # nothing is committed yet
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-qm", "a")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert commit(tmp_path) == head
    (tmp_path / "below").mkdir()
    assert commit(tmp_path / "below") == ""  # installed somewhere within somebody's repository
    (tmp_path / "new").write_text("1")
    assert commit(tmp_path) == head
    (tmp_path / "a").write_text("2")
    assert commit(tmp_path) == f"{head} + changes"


def test_logs_pictures_and_results_contain_provenance(tmp_path, capsys, small_pictures):
    log, picture, results = (tmp_path / name for name in ("a.npz", "a.png", "a.json"))
    words = "run gravity_hold --duration 0.01 --controller pd --seed 7 --bandwidth 21 --speed-cutoff inf"
    assert main([*words.split(), "--log", str(log), "--picture", str(picture), "--json", str(results)]) == 0
    arrays = Log.load(log).arrays
    with Image.open(picture) as image:
        image.load()
        texts = image.text
    assert matplotlib.image.imread(picture).ndim == 3
    document = json.loads(results.read_text())
    settings = json.loads(str(arrays["settings"]))
    assert [settings] == json.loads(texts["settings"])
    assert settings == {"scenario": "gravity_hold", **document["runs"][0]["config"]}
    assert (settings["seed"], settings["bandwidth"], settings["speed_cutoff"]) == (7, 21.0, "inf")
    texts_of = str(arrays["provenance"]), texts["provenance"]
    made_with = [*map(json.loads, texts_of), document["provenance"]]
    assert made_with == [provenance()] * 3


def test_version_option_prints_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith(f"irb-twin {twin.__version__}, ")


@pytest.mark.parametrize("words", ["--settings law.toml", "--set Kp=3,3,3,3,3,3"])
def test_results_contain_controller_settings(words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "law.toml").write_text("Kp = [3.0, 3.0, 3.0, 3.0, 3.0, 3.0]\n")
    line = f"run gravity_hold --duration 0.01 --controller pd --json a.json {words}"
    main(line.split())
    config = json.loads((tmp_path / "a.json").read_text())["runs"][0]["config"]
    assert config["law_settings.Kp"] == [3.0] * 6


# The command that repeats a run, parsed back by the command line itself.


def run_of(scenario, **settings):
    return Run(scenario.name, scenario.Config(**settings), None, (), 0.1, file=scenario.file)


@pytest.mark.parametrize("name", registry.titles())
def test_repeat_command_restores_every_variant(name):
    scenario = registry.find(name)
    for config in (scenario.Config(controller="pd"), *scenario.variants):
        command = repeat_command(Run(name, config, None, (), 0.1, file=scenario.file))
        again, settings = parsed_back(command)
        assert (again.name, settings) == (name, config), command


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("pose_path", {
            "controller": "pid", "robot": "my arms/it's [one].urdf", "mounting": "wall", "gui": True,
            "bandwidth": 0.1 + 0.2, "steps_per_period": 3, "encoder": True, "speed_cutoff": float("inf"),
            "seed": 7, "speed": 1e-300,
        }),
        ("joint_tracking", {
            "tool": "0,0,0.1,1,0,0,0", "payload": "2,0,0,0.1", "model_payload": "0",
            "changes": (("mass", 0.1 + 0.2), ("model.mass.link_2", 1e-9), ("drives.ratio.1", -70.0)),
        }),
    ],
)  # fmt: skip
def test_repeat_command_restores_settings_of_every_type(name, settings):
    scenario = registry.find(name)
    _, config = parsed_back(repeat_command(run_of(scenario, **settings)))
    assert config == scenario.Config(**settings)


def test_repeat_command_omits_defaults():
    command = repeat_command(run_of(registry.find("gravity_hold"), bandwidth=30.0))
    assert command == "irb-twin run gravity_hold --controller computed_torque --bandwidth 30.0"


def test_repeat_command_negates_switch_that_is_on_by_default(tmp_path):
    config = (
        "@dataclass(frozen=True)\nclass Config(base.Config):\n"
        "    smooth: bool = option(True, 'x')\n    word: str = option('a', 'x')\n"
    )
    scenario = registry.find(user_scenarios.write(tmp_path / "own.py", config=config))
    command = repeat_command(run_of(scenario, smooth=False, word="-b c"))
    assert "--no-smooth '--word=-b c'" in command
    config = parsed_back(command)[1]  # of the file loaded once more
    assert dataclasses.asdict(config) == dataclasses.asdict(scenario.Config(smooth=False, word="-b c"))


@pytest.mark.parametrize("name", ["own.py", "-own.py", "my own.py", "below/own.py"])
def test_repeat_command_names_user_file_by_path(name, tmp_path, monkeypatch):
    user_scenarios.write(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    scenario = registry.find(f"./{name}")
    (run,) = [dataclasses.replace(run_of(scenario), scenario="folder-own")]  # as one of two of that name
    again, _ = parsed_back(repeat_command(run))
    assert again.file == scenario.file
    monkeypatch.chdir("/")
    assert parsed_back(repeat_command(run))[0].file == scenario.file


def test_repeat_command_names_package_scenario_without_folder():
    run = dataclasses.replace(run_of(registry.find("pose_path")), scenario="scenarios-pose_path")
    assert repeat_command(run).startswith("irb-twin run pose_path --controller ")


def test_repeat_command_names_file_that_does_not_load(tmp_path):
    own = user_scenarios.write(tmp_path / "own.py", head="import nothing_of_that_name\n")
    scenario = registry.find_regardless(own)
    assert shlex.split(repeat_command(run_one(scenario, Config())))[2] == own


def test_repeat_command_restores_controller_settings_exactly(tmp_path):
    law = tmp_path / "my laws.py"
    law.write_text("def Law(robot, Kp=1.0, Kd=1.0, mode='', on=False):\n    ...\n", encoding="utf-8")
    values = (("Kp", 0.1 + 0.2), ("Kd", (1.0, 2e-9, -3.0)), ("mode", "a b"), ("on", True))
    run = run_of(registry.find("gravity_hold"), controller=f"{law}:Law", law_settings=values)
    _, config = parsed_back(repeat_command(run))
    assert (config.controller, config.law_settings) == (f"{law}:Law", values)


def test_repeat_command_names_plugin_scenario_by_entry_point(tmp_path, monkeypatch):
    user_scenarios.write(tmp_path / "somebodys_nod.py")
    metadata = tmp_path / "somebody-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: somebody\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[irb_twin.scenarios]\nnod = somebodys_nod\n")
    monkeypatch.syspath_prepend(tmp_path)
    plugin_entries.cache_clear()
    try:
        scenario = registry.find("nod")
        assert repeat_command(run_of(scenario)).startswith("irb-twin run nod --controller ")
    finally:
        plugin_entries.cache_clear()

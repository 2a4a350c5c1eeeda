"""The command that repeats a run, parsed back by the command line itself."""

import dataclasses
import shlex

import pytest

from scenarios.base import Config
from scenarios.running import registry
from scenarios.running.runs import Run, repeat_command, run_one
from tests.support import user_scenarios
from tests.support.command_lines import parsed_back
from twin.plugins import plugin_entries


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

"""The command that repeats a run, parsed back by the command line itself."""

import dataclasses
import shlex

import pytest

from scenarios.running import registry
from scenarios.running.runs import Run, repeat_command, run_one
from tests.support import user_scenarios
from tests.support.command_lines import parsed_back
from twin.base.plugins import plugin_entries


def run_of(entry, **settings):
    return Run(entry.task(settings), None, (), 0.1)


def same(again, task):
    """Return whether a task is this one; the class of a file that was loaded again is another one."""
    options = [(type(one.scenario).__name__, vars(one.scenario)) for one in (again, task)]
    return options[0] == options[1] and again.setup == task.setup


def test_repeat_command_restores_every_variant():
    for entry in map(registry.find, registry.titles()):
        for settings in ({"controller": "pd"}, *entry.kind.variants):
            command = repeat_command(run_of(entry, **settings))
            again = parsed_back(command)
            assert again.entry.name == entry.name
            assert same(again, entry.task(settings)), command


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
        ("gravity_hold", {"lock": ("joint_5=0.25", "joint_6=-0.5"), "unphysical": True}),
    ],
)  # fmt: skip
def test_repeat_command_restores_settings_of_every_type(name, settings):
    entry = registry.find(name)
    assert same(parsed_back(repeat_command(run_of(entry, **settings))), entry.task(settings))


def test_repeat_command_omits_defaults_and_the_folder_of_the_package():
    command = repeat_command(run_of(registry.find("gravity_hold"), bandwidth=30.0))
    assert command == "irb-twin run gravity_hold --controller computed_torque --bandwidth 30.0"
    run = run_of(dataclasses.replace(registry.find("pose_path"), name="scenarios-pose_path"))
    assert repeat_command(run).startswith("irb-twin run pose_path --controller ")


def test_repeat_command_negates_switch_that_is_on_by_default(tmp_path):
    options = "smooth: bool = option(True, 'x')\nword: str = option('a', 'x')\n"
    entry = registry.find(user_scenarios.write(tmp_path / "own.py", options=options))
    settings = {"smooth": False, "word": "-b c"}
    command = repeat_command(run_of(entry, **settings))
    assert "--no-smooth '--word=-b c'" in command
    assert same(parsed_back(command), entry.task(settings))


@pytest.mark.parametrize("name", ["own.py", "-own.py", "my own.py", "below/own.py"])
def test_repeat_command_names_user_file_by_path(name, tmp_path, monkeypatch):
    user_scenarios.write(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    entry = registry.find(f"./{name}")
    run = run_of(dataclasses.replace(entry, name="folder-own"))  # as one of two of that name
    assert parsed_back(repeat_command(run)).entry.file == entry.file
    monkeypatch.chdir("/")
    assert parsed_back(repeat_command(run)).entry.file == entry.file


def test_repeat_command_names_file_that_does_not_load(tmp_path):
    own = user_scenarios.write(tmp_path / "own.py", head="import nothing_of_that_name\n")
    entry = registry.find_regardless(own)
    assert shlex.split(repeat_command(run_one(registry.failing(entry, entry.fault))))[2] == own


def test_repeat_command_restores_controller_settings_exactly(tmp_path):
    law = tmp_path / "my laws.py"
    law.write_text("def Law(robot, Kp=1.0, Kd=1.0, mode='', on=False):\n    ...\n", encoding="utf-8")
    values = (("Kp", 0.1 + 0.2), ("Kd", (1.0, 2e-9, -3.0)), ("mode", "a b"), ("on", True))
    run = run_of(registry.find("gravity_hold"), controller=f"{law}:Law", law_settings=values)
    setup = parsed_back(repeat_command(run)).setup
    assert (setup.controller, setup.law_settings) == (f"{law}:Law", values)


def test_repeat_command_names_plugin_scenario_by_entry_point(tmp_path, monkeypatch):
    user_scenarios.write(tmp_path / "somebodys_nod.py")
    metadata = tmp_path / "somebody-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: somebody\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[irb_twin.scenarios]\nnod = somebodys_nod\n")
    monkeypatch.syspath_prepend(tmp_path)
    plugin_entries.cache_clear()
    try:
        assert repeat_command(run_of(registry.find("nod"))).startswith("irb-twin run nod --controller ")
    finally:
        plugin_entries.cache_clear()

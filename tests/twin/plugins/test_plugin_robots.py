"""Robots that installed packages announce by entry points."""

import sys
from pathlib import Path

import pytest

import twin
from scenarios.cli.command_line import main
from tests.support.installed_packages import installed
from tests.support.urdf_files import FILES
from twin.errors import PluginError, UnknownNameError

FOLDERS = ("palletizer", "table", "foreign", "broken", "two")
ENTRIES = {name: f"my_arms.{name}" for name in (*FOLDERS, "gone")}
OURS = FILES["irb140"]


@pytest.fixture
def package(tmp_path):
    """Folder of a package that announces arms, sound and unsound."""
    urdf = OURS.path.read_text(encoding="utf-8")
    files = {
        "palletizer/robot.toml": OURS.toml.read_text(encoding="utf-8"),
        "table/dh.toml": Path(twin.load("two_link").file).read_text(encoding="utf-8"),
        "broken/__init__.py": "1 / 0",
        **{f"{name}/__init__.py": "" for name in (".", "palletizer", "table", "foreign", "two")},
        **dict.fromkeys(("palletizer/irb140.urdf", "foreign/arm.urdf", "two/a.urdf", "two/b.urdf"), urdf),
    }
    entries = ENTRIES | {"empty": "my_arms", "irb140": "my_arms.broken"}
    modules = {f"my_arms/{file}": text for file, text in files.items()}
    with installed(tmp_path, modules, {"irb_twin.robots": entries}, name="my-arms"):
        yield tmp_path / "my_arms"
    for module in [name for name in sys.modules if name.startswith("my_arms")]:
        del sys.modules[module]


def test_they_are_loaded_by_name_unless_it_is_one_of_ours(package):
    assert {"palletizer", "table", "foreign"} <= set(twin.plugins.plugin_robots())
    assert twin.load("palletizer").file == package / "palletizer" / "robot.toml"
    assert twin.load("table").name == "two_link"
    assert twin.load("foreign").urdf == package / "foreign" / "arm.urdf"
    assert twin.load("irb140").file == OURS.toml
    assert "irb140" in twin.robot_names()
    assert "palletizer" not in twin.robot_names()
    with pytest.raises(UnknownNameError, match="palletizer"):
        twin.load("palletiser")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("broken", "cannot load robot 'broken' of package my-arms: ZeroDivisionError: division by zero"),
        ("gone", "cannot load robot 'gone' of package my-arms: ModuleNotFoundError"),
        ("empty", "expected 'my_arms' to be a package with a robot.toml, a dh.toml or one .urdf"),
        ("two", "expected 'my_arms.two' to be a package with a robot.toml, a dh.toml or one .urdf"),
    ],
)
def test_failing_package_is_reported_and_does_not_affect_others(package, name, told, capsys):
    with pytest.raises(PluginError, match=told.replace(".", r"\.")):
        twin.load(name)
    assert main(["run", "gravity_hold", "--robot", name]) == 1
    assert f"cannot load robot '{name}'" in " ".join(capsys.readouterr().out.split())
    assert twin.load("palletizer").n == 6


def test_they_are_listed_and_run(package, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    told = {line.split()[0]: line for line in lines[1:] if line.split()}
    assert "ABB IRB 140" in told["palletizer"]
    assert "arm.urdf" in told["foreign"]
    assert "cannot load robot 'broken'" in told["broken"]
    assert sum("irb140 " in line for line in lines) == 1
    assert "scenarios" in "".join(lines)
    run = "run gravity_hold --robot palletizer --controller pd_gravity --duration 0.1"
    assert main(run.split()) == 0
    assert "palletizer" in capsys.readouterr().out

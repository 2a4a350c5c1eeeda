"""Robots that installed packages announce by entry points."""

import shutil
import sys
from pathlib import Path

import pytest

import twin
from scenarios.cli.command_line import main
from tests.support.urdf_files import FILES
from twin.errors import PluginError, UnknownNameError
from twin.plugins import plugin_entries

ENTRIES = """[irb_twin.robots]
palletizer = my_arms.palletizer
table = my_arms.table
foreign = my_arms.foreign
empty = my_arms
broken = my_arms.broken
gone = my_arms.gone
two = my_arms.two
irb140 = my_arms.broken
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package that announces arms, sound and unsound."""
    package, info = tmp_path / "my_arms", tmp_path / "my_arms-1.0.dist-info"
    for name in (".", "palletizer", "table", "foreign", "broken", "two"):
        (package / name).mkdir()
        (package / name / "__init__.py").touch()
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-arms\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(ENTRIES, encoding="utf-8")
    ours = FILES["irb140"]
    shutil.copy(ours.toml, package / "palletizer")
    for place in ("palletizer/irb140.urdf", "foreign/arm.urdf", "two/a.urdf", "two/b.urdf"):
        shutil.copy(ours.path, package / place)
    table = Path(twin.load("two_link").file or "")
    shutil.copy(table, package / "table")
    (package / "broken" / "__init__.py").write_text("1 / 0", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    plugin_entries.cache_clear()
    yield package
    plugin_entries.cache_clear()
    for module in [name for name in sys.modules if name.startswith("my_arms")]:
        del sys.modules[module]


def test_they_are_loaded_by_name(installed):
    assert {"palletizer", "table", "foreign"} <= set(twin.plugins.plugin_robots())
    assert twin.load("palletizer").file == installed / "palletizer" / "robot.toml"
    assert twin.load("table").name == "two_link"
    assert twin.load("foreign").urdf == installed / "foreign" / "arm.urdf"


def test_a_name_of_ours_stays_ours(installed):
    assert twin.load("irb140").file == FILES["irb140"].toml
    assert "irb140" in twin.robot_names()
    assert "palletizer" not in twin.robot_names()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("broken", "cannot load robot 'broken' of package my-arms: ZeroDivisionError: division by zero"),
        ("gone", "cannot load robot 'gone' of package my-arms: ModuleNotFoundError"),
        ("empty", "expected 'my_arms' to be a package with a robot.toml, a dh.toml or one .urdf"),
        ("two", "expected 'my_arms.two' to be a package with a robot.toml, a dh.toml or one .urdf"),
    ],
)
def test_failing_package_is_reported_and_does_not_affect_others(installed, name, told, capsys):
    with pytest.raises(PluginError, match=told.replace(".", r"\.")):
        twin.load(name)
    assert main(["run", "gravity_hold", "--robot", name]) == 1
    assert f"cannot load robot '{name}'" in " ".join(capsys.readouterr().out.split())
    assert twin.load("palletizer").n == 6


def test_the_list_has_all_of_them(installed, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    told = {line.split()[0]: line for line in lines[1:] if line.split()}
    assert "ABB IRB 140" in told["palletizer"]
    assert "arm.urdf" in told["foreign"]
    assert "cannot load robot 'broken'" in told["broken"]
    assert sum("irb140 " in line for line in lines) == 1
    assert "scenarios" in "".join(lines)


def test_they_run(installed, capsys):
    assert main(["run", "gravity_hold", "--robot", "palletizer", "--controller", "pd_gravity"]) == 0
    assert "palletizer" in capsys.readouterr().out


def test_an_unknown_name_lists_them(installed):
    with pytest.raises(UnknownNameError, match="palletizer"):
        twin.load("palletiser")

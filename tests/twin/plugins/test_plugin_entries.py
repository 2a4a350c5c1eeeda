"""Laws, scenarios and robots that installed packages announce, and the law that a scenario brings along."""

import sys
from pathlib import Path

import numpy as np
import pytest

import controllers
import twin
from controllers.plugin_controllers import GROUP
from scenarios.cli.command_line import main
from scenarios.running import registry
from tests.support.installed_packages import installed
from tests.support.urdf_files import FILES
from twin.errors import PluginError, UnknownNameError
from twin.trajectories.sampling import Reference, State

ONES = Reference(np.ones(6), np.zeros(6), np.zeros(6))
REST = State(0.25, np.zeros(6), np.zeros(6))
SCENARIO = '''
"""A hold under a law of its own."""
from dataclasses import dataclass
from scenarios import base, gravity_hold
from scenarios.base import option
from scenarios.checks.tracking import error_metrics

def limp(state, reference):
    """No torque at all."""
    return 0.0 * state.q

SIDE_BY_SIDE = (f"{__file__}:limp", "pd")

@dataclass(frozen=True)
class Config(gravity_hold.Config):
    duration: float = option(0.02, "in s")

VARIANTS = (Config(controller=f"{__file__}:limp"),)
run = gravity_hold.run

def metrics(log):
    return error_metrics(log)
'''


def printed(capfd):
    """Return what was printed, in one line."""
    return " ".join(capfd.readouterr().out.split())


def test_packages_announce_laws(tmp_path, irb140, capfd):
    announced = {"gentle": "gentle_laws:Gentle", "broken": "gentle_laws:Nix"}
    announced |= {"gone": "not_there:X", "pd": "x:Y"}
    law = "import numpy as np\ndef Gentle(state, reference):\n    'Does nothing.'\n    return np.zeros(6)\n"
    with installed(tmp_path, {"gentle_laws.py": law}, {GROUP: announced}):
        assert controllers.plugin_names() == ("broken", "gentle", "gone")
        assert controllers.make("gentle", irb140)(REST, ONES).tolist() == [0.0] * 6
        assert type(controllers.make("pd", irb140)).__name__ == "PD"
        told = "'broken' of package my-things: there is no 'Nix' in it; it defines Gentle"
        with pytest.raises(PluginError, match=f"cannot load controller {told}"):
            controllers.make("broken", irb140)
        with pytest.raises(PluginError, match="'gone' of package my-things: ModuleNotFoundError"):
            controllers.make("gone", irb140)
        words = ["run", "gravity_hold", "--duration", "0.01", "--controller"]
        assert main([*words, "gentle", "gone", "pd"]) == 1
        assert "cannot load controller 'gone' of package my-things" in printed(capfd)
        second = tmp_path / "second"
        second.mkdir()
        with installed(second, {}, {GROUP: {"gentle": "a:B"}}, name="others"):
            both = "'gentle' of packages (others and my-things|my-things and others): uninstall all of them"
            with pytest.raises(PluginError, match=both):
                controllers.make("gentle", irb140)
    with pytest.raises(UnknownNameError):
        controllers.require_known("gentle")


def test_packages_announce_scenarios(tmp_path, capfd):
    announced = {"slack": "slack_scenario", "broken": "not_there", "pose_path": "slack_scenario"}
    failed = "cannot load scenario 'broken' of package my-things"
    with installed(tmp_path, {"slack_scenario.py": SCENARIO}, {"irb_twin.scenarios": announced}):
        assert registry.plugin_titles() == {
            "broken": f"{failed}: ModuleNotFoundError: No module named 'not_there'",
            "slack": "A hold under a law of its own.",
        }
        assert main(["run", "slack", "broken"]) == 1
        told = printed(capfd)
        assert "slack: A hold under a law of its own." in told
        assert "limp pd" in told
        assert failed in told
        assert registry.find("pose_path").file.endswith("scenarios/pose_path.py")
        assert main(["run", "slick"]) == 2
        told = capfd.readouterr().err
        assert "known are drive_check" in told
        assert "pose_path, broken, pose_path, slack" not in told


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


def test_failing_package_is_reported_and_does_not_affect_others(package, capsys):
    for name, told in (
        ("broken", "cannot load robot 'broken' of package my-arms: ZeroDivisionError: division by zero"),
        ("gone", "cannot load robot 'gone' of package my-arms: ModuleNotFoundError"),
        ("empty", "expected 'my_arms' to be a package with a robot.toml, a dh.toml or one .urdf"),
        ("two", "expected 'my_arms.two' to be a package with a robot.toml, a dh.toml or one .urdf"),
    ):
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

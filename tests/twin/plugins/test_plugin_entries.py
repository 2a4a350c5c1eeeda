"""Laws and scenarios that installed packages announce, and the law that a scenario brings along."""

import numpy as np
import pytest

import controllers
from controllers.plugin_controllers import GROUP
from scenarios.cli.command_line import main
from scenarios.running import registry
from tests.support.installed_packages import installed
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
    announced = {
        "gentle": "gentle_laws:Gentle",
        "broken": "gentle_laws:Nix",
        "gone": "not_there:X",
        "pd": "x:Y",
    }
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

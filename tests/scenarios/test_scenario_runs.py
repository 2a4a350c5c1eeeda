"""Scenarios with every arm run from the command line, and a second time to the bit."""

from dataclasses import replace

import pytest

from scenarios.cli.command_line import main
from scenarios.running import registry
from tests.support.scenario_cases import CASES, SHORT
from twin.logs.log import Log


def unstamped(log):
    """A log without what the command line says of its origin."""
    own = {name: array for name, array in log.arrays.items() if name not in ("provenance", "settings")}
    return replace(log, arrays=own)


# A law with each: what is asked here does not hang on it.  An arm with a closed loop and one without run all.
LAWS = {"irb140": "pid", "irb1400": "cascade", "irb1600": "computed_torque"}
SOME = [
    (robot, name, law)
    for robot, name, law in CASES
    if law == LAWS[robot] and (robot != "irb1600" or name in ("drive_check", "joint_tracking"))
]


@pytest.mark.parametrize(("robot", "name", "controller"), SOME)
def test_command_line_run_equals_run_from_python(robot, name, controller, tmp_path, capsys):
    file = tmp_path / "run.npz"
    options = [
        word for key, value in SHORT[name].items() for word in (f"--{key.replace('_', '-')}", str(value))
    ]
    words = ["run", name, "--robot", robot, "--controller", controller, "--log", str(file), *options]
    assert main(words) == 0
    assert controller in capsys.readouterr().out
    scenario = registry.find(name)
    again = scenario.run(scenario.Config(robot=robot, controller=controller, **SHORT[name]))
    assert again.identical(unstamped(Log.load(file)))

"""Scenarios with every arm run from the command line, and a second time to the bit."""

from dataclasses import replace

import pytest

import controllers
from scenarios.cli.command_line import main
from tests.support.scenario_cases import CASES, SHORT, full_run
from twin.logs.log import Log


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

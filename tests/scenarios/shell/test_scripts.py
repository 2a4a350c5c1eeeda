"""Scenarios as scripts: the same output and exit status as those of `irb-twin run`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import scenarios
from scenarios.shell.command_line import main
from tests.support.command_lines import without_notice

pytestmark = pytest.mark.slow("runs commands")

HERE = Path(scenarios.__file__).parent


def without_time(text):
    """Return an output without the time that the command took."""
    return re.sub(r"in [\d.]+ s$", "in T s", text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("python", "words"),
    [
        (str(HERE / "gravity_hold.py"), "--duration 0.02 --controller pd"),
        ("-m scenarios.gravity_hold", "--duration 0"),
    ],
)
def test_script_and_module_do_what_the_command_does(python, words, tmp_path, capsys):
    status = main(["run", "gravity_hold", *words.split()])
    printed = capsys.readouterr()
    assert printed.out or "expected a positive, finite duration" in printed.err
    done = subprocess.run(
        [sys.executable, *python.split(), *words.split()], cwd=tmp_path,
        env={"PYTHONPATH": str(HERE.parent), "COLUMNS": "100"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == status == (0 if printed.out else 2)
    assert without_time(done.stdout) == without_time(printed.out)
    assert without_notice(done.stderr) == printed.err

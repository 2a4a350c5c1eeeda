"""Scenarios as scripts: the same output and exit status as those of `irb-twin run`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import scenarios
from scenarios.running.registry import titles
from scenarios.shell.command_line import main
from tests.support.command_lines import without_notice

HERE = Path(scenarios.__file__).parent
TAIL = """

if __name__ == "__main__":
    from scenarios.shell.process import run_script

    raise SystemExit(run_script(__file__))
"""
PROJECT = str(HERE.parent)


def without_time(text):
    """Return an output without the time that the command took."""
    return re.sub(r"in [\d.]+ s$", "in T s", text, flags=re.MULTILINE)


def run(*words, folder):
    """Return status and output of Python with these arguments."""
    code = subprocess.run(
        [sys.executable, *words], cwd=folder, env={"PYTHONPATH": PROJECT, "COLUMNS": "100"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return code.returncode, without_time(code.stdout), without_notice(code.stderr)


@pytest.mark.parametrize("words", ["--duration 0.02 --controller pd", "--duration 0"])
def test_script_and_module_do_what_the_command_does(words, tmp_path, capsys):
    status = main(["run", "gravity_hold", *words.split()])
    printed = capsys.readouterr()
    found = status, without_time(printed.out), printed.err
    assert status == (2 if words[-1] == "0" else 0)
    assert printed.out or "expected a positive, finite duration" in printed.err
    assert run(str(HERE / "gravity_hold.py"), *words.split(), folder=tmp_path) == found
    module = ["scenarios", "run", "gravity_hold"] if status else ["scenarios.gravity_hold"]
    assert run("-m", *module, *words.split(), folder=tmp_path) == found


def test_file_of_a_user_runs_as_a_script(tmp_path):
    text = (HERE / "templates" / "my_scenario.py").read_text(encoding="utf-8")
    (tmp_path / "nod.py").write_text(text + TAIL, encoding="utf-8")
    status, output, _ = run("nod.py", "--duration", "0.3", folder=tmp_path)
    assert status == 0
    assert "nod: Nod with the arm: move axis 5 down and up again." in output


def test_every_scenario_can_be_run_as_a_script():
    files = [HERE / f"{name}.py" for name in titles()]
    assert len(files) == 11
    assert all(file.read_text(encoding="utf-8").endswith(TAIL) for file in files)

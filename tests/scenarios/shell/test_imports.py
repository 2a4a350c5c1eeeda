"""Modules that commands import: no more than they need, so that help and lists come at once."""

import json
import subprocess
import sys

import pytest

from scenarios.options import fields, flag
from twin.abb.egm import GuidanceSettings

PROGRAM = """
import contextlib, io, json, sys, time
from scenarios.shell.command_line import main
found = {}
for line in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        status = main(line.split())
    found[line] = [status, shown.getvalue(), [*sys.modules], time.process_time()]
print(json.dumps(found))
"""
HELP_OF_EGM = "egm serve --help"
LINES = (
    "--help", "plot --help", "egm mirror --help", "egm record --help", "egm replay --help", "egm --help",
    HELP_OF_EGM, "list", "run --help", "run pose_path --help", "run gravity_hold --duration 0.05",
)  # fmt: skip


def results_of(*lines):
    """Run commands one after the other in a new process; status, output, modules and time so far of each."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, *lines], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def results():
    return results_of(*LINES)


def assert_not_imported(names, results, line):
    """Check that neither this command nor one before it imported any of these modules."""
    assert not {name for name in results[line][2] if name in names or name.split(".")[0] in names}


def test_help_needs_no_numpy_and_only_the_named_command(results):
    assert_not_imported({"numpy", "rich"}, results, "--help")
    ours = {name for name in results["plot --help"][2] if name.startswith("scenarios.")}
    names = "options shell shell.command_line shell.output shell.parser commands commands.logs"
    assert ours == {f"scenarios.{name}" for name in names.split()}


def test_no_command_imports_more_than_it_needs(results):
    """Help of `egm` no protocol, help and lists nothing heavy, and a run without a cell nothing of it."""
    assert_not_imported({"numpy"}, results, "egm replay --help")
    assert_not_imported({"numba", "google.protobuf", "pybullet", "scipy", "rich"}, results, HELP_OF_EGM)
    assert all(flag(name) in results[HELP_OF_EGM][1] for name in fields(GuidanceSettings))

    heavy = {"numba", "urchin", "pybullet", "matplotlib", "scipy"}
    assert_not_imported(heavy, results, "run pose_path --help")
    assert [status for status, *_ in results.values()] == [0] * len(LINES)
    assert all("pose_path" in results[line][1] for line in ("--help", "list", "run --help"))

    assert_not_imported({"coal"}, results, LINES[-1])
    assert not [name for name in results[LINES[-1]][2] if "twin.cell." in name]


def test_help_and_list_come_at_once():
    """Within 0.4 s of a machine with nothing else to do; here twice as much of the processor is allowed."""
    assert any(results_of("--help", "list")["list"][3] < 0.8 for _ in range(3))

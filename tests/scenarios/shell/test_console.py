"""Output on every terminal: narrow, without Greek letters, or not a terminal at all."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from scenarios.report.files import write_junit
from scenarios.report.report import scenario_report, validation_report
from scenarios.report.results import Results
from scenarios.running.registry import Task
from scenarios.running.runs import Run
from scenarios.setup import Setup
from scenarios.shell import output
from scenarios.shell.command_line import main
from scenarios.shell.output import compiling_shown, shown
from tests.support import user_scenarios
from tests.support.example_logs import made_up_run, made_up_task, rendered
from twin.base import jit

PROGRAM = "from scenarios.shell.process import main; raise SystemExit(main())"
IN_BASH = f"{shlex.quote(sys.executable)} -c '{PROGRAM}'"
RUN = "run gravity_hold --duration 0.01"
PRINTING = ("list", "run pose_path --help", RUN)
"""Commands that print in different ways."""


@pytest.fixture
def printed_to(monkeypatch, capsys):
    """Function that runs a command whose standard output is a file; status and standard error.

    The file is closed as at the end of a process, where what is still to be written is written.
    """

    def run(line, file, **how):
        with monkeypatch.context() as patch, open(file, "w", **{"encoding": "utf-8", **how}) as stream:
            patch.setattr(sys, "stdout", stream)
            return main(line.split()), capsys.readouterr().err

    return run


def without_reader():
    """Return a pipe whose reader has hung up."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.parametrize("columns", ["0", "-5", "abc", "", "²", "1", "9" * 5000])
def test_columns_that_are_none_are_not_believed(columns, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", columns)
    text = command(["list" if columns == "1" else "--help"]).out
    assert "pose_path" in text
    assert max(map(len, text.splitlines())) < 200


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
@pytest.mark.parametrize("line", PRINTING[:2])
def test_a_terminal_that_knows_no_greek_gets_question_marks(line, errors, printed_to, tmp_path):
    """As Python opens standard output for PYTHONIOENCODING=ascii, and for LC_ALL=C."""
    assert printed_to(line, tmp_path / "out", encoding="ascii", errors=errors) == (0, "")
    assert "pose_path" in (tmp_path / "out").read_text(encoding="ascii")


def test_a_reader_who_hangs_up_hides_no_check_that_fails(tmp_path, printed_to, in_this_process):
    fails = 'def metrics(self, run):\n    return (Metric("m", 2.0, "", 1.0, ""),)\n'
    own = user_scenarios.write(tmp_path / "own.py", metrics=fails)
    assert printed_to(f"run {own} --json {tmp_path}/a.json", without_reader()) == (1, "")
    assert (tmp_path / "a.json").exists()


@pytest.mark.skipif("not __import__('os').path.exists('/dev/full')")
@pytest.mark.parametrize("line", PRINTING)
def test_a_reader_who_hangs_up_is_no_error_and_a_full_disk_one_sentence(line, printed_to, tmp_path):
    assert printed_to(line, without_reader()) == (0, "")
    files = f" --json {tmp_path}/a.json" if line == RUN else ""
    said = "irb-twin: cannot print: No space left on device\n"
    assert printed_to(line + files, "/dev/full") == (1, said)
    if files:
        assert json.loads((tmp_path / "a.json").read_text())["passes"] is True
        assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize(("unread", "status"), [(">&-", 0), ("| true", 0), (">/dev/full", 1)])
def test_a_process_that_cannot_print_fails_only_on_a_full_disk(unread, status):
    """Python flushes standard output once more when the process ends."""
    done = subprocess.run(
        ["bash", "-c", f"{IN_BASH} list {unread}; echo ${{PIPESTATUS[0]}}"],
        env=os.environ | {"PYTHONUNBUFFERED": "", "LC_ALL": "C", "PYTHONUTF8": "0"},
        capture_output=True, check=False, encoding="utf-8",
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == str(status)
    assert done.stderr == "irb-twin: cannot print: No space left on device\n" * status


NAMES = ("[rad]", "[/x]", "[bold]b[/bold]", ":smile:", "[link=a]")


def test_what_looks_like_markup_is_shown_as_it_is(tmp_path, command, in_this_process):
    metrics = f"""def metrics(self, run):
    return tuple(Metric(name, 1.0, "", None, f"why {{name}}") for name in {NAMES})
"""
    own = user_scenarios.write(tmp_path / "own [rad] [bold] :smile:.py", metrics=metrics)
    results = tmp_path / "[rad] [bold] :smile:.json"
    text = command(["run", own, "--explain", "--json", str(results)]).out
    assert [name for name in NAMES if f" {name} " not in text or f"why {name}" not in text] == []
    assert f"wrote {results}" in text.replace("\n", "")


def test_a_report_shows_them_on_any_page():
    run, name = made_up_run("pd"), NAMES[1]
    tree = run.log.robot.tree
    joints = tree.__class__(**{**vars(tree), "names": (name, *"bcdef")})
    log = replace(run.log, controller=name, robot=replace(run.log.robot, name=name, tree=joints))
    task = Task(replace(run.task[0], name=name), run.task[1], Setup(robot=name))
    metrics = (replace(run.metrics[0], name=name, limit=1e-13),)
    odd = Run(task, log, metrics, 0.1, error=f"because {name}", label=name)
    for parts in (scenario_report(f"about {name}", [odd], 100), validation_report(Results([odd]))):
        assert f"because {name}" in rendered(parts)


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def seen(self):
        """Return the text since the last call, without its escape sequences."""
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue())
        self.truncate(0)
        return text


def test_compiling_has_a_moving_bar_alone_and_below_another(monkeypatch):
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with compiling_shown():
        jit.on_compiling(True)
        jit.on_compiling(True)  # a function that the first one calls
        jit.on_compiling(False)
        time.sleep(0.3)
        frames = {line for line in terminal.getvalue().split("\r") if output.COMPILING in line}
        assert len(frames) > 1, "its colours move"
        jit.on_compiling(False)
        terminal.seen()
        with shown(1) as begin:
            begin("my run [rad] [/x]")
            for _ in range(2):
                jit.on_compiling(True)
                time.sleep(0.15)
                text = terminal.seen()
                assert "my run [rad] [/x]" in text
                assert output.COMPILING in text
                jit.on_compiling(False)
                terminal.seen()
                time.sleep(0.15)
                assert output.COMPILING not in terminal.seen()
        jit.on_compiling(True)
    time.sleep(0.2)
    assert terminal.seen()
    time.sleep(0.2)
    assert not terminal.seen(), "a bar without an end ends with the command"
    assert jit.on_compiling is bool


def test_compiling_is_a_line_where_there_is_no_terminal(capsys):
    line = f"irb-twin: {output.COMPILING}\n"
    output.print_to_stderr("before")
    with compiling_shown():
        assert capsys.readouterr().err == "irb-twin: before\n"
        for _ in range(2):
            jit.on_compiling(True)
            jit.on_compiling(False)
        assert capsys.readouterr().err == line
        output.print_to_stderr("100 runs")
        jit.on_compiling(True)
        jit.on_compiling(False)
        assert capsys.readouterr().err == "irb-twin: 100 runs\n" + line


def test_junit_has_no_character_that_xml_has_not(tmp_path):
    entry, scenario, setup = made_up_task()
    task = Task(replace(entry, name="a\x1b"), scenario, setup)
    run = Run(task, None, (), 0.1, error="it said \x00 and \ud800")
    write_junit(Results([run]), tmp_path / "a.xml")
    (case,) = ET.parse(tmp_path / "a.xml").getroot().iter("testcase")
    assert case.find("failure").attrib["message"] == "it said ? and ?"

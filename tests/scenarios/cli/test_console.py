"""Output on every terminal: narrow, without Greek letters, or not a terminal at all."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
import time

import pytest
from rich.console import Console

from scenarios.base import Config
from scenarios.cli import output
from scenarios.cli.command_line import main
from scenarios.cli.output import compiling_shown, shown
from scenarios.report.files import write_junit
from scenarios.report.report import scenario_report, validation_report
from scenarios.report.results import Results
from scenarios.running.runs import Run
from tests.support import user_scenarios
from tests.support.command_lines import without_notice
from tests.support.example_runs import made_up_run, rendered
from twin import jit

PROGRAM = "from scenarios.cli.process import main; raise SystemExit(main())"
COMMAND = f"{shlex.quote(sys.executable)} -c '{PROGRAM}'"


def shell(line, **environment):
    """Return the output of a shell command; `irb-twin` stands for the command of this checkout."""
    done = subprocess.run(
        ["bash", "-c", line.replace("irb-twin", COMMAND)],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": "", **environment},
    )
    done.stderr = without_notice(done.stderr.decode(errors="replace")).encode()
    return done


@pytest.mark.parametrize("columns", ["0", "-5", "abc", "", "²", "1", "9" * 5000])
@pytest.mark.parametrize("words", [["list"], ["--help"]])
def test_columns_that_are_none_are_not_believed(columns, words, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "pose_path" in text
    assert max(map(len, text.splitlines())) < 200


@pytest.mark.parametrize("words", ["list", "--help", "run pose_path --help"])
@pytest.mark.parametrize("environment", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_a_terminal_that_knows_no_greek_gets_question_marks(words, environment):
    done = shell(f"irb-twin {words}", **environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert b"pose_path" in done.stdout
    if "PYTHONIOENCODING" in environment:
        assert done.stdout.isascii()


@pytest.mark.parametrize("words", ["list", "--help", "validate --help", "formulas main_axes"])
def test_a_reader_who_hangs_up_is_no_error(words):
    done = shell(f"irb-twin {words} | true; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_who_hangs_up_hides_no_check_that_fails(tmp_path):
    fails = 'def metrics(log):\n    return (Metric("m", 2.0, "", 1.0, ""),)\n'
    own = user_scenarios.write(tmp_path / "own.py", metrics=fails)
    done = shell(f"irb-twin run {own} --json {tmp_path}/a.json | true; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (1, b"")
    assert (tmp_path / "a.json").exists()


@pytest.mark.skipif("not __import__('os').path.exists('/dev/full')")
@pytest.mark.parametrize(
    "words",
    ["list", "--help", "run pose_path --help", "formulas main_axes", "run gravity_hold --duration 0.01"],
)
def test_a_full_disk_behind_standard_output_is_one_sentence_and_status_1(words):
    done = shell(f"irb-twin {words} >/dev/full")
    assert (done.returncode, done.stderr) == (1, b"irb-twin: cannot print: No space left on device\n")


@pytest.mark.skipif("not __import__('os').path.exists('/dev/full')")
def test_files_are_whole_even_if_what_is_printed_has_no_room(tmp_path):
    done = shell(f"irb-twin run gravity_hold --duration 0.01 --json {tmp_path}/a.json >/dev/full")
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert json.loads((tmp_path / "a.json").read_text())["passes"] is True
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("words", ["list", "run gravity_hold --duration 0.01", "run pose_path --help"])
def test_head_takes_a_line_and_nobody_complains(words):
    done = shell(f"irb-twin {words} | head -n 1; echo ${{PIPESTATUS[0]}}")
    assert (done.stdout.splitlines()[-1], done.stderr) == (b"0", b"")


NAMES = ("[rad]", "[/x]", "[bold]b[/bold]", ":smile:", "[link=a]")


@pytest.mark.parametrize("name", NAMES)
def test_what_looks_like_markup_is_shown_as_it_is(name, tmp_path, capsys):
    metrics = user_scenarios.PARTS["metrics"].replace("length", name).replace("in samples", f"why {name}")
    own = user_scenarios.write(tmp_path / f"own {name.replace('/', '')}.py", metrics=metrics)
    results = tmp_path / f"{name.replace('/', '')}.json"
    assert main(["run", own, "--explain", "--json", str(results)]) == 0
    text = capsys.readouterr().out
    assert f" {name} " in text
    assert f"why {name}" in text
    assert f"wrote {results}" in text.replace("\n", "")


@pytest.mark.parametrize("name", NAMES[:3])
def test_a_report_shows_them_on_any_page(name):
    run = made_up_run("pd")
    joints = run.log.robot.tree.__class__(**{**vars(run.log.robot.tree), "names": (name, *"bcdef")})
    from dataclasses import replace

    log = replace(run.log, controller=name, robot=replace(run.log.robot, name=name, tree=joints))
    config = Config(robot=name)
    metrics = (replace(run.metrics[0], name=name, limit=1e-13),)
    odd = Run(name, config, log, metrics, 0.1, f"because {name}", label=name)
    for parts in (scenario_report(f"about {name}", [odd], 100), validation_report(Results([odd]))):
        text = rendered(parts)
        assert name in text
        assert f"because {name}" in text


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal_for(monkeypatch):
    """Replace standard error by a terminal, and return it."""
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    return sys.stderr


def test_a_title_over_the_bar_is_shown_as_it_is(monkeypatch):
    terminal = terminal_for(monkeypatch)
    with shown(1) as begin:
        begin("own [rad] [/x], pd")
    assert "own [rad] [/x], pd" in terminal.getvalue()


def seen(terminal):
    """Text that a terminal was sent since the last call, without its escape sequences."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    terminal.truncate(0)
    return text


def test_compiling_has_a_moving_bar_alone_and_below_another(monkeypatch):
    terminal = terminal_for(monkeypatch)
    with compiling_shown():
        jit.on_compiling(True)
        jit.on_compiling(True)  # a function that the first one calls
        jit.on_compiling(False)
        time.sleep(0.3)
        frames = {line for line in terminal.getvalue().split("\r") if output.COMPILING in line}
        assert len(frames) > 1, "its colours move"
        jit.on_compiling(False)
        seen(terminal)
        with shown(1) as begin:
            begin("my run")
            for _ in range(2):
                jit.on_compiling(True)
                time.sleep(0.15)
                text = seen(terminal)
                assert "my run" in text
                assert output.COMPILING in text
                jit.on_compiling(False)
                seen(terminal)
                time.sleep(0.15)
                assert output.COMPILING not in seen(terminal)
        jit.on_compiling(True)
    time.sleep(0.2)
    assert seen(terminal)
    time.sleep(0.2)
    assert not seen(terminal), "a bar without an end ends with the command"
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


def test_the_command_says_that_it_compiles():
    program = (
        "from scenarios.cli import command_line, process\n"
        "from twin import jit\n"
        "command_line.main = lambda: jit.on_compiling(True) or 3\n"
        "raise SystemExit(process.main())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, f"irb-twin: {output.COMPILING}\n")


def test_junit_has_no_character_that_xml_has_not(tmp_path):
    import xml.etree.ElementTree as ET

    write_junit(
        Results([Run("a\x1b", Config(), None, (), 0.1, "it said \x00 and \ud800")]), tmp_path / "a.xml"
    )
    (case,) = ET.parse(tmp_path / "a.xml").getroot().iter("testcase")
    assert case.find("failure").attrib["message"] == "it said ? and ?"


def test_a_page_takes_strings_as_they_are(capsys):
    output.console().print("[rad] :smile:")
    assert capsys.readouterr().out == "[rad] :smile:\n"
    assert isinstance(output.console(), Console)

"""The fuzz suite detects crashes, hangs, tracebacks, and deviations of the engine."""

import sys
import xml.etree.ElementTree as ET
from itertools import product

import numpy as np

from tests.fuzz import __main__ as fuzz
from tests.fuzz import cases, robots_judged, workers
from tests.fuzz.__main__ import main
from tests.fuzz.cases import KINDS, Case, CaseId
from tests.fuzz.judges import recording_file
from tests.fuzz.misbehaving import misbehaving_judge
from tests.fuzz.robots_judged import robot_file
from tests.fuzz.verdicts import Verdict, fault, refusal
from tests.fuzz.workers import judged
from tests.support import small_robots
from twin.errors import RobotError


def test_crash_or_hang_is_a_fault_of_one_case(monkeypatch):
    monkeypatch.setattr(workers, "TIMEOUT", 1.0)
    behaviours = ["return", "crash", "return", "exit", "return", "hang", "return", "return"]
    found = dict(enumerate(judged(misbehaving_judge, behaviours)))
    assert [case for case, _ in found.values()] == behaviours
    sorts = [verdict.sort.partition(" in ")[0] for _, verdict in found.values()]
    crash, exit, hang = "the process ended with SIGABRT", "the process ended with status 3", "no end"
    assert sorts == ["", crash, "", exit, "", hang, "", ""]
    assert found[6][1].text == found[7][1].text, "the same process judges the next case"
    assert "misbehaving_judge" in found[1][1].text, "the traceback names the function that crashed"
    assert "misbehaving_judge" in found[5][1].text


def test_equal_identities_make_equal_cases():
    for kind, number in product(KINDS, range(3)):
        first, second = (cases.make(CaseId(kind, 3, number)) for _ in range(2))
        assert first.files == second.files
        assert first.right == second.right
        assert first.rng.random() == second.rng.random()
        assert first.files != cases.make(CaseId(kind, 4, number)).files


def test_rejection_must_be_one_printable_line_that_names_the_file():
    for error, sort in (
        (RobotError("a.urdf: no joint moves"), ""),
        (RobotError("a.urdf: no\njoint"), "more than one line"),
        (RobotError("a.urdf: \x1b[31m"), "unprintable"),
        (RobotError("no joint moves"), "no file named"),
        (ValueError("a.urdf: no joint moves"), "ValueError"),
        (RecursionError("a.urdf"), "RecursionError"),
    ):
        assert refusal(error, ["a.urdf"]).sort.partition(":")[0].partition(" from")[0] == sort


def judged_robot(tmp_path, text):
    case = Case(CaseId("urdf", 0, 0), {"robot.urdf": text.encode()}, rng=np.random.default_rng(1))
    return robot_file(case, case.written(tmp_path))


def test_relative_engine_error_of_1e_10_is_a_fault(tmp_path, monkeypatch):
    assert judged_robot(tmp_path, small_robots.SOUND).outcome == "compared"
    in_engine = robots_judged._in_engine
    for part, sort in enumerate(("step", "pose")):

        def off(*arguments, part=part):
            answers = list(in_engine(*arguments))
            answers[part] = answers[part] * (1 + 1e-10)
            return answers

        monkeypatch.setattr(robots_judged, "_in_engine", off)
        assert judged_robot(tmp_path, small_robots.SOUND).sort == f"engine and model differ in a {sort}"


def test_number_that_only_python_reads_is_found(tmp_path, monkeypatch):
    path = tmp_path / "robot.urdf"
    monkeypatch.setattr(robots_judged, "read_document", lambda path: ET.parse(path).getroot())
    for text, python_only in (("1_0", True), ("\u0661", True), ("10", False), ("-.5e-3", False)):
        urdf = small_robots.SOUND.replace('<mass value="3"/>', f'<mass value="{text}"/>')
        path.write_text(urdf, encoding="utf-8")
        assert bool(robots_judged.python_only_number(path)) == python_only


def test_recording_changed_by_writing_is_a_fault(tmp_path, monkeypatch):
    rows = b"t,x,y,z,a,b,c,d\n0,0,0,0,1,0,0,0\n1,%s,0,0,1,0,0,0\n"
    case = Case(CaseId("csv", 0, 0), {"path.csv": rows % b"0"})
    assert recording_file(case, case.written(tmp_path)).outcome == "accepted"
    write = "tests.fuzz.judges.write_recording"
    monkeypatch.setattr(write, lambda path, recorded: path.write_bytes(rows % b"1e-9"))
    assert recording_file(case, case.written(tmp_path)).sort == "not the same when written and read again"


def test_command_line_repeats_a_case(tmp_path, monkeypatch, capsys):
    arguments = ["--kind", "csv", "--seed", "1", "--case", "3", "--out", str(tmp_path / "case")]
    monkeypatch.setattr(sys, "argv", ["fuzz", *arguments])
    assert main() == 0
    assert (tmp_path / "case" / "path.csv").read_bytes() == cases.make(CaseId("csv", 1, 3)).files["path.csv"]
    assert capsys.readouterr().out.startswith(("accepted", "refused"))


def test_command_line_counts_verdicts_and_prints_each_sort_of_fault_once(monkeypatch, capsys):
    """What `make fuzz` does, with verdicts made up here."""
    verdicts = [Verdict("refused"), fault("odd sort"), fault("odd sort"), Verdict("accepted")]
    monkeypatch.setattr(fuzz, "judged", lambda judge, ids, workers: zip(ids, verdicts, strict=False))
    monkeypatch.setattr(sys, "argv", ["fuzz", "--kind", "csv", "--seconds", "60"])
    assert main() == 1
    printed = capsys.readouterr().out
    assert printed.count("FAULT odd sort") == 1
    assert CaseId("csv", 1, 1).command in printed
    assert "4 cases: 1 accepted, 2 fault, 1 refused" in printed

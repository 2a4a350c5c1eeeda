"""The fuzz suite detects crashes, hangs, tracebacks, and deviations of the engine."""

import os
import time

import numpy as np

from tests.fuzz import robots_judged, workers
from tests.fuzz.cases import Case, CaseId
from tests.fuzz.robots_judged import robot_file
from tests.fuzz.verdicts import refusal
from tests.fuzz.workers import judged
from tests.support import small_robots
from twin.errors import RobotError


def test_crash_or_hang_is_a_fault_of_one_case(monkeypatch):
    """The cases are seconds to wait, of which some are too many, and statuses to end with."""
    monkeypatch.setattr(workers, "TIMEOUT", 1.0)
    waited = [verdict for _, verdict in judged(time.sleep, [0, 60, 0])]
    ended = [verdict for _, verdict in judged(os._exit, [3, 4])]
    assert waited[::2] == [None, None]
    ends = [verdict.sort.removeprefix("the process that ran it ") for verdict in (waited[1], *ended)]
    assert ends == ["ended with status 1", "ended with status 3", "ended with status 4"]


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

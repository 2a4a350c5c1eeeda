"""Judge hundreds of reproducible damaged files of every kind; `make fuzz` judges more."""

import os
import time
from collections import Counter

import numpy as np
import pytest

from tests.fuzz import judges, workers
from tests.fuzz.cases import KINDS, Case, CaseId
from tests.fuzz.judges import judge, robot_file
from tests.fuzz.verdicts import refusal
from tests.fuzz.workers import judged
from tests.support import small_robots
from twin.base.errors import RobotError

pytestmark = pytest.mark.slow("judges hundreds of damaged files")

SEED = 1
CASES = dict(zip(KINDS, (60, 25, 50, 100, 30), strict=True))


def test_every_file_is_rejected_with_one_line_or_read_correctly():
    """Judge a sample of each kind, which takes some 10 s, all in one process, which starts in 3 s."""
    outcomes, faults = {kind: Counter() for kind in KINDS}, {}
    ids = [CaseId(kind, SEED, number) for kind in KINDS for number in range(CASES[kind])]
    for id, verdict in judged(judge, ids):
        outcomes[id.kind][verdict.outcome] += 1
        if verdict.is_fault:
            faults.setdefault(verdict.sort, f"{verdict.sort}: {id.command}\n    {verdict.text[:300]}")
    if faults:
        report = "\n".join(faults.values())
        pytest.fail(f"faults of {len(faults)} sorts:\n{report}", pytrace=False)
    for kind, count in outcomes.items():
        # Cases that are all rejected, or all accepted, would test nothing.
        accepted = count["accepted"] + count["compared"]
        assert min(count["refused"], accepted) > 0.05 * CASES[kind], (kind, count)


# The fuzz suite detects crashes, hangs, tracebacks, and deviations of the engine.


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
    in_engine = judges._in_engine
    for part, sort in enumerate(("step", "pose")):

        def off(*arguments, part=part):
            answers = list(in_engine(*arguments))
            answers[part] = answers[part] * (1 + 1e-10)
            return answers

        monkeypatch.setattr(judges, "_in_engine", off)
        assert judged_robot(tmp_path, small_robots.SOUND).sort == f"engine and model differ in a {sort}"

"""Results as JUnit XML: a test suite a robot and scenario, a test case a check."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.reports.broken_runs import broken_run, failure
from scenarios.running.provenance import all_settings, provenance

if TYPE_CHECKING:
    from junitparser import Failure, TestCase, TestSuite

    from scenarios.running.runs import Run
    from scenarios.running.tracking_verdict import TrackingVerdict


def write_junit(runs: Sequence[Run], path: Path) -> None:
    """Write every check as a test case; one that does not hold is a failure.

    Properties of a suite are what the results were made with and, for every run, all its settings.
    """
    from junitparser import JUnitXml

    document = JUnitXml("irb-twin validate")
    suites: dict[str, list[Run]] = {}
    for run in runs:
        suites.setdefault(f"{run.config.robot}.{run.scenario}", []).append(run)
    for name, members in suites.items():
        document.add_testsuite(_suite(name, members, runs))
    document.update_statistics()
    document.write(str(path), pretty=True)


def _suite(name: str, members: Sequence[Run], runs: Sequence[Run]) -> TestSuite:
    """The runs of one scenario with one robot."""
    from junitparser import TestCase

    suite = _made(name)
    for run in members:
        settings = "".join(f", {key}={value}" for key, value in run.settings.items() if key != "robot")
        where = f"{name}.{run.label}{settings}"
        told = ", ".join(f"{key}={value}" for key, value in all_settings(run).items())
        suite.add_property(_text(f"settings of {run.name}"), _text(told))
        advice = ""
        if not run.holds:
            broken = broken_run(run, runs)
            advice = f"whose fault: {broken.cause}\nagain: {broken.repeat}"
        # A figure without a limit is a report, not a check, as long as it is a number.
        checks = [metric for metric in run.metrics if metric.limit is not None or not metric.holds]
        share = run.seconds / max(len(checks), 1)
        for metric in checks:
            case = TestCase(_text(metric.name), _text(where), share)
            if not metric.holds:
                case.result = [_failure(failure(metric), advice)]
            suite.add_testcase(case)
        if run.tracking is not None:
            suite.add_testcase(_tracking(run.tracking, _text(where), advice))
        if run.error is not None:
            case = TestCase("finishes", _text(where), run.seconds)
            case.result = [_failure(run.error, advice)]
            suite.add_testcase(case)
    return suite


def _tracking(tracking: TrackingVerdict, where: str, advice: str) -> TestCase:
    """The case of how a run's tracking was judged, skipped where it was not."""
    from junitparser import Skipped, TestCase

    case = TestCase("tracking", where, 0.0)
    if tracking.verdict in ("not_judged", "undetermined"):
        case.result = [Skipped(_text(tracking.sentence))]
    elif tracking.outcome != "passes":
        case.result = [_failure(tracking.sentence, advice)]
    return case


def _failure(sentence: str, advice: str = "") -> Failure:
    from junitparser import Failure

    found = Failure(_text(sentence))
    found.text = _text(advice)
    return found


def _made(name: str) -> TestSuite:
    """A suite that says what it was made with."""
    from junitparser import TestSuite

    suite = TestSuite(_text(name))
    for what, value in provenance().items():
        suite.add_property(what, value)
    return suite


def _text(text: str) -> str:
    """A text as XML can have it: most control characters have no place there."""
    return re.sub("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)

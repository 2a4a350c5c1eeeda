"""Write results as files: JSON with all values, JUnit XML for a CI, and Markdown for its summary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.report.documents import attributes, write_document
from scenarios.report.results import WORDS, Results, broken_run, failure, judged
from scenarios.running.provenance import all_settings, provenance, provenance_line
from scenarios.running.runs import repeat_command
from twin.base.errors import printable
from twin.data.logs.figures import POSE_COMPONENTS

if TYPE_CHECKING:
    from junitparser import Failure, TestCase, TestSuite

    from scenarios.judging.tracking import TrackingVerdict
    from scenarios.report.results import Comparison
    from scenarios.running.runs import Run

FORMAT = 2
"""Version of the JSON document; it changes if the meaning of an entry changes, not if an entry is added."""
HEADINGS = ("robot", "scenario", "controller, settings", "largest error", "checks", "")
"""Headings of `Results.rows`, followed by the outcome."""
MOST_FAILURES = 20
"""Largest number of failures in the summary, as the size of a CI page is limited; the files contain all."""


def write_json(results: Results, path: Path) -> None:
    """Write settings, errors, torques and checks of every run as JSON.

    Durations are not written, so that the same code always writes the same file.
    """
    document: dict[str, Any] = {"format": FORMAT, "passes": results.passes, "provenance": provenance()}
    if results.selection is not None:
        document["selection"] = dict(results.selection)
    document["runs"] = [_as_json(run) for run in results.runs]
    write_document(path, document)


def _as_json(run: Run) -> dict[str, Any]:
    result: dict[str, Any] = {
        "name": run.name,
        "scenario": run.scenario,
        "config": all_settings(run),
        "repeat": repeat_command(run),
        "passes": run.passes,
        "outcome": run.outcome,
        "error": run.error,
        "metrics": [
            attributes(metric, "name", "value", "unit", "limit", "passes", "outcome", "span", "why", "where")
            for metric in run.metrics
        ],
    }
    if (tracking := run.tracking) is not None:
        result["tracking"] = asdict(tracking)
    if run.table is not None:
        result["table"] = {"caption": run.table[0], "rows": run.table[1]}
    if (figures := run.figures) is not None:
        result["drives"], result["model_drives"] = run.drives
        result["joints"] = {
            "names": list(figures.joint_names),
            "rms_error_rad": figures.joint_rms,
            "max_error_rad": figures.joint_largest,
            "peak_torque_N_m": figures.peak_torque,
            "peak_motor_torque_N_m": figures.peak_motor_torque,
            "torque_limit_N_m": figures.torque_limit,
            "saturated_samples": figures.saturated_samples,
        }
        result["tool"] = {
            "components": list(POSE_COMPONENTS),
            "rms_error": figures.pose_rms,
            "max_error": figures.pose_largest,
        }
    return result


def write_junit(results: Results, path: Path) -> None:
    """Write a JUnit suite per robot and scenario, with a test case per check.

    The properties of a suite are the versions of all software, and the settings of every run.
    """
    suites: dict[str, TestSuite] = {}
    for run in results.runs:
        name = f"{run.setup.robot}.{run.scenario}"
        suite = suites.get(name) or suites.setdefault(name, _suite(name))
        _add_cases(suite, name, run, results)
    write_suites("irb-twin validate", suites.values(), path)


def write_suites(title: str, suites: Iterable[TestSuite], path: Path) -> None:
    """Write suites as a document of JUnit."""
    from junitparser import JUnitXml

    document = JUnitXml(title)
    for suite in suites:
        document.add_testsuite(suite)
    document.update_statistics()
    document.write(str(path), pretty=True)


def _suite(name: str) -> TestSuite:
    """Return a suite whose properties are the versions of all software."""
    from junitparser import TestSuite

    suite = TestSuite(xml_text(name))
    for what, value in provenance().items():
        suite.add_property(what, value)
    return suite


def _add_cases(suite: TestSuite, name: str, run: Run, results: Results) -> None:
    """Add the test cases of a run: its checks, its tracking, and the error that ended it."""
    from junitparser import TestCase

    settings = "".join(f", {key}={value}" for key, value in run.settings.items() if key != "robot")
    where = xml_text(f"{name}.{run.label}{settings}")
    every = ", ".join(f"{key}={value}" for key, value in all_settings(run).items())
    suite.add_property(xml_text(f"settings of {run.name}"), xml_text(every))
    advice = ""
    if not run.passes:
        broken = broken_run(run, results.runs)
        advice = f"cause: {broken.cause}\nrepeat: {broken.repeat}"
    checks = judged(run)
    share = run.seconds / max(len(checks) + (run.error is not None), 1)  # so that the run counts once

    def add(title: str, place: str, seconds: float, sentence: str) -> None:
        case = TestCase(xml_text(title), xml_text(place), seconds)
        if sentence:
            case.result = [_failure(sentence, advice)]
        suite.append(case)

    for metric in checks:
        add(metric.name, where, share, "" if metric.passes else failure(metric))
    for part, title, seconds, sentence in run.cases:
        add(title, f"{where}.{part}" if part else where, seconds, sentence)
    if run.tracking is not None:
        suite.append(_tracking(run.tracking, where, advice))
    if run.error is not None:
        add("finishes", where, share, run.error)


def _tracking(tracking: TrackingVerdict, where: str, advice: str) -> TestCase:
    """Return the test case for the tracking of a run, which is skipped if the tracking was not judged."""
    from junitparser import Skipped, TestCase

    case = TestCase("tracking", where, 0.0)
    if tracking.verdict in ("not_judged", "undetermined"):
        case.result = [Skipped(xml_text(tracking.sentence))]
    elif tracking.outcome != "passes":
        case.result = [_failure(tracking.sentence, advice)]
    return case


def _failure(sentence: str, advice: str) -> Failure:
    from junitparser import Failure

    found = Failure(xml_text(sentence))
    found.text = xml_text(advice)
    return found


def xml_text(text: str) -> str:
    """Replace the characters that are invalid in XML, such as most control characters."""
    return re.sub("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)


def write_markdown(results: Results, path: Path) -> None:
    """Write a summary page for a CI: the outcome, the failures, and a table of all runs."""
    lines = [*_verdict(results), *_failing(results)]
    if results.comparison is not None:
        lines += _compared(results.comparison)
    lines += _table(results)
    lines += [plain(results.unsuited), ""] if results.unsuited else []
    lines += [f"Made with {plain(provenance_line())}.", ""]
    path.write_text("\n".join(lines), encoding="utf-8", errors="backslashreplace")


def _verdict(results: Results) -> Iterator[str]:
    broken = f"{len(results.failing)} FAIL" if results.failing else ""
    yield "## irb-twin validate: " + (broken or results.verdict)
    yield ""
    yield f"{len(results.runs)} runs, {results.check_count} checks: {plain(results.summary(broken))}."
    yield ""


def _failing(results: Results) -> Iterator[str]:
    found = results.broken
    if found:
        yield from ("### Failures", "")
    for broken in found[:MOST_FAILURES]:
        yield f"- **{plain(broken.title)}**"
        yield from (f"  - {plain(sentence)}" for sentence in broken.sentences)
        yield f"  - Cause: {plain(broken.cause)}"
        yield f"  - Repeat: {code(broken.repeat)}"
    if len(found) > MOST_FAILURES:
        yield f"- and {len(found) - MOST_FAILURES} more"
    if found:
        yield ""


def _compared(comparison: Comparison) -> Iterator[str]:
    yield from ("### Comparison with the baseline", "", plain(comparison.line), "")
    yield from (f"- {what.capitalize()}: {plain(sentence)}" for what, sentence in comparison.sentences)
    yield ""


def _table(results: Results) -> Iterator[str]:
    if not results.runs:
        return
    yield "| " + " | ".join(HEADINGS) + " |"
    yield "|---|---|---|---:|---:|---|"
    for run, cells in zip(results.runs, results.rows(), strict=True):
        verdict = WORDS[run.outcome] if run.passes else f"**{WORDS[run.outcome]}**"
        yield "| " + " | ".join(plain(cell) for cell in cells) + f" | {verdict} |"
    yield ""


def plain(text: str) -> str:
    """Return the text on one line, with special characters of Markdown escaped."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#&~" else letter for letter in printable(text))


def code(text: str) -> str:
    """Return the text on one line as inline code of Markdown, which may contain backquotes."""
    text = printable(text)
    longest = max(map(len, "".join(sign if sign == "`" else " " for sign in text).split()), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}" if longest else f"`{text}`"

"""Write results as JSON, JUnit XML, Markdown and a picture, and compare them with an earlier run's."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from scenarios.report.documents import attributes, write_document
from scenarios.report.results import GROWN, HEADINGS, WORDS, Comparison, Results, broken_run, failure, judged
from scenarios.running.provenance import all_settings, provenance, provenance_line
from scenarios.running.runs import repeat_command
from twin.base.errors import TwinError, printable
from twin.base.formatting import figure, literal, shorten
from twin.base.formatting import figure as number
from twin.data.logs.figures import POSE_COMPONENTS, joint_error
from twin.physics.robot.units import caption_unit

if TYPE_CHECKING:
    from junitparser import Failure, TestCase, TestSuite
    from matplotlib.axes import Axes

    from scenarios.judging.tracking import TrackingVerdict
    from scenarios.running.runs import Run
    from twin.data.logs.log import Log


FORMAT = 2
"""Version of the JSON document; it changes if the meaning of an entry changes, not if an entry is added."""
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


ROUNDING_RATIO = "engine - model, every state / its limit"
"""Check whose figure is a share of rounding, which has no meaning below its limit."""
ROUNDING = 1e-9
"""Values up to this, in SI units, are rounding errors, which differ between machines."""


class BaselineError(TwinError):
    """Raised for a file with which results cannot be compared."""


@dataclass(frozen=True)
class Baseline:
    """Results in a file of ``irb-twin validate --json``."""

    path: Path
    runs: Mapping[str, Mapping[str, Any]]
    provenance: Mapping[str, str]
    selection: Mapping[str, Any] | None


def read_baseline(path: Path) -> Baseline:
    """Read a file of `write_json`.

    Raises:
        BaselineError: the file is missing, invalid, or has another format.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BaselineError(f"cannot read the baseline {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise BaselineError(f"the baseline {path} is not valid JSON ({error})") from error
    if not isinstance(document, dict) or "runs" not in document:
        raise BaselineError(f"the baseline {path} is not a file of irb-twin validate --json: it has no runs")
    if document.get("format") != FORMAT:
        raise BaselineError(
            f"the baseline {path} was written by another version of irb-twin: its format is "
            f"{document.get('format', 'not named')}, expected {FORMAT}; write it again with this version"
        )
    try:
        runs = {str(run["name"]): _checked(run) for run in document["runs"]}
        made_with = {str(name): str(value) for name, value in dict(document["provenance"]).items()}
        return Baseline(path, runs, made_with, document.get("selection"))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BaselineError(f"the baseline {path} is damaged: {type(error).__name__} {error}") from error


def _checked(run: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a run of the file, after checking the entries that are compared."""
    for name in ("config", "passes", "metrics"):
        run[name]
    for metric in run["metrics"]:
        for name in ("value", "limit"):
            if not isinstance(metric[name], (int, float, type(None))):
                raise TypeError(f"{name} of {metric['name']} is {metric[name]!r}")
        bool(metric["passes"])
    return run


def compare(
    runs: Sequence[Run], baseline: Baseline, selection: Mapping[str, Any], factor: float = GROWN
) -> Comparison:
    """Compare results with earlier results.

    Args:
        runs: the runs.
        baseline: the earlier results.
        selection: the selection on the command line. If the baseline's selection differs, missing runs are
            not reported.
        factor: ratio to the baseline above which a value has grown.

    Raises:
        BaselineError: the results have no run in common.
    """
    found = Comparison(compared=sum(run.name in baseline.runs for run in runs), factor=factor)
    if not found.compared:
        raise BaselineError(
            f"the baseline {baseline.path} has none of these {len(runs)} runs: it was made with different "
            "scenarios, robots, controllers or settings"
        )
    _note_versions(baseline, found)
    for run in runs:
        if run.name in baseline.runs:
            _compare_run(run, baseline.runs[run.name], found)
    if baseline.selection == selection:
        names = {run.name for run in runs}
        found.missing.extend(f"{name}: this run is missing" for name in baseline.runs if name not in names)
    else:
        found.notes.append(
            f"the baseline was made with a different command line: only the {found.compared} runs in both "
            "are compared, and missing runs are not reported"
        )
    return found


def _note_versions(baseline: Baseline, found: Comparison) -> None:
    """Note the versions that the baseline was made with, if they differ."""
    now = provenance()
    other = [
        f"{name} {baseline.provenance.get(name, 'unknown')} (here {now.get(name, 'unknown')})"
        for name in dict.fromkeys((*baseline.provenance, *now))
        if baseline.provenance.get(name) != now.get(name) and name != "commit"
    ]
    if other:
        found.notes.append(
            f"the baseline was made with {', '.join(other)}: values may differ for that reason"
        )


def _compare_run(run: Run, before: Mapping[str, Any], found: Comparison) -> None:
    """Add what got worse in one run to the comparison."""
    now = all_settings(run)
    others = [
        f"{name} {before['config'].get(name)} (here {now.get(name)})"
        for name in now
        if name in before["config"] and before["config"][name] != now[name]
    ]
    if others:
        found.notes.append(
            f"{run.name}: not compared, because its settings were different: {', '.join(others)}"
        )
        return
    if before["passes"] and run.error is not None:
        found.worse.append(f"{run.name}: it does not finish any more: {run.error}")
    earlier = {metric["name"]: metric for metric in before["metrics"]}
    for metric in run.metrics:
        old = earlier.pop(metric.name, None)
        if old is None or metric.span is not None or old.get("span") is not None:
            continue  # rounding decides its value
        if metric.value is None:
            if old["value"] is not None:
                found.missing.append(f"{run.name}: {metric.name}: this check is not judged any more")
            continue
        was = None if old["value"] is None else float(old["value"])
        old_text = "not a number" if was is None else figure(was)
        change = f"{old_text} -> {figure(metric.value)} {metric.unit}".strip()
        if old["passes"] and not metric.passes:
            found.worse.append(f"{run.name}: {metric.name} passed before and fails now: {change}")
        elif metric.name == ROUNDING_RATIO:
            continue
        elif was is not None and _has_grown(was, metric.value, found.factor):
            found.grown.append(f"{run.name}: {metric.name} grew: {change}")
    if run.error is None:  # a run that ended early has no checks
        found.missing.extend(f"{run.name}: {name}: this check is missing" for name in earlier)


def _has_grown(before: float, now: float, factor: float) -> bool:
    """Return whether a value exceeds its old value by the factor; rounding errors count as `ROUNDING`."""
    return math.isfinite(now) and now > factor * max(before, ROUNDING)


PICTURE = (1400, 1400)  # pixels of the rendered arm, which is drawn at less than half that size
EDGE = 15  # pixels of margin around the arm
MOMENTS = 5  # number of poses of the arm
TITLE = 36  # characters of a title, and of a name in the legend
LETTERS = 11  # characters per inch of the legend
COMPARABLE = 30.0  # ratio of errors up to which all panels have one scale


def draw(runs: Sequence[Run], path: Path) -> None:
    """Draw a column per run: the error of every joint over time above, the arm on its path below.

    Args:
        runs: runs of one scenario; those without a log are omitted.
        path: path of the PNG file.
    """
    from twin.base.notebook import Plot
    from twin.studies.views.curves import power

    drawn = [(run.label, run.log) for run in runs if run.log is not None]
    logs = [log for _, log in drawn]
    figure = Plot(figsize=(max(1.2 + 4.0 * len(logs), 7.0), 8.4), layout="constrained")
    figure.suptitle(literal(f"{runs[0].scenario} on {logs[0].robot.name}"), fontweight="bold")
    above, below = cast("NDArray", figure.subfigures(2, 1, height_ratios=(1.0, 1.05)))
    sizes = [_size(log) for log in logs]
    alike = max(sizes) <= COMPARABLE * min(sizes)
    row = above.subplots(1, len(logs), sharey=alike, squeeze=False)[0]
    unit = caption_unit(logs[0].robot.joint_kinds)
    for column, ((label, log), size, axes) in enumerate(zip(drawn, sizes, row, strict=True)):
        exponent = power(max(sizes) if alike else size)
        _draw_error(axes, log, exponent)
        axes.set_title(
            f"{literal(shorten([label], TITLE)[0])}: largest error {number(size)} {unit}", fontsize=10
        )
        if column == 0 or not alike:
            factor = f"$10^{{{exponent}}}$ " if exponent else ""
            axes.set_ylabel(f"joint error  [{factor}{unit}]")
        _draw_arm(below.add_subplot(1, len(logs), column + 1), log)
    handles, labels = row[0].get_legend_handles_labels()
    beside = max(1, int(LETTERS * figure.get_figwidth() / (max(map(len, labels)) + 5)))
    above.legend(handles, labels, loc="outside lower center", ncols=min(beside, len(labels)), frameon=False)
    handles, labels = below.axes[0].get_legend_handles_labels()
    below.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=110, format="png")


def _size(log: Log) -> float:
    """Return the largest finite error of a joint, in [rad]."""
    errors = np.abs(joint_error(log))
    return float(np.max(errors, where=np.isfinite(errors), initial=0.0))


def _draw_error(axes: Axes, log: Log, exponent: int) -> None:
    """Draw the errors of the joints, divided by a power of ten."""
    from twin.studies.views.plots import COLOURS

    error = 10.0**-exponent * joint_error(log)
    for joint, name in enumerate(map(literal, shorten(log.robot.joint_names, TITLE))):
        axes.plot(log.t, error[:, joint], color=COLOURS[joint % len(COLOURS)], lw=1.2, label=name)
    if not _size(log):
        axes.set_ylim(-1.0, 1.0)
    axes.set_xlabel("time  [s]")
    axes.set_xlim(log.t[0], log.t[-1] if log.t[-1] > log.t[0] else 1.0)
    axes.grid(True, which="major", color="0.88")


def _draw_arm(axes: Axes, log: Log) -> None:
    """Draw the simulated arm at its start, further poses as shadows, and the paths of the tool."""
    from twin.physics.engine.simulation import Simulation
    from twin.studies.views.plots import COLOURS

    axes.set_axis_off()
    finite = np.nonzero(np.isfinite(log.q).all(axis=1))[0]  # a run that diverged may end with others
    if len(finite) == 0:
        return
    moments = finite[np.linspace(0, len(finite) - 1, MOMENTS, dtype=int)]
    points = np.concatenate([log.pose[:, :3], [[0.0, 0.0, 0.0]]])
    points = points[np.isfinite(points).all(axis=1)]
    low, high = points.min(axis=0), points.max(axis=0)
    camera: dict = {"target": (low + high) / 2, "distance": 1.4 + 1.4 * float(np.linalg.norm(high - low))}
    with Simulation(log.robot) as simulation:
        images = []
        for moment in moments:
            simulation.reset(log.q[moment])
            images.append(simulation.picture(*PICTURE, **camera))
        desired, actual = (simulation.pixels(p[:, :3], *PICTURE, **camera) for p in (log.pose_ref, log.pose))
    shadows = np.min(images, axis=0)
    axes.imshow((0.75 * images[0] + 0.25 * shadows) / 255)
    axes.plot(*desired.T, color="0.45", lw=3.5, solid_capstyle="round", label="desired tool path")
    axes.plot(*actual.T, color=COLOURS[0], lw=1.2, label="actual tool path")
    axes.plot(*desired[:1].T, "o", color="0.2", ms=4, label="start")
    rows, columns = np.nonzero((shadows < 255).any(axis=2))
    corners = np.concatenate([np.stack([columns, rows], axis=1), desired, actual])
    corners = corners[np.isfinite(corners).all(axis=1)]
    low, high = corners.min(axis=0) - EDGE, corners.max(axis=0) + EDGE
    axes.set(xlim=(low[0], high[0]), ylim=(high[1], low[1]))

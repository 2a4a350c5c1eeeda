"""Results of a command: its runs, their outcomes, and the likely cause of each failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scenarios.metric import Metric, Outcome
from scenarios.running.runs import diagnose, repeat_command
from twin.base.formatting import figure
from twin.physics.robot.units import joint_unit

if TYPE_CHECKING:
    from scenarios.running.runs import Run
    from scenarios.scenario import ScenarioTable
    from twin.studies.views.browser import Logged

WORDS: dict[Outcome, str] = {
    "passes": "passes",
    "fails": "FAILS",
    "not judged": "not judged",
    "undetermined": "UNDETERMINED",
    "not computed": "NOT COMPUTED",
}
HEADINGS = ("robot", "scenario", "controller, settings", "largest error", "checks", "")
"""Headings of `Results.rows`, followed by the outcome."""
TRACKING = ("exact", "bounded", "limited", "undetermined", "not_judged")


GROWN = 1.1
"""Default ratio to the baseline above which a value has grown."""


@dataclass(frozen=True)
class Comparison:
    """Comparison with a baseline, one sentence per change.

    Attributes:
        worse: checks and runs that passed before and fail now.
        grown: values that grew by more than the factor.
        missing: runs and checks that are missing now.
        notes: remarks on the comparison.
        compared: number of runs in both.
        factor: ratio to the baseline above which a value has grown.
    """

    worse: list[str] = field(default_factory=list)
    grown: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    compared: int = 0
    factor: float = GROWN

    @property
    def sentences(self) -> Iterator[tuple[str, str]]:
        """Sentences of the comparison, each after `worse`, `warning` or `note`."""
        yield from (("worse", sentence) for sentence in self.worse)
        yield from (("warning", sentence) for sentence in (*self.grown, *self.missing))
        yield from (("note", sentence) for sentence in self.notes)

    @property
    def line(self) -> str:
        """One line: the number of compared results, and of changes."""
        counts = (
            (len(self.worse), "worse"),
            (len(self.grown), f"with a value more than {self.factor:g} times the baseline"),
            (len(self.missing), "missing"),
        )
        changes = ", ".join(f"{count} {what}" for count, what in counts if count) or "nothing got worse"
        return f"{self.compared} results compared with the baseline: {changes}"


@dataclass(frozen=True)
class Results:
    """Results of a command, which every writer takes.

    Attributes:
        runs: the runs.
        selection: the requested selection, by which a later command recognises missing runs.
        comparison: the comparison with a baseline, if one was given.
        unsuited: a sentence on the scenarios that were not run.
    """

    runs: Sequence[Run]
    selection: Mapping[str, Any] | None = None
    comparison: Comparison | None = None
    unsuited: str = ""

    @property
    def passes(self) -> bool:
        """Whether every run finished, and every check passes."""
        return not self.failing

    @property
    def failing(self) -> list[Run]:
        """The failing runs."""
        return [run for run in self.runs if not run.passes]

    @property
    def open(self) -> bool:
        """Whether the tracking of some run was not judged, so that it may be poor although no check fails."""
        return any(run.outcome in ("not judged", "undetermined") for run in self.runs)

    @property
    def verdict(self) -> str:
        """The verdict in words if no run fails."""
        return "every check passes, but not all tracking was judged" if self.open else "everything passes"

    @property
    def check_count(self) -> int:
        """Number of values with a limit."""
        return sum(metric.limit is not None for run in self.runs for metric in run.metrics)

    def summary(self, broken: str) -> str:
        """Return a sentence such as `all checks pass; tracking: 2 exact, 1 not judged (no bound known)`.

        Args:
            broken: the beginning of the sentence if some checks fail; empty if all pass.
        """
        found = [run.tracking for run in self.runs if run.tracking]
        counts = Counter(one.verdict for one in found)
        judged = ", ".join(f"{counts[kind]} {kind.replace('_', ' ')}" for kind in TRACKING if counts[kind])
        whys = ", ".join(dict.fromkeys(one.reason for one in found if one.verdict == "not_judged"))
        tracking = f"; tracking: {judged}" if judged else ""
        return (broken or "all checks pass") + tracking + (f" ({whys})" if whys else "")

    @cached_property
    def broken(self) -> list[BrokenRun]:
        """The failing runs in their order; runs with the same sentences are merged."""
        found: dict[tuple[tuple[str, ...], str], BrokenRun] = {}
        for one in (broken_run(run, self.runs) for run in self.failing):
            same = (one.sentences, one.cause)
            first = found.get(same)
            found[same] = one if first is None else replace(first, others=(*first.others, one.name))
        return list(found.values())

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return robot, scenario, controller with settings, largest error, and passed checks of every run."""
        robots, found = robot_labels(self.runs), []
        for run in self.runs:
            settings = (f"{name} {value}" for name, value in run.settings.items() if name != "robot")
            checks = [metric for metric in run.metrics if metric.limit is not None]
            passed = f"{sum(metric.passes for metric in checks)}/{len(checks)}"
            law = ", ".join([run.label, *settings])
            found.append((robots[run.setup.robot], run.scenario, law, largest_error(run), passed))
        return found


@dataclass(frozen=True)
class BrokenRun:
    """Failing run, or several that fail for the same reason.

    Attributes:
        name: name of the run, or of the first of several.
        sentences: one for the error that ended the run and for every failed check, with value, limit, joint
            and time.
        cause: the most likely cause.
        repeat: command that repeats the run.
        others: names of the other runs with the same sentences.
    """

    name: str
    sentences: tuple[str, ...]
    cause: str
    repeat: str
    others: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name, with the number of other runs."""
        count = len(self.others)
        return f"{self.name} (and {count} other run{'s' * (count > 1)})" if count else self.name


def broken_run(run: Run, runs: Sequence[Run]) -> BrokenRun:
    """Describe a failing run; its cause is found by comparison with the other runs of the command."""
    sentences = []
    if run.error is not None:
        sentences = [run.error if run.touched else f"did not finish: {run.error}"]
    broken = [metric for metric in run.metrics if not metric.passes]
    sentences += [failure(metric) for metric in broken]
    figures = run.figures
    if broken and not any(metric.where for metric in broken) and figures and figures.worst_joint:
        sentences.append(
            f"the largest joint error is {largest_error(run)}, of "
            f"{figures.worst_joint} at t = {figures.worst_time:.6g} s"
        )
    return BrokenRun(run.name, tuple(sentences), diagnose(run, runs), repeat_command(run))


def failure(metric: Metric) -> str:
    """Return a failed check as a sentence: name, value, limit, joint, time, and source of the limit."""
    assert metric.value is not None  # what is not judged does not fail
    value, limit = figure(metric.value), "" if metric.limit is None else figure(metric.limit)
    if value == limit:  # they differ in digits that are not shown
        value, limit = repr(metric.value), repr(metric.limit)
    expected = f"at most {limit}" if limit else "a number"
    place = f" ({metric.where})" if metric.where else ""
    if metric.outcome == "undetermined":
        value, place = "{} to {}".format(*map(figure, metric.span or ())), f" due to rounding{place}"
    return f"{metric.name} is {f'{value} {metric.unit}'.strip()}{place}, expected {expected}: {metric.why}"


def judged(run: Run) -> list[Metric]:
    """Return the checks of a run: the values with a limit, and values that are not numbers."""
    return [metric for metric in run.metrics if metric.limit is not None or not metric.passes]


def check_names(runs: Sequence[Run]) -> list[str]:
    """Return the names of all metrics of the runs, in order, each once."""
    return list(dict.fromkeys(metric.name for run in runs for metric in run.metrics))


def metric_named(run: Run, name: str) -> Metric | None:
    """Return the metric with this name; `None` if the run does not have it."""
    return next((metric for metric in run.metrics if metric.name == name), None)


def largest_error(run: Run) -> str:
    """Return the largest joint error with its unit, as `0.205 rad`; empty if nothing was logged."""
    figures = run.figures
    if figures is None:
        return ""
    joint = int(np.argmax(figures.joint_largest))
    return f"{figure(float(figures.joint_largest[joint]))} {joint_unit(figures.joint_kinds[joint])}"


def robot_labels(runs: Sequence[Run]) -> dict[str, str]:
    """Return a short label by robot: the file's name, or its path if two files have the same name.

    The label of a `robot.toml` or a `dh.toml` is the name of its folder.
    """
    names = list(dict.fromkeys(run.setup.robot for run in runs))
    short = [
        (path.absolute().parent if path.name in ("robot.toml", "dh.toml") else path).name
        for path in map(Path, names)
    ]
    return {name: name if short.count(label) > 1 else label for name, label in zip(names, short, strict=True)}


def describe(run: Run) -> str:
    """Return one line: robot, duration, control period, drives, and settings that are not the default."""
    log = run.log
    words = [run.setup.robot]
    if log is not None:
        period = f"{1e3 * log.time_step * log.steps_per_period:g} ms"
        words += [f"{log.t[-1]:.4g} s", f"{len(log.t)} control periods of {period}"]
    drives, model = run.drives
    aside = f" ({model} drives in the model)" if model != drives else ""
    if drives == model == "ideal" and log is not None and log.robot.drives is not None:
        aside = " (no friction; see --drives)"
    words.append(f"{drives} drives{aside}")
    named = ("robot", "drives", "model_drives")
    words += [f"{name} {value}" for name, value in run.settings.items() if name not in named]
    return ", ".join(words)


class Shown(NamedTuple):
    """Run in a report, with its label, and its colour as `#0072b2`."""

    run: Run
    label: str
    colour: str


def grouped(runs: Sequence[Run]) -> list[list[Shown]]:
    """Group runs by scenario and robot, in their order; equal labels get numbers."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.scenario, run.setup.robot), []).append(run)
    return [_shown(group) for group in groups.values()]


def _shown(runs: Sequence[Run]) -> list[Shown]:
    from twin.studies.views.browser import COLOURS  # which imports scipy

    names = [run.label for run in runs]
    return [
        Shown(run, name if names.count(name) == 1 else f"{name} ({k + 1})", COLOURS[k % len(COLOURS)])
        for k, (run, name) in enumerate(zip(runs, names, strict=True))
    ]


def logged(shown: Sequence[Shown]) -> list[Logged]:
    """Return the logs of the runs that have one, and the same joints as the first of them."""
    from twin.studies.views.browser import Logged

    logs = [Logged(one.run.log, one.label, one.colour) for one in shown if one.run.log is not None]
    return [one for one in logs if one.log.robot.joint_names == logs[0].log.robot.joint_names]


def scenario_tables(runs: Sequence[Run]) -> list[ScenarioTable]:
    """Return the different tables of a scenario's runs; if there are several, with their controllers."""
    tables: list[tuple[str, ScenarioTable]] = []
    for run in runs:
        if run.table is not None and run.table not in [table for _, table in tables]:
            tables.append((run.label, run.table))
    if len(tables) == 1:
        return [table for _, table in tables]
    return [(f"{caption}, with {label}", rows) for label, (caption, rows) in tables]

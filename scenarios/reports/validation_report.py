"""What `irb-twin validate` prints: a line a run, what does not hold, whose fault that is, and the total."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from scenarios.reports.broken_runs import broken_runs
from scenarios.reports.verdicts import summed, verdict
from twin.robot.limits import joint_unit
from twin.short_texts import figure

if TYPE_CHECKING:
    from rich.console import RenderableType

    from scenarios.reports.baseline import Comparison
    from scenarios.running.runs import Run

HEADINGS = ("robot", "scenario", "controller, settings", "largest error", "checks", "")


def validation_report(runs: Sequence[Run]) -> Iterator[RenderableType]:
    """One line a run, then every check that does not hold, with its cause and what repeats it."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, heading in enumerate(HEADINGS):
        table.add_column(
            heading, justify="right" if heading in ("largest error", "checks") else "left", no_wrap=place > 2
        )
    above = ("", "")
    for run, cells in zip(runs, rows(runs), strict=True):
        here = cells[:2]
        names = here if here[0] != above[0] else ("", here[1] if here != above else "")
        table.add_row(*map(Text, (*names, *cells[2:])), verdict(run.outcome))
        above = here
    yield table
    for broken in broken_runs(runs):
        yield from broken.told(broken.title)
        yield ""


def rows(runs: Sequence[Run]) -> Iterator[tuple[str, str, str, str, str]]:
    """Robot, scenario, controller with settings, largest error, and checks kept, of every run."""
    robots = robot_labels(runs)
    for run in runs:
        settings = (f"{name} {value}" for name, value in run.settings.items() if name != "robot")
        checks = [metric for metric in run.metrics if metric.limit is not None]
        kept = f"{sum(metric.holds for metric in checks)}/{len(checks)}"
        law = ", ".join([run.label, *settings])
        yield robots[run.config.robot], run.scenario, law, largest_error(run), kept


def largest_error(run: Run) -> str:
    """The largest joint error with its unit, as `0.205 rad`; empty where nothing was logged."""
    figures = run.figures
    if figures is None:
        return ""
    joint = int(np.argmax(figures.joint_largest))
    return f"{figure(figures.joint_largest[joint])} {joint_unit(figures.joint_kinds[joint])}"


def robot_labels(runs: Sequence[Run]) -> dict[str, str]:
    """What the settings call a robot -> a short text: a file's name, or its path if two have that name.

    A `robot.toml` and a `dh.toml` go by the name of their folder.
    """
    names = list(dict.fromkeys(run.config.robot for run in runs))
    short = [
        (path.absolute().parent if path.name in ("robot.toml", "dh.toml") else path).name
        for path in map(Path, names)
    ]
    return {name: name if short.count(label) > 1 else label for name, label in zip(names, short, strict=True)}


def unsuited_line(unsuited: Sequence[tuple[str, str]]) -> str:
    """What was not run, and why; empty if there is nothing of the kind."""
    scenarios: dict[str, list[str]] = {}
    for scenario, robot in unsuited:
        scenarios.setdefault(robot, []).append(scenario)
    told = [f"with {robot} {', '.join(names)}" for robot, names in scenarios.items()]
    return f"not run, as they say that they do not suit the robot: {'; '.join(told)}" if told else ""


def comparison_report(comparison: Comparison, factor: float) -> Iterator[Text]:
    """What got worse since the baseline."""
    yield from (Text(f"worse than the baseline: {sentence}", "red") for sentence in comparison.worse)
    yield from (Text(f"warning: {sentence}", "yellow") for sentence in comparison.grown)
    yield from (Text(f"warning: {sentence}", "yellow") for sentence in comparison.missing)
    yield from (Text(f"note: {sentence}") for sentence in comparison.notes)
    yield Text(comparison_line(comparison, factor))


def comparison_line(comparison: Comparison, factor: float) -> str:
    """One line: how many results were compared, and how many are worse."""
    counts = (
        (len(comparison.worse), "worse"),
        (len(comparison.grown), f"with a figure more than {factor:g} times what it was"),
        (len(comparison.missing), "missing"),
    )
    told = ", ".join(f"{count} {what}" for count, what in counts if count) or "nothing got worse"
    return f"{comparison.compared} results compared with the baseline: {told}"


def validation_total(runs: Sequence[Run], seconds: float, jobs: int) -> str:
    """The last line: how many runs and checks there were, how long they took, and what came of them."""
    checks = sum(metric.limit is not None for run in runs for metric in run.metrics)
    broken = sum(not run.holds for run in runs)
    kept = summed(runs, f"{broken} run{'s do' if broken > 1 else ' does'} not hold" if broken else "")
    where = f" in {jobs} processes" if jobs > 1 else ""
    return f"{len(runs)} run{'s' * (len(runs) != 1)}, {checks} checks in {seconds:.1f} s{where}: {kept}"

"""What does not hold in a run: check, figure, limit, time, joint, whose fault, and how to repeat it alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scenarios.reports.report import figure
from scenarios.running.causes import cause
from scenarios.running.repeat import repeat_command

if TYPE_CHECKING:
    from scenarios.base import Metric
    from scenarios.running.runs import Run


@dataclass(frozen=True)
class Failure:
    """A run that does not hold.

    Attributes:
        name: of the run.
        sentences: one for every check that does not hold, and for the error that ended the run.
        cause: whose fault it most likely is.
        repeat: the command that repeats the run alone.
    """

    name: str
    sentences: tuple[str, ...]
    cause: str
    repeat: str


def failures(runs: Sequence[Run]) -> list[Failure]:
    """The runs that do not hold, in their order."""
    return [
        Failure(run.name, tuple(_sentences(run)), cause(run, runs), repeat_command(run))
        for run in runs
        if not run.holds
    ]


def _sentences(run: Run) -> Iterator[str]:
    if run.error is not None:
        yield f"did not finish: {run.error}"
    for metric in run.metrics:
        if not metric.holds:
            yield broken(metric, run)


def broken(metric: Metric, run: Run) -> str:
    """A check that does not hold: its figure, where that was, what was wanted and why."""
    wanted = "a number" if metric.limit is None else f"<= {figure(metric.limit)}"
    value = f"{figure(metric.value)} {metric.unit}".strip()
    where = metric.where or _largest_error(run)
    return f"{metric.name} is {value}, wanted {wanted}{' (' + where + ')' if where else ''}: {metric.why}"


def _largest_error(run: Run) -> str:
    """Where to look in the run when a check does not say it."""
    figures = run.figures
    if figures is None or not figures.worst_joint:
        return ""
    joint = figures.joint_names.index(figures.worst_joint)
    unit = "rad" if figures.joint_kinds[joint] == "revolute" else "m"
    error = figure(float(figures.joint_largest[joint]))
    return (
        f"the run's largest joint error, {error} {unit}, is that of {figures.worst_joint} "
        f"at t = {figures.worst_time:.6g} s"
    )

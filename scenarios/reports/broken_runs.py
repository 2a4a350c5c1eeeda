"""The runs that do not hold: what does not, whose fault that is, and how to repeat it alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from scenarios.running.causes import cause
from scenarios.running.registry import repeat_command
from twin.robot.limits import joint_unit
from twin.short_texts import figure

if TYPE_CHECKING:
    from scenarios.base import Metric
    from scenarios.running.runs import Run


@dataclass(frozen=True)
class BrokenRun:
    """A run that does not hold, or several for the same reason.

    Attributes:
        name: of the run, the first of several.
        sentences: one for the error that ended it and for every check that does not hold: the figure, the
            limit, joint and time.
        cause: whose fault it most likely is.
        repeat: the command that repeats the run alone.
        others: names of the other runs that end with the same sentences.
    """

    name: str
    sentences: tuple[str, ...]
    cause: str
    repeat: str
    others: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name, and how many others there are."""
        count = len(self.others)
        return f"{self.name} (and {count} other run{'s' * (count > 1)})" if count else self.name

    def told(self, title: str) -> Iterator[RenderableType]:
        """Its sentences, whose fault it is, and the command, as rich renders them; `title` leads each."""
        yield from (Text(f"{title}: {sentence}", "bold red") for sentence in self.sentences)
        yield Text(f"whose fault: {self.cause}")
        # One line, however long, that can be copied as it is: a text alone would be joined with others.
        yield Group(Text(f"again: {self.repeat}", no_wrap=True, overflow="ignore"))


def broken_runs(runs: Sequence[Run]) -> list[BrokenRun]:
    """The runs that do not hold, in their order, those with the same sentences once."""
    found: dict[tuple[tuple[str, ...], str], BrokenRun] = {}
    for one in (broken_run(run, runs) for run in runs if not run.holds):
        same = (one.sentences, one.cause)
        first = found.get(same)
        found[same] = one if first is None else replace(first, others=(*first.others, one.name))
    return list(found.values())


def broken_run(run: Run, runs: Sequence[Run]) -> BrokenRun:
    """One of them; the others of the command tell whose fault it is."""
    sentences = []
    if run.error is not None:
        sentences = [run.error if run.touched else f"did not finish: {run.error}"]
    broken = [metric for metric in run.metrics if not metric.holds]
    sentences += [failure(metric) for metric in broken]
    if broken and not any(metric.where for metric in broken) and (place := largest_error(run)):
        sentences.append(place)
    return BrokenRun(run.name, tuple(sentences), cause(run, runs), repeat_command(run))


def largest_error(run: Run) -> str:
    """Where to look in a run whose checks do not say it; empty where its error is not a number."""
    figures = run.figures
    if figures is None or not figures.worst_joint:
        return ""
    joint = figures.joint_names.index(figures.worst_joint)
    unit = joint_unit(figures.joint_kinds[joint])
    return (
        f"the largest joint error, {figure(float(figures.joint_largest[joint]))} {unit}, is that of "
        f"{figures.worst_joint} at t = {figures.worst_time:.6g} s"
    )


def failure(metric: Metric) -> str:
    """Check, figure, limit, joint and time, and where the limit comes from."""
    value, limit = figure(metric.value), "" if metric.limit is None else figure(metric.limit)
    if value == limit:  # by less than a figure shows
        value, limit = repr(metric.value), repr(metric.limit)
    wanted = f"at most {limit}" if limit else "a number"
    place = f" ({metric.where})" if metric.where else ""
    if metric.outcome == "undetermined":
        value, place = "{} to {}".format(*map(figure, metric.span or ())), f" by rounding{place}"
    return f"{metric.name} is {f'{value} {metric.unit}'.strip()}{place}, wanted {wanted}: {metric.why}"

"""What did not hold in a run, in sentences, and how to run it again alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from scenarios.reports.figures import figure
from scenarios.running.repeat import repeat_command

if TYPE_CHECKING:
    from scenarios.base import Metric
    from scenarios.running.runs import Run


def failures(run: Run, who: str = "") -> Iterator[RenderableType]:
    """A sentence for every check that does not hold, what ended the run, and the command that repeats it.

    Args:
        run: one of any outcome; of one that holds there is nothing to say.
        who: what every sentence begins with; the controller's label by default.
    """
    who = who or run.label
    for metric in run.metrics:
        if not metric.holds:
            yield Text(f"{who}: {failure(metric)}", "bold red")
    if run.error is not None:
        yield Text(f"{who} did not finish: {run.error}", "bold red")
    if not run.holds:
        # One line, however long, that can be copied as it is: a text alone would be joined with others.
        yield Group(Text(f"again: {repeat_command(run)}", no_wrap=True, overflow="ignore"))


def failure(metric: Metric) -> str:
    """Check, figure, limit, joint and time, and where the limit comes from."""
    value, limit = figure(metric.value), "" if metric.limit is None else figure(metric.limit)
    if value == limit:  # by less than a figure shows
        value, limit = repr(metric.value), repr(metric.limit)
    wanted = f"at most {limit}" if limit else "a number"
    place = f" ({metric.where})" if metric.where else ""
    return f"{metric.name} is {f'{value} {metric.unit}'.strip()}{place}, wanted {wanted}: {metric.why}"

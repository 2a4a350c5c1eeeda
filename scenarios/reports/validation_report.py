"""What `irb-twin validate` prints: a line a run, what does not hold, and the total."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from scenarios.checks.tracking_error import joint_error, largest
from scenarios.reports.report import figure, total, verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

    from scenarios.running.runs import Run


def validation_report(runs: Sequence[Run]) -> Iterator[RenderableType]:
    """One line a run, then every check that does not hold, then the total."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("robot", no_wrap=True)
    table.add_column("scenario", no_wrap=True)
    table.add_column("controller, settings")
    table.add_column("largest error", justify="right", no_wrap=True)
    table.add_column("checks", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    above = ("", "")
    for run in runs:
        settings = (f"{name} {value}" for name, value in run.settings.items() if name != "robot")
        error = "" if run.log is None else f"{figure(float(np.max(largest(joint_error(run.log)))))} rad"
        checks = [metric for metric in run.metrics if metric.limit is not None]
        kept = f"{sum(metric.holds for metric in checks)}/{len(checks)}"
        here = (run.config.robot, run.scenario)
        names = here if here[0] != above[0] else ("", here[1] if here != above else "")
        texts = (*names, ", ".join([run.config.controller, *settings]), error, kept)
        table.add_row(*map(Text, texts), verdict(run.holds))
        above = here
    yield table
    for run in runs:
        where = f"{run.config.robot}, {run.scenario}, {run.config.controller}"
        for metric in run.metrics:
            if not metric.holds:
                wanted = "a number" if metric.limit is None else f"<= {figure(metric.limit)}"
                value = f"{figure(metric.value)} {metric.unit}".strip()
                place = f" ({metric.where})" if metric.where else ""
                yield Text(f"{where}: {metric.name} is {value}{place}, wanted {wanted}: {metric.why}", "red")
        if run.error is not None:
            yield Text(f"{where} did not finish: {run.error}", "red")
    yield total(runs)

"""What a tuning found, as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from scenarios.sweeping.words import percent, quantity
from scenarios.tuning.comparison import DEFAULT, TUNED
from scenarios.tuning.tuned_law import LAW
from twin.short_texts import figure

if TYPE_CHECKING:
    from rich.console import RenderableType

    from scenarios.tuning.comparison import Compared, Side, Task
    from twin.sweeps.tuning import Tuning

FIGURES = ("joint_error", "rms_error", "tool_error", "rms_torque")
"""Those that are told, besides the one that is minimised."""


def report(
    task: Task, tuning: Tuning, on_draws: Compared, on_fresh: Compared | None, sentences: Sequence[str]
) -> Iterator[RenderableType]:
    """Gains, what became of them, and what to think of it."""
    config = task.law.scenario.settings
    yield Text.assemble(
        "\n", (f"{config.controller} in {task.scenario.name}", "bold"), f": {task.scenario.title}"
    )
    yield from (Text(line, "dim") for line in told(task))
    yield ""
    yield _gains(task, tuning)
    draws = on_draws.plan.design.draws
    yield f"Under the {draws} draw{'s' * (draws != 1)} that they were tuned on: median / worst"
    yield _figures(on_draws, task.minimise, interval=False)
    if on_fresh is not None:
        design = on_fresh.plan.design
        yield f"Under {design.draws} fresh draws, of seed {design.seed}: median / worst"
        yield _figures(on_fresh, task.minimise, interval=True)
    yield from (Text(sentence) for sentence in sentences)


def told(task: Task) -> list[str]:
    """What was tuned, and for what, in lines."""
    config, design = task.law.scenario.settings, task.design
    varied = " ".join(f"{one.name}={one.text}" for one in design.variations) or "nothing"
    limits = "".join(f", {name} at most {value:g}" for name, value in task.limits.items())
    return [
        f"{config.robot}, {config.drives} drives, varied: {varied}",
        f"{design.draws} draws, {design.kind} design, seed {design.seed}",
        f"wanted: runs that hold{limits}, then the least {task.of} {quantity(task.minimise)}",
    ]


def _gains(task: Task, tuning: Tuning) -> Table:
    """What was searched, where, and what was found."""
    table = _table("searched", "from", "to", DEFAULT, TUNED)
    for gain, default, best in zip(tuning.gains, tuning.default.values, tuning.best.values, strict=True):
        name = gain.name.removeprefix(LAW)
        vector = isinstance(task.law.numbers[name], np.ndarray)
        words = [figure(value) for value in (gain.low, gain.high, default, best)]
        table.add_row(Text(name), *(f"{word} times" if vector else word for word in words))
    return table


def _figures(compared: Compared, minimised: str, *, interval: bool) -> Table:
    """Shares and figures of both gains."""
    sides = compared.default, compared.tuned
    table = _table("", DEFAULT, TUNED)
    table.add_row("runs that hold", *(percent(side.found.share.share) for side in sides))
    if interval:
        ends = [(side.found.share.low, side.found.share.high) for side in sides]
        table.add_row("95 % interval of it", *(f"{percent(low)} to {percent(high)}" for low, high in ends))
    for name in dict.fromkeys((minimised, *FIGURES)):
        cells = [_spread(side, name) for side in sides]
        if all(cells):
            table.add_row(Text(quantity(name)), *cells)
    return table


def _spread(side: Side, name: str) -> str:
    """`0.012 /    0.034`; empty where nobody asked for the figure."""
    for one in side.found.spreads:
        if one.figure == name:
            return f"{figure(one.median)} / {figure(one.worst):>8}"
    return ""


def _table(first: str, *heads: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, overflow="fold")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    return table

"""What a tuning comes to, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scenarios.sweeping.words import percent, quantity, title
from scenarios.tuning.tuned_law import LAW
from twin.short_texts import figure

if TYPE_CHECKING:
    from scenarios.tuning.comparison import Compared, Side, Task
    from twin.sweeps.tuning import Tuning

WORTH = 0.01
"""Relative improvement of the figure below which tuning does not help."""

ROUNDING = 1e-10
"""Errors below it are rounding, in [rad] and [m]."""


def conclusions(task: Task, tuning: Tuning, on_draws: Compared, on_fresh: Compared | None) -> Iterator[str]:
    """Sentences for a person: what was gained, and what is wrong with it.

    Args:
        task: what was tuned.
        tuning: what was found.
        on_draws: both gains under the draws that were tuned on.
        on_fresh: the same under fresh draws, if anything is random.
    """
    judged = on_fresh or on_draws
    where = "on fresh draws" if on_fresh else "here, where nothing is random"
    yield from _gain(task, judged, where, on_draws)
    if not helps(judged.default, judged.tuned):
        yield from _instead(task, tuning, on_draws.default)
    yield from _failing(tuning, on_draws, on_fresh)
    for gain, end in tuning.at_ends:
        name = gain.name.removeprefix(LAW)
        yield (
            f"{name} ends at an end of its range, {end:g}: more may be gained beyond it (--gains "
            f"{name}={gain.low / (10 if end == gain.low else 1):g}:"
            f"{gain.high * (10 if end == gain.high else 1):g}), or the scenario has nothing that speaks "
            "against such gains, as noise or a delay does."
        )
    if not tuning.settled:
        yield (
            f"The search had not settled after {tuning.evaluations} sets of gains: more --evaluations may "
            "find better ones."
        )


def helps(default: Side, tuned: Side, least: float = WORTH) -> bool:
    """Whether fewer runs fail with tuned gains, or as many and the figure is less by more than that part."""
    if tuned.failing != default.failing:
        return tuned.failing < default.failing
    return tuned.figure < default.figure * (1.0 - least)


def _gain(task: Task, judged: Compared, where: str, on_draws: Compared) -> Iterator[str]:
    """What tuned gains are better or worse by."""
    default, tuned = judged.default, judged.tuned
    what = f"{task.of} {title(task.minimise)}"
    unit = quantity(task.minimise).removeprefix(title(task.minimise)).strip(" []")
    runs = len(tuned.found.swept.table)
    fail = f"{tuned.failing} instead of {default.failing} of {runs} fail"
    values = f"{figure(tuned.figure)} instead of {figure(default.figure)} {unit}".strip()
    if task.minimise.endswith("error") and default.failing == 0 and default.figure < ROUNDING:
        yield f"With default gains the {what} is rounding: tuning does not help."
    elif not helps(default, tuned):
        if helps(on_draws.default, on_draws.tuned):
            yield (
                "Tuning does not help: tuned gains are better under the draws that they were tuned on, "
                f"{where} they are not ({fail}, {what} {values}); more "
                "--samples tell more of what may come."
            )
        else:
            yield (
                f"Tuning does not help: no gains were found that are better than the default ones ({where} "
                f"{fail}, {what} {values})."
            )
    elif tuned.failing < default.failing:
        yield (
            f"Tuning helps: {where} {percent(tuned.found.share.share)} of the runs hold instead of "
            f"{percent(default.found.share.share)}; {what} {values}."
        )
    else:
        part = f", {tuned.figure / default.figure:.2g} of it" if 0 < default.figure < float("inf") else ""
        yield f"Tuning helps: {where} the {what} is {values}{part}."


def _instead(task: Task, tuning: Tuning, default: Side) -> Iterator[str]:
    """What else could be searched, if default gains do otherwise than the same ones would in all draws."""
    derived = (tuning.default.failing, tuning.default.figure) != (default.failing, default.figure)
    if derived and "bandwidth" in task.law.numbers:
        yield (
            "Tuned gains are the same in all draws, while the law derives its default ones anew from what it "
            "is told in each: --gains bandwidth goes on with that."
        )


def _failing(tuning: Tuning, on_draws: Compared, on_fresh: Compared | None) -> Iterator[str]:
    """Whether tuned gains hold."""
    runs = len(on_draws.tuned.found.swept.table)
    failing = on_draws.tuned.failing
    if failing == runs:
        yield f"No gains that were tried hold for any of the {runs} runs that they were tuned on."
    elif failing:
        yield (
            f"No gains that were tried hold for all of the {runs} runs that they were tuned on: the tuned "
            f"ones fail in {failing}."
        )
    if on_fresh is None:
        return
    share, fresh = on_fresh.tuned.found.share, on_fresh.tuned
    if not failing and fresh.failing:
        yield (
            f"Tuned gains hold for all draws that they were tuned on, and fail in {fresh.failing} of "
            f"{len(fresh.found.swept.table)} fresh runs: tune on more --samples."
        )
    if share.share > 0:
        yield f"They hold in at least {percent(share.low)} of all draws, with 95 % confidence."

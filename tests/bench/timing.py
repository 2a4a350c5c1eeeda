"""How two calls are measured side by side, and what is said of the result."""

import importlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat, starmap
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Row:
    """One comparison: what a call (or a sample, a step) of each takes, and the ratio.

    Attributes:
        what: what was measured of ours.
        against: what it was measured against; a number of seconds where that is aimed at.
        ours: median of ours, in `unit`.
        theirs: median of theirs, in `unit`.
        unit: of these two, "us" (microseconds) or "instructions".
        ratio: of these medians, below 1 where ours takes less.
        lowest: least ratio of one round.
        highest: greatest ratio of one round.
        goal: the ratio of times that is aimed at, `None` for a row that is only told.
    """

    what: str
    against: str
    ours: float
    theirs: float
    unit: str
    ratio: float
    lowest: float
    highest: float
    goal: float | None

    @property
    def missed(self) -> bool:
        """Whether the goal was missed."""
        return self.goal is not None and not self.ratio <= self.goal

    def __str__(self) -> str:
        goal = "" if self.goal is None else f"{self.goal:.2f}"
        return (
            f"{self.what:49} {self.against:36} {self.ours:12.3f} {self.theirs:12.3f} "
            f"{self.ratio:6.2f}   {f'{self.lowest:.2f}-{self.highest:.2f}':>10}  {goal:>5}"
        )


def heading(unit: str) -> str:
    """The line above rows of that unit."""
    ours, theirs = (f"{whose}/{unit[:5]}" for whose in ("ours", "theirs"))
    return f"{'what':49} {'against':36} {ours:>12} {theirs:>12} {'ratio':>6} {'range':>12}  {'goal':>5}"


def repeat_call(call: Callable[[], object], calls: int) -> None:
    """Call again and again, from C: a loop in Python is specialised to the function that it called before."""
    for _ in starmap(call, repeat((), calls)):
        pass


TURNS = 10
"""In a round."""


def microseconds(call: Callable[[], object], calls: int) -> float:
    """The time of one of so many calls."""
    start = time.perf_counter()
    repeat_call(call, calls)
    return (time.perf_counter() - start) / calls * 1e6


@dataclass(frozen=True)
class Meter:
    """What two calls are measured with, side by side.

    Attributes:
        rounds: how often each pair is measured.
        unit: of what `per_call` gives.
        per_call: what one of so many calls takes.
        batch: samples of a batch.
    """

    rounds: int
    unit: str = "us"
    per_call: Callable[[Callable[[], object], int], float] = microseconds
    batch: int = 100_000

    @property
    def timed(self) -> bool:
        """Whether it measures time, the one thing that more cores or an earlier process can save."""
        return self.unit == "us"

    def compare(
        self,
        what: str,
        against: str,
        ours: Callable[[], object],
        theirs: Callable[[], object],
        *,
        calls: int = 1,
        ours_per_call: int = 1,
        theirs_per_call: int = 1,
        goal: float | None = 1.0,
    ) -> Row:
        """Measure two calls in turn, `rounds` times each, `calls` at a time, after one of each that is not.

        The calls of a round are timed in turn, too, a tenth of them at once, so that both meet the machine in
        the same mood.  `ours_per_call` and `theirs_per_call` are the samples or steps that a call does.
        """
        ours(), theirs()
        turns = min(calls, TURNS) if self.timed else 1
        pairs = []
        for number in range(self.rounds):
            spent = {ours: 0.0, theirs: 0.0}
            for turn in range(turns):  # either goes first in every other turn
                for call in (ours, theirs) if (number + turn) % 2 == 0 else (theirs, ours):
                    spent[call] += self.per_call(call, calls // turns) / turns
            pairs.append((spent[ours] / ours_per_call, spent[theirs] / theirs_per_call))
        ratios = [a / b for a, b in pairs]
        a, b = (statistics.median(column) for column in zip(*pairs, strict=True))
        return Row(what, against, a, b, self.unit, a / b, min(ratios), max(ratios), goal)


def same(a, b, relative: float) -> None:
    """Stop the run where two results differ by more than `relative` of the largest value."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    assert np.max(np.abs(a - b)) <= relative * np.max(np.abs(b)), (a, b)


def peer(name: str) -> Any:
    """A library to compare with, or nothing, having said why, where it cannot be imported."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever it raises: some do not work with every version of numpy
        print(f"no rows against {name}, which cannot be imported: {type(error).__name__}: {error}")
        return None

"""How two calls are timed side by side, and what is said of the result."""

import importlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Row:
    """One comparison: median time of a call (or a sample, a step) of each, and their ratio.

    Attributes:
        what: what was timed of ours.
        against: what it was timed against; a number of seconds where that is aimed at.
        ours_us: median time of ours, in microseconds.
        theirs_us: median time of theirs, in microseconds.
        ratio: of these medians, below 1 where ours is faster.
        lowest: least ratio of one round.
        highest: greatest ratio of one round.
        goal: the ratio that is aimed at, `None` for a row that is only told.
    """

    what: str
    against: str
    ours_us: float
    theirs_us: float
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
            f"{self.what:49} {self.against:36} {self.ours_us:11.3f} {self.theirs_us:11.3f} "
            f"{self.ratio:6.2f}   {f'{self.lowest:.2f}-{self.highest:.2f}':>10}  {goal:>5}"
        )


HEADING = (
    f"{'what':49} {'against':36} {'ours/us':>11} {'theirs/us':>11} {'ratio':>6} {'range':>12}  {'goal':>5}"
)


def compare(
    what: str,
    against: str,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    rounds: int,
    calls: int = 1,
    ours_per_call: int = 1,
    theirs_per_call: int = 1,
    goal: float | None = 1.0,
) -> Row:
    """Time two calls in turn, `rounds` times each, `calls` at a time, after one of each that is not timed.

    `ours_per_call` and `theirs_per_call` are the samples or steps that a call does.
    """
    ours(), theirs()
    pairs = []
    for number in range(rounds):  # either goes first in every other round
        first, second = (ours, theirs) if number % 2 == 0 else (theirs, ours)
        times = [_seconds(first, calls), _seconds(second, calls)]
        a, b = times if number % 2 == 0 else times[::-1]
        pairs.append((a / ours_per_call, b / theirs_per_call))
    ratios = [a / b for a, b in pairs]
    a, b = (statistics.median(column) * 1e6 for column in zip(*pairs, strict=True))
    return Row(what, against, a, b, a / b, min(ratios), max(ratios), goal)


def _seconds(call: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


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

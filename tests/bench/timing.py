"""Measurement of two calls in turn, and the table row of their result."""

import importlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat, starmap
from math import nan
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Row:
    """One comparison: the cost of a call (or a sample, a step) of each function, and their ratio.

    Attributes:
        what: name of our function.
        against: name of the function that it is compared with, or a goal in seconds.
        ours: median of our function, in [us].
        theirs: median of the other function, in [us].
        ratio: ratio of the medians, below 1 if ours is smaller.
        lowest: smallest ratio of one round.
        highest: largest ratio of one round.
        goal: largest ratio that meets the goal, `None` for a row without a goal.
        failure: reason why there are no figures, empty if there are.
    """

    what: str
    against: str
    ours: float = nan
    theirs: float = nan
    ratio: float = nan
    lowest: float = nan
    highest: float = nan
    goal: float | None = None
    failure: str = ""

    @property
    def missed(self) -> bool:
        """Whether the goal was missed."""
        return self.goal is not None and not self.ratio <= self.goal

    def __str__(self) -> str:
        if self.failure:
            return f"{self.what:49} {self.against:36} {self.failure}"
        goal = "" if self.goal is None else f"{self.goal:.2f}"
        return (
            f"{self.what:49} {self.against:36} {self.ours:12.3f} {self.theirs:12.3f} "
            f"{self.ratio:6.2f}   {f'{self.lowest:.2f}-{self.highest:.2f}':>10}  {goal:>5}"
        )


HEADING = (
    f"{'what':49} {'against':36} {'ours/us':>12} {'theirs/us':>12} {'ratio':>6} {'range':>12}  {'goal':>5}"
)


def repeat_call(call: Callable[[], object], calls: int) -> None:
    """Call a function repeatedly from C, since Python specialises a loop to the function called first."""
    for _ in starmap(call, repeat((), calls)):
        pass


class NotComparableError(Exception):
    """Results that differ, so that their times cannot be compared."""


def failed(what: str, against: str, error: Exception) -> Row:
    """Return a row without figures that states an error in one line."""
    reason = " ".join(str(error).split())
    if not isinstance(error, NotComparableError):
        reason = f"not run: {type(error).__name__}: {reason}"
    return Row(what, against, failure=reason)


TURNS = 10
"""Turns of each function in a round."""


def microseconds(call: Callable[[], object], calls: int) -> float:
    """Return the mean time of one call in microseconds."""
    start = time.perf_counter()
    repeat_call(call, calls)
    return (time.perf_counter() - start) / calls * 1e6


@dataclass(frozen=True)
class Meter:
    """Settings for the comparison of two functions.

    Attributes:
        rounds: number of measurements of each pair.
        per_call: function that returns the mean time of one of a number of calls, in [us].
        batch: number of samples in a batch.
        is_short: whether each function is called a few times only, to see that it runs.
    """

    rounds: int
    per_call: Callable[[Callable[[], object], int], float] = microseconds
    batch: int = 100_000
    is_short: bool = False

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
        agree: Callable[[Any, Any], None] | None = None,
    ) -> Row:
        """Measure two functions in turn and return their row, which states an error if one occurs.

        Each function is first called once without measurement, and `agree` compares the results.  Each round
        then measures `calls` calls of each function, in turns of a tenth of them, so that both meet the same
        load of the machine.

        Args:
            what: name of our function.
            against: name of the other function.
            ours: our function.
            theirs: the other function.
            calls: number of calls in a round.
            ours_per_call: samples or steps in one call of `ours`.
            theirs_per_call: samples or steps in one call of `theirs`.
            goal: largest ratio that meets the goal.
            agree: function of both results that raises `NotComparableError` if they differ.
        """
        try:
            results = ours(), theirs()
            if agree is not None:
                agree(*results)
            pairs = self._pairs(ours, theirs, 1 if self.is_short else calls)
        except Exception as error:  # of any library: the other rows are still measured
            return failed(what, against, error)
        pairs = [(a / ours_per_call, b / theirs_per_call) for a, b in pairs]
        ratios = [a / b for a, b in pairs]
        a, b = (statistics.median(column) for column in zip(*pairs, strict=True))
        return Row(what, against, a, b, a / b, min(ratios), max(ratios), goal)

    def _pairs(
        self, ours: Callable[[], object], theirs: Callable[[], object], calls: int
    ) -> list[list[float]]:
        """Return the mean times of a call of both functions in each round, in [us]."""
        turns = min(calls, TURNS)
        pairs = []
        for number in range(self.rounds):
            spent = {ours: 0.0, theirs: 0.0}
            for turn in range(turns):  # the functions alternate in going first
                for call in (ours, theirs) if (number + turn) % 2 == 0 else (theirs, ours):
                    spent[call] += self.per_call(call, calls // turns) / turns
            pairs.append((spent[ours], spent[theirs]))
        return pairs


def same(a, b, relative: float) -> None:
    """Raise NotComparableError if two results differ by more than `relative` times the largest value."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        raise NotComparableError(f"not comparable: shape {a.shape} beside {b.shape}")
    difference = np.max(np.abs(a - b)) / np.max(np.abs(b))
    if not difference <= relative:
        raise NotComparableError(f"not comparable: differs by {difference:.2g}, limit {relative:.2g}")


def within(relative: float) -> Callable[[Any, Any], None]:
    """Return a function that compares two results with `same`."""
    return lambda a, b: same(a, b, relative)


def peer(name: str) -> Any:
    """Import a library to compare with; if that fails, print the reason and return None."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # any error: some libraries fail with some versions of NumPy
        print(f"no rows against {name}, which cannot be imported: {type(error).__name__}: {error}")
        return None

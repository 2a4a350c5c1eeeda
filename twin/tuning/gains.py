"""What is searched, and what a search found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

AT_END = 0.02
"""A gain so near an end of its range, as a part of the whole on a logarithmic scale, is at the end."""


class Gain(NamedTuple):
    """A quantity of an experiment that is searched.

    Attributes:
        name: as the experiment has it: `law.Kp`.
        low: least value, above 0, in the quantity's own unit.
        high: largest value.
    """

    name: str
    low: float
    high: float


class Tried(NamedTuple):
    """What became of one set of gains.

    Attributes:
        values: of the gains, in their order.
        failing: number of runs that do not hold.
        figure: the worst of the runs that came to their end, or the mean; infinite where none did.
    """

    values: tuple[float, ...]
    failing: int
    figure: float


@dataclass(frozen=True)
class Tuning:
    """What a search found.

    Attributes:
        gains: what was searched.
        default: the nominal values of the experiment, and what became of them.
        best: the best values within their ranges.
        runs: number of draws, each of which was run with every set of gains.
        evaluations: number of sets of gains that were tried, the default one included.
        settled: whether all sets of the last generation did as well; else more might do better.
    """

    gains: tuple[Gain, ...]
    default: Tried
    best: Tried
    runs: int
    evaluations: int
    settled: bool

    @property
    def values(self) -> dict[str, float]:
        """The best values by the names of the gains."""
        return dict(zip((gain.name for gain in self.gains), self.best.values, strict=True))

    @property
    def at_ends(self) -> tuple[tuple[Gain, float], ...]:
        """The gains whose best value lies at an end of their range, and that end; it may be better beyond."""
        found = []
        for gain, value in zip(self.gains, self.best.values, strict=True):
            near = AT_END * np.log(gain.high / gain.low)
            ends = [end for end in (gain.low, gain.high) if abs(np.log(value / end)) <= near]
            found += [(gain, end) for end in ends]
        return tuple(found)

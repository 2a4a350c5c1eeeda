"""How late what is due once a cycle was done, in memory that does not grow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LATE = 1e-3
"""[s]: a cycle that is later counts as late; real controllers send within some tenths of a millisecond."""

WIDTH, BINS = 2e-5, 5000
"""Lateness is counted in bins of 20 us up to 0.1 s."""


@dataclass(frozen=True)
class Lateness:
    """How late the messages of a robot were, which are due once a cycle.

    Attributes:
        cycles: how many were sent.
        late: how many of them were late by more than 1 ms.
        median, percentile_99: of the lateness, in [s], to 20 us.
        worst: the most late one, in [s].
        restarts: how often the robot fell so far behind that the clock was set anew, and it went on from
            there.
    """

    cycles: int = 0
    late: int = 0
    median: float = 0.0
    percentile_99: float = 0.0
    worst: float = 0.0
    restarts: int = 0

    @property
    def share(self) -> float:
        """The late ones of all."""
        return self.late / self.cycles if self.cycles else 0.0

    def __str__(self) -> str:
        if not self.cycles:
            return "no cycle was timed"
        return (
            f"{self.late} of {self.cycles} messages ({self.share:.2%}) were more than 1 ms late; median "
            f"{1e3 * self.median:.2f} ms, 99 % within {1e3 * self.percentile_99:.2f} ms, the worst "
            f"{1e3 * self.worst:.2f} ms"
            + f"; the clock was set anew {self.restarts} times"
            * (self.restarts > 0)
        )


class LatenessMeter:
    """Counts the lateness of cycle after cycle."""

    def __init__(self) -> None:
        self._counts = [0] * (BINS + 1)
        self._late, self._worst, self.restarts = 0, 0.0, 0

    def add(self, seconds: float) -> None:
        """Count a cycle that was so late, in [s]."""
        self._counts[min(BINS, max(0, int(seconds / WIDTH)))] += 1
        self._late += seconds > LATE
        self._worst = max(self._worst, seconds)

    def lateness(self) -> Lateness:
        """Of the cycles so far."""
        counts = np.array(self._counts)
        cycles = int(counts.sum())
        if not cycles:
            return Lateness(restarts=self.restarts)
        within = np.cumsum(counts)
        half, most = (
            min(self._worst, (int(np.searchsorted(within, share * cycles)) + 1) * WIDTH)
            for share in (0.5, 0.99)
        )
        return Lateness(cycles, self._late, half, most, self._worst, self.restarts)

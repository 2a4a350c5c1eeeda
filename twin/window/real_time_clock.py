"""The pace of the clock, for a simulation that someone is watching."""

from __future__ import annotations

import time

NOT_WORTH_SLEEPING = 0.004  # s
TOO_FAR_BEHIND = 1.0  # s: a slow picture is caught up with, a breakpoint is not


class RealTimeClock:
    """Holds a loop back to real time.

    Args:
        period: of the loop, in [s].
    """

    def __init__(self, period: float) -> None:
        self.period = period
        self.restart()

    def restart(self) -> None:
        """Count from now."""
        self._due = time.perf_counter()

    def tick(self) -> float:
        """End a period: how far ahead of the clock the loop is, in [s].

        Below 0 it is late; one that fell far behind does not hurry.
        """
        self._due += self.period
        ahead = self._due - time.perf_counter()
        if ahead < -TOO_FAR_BEHIND:
            self.restart()
        return ahead

    def after_step(self) -> None:
        """End a period: sleep until the clock has caught up."""
        ahead = self.tick()
        if ahead > NOT_WORTH_SLEEPING:
            time.sleep(ahead)

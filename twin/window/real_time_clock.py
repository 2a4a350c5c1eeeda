"""The pace of the clock, for what someone watches or waits for."""

from __future__ import annotations

import time

NOT_WORTH_SLEEPING = 0.004  # s
TOO_FAR_BEHIND = 1.0  # s: a slow picture is caught up with, a breakpoint is not


class RealTimeClock:
    """Holds a loop back to real time.

    Attributes:
        restarts: how often the loop fell so far behind that the clock was set anew.
        restarted: whether the last `tick` did that.

    Args:
        period: of the loop, in [s].
        too_far_behind: what is not caught up with, in [s].
    """

    def __init__(self, period: float, too_far_behind: float = TOO_FAR_BEHIND) -> None:
        self.period, self.too_far_behind = period, too_far_behind
        self.restarts, self.restarted = 0, False
        self.restart()

    def restart(self) -> None:
        """Count from now."""
        self._due = time.perf_counter()

    def ahead(self) -> float:
        """How far ahead of the clock the loop is, in [s]; below 0 it is late."""
        return self._due - time.perf_counter()

    def tick(self) -> float:
        """End a period: how far ahead of the clock the loop is, in [s].

        Below 0 it is late; one that fell far behind does not hurry.
        """
        self._due += self.period
        ahead = self.ahead()
        self.restarted = ahead < -self.too_far_behind
        if self.restarted:
            self.restarts += 1
            self.restart()
        return ahead

    def after_step(self) -> None:
        """End a period: sleep until the clock has caught up."""
        ahead = self.tick()
        if ahead > NOT_WORTH_SLEEPING:
            time.sleep(ahead)

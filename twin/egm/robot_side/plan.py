"""How long a robot is on the wire, and what happens meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from twin.errors import EgmError


@dataclass(frozen=True)
class Plan:
    """How long a robot is on the wire, and what happens meanwhile.

    Attributes:
        runs: instructions, one after another, however they end; `None`: without end.
        pause: from the end of one to the next, in [s].
        wait: for an instruction's first answer at most, in [s]; `None`: as long as it takes.
        lag: by which answers act later, in [ms], rounded up to whole cycles.
        duration: after which it ends, in [s]; `None`: not by itself.
        keep: how much of the end is recorded, in [s].
    """

    runs: int | None = None
    pause: float = 1.0
    wait: float | None = None
    lag: float = 0.0
    duration: float | None = None
    keep: float = 120.0

    def __post_init__(self) -> None:
        if self.runs is not None and not self.runs >= 1:
            raise EgmError(f"expected runs of at least 1, got {self.runs}")
        for name, most, unit in (("pause", 1e6, "s"), ("lag", 1000.0, "ms")):
            if not 0 <= getattr(self, name) <= most:
                raise EgmError(f"expected a {name} of 0 to {most:g} {unit}, got {getattr(self, name)}")
        for name in ("wait", "duration", "keep"):
            value = getattr(self, name)
            if not (name != "keep" and value is None) and not 0 < value <= 1e6:
                raise EgmError(f"expected {name} above 0 s, to 1e6 s, got {value}")


def whole_periods(cycle: float, period: float) -> int:
    """How many periods of the control law there are in a cycle, both in [s].

    Raises:
        EgmError: they are no whole number.
    """
    count = round(cycle / period)
    if count < 1 or abs(count * period - cycle) > 1e-9 * cycle:
        raise EgmError(
            f"expected a control period that divides the cycle of {1e3 * cycle:g} ms, got {1e3 * period:g} ms"
        )
    return count

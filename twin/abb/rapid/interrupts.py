"""Interrupts of a program: which trap runs after which cause."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MOST_PENDING = 1000
"""Largest number of traps that wait; the oldest are dropped (ours)."""


@dataclass(eq=False)
class Cause:
    """Cause of an interrupt.

    Attributes:
        number: number of the interrupt.
        name: what causes it, for messages: a signal, a persistent, or a timer.
        kind: signal, persistent or timer.
        place: file and line of the instruction.
        single: whether it is the cause once.
        safe: whether it counts while the execution is stopped, too.
        fires: function that returns whether a change of values (before, after) is the cause.
        period: time between two interrupts of a timer, in [s].
        at: time of a timer's next interrupt, in [s].
    """

    number: int
    name: str
    kind: str
    place: tuple[str, int]
    single: bool = False
    safe: bool = False
    fires: Callable[[Any, Any], bool] = field(default=lambda before, after: True)
    period: float = 0.0
    at: float = 0.0


class Interrupts:
    """Interrupts of a program.

    Attributes:
        traps: routine of the trap by the number of the interrupt.
        pending: numbers of interrupts whose traps have not run yet, with what their causes became.
        present: what the cause of the trap that runs became.
        stopped: whether the execution is stopped: causes do not count then, unless they are safe.
        asleep: numbers of interrupts that ISleep deactivated.
        enabled: whether traps run (IDisable, IEnable).
        fired: causes that came.
        causes: causes that are watched.
    """

    def __init__(self) -> None:
        self.traps: dict[int, Any] = {}
        self.pending: deque[tuple[int, Any]] = deque(maxlen=MOST_PENDING)
        self.present: Any = None
        self.stopped = False
        self.asleep: set[int] = set()
        self.enabled = True
        self.running = False
        self.causes: list[Cause] = []
        self.ever: list[Cause] = []
        self.fired: set[str] = set()

    @property
    def due(self) -> bool:
        """Whether a trap is to run now; a trap is not interrupted by another one."""
        return bool(self.pending) and self.enabled and not self.running

    def connect(self, trap: Any) -> int:
        """Return the number of a new interrupt of a trap."""
        number = max(self.traps, default=0) + 1
        self.traps[number] = trap
        return number

    def watch(self, cause: Cause) -> None:
        """Watch a cause, in place of the same one of this interrupt."""
        same = cause.number, cause.kind, cause.name
        self.causes = [one for one in self.causes if (one.number, one.kind, one.name) != same]
        self.causes.append(cause)
        self.ever.append(cause)

    def delete(self, number: int) -> None:
        """Forget an interrupt, its causes, and what it has pending."""
        self.traps.pop(number, None)
        self.asleep.discard(number)
        self.causes = [one for one in self.causes if one.number != number]
        for one in [one for one in self.pending if one[0] == number]:
            self.pending.remove(one)

    def changed(self, kind: str, name: str, before: Any, after: Any) -> None:
        """Take note of the change of a signal or persistent."""
        for cause in list(self.causes):
            if cause.kind == kind and cause.name.lower() == name.lower() and cause.fires(before, after):
                self._fire(cause, after)

    @property
    def next_time(self) -> float | None:
        """Time of the next timer, in [s]; None if there is none."""
        return min((one.at for one in self.causes if one.kind == "timer"), default=None)

    def advance(self, t: float) -> None:
        """Let timers fire that end until a time, in [s]."""
        for cause in list(self.causes):
            if self.stopped and cause.kind == "timer" and not cause.single:  # none is made up for
                cause.at += max(0.0, math.floor((t - cause.at) / cause.period) + 1.0) * cause.period
            while cause.kind == "timer" and cause.at <= t + 1e-9 and cause in self.causes:
                self._fire(cause, t)
                cause.at += cause.period

    def interrupt(self, number: int, value: Any = None) -> None:
        """Let the trap of an interrupt run, unless it is asleep or deleted."""
        if number in self.traps and number not in self.asleep:
            self.pending.append((number, value))

    def _fire(self, cause: Cause, value: Any) -> None:
        if self.stopped and not cause.safe:
            return
        if cause.number not in self.asleep:
            self.pending.append((cause.number, value))
            self.fired.add(cause.name)
        if cause.single:
            self.causes.remove(cause)

    def never_fired(self) -> list[Cause]:
        """Return the causes that never came, one for each name."""
        names: dict[str, Cause] = {}
        for cause in self.ever:
            if cause.name not in self.fired:
                names.setdefault(cause.name, cause)
        return list(names.values())

"""Interrupts of a program: which trap runs after which cause."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Cause:
    """Cause of an interrupt.

    Attributes:
        number: number of the interrupt.
        name: what causes it, for messages: a signal, a persistent, or a timer.
        kind: signal, persistent or timer.
        place: file and line of the instruction.
        single: whether it is the cause once.
        fires: function that returns whether a change of values (before, after) is the cause.
        period: time between two interrupts of a timer, in [s].
        at: time of a timer's next interrupt, in [s].
    """

    number: int
    name: str
    kind: str
    place: tuple[str, int]
    single: bool = False
    fires: Callable[[Any, Any], bool] = field(default=lambda before, after: True)
    period: float = 0.0
    at: float = 0.0


class Interrupts:
    """Interrupts of a program.

    Attributes:
        traps: routine of the trap by the number of the interrupt.
        pending: numbers of interrupts whose traps have not run yet.
        asleep: numbers of interrupts that ISleep deactivated.
        enabled: whether traps run (IDisable, IEnable).
        fired: causes that came.
        causes: causes that are watched.
    """

    def __init__(self) -> None:
        self.traps: dict[int, Any] = {}
        self.pending: deque[int] = deque()
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
        number = len(self.traps) + 1
        self.traps[number] = trap
        return number

    def watch(self, cause: Cause) -> None:
        """Watch a cause."""
        self.causes.append(cause)
        self.ever.append(cause)

    def delete(self, number: int) -> None:
        """Forget the causes of an interrupt, and what it has pending."""
        self.causes = [one for one in self.causes if one.number != number]
        self.pending = deque(one for one in self.pending if one != number)

    def changed(self, kind: str, name: str, before: Any, after: Any) -> None:
        """Take note of the change of a signal or persistent."""
        for cause in list(self.causes):
            if cause.kind == kind and cause.name.lower() == name.lower() and cause.fires(before, after):
                self._fire(cause)

    @property
    def next_time(self) -> float | None:
        """Time of the next timer, in [s]; None if there is none."""
        return min((one.at for one in self.causes if one.kind == "timer"), default=None)

    def advance(self, t: float) -> None:
        """Let timers fire that end until a time, in [s]."""
        for cause in list(self.causes):
            while cause.kind == "timer" and cause.at <= t + 1e-9 and cause in self.causes:
                self._fire(cause)
                cause.at += cause.period

    def _fire(self, cause: Cause) -> None:
        if cause.number not in self.asleep:
            self.pending.append(cause.number)
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

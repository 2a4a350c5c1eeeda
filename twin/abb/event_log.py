"""Event log of a virtual controller: what an operator reads on the pendant, and a client over the network."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from twin.errors import RapidError

MOST_EVENTS = 1000
"""Largest number of events that are kept; the last ones are."""

INFORMATION, WARNING, ERROR = 1, 2, 3
"""Types of events, as clients know them."""

EVENTS = {
    10002: "Program pointer has been reset", 10010: "Motors OFF state", 10011: "Motors ON state",
    10015: "Manual mode selected", 10017: "Automatic mode confirmed", 10140: "Speed adjusted",
    10150: "Program started", 10151: "Program stopped", 40223: "Execution error", 50027: "Joint Out of Range",
    50050: "Position outside reach", 50204: "Motion supervision",
}  # fmt: skip
"""Titles of events by their codes: 10xxx operation, 4xxxx programs, 5xxxx motion (general knowledge)."""

CODES_OF_FAULTS = {"target": 50050, "path": 50027}
"""Codes of faults of programs by their kinds, see `RapidError`; others are 40223."""


class Event(NamedTuple):
    """Event: its number, time in [s] since 1970, type, code, title, arguments, and a sentence on it."""

    number: int
    t: float
    type: int
    code: int
    title: str
    arguments: tuple[str, ...]
    sentence: str


class EventLog:
    """Events of a virtual controller, the last `MOST_EVENTS` of them; it is never empty."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=MOST_EVENTS)
        self._count = 0
        self.add(10017)
        self.add(10011)

    def __iter__(self) -> Iterator[Event]:
        """Iterate over the events, the newest first."""
        return iter(tuple(self._events)[::-1])

    @property
    def last(self) -> Event:
        """The newest event."""
        return self._events[-1]

    def add(self, code: int, *arguments: str, type: int = INFORMATION, sentence: str = "") -> None:
        """Add an event; its title is that of its code, otherwise its first argument."""
        self._count += 1
        title = EVENTS.get(code) or (arguments[0] if arguments else f"Event {code}")
        text = sentence or " ".join(arguments) or title
        self._events.append(Event(self._count, time.time(), type, code, title, arguments, text))

    def add_fault(self, task: str, fault: RapidError) -> None:
        """Add the fault that ended a task."""
        code = CODES_OF_FAULTS.get(fault.kind, 40223)
        self.add(code, task, f"{fault.file}:{fault.line}", type=ERROR, sentence=f"Task {task}: {fault}")

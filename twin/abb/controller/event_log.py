"""Event log of a virtual controller: what an operator reads on the pendant, and a client over the network."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from twin.abb.controller.events import STATE, USER, Event

MOST_EVENTS = 1000
"""Largest number of events that are kept; the last ones are."""

TITLES = {
    10002: "Program pointer has been reset", 10010: "Motors OFF state", 10011: "Motors ON state",
    10015: "Manual mode selected", 10017: "Automatic mode confirmed", 10140: "Speed adjusted",
    10150: "Program started", 10151: "Program stopped", 50204: "Motion supervision",
}  # fmt: skip
"""Titles of events of the controller itself by their codes (general knowledge)."""


def event(t: float, code: int, *texts: str, type_: int = STATE) -> Event:
    """Return an event of the controller itself, at a time in [s]."""
    return Event(t, "", *divmod(code, 10_000), type_, TITLES[code], texts)


class Entry(NamedTuple):
    """Event in the log, with its number, and its time in [s] since 1970."""

    number: int
    t: float
    event: Event

    @property
    def code(self) -> int:
        """Code of the event, with its domain as the first digit."""
        return 10_000 * self.event.domain + self.event.number

    @property
    def arguments(self) -> tuple[str, ...]:
        """Arguments, as clients know them: those of ErrWrite are five, with its header as the first one."""
        if self.event.domain != USER:
            return self.event.texts
        return (self.event.title, *self.event.texts, "", "", "", "")[:5]


class EventLog:
    """Events of a virtual controller, the last `MOST_EVENTS` of them; it is never empty."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=MOST_EVENTS)
        self._count = 0
        for code in (10017, 10011):
            self.append(event(0.0, code))

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over the events, the newest first."""
        return iter(tuple(self._entries)[::-1])

    @property
    def last(self) -> Entry:
        """The newest event."""
        return self._entries[-1]

    def append(self, new: Event) -> None:
        """Add an event."""
        self._count += 1
        self._entries.append(Entry(self._count, time.time(), new))

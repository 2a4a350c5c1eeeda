"""Events of a controller and their log, lines of text, and messages of programs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, NamedTuple

from twin.base.errors import RapidError, TwinError

STATE, WARNING, ERROR = 1, 2, 3
"""Types of events; 0 stands for all of them where traps are ordered."""

PROGRAM, MOTION, USER = 4, 5, 8
"""Domains of events, the first digit of their codes; 0 stands for all of them."""

REACH = (MOTION, 50, "Position outside reach")
CODES = {
    "err_coll_stop": (MOTION, 204, "Motion supervision"), "err_roblimit": REACH, "target": REACH,
    "other": (PROGRAM, 229, "Unhandled error"),
}  # fmt: skip
"""Domain, number and title of faults by their error or kind; from memory, not checked on a controller."""


class Event(NamedTuple):
    """Event of the controller.

    Attributes:
        t: time, in [s].
        task: name of its task, "" for the controller.
        domain: first digit of its code.
        number: rest of its code.
        type: `STATE`, `WARNING` or `ERROR`.
        title: title.
        texts: further texts.
    """

    t: float
    task: str
    domain: int
    number: int
    type: int
    title: str
    texts: tuple[str, ...] = ()


def of_fault(t: float, task: str, fault: RapidError) -> Event:
    """Return the event of a fault that ended the program of a task; its texts are task, place and reason."""
    domain, number, title = CODES.get(fault.number) or CODES.get(fault.kind) or CODES["other"]
    place = f"{PurePath(fault.file).name} line {fault.line}"
    return Event(t, task, domain, number, ERROR, title, (task, place, TwinError.__str__(fault)))


MOST_EVENTS = 1000
"""Largest number of events that are kept; the last ones are."""

TITLES = {
    10002: "Program pointer has been reset", 10010: "Motors OFF state", 10011: "Motors ON state",
    10015: "Manual mode selected", 10017: "Automatic mode confirmed", 10140: "Speed adjusted",
    10150: "Program started", 10151: "Program stopped", 50204: "Motion supervision", 80002: "Gripper empty",
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
    """Events of a virtual controller, the last `MOST_EVENTS` of them.

    Attributes:
        count: number of events since the start, which is the number of the newest one.
    """

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=MOST_EVENTS)
        self.count = 0
        for code in (10017, 10011):
            self.append(event(0.0, code))

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over the events, the newest first."""
        return iter(tuple(self._entries)[::-1])

    def append(self, new: Event) -> None:
        """Add an event."""
        self.count += 1
        self._entries.append(Entry(self.count, time.time(), new))

    def clear(self, domain: int) -> None:
        """Forget the events of a domain; 0 stands for all of them."""
        for entry in [one for one in self._entries if domain in (0, one.event.domain)]:
            self._entries.remove(entry)


MOST_MESSAGES = 5
"""Messages that a queue holds, the default of the system parameter RMQ Max No Of Messages."""


class Message(NamedTuple):
    """Message: name of the sender's queue, type and dimensions of the data, the data, and a number."""

    sender: str
    type: str
    dimensions: int
    value: Any
    user: float = -1.0


Queue = deque[Message]


def queue_of(task: str) -> str:
    """Return the name of the queue of a task."""
    return f"RMQ_{task}"


class Line(NamedTuple):
    """Line on what happened: time in [s], name of the task or "", and a sentence."""

    t: float
    task: str
    sentence: str

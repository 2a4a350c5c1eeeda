"""What happens to a robot on the wire, in sentences; in memory that does not grow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

MOST_EVENTS = 1000
"""That are kept, the last ones."""


class Event(NamedTuple):
    """What happened.

    Attributes:
        t: when, since the robot's start, in [s].
        kind: of an instruction `waiting`, `guided`, `returning`, `ended`, `fault`; of datagrams, once each,
            `broken`, `dropped`, `stranger`; `unsent`, of a message, once; `left`, where the window was
            closed; `cut`, where the robot's time was over in the midst of a motion.
        sentence: on it.
    """

    t: float
    kind: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.t:.3f} s: {self.sentence}"


class Events:
    """The events of a session.

    Args:
        tell: called with each, in the robot's own thread.
    """

    def __init__(self, tell: Callable[[Event], object] | None = None) -> None:
        self._events: deque[Event] = deque(maxlen=MOST_EVENTS)
        self._tell = tell

    def add(self, t: float, kind: str, sentence: str) -> None:
        """Note an event, at a time in [s]."""
        event = Event(t, kind, sentence)
        self._events.append(event)
        if self._tell is not None:
            self._tell(event)

    def all(self) -> tuple[Event, ...]:
        """Those that are kept, in order."""
        return tuple(self._events)

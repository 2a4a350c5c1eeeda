"""The time of a robot: how long its cycle is, and how late its messages arrive.

A cycle that is called 4 ms takes 4.032 ms on a real robot, while `tm` is in whole milliseconds: so the period
is the time of many cycles over their number, by the robot's clock where it is told, else by `tm`.  A message
is late by how much longer it was on its way than the quickest of the last ten seconds; how long that one was
is not known, for the two clocks are not the same.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from twin.egm.wire.messages import RobotMessage
from twin.egm.wire.order import ahead

NOMINAL = 0.004
"""The period of a robot whose times do not rise, in [s]."""

LONGEST_GAP = 0.1
"""In [s]: shorter gaps in a stream are filled; behind a longer one what follows begins anew."""

STEADY = 0.01
"""How far a period may be from the one before, relative to it: else a clock was set in between."""

QUICKEST_OF = 10
"""Seconds, of which the quickest message is the measure of lateness."""


class Lateness(NamedTuple):
    """Of the messages of a second, in [s]: `largest`, and their root mean square `rms`."""

    largest: float
    rms: float


class StreamClock:
    """The robot's time along its stream.

    Attributes:
        period: between two places, in [s].
    """

    def __init__(self) -> None:
        self.period = NOMINAL
        self._trusted = False
        self.begin()

    def begin(self) -> None:
        """Begin anew: the places of what follows are from 0 on."""
        self._first: tuple[int, float] | None = None
        self._span = 0.0
        self._tm = 0

    def seen(self, place: int, message: RobotMessage) -> float:
        """Take the times of a message; returns the robot's time since the first, in [s]."""
        if self._first is None:
            self._first = (place, message.time or 0.0)
            self._tm, self._ticks = message.tm, 0
        self._ticks += max(ahead(message.tm, self._tm), 0)
        self._tm = message.tm
        span = 1e-3 * self._ticks
        if message.time is not None:
            by_clock = message.time - self._first[1]
            if by_clock > 0 and abs(by_clock - span) <= 2e-3 + STEADY * span:
                span = by_clock
        self._span, self._place = span, place
        return span

    def measure(self) -> float:
        """The period anew, by all places since the beginning; the one before where that is no measure."""
        if self._first is None or self._place == self._first[0] or not self._span > 0:
            return self.period
        period = self._span / (self._place - self._first[0])
        if not self._trusted or abs(period - self.period) <= STEADY * self.period:
            self.period, self._trusted = period, True
        return self.period


class LatenessMeter:
    """How late messages are, second by second."""

    def __init__(self) -> None:
        self._quickest: deque[float] = deque(maxlen=QUICKEST_OF)
        self._delays: list[float] = []

    def begin(self) -> None:
        """Forget what was: the robot's time begins anew."""
        self._quickest.clear()
        self._delays.clear()

    def seen(self, arrival: float, robot_time: float) -> None:
        """A message arrived, by our clock, that the robot sent at this time of its own, both in [s]."""
        self._delays.append(arrival - robot_time)

    def second(self) -> Lateness | None:
        """The lateness of the messages since this was asked before; `None` where there were none."""
        if not self._delays:
            return None
        delays = np.array(self._delays)
        self._delays.clear()
        self._quickest.append(float(np.min(delays)))
        late = delays - min(self._quickest)
        return Lateness(float(np.max(late)), float(np.sqrt(np.mean(late**2))))

"""Streams of messages: what was lost on the way, came twice or late, or began anew, and the robot's time.

A robot counts its messages up by one, modulo 2^32.  So a number tells the message's place in the stream; one
that is missing is lost until it comes after all.  Rules, which are ours: a number that was there is doubled;
one that is older, with a time that is older, too, comes out of order; an older number with a newer time, or
one that is more than `FAR` older, is that of a robot that began anew.  Those who answer a robot count in
their own ways, see `Sequence`.

A cycle that is called 4 ms takes 4.032 ms on a real robot, while `tm` is in whole milliseconds: so the period
is the time of many cycles over their number, by the robot's clock where it is told, else by `tm`.  A message
is late by how much longer it was on its way than the quickest of the last ten seconds; how long that one was
is not known, for the two clocks are not the same.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from twin.arrays import Floats
from twin.egm.wire.messages import COUNT, RobotMessage

FAR = 100
"""Numbers that a message can be late by."""

REMEMBERED = 1000
"""Lost numbers that may still come."""


@dataclass
class Counts:
    """Counts of the messages of a robot.

    Attributes:
        messages: that were used.
        lost: numbers that never came.
        doubled: came again.
        out_of_order: came behind a newer one; their places were filled by then.
        malformed: were no messages of such a robot.
        restarts: how often the robot began anew.
    """

    messages: int = 0
    lost: int = 0
    doubled: int = 0
    out_of_order: int = 0
    malformed: int = 0
    restarts: int = 0


def ahead(newer: int, older: int) -> int:
    """Tell how far one 32-bit number is ahead of another, from -2^31 on, as they count modulo 2^32."""
    return (newer - older + COUNT // 2) % COUNT - COUNT // 2


class StreamOrder:
    """The places of messages in a stream.

    Attributes:
        counts: of all messages so far.
        place: of the newest message: the first of a stream has 0, and so has the first of a robot started
            anew.
    """

    def __init__(self) -> None:
        self.counts = Counts()
        self.place = -1
        self._seqno = self._tm = 0
        self._missing: OrderedDict[int, None] = OrderedDict()

    def step(self, message: RobotMessage) -> int | None:
        """Tell how many places a message is ahead of the one before: 1 where none was lost.

        Returns:
            0 for the first message of a stream, also of a robot that began anew; `None` for a message that
            is not to be used.
        """
        counts = self.counts
        if self.place < 0:
            return self._begin(message)
        step, later = ahead(message.seqno, self._seqno), ahead(message.tm, self._tm)
        if step == 0 and later == 0:
            counts.doubled += 1
            return None
        if step <= 0 and (later > 0 or step < -FAR):
            counts.restarts += 1
            return self._begin(message)
        if step <= 0:
            self._count_older(message)
            return None
        if later < 0:  # a newer number with an older time
            counts.restarts += 1
            return self._begin(message)
        counts.messages += 1
        self._note_missing(step)
        self.place += step
        self._seqno, self._tm = message.seqno, message.tm
        return step

    def _count_older(self, message: RobotMessage) -> None:
        """Count a message with an older number: one that was lost comes out of order, another one again."""
        late = message.seqno in self._missing
        self.counts.out_of_order += late
        self.counts.lost -= late
        self.counts.doubled += not late
        self._missing.pop(message.seqno, None)

    def _note_missing(self, step: int) -> None:
        """Count the numbers before one that is `step` ahead as lost, and remember the last of them."""
        self.counts.lost += step - 1
        for missing in range(max(1, step - FAR), step):
            self._missing[(self._seqno + missing) % COUNT] = None
        while len(self._missing) > REMEMBERED:
            self._missing.popitem(last=False)

    def _begin(self, message: RobotMessage) -> int:
        self.counts.messages += 1
        self.place, self._seqno, self._tm = 0, message.seqno, message.tm
        self._missing.clear()
        return 0


def between(before: RobotMessage, after: RobotMessage, share: float) -> tuple[Floats, Floats, Floats | None]:
    """Angles, commanded angles and torques in between, linearly."""
    q = before.q + share * (after.q - before.q)
    q_planned = before.q_planned + share * (after.q_planned - before.q_planned)
    if before.tau is None or after.tau is None:
        return q, q_planned, None
    return q, q_planned, before.tau + share * (after.tau - before.tau)


LATE = 100
"""So many numbers back a message is late; farther back, somebody counts anew (ours)."""

IN_ORDER = 3
"""So many late messages, one after another in order, are of somebody who counts anew, too (ours)."""


class Arrival(Enum):
    """The relation of a message to those before it; whichever it is, its sender is alive."""

    NEW = "new"
    SAME = "same"
    OLD = "old"


class Sequence:
    """The numbers of one sender's messages, as they come (ours: the manual does not tell of it).

    Networks lose, double and reorder datagrams; senders count by ones, by twos, not at all, or begin anew.
    """

    def __init__(self) -> None:
        self._last: int | None = None
        self._bytes = b""
        self._late, self._in_order = 0, 0

    def judge(self, seqno: int | None, data: bytes) -> Arrival:
        """Say what the next message is.

        Args:
            seqno: its number; `None` where it has none, which is always new.
            data: its bytes, by which the same message again is told from another of the same number.
        """
        if seqno is None:
            return Arrival.NEW
        if self._last is not None:
            behind = (self._last - seqno) % COUNT
            if behind == 0 and data == self._bytes:
                return Arrival.SAME
            if 0 < behind <= LATE:
                follows = self._in_order > 0 and 0 < (seqno - self._late) % COUNT <= LATE
                self._late, self._in_order = seqno, self._in_order + 1 if follows else 1
                if self._in_order < IN_ORDER:
                    return Arrival.OLD
        self._last, self._bytes, self._in_order = seqno, bytes(data), 0
        return Arrival.NEW


NOMINAL = 0.004
"""The period of a robot whose times do not rise, in [s]."""

LONGEST_GAP = 0.1
"""In [s]: shorter gaps in a stream are filled; behind a longer one what follows begins anew."""

STEADY = 0.01
"""How far a period may be from the one before, relative to it: else a clock was set in between."""

QUICKEST_OF = 10
"""Seconds, of which the quickest message is the measure of lateness."""


class Lateness(NamedTuple):
    """The lateness of the messages of a second, in [s]: `largest`, and their root mean square `rms`."""

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
    """Measures how late messages are, second by second."""

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

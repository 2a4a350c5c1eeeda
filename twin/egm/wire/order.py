"""The numbers of a robot's messages: what was lost on the way, came twice or late, or began anew.

A robot counts its messages up by one, modulo 2^32.  So a number tells the message's place in the stream; one
that is missing is lost until it comes after all.  Rules, which are ours: a number that was there is doubled;
one that is older, with a time that is older, too, comes out of order; an older number with a newer time, or
one that is more than `FAR` older, is that of a robot that began anew.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from twin.arrays import Floats
from twin.egm.wire.messages import RobotMessage

NUMBERS = 2**32
FAR = 100
"""Numbers that a message can be late by."""

REMEMBERED = 1000
"""Lost numbers that may still come."""


@dataclass
class Counts:
    """Of the messages of a robot.

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
    """How far one 32-bit number is ahead of another, from -2^31 on, as they count modulo 2^32."""
    return (newer - older + NUMBERS // 2) % NUMBERS - NUMBERS // 2


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
        """How many places a message is ahead of the one before: 1 where none was lost.

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
            late = message.seqno in self._missing
            counts.out_of_order += late
            counts.lost -= late
            counts.doubled += not late
            self._missing.pop(message.seqno, None)
            return None
        if later < 0:  # a newer number with an older time
            counts.restarts += 1
            return self._begin(message)
        counts.messages += 1
        counts.lost += step - 1
        for missing in range(max(1, step - FAR), step):
            self._missing[(self._seqno + missing) % NUMBERS] = None
        while len(self._missing) > REMEMBERED:
            self._missing.popitem(last=False)
        self.place += step
        self._seqno, self._tm = message.seqno, message.tm
        return step

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

"""Which of the messages that come is new, by its number."""

from __future__ import annotations

from enum import Enum

COUNT = 1 << 32
"""Numbers begin anew after so many."""

LATE = 100
"""So many numbers back a message is late; farther back, somebody counts anew (ours)."""

IN_ORDER = 3
"""So many late messages, one after another in order, are of somebody who counts anew, too (ours)."""


class Arrival(Enum):
    """What a message is to those before it; whichever it is, its sender is alive."""

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

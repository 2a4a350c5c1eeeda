"""What comes for a robot: decoded, in order, bounded, and taken one answer a cycle.

The manual has a robot take the next message of a queue in every cycle, and keep the last reference where
there is none.  The queue's length is ours; of one that is full the oldest answer is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from twin.egm.robot_side.channel import Channel
from twin.egm.wire.codec import decode_sensor
from twin.egm.wire.messages import SensorMessage
from twin.egm.wire.sequence import Sequence
from twin.errors import EgmError

QUEUE = 10
"""Answers that wait to be taken; those that are held back for a lag are not among them."""

MOST_DATAGRAMS = 64
"""That are looked at in a cycle; the rest waits in the operating system, which drops what it has no room for."""


@dataclass
class Counts:
    """What has come.

    Attributes:
        valid: answers that could be read, those that were repeated or out of order included.
        taken: of them, those that the robot was guided by.
        again: of them, repetitions of the answer before.
        old: of them, those that a newer one had overtaken.
        dropped: of them, those that the queue had no room for, or that no instruction waited for.
        broken: datagrams of the partner that are no messages.
    """

    valid: int = 0
    taken: int = 0
    again: int = 0
    old: int = 0
    dropped: int = 0
    broken: int = 0


class _Waiting(NamedTuple):
    """An answer, and the cycle from which on it may be taken; `None` where it changes nothing."""

    cycle: int
    message: SensorMessage | None


class Inbox:
    """What comes through a channel.

    Attributes:
        channel: where from.
        counts: what came so far.
        cycle: the present one.
        heard: the last cycle in which a valid answer came.
        capacity: answers that there is room for.

    Args:
        channel: where from.
        joints: of the robot.
        lag: cycles by which answers are held back.
        every_answer: an answer that changes nothing takes its turn like any other, as in lockstep: then
            which one is taken in which cycle does not depend on when they come.
        tell: called with what is odd, and a sentence on it, once for each kind.
    """

    def __init__(
        self, channel: Channel, joints: int, lag: int, every_answer: bool, tell: Callable[[str, str], None]
    ) -> None:
        self.channel, self.counts, self.capacity = channel, Counts(), QUEUE + lag
        self._joints, self._lag, self._every, self._tell = joints, lag, every_answer, tell
        self._waiting: deque[_Waiting] = deque()
        self._told: set[str] = set()
        self.cycle, self.heard = 0, 0
        self.restart()

    def restart(self) -> None:
        """Forget what waits, and which number the last answer had: the next one may be of another client."""
        self.counts.dropped += sum(waiting.message is not None for waiting in self._waiting)
        self._waiting.clear()
        self._sequence = Sequence()

    @property
    def has_answer(self) -> bool:
        """Whether an answer came that was not taken yet, or is held back."""
        return bool(self._waiting) and self._waiting[-1].cycle > self.cycle + self._lag

    def listen(self) -> None:
        """Read what has come."""
        for datagram in self.channel.receive(MOST_DATAGRAMS):
            try:
                message = decode_sensor(datagram, self._joints)
            except EgmError as error:
                self.counts.broken += 1
                self._tell_once("broken", f"a datagram of {len(datagram)} bytes is no message: {error}")
                continue
            self._sort_in(message)
        if self.channel.strangers:
            self._tell_once("stranger", f"{self.channel.stranger} sends, too, and is not listened to")

"""What comes for a robot: decoded, in order, bounded, and taken one answer a cycle.

The manual has a robot take the next message of a queue in every cycle, and keep the last reference where
there is none.  So one answer that comes too late lets all that follow wait for a cycle, until the instruction
ends.  A real robot is never late itself; where this one was, and where an instruction begins, the newest
answer is taken.  That is ours, as is the length of the queue; of one that is full the oldest is dropped.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from twin.egm.guidance.guidance import Fault
from twin.egm.wire.channel import UdpChannel
from twin.egm.wire.encoding import decode_sensor
from twin.egm.wire.messages import SensorMessage
from twin.egm.wire.stream import Arrival, Sequence
from twin.errors import EgmError, EgmModeError

QUEUE = 10
"""Answers that wait to be taken; those that are held back for a lag are not among them (ours)."""

CATCHING_UP = 5
"""Cycles after one that was late, within which its answer is there."""

MOST_DATAGRAMS = 64
"""That are looked at in a cycle; the rest waits in the operating system, which drops what is too much."""


@dataclass
class Counts:
    """Counts of what has come.

    Attributes:
        valid: answers that could be read, those that were repeated or out of order included.
        taken: of them, those that the robot was guided by.
        again: of them, repetitions of the answer before.
        old: of them, those that a newer one had overtaken.
        skipped: of them, those that a newer one was taken for, see `Inbox.catch_up`.
        unused: of them, those that came while nothing was guided, as in a pause.
        dropped: of them, those that the queue had no room for.
        broken: datagrams of the partner that are no messages.
    """

    valid: int = 0
    taken: int = 0
    again: int = 0
    old: int = 0
    skipped: int = 0
    unused: int = 0
    dropped: int = 0
    broken: int = 0


class _Waiting(NamedTuple):
    """An answer, and the cycle from which on it may be taken; `None` where it changes nothing."""

    cycle: int
    answer: SensorMessage | Fault | None


class Inbox:
    """The answers that come through a channel.

    Attributes:
        channel: where from.
        counts: what came so far.
        cycle: the present one.
        heard: the last cycle in which a valid answer came.
        capacity: answers that there is room for.

    Args:
        channel: where from.
        joints: of the robot.
        mode: how it is guided.
        lag: cycles by which answers are held back.
        every_answer: one that changes nothing takes its turn like any other, as lockstep needs it.
        tell: called with the kind of what is odd and a sentence on it, once for each kind; of what cannot be
            read once for each instruction.
    """

    def __init__(
        self,
        channel: UdpChannel,
        joints: int,
        mode: str,
        lag: int = 0,
        every_answer: bool = False,
        tell: Callable[[str, str], None] = lambda kind, sentence: None,
    ) -> None:
        self.channel, self.counts, self.capacity = channel, Counts(), QUEUE + lag
        self._joints, self._mode, self._lag, self._every_answer = joints, mode, lag, every_answer
        self._tell, self._told = tell, set[str]()
        self._waiting: deque[_Waiting] = deque()
        self.cycle, self.heard = 0, 0
        self._catching_up_until = -1
        self.restart()

    def restart(self) -> None:
        """Forget what waits, and what number the last answer had: the next one may be of another client."""
        self.counts.unused += sum(waiting.answer is not None for waiting in self._waiting)
        self._waiting.clear()
        self._told.discard("broken")
        self._sequence = Sequence()

    @property
    def has_answer(self) -> bool:
        """Whether an answer that takes its turn came in this cycle."""
        return bool(self._waiting) and self._waiting[-1].cycle == self.cycle + 1 + self._lag

    def listen(self, most: int = MOST_DATAGRAMS) -> None:
        """Look at what has come, of so many datagrams at most."""
        for datagram in self.channel.receive(most):
            try:
                answer = self._answer(datagram)
            except EgmError as error:
                self.counts.broken += 1
                self._tell_once("broken", f"a datagram of {len(datagram)} bytes is no message: {error}")
                continue
            self.heard = self.cycle
            self.counts.valid += 1
            if answer is not None or self._every_answer:
                self._waiting.append(_Waiting(self.cycle + 1 + self._lag, answer))
        if self.channel.strangers:
            self._tell_once("stranger", f"{self.channel.stranger} sends, too, and is not listened to")

    def catch_up(self) -> None:
        """For the next cycles take the newest answer of several, as nobody is to be behind for ever."""
        self._catching_up_until = self.cycle + CATCHING_UP

    def next(self) -> SensorMessage | Fault | None:
        """Take the answer whose turn it is, if there is one; the cycle is over with it.

        A message of another mode is a fault, when its turn comes.
        """
        self.cycle += 1
        while len(self._waiting) > QUEUE and self._waiting[QUEUE].cycle <= self.cycle:
            self._waiting.popleft()
            self.counts.dropped += 1
            self._tell_once("dropped", f"more answers came than cycles: only the last {QUEUE} are kept")
        if not self._waiting or self._waiting[0].cycle > self.cycle:
            return None
        taken = self._waiting.popleft()
        while (
            self.cycle <= self._catching_up_until and self._waiting and self._waiting[0].cycle <= self.cycle
        ):
            taken = self._waiting.popleft()
            self.counts.skipped += 1
        return taken.answer

    def _answer(self, datagram: bytes) -> SensorMessage | Fault | None:
        """Read a datagram; `None` where it says nothing new.

        Raises:
            EgmError: it is no message.
        """
        try:
            message = decode_sensor(datagram, self._joints, self._mode)
        except EgmModeError as error:
            return Fault(41826, "EGM mode mismatch", str(error))
        arrival = self._sequence.judge(message.seqno, datagram)
        self.counts.again += arrival is Arrival.SAME
        self.counts.old += arrival is Arrival.OLD
        return message if arrival is Arrival.NEW else None

    def _tell_once(self, kind: str, sentence: str) -> None:
        if kind not in self._told:
            self._told.add(kind)
            self._tell(kind, sentence)

"""Queue of received answers: decoded, in order, of bounded length, read once per cycle.

According to the manual a robot takes the next message of a queue in every cycle, and holds the last reference
if the queue is empty.  One late answer therefore delays all following answers by one cycle until the
instruction ends.  A real robot itself is never late.  After a late cycle of this robot, and at the beginning
of an instruction, the newest answer is taken instead.  This rule and the length of the queue are ours.  A
full queue drops its oldest answer.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from twin.abb.egm.guidance.guidance import Fault
from twin.abb.egm.wire.channel import UdpChannel
from twin.abb.egm.wire.encoding import decode_sensor
from twin.abb.egm.wire.messages import SensorMessage
from twin.abb.egm.wire.stream import AnswerSequence, Arrival
from twin.base.errors import EgmError, EgmModeError

QUEUE = 10
"""Capacity of the queue, without the answers that are delayed by a lag (ours)."""

CATCHING_UP = 5
"""Number of cycles after a late one in which the newest answer is taken."""

MAX_DATAGRAMS = 64
"""Largest number of datagrams that are read per cycle; the operating system queues or drops the others."""


@dataclass
class AnswerCounts:
    """Counts of the received answers.

    Attributes:
        valid: answers that could be decoded, including repeated and outdated ones.
        taken: valid answers that guided the robot.
        again: valid answers that repeat the previous one.
        old: valid answers that arrived after a newer one.
        skipped: valid answers that were replaced by a newer one, see `Inbox.catch_up`.
        unused: valid answers that arrived without active guidance, for example in a pause.
        dropped: valid answers that the full queue dropped.
        broken: datagrams of the partner that could not be decoded.
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
    """Queued answer, `None` if it has no effect, and the first cycle in which it may be taken."""

    cycle: int
    answer: SensorMessage | Fault | None


class Inbox:
    """Queue of the answers that arrive through a channel.

    Attributes:
        channel: channel to the partner.
        counts: counts of the answers so far.
        cycle: number of the present cycle.
        heard: last cycle in which a valid answer arrived.
        capacity: capacity of the queue, in answers.

    Args:
        channel: channel to the partner.
        joints: number of joints of the robot.
        mode: guidance mode of the robot.
        lag: delay of answers, in cycles.
        every_answer: whether answers without effect are queued too, as lockstep requires.
        notify: callback with a kind and a sentence, called once per kind of irregularity; for undecodable
            datagrams once per instruction.
        counts: counts that are continued.
    """

    def __init__(
        self,
        channel: UdpChannel,
        joints: int,
        mode: str,
        lag: int = 0,
        every_answer: bool = False,
        notify: Callable[[str, str], None] = lambda kind, sentence: None,
        counts: AnswerCounts | None = None,
    ) -> None:
        self.channel, self.capacity = channel, QUEUE + lag
        self.counts = AnswerCounts() if counts is None else counts
        self._joints, self._mode, self._lag, self._every_answer = joints, mode, lag, every_answer
        self._notify, self._reported = notify, set[str]()
        self._waiting: deque[_Waiting] = deque()
        self.cycle, self.heard = 0, 0
        self._catching_up_until = -1
        self.restart()

    def restart(self) -> None:
        """Clear the queue and the last sequence number, because the client may change."""
        self.counts.unused += sum(waiting.answer is not None for waiting in self._waiting)
        self._waiting.clear()
        self._reported.discard("broken")
        self._sequence = AnswerSequence()

    @property
    def has_answer(self) -> bool:
        """Whether an answer was queued in this cycle."""
        return bool(self._waiting) and self._waiting[-1].cycle == self.cycle + 1 + self._lag

    def listen(self, most: int = MAX_DATAGRAMS) -> None:
        """Read and queue the received answers, at most `most` datagrams."""
        for datagram in self.channel.receive(most):
            try:
                answer = self._decode(datagram)
            except EgmError as error:
                self.counts.broken += 1
                self._report_once("broken", f"cannot decode a datagram of {len(datagram)} bytes: {error}")
                continue
            self.heard = self.cycle
            self.counts.valid += 1
            if answer is not None or self._every_answer:
                self._waiting.append(_Waiting(self.cycle + 1 + self._lag, answer))
        if self.channel.strangers:
            self._report_once("stranger", f"ignoring datagrams from {self.channel.stranger}, not the client")

    def catch_up(self) -> None:
        """Take the newest answer in the next cycles, which ends a lasting delay of the queue."""
        self._catching_up_until = self.cycle + CATCHING_UP

    def next(self) -> SensorMessage | Fault | None:
        """End the cycle and return the next answer; `None` if no answer is due.

        A message of another mode is returned as a fault.
        """
        self.cycle += 1
        while len(self._waiting) > QUEUE and self._waiting[QUEUE].cycle <= self.cycle:
            self._waiting.popleft()
            self.counts.dropped += 1
            self._report_once(
                "dropped", f"received more answers than cycles: the queue holds only the last {QUEUE}"
            )
        if not self._waiting or self._waiting[0].cycle > self.cycle:
            return None
        taken = self._waiting.popleft()
        while (
            self.cycle <= self._catching_up_until and self._waiting and self._waiting[0].cycle <= self.cycle
        ):
            taken = self._waiting.popleft()
            self.counts.skipped += 1
        return taken.answer

    def _decode(self, datagram: bytes) -> SensorMessage | Fault | None:
        """Decode a datagram; return `None` for a repeated or outdated answer.

        Raises:
            EgmError: the datagram cannot be decoded.
        """
        try:
            message = decode_sensor(datagram, self._joints, self._mode)
        except EgmModeError as error:
            return Fault(41826, "EGM mode mismatch", str(error))
        arrival = self._sequence.judge(message.seqno, datagram)
        self.counts.again += arrival is Arrival.SAME
        self.counts.old += arrival is Arrival.OLD
        return message if arrival is Arrival.NEW else None

    def _report_once(self, kind: str, sentence: str) -> None:
        if kind not in self._reported:
            self._reported.add(kind)
            self._notify(kind, sentence)

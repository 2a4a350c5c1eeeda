"""Exchange of a robot with its client: the queue of answers, the pace of the cycles, and their record.

According to the manual a robot takes the next message of a queue in every cycle, and holds the last reference
if the queue is empty.  One late answer therefore delays all following answers by one cycle until the
instruction ends.  A real robot itself is never late.  After a late cycle of this robot, and at the beginning
of an instruction, the newest answer is taken instead.  This rule and the length of the queue are ours.  A
full queue drops its oldest answer.

By the clock a cycle begins when it is due, with or without an answer.  In lockstep (`virtual_time`) the robot
waits after each message for exactly one answer.  Time is then the number of cycles, as if the client were
never late, and two runs are equal to the bit.
"""

import gc
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from twin.abb.egm.guidance.guidance import Fault
from twin.abb.egm.wire.channel import UdpChannel
from twin.abb.egm.wire.encoding import decode_sensor
from twin.abb.egm.wire.messages import AnswerSequence, Arrival, RobotMessage, SensorMessage
from twin.base.arrays import Floats
from twin.base.errors import EgmError, EgmModeError
from twin.physics.engine.window.bench import RealTimeClock
from twin.physics.rotations.rotations import pose_vector

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


LATE = 1e-3
"""Lateness above which a cycle counts as late, in [s]; real controllers are within some tenths of 1 ms."""

WIDTH, BINS = 2e-5, 5000
"""Width, in [s], and number of the bins of the lateness histogram: 20 us, up to 0.1 s."""


class Event(NamedTuple):
    """Event of a session.

    Attributes:
        t: time since the start of the robot, in [s].
        kind: `waiting`, `guided`, `returning`, `ended` or `fault` for an instruction; `broken`, `dropped` or
            `stranger` for the first such datagram; `late`, not among the events of a result, for the first
            message that came late enough for a client to see it; `unsent` for the first message that could
            not be sent; `left` after the window was closed; `cut` if the session ended during a motion.
        sentence: description of the event.
    """

    t: float
    kind: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.t:.3f} s: {self.sentence}"


class EgmState(Enum):
    """State of a robot, as `EGMGetState` returns it."""

    DISCONNECTED = "EGM_STATE_DISCONNECTED"
    """The session has not begun, or has ended."""
    CONNECTED = "EGM_STATE_CONNECTED"
    """Messages are sent, and no instruction is active."""
    RUNNING = "EGM_STATE_RUNNING"
    """An instruction is active: it waits for its first answer, guides the arm, or stops."""


@dataclass(frozen=True)
class Lateness:
    """Lateness of a robot's messages, which are due once a cycle.

    Attributes:
        cycles: number of messages sent.
        late: number of messages sent more than 1 ms late.
        median, percentile_99: quantiles of the lateness, in [s], with a resolution of 20 us.
        worst: largest lateness, in [s].
        gap: longest time from one message to the next, in [s].
        restarts: number of times that the robot fell too far behind and its clock was restarted.
    """

    cycles: int = 0
    late: int = 0
    median: float = 0.0
    percentile_99: float = 0.0
    worst: float = 0.0
    gap: float = 0.0
    restarts: int = 0

    @property
    def share(self) -> float:
        """Share of late messages, 0 to 1."""
        return self.late / self.cycles if self.cycles else 0.0

    def __str__(self) -> str:
        if not self.cycles:
            return "no messages were sent by the clock"
        return (
            f"{self.late} of {self.cycles} messages ({self.share:.2%}) were more than 1 ms late; median "
            f"{1e3 * self.median:.2f} ms, 99 % within {1e3 * self.percentile_99:.2f} ms, the worst "
            f"{1e3 * self.worst:.2f} ms"
            + f"; the clock was restarted {self.restarts} times"
            * (self.restarts > 0)
        )


class LatenessMeter:
    """Histogram of the lateness of cycles.

    Attributes:
        last: lateness of the last cycle, in [s].
        gap: longest time between the beginnings of two cycles, in [s].
        restarts: number of times that the clock was restarted.

    Args:
        cycle: duration of a cycle, in [s].
    """

    def __init__(self, cycle: float) -> None:
        self._counts, self._cycle = [0] * (BINS + 1), cycle
        self._late, self._worst, self.restarts = 0, 0.0, 0
        self.last = self.gap = 0.0

    def add(self, seconds: float) -> None:
        """Add a cycle with its lateness, in [s]."""
        self._counts[min(BINS, max(0, int(seconds / WIDTH)))] += 1
        self._late += seconds > LATE
        self._worst = max(self._worst, seconds)
        self.gap, self.last = max(self.gap, self._cycle + seconds - self.last), seconds

    def lateness(self) -> Lateness:
        """Return the lateness of the cycles so far."""
        counts = np.array(self._counts)
        cycles = int(counts.sum())
        if not cycles:
            return Lateness(restarts=self.restarts)
        within = np.cumsum(counts)
        half, most = (
            min(self._worst, (int(np.searchsorted(within, share * cycles)) + 1) * WIDTH)
            for share in (0.5, 0.99)
        )
        return Lateness(cycles, self._late, half, most, self._worst, self.gap, self.restarts)


DELAY = 0.024
"""Time between two cycles from which on a delay is reported as it happens, in [s]: six cycles."""

SPIN = 3e-4
"""Final part of a cycle, in [s], in which the clock is polled: `time.sleep` ends late by some 0.1 ms,
occasionally by more."""

MAX_LAG = 0.1
"""Largest delay, in [s], that the robot makes up by faster cycles; after a larger one its clock restarts."""

POLL_INTERVAL = 0.02
"""Interval between two checks for a stop request during a wait, in [s]."""

RESEND_DELAY = 0.01
"""Delay before an undelivered message is sent again, in [s]."""


class RealTime:
    """Timing by the clock; the last 0.3 ms of a cycle poll it.

    Args:
        cycle: duration of a cycle, in [s].
    """

    virtual = False
    """Whether time is counted in cycles."""

    def __init__(self, cycle: float) -> None:
        self._clock, self._meter = RealTimeClock(cycle, MAX_LAG), LatenessMeter(cycle)
        self._late = self._behind = 0.0
        self._reported = False

    def begin(self) -> None:
        """Start the first cycle now."""
        self._clock.restart()

    def sending(self) -> None:
        """Record the lateness of the message that is about to be sent."""
        self._late = max(-self._clock.ahead(), self._behind)
        self._meter.add(self._late)

    def sent(self, inbox: Inbox) -> None:
        """Read the received answers after the message was sent."""
        inbox.listen()
        if self._late > LATE:
            inbox.catch_up()

    def wait(self, inbox: Inbox, again: Callable[[], object], stopping: Callable[[], bool]) -> bool:
        """Wait until the next cycle begins.

        Args:
            inbox: queue of the answers.
            again: function that sends the message of this cycle again.
            stopping: function that returns whether a stop was requested.

        Returns:
            False if a stop was requested, else True.
        """
        return self.next_cycle(stopping)

    def next_cycle(self, stopping: Callable[[], bool]) -> bool:
        """Wait until the next cycle begins; return False if a stop was requested."""
        ahead = self._clock.tick()
        self._behind = -ahead if self._clock.restarted else 0.0  # a restarted clock hides the delay
        if ahead > SPIN:
            time.sleep(ahead - SPIN)
        while self._clock.ahead() > 0.0:
            pass
        return not stopping()

    def new_delay(self) -> str:
        """Return a sentence when cycles are so far apart for the first time that clients see it, else ""."""
        if self._reported or self._meter.gap <= DELAY:
            return ""
        self._reported = True
        return (
            f"a cycle came {1e3 * self._meter.gap:.0f} ms after the one before, which clients see: this "
            "machine is too busy for real time; --lockstep has virtual time"
        )

    def lateness(self) -> Lateness:
        """Return the lateness of the messages so far."""
        self._meter.restarts = self._clock.restarts
        return self._meter.lateness()


class Lockstep:
    """Timing in lockstep with the client: one answer after each message.

    After a stop request the robot first takes all answers sent before the request.  It therefore stops at the
    same place in every run.  The capacity of the queue bounds the number of further answers.

    Args:
        limit: largest real time from one answer to the next, in [s].
        first: largest real time to the first answer, in [s].
    """

    virtual = True

    def __init__(self, limit: float, first: float) -> None:
        self._limit, self._first = limit, first
        self._stopping = 0

    def begin(self) -> None:
        """Do nothing: virtual time has no clock to start."""

    def sending(self) -> None:
        """Do nothing: no message is late in virtual time."""

    def new_delay(self) -> str:
        """Return "": no cycle is late in virtual time."""
        return ""

    def sent(self, inbox: Inbox) -> None:
        """Do nothing: `wait` reads the answers."""

    def wait(self, inbox: Inbox, again: Callable[[], object], stopping: Callable[[], bool]) -> bool:
        """Wait for one answer; the arguments and the result are those of `RealTime.wait`.

        Raises:
            EgmError: no answer arrived within the limit.
        """
        limit = self._limit if inbox.counts.valid else self._first
        until = time.monotonic() + limit
        while True:
            stop = (
                stopping()
            )  # checked before reading: answers sent before the stop request are then received
            inbox.listen(1)
            if inbox.has_answer:
                self._stopping += stop
                return self._stopping <= inbox.capacity
            if stop:
                return False
            if time.monotonic() > until:
                raise EgmError(self._no_answer(inbox, limit))
            if inbox.channel.refused():
                time.sleep(RESEND_DELAY)
                again()
            else:
                inbox.channel.wait(POLL_INTERVAL)

    def _no_answer(self, inbox: Inbox, limit: float) -> str:
        """Return a sentence on the missing answer."""
        if inbox.counts.valid:
            return (
                f"no answer to message {inbox.cycle - 1} within {limit:g} s of real time, after "
                f"{inbox.counts.valid} answers: in lockstep a client must answer every message"
            )
        return f"no client answered within {limit:g} s of real time"

    def lateness(self) -> Lateness:
        """Return an empty result: no message is late in virtual time."""
        return Lateness()


Pace = RealTime | Lockstep

_LIMIT: ContextVar[float | None] = ContextVar("limit of virtual time", default=None)


@contextmanager
def virtual_time(limit: float = 60.0) -> Iterator[None]:
    """Run the robots that are created in this context in lockstep with their clients.

    After each message a robot waits for exactly one answer.  Its clock and its time-outs count cycles.  Two
    runs with the same answers are equal to the bit, independent of the load of the machine.

    Args:
        limit: largest real time that a robot waits for one answer, in [s].

    Raises:
        ValueError: the limit is not positive and finite.

    Example:
        >>> import controllers, twin, twin.egm as egm
        >>> law = controllers.make("pd_gravity", twin.load("irb140"))
        >>> with egm.EgmClient(port=0) as client, egm.virtual_time():
        ...     with egm.EgmRobot(law.robot, law, to=("127.0.0.1", client.port), start=[0.1] * 6):
        ...         print(client.receive().q.round(6).tolist())
        [0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
    """
    if not 0 < limit < float("inf"):
        raise ValueError(f"expected a positive, finite limit of real time in s, got {limit}")
    token = _LIMIT.set(float(limit))
    try:
        yield
    finally:
        _LIMIT.reset(token)


def make_pace(cycle: float, wait: float | None) -> Pace:
    """Return the timing of a robot that is created in the present context.

    Args:
        cycle: duration of a cycle, in [s].
        wait: longest wait for the first answer, in [s]; `None` for no limit.
    """
    limit = _LIMIT.get()
    if limit is None:
        return RealTime(cycle)
    return Lockstep(limit, limit if wait is None else min(wait, limit))


@contextmanager
def garbage_collection_frozen(enabled: bool) -> Iterator[None]:
    """Exclude all existing objects from garbage collection, which would otherwise take milliseconds."""
    if not enabled:
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class StreamRecord:
    """Record of the last cycles of a session, as arrays for its log.

    Args:
        joints: number of joints of the robot.
        mode: guidance mode of the robot.
        cycles: number of cycles that are recorded.
    """

    def __init__(self, joints: int, mode: str, cycles: int) -> None:
        self._place, self._speed = {"joint": (joints, joints), "pose": (7, 6), "path": (3, 0)}[mode]
        self._rows: deque[tuple] = deque(maxlen=max(1, cycles))

    def add(self, t: float, message: RobotMessage, answer: SensorMessage | None) -> None:
        """Add a cycle: its start t, in [s], the message sent, and the answer taken, if any."""
        place, speed = np.full(self._place, np.nan), np.full(self._speed, np.nan)
        seqno = -1
        if answer is not None:
            seqno = -1 if answer.seqno is None else answer.seqno
            pose = None if answer.T is None else pose_vector(answer.T)
            for row, parts in (
                (place, (answer.q, pose, answer.path_correction)),
                (speed, (answer.qd, answer.twist)),
            ):
                for part in parts:  # each mode sets at most one of them
                    if part is not None:
                        row[:] = part
        status = (int(message.state), message.converged, message.utilization or 0.0)
        self._rows.append((t, message.seqno, answer is not None, seqno, place, speed, *status))

    def arrays(self) -> dict[str, Floats]:
        """Return arrays with one row per cycle.

        - `egm_t`: start of the cycle, in [s].
        - `egm_robot_seqno`: sequence number of the robot's message.
        - `egm_taken`: whether an answer was taken; `egm_seqno`: its sequence number, -1 if missing.
        - `egm_reference`, `egm_speed`: references of the answer, NaN if missing.  In joint mode they are (n,)
          in [rad] and [rad/s]; in pose mode (7,) `[x y z a b c d]`, in [m], and (6,) `[v; omega]`, in
          [m/s, rad/s]; in path mode (3,) in [m] and (0,).
        - `egm_state`, `egm_converged`, `egm_utilization`: status in the robot's message.
        """
        columns = [
            ("t", float), ("robot_seqno", np.int64), ("taken", bool), ("seqno", np.int64),
            ("reference", float, (self._place,)), ("speed", float, (self._speed,)),
            ("state", np.int64), ("converged", bool), ("utilization", float),
        ]  # fmt: skip
        table = np.array(list(self._rows), dtype=columns)
        return {f"egm_{name}": table[name].copy() for name in table.dtype.names or ()}

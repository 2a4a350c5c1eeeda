"""Messages of EGM in SI units, and their order in a stream: lost, duplicate and reordered ones, restarts.

Only the encoded messages use degrees and millimetres, see `twin.egm.wire.encoding`.

A robot numbers its messages consecutively modulo 2^32.  The number defines the place of a message in the
stream.  A missing number counts as lost until its message arrives.  The rules below are ours:

- A message with a number and time already received is a duplicate.
- A message with a lower number and no later time is out of order.
- A lower number with a later time, or a number lower by more than `MAX_REORDERING`, indicates a restart.

Clients number their answers in different ways, see `AnswerSequence`.

The nominal cycle of 4 ms is 4.032 ms on a real robot, while `tm` has a resolution of 1 ms.  The period is
therefore the duration of many cycles divided by their number.  The duration comes from the robot's clock if
the messages contain it, else from `tm`.

The lateness of a message is its delay relative to the fastest message of the last ten seconds.  The absolute
delay is unknown, because the clocks of robot and client are not synchronised.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple

import numpy as np

from twin.base.arrays import Floats

MODULUS = 1 << 32
"""Modulus of message numbers and of time stamps in ms."""


class MotionState(IntEnum):
    """State of the instruction that guides the robot (`EgmMCIState`)."""

    UNDEFINED = 0
    ERROR = 1
    STOPPED = 2
    RUNNING = 3


@dataclass(frozen=True, eq=False)
class RobotMessage:
    """Message that a robot sends once a cycle (`EgmRobot`).

    Attributes:
        seqno: sequence number of the message.
        tm: time since the start of the robot's controller, in [ms].
        q: (n,) measured joint angles, in [rad].
        q_planned: (n,) commanded joint angles, in [rad].
        T: (4, 4) measured pose of the tool in the work object, in [m]; `None` if missing.
        T_planned: (4, 4) commanded pose of the tool in the work object, in [m]; `None` if missing.
        time: time of the measurement by the robot's clock, in [s]; `None` if missing.
        motors_on: whether the motors are on.
        state: state of the guided motion.
        program_runs: whether the RAPID program runs.
        converged: whether the robot is within the convergence window of the reference.
        utilization: share of the drives' capacity that the requested motion needs, in [%].  Above 100 the
            robot executes only a part of the motion.
        tau: (n,) motor torques at the joints, in [N m]; `None` if missing.
        wrench: (6,) measured wrench `[f; mu]`, in [N, N m]; `None` if missing.
    """

    seqno: int
    tm: int
    q: Floats
    q_planned: Floats
    T: Floats | None = None
    T_planned: Floats | None = None
    time: float | None = None
    motors_on: bool = True
    state: MotionState = MotionState.RUNNING
    program_runs: bool = True
    converged: bool = False
    utilization: float | None = None
    tau: Floats | None = None
    wrench: Floats | None = None


@dataclass(frozen=True, eq=False)
class SensorMessage:
    """Answer of a client to a robot (`EgmSensor`, or `EgmSensorPathCorr` with a `path_correction`).

    Attributes:
        seqno: sequence number of the message; `None` if missing.
        tm: time of the sender, in [ms]; `None` if missing.
        q: (n,) reference joint angles, in [rad].
        qd: (n,) reference joint speeds, in [rad/s].
        T: (4, 4) reference pose of the tool in the sensor frame, in [m].
        twist: (6,) reference speed of the tool `[v; omega]`, in [m/s, rad/s].
        path_correction: (3,) offset from the path in the path frame, in [m].
        age: age of the measurement behind the path correction, in [s].
    """

    seqno: int | None = None
    tm: int | None = None
    q: Floats | None = None
    qd: Floats | None = None
    T: Floats | None = None
    twist: Floats | None = None
    path_correction: Floats | None = None
    age: float = 0.0


MAX_REORDERING = 100
"""Largest difference of sequence numbers that counts as reordering."""

MAX_MISSING = 1000
"""Largest number of missing sequence numbers that are stored."""


@dataclass
class StreamCounts:
    """Counts of the messages of a robot.

    Attributes:
        messages: messages that were used.
        lost: sequence numbers that never arrived.
        doubled: duplicate messages.
        out_of_order: messages that arrived after a newer one and were not used.
        malformed: datagrams that are no message of the robot.
        restarts: restarts of the robot.
    """

    messages: int = 0
    lost: int = 0
    doubled: int = 0
    out_of_order: int = 0
    malformed: int = 0
    restarts: int = 0


def modular_difference(newer: int, older: int) -> int:
    """Return the difference of two 32-bit numbers modulo 2^32, in the range -2^31 to 2^31 - 1."""
    return (newer - older + MODULUS // 2) % MODULUS - MODULUS // 2


class StreamOrder:
    """Order robot messages by sequence number.

    Attributes:
        counts: counts of all messages so far.
        place: place of the newest message in the stream; 0 for the first message, also after a restart.
    """

    def __init__(self) -> None:
        self.counts = StreamCounts()
        self.place = -1
        self._seqno = self._tm = 0
        self._missing: OrderedDict[int, None] = OrderedDict()

    def step(self, message: RobotMessage) -> int | None:
        """Return the number of places from the previous message to this one: 1 if none was lost.

        Returns:
            0 for the first message of a stream, also after a restart; `None` for a message to be ignored.
        """
        counts = self.counts
        if self.place < 0:
            return self._begin(message)
        step, later = modular_difference(message.seqno, self._seqno), modular_difference(message.tm, self._tm)
        if step == 0 and later == 0:
            counts.doubled += 1
            return None
        if step <= 0 and (later > 0 or step < -MAX_REORDERING):
            counts.restarts += 1
            return self._begin(message)
        if step <= 0:
            self._count_older(message)
            return None
        if later < 0:  # a higher number with an earlier time
            counts.restarts += 1
            return self._begin(message)
        counts.messages += 1
        self._note_missing(step)
        self.place += step
        self._seqno, self._tm = message.seqno, message.tm
        return step

    def _count_older(self, message: RobotMessage) -> None:
        """Count a message with an earlier number: it was missing, or it is a duplicate."""
        late = message.seqno in self._missing
        self.counts.out_of_order += late
        self.counts.lost -= late
        self.counts.doubled += not late
        self._missing.pop(message.seqno, None)

    def _note_missing(self, step: int) -> None:
        """Count the skipped numbers as lost, and store the last of them as missing."""
        self.counts.lost += step - 1
        for missing in range(max(1, step - MAX_REORDERING), step):
            self._missing[(self._seqno + missing) % MODULUS] = None
        while len(self._missing) > MAX_MISSING:
            self._missing.popitem(last=False)

    def _begin(self, message: RobotMessage) -> int:
        self.counts.messages += 1
        self.place, self._seqno, self._tm = 0, message.seqno, message.tm
        self._missing.clear()
        return 0


def interpolate_messages(
    before: RobotMessage, after: RobotMessage, share: float
) -> tuple[Floats, Floats, Floats | None]:
    """Interpolate linearly between two messages.

    Args:
        before: first message.
        after: second message.
        share: position between them, from 0 for `before` to 1 for `after`.

    Returns:
        measured angles (n,) and commanded angles (n,), in [rad], and torques (n,), in [N m], or `None`.
    """
    q = before.q + share * (after.q - before.q)
    q_planned = before.q_planned + share * (after.q_planned - before.q_planned)
    if before.tau is None or after.tau is None:
        return q, q_planned, None
    return q, q_planned, before.tau + share * (after.tau - before.tau)


MAX_LATE = 100
"""Largest step back in the numbers that counts as a late message; a larger one indicates a restart (ours)."""

IN_ORDER = 3
"""Number of consecutive, ordered late messages that indicates a restart (ours)."""


class Arrival(Enum):
    """Relation of a message to its predecessors."""

    NEW = "new"
    SAME = "same"
    OLD = "old"


class AnswerSequence:
    """Detection of duplicate and late answers by their sequence numbers (ours: the manual defines none).

    Networks lose, duplicate and reorder datagrams.  Clients count in steps of one or two, send no numbers, or
    restart.
    """

    def __init__(self) -> None:
        self._last: int | None = None
        self._bytes = b""
        self._late, self._in_order = 0, 0

    def judge(self, seqno: int | None, data: bytes) -> Arrival:
        """Classify the next message as new, repeated or outdated.

        Args:
            seqno: sequence number; a message without one (`None`) is always new.
            data: bytes of the message; a repetition has equal bytes.
        """
        if seqno is None:
            return Arrival.NEW
        if self._last is not None:
            behind = (self._last - seqno) % MODULUS
            if behind == 0 and data == self._bytes:
                return Arrival.SAME
            if 0 < behind <= MAX_LATE:
                follows = self._in_order > 0 and 0 < (seqno - self._late) % MODULUS <= MAX_LATE
                self._late, self._in_order = seqno, self._in_order + 1 if follows else 1
                if self._in_order < IN_ORDER:
                    return Arrival.OLD
        self._last, self._bytes, self._in_order = seqno, bytes(data), 0
        return Arrival.NEW


NOMINAL = 0.004
"""Period that is assumed while the robot's times do not increase, in [s]."""

LONGEST_GAP = 0.1
"""Longest gap in a stream that is filled by interpolation, in [s]; after a longer one the filters restart."""

CLOCK_TOLERANCE = 0.01
"""Largest relative change between two estimates of the period; a larger one indicates a clock adjustment."""

REFERENCE_SECONDS = 10
"""Number of seconds whose fastest message is the reference for lateness."""


class StreamLateness(NamedTuple):
    """Lateness of the messages of one second, in [s]: the `largest` value and the root mean square `rms`."""

    largest: float
    rms: float


class StreamClock:
    """Clock of a robot, reconstructed from its message stream.

    Attributes:
        period: time between two consecutive places of the stream, in [s].
    """

    def __init__(self) -> None:
        self.period = NOMINAL
        self._trusted = False
        self.begin()

    def begin(self) -> None:
        """Start a new stream, whose places count from 0."""
        self._first: tuple[int, float] | None = None
        self._span = 0.0
        self._tm = 0

    def seen(self, place: int, message: RobotMessage) -> float:
        """Process the time stamps of a message; return the robot's time since the first message, in [s]."""
        if self._first is None:
            self._first = (place, message.time or 0.0)
            self._tm, self._ticks = message.tm, 0
        self._ticks += max(modular_difference(message.tm, self._tm), 0)
        self._tm = message.tm
        span = 1e-3 * self._ticks
        if message.time is not None:
            by_clock = message.time - self._first[1]
            if by_clock > 0 and abs(by_clock - span) <= 2e-3 + CLOCK_TOLERANCE * span:
                span = by_clock
        self._span, self._place = span, place
        return span

    def measure(self) -> float:
        """Update and return the period from all messages of the stream, in [s].

        The previous estimate remains if the stream is too short or the new one deviates too much.
        """
        if self._first is None or self._place == self._first[0] or not self._span > 0:
            return self.period
        period = self._span / (self._place - self._first[0])
        if not self._trusted or abs(period - self.period) <= CLOCK_TOLERANCE * self.period:
            self.period, self._trusted = period, True
        return self.period


class StreamLatenessMeter:
    """Measurement of the lateness of messages, second by second."""

    def __init__(self) -> None:
        self._quickest: deque[float] = deque(maxlen=REFERENCE_SECONDS)
        self._delays: list[float] = []

    def begin(self) -> None:
        """Discard all measurements, because the robot's time restarts."""
        self._quickest.clear()
        self._delays.clear()

    def seen(self, arrival: float, robot_time: float) -> None:
        """Add a message: its arrival by the local clock and its time by the robot's clock, both in [s]."""
        self._delays.append(arrival - robot_time)

    def second(self) -> StreamLateness | None:
        """Return the lateness of the messages since the last call; `None` without messages."""
        if not self._delays:
            return None
        delays = np.array(self._delays)
        self._delays.clear()
        self._quickest.append(float(np.min(delays)))
        late = delays - min(self._quickest)
        return StreamLateness(float(np.max(late)), float(np.sqrt(np.mean(late**2))))

"""Timing of an EGM robot: by the clock or in lockstep with its client, and the lateness of its messages.

By the clock a cycle begins when it is due, with or without an answer.  In lockstep (`virtual_time`) the robot
waits after each message for exactly one answer.  Time is then the number of cycles, as if the client were
never late, and two runs are equal to the bit.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from twin.abb.egm.robot.inbox import Inbox
from twin.base.errors import EgmError
from twin.physics.engine.window.bench import RealTimeClock

LATE = 1e-3
"""Lateness above which a cycle counts as late, in [s]; real controllers are within some tenths of 1 ms."""

WIDTH, BINS = 2e-5, 5000
"""Width, in [s], and number of the bins of the lateness histogram: 20 us, up to 0.1 s."""


@dataclass(frozen=True)
class Lateness:
    """Lateness of a robot's messages, which are due once a cycle.

    Attributes:
        cycles: number of messages sent.
        late: number of messages sent more than 1 ms late.
        median, percentile_99: quantiles of the lateness, in [s], with a resolution of 20 us.
        worst: largest lateness, in [s].
        restarts: number of times that the robot fell too far behind and its clock was restarted.
    """

    cycles: int = 0
    late: int = 0
    median: float = 0.0
    percentile_99: float = 0.0
    worst: float = 0.0
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
    """Histogram of the lateness of cycles."""

    def __init__(self) -> None:
        self._counts = [0] * (BINS + 1)
        self._late, self._worst, self.restarts = 0, 0.0, 0

    def add(self, seconds: float) -> None:
        """Add a cycle with its lateness, in [s]."""
        self._counts[min(BINS, max(0, int(seconds / WIDTH)))] += 1
        self._late += seconds > LATE
        self._worst = max(self._worst, seconds)

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
        return Lateness(cycles, self._late, half, most, self._worst, self.restarts)


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
        self._clock, self._meter = RealTimeClock(cycle, MAX_LAG), LatenessMeter()
        self._late = self._behind = 0.0

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

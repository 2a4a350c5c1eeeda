"""The pace of a robot on the wire: by the clock, or in lockstep with its client; how late its messages are.

By the clock a cycle begins when it is due, whether an answer is there or not.  In lockstep, as `virtual_time`
has it, the robot waits after each message for exactly one answer, however long that takes: time is then the
number of cycles, and two runs are the same to the bit.  It is as if the partner were never late.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from twin.egm.robot.inbox import Inbox
from twin.engine.window.bench import RealTimeClock
from twin.errors import EgmError

LATE = 1e-3
"""[s]: a cycle that is later counts as late; real controllers send within some tenths of a millisecond."""

WIDTH, BINS = 2e-5, 5000
"""Lateness is counted in bins of 20 us up to 0.1 s."""


@dataclass(frozen=True)
class Lateness:
    """The lateness of a robot's messages, which are due once a cycle.

    Attributes:
        cycles: how many were sent.
        late: how many of them were late by more than 1 ms.
        median, percentile_99: of the lateness, in [s], to 20 us.
        worst: the most late one, in [s].
        restarts: how often the robot fell so far behind that the clock was set anew, and it went on from
            there.
    """

    cycles: int = 0
    late: int = 0
    median: float = 0.0
    percentile_99: float = 0.0
    worst: float = 0.0
    restarts: int = 0

    @property
    def share(self) -> float:
        """The late ones of all."""
        return self.late / self.cycles if self.cycles else 0.0

    def __str__(self) -> str:
        if not self.cycles:
            return "no cycle was timed"
        return (
            f"{self.late} of {self.cycles} messages ({self.share:.2%}) were more than 1 ms late; median "
            f"{1e3 * self.median:.2f} ms, 99 % within {1e3 * self.percentile_99:.2f} ms, the worst "
            f"{1e3 * self.worst:.2f} ms"
            + f"; the clock was set anew {self.restarts} times"
            * (self.restarts > 0)
        )


class LatenessMeter:
    """Counts the lateness of cycle after cycle."""

    def __init__(self) -> None:
        self._counts = [0] * (BINS + 1)
        self._late, self._worst, self.restarts = 0, 0.0, 0

    def add(self, seconds: float) -> None:
        """Count a cycle that was so late, in [s]."""
        self._counts[min(BINS, max(0, int(seconds / WIDTH)))] += 1
        self._late += seconds > LATE
        self._worst = max(self._worst, seconds)

    def lateness(self) -> Lateness:
        """The lateness of the cycles so far."""
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
"""[s]: the last part of a cycle, in which the clock is watched: who sleeps wakes up late by a tenth of a
millisecond, and now and then by more."""

TOO_FAR_BEHIND = 0.1
"""[s]: a robot that is later does not hurry after the clock, and sends no bursts of messages for longer."""

LOOK_UP = 0.02
"""[s], from one look to the next at whether the robot is to stop, while it waits."""

BEFORE_AGAIN = 0.01
"""[s], before a message that nobody was there to take is sent again."""


class RealTime:
    """The pace of the clock: sleeping, and watching it for the last 0.3 ms of a cycle.

    Args:
        cycle: in [s].
    """

    virtual = False
    """Whether time is the number of cycles."""

    def __init__(self, cycle: float) -> None:
        self._clock, self._meter = RealTimeClock(cycle, TOO_FAR_BEHIND), LatenessMeter()
        self._late = self._behind = 0.0

    def begin(self) -> None:
        """Begin the first cycle now."""
        self._clock.restart()

    def sending(self) -> None:
        """Note when a message is sent."""
        self._late = max(-self._clock.ahead(), self._behind)
        self._meter.add(self._late)

    def sent(self, inbox: Inbox) -> None:
        """Look at what has come, once the message was sent."""
        inbox.listen()
        if self._late > LATE:
            inbox.catch_up()

    def wait(self, inbox: Inbox, again: Callable[[], object], stopping: Callable[[], bool]) -> bool:
        """Wait until the next cycle begins.

        Args:
            inbox: what comes.
            again: sends the message of this cycle once more.
            stopping: whether somebody wants the robot to stop.

        Returns:
            False where somebody wants the robot to stop, rather than go on.
        """
        ahead = self._clock.tick()
        self._behind = -ahead if self._clock.restarted else 0.0  # else the clock tells it
        if ahead > SPIN:
            time.sleep(ahead - SPIN)
        while self._clock.ahead() > 0.0:
            pass
        return not stopping()

    def lateness(self) -> Lateness:
        """The lateness of the messages so far."""
        self._meter.restarts = self._clock.restarts
        return self._meter.lateness()


class Lockstep:
    """One answer after each message.

    Who stops the robot after some answers finds all of these taken, so that where it stops is the same in
    every run; answers that go on coming then do not keep it for long.

    Args:
        limit: of the real time from one answer to the next, in [s].
        first: of the real time to the first answer, in [s].
    """

    virtual = True

    def __init__(self, limit: float, first: float) -> None:
        self._limit, self._first = limit, first
        self._stopping = 0

    def begin(self) -> None:
        """See `RealTime`."""

    def sending(self) -> None:
        """See `RealTime`."""

    def sent(self, inbox: Inbox) -> None:
        """Do nothing: an answer that is there already is taken in the next cycle, like any other."""

    def wait(self, inbox: Inbox, again: Callable[[], object], stopping: Callable[[], bool]) -> bool:
        """See `RealTime`.

        Raises:
            EgmError: there is no answer within the limit.
        """
        limit = self._limit if inbox.counts.valid else self._first
        until = time.monotonic() + limit
        while True:
            stop = stopping()  # looked at first: what was sent before it is here
            inbox.listen(1)
            if inbox.has_answer:
                self._stopping += stop
                return self._stopping <= inbox.capacity
            if stop:
                return False
            if time.monotonic() > until:
                raise EgmError(self._nobody(inbox, limit))
            if inbox.channel.refused():
                time.sleep(BEFORE_AGAIN)
                again()
            else:
                inbox.channel.wait(LOOK_UP)

    def _nobody(self, inbox: Inbox, limit: float) -> str:
        """That no answer came, in a sentence."""
        if inbox.counts.valid:
            after = f"to message {inbox.cycle - 1} within {limit:g} s of real time"
            return f"no answer {after}, after {inbox.counts.valid} answers: in lockstep a client answers each"
        return f"no client answered within {limit:g} s of real time"

    def lateness(self) -> Lateness:
        """Nothing is late."""
        return Lateness()


Pace = RealTime | Lockstep

_LIMIT: ContextVar[float | None] = ContextVar("limit of virtual time", default=None)


@contextmanager
def virtual_time(limit: float = 60.0) -> Iterator[None]:
    """Let the robots that are made in this context run in lockstep with their clients.

    After each message a robot waits for exactly one answer; its clock and its time-outs are those of its
    cycles.  Two runs with the same answers are the same to the bit, however busy the machine is.

    Args:
        limit: of the real time that a robot waits for one answer, in [s].

    Raises:
        ValueError: the limit is not positive and finite.
    """
    if not 0 < limit < float("inf"):
        raise ValueError(f"expected a positive, finite limit of real time in s, got {limit}")
    token = _LIMIT.set(float(limit))
    try:
        yield
    finally:
        _LIMIT.reset(token)


def pace_of(cycle: float, wait: float | None) -> Pace:
    """The pace of a robot that is made here.

    Args:
        cycle: in [s].
        wait: to the first answer at most, in [s].
    """
    limit = _LIMIT.get()
    if limit is None:
        return RealTime(cycle)
    return Lockstep(limit, limit if wait is None else min(wait, limit))


@contextmanager
def undisturbed(wanted: bool) -> Iterator[None]:
    """Keep Python's collector from looking through all that was there before, which takes milliseconds."""
    if not wanted:
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()

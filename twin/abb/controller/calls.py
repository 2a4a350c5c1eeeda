"""Calls of other threads, which a virtual controller answers between the turns of its tasks."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from twin.base.errors import TwinError

ANSWERING = 1e-3
"""Longest time of a cycle for calls, in [s]; the next cycle answers the others."""

PERIOD = 8e-3
"""Time after which a call looks again whether cycles run, in [s]."""

T = TypeVar("T")


class Calls:
    """Calls that wait for an answer.

    Attributes:
        lock: lock that a cycle holds.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._waiting: deque[tuple[Callable[[], Any], Future]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def call(self, function: Callable[[], T], timeout: float) -> T:
        """Return the result of a function, see `VirtualController.call`."""
        result: Future[T] = Future()
        self._waiting.append((function, result))
        end = time.monotonic() + timeout
        while True:  # the cycle that runs now may be the last one
            if self.lock.acquire(blocking=False):
                try:
                    self.answer()
                finally:
                    self.lock.release()
            left = end - time.monotonic()
            if wait([result], min(PERIOD, max(left, 0.0))).done or left < 0.0:
                break
        if result.cancel():
            raise TwinError(f"the controller began no cycle within {timeout:g} s")
        return result.result()

    def answer(self) -> None:
        """Answer the calls that wait, for a time at most."""
        end = time.perf_counter() + ANSWERING
        while self._waiting and time.perf_counter() < end:
            function, result = self._waiting.popleft()
            if result.set_running_or_notify_cancel():
                try:
                    result.set_result(function())
                except BaseException as error:
                    result.set_exception(error)

"""Parallel work on many samples in threads.

The samples do not depend on each other, so the results are identical for any number of threads.
"""

import os
import threading
from collections.abc import Callable
from itertools import pairwise

VARIABLE = "IRB_TWIN_THREADS"
"""Environment variable with the number of threads, read at every call; by default the number of cores."""


def thread_count() -> int:
    """Return the number of threads to use, at least 1.

    Raises:
        ValueError: the environment variable is not a whole number above 0.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ValueError(f"expected {VARIABLE} to be a whole number above 0, got {text!r}")
    return int(text)


def in_chunks(work: Callable[[slice], None], count: int, least: int) -> None:
    """Call `work` on all of `count` samples, in as many slices as there are threads.

    Args:
        work: function that processes the samples of a slice; it runs in parallel if it releases the GIL.
        count: number of samples.
        least: smallest number of samples for which a thread is started.
    """
    threads = min(thread_count(), count // least) if count >= 2 * least else 1
    if threads <= 1:
        work(slice(0, count))
        return
    ends = [count * k // threads for k in range(threads + 1)]
    parts = iter([slice(a, b) for a, b in pairwise(ends)])
    in_threads(lambda: work(next(parts)), threads)


def in_threads(work: Callable[[], None], threads: int) -> None:
    """Call `work` in `threads` threads at once, and raise the first exception of them.

    The calling thread only waits, so that Ctrl-C raises `KeyboardInterrupt` here however long the work takes.
    Threads that are still running then do not prevent the process from ending.
    """
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # raised again in the calling thread
            errors.append(error)

    workers = [threading.Thread(target=guarded, daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]

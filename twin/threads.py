"""Work on many samples, shared between the cores.

The samples do not depend on each other, so the results are the same to the bit for any number of threads.
"""

import os
import threading
from collections.abc import Callable
from itertools import pairwise

VARIABLE = "IRB_TWIN_THREADS"
"""Environment variable with the number of threads, read at every call; as many as cores by default."""


def thread_count() -> int:
    """The number of threads to use, at least 1.

    Raises:
        ValueError: the environment variable is set to something else than a whole number above 0.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ValueError(f"expected {VARIABLE} to be a whole number above 0, got {text!r}")
    return int(text)


def in_chunks(work: Callable[[slice], None], count: int, least: int) -> None:
    """Do `work` for all of `count` samples, in as many slices as there are threads.

    Args:
        work: does the samples of a slice; it must release the GIL to gain anything.
        count: number of samples.
        least: samples that are worth a thread.
    """
    threads = min(thread_count(), count // least) if count >= 2 * least else 1
    if threads <= 1:
        work(slice(0, count))
        return
    ends = [count * k // threads for k in range(threads + 1)]
    parts = iter([slice(a, b) for a, b in pairwise(ends)])
    in_threads(lambda: work(next(parts)), threads)


def in_threads(work: Callable[[], None], threads: int) -> None:
    """Do `work` in so many threads at once, and raise what the first of them raised.

    The caller only waits, so that Ctrl-C raises `KeyboardInterrupt` here however long the work takes; what is
    still under way then does not keep the process from ending.
    """
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # it is raised again, in the thread that asked for the work
            errors.append(error)

    workers = [threading.Thread(target=guarded, daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]

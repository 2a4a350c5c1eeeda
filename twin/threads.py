"""Work on many samples, shared between the cores.

The samples do not depend on each other, so the results are the same to the bit for any number of threads.
"""

from __future__ import annotations

import os
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
        work: does the samples of a slice; it must let go of Python's lock to gain anything.
        count: number of samples.
        least: samples that are worth a thread.
    """
    threads = min(thread_count(), count // least) if count >= 2 * least else 1
    if threads <= 1:
        work(slice(0, count))
        return
    from concurrent.futures import ThreadPoolExecutor

    ends = [count * k // threads for k in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, slice(a, b)) for a, b in pairwise(ends)]:
            done.result()

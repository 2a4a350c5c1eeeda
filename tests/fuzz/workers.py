"""Processes that judge cases; a process that dies or hangs makes its case a fault and is replaced."""

import faulthandler
import os
import resource
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from tests.fuzz.verdicts import Verdict, fault
from twin.base.worker_processes import Answer, Workers

TIMEOUT = 120.0  # s: a case that takes longer hangs, even if functions have to be compiled first
MEMORY = 6 << 30  # bytes of address space: a larger request fails in one case and spares the machine
Judge = Callable[[Any], Verdict]


def judged(judge: Judge, cases: Iterable[Any], count: int = 1) -> Iterator[tuple[Any, Verdict]]:
    """Judge cases in `count` processes, and yield each case with its verdict in order of completion.

    Args:
        judge: function that another process can import.
        cases: arguments of the function, drawn in small batches as processes become free.
        count: number of processes.
    """
    waiting = iter(cases)
    with Workers(count, tries=1) as workers:
        while batch := list(islice(waiting, 8 * count)):
            tasks = [(number, (_limited, (judge, case, TIMEOUT))) for number, case in enumerate(batch)]
            for number, event in workers.run(tasks):
                if isinstance(event, Answer):
                    yield batch[number], fault(event.fault) if event.fault else event.value


def _limited(judge: Judge, case: Any, seconds: float) -> Verdict:
    """Judge a case; a crash and the end of the time are shown as tracebacks on standard error."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), 1)
    faulthandler.enable()
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        return judge(case)
    finally:
        faulthandler.cancel_dump_traceback_later()

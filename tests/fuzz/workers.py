"""Processes that judge cases: one that dies or does not end is a fault of its case, and another takes over."""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from tests.fuzz.verdicts import Verdict, fault

PATIENCE = 30.0  # s: what takes longer hangs
STARTING = 180.0  # s: imports, and what numba has not compiled before
MEMORY = 6 << 30  # bytes of address space: a file that asks for more is refused, or a fault
Judge = Callable[[Any], Verdict]


class Worker:
    """A process that judges one case after the other."""

    def __init__(self, judge: Judge, first: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(judge, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self.case = first
        self._give(first, STARTING)

    def _give(self, case: Any, patience: float) -> None:
        self.case, self.deadline = case, time.monotonic() + patience
        self._pipe.send(case)

    @property
    def pipe(self) -> Connection:
        """Where its verdicts come from."""
        return self._pipe

    def give(self, case: Any) -> None:
        """The next case."""
        self._give(case, PATIENCE)

    def verdict(self) -> Verdict:
        """The verdict that came, or the end of the process as one."""
        try:
            return self._pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode or 0
            how = signal.Signals(-code).name if code < 0 else f"status {code}"
            return fault(f"the process ended with {how}")

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.join()
        self._pipe.close()

    @property
    def alive(self) -> bool:
        """Whether it can take another case."""
        return self._process.is_alive()


def _work(judge: Judge, pipe: Connection) -> None:
    """What the process does: PyBullet and odd programs print, which nobody wants to read."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    sys.setrecursionlimit(1000)
    while True:
        try:
            case = pipe.recv()
        except EOFError:
            return
        pipe.send(judge(case))


def judged(judge: Judge, cases: Iterable[Any], count: int = 1) -> Iterator[tuple[Any, Verdict]]:
    """Judge cases in `count` processes; each case with its verdict, as they come."""
    waiting = iter(cases)
    workers: list[Worker] = []
    try:
        for case in waiting:
            workers.append(Worker(judge, case))
            if len(workers) == count:
                break
        while workers:
            patience = max(0.0, min(worker.deadline for worker in workers) - time.monotonic())
            ready = wait([worker.pipe for worker in workers], patience)
            for worker in list(workers):
                if worker.pipe in ready:
                    verdict = worker.verdict()
                elif time.monotonic() > worker.deadline:
                    verdict = fault(f"no end within {PATIENCE:g} s")
                    worker.end()
                else:
                    continue
                yield worker.case, verdict
                _go_on(workers, worker, judge, waiting)
    finally:
        for worker in workers:
            worker.end()


def _go_on(workers: list[Worker], worker: Worker, judge: Judge, waiting: Iterator[Any]) -> None:
    """Give a worker, or one in its place, the next case; without one it is done."""
    case = next(waiting, None)
    if case is not None and worker.alive:
        worker.give(case)
        return
    workers.remove(worker)
    worker.end()
    if case is not None:
        workers.append(Worker(judge, case))

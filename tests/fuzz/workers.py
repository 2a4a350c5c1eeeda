"""Processes that judge cases: one that dies or does not end is a fault of its case, another takes over."""

import faulthandler
import multiprocessing
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tests.fuzz.verdicts import Verdict, fault, last_place

PATIENCE = 30.0  # s: what takes longer hangs
STARTING = 180.0  # s: imports, and what numba has not compiled before
MEMORY = 6 << 30  # bytes of address space: to ask for more is an error of one case, not the machine's
FRAME = re.compile(r'^ +File "(.*)", line \d+,? in (\w+)', re.MULTILINE)
Judge = Callable[[Any], Verdict]


class Worker:
    """A process that judges one case after the other, from a first one on."""

    def __init__(self, judge: Judge, case: Any) -> None:
        context = multiprocessing.get_context("spawn")
        handle, name = tempfile.mkstemp(prefix="fuzz-")
        os.close(handle)
        self._errors = Path(name)
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(judge, theirs, name))
        self._process.start()
        theirs.close()
        self.give(case, STARTING)

    def give(self, case: Any, patience: float | None = None) -> None:
        """The next case, and how long it may take."""
        self.case = case
        self.deadline = time.monotonic() + (PATIENCE if patience is None else patience)
        self.pipe.send(case)

    def verdict(self) -> Verdict:
        """The verdict that came, or the end of the process as one."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode or 0
            how = signal.Signals(-code).name if code < 0 else f"status {code}"
            return fault(f"the process ended with {how} in {self._place()}", self._said())

    def stopped(self) -> Verdict:
        """End the process, which took too long, as a verdict."""
        if self._process.pid is not None:
            os.kill(self._process.pid, signal.SIGUSR1)  # it writes down where it is
            self._process.join(1.0)
        verdict = fault(f"no end in time, in {self._place()}", self._said())
        self.end()
        return verdict

    def _said(self) -> str:
        text = self._errors.read_text(encoding="utf-8", errors="replace")
        return text.partition("\nExtension modules:")[0][-3000:]

    def _place(self) -> str:
        """Where the process was, which its last words tell from inner to outer."""
        return last_place(FRAME.findall(self._said())[::-1])

    @property
    def alive(self) -> bool:
        """Whether it can take another case."""
        return self._process.is_alive()

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.join()
        self.pipe.close()
        self._errors.unlink(missing_ok=True)


def _work(judge: Judge, pipe: Connection, errors: str) -> None:
    """What the process does; what PyBullet and odd programs print goes nowhere, or into its last words."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    with open(os.devnull, "r+b") as nowhere, open(errors, "ab") as said:
        for stream, kept in ((0, nowhere), (1, nowhere), (2, said)):
            os.dup2(kept.fileno(), stream)
    words = os.fdopen(os.dup(2), "ab")
    faulthandler.enable(words)
    faulthandler.register(signal.SIGUSR1, words)
    while True:
        try:
            case = pipe.recv()
        except EOFError:
            return
        pipe.send(judge(case))


def judged(judge: Judge, cases: Iterable[Any], count: int = 1) -> Iterator[tuple[Any, Verdict]]:
    """Judge cases in `count` processes; each case with its verdict, as they come.

    Args:
        judge: a function that another process can import.
        cases: its arguments; drawn one by one as processes are free.
        count: of processes.
    """
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
                    verdict = worker.stopped()
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

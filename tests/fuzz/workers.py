"""Processes that judge cases; a process that dies or hangs makes its case a fault and is replaced."""

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

TIMEOUT = 30.0  # s: a case that takes longer hangs
STARTING = 180.0  # s: time for imports and for functions that numba has not yet compiled
MEMORY = 6 << 30  # bytes of address space: a larger request fails in one case and spares the machine
FRAME = re.compile(r'^ +File "(.*)", line \d+,? in (\w+)', re.MULTILINE)
Judge = Callable[[Any], Verdict]


class Worker:
    """Process that judges one case after the other, from a first case on."""

    def __init__(self, judge: Judge, case: Any) -> None:
        context = multiprocessing.get_context("spawn")
        handle, name = tempfile.mkstemp(prefix="fuzz-")
        os.close(handle)
        self._errors = Path(name)
        self.pipe, child_pipe = context.Pipe()
        self._process = context.Process(target=_work, args=(judge, child_pipe, name))
        self._process.start()
        child_pipe.close()
        self.give(case, STARTING)

    def give(self, case: Any, timeout: float | None = None) -> None:
        """Send the next case to the process; it may take `timeout` seconds."""
        self.case = case
        self.deadline = time.monotonic() + (TIMEOUT if timeout is None else timeout)
        self.pipe.send(case)

    def verdict(self) -> Verdict:
        """Return the verdict of the process, or a fault if the process has ended."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode or 0
            how = signal.Signals(-code).name if code < 0 else f"status {code}"
            return fault(f"the process ended with {how} in {self._place()}", self._error_output())

    def stopped(self) -> Verdict:
        """End a process that took too long, and return a fault."""
        if self._process.pid is not None:
            os.kill(self._process.pid, signal.SIGUSR1)  # makes the process write a traceback
            self._process.join(1.0)
        verdict = fault(f"no end in time, in {self._place()}", self._error_output())
        self.end()
        return verdict

    def _error_output(self) -> str:
        text = self._errors.read_text(encoding="utf-8", errors="replace")
        return text.partition("\nExtension modules:")[0][-3000:]

    def _place(self) -> str:
        """Return the place where the process was, from the traceback in its error output."""
        return last_place(FRAME.findall(self._error_output())[::-1])

    @property
    def alive(self) -> bool:
        """Whether the process can judge another case."""
        return self._process.is_alive()

    def end(self) -> None:
        """Kill the process and delete its error output."""
        self._process.kill()
        self._process.join()
        self.pipe.close()
        self._errors.unlink(missing_ok=True)


def _work(judge: Judge, pipe: Connection, errors: str) -> None:
    """Judge cases from a pipe in the worker process.

    Standard output is discarded, and standard error goes to the file `errors`.
    """
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the process
    with open(os.devnull, "r+b") as null, open(errors, "ab") as error_file:
        for stream, target in ((0, null), (1, null), (2, error_file)):
            os.dup2(target.fileno(), stream)
    tracebacks = os.fdopen(os.dup(2), "ab")
    faulthandler.enable(tracebacks)
    faulthandler.register(signal.SIGUSR1, tracebacks)
    while True:
        try:
            case = pipe.recv()
        except EOFError:
            return
        pipe.send(judge(case))


def judged(judge: Judge, cases: Iterable[Any], count: int = 1) -> Iterator[tuple[Any, Verdict]]:
    """Judge cases in `count` processes, and yield each case with its verdict in order of completion.

    Args:
        judge: function that another process can import.
        cases: arguments of the function, drawn one by one as processes become free.
        count: number of processes.
    """
    waiting = iter(cases)
    workers: list[Worker] = []
    try:
        for case in waiting:
            workers.append(Worker(judge, case))
            if len(workers) == count:
                break
        while workers:
            timeout = max(0.0, min(worker.deadline for worker in workers) - time.monotonic())
            ready = wait([worker.pipe for worker in workers], timeout)
            for worker in list(workers):
                if worker.pipe in ready:
                    verdict = worker.verdict()
                elif time.monotonic() > worker.deadline:
                    verdict = worker.stopped()
                else:
                    continue
                yield worker.case, verdict
                _give_next(workers, worker, judge, waiting)
    finally:
        for worker in workers:
            worker.end()


def _give_next(workers: list[Worker], worker: Worker, judge: Judge, waiting: Iterator[Any]) -> None:
    """Give the next case to a worker or, if it has died, to a new one; end the worker after the last case."""
    case = next(waiting, None)
    if case is not None and worker.alive:
        worker.give(case)
        return
    workers.remove(worker)
    worker.end()
    if case is not None:
        workers.append(Worker(judge, case))

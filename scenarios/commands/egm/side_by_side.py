"""Several robots at once: a process each, so that none waits for another's computations.

A process ends in order when its connection is closed: when it is told to stop, and when this process is gone.
Signals of the terminal, which reach all of them, are this process' alone.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING

from scenarios.commands.egm.session import Job, Served, Session
from scenarios.running.interrupts import told_to_stop
from twin.faults import told

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Tell = Callable[[int, str], None]
"""Told a robot's number, and a line of it."""


def served(jobs: Sequence[Job], tell: Tell) -> tuple[list[Served], int]:
    """Serve until all have ended; what came of each, and the number of the signal that ended them, if any."""
    import multiprocessing
    from multiprocessing.connection import wait

    context = multiprocessing.get_context("spawn")
    ours, processes = [], []
    for job in jobs:
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(there, job), daemon=True)
        with _signals_held():
            process.start()
        there.close()
        ours.append(here)
        processes.append(process)
    results: dict[int, Served] = {}
    with told_to_stop(lambda: [_stop(here) for here in ours]) as interrupt:
        open_ones = dict(zip(ours, range(len(jobs)), strict=True))
        while open_ones:
            for here in wait(list(open_ones)):
                place = open_ones[here]
                try:
                    word = here.recv()
                except (EOFError, OSError):
                    del open_ones[here]
                    continue
                if isinstance(word, Served):
                    results[place] = word
                else:
                    tell(place, word)
    for process in processes:
        process.join()
    failed = (Served.failed(f"its process ended with status {process.exitcode}") for process in processes)
    return [results.get(place, no) for place, no in enumerate(failed)], interrupt.number


def _stop(connection: Connection) -> None:
    """Ask a process to stop, if it has not ended."""
    try:
        connection.send("stop")
    except OSError:
        pass


@contextmanager
def _signals_held() -> Iterator[None]:
    """A process that is started here never gets the signals that a person ends a command with."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    held = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection, job: Job) -> None:
    """What a process does: one robot; it ends when its connection does."""
    session = Session(job, connection.send)
    Thread(target=_stop_when_told, args=(connection, session), daemon=True).start()
    try:
        result = session.serve()
    except Exception as error:
        result = Served.failed(told(error))
    try:
        connection.send(result)
    except OSError:  # nobody is there to be told
        pass


def _stop_when_told(connection: Connection, session: Session) -> None:
    try:
        connection.recv()
    except (EOFError, OSError):
        pass
    session.stop()

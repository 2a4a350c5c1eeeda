"""Several robots at once: a process each, so that none waits for another's computations.

A process is told what to serve on its standard input, and to stop in order by a line more; where the input
ends, because who started it has, it ends at once.  Signals of the terminal do not reach it.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from scenarios.cli.egm.serving import Job, Served, Serving
from scenarios.running.interrupts import told_to_stop
from twin.atomic_file import abandon
from twin.errors import TwinError, told, told_with_kind

CODE = "import sys; sys.path[:] = {}; from scenarios.cli.egm.side_by_side import main; main()"
STOP = b"stop\n"


def served(jobs: Sequence[Job], tell: Callable[[int, str], object]) -> tuple[list[Served], int]:
    """Serve until all have ended.

    Args:
        jobs: the robots.
        tell: called with the place of a robot, and a line of it.

    Returns:
        what came of each, and the number of the signal that ended them, 0 if none did.
    """
    came: SimpleQueue[tuple[int, str | Served]] = SimpleQueue()
    results: dict[int, Served] = {}
    with ExitStack() as stack:
        processes = [stack.enter_context(_started(job)) for job in jobs]
        interrupt = stack.enter_context(told_to_stop(lambda: [_stop(process) for process in processes]))
        for place, process in enumerate(processes):
            Thread(target=_listen, args=(place, process, came.put), daemon=True).start()
        while len(results) < len(jobs):
            place, word = came.get()
            if isinstance(word, Served):
                results[place] = word
            else:
                tell(place, word)
    return [results[place] for place in range(len(jobs))], interrupt.number


def _started(job: Job) -> subprocess.Popen[bytes]:
    """A process that serves, and imports what can be imported here."""
    process = subprocess.Popen(
        [sys.executable, "-c", CODE.format(repr(sys.path))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None
    with suppress(OSError):
        pickle.dump(job, process.stdin)
        process.stdin.flush()
    return process


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Have a process end in order, if it has not."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.write(STOP)
        process.stdin.flush()


def _listen(place: int, process: subprocess.Popen[bytes], put: Callable[[tuple], object]) -> None:
    """Pass on what a process tells, to its result."""
    assert process.stdout is not None
    with suppress(Exception):  # the end of what it tells, or half a word
        while True:
            word = pickle.load(process.stdout)
            put((place, word))
            if isinstance(word, Served):
                return
    put((place, Served(f"its process ended with status {process.wait()}")))


def main() -> None:
    """What a process does: one robot."""
    inbox, outbox = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with suppress(OSError):  # closed by whoever started the command
        os.dup2(2, 1)  # what somebody's code prints
    lock = Lock()

    def tell(word: Any) -> None:
        with lock, suppress(OSError):  # nobody is there to be told
            pickle.dump(word, outbox)
            outbox.flush()

    serving = Serving(pickle.load(inbox), tell)
    Thread(target=_obey, args=(inbox, serving), daemon=True).start()
    try:
        result = serving.serve()
    except (TwinError, ValueError, OSError) as error:
        result = Served(told(error), refused=True)
    except Exception as error:
        result = Served(told_with_kind(error))
    tell(result)


def _obey(inbox: Any, serving: Serving) -> None:
    """Stop when told to; end the process at once when there is nobody any more who could tell."""
    while inbox.readline() == STOP:
        serving.stop()
    abandon()
    os._exit(1)

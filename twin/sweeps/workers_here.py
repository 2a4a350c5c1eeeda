"""Worker processes of this machine for a scheduler of Dask's `distributed`; one that ends is replaced."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from shutil import rmtree
from tempfile import TemporaryDirectory
from threading import Lock, Thread

from twin.errors import ClusterError, told
from twin.threads import VARIABLE


class WorkersHere:
    """Worker processes of this machine; one that ends is replaced.

    Args:
        address: of their scheduler.
        count: how many.
    """

    MOST_DEATHS = 3
    """Processes in succession, in one worker's place, that end before they are `OLD`."""

    OLD = 20.0

    def __init__(self, address: str, count: int) -> None:
        self._address, self._count = address, count
        self._running: set[subprocess.Popen[bytes]] = set()
        self._changing, self._over = Lock(), False
        self._fault: str | None = None
        self._folder = TemporaryDirectory(prefix="irb-twin-workers-", ignore_cleanup_errors=True)

    def __enter__(self) -> WorkersHere:
        for _ in range(self._count):
            Thread(target=self._keep_one, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changing:
            self._over = True
            for process in self._running:
                process.kill()
        for process in self._running:
            _ended(process)
        self._folder.cleanup()

    def checked(self) -> int:
        """How many there are.

        Raises:
            ClusterError: they end again and again.
        """
        if self._fault is not None:
            raise ClusterError(self._fault)
        return self._count

    def _keep_one(self) -> None:
        """Start a process, and its successors."""
        deaths = 0
        while True:
            began = time.monotonic()
            try:
                process = self._started()
            except OSError as error:
                self._fault = f"no worker process can be started: {told(error)}"
                return
            if process is None:
                return
            process.wait()
            if self._over:
                return
            status = _ended(process)
            with self._changing:
                self._running.discard(process)
            deaths = deaths + 1 if time.monotonic() - began < self.OLD else 1
            if deaths == self.MOST_DEATHS:
                how = signal.Signals(-status).name if status < 0 else f"status {status}"
                self._fault = f"worker processes end again and again, the last one with {how}"
                return

    def _started(self) -> subprocess.Popen[bytes] | None:
        """A new process, with the modules that can be imported here; `None` once they are not wanted."""
        code = f"import sys; sys.path[:] = {sys.path!r}; from twin.sweeps.workers_here import serve; serve()"
        words = [sys.executable, "-c", code, self._address, self._folder.name]
        with self._changing:
            if self._over:
                return None
            process = subprocess.Popen(words, stdin=subprocess.PIPE, env=os.environ | {VARIABLE: "1"})
            self._running.add(process)
            return process


def _ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end of a process; its status."""
    assert process.stdin is not None
    process.stdin.close()
    return process.wait()


def serve() -> None:
    """Be a worker process, until whoever started it ends, however that happens."""
    import asyncio

    address, folder = sys.argv[1:]
    inbox = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with suppress(OSError):  # what somebody's code prints is no result of the command
        os.dup2(2, 1)
    for name in ("SIGINT", "SIGHUP"):  # of the whole terminal; whoever started this one decides
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    Thread(target=_end_with, args=(inbox, folder), daemon=True).start()

    async def work() -> None:
        import distributed

        async with distributed.Worker(
            address, nthreads=1, memory_limit=0, dashboard=False, local_directory=folder
        ) as worker:
            await worker.finished()

    with quiet():
        asyncio.run(work())


def _end_with(inbox: int, folder: str) -> None:
    """End this process at once when the other end of a pipe is closed, and nobody else removes its folder."""
    os.read(inbox, 1)
    rmtree(folder, ignore_errors=True)
    os._exit(0)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep distributed from logging: what matters to the user is raised."""
    import distributed  # sets its loggers up

    del distributed
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)

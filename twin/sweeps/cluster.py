"""Chunks of a sweep carried out by other processes, here or on other machines, with Dask's `distributed`.

On this machine there is a scheduler in this process, and worker processes, each of which runs one chunk at a
time.  They are started anew, not forked, and end with this process, however it ends.  One that is killed is
replaced, and its chunk is done again.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from twin.errors import ClusterError, TwinError
from twin.faults import told, told_with_kind
from twin.jit import source_digest
from twin.threads import VARIABLE, thread_count
from twin.version import __version__

if TYPE_CHECKING:
    from twin.sweeps.running import Work

ANSWER_WITHIN = 10.0
"""A scheduler that does not answer in this time, in [s], is not there; nor are workers."""

CHUNKS_IN_FLIGHT = 2
"""For each thread of the workers, so that none waits for its next one."""

LOOK_EVERY = 0.5
"""In [s]: whether the workers are still there."""


class Done(NamedTuple):
    """What comes of a chunk: its outcomes, what was warned of, or a pickled error and where it was raised."""

    rows: np.ndarray | None
    warnings: tuple[tuple[str, type[Warning]], ...] = ()
    fault: bytes = b""
    place: str = ""


class Cluster:
    """Worker processes; they are started when they are first needed, and end with the block.

    Args:
        workers: so many on this machine; as many as `twin.threads` has threads by default.
        scheduler: `"tcp://host:port"` of a cluster that exists, instead.

    Raises:
        ClusterError: the package `distributed` is missing; a scheduler does not answer in `ANSWER_WITHIN`,
            has no workers, or goes away; workers have another version of this project, or end again and
            again.
        ValueError: workers and a scheduler, or fewer than one worker.
    """

    def __init__(self, *, workers: int | None = None, scheduler: str | None = None) -> None:
        if workers is not None and scheduler is not None:
            raise ValueError("expected a number of workers or a scheduler, which has its own, got both")
        if workers is not None and not workers >= 1:
            raise ValueError(f"expected at least 1 worker, got {workers}")
        self._distributed()
        self._scheduler = scheduler
        self._workers = workers
        self._open = ExitStack()
        self._client: Any = None
        self._here: WorkersHere | None = None

    @staticmethod
    def _distributed() -> Any:
        try:
            import distributed
        except ImportError:
            raise ClusterError(
                "other processes need the package distributed: pip install 'irb-twin[cluster]'"
            ) from None
        return distributed

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        self._client = self._here = None

    def run(self, work: Work, parts: Iterable[tuple[int, np.ndarray]]) -> Iterator[tuple[int, np.ndarray]]:
        """See `twin.sweeps.running.Pool.run`."""
        import cloudpickle  # which distributed depends on; it knows what a script defines, too

        content = cloudpickle.dumps(work)
        if self._client is None:
            self._client = self._connected()
        ended: SimpleQueue[Any] = SimpleQueue()
        waiting, under_way, said = iter(parts), {}, set()
        try:
            while True:
                while len(under_way) < CHUNKS_IN_FLIGHT * self._threads():
                    if (part := next(waiting, None)) is None:
                        break
                    future = self._client.submit(chunk_done, content, part[1], identity(), pure=False)
                    under_way[future.key] = (part[0], future)
                    future.add_done_callback(ended.put)
                if not under_way:
                    break
                try:
                    number, future = under_way.pop(ended.get(timeout=LOOK_EVERY).key)
                except Empty:
                    continue
                rows = _rows(self._result(future), said)
                del future
                yield number, rows
        finally:
            with suppress(Exception):
                self._client.cancel([future for _, future in under_way.values()], force=True)

    def _threads(self) -> int:
        """How many chunks the workers can run at once; raises if there are none any more."""
        if self._here is not None:
            return self._here.checked()
        return max(1, sum(self._client.nthreads().values()))

    def _result(self, future: Any) -> Done:
        """What a worker sent."""
        from concurrent.futures import CancelledError

        while True:
            try:
                return future.result(timeout=LOOK_EVERY)
            except TimeoutError:
                self._threads()
            except (CancelledError, OSError) as error:
                raise ClusterError(f"the scheduler of the workers went away ({told(error)})") from None
            except Exception as error:
                name = type(error).__name__
                if name == "KilledWorker":
                    raise ClusterError(
                        "a chunk of the sweep ended its worker process again and again: for want of memory, "
                        "or by a fault in compiled code"
                    ) from None
                raise ClusterError(
                    f"a worker could not take a chunk ({told_with_kind(error)}): scheduler and workers need "
                    f"irb-twin {__version__}, as here, and what the sweep runs"
                ) from None

    def _connected(self) -> Any:
        """A client of the scheduler."""
        distributed = self._distributed()
        self._open.enter_context(_quiet())
        if self._scheduler is None:
            cluster = self._open.enter_context(
                distributed.LocalCluster(
                    n_workers=0, host="127.0.0.1", dashboard_address=None, silence_logs=logging.CRITICAL
                )
            )
            address, workers = cluster.scheduler_address, self._workers or thread_count()
            client = self._open.enter_context(distributed.Client(address, set_as_default=False))
            self._here = self._open.enter_context(WorkersHere(address, workers))
            return client
        try:
            client = distributed.Client(self._scheduler, timeout=ANSWER_WITHIN, set_as_default=False)
        except (OSError, TimeoutError):
            raise ClusterError(
                f"the scheduler {self._scheduler} does not answer within {ANSWER_WITHIN:g} s"
            ) from None
        except ValueError as error:
            raise ClusterError(
                f"expected a scheduler as tcp://host:port, got {self._scheduler!r} ({told(error)})"
            ) from None
        self._open.enter_context(client)
        try:
            client.wait_for_workers(1, timeout=ANSWER_WITHIN)
        except TimeoutError:
            raise ClusterError(
                f"the scheduler {self._scheduler} has no workers, nor got any within {ANSWER_WITHIN:g} s"
            ) from None
        return client


def _rows(done: Done, said: set[tuple[str, type[Warning]]]) -> np.ndarray:
    """The outcomes of a chunk; what was warned of is said once, and what was raised there is raised here."""
    for warning in done.warnings:
        if warning not in said:
            said.add(warning)
            warnings.warn(*warning, stacklevel=2)
    if done.fault:
        raise pickle.loads(done.fault) from RuntimeError(f"in a worker process:\n{done.place}")
    assert done.rows is not None
    return done.rows


def identity() -> tuple[str, str]:
    """What has to be the same in all processes: version and source of this project."""
    return __version__, source_digest("twin").hex()[:16]


def chunk_done(content: bytes, values: np.ndarray, wanted: tuple[str, str]) -> Done:
    """Carry out a chunk in a worker; whatever happens, there is an answer."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("default")
        try:
            if identity() != wanted:
                mine, other = (" with sources ".join(one) for one in (wanted, identity()))
                raise ClusterError(f"the workers have irb-twin {other}, and this process has {mine}")
            rows = _loaded(content).rows(values)
        except Exception as error:
            return Done(None, fault=_portable(error), place=traceback.format_exc())
    return Done(rows, tuple((str(one.message), one.category) for one in given))


@lru_cache(maxsize=1)
def _loaded(content: bytes) -> Work:
    """The work, with what it has loaded, for all chunks of a sweep."""
    return pickle.loads(content)


def _portable(error: Exception) -> bytes:
    """An error as another process can read it; one that cannot travel as a sentence."""
    with suppress(Exception):
        content = pickle.dumps(error)
        pickle.loads(content)
        return content
    return pickle.dumps(TwinError(told_with_kind(error)))


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
            process.wait()
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
        while deaths < self.MOST_DEATHS:
            began = time.monotonic()
            try:
                process = self._started()
            except OSError as error:
                self._fault = f"no worker process can be started: {told(error)}"
                return
            if process is None:
                return
            status = process.wait()
            if self._over:
                return
            with self._changing:
                self._running.discard(process)
            deaths = deaths + 1 if time.monotonic() - began < self.OLD else 1
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        self._fault = f"worker processes end again and again, the last one with {how}"

    def _started(self) -> subprocess.Popen[bytes] | None:
        """A new process, with the modules that can be imported here; `None` once they are not wanted."""
        code = f"import sys; sys.path[:] = {sys.path!r}; from twin.sweeps.cluster import serve; serve()"
        words = [sys.executable, "-c", code, self._address, self._folder.name]
        with self._changing:
            if self._over:
                return None
            process = subprocess.Popen(words, stdin=subprocess.PIPE, env=os.environ | {VARIABLE: "1"})
            self._running.add(process)
            return process


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
    Thread(target=_end_with, args=(inbox,), daemon=True).start()

    async def work() -> None:
        import distributed

        async with distributed.Worker(
            address, nthreads=1, memory_limit=0, dashboard=False, local_directory=folder
        ) as worker:
            await worker.finished()

    with _quiet():
        asyncio.run(work())


def _end_with(inbox: int) -> None:
    """End this process at once when the other end of a pipe is closed."""
    os.read(inbox, 1)
    os._exit(0)


@contextmanager
def _quiet() -> Iterator[None]:
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

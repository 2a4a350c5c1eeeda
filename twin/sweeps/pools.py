"""Who carries out the chunks of a sweep: threads of this process, processes here, or a Dask cluster.

Each point is a run of its own, and each chunk is run by one thread: so the figures are the same to the bit
for any number of threads, processes and interruptions, on one kind of processor.  A process that is killed is
replaced, and its chunk is done again.
"""

from __future__ import annotations

import logging
import pickle
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from itertools import islice
from math import isnan
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, NamedTuple

import numpy as np

from twin.errors import (
    ClusterError,
    PluginError,
    TwinError,
    UnknownNameError,
    describe_error,
    describe_error_with_type,
)
from twin.sweeps.trial import OUTCOME, Experiment, Trial, dependencies, differences, surroundings
from twin.threads import in_threads, thread_count
from twin.version import __version__
from twin.worker_processes import Answer, Workers


class Work(NamedTuple):
    """What is done with every point.

    Attributes:
        experiment: makes a trial of it.
        names: d, of the quantities.
        engine: whether PyBullet runs the trial, or compiled code.
        depends: what the outcomes depend on here, which other processes compare with theirs.
    """

    experiment: Experiment
    names: tuple[str, ...]
    engine: bool = False
    depends: Mapping[str, str] | None = None

    def nominal_trial(self) -> Trial:
        """The trial with nominal values."""
        nominal = {name: self.experiment.nominal(name) for name in self.names}
        return self.experiment.trial({name: value for name, value in nominal.items() if not isnan(value)})

    def trial(self, point: Sequence[float]) -> Trial:
        """The trial of one point (d,)."""
        return self.experiment.trial(dict(zip(self.names, point, strict=True)))

    def rows(self, values: np.ndarray) -> np.ndarray:
        """The outcomes (N,) of points (N, d), one after the other in this thread."""
        from twin.sweeps import evaluation

        rows = np.empty(len(values), dtype=OUTCOME)
        trials, made = [], []
        for number, point in enumerate(values.tolist()):
            try:
                trials.append(self.trial(point))
                made.append(number)
            except (UnknownNameError, PluginError):
                raise
            except (TwinError, ValueError):
                rows[number] = evaluation.unmade()
        if trials:
            rows[made] = (
                evaluation.engine_outcomes(trials) if self.engine else evaluation.outcomes(trials, threads=1)
            )
        return rows


class Pool:
    """Who carries out chunks; a context, at whose end all of them are gone."""

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        """End what was started."""

    def run(self, work: Work, parts: Iterable[tuple[int, np.ndarray]]) -> Iterator[tuple[int, np.ndarray]]:
        """The outcomes of chunks of points, in the order in which they are done.

        Args:
            work: what is done with a point.
            parts: numbers of chunks, and their points (N, d).

        Yields:
            the numbers of chunks, and their outcomes (N,).
        """
        raise NotImplementedError


class LocalThreads(Pool):
    """Threads of this process: making trials is Python, and takes turns; running them is not."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads

    def run(self, work: Work, parts: Iterable[tuple[int, np.ndarray]]) -> Iterator[tuple[int, np.ndarray]]:
        """See `Pool.run`; the caller only waits, so that Ctrl-C ends it at once."""
        waiting, taking = iter(parts), Lock()
        done: SimpleQueue[tuple[int, np.ndarray] | BaseException | None] = SimpleQueue()
        over = False

        def serve() -> None:
            try:
                while not over:
                    with taking:
                        part = next(waiting, None)
                    if part is None:
                        break
                    done.put((part[0], work.rows(part[1])))
                done.put(None)
            except BaseException as error:  # it is raised again where the rows are asked for
                done.put(error)

        serving = self._threads or thread_count()
        for _ in range(serving):
            Thread(target=serve, daemon=True).start()
        try:
            while serving:
                told = done.get()
                if isinstance(told, BaseException):
                    raise told
                if told is None:
                    serving -= 1
                else:
                    yield told
        finally:
            over = True


def pool_for(engine: bool = False, workers: int | None = None, scheduler: str | None = None) -> Pool:
    """Who carries out a sweep: threads of this process, unless other processes are asked for or needed.

    Args:
        engine: PyBullet is to run the trials, which holds one core a process.
        workers: so many processes on this machine.
        scheduler: `"tcp://host:port"` of a Dask cluster that exists.

    Raises:
        ClusterError: the package `distributed` is missing.
        ValueError: workers and a scheduler, or fewer than one worker.
    """
    if not engine and workers is None and scheduler is None:
        return LocalThreads()
    if workers is not None and scheduler is not None:
        raise ValueError("expected a number of workers or a scheduler, which has its own, got both")
    return Processes(workers) if scheduler is None else Cluster(scheduler)


ANSWER_WITHIN = 10.0
"""A scheduler that does not answer in this time, in [s], is not there; nor are workers."""

GONE_AFTER = 60.0
"""A cluster that has had no workers for so long, in [s], gets no more."""

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


class Processes(Pool):
    """Worker processes of this machine; they are started when they are first needed, and end with the block.

    Args:
        workers: so many; as many as `twin.threads` has threads by default.

    Raises:
        ClusterError: a chunk ended its process twice; workers have another version of this project.
        ValueError: fewer than one worker.
    """

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and not workers >= 1:
            raise ValueError(f"expected at least 1 worker, got {workers}")
        self._workers = Workers(workers or thread_count())

    def __exit__(self, *_: object) -> None:
        self._workers.__exit__()

    def run(self, work: Work, parts: Iterable[tuple[int, np.ndarray]]) -> Iterator[tuple[int, np.ndarray]]:
        """See `Pool.run`."""
        content, said = _content(work), set()
        tasks = ((number, (chunk_done, (content, values))) for number, values in parts)
        for number, event in self._workers.run(tasks):
            if isinstance(event, Answer):
                if event.fault:
                    raise ClusterError(f"a chunk of the sweep was not computed: {event.fault}")
                yield number, _rows(event.value, said)


class Cluster(Pool):
    """The workers of a Dask cluster.

    Args:
        scheduler: its address, as `"tcp://host:port"`.

    Raises:
        ClusterError: the package `distributed` is missing; the scheduler does not answer in `ANSWER_WITHIN`,
            has no workers, or goes away; workers have another version of this project, or end again and
            again.
    """

    def __init__(self, scheduler: str) -> None:
        try:
            import distributed
        except ImportError:
            raise ClusterError(
                "a scheduler needs the package distributed: pip install 'irb-twin[cluster]'"
            ) from None
        self._distributed: Any = distributed
        self._scheduler = scheduler
        self._open = ExitStack()
        self._client: Any = None
        self._seen = np.inf

    def __exit__(self, *_: object) -> None:
        self._open.close()
        self._client = None

    def run(self, work: Work, parts: Iterable[tuple[int, np.ndarray]]) -> Iterator[tuple[int, np.ndarray]]:
        """See `Pool.run`."""
        content = _content(work)
        if self._client is None:
            self._client = self._connected()
        client = self._client
        ended: SimpleQueue[Any] = SimpleQueue()
        waiting, under_way, said = iter(parts), {}, set()
        try:
            told_once = client.submit(bytes, content, pure=False)  # workers hand it on to each other
            while True:
                room = CHUNKS_IN_FLIGHT * self._threads() - len(under_way)
                for number, values in islice(waiting, max(room, 0)):
                    future = client.submit(chunk_done, told_once, values, pure=False)
                    under_way[future.key] = number, future
                    future.add_done_callback(ended.put)
                if not under_way:
                    break
                try:
                    number, future = under_way.pop(ended.get(timeout=LOOK_EVERY).key)
                except Empty:
                    continue
                rows = _rows(self._result(future), said)
                yield number, rows
        finally:
            with suppress(Exception):
                client.cancel([future for _, future in under_way.values()], force=True)

    def _threads(self) -> int:
        """How many chunks the workers can run at once.

        Raises:
            ClusterError: there are none any more.
        """
        try:
            threads = sum(self._client.nthreads().values())
        except (OSError, TimeoutError) as error:
            raise self._gone(error) from None
        now = time.monotonic()
        if threads:
            self._seen = now
        elif now > self._seen + GONE_AFTER:
            raise ClusterError(f"the scheduler {self._scheduler} has had no workers for {GONE_AFTER:g} s")
        return threads

    def _gone(self, error: BaseException) -> ClusterError:
        return ClusterError(f"the scheduler {self._scheduler} went away: {describe_error(error)}")

    def _result(self, future: Any) -> Done:
        """What a worker sent."""
        from concurrent.futures import CancelledError

        while True:
            try:
                return future.result(timeout=LOOK_EVERY)
            except TimeoutError:
                self._threads()
            except (CancelledError, OSError) as error:
                raise self._gone(error) from None
            except Exception as error:
                name = type(error).__name__
                if name == "KilledWorker":
                    raise ClusterError(
                        "a chunk of the sweep ended its worker process again and again: for want of memory, "
                        "or by a fault in compiled code"
                    ) from None
                raise ClusterError(
                    f"a worker could not take a chunk ({describe_error_with_type(error)}): scheduler and "
                    f"workers need irb-twin {__version__}, as here, and what the sweep runs"
                ) from None

    def _connected(self) -> Any:
        """A client of the scheduler."""
        distributed = self._distributed
        self._open.enter_context(_quiet())
        _require_answer(self._scheduler)
        client = distributed.Client(self._scheduler, timeout=ANSWER_WITHIN, set_as_default=False)
        self._open.callback(_close, client)
        try:
            client.wait_for_workers(1, timeout=ANSWER_WITHIN)
        except TimeoutError:
            raise ClusterError(
                f"the scheduler {self._scheduler} has no workers, nor got any within {ANSWER_WITHIN:g} s"
            ) from None
        self._seen = time.monotonic()
        return client


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep distributed from logging: what matters to the user is raised."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def _require_answer(scheduler: str) -> None:
    """Raise `ClusterError` unless a scheduler answers; a client that waits in vain says more than that."""
    import asyncio

    import distributed

    async def ask() -> None:
        async with distributed.rpc(scheduler, timeout=ANSWER_WITHIN) as there:
            await there.identity()

    try:
        in_threads(lambda: asyncio.run(asyncio.wait_for(ask(), ANSWER_WITHIN)), 1)
    except ValueError as error:
        raise ClusterError(f"expected a scheduler as tcp://host:port, got {scheduler!r}: {error}") from None
    except (OSError, asyncio.TimeoutError):
        raise ClusterError(f"the scheduler {scheduler} does not answer within {ANSWER_WITHIN:g} s") from None


def _close(client: Any) -> None:
    """Leave a scheduler, which may be gone."""
    with suppress(Exception):
        client.close(timeout=2.0)


def _content(work: Work) -> bytes:
    """The work, and what it depends on here, as workers get it."""
    from numba import cloudpickle  # which knows what a script defines, too

    return pickle.dumps((work.depends or surroundings(), cloudpickle.dumps(work)))


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


def chunk_done(content: bytes, values: np.ndarray) -> Done:
    """Carry out a chunk in a worker; whatever happens, there is an answer."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("default")
        try:
            rows = _loaded(content).rows(values)
        except Exception as error:
            return Done(None, fault=_portable(error), place=traceback.format_exc())
    return Done(rows, tuple((str(one.message), one.category) for one in given))


@lru_cache(maxsize=1)
def _loaded(content: bytes) -> Work:
    """The work, with what it has loaded, for all chunks of a sweep.

    Raises:
        ClusterError: something that the outcomes depend on is not here what it is where the sweep began.
    """
    wanted, told = pickle.loads(content)
    _require_same(wanted, surroundings())
    work: Work = pickle.loads(told)
    if work.depends is not None:
        _require_same(wanted, dependencies(work.nominal_trial()))
    return work


def _require_same(wanted: Mapping[str, str], here: Mapping[str, str]) -> None:
    """Raise `ClusterError` where this worker differs; code that one side alone has loaded is not compared."""
    both = wanted.keys() & here.keys()
    if told := differences(*({name: one[name] for name in here if name in both} for one in (wanted, here))):
        raise ClusterError(f"the workers are not as the process that began the sweep (there differ: {told})")


def _portable(error: Exception) -> bytes:
    """An error as another process can read it; one that cannot travel as a sentence."""
    with suppress(Exception):
        content = pickle.dumps(error)
        pickle.loads(content)
        return content
    return pickle.dumps(TwinError(describe_error_with_type(error)))

"""Pools that run the chunks of a sweep: threads of this process, local processes, or a Dask cluster.

Each point is a separate run, and each chunk is run by one thread.  So the figures are the same to the bit for
any number of threads, processes and interruptions, on one kind of processor.  A process that is killed is
replaced, and its chunk is repeated.
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

from twin.base.errors import (
    ClusterError,
    PluginError,
    TwinError,
    UnknownNameError,
    describe_error,
    describe_error_with_type,
)
from twin.base.threads import in_threads, thread_count
from twin.base.version import __version__
from twin.base.worker_processes import Answer, Workers
from twin.studies.sweeps.trial import Experiment, Trial, dependencies, differences, outcome_type, surroundings


class Work(NamedTuple):
    """Work at every point of a sweep.

    Attributes:
        experiment: the experiment, which makes the trial of a point.
        names: names of the d quantities.
        engine: whether PyBullet runs the trial, instead of compiled code.
        depends: digests of what the outcomes depend on in this process; workers compare theirs.
        metrics: names of the further figures of the experiment's trials.
    """

    experiment: Experiment
    names: tuple[str, ...]
    engine: bool = False
    depends: Mapping[str, str] | None = None
    metrics: tuple[str, ...] = ()

    def nominal_trial(self) -> Trial:
        """Return the trial with nominal values."""
        nominal = {name: self.experiment.nominal(name) for name in self.names}
        return self.experiment.trial({name: value for name, value in nominal.items() if not isnan(value)})

    def trial(self, point: Sequence[float]) -> Trial:
        """Return the trial of one point (d,)."""
        return self.experiment.trial(dict(zip(self.names, point, strict=True)))

    def rows(self, values: np.ndarray) -> np.ndarray:
        """Return the outcomes (N,) of points (N, d), one after the other in this thread."""
        from twin.studies.sweeps import evaluation

        rows = np.empty(len(values), dtype=outcome_type(self.metrics))
        trials, made = [], []
        for number, point in enumerate(values.tolist()):
            try:
                trials.append(self.trial(point))
                made.append(number)
            except (UnknownNameError, PluginError):
                raise
            except (TwinError, ValueError):
                rows[number] = evaluation.unmade(self.metrics)
        if trials:
            rows[made] = (
                evaluation.engine_outcomes(trials) if self.engine else evaluation.outcomes(trials, threads=1)
            )
        return rows


class Pool:
    """Base class of pools, which are contexts: at their end all workers have ended."""

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        """End all workers."""

    def run(self, work: Work, parts: Iterable[tuple[int, np.ndarray]]) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the outcomes of chunks of points, in the order in which they are finished.

        Args:
            work: the work at every point.
            parts: numbers of the chunks, and their points (N, d).

        Yields:
            Number of a chunk, and its outcomes (N,).
        """
        raise NotImplementedError


class LocalThreads(Pool):
    """Threads of this process; they make trials in turn, in Python, and run them in parallel."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads

    def run(self, work: Work, parts: Iterable[tuple[int, np.ndarray]]) -> Iterator[tuple[int, np.ndarray]]:
        """Run chunks, see `Pool.run`; the caller only waits, so that Ctrl-C ends it at once."""
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
            except BaseException as error:  # raised again in the calling thread
                done.put(error)

        serving = self._threads or thread_count()
        for _ in range(serving):
            Thread(target=serve, daemon=True).start()
        try:
            while serving:
                answer = done.get()
                if isinstance(answer, BaseException):
                    raise answer
                if answer is None:
                    serving -= 1
                else:
                    yield answer
        finally:
            over = True


def pool_for(engine: bool = False, workers: int | None = None, scheduler: str | None = None) -> Pool:
    """Return the pool for a sweep: threads of this process, unless processes are requested or required.

    Args:
        engine: whether PyBullet runs the trials, which needs one process per core.
        workers: number of processes on this machine.
        scheduler: address of a running Dask cluster, as `"tcp://host:port"`.

    Raises:
        ClusterError: the package `distributed` is missing.
        ValueError: both workers and a scheduler are given, or fewer than one worker.

    Example:
        >>> from twin.studies.sweeps.pools import pool_for
        >>> with pool_for() as pool:
        ...     print(type(pool).__name__)
        LocalThreads
    """
    if not engine and workers is None and scheduler is None:
        return LocalThreads()
    if workers is not None and scheduler is not None:
        raise ValueError("expected either a number of workers or a scheduler, got both")
    return Processes(workers) if scheduler is None else Cluster(scheduler)


ANSWER_WITHIN = 10.0
"""Time in [s] in which a scheduler must answer and workers must appear."""

GONE_AFTER = 60.0
"""Time in [s] after which a cluster without workers is considered lost."""

CHUNKS_IN_FLIGHT = 2
"""Number of chunks per thread of the workers, so that none waits for its next chunk."""

LOOK_EVERY = 0.5
"""Period in [s] of the check whether the workers still exist."""


class Done(NamedTuple):
    """Answer for a chunk: its outcomes, its warnings, or a pickled error and its traceback."""

    rows: np.ndarray | None
    warnings: tuple[tuple[str, type[Warning]], ...] = ()
    fault: bytes = b""
    place: str = ""


class Processes(Pool):
    """Worker processes of this machine; they start when they are first needed, and end with the block.

    Args:
        workers: number of processes; by default the number of threads of `twin.base.threads`.

    Raises:
        ClusterError: a chunk ended its process twice, or workers have another version of this project.
        ValueError: there is fewer than one worker.
    """

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and not workers >= 1:
            raise ValueError(f"expected at least 1 worker, got {workers}")
        self._workers = Workers(
            workers or thread_count(), modules=("twin.physics.control.rollout", "twin.base.jit:prepare")
        )

    def __exit__(self, *_: object) -> None:
        self._workers.__exit__()

    def run(self, work: Work, parts: Iterable[tuple[int, np.ndarray]]) -> Iterator[tuple[int, np.ndarray]]:
        """Run chunks, see `Pool.run`."""
        content, reported = _content(work), set()
        tasks = ((number, (chunk_done, (content, values))) for number, values in parts)
        for number, event in self._workers.run(tasks):
            if isinstance(event, Answer):
                if event.fault:
                    raise ClusterError(f"a chunk of the sweep was not computed: {event.fault}")
                yield number, _rows(event.value, reported)


class Cluster(Pool):
    """Workers of a Dask cluster.

    Args:
        scheduler: its address, as `"tcp://host:port"`.

    Raises:
        ClusterError: the package `distributed` is missing; the scheduler does not answer in `ANSWER_WITHIN`,
            has no workers, or is lost; workers have another version of this project, or end repeatedly.
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
        """Run chunks, see `Pool.run`."""
        content = _content(work)
        if self._client is None:
            self._client = self._connected()
        client = self._client
        ended: SimpleQueue[Any] = SimpleQueue()
        waiting, under_way, reported = iter(parts), {}, set()
        try:
            shared_content = client.submit(bytes, content, pure=False)  # workers forward it to each other
            while True:
                room = CHUNKS_IN_FLIGHT * self._threads() - len(under_way)
                for number, values in islice(waiting, max(room, 0)):
                    future = client.submit(chunk_done, shared_content, values, pure=False)
                    under_way[future.key] = number, future
                    future.add_done_callback(ended.put)
                if not under_way:
                    break
                try:
                    number, future = under_way.pop(ended.get(timeout=LOOK_EVERY).key)
                except Empty:
                    continue
                rows = _rows(self._result(future), reported)
                yield number, rows
        finally:
            with suppress(Exception):
                client.cancel([future for _, future in under_way.values()], force=True)

    def _threads(self) -> int:
        """Return how many chunks the workers can run at once.

        Raises:
            ClusterError: the scheduler is lost, or has had no workers for `GONE_AFTER`.
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
        return ClusterError(f"the scheduler {self._scheduler} is lost: {describe_error(error)}")

    def _result(self, future: Any) -> Done:
        """Return the answer of a worker."""
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
                        "a chunk of the sweep ended its worker process repeatedly: memory may be "
                        "insufficient, or compiled code may have crashed"
                    ) from None
                raise ClusterError(
                    f"a worker could not run a chunk ({describe_error_with_type(error)}): scheduler and "
                    f"workers need irb-twin {__version__}, as here, and the code of the experiment"
                ) from None

    def _connected(self) -> Any:
        """Return a client of the scheduler."""
        distributed = self._distributed
        self._open.enter_context(_quiet())
        _require_answer(self._scheduler)
        client = distributed.Client(self._scheduler, timeout=ANSWER_WITHIN, set_as_default=False)
        self._open.callback(_close, client)
        try:
            client.wait_for_workers(1, timeout=ANSWER_WITHIN)
        except TimeoutError:
            raise ClusterError(
                f"the scheduler {self._scheduler} had no workers within {ANSWER_WITHIN:g} s"
            ) from None
        self._seen = time.monotonic()
        return client


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the log messages of `distributed`, as all relevant errors are raised."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def _require_answer(scheduler: str) -> None:
    """Raise `ClusterError` unless a scheduler answers, with a clearer message than that of a client."""
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
    """Close a client, whose scheduler may be lost."""
    with suppress(Exception):
        client.close(timeout=2.0)


def _content(work: Work) -> bytes:
    """Return the pickled work and its dependencies for the workers."""
    from numba import cloudpickle  # it also pickles what a script defines

    return pickle.dumps((work.depends or surroundings(), cloudpickle.dumps(work)))


def _rows(done: Done, reported: set[tuple[str, type[Warning]]]) -> np.ndarray:
    """Return the outcomes of a chunk; repeat each of its warnings once, and raise its error here."""
    for warning in done.warnings:
        if warning not in reported:
            reported.add(warning)
            warnings.warn(*warning, stacklevel=2)
    if done.fault:
        raise pickle.loads(done.fault) from RuntimeError(f"in a worker process:\n{done.place}")
    assert done.rows is not None
    return done.rows


def chunk_done(content: bytes, values: np.ndarray) -> Done:
    """Run a chunk in a worker, and return an answer in any case."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("default")
        try:
            rows = _loaded(content).rows(values)
        except Exception as error:
            return Done(None, fault=_portable(error), place=traceback.format_exc())
    return Done(rows, tuple((str(one.message), one.category) for one in given))


@lru_cache(maxsize=1)
def _loaded(content: bytes) -> Work:
    """Unpickle the work, once for all chunks of a sweep.

    Raises:
        ClusterError: a dependency of the outcomes differs from that in the process that began the sweep.
    """
    expected, pickled_work = pickle.loads(content)
    _require_same(expected, surroundings())
    work: Work = pickle.loads(pickled_work)
    if work.depends is not None:
        _require_same(expected, dependencies(work.nominal_trial()))
    return work


def _require_same(expected: Mapping[str, str], here: Mapping[str, str]) -> None:
    """Raise `ClusterError` if this worker differs; code that only one of them has loaded is ignored."""
    both = expected.keys() & here.keys()
    if differing := differences(
        *({name: one[name] for name in here if name in both} for one in (expected, here))
    ):
        raise ClusterError(f"the workers differ from the process that began the sweep: {differing}")


def _portable(error: Exception) -> bytes:
    """Pickle an error for another process; replace an error that cannot be pickled by its description."""
    with suppress(Exception):
        content = pickle.dumps(error)
        pickle.loads(content)
        return content
    return pickle.dumps(TwinError(describe_error_with_type(error)))

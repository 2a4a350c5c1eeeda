"""A sweep carried out: every point of it becomes a row of figures.

Points are run in chunks, by threads of this process (`LocalThreads`) or by other processes (`Cluster`).  Each
point is a run of its own, and each chunk is run by one thread: so the figures are the same to the bit for any
number of threads, processes and interruptions, on one kind of processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from math import isnan
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from twin.errors import OwnCodeError, TwinError, UnknownNameError, VariationError
from twin.sweeps.chunks import KeptChunks, chunk_size, chunks, description
from twin.sweeps.outcomes import FIGURES, OUTCOME, TROUBLES
from twin.sweeps.trial import dependencies
from twin.threads import thread_count

if TYPE_CHECKING:
    from twin.sweeps.design import Points
    from twin.sweeps.trial import Experiment, Trial

Progress = Callable[[int, int], None]
"""Called with the number of points that are done, and with that of all."""


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
            except (UnknownNameError, OwnCodeError):
                raise
            except (TwinError, ValueError):
                rows[number] = evaluation.unmade()
        if trials:
            rows[made] = (
                evaluation.engine_outcomes(trials) if self.engine else evaluation.outcomes(trials, threads=1)
            )
        return rows


class Pool(Protocol):
    """Who carries out chunks; a context, at whose end all of them are gone."""

    def __enter__(self) -> Pool: ...

    def __exit__(self, *_: object) -> None: ...

    def run(self, work: Work, parts: Iterable[tuple[int, np.ndarray]]) -> Iterator[tuple[int, np.ndarray]]:
        """The outcomes of chunks of points, in the order in which they are done.

        Args:
            work: what is done with a point.
            parts: numbers of chunks, and their points (N, d).

        Yields:
            the numbers of chunks, and their outcomes (N,).
        """
        ...


class LocalThreads:
    """Threads of this process: making trials is Python, and takes turns; running them is not."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads

    def __enter__(self) -> LocalThreads:
        return self

    def __exit__(self, *_: object) -> None:
        pass

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
    from twin.sweeps.cluster import Cluster, Processes

    if workers is not None and scheduler is not None:
        raise ValueError("expected a number of workers or a scheduler, which has its own, got both")
    return Processes(workers) if scheduler is None else Cluster(scheduler)


def run_points(
    experiment: Experiment,
    points: Points,
    *,
    limits: Mapping[str, float] | None = None,
    engine: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    pool: Pool | None = None,
    keep: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> np.ndarray:
    """Run an experiment at every point.

    Args:
        experiment: makes a trial of a point.
        points: names, values (N, d), draw (N,) and replicate (N,).
        limits: on figures, by their names in `FIGURES`.
        engine: run them in PyBullet, in other processes.
        workers: so many processes on this machine, in place of threads.
        scheduler: `"tcp://host:port"` of a Dask cluster that exists, instead.
        pool: one that is open already, for several sweeps; instead of `workers` and `scheduler`.
        keep: folder for finished chunks. It is left as it is: remove it with `remove_kept`.
        resume: go on with the chunks in that folder.
        progress: see `Progress`; also called at the beginning, with the points that were kept.

    Returns:
        (N,) `draw`, `replicate`, the inputs and the fields of `OUTCOME`, see `columns`.

    Raises:
        VariationError: a limit on no figure, or on one that is not computed here.
        TwinError, ValueError: of the experiment at its nominal values, or where no point can be made; of the
            folder, see `KeptChunks`.
        ClusterError: see `Cluster`.
    """
    from twin.sweeps import evaluation

    names = tuple(points.names)
    work = Work(experiment, names, engine)
    trial = _checked(work, limits or {})
    steps = len(trial.reference.t) * trial.steps_per_period
    size = chunk_size(len(points.values), steps, engine=engine)
    if keep is not None or engine or workers or scheduler or not isinstance(pool, LocalThreads | None):
        work = work._replace(depends=dependencies(trial))
    parts = chunks(len(points.values), size)
    kept = None
    if keep is not None:
        about = description(experiment, names, points.values, work.depends or {}, size=size, engine=engine)
        kept = KeptChunks(keep, about, resume=resume)
    table = _empty_table(points)
    fields = list(OUTCOME.names or ())
    missing, done = set(range(len(parts))), 0
    for number, rows in kept.finished(parts) if kept is not None else ():
        table[fields][parts[number]] = evaluation.verdict(rows, limits or {})
        missing.discard(number)
        done += len(rows)
    _tell(progress, done, len(table))
    if missing:
        with nullcontext(pool) if pool else pool_for(engine, workers, scheduler) as running:
            left = ((number, points.values[parts[number]]) for number in sorted(missing))
            for number, rows in running.run(work, left):
                if kept is not None:
                    kept.add(number, rows)
                table[fields][parts[number]] = evaluation.verdict(rows, limits or {})
                done += len(rows)
                _tell(progress, done, len(table))
    if np.all(table["trouble"] == TROUBLES.index("cannot be made")):
        work.trial(points.values[0].tolist())  # says why
    return table


def _tell(progress: Progress | None, done: int, count: int) -> None:
    if progress is not None:
        progress(done, count)


def columns(names: Iterable[str]) -> tuple[str, ...]:
    """The inputs' names in the table; one that a figure has, as `duration`, gets `set.` before it."""
    taken = ("draw", "replicate", *(OUTCOME.names or ()))
    return tuple(f"set.{name}" if name in taken else name for name in names)


def _empty_table(points: Points) -> np.ndarray:
    """The table with its inputs, before its outcomes are known."""
    inputs = columns(points.names)
    own = [("draw", "i8"), ("replicate", "i4"), *((name, "f8") for name in inputs)]
    table = np.zeros(len(points.values), dtype=own + OUTCOME.descr)
    table["draw"], table["replicate"] = points.draw, points.replicate
    for place, name in enumerate(inputs):
        table[name] = points.values[:, place]
    return table


def _checked(work: Work, limits: Mapping[str, float]) -> Trial:
    """The nominal trial, which has to be possible, and to have the figures that limits are on."""
    from twin.sweeps import evaluation

    for name, limit in limits.items():
        if name not in FIGURES:
            raise VariationError(f"no limit can be put on {name!r}, only on {', '.join(FIGURES)}")
        if not limit >= 0:
            raise VariationError(f"expected the limit on {name} to be a number of at least 0, got {limit}")
    trial = work.nominal_trial()
    if "tool_error" in limits and trial.T_flange_tool is None:
        raise VariationError("no limit can be put on tool_error where the tool's error is not asked for")
    if not work.engine:
        evaluation.outcomes([trial], threads=1)  # compiles the law, once for all, or says why it cannot
    return trial

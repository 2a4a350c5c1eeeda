"""A sweep carried out: every point of it becomes a row of figures.

Points are run in chunks.  Each finished chunk is kept in a file of a folder, beside a description of the
sweep; so a sweep that was ended in the midst goes on where it was.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twin.atomic_file import atomic_write
from twin.errors import TwinError, VariationError
from twin.sweeps.pools import LocalThreads, Pool, Work, pool_for
from twin.sweeps.trial import FIGURES, OUTCOME, TROUBLES, Experiment, Trial, dependencies, differences

if TYPE_CHECKING:
    from twin.sweeps.design import Points


Progress = Callable[[int, int], None]
"""Called with the number of points that are done, and with that of all."""


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
        keep: folder for finished chunks. It is left as it is: remove it with `remove_chunks`.
        resume: go on with the chunks in that folder.
        progress: see `Progress`; also called at the beginning, with the points that were kept.

    Returns:
        (N,) `draw`, `replicate`, the inputs and the fields of `OUTCOME`, see `columns`.

    Raises:
        VariationError: a limit on no figure, or on one that is not computed here.
        TwinError, ValueError: of the experiment at its nominal values, or where no point can be made; of the
            folder, see `ChunkStore`.
        ClusterError: see `Cluster`.
    """
    work = Work(experiment, tuple(points.names), engine)
    trial = _checked(work, limits or {})
    if keep is not None or engine or workers or scheduler or not isinstance(pool, LocalThreads | None):
        work = work._replace(depends=dependencies(trial))
    size = chunk_size(len(points.values), len(trial.reference.t) * trial.steps_per_period, engine=engine)
    parts = chunks(len(points.values), size)
    kept = None
    if keep is not None:
        kept = ChunkStore(keep, description(work, points.values, size), resume=resume)
    filling = _Filling(_empty_table(points), limits or {}, progress)
    missing = dict(enumerate(parts))
    for number, rows in kept.finished(parts) if kept is not None else ():
        filling.put(missing.pop(number), rows)
    filling.tell()
    if missing:
        with nullcontext(pool) if pool else pool_for(engine, workers, scheduler) as running:
            left = ((number, points.values[part]) for number, part in missing.items())
            for number, rows in running.run(work, left):
                if kept is not None:
                    kept.add(number, rows)
                filling.put(parts[number], rows)
                filling.tell()
    if np.all(filling.table["trouble"] == TROUBLES.index("cannot be made")):
        work.trial(points.values[0].tolist())  # says why
    return filling.table


class _Filling:
    """The table of a sweep, which fills with the outcomes of its chunks."""

    def __init__(self, table: np.ndarray, limits: Mapping[str, float], progress: Progress | None) -> None:
        self.table, self._limits, self._progress = table, limits, progress
        self._done = 0

    def put(self, part: slice, rows: np.ndarray) -> None:
        """Judge the outcomes of a chunk, and put them into the table."""
        from twin.sweeps.evaluation import verdict

        self.table[list(OUTCOME.names or ())][part] = verdict(rows, self._limits)
        self._done += len(rows)

    def tell(self) -> None:
        """Tell how many points are done."""
        if self._progress is not None:
            self._progress(self._done, len(self.table))


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


STEPS_OF_A_CHUNK = 1_000_000
"""About a second in compiled code."""

ENGINE_STEPS_OF_A_CHUNK = 40_000
"""About as long in PyBullet."""

MOST_POINTS = 500
FEWEST_CHUNKS, MOST_CHUNKS = 32, 10_000
DESCRIPTION = "sweep.json"
CHECKSUM = hashlib.sha256().digest_size


def chunk_size(count: int, steps: int, *, engine: bool = False) -> int:
    """How many points make a chunk: about a second of work, some chunks for every core, and not too many.

    It depends on the sweep alone, never on who carries it out.

    Args:
        count: number of points.
        steps: of a run.
        engine: whether PyBullet makes them.
    """
    worth = (ENGINE_STEPS_OF_A_CHUNK if engine else STEPS_OF_A_CHUNK) // max(steps, 1)
    return max(1, min(worth, MOST_POINTS, -(-count // FEWEST_CHUNKS)), -(-count // MOST_CHUNKS))


def chunks(count: int, size: int) -> list[slice]:
    """The chunks of so many points."""
    return [slice(first, min(first + size, count)) for first in range(0, count, size)]


def description(work: Work, values: np.ndarray, size: int) -> dict[str, Any]:
    """What the figures of a sweep depend on, in short; what it is called where two sweeps differ in it.

    Args:
        work: what is done with every point, and the digests of what it depends on.
        values: (N, d) of the points.
        size: of the chunks.

    Raises:
        TwinError: the experiment cannot be pickled.
    """
    try:
        content = pickle.dumps(work.experiment)
    except Exception as error:
        raise TwinError(
            f"this sweep cannot be kept, for what it runs cannot be pickled: {error}; a law or an experiment "
            "has to be something of a module"
        ) from None
    return {
        "what it runs": hashlib.sha256(content).hexdigest(),
        "quantities": list(work.names),
        "points": [len(values), hashlib.sha256(np.ascontiguousarray(values).data).hexdigest()],
        "points of a chunk": size,
        "PyBullet or not": work.engine,
        **(work.depends or {}),
    }


class ChunkStore:
    """The finished chunks of one sweep, in a folder.

    Args:
        folder: made where there is none.
        described: what the sweep is, see `description`.
        resume: go on with the chunks that are there.

    Raises:
        TwinError: there are chunks of another sweep, or there are some and `resume` was not asked for.
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: str | Path, described: dict[str, Any], *, resume: bool) -> None:
        self.folder = Path(folder)
        there = self._described()
        if there is not None:
            differing = differences(there, described)
            if differing and resume:
                raise TwinError(
                    f"{self.folder} holds chunks of another sweep (there differ: {differing}); "
                    "remove it, or choose another folder"
                )
            if not resume:
                raise TwinError(f"{self.folder} holds chunks of a sweep: resume it, or remove the folder")
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        if any(not path.name.startswith(".") for path in self.folder.iterdir()):  # killed while it began
            raise TwinError(f"{self.folder} holds something else than a sweep; choose another folder")
        with atomic_write(self.folder / DESCRIPTION) as draft:
            draft.write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")

    def _described(self) -> dict[str, Any] | None:
        """What sweep the folder holds; `None` if it holds none."""
        try:
            text = (self.folder / DESCRIPTION).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        with suppress(ValueError):
            if isinstance(there := json.loads(text), dict):
                return there
        return {}

    def finished(self, parts: list[slice]) -> Iterator[tuple[int, np.ndarray]]:
        """The chunks that are there, by their numbers; one whose file is damaged is not."""
        for number, part in enumerate(parts):
            with suppress(OSError, ValueError, EOFError):
                content = self._file(number).read_bytes()
                if _checksum(number, content[:-CHECKSUM]) != content[-CHECKSUM:]:
                    continue
                rows = np.load(io.BytesIO(content), allow_pickle=False)
                if rows.dtype == OUTCOME and rows.shape == (part.stop - part.start,):
                    yield number, rows

    def add(self, number: int, rows: np.ndarray) -> None:
        """Keep a chunk, with a checksum behind it."""
        np.save(file := io.BytesIO(), rows, allow_pickle=False)
        with atomic_write(self._file(number)) as draft:
            draft.write_bytes(file.getvalue() + _checksum(number, file.getvalue()))

    def _file(self, number: int) -> Path:
        return self.folder / f"chunk-{number:06}.npy"


def _checksum(number: int, content: bytes) -> bytes:
    """The checksum of a chunk, which is another one for the same rows under another number."""
    return hashlib.sha256(b"%d:" % number + content).digest()


def remove_chunks(folder: str | Path) -> None:
    """Remove the folder of a sweep, once its result is written; nothing but what sweeps write is removed."""
    folder = Path(folder)
    if (folder / DESCRIPTION).is_file():
        shutil.rmtree(folder, ignore_errors=True)

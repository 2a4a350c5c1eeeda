"""Run a sweep: compute a row of figures for every point, and write the tables as CSV and Parquet.

Points are run in chunks.  Each finished chunk is stored in a file of a folder, beside a description of the
sweep, so that an interrupted sweep can be continued.  The files of tables have one row per run, without loss
of precision:

    sample, controller      index of the row in the table of its controller, from 0; the controller
    draw, replicate         number of the random draw, and of the independent replicate of the design
    payload, model.mass     varied quantities, each in its unit, under the names that `--vary` takes
    passes, trouble         1 or 0; what ended the run early, or empty
    check                   the first check of the scenario that fails, or empty
    joint_error_rad, ...    the figures of `twin.sweeps.trial.OUTCOME`, with their unit in the name
    rms of axis 2           the metrics of the scenario, under their names

Numbers in a CSV have the fewest digits that give back the same double; infinity is `inf`, not a number `nan`.
Tables are written some thousand rows at a time: a million rows need no more memory.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import pickle
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twin.base.atomic_file import atomic_write
from twin.base.errors import TwinError, VariationError
from twin.data.logs.columns import csv_lines, import_optional
from twin.data.logs.figures import LOADS
from twin.studies.sweeps.pools import LocalThreads, Pool, Work, pool_for
from twin.studies.sweeps.trial import (
    FIGURES,
    LOAD_FIGURES,
    OUTCOME,
    TROUBLES,
    Experiment,
    Trial,
    dependencies,
    differences,
    outcome_type,
)

if TYPE_CHECKING:
    from twin.studies.sweeps.design import Points


Progress = Callable[[int, int], None]
"""Function that is called with the number of finished points, and with the number of all points."""


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
        experiment: the experiment, which makes the trial of a point.
        points: names, values (N, d), draw (N,) and replicate (N,).
        limits: limits of figures, by their names in `FIGURES` and in `Trial.metrics`.
        engine: whether to run the trials in PyBullet, in worker processes.
        workers: number of processes on this machine, instead of threads.
        scheduler: address of a running Dask cluster, as `"tcp://host:port"`, instead of threads.
        pool: an open pool for several sweeps, instead of `workers` and `scheduler`.
        keep: folder for finished chunks. It is not removed: see `remove_chunks`.
        resume: whether to reuse the chunks in that folder.
        progress: see `Progress`; it is also called at the beginning, with the number of reused points.

    Returns:
        (N,) `draw`, `replicate`, the inputs, see `columns`, the fields of `OUTCOME` and the metrics.

    Raises:
        VariationError: a limit applies to an unknown figure, or to one that is not computed.
        TwinError, ValueError: the experiment fails at its nominal values, or at all points; the folder is
            unsuitable, see `ChunkStore`.
        ClusterError: see `Cluster`.

    Example:
        >>> import controllers.pid, twin
        >>> from twin.studies.sweeps.running import run_points
        >>> robot, still = twin.load("irb140"), twin.sample(twin.hold([0.0] * 6, 0.1), 1e-3)
        >>> sweep = twin.sweep(robot, controllers.pid.PDGravity, still, {"mass": "0.9,1,1.2"})
        >>> run_points(sweep.experiment, sweep.design.points({}))["joint_error"].round(4).tolist()
        [0.0073, 0.0, 0.0117]
    """
    work = Work(experiment, tuple(points.names), engine)
    trial = _checked(work, limits or {})
    work = work._replace(metrics=trial.metrics)
    if keep is not None or engine or workers or scheduler or not isinstance(pool, LocalThreads | None):
        work = work._replace(depends=dependencies(trial))
    size = chunk_size(len(points.values), len(trial.reference.t) * trial.steps_per_period, engine=engine)
    parts = chunks(len(points.values), size)
    store = None
    if keep is not None:
        store = ChunkStore(keep, description(work, points.values, size), resume=resume)
    filling = _Filling(_empty_table(points, trial.metrics), limits or {}, progress)
    missing = dict(enumerate(parts))
    for number, rows in store.finished(parts, outcome_type(work.metrics)) if store is not None else ():
        filling.put(missing.pop(number), rows)
    filling.report()
    if missing:
        with nullcontext(pool) if pool else pool_for(engine, workers, scheduler) as running:
            remaining = ((number, points.values[part]) for number, part in missing.items())
            for number, rows in running.run(work, remaining):
                if store is not None:
                    store.add(number, rows)
                filling.put(parts[number], rows)
                filling.report()
    if np.all(filling.table["trouble"] == TROUBLES.index("cannot be made")):
        work.trial(points.values[0].tolist())  # raises with the reason
    return filling.table


class _Filling:
    """Table of a sweep that is filled with the outcomes of its chunks."""

    def __init__(self, table: np.ndarray, limits: Mapping[str, float], progress: Progress | None) -> None:
        self.table, self._limits, self._progress = table, limits, progress
        self._done = 0

    def put(self, part: slice, rows: np.ndarray) -> None:
        """Apply the limits to the outcomes of a chunk, and write them into the table."""
        from twin.studies.sweeps.evaluation import verdict

        self.table[list(rows.dtype.names or ())][part] = verdict(rows, self._limits)
        self._done += len(rows)

    def report(self) -> None:
        """Call `progress` with the number of finished points."""
        if self._progress is not None:
            self._progress(self._done, len(self.table))


def columns(names: Iterable[str]) -> tuple[str, ...]:
    """Return the inputs' names in the table; an input with the name of a figure gets the prefix `set.`."""
    taken = ("draw", "replicate", *(OUTCOME.names or ()))
    return tuple(f"set.{name}" if name in taken else name for name in names)


def _empty_table(points: Points, metrics: Sequence[str]) -> np.ndarray:
    """Return the table with its inputs, and without outcomes."""
    inputs = columns(points.names)
    fields = [("draw", "i8"), ("replicate", "i4"), *((name, "f8") for name in inputs)]
    table = np.zeros(len(points.values), dtype=fields + outcome_type(metrics).descr)
    table["draw"], table["replicate"] = points.draw, points.replicate
    for place, name in enumerate(inputs):
        table[name] = points.values[:, place]
    return table


def _checked(work: Work, limits: Mapping[str, float]) -> Trial:
    """Check the limits, and return the nominal trial after it has been compiled."""
    from twin.studies.sweeps import evaluation

    trial = work.nominal_trial()
    known = (*FIGURES, *trial.metrics)
    for name, limit in limits.items():
        if name not in known:
            raise VariationError(f"unknown quantity {name!r} in limits: known are {', '.join(known)}")
        if not limit >= 0:
            raise VariationError(f"expected the limit on {name} to be a number of at least 0, got {limit}")
    if "tool_error" in limits and trial.T_flange_tool is None:
        raise VariationError(
            "a limit of tool_error requires T_flange_tool: the tool's error is not computed without it"
        )
    if not trial.loads and (named := [name for name in limits if name in LOAD_FIGURES]):
        raise VariationError(f"a limit of {named[0]} requires loads=True: loads are not computed without it")
    if not work.engine:
        evaluation.outcomes([trial], threads=1)  # compiles the controller, or raises
    return trial


STEPS_OF_A_CHUNK = 1_000_000
"""Number of steps of a chunk: about one second in compiled code."""

ENGINE_STEPS_OF_A_CHUNK = 40_000
"""Number of steps of a chunk in PyBullet: about one second."""

MOST_POINTS = 500
FEWEST_CHUNKS, MOST_CHUNKS = 32, 10_000
DESCRIPTION = "sweep.json"
CHECKSUM = hashlib.sha256().digest_size


def chunk_size(count: int, steps: int, *, engine: bool = False) -> int:
    """Return the number of points per chunk: about a second of work, but some chunks for every core.

    It depends on the sweep only, never on the pool.

    Args:
        count: number of points.
        steps: number of steps of a run.
        engine: whether PyBullet runs the trials.
    """
    worth = (ENGINE_STEPS_OF_A_CHUNK if engine else STEPS_OF_A_CHUNK) // max(steps, 1)
    return max(1, min(worth, MOST_POINTS, -(-count // FEWEST_CHUNKS)), -(-count // MOST_CHUNKS))


def chunks(count: int, size: int) -> list[slice]:
    """Return the chunks of `count` points, as slices."""
    return [slice(first, min(first + size, count)) for first in range(0, count, size)]


def description(work: Work, values: np.ndarray, size: int) -> dict[str, Any]:
    """Return digests of all that the figures of a sweep depend on, under names for messages.

    Args:
        work: the work at every point, with the digests of its dependencies.
        values: (N, d) the points.
        size: number of points per chunk.

    Raises:
        TwinError: the experiment cannot be pickled.
    """
    try:
        content = pickle.dumps(work.experiment)
    except Exception as error:
        raise TwinError(
            f"the chunks of this sweep cannot be stored, because its experiment cannot be pickled: {error}; "
            "define controller and experiment at the top level of a module"
        ) from None
    return {
        "experiment": hashlib.sha256(content).hexdigest(),
        "quantities": list(work.names),
        "points": [len(values), hashlib.sha256(np.ascontiguousarray(values).data).hexdigest()],
        "chunk size": size,
        "engine": work.engine,
        **(work.depends or {}),
    }


class ChunkStore:
    """Store of the finished chunks of one sweep, in a folder.

    Args:
        folder: path of the folder, which is created if it does not exist.
        described: description of the sweep, see `description`.
        resume: whether to reuse stored chunks.

    Raises:
        TwinError: the folder contains chunks of another sweep, or chunks although `resume` is false.
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: str | Path, described: dict[str, Any], *, resume: bool) -> None:
        self.folder = Path(folder)
        stored = self._described()
        if stored is not None:
            differing = differences(stored, described)
            if differing and resume:
                raise TwinError(
                    f"{self.folder} contains chunks of another sweep (different: {differing}); "
                    "remove it, or choose another folder"
                )
            if not resume:
                raise TwinError(f"{self.folder} contains chunks of a sweep: resume it, or remove the folder")
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        # Hidden files are drafts of a process that was killed at its beginning.
        if any(not path.name.startswith(".") for path in self.folder.iterdir()):
            raise TwinError(f"{self.folder} contains files other than a sweep's; choose another folder")
        with atomic_write(self.folder / DESCRIPTION) as draft:
            draft.write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")

    def _described(self) -> dict[str, Any] | None:
        """Return the description of the sweep in the folder; `None` if there is none."""
        try:
            text = (self.folder / DESCRIPTION).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        with suppress(ValueError):
            if isinstance(stored := json.loads(text), dict):
                return stored
        return {}

    def finished(self, parts: list[slice], row: np.dtype = OUTCOME) -> Iterator[tuple[int, np.ndarray]]:
        """Yield number and rows of each stored chunk; damaged files are ignored."""
        for number, part in enumerate(parts):
            with suppress(OSError, ValueError, EOFError):
                content = self._file(number).read_bytes()
                if _checksum(number, content[:-CHECKSUM]) != content[-CHECKSUM:]:
                    continue
                rows = np.load(io.BytesIO(content), allow_pickle=False)
                if rows.dtype == row and rows.shape == (part.stop - part.start,):
                    yield number, rows

    def add(self, number: int, rows: np.ndarray) -> None:
        """Store a chunk, followed by a checksum."""
        np.save(file := io.BytesIO(), rows, allow_pickle=False)
        with atomic_write(self._file(number)) as draft:
            draft.write_bytes(file.getvalue() + _checksum(number, file.getvalue()))

    def _file(self, number: int) -> Path:
        return self.folder / f"chunk-{number:06}.npy"


def _checksum(number: int, content: bytes) -> bytes:
    """Return the checksum of a chunk, which depends on its number, too."""
    return hashlib.sha256(b"%d:" % number + content).digest()


def remove_chunks(folder: str | Path) -> None:
    """Remove the stored chunks of a sweep; a folder without a sweep is not removed.

    Example:
        >>> import controllers.pid, pathlib, twin, twin.sweeps.running
        >>> robot, still = twin.load("irb140"), twin.sample(twin.hold([0.0] * 6, 0.1), 1e-3)
        >>> sweep = twin.sweep(robot, controllers.pid.PDGravity, still, {"mass": "0.9,1,1.2"}, keep="chunks")
        >>> twin.sweeps.running.remove_chunks("chunks")
        >>> pathlib.Path("chunks").exists()
        False
    """
    folder = Path(folder)
    if (folder / DESCRIPTION).is_file():
        shutil.rmtree(folder, ignore_errors=True)


SUFFIXES = (".csv", ".parquet")
UNITS = {
    "duration": "s",
    "joint_error": "rad",
    "joint_error_time": "s",
    "rms_error": "rad",
    "tool_error": "m",
    "tool_error_time": "s",
    "beyond_range": "rad",
    **LOADS,
}
"""Units of figures; figures without a unit are ratios, numbers of joints and counts."""
ROWS = 4096
"""Number of rows that are formatted at a time."""
ROWS_IN_PARQUET = 65_536
"""Number of rows in a row group of a Parquet file."""


def write_tables(path: str | Path, tables: Mapping[str, np.ndarray]) -> None:
    """Write the tables of a sweep into one CSV or Parquet file, completely or not at all.

    Args:
        path: path of the file, which ends in one of `SUFFIXES`.
        tables: tables by controller; all have the same columns.

    Raises:
        ValueError: the name ends differently.
        TwinError: the file is a Parquet file, and pyarrow is not installed.
        OSError: the file cannot be written.
    """
    write = {".csv": _write_csv, ".parquet": _write_parquet}.get(Path(path).suffix.lower())
    if write is None:
        raise ValueError(f"expected a file name that ends in {' or '.join(SUFFIXES)}, got {str(path)!r}")
    with atomic_write(path) as draft:
        write(draft, tables)


def column_names(table: np.ndarray) -> list[str]:
    """Return the column names of a table in a file."""
    return list(_columns("", table, slice(0, 0)))


def _write_csv(path: Path, tables: Mapping[str, np.ndarray]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(column_names(next(iter(tables.values()))))
        for columns in _blocks(tables, ROWS):
            file.write(csv_lines(columns.values()))


def _write_parquet(path: Path, tables: Mapping[str, np.ndarray]) -> None:
    arrow, parquet = import_optional("pyarrow", "Parquet"), import_optional("pyarrow.parquet", "Parquet")
    writer: Any = None
    try:
        for columns in _blocks(tables, ROWS_IN_PARQUET):
            block = arrow.table({name: np.ascontiguousarray(values) for name, values in columns.items()})
            writer = writer or parquet.ParquetWriter(path, block.schema)
            writer.write_table(block)
    finally:
        if writer is not None:
            writer.close()


def _blocks(tables: Mapping[str, np.ndarray], rows: int) -> Iterator[dict[str, np.ndarray]]:
    """Yield the columns of all tables, `rows` rows at a time."""
    for label, table in tables.items():
        for start in range(0, len(table), rows):
            yield _columns(label, table, slice(start, start + rows))


def _columns(label: str, table: np.ndarray, part: slice) -> dict[str, np.ndarray]:
    """Return some rows of a table as the columns of a file."""
    rows = table[part]
    columns = {
        "sample": np.arange(len(table))[part],
        "controller": np.full(len(rows), label, dtype=object),
    }
    for name in table.dtype.names or ():
        unit = UNITS.get(name)
        columns[f"{name}_{unit.replace(' ', '')}" if unit and name in (OUTCOME.names or ()) else name] = rows[
            name
        ]
    columns["check"] = rows["check"].astype(object)
    columns["trouble"] = np.array(TROUBLES, dtype=object)[rows["trouble"]]
    return columns

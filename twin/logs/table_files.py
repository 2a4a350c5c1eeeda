"""A log as a table for other programs: CSV, Parquet, and pandas in memory. Every bit of a number is kept."""

from __future__ import annotations

import csv
import io
import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.atomic_file import drafted
from twin.errors import TwinError
from twin.logs.columns import columns

if TYPE_CHECKING:
    from pandas import DataFrame

    from twin.logs.log import Log


ROWS = 4096
"""Made into text at a time: the texts of a whole log would be ten times the log."""


def write_csv(path: str | Path, log: Log, every: int = 1, decimal_comma: bool = False) -> None:
    """Write a log as CSV, whole or not at all: a line of names, then a line a sample.

    Numbers have the fewest digits that give back the same double; true is 1, false 0, what is not a number
    `nan`. Text is UTF-8.

    Args:
        path: of the file.
        log: of the run.
        every: write one sample of so many, the first of all included.
        decimal_comma: write `1,5` for 1.5, and semicolons between columns, as spreadsheets do in much of
            Europe.

    Raises:
        OSError: the file cannot be written.
    """
    table = columns(log)
    separator = ";" if decimal_comma else ","
    header = io.StringIO()
    csv.writer(header, delimiter=separator, lineterminator="\n").writerow(column.name for column in table)
    with drafted(path) as draft, open(draft, "w", encoding="utf-8", newline="") as file:
        file.write(header.getvalue())
        for start in range(0, len(log.t), ROWS * every):
            part = slice(start, start + ROWS * every, every)
            texts = [_texts(column.values[part]) for column in table]
            lines = "\n".join(map(separator.join, zip(*texts, strict=True))) + "\n"
            file.write(lines.replace(".", ",") if decimal_comma else lines)


def _texts(values: Any) -> list[str]:
    kind = float if values.dtype.kind == "f" else int
    return list(map(repr, values.astype(kind).tolist()))


def write_parquet(path: str | Path, log: Log, every: int = 1) -> None:
    """Write a log as Parquet, whole or not at all; its metadata say what `about` says.

    Args:
        path: of the file.
        log: of the run.
        every: write one sample of so many, the first of all included.

    Raises:
        TwinError: pyarrow is not installed.
        OSError: the file cannot be written.
    """
    arrow, parquet = needed("pyarrow", "Parquet"), needed("pyarrow.parquet", "Parquet")
    table = arrow.table({column.name: column.values[::every] for column in columns(log)})
    with drafted(path) as draft:
        parquet.write_table(table.replace_schema_metadata(about(log)), draft)


def frame(log: Log) -> DataFrame:
    """The log as a table of pandas; its `attrs` are what `about` says.

    Raises:
        TwinError: pandas is not installed.
    """
    pandas = needed("pandas", "a table of pandas")
    made = pandas.DataFrame({column.name: column.values for column in columns(log)})
    made.attrs.update(about(log))
    return made


def needed(module: str, what: str) -> Any:
    """The module of an optional library.

    Raises:
        TwinError: it is not installed; the sentence says how to install it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise TwinError(
            f"{what} needs {library}, which is not installed: pip install 'irb-twin[tables]'"
        ) from error


def about(log: Log) -> dict[str, str]:
    """What there is to know of a log besides its samples, all as text.

    Robot, control law, drives, periods in [s], gravity in [m/s^2], payload in [kg]; and what the scenario
    added that is a single number or text, as `bandwidth`, or `provenance` and `settings`, which are JSON.
    """
    told = {
        "robot": log.robot.name,
        "controller": log.controller,
        "drives": log.drives,
        "time_step_s": repr(log.time_step),
        "steps_per_period": repr(log.steps_per_period),
        "gravity_m_s2": json.dumps(log.robot.gravity.tolist()),
        "payload_kg": repr(0.0 if log.robot.payload is None else float(log.robot.payload.mass)),
    }
    more = {name: str(array) for name, array in log.arrays.items() if array.shape == () and name not in told}
    return told | more


def thinned(values: ArrayLike, most: int) -> NDArray[np.intp]:
    """The samples of a series to draw, so that the curve looks as that of all of them.

    The series is cut into parts of equal length, each narrower than a curve can show. Of each part the lowest
    and the highest sample are kept, and one that is not a number if there is any, so that gaps stay gaps; and
    the first and the last sample of the series.

    Args:
        values: (N,) the series.
        most: how many samples to keep at most, at least 5.

    Returns:
        (K,) their indices, rising; all N of them where those are no more than `most`.

    Raises:
        ValueError: the series is not (N,), or `most` is less than 5.
    """
    series = np.asarray(values, dtype=np.float64)
    if series.ndim != 1 or not most >= 5:
        raise ValueError(f"expected a series of shape (N,) and at least 5 points, got {series.shape}, {most}")
    N = len(series)
    if most >= N:
        return np.arange(N)
    parts = (most - 2) // 3
    length = -(-N // parts)
    padded = np.full(parts * length, np.nan)
    padded[:N] = series
    gaps = np.isnan(padded)
    found = [
        np.argmin(np.where(gaps, np.inf, padded).reshape(parts, length), axis=1),
        np.argmax(np.where(gaps, -np.inf, padded).reshape(parts, length), axis=1),
        np.argmax(gaps.reshape(parts, length), axis=1),  # the first gap, or again the first sample
    ]
    starts = length * np.arange(parts)
    there = gaps.reshape(parts, length).any(axis=1)
    kept = np.concatenate([starts + found[0], starts + found[1], (starts + found[2])[there], [0, N - 1]])
    return np.unique(kept[kept < N])

"""Write the tables of sweeps as CSV and Parquet, one row per run, without loss of precision.

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

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from twin.base.atomic_file import atomic_write
from twin.data.logs.columns import csv_lines, import_optional
from twin.data.logs.figures import LOADS
from twin.studies.sweeps.trial import OUTCOME, TROUBLES

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

"""The columns of a log, the unit in every name, and CSV and Parquet files with one row a sample.

    t_s                                     time
    joint_1_q_rad, joint_1_q_ref_rad, ...   each joint's quantities, behind the robot's name of it
    tool_x_m, ..., tool_a, ..., tool_d      the tool's pose, and `tool_x_ref_m`, ... what was wanted
    own_force_1, own_force_2, ...           what a scenario added, in units of its own

Quantities are called as the arrays of the log are. Names are made of letters that programs take as they are:
`rad_s` is rad/s, `rad_s2` is rad/s^2, `Nm` is N m. Prismatic joints have m and N in place of rad and N m.
`twin.logs.recordings.reading` reads `t_s` and the columns `..._q_rad` back as a recording of the joints.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.atomic_file import atomic_write
from twin.errors import TwinError
from twin.logs.figures import POSE_COMPONENTS, joint_error, tool_distance
from twin.robot.limits import joint_unit

if TYPE_CHECKING:
    from pandas import DataFrame

    from twin.logs.log import Log


QUANTITIES = {
    "q_ref": "position", "q": "position", "error": "position", "qd_ref": "speed", "qd": "speed",
    "qdd_ref": "acceleration", "tau": "torque", "tau_demand": "torque", "saturated": "",
    "tau_joint": "torque", "q_motor": "position", "qd_motor": "speed", "q_seen": "position",
    "qd_seen": "speed",
}  # fmt: skip
"""The quantities of a joint, in order, and their dimensions. `error` is `q_ref - q`; the others are described
in `twin.logs.log.Log`. From `tau_joint` on they are left out where another array stands for them."""


class Column(NamedTuple):
    """A column of N samples.

    Attributes:
        of: what it is a quantity of: a joint's name, `tool`, `own`; empty for the whole run.
        quantity: as `q_ref`.
        unit: as `rad/s`, empty where there is none.
        values: (N,) floats; `saturated` is true or false.
    """

    of: str
    quantity: str
    unit: str
    values: NDArray

    @property
    def name(self) -> str:
        """For programs: `joint_1_q_ref_rad`."""
        unit = self.unit.replace(" ", "").replace("/", "_").replace("^", "")
        return "_".join(part for part in (self.of, self.quantity, unit) if part)

    @property
    def label(self) -> str:
        """For people: `joint_1 q_ref [rad]`."""
        return f"{self.of} {self.quantity}".strip() + (f" [{self.unit}]" if self.unit else "")


def unit_of(kind: str, quantity: str) -> str:
    """The unit of a joint's quantity: `unit_of("prismatic", "tau")` is `N`."""
    return joint_unit(kind, QUANTITIES[quantity])


def columns(log: Log) -> tuple[Column, ...]:
    """Every column of a log, in order: time, joints quantity by quantity, the tool, the rest."""
    return (Column("", "t", "s", log.t), *_joints(log), *_tool(log), *_loops(log), *_own(log))


def _joints(log: Log) -> Iterator[Column]:
    from twin.logs.log import STANDS_FOR

    for quantity in QUANTITIES:
        if quantity in STANDS_FOR and getattr(log, quantity) is getattr(log, STANDS_FOR[quantity]):
            continue
        array = joint_error(log) if quantity == "error" else getattr(log, quantity)
        for joint, (name, kind) in enumerate(zip(log.robot.joint_names, log.robot.joint_kinds, strict=True)):
            yield Column(name, quantity, unit_of(kind, quantity), array[:, joint])


def _tool(log: Log) -> Iterator[Column]:
    for end, poses in (("_ref", log.pose_ref), ("", log.pose)):
        for k, name in enumerate(POSE_COMPONENTS):
            yield Column("tool", name + end, "m" if name in "xyz" else "", poses[:, k])
    yield Column("tool", "error", "m", tool_distance(log))


def _loops(log: Log) -> Iterator[Column]:
    if log.robot.loops:
        yield Column("", "loop_gap", "m", log.loop_gap)


def _own(log: Log) -> Iterator[Column]:
    """What a scenario added that has a number a sample, or several."""
    for name, array in log.arrays.items():
        if is_sampled(array, len(log.t)):
            several = array.ndim == 2
            for k, values in enumerate(array.T if several else [array]):
                yield Column("own", f"{name}_{k + 1}" if several else name, "", values)


def is_sampled(array: np.ndarray, N: int) -> bool:
    """Whether an array (N,) or (N, k) of a scenario's own has numbers for each of N samples."""
    return array.dtype.kind in "biuf" and array.ndim in (1, 2) and len(array) == N


def between(log: Log, start: float | None = None, end: float | None = None) -> Log:
    """The samples of a log from one time to another, both included; the log itself where neither is given.

    Args:
        log: of a run.
        start: in [s]; `None` for the first sample.
        end: in [s]; `None` for the last.

    Raises:
        TwinError: there is no sample between them.
    """
    if start is None and end is None:
        return log
    low, high = -np.inf if start is None else start, np.inf if end is None else end
    room = 1e-6 * log.time_step  # a time that was read off the log, in fewer digits, is that sample's
    kept = (log.t >= low - room) & (log.t <= high + room)
    if not kept.any():
        raise TwinError(
            f"no sample between {low:g} s and {high:g} s: the run of {log.controller} on {log.robot.name} "
            f"lasts from {log.t[0]:g} s to {log.t[-1]:g} s"
        )
    arrays = {item.name: getattr(log, item.name) for item in fields(log)}
    parts: dict[int, np.ndarray] = {}  # by the array, so that one which stands for another goes on doing so

    def part(array: np.ndarray) -> np.ndarray:
        return parts.setdefault(id(array), array[kept])

    cut = {
        name: part(array)
        for name, array in arrays.items()
        if isinstance(array, np.ndarray) and name != "T_flange_tool"
    }
    own = {name: part(array) if is_sampled(array, len(kept)) else array for name, array in log.arrays.items()}
    return replace(log, **cut, arrays=own)


def first_fault(log: Log) -> float | None:
    """When a position, a speed or a torque was first not finite, in [s]; `None` where all are."""
    broken = ~np.all([np.isfinite(array).all(axis=1) for array in (log.q, log.qd, log.tau)], axis=0)
    return float(log.t[np.argmax(broken)]) if broken.any() else None


def finite_part(log: Log) -> Log:
    """The samples before the first that is not finite; the whole log where all are, or where none is."""
    fault = first_fault(log)
    if fault is None or fault == log.t[0]:
        return log
    return between(log, end=float(log.t[np.searchsorted(log.t, fault) - 1]))


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
    with atomic_write(path) as draft, open(draft, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=separator, lineterminator="\n").writerow(column.name for column in table)
        for start in range(0, len(log.t), ROWS * every):
            part = slice(start, start + ROWS * every, every)
            lines = csv_lines([column.values[part] for column in table], separator)
            file.write(lines.replace(".", ",") if decimal_comma else lines)


def csv_lines(table: Iterable[np.ndarray], separator: str = ",") -> str:
    """The lines of a CSV file with these columns: numbers with all digits, true as 1, text in quotes."""
    lines = io.StringIO()
    cells = [(values.astype(int) if values.dtype.kind == "b" else values).tolist() for values in table]
    csv.writer(lines, delimiter=separator, lineterminator="\n").writerows(zip(*cells, strict=True))
    return lines.getvalue()


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
    with atomic_write(path) as draft:
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

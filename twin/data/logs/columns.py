"""Columns of a log with units in their names, and CSV and Parquet files with one row per sample.

    t_s                                     time
    joint_1_q_rad, joint_1_q_ref_rad, ...   quantities of each joint, after the joint's name
    tool_x_m, ..., tool_a, ..., tool_d      pose of the tool, and `tool_x_ref_m`, ... its reference
    tool_fx_N, ..., tool_mz_Nm              wrench of the environment, if there is any
    own_force_1, own_force_2, ...           arrays that a scenario added, in units of its choice

Quantities have the names of the log's arrays.  Units are spelled in letters that programs accept in names:
`rad_s` is rad/s, `rad_s2` is rad/s^2, `Nm` is N m.  Prismatic joints have m and N instead of rad and N m.
`twin.logs.recordings.recording` reads `t_s` and the columns `..._q_rad` as a recording of the joints.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.base.atomic_file import atomic_write
from twin.base.errors import TwinError
from twin.data.logs.figures import POSE_COMPONENTS, joint_error, tool_distance
from twin.physics.dynamics.environment import COMPONENTS
from twin.physics.robot.units import joint_unit

if TYPE_CHECKING:
    from pandas import DataFrame

    from twin.data.logs.log import Log


QUANTITIES = {
    "q_ref": "position", "q": "position", "error": "position", "qd_ref": "speed", "qd": "speed",
    "qdd_ref": "acceleration", "tau": "torque", "tau_demand": "torque", "saturated": "",
    "tau_joint": "torque", "q_motor": "position", "qd_motor": "speed", "q_seen": "position",
    "qd_seen": "speed",
}  # fmt: skip
"""Quantities of a joint with their dimensions, in order; `twin.logs.log.Log` describes them, and `error` is
`q_ref - q`. Those from `tau_joint` on are omitted where they are identical to another array.
"""


class Column(NamedTuple):
    """Column of N samples.

    Attributes:
        of: owner of the quantity: a joint's name, `tool` or `own`; empty for the whole run.
        quantity: name of the quantity, as `q_ref`.
        unit: unit, as `rad/s`; empty if dimensionless.
        values: (N,) floats, or booleans for `saturated`.
    """

    of: str
    quantity: str
    unit: str
    values: NDArray

    @property
    def name(self) -> str:
        """Name for programs: `joint_1_q_ref_rad`."""
        unit = self.unit.replace(" ", "").replace("/", "_").replace("^", "")
        return "_".join(part for part in (self.of, self.quantity, unit) if part)

    @property
    def label(self) -> str:
        """Name for people: `joint_1 q_ref [rad]`."""
        return f"{self.of} {self.quantity}".strip() + (f" [{self.unit}]" if self.unit else "")


def unit_of(kind: str, quantity: str) -> str:
    """Return the unit of a joint's quantity: `unit_of("prismatic", "tau")` is `N`."""
    return joint_unit(kind, QUANTITIES[quantity])


def columns(log: Log) -> tuple[Column, ...]:
    """Return all columns of a log: time, the joints quantity by quantity, the tool, then the rest."""
    return (Column("", "t", "s", log.t), *_joints(log), *_tool(log), *_loops(log), *_scenario_arrays(log))


def _joints(log: Log) -> Iterator[Column]:
    for quantity in QUANTITIES:
        if quantity != "error" and not log.is_recorded(quantity):
            continue
        array = joint_error(log) if quantity == "error" else getattr(log, quantity)
        for joint, (name, kind) in enumerate(zip(log.robot.joint_names, log.robot.joint_kinds, strict=True)):
            yield Column(name, quantity, unit_of(kind, quantity), array[:, joint])


def _tool(log: Log) -> Iterator[Column]:
    for end, poses in (("_ref", log.pose_ref), ("", log.pose)):
        for k, name in enumerate(POSE_COMPONENTS):
            yield Column("tool", name + end, "m" if name in "xyz" else "", poses[:, k])
    yield Column("tool", "error", "m", tool_distance(log))
    if log.surroundings is not None:
        for (name, unit), values in zip(COMPONENTS.items(), log.wrench.T, strict=True):
            yield Column("tool", name, unit, values)


def _loops(log: Log) -> Iterator[Column]:
    if log.robot.loops:
        yield Column("", "loop_gap", "m", log.loop_gap)


def _scenario_arrays(log: Log) -> Iterator[Column]:
    """Yield the columns of the arrays that a scenario added with one or more numbers per sample."""
    of_wrench = () if log.surroundings is None else vars(log.surroundings)
    for name, array in log.added_arrays.items():
        if log.is_sampled(array) and name not in of_wrench:
            several = array.ndim == 2
            for k, values in enumerate(array.T if several else [array]):
                yield Column("own", f"{name}_{k + 1}" if several else name, "", values)


def between(log: Log, start: float | None = None, end: float | None = None) -> Log:
    """Return the samples of a log from `start` to `end`, both included; the log itself if neither is given.

    Args:
        log: log of a run.
        start: first time, in [s]; `None` for the first sample.
        end: last time, in [s]; `None` for the last sample.

    Raises:
        TwinError: no sample lies in this interval.
    """
    if start is None and end is None:
        return log
    low, high = -np.inf if start is None else start, np.inf if end is None else end
    tolerance = 1e-6 * log.time_step  # tolerates times that were copied from the log with fewer digits
    selected = (log.t >= low - tolerance) & (log.t <= high + tolerance)
    if not selected.any():
        raise TwinError(
            f"no sample between {low:g} s and {high:g} s: the run of {log.controller} on {log.robot.name} "
            f"lasts from {log.t[0]:g} s to {log.t[-1]:g} s"
        )
    return log.samples(selected)


def first_non_finite(log: Log) -> float | None:
    """Return the first time at which q, qd or tau is not finite, in [s]; `None` if all samples are finite."""
    not_finite = ~np.all([np.isfinite(array).all(axis=1) for array in (log.q, log.qd, log.tau)], axis=0)
    return float(log.t[np.argmax(not_finite)]) if not_finite.any() else None


def finite_part(log: Log) -> Log:
    """Return the samples before the first that is not finite; the whole log if all or none are finite."""
    fault = first_non_finite(log)
    if fault is None or fault == log.t[0]:
        return log
    return between(log, end=float(log.t[np.searchsorted(log.t, fault) - 1]))


ROWS = 4096
"""Rows that are formatted at a time; the text of a whole log would take ten times the memory of the log."""


def write_csv(path: str | Path, log: Log, every: int = 1, decimal_comma: bool = False) -> None:
    """Write a log atomically as CSV: a header line, then one line per sample.

    Numbers have the fewest digits from which the same double is read; true is 1, false 0, and NaN `nan`.  The
    text is UTF-8.

    Args:
        path: path of the file.
        log: log of the run.
        every: sampling interval: sample 0, `every`, 2 `every`, ... are written.
        decimal_comma: write `1,5` for 1.5, and semicolons between columns, as spreadsheets do in much of
            Europe.

    Raises:
        OSError: the file cannot be written.

    Example:
        >>> from pathlib import Path
        >>> from scenarios.gravity_hold import GravityHold
        >>> from twin.data.logs.columns import write_csv
        >>> write_csv("hold.csv", GravityHold(duration=0.1).run().log, every=50)
        >>> [line.partition(",")[0] for line in Path("hold.csv").read_text().splitlines()]
        ['t_s', '0.0', '0.05', '0.1']
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
    """Return the lines of a CSV file with these columns: numbers with all digits, booleans as 0 and 1."""
    lines = io.StringIO()
    cells = [(values.astype(int) if values.dtype.kind == "b" else values).tolist() for values in table]
    csv.writer(lines, delimiter=separator, lineterminator="\n").writerows(zip(*cells, strict=True))
    return lines.getvalue()


def write_parquet(path: str | Path, log: Log, every: int = 1) -> None:
    """Write a log atomically as Parquet; its metadata are those of `about`.

    Args:
        path: path of the file.
        log: log of the run.
        every: sampling interval: sample 0, `every`, 2 `every`, ... are written.

    Raises:
        TwinError: pyarrow is not installed.
        OSError: the file cannot be written.

    Example:
        >>> import pandas
        >>> from scenarios.gravity_hold import GravityHold
        >>> from twin.data.logs.columns import write_parquet
        >>> write_parquet("hold.parquet", GravityHold(duration=0.1).run().log, every=50)
        >>> pandas.read_parquet("hold.parquet")["t_s"].tolist()
        [0.0, 0.05, 0.1]
    """
    arrow, parquet = import_optional("pyarrow", "Parquet"), import_optional("pyarrow.parquet", "Parquet")
    table = arrow.table({column.name: column.values[::every] for column in columns(log)})
    with atomic_write(path) as draft:
        parquet.write_table(table.replace_schema_metadata(about(log)), draft)


def frame(log: Log) -> DataFrame:
    """Return the log as a pandas table; its `attrs` are the metadata of `about`.

    Raises:
        TwinError: pandas is not installed.
    """
    pandas = import_optional("pandas", "a table of pandas")
    made = pandas.DataFrame({column.name: column.values for column in columns(log)})
    made.attrs.update(about(log))
    return made


def import_optional(module: str, what: str) -> Any:
    """Import a module of an optional library.

    Raises:
        TwinError: the library is not installed; the message contains the installation command.
    """
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise TwinError(
            f"{what} requires {library}, which is not installed: pip install 'irb-twin[tables]'"
        ) from error


def about(log: Log) -> dict[str, str]:
    """Return the metadata of a log, all as text.

    They are robot, controller, drives, periods in [s], gravity in [m/s^2], payload in [kg], and the single
    numbers and texts that the scenario added, as `bandwidth`, or `provenance` and `settings`, which are JSON.

    Example:
        >>> from scenarios.gravity_hold import GravityHold
        >>> from twin.data.logs.columns import about
        >>> facts = about(GravityHold(duration=0.1).run().log)
        >>> facts["robot"], facts["controller"], facts["gravity_m_s2"]
        ('irb140', 'computed_torque', '[0.0, 0.0, -9.81]')
    """
    facts = {
        "robot": log.robot.name,
        "controller": log.controller,
        "drives": log.drives,
        "model_drives": log.model_drives,
        "time_step_s": repr(log.time_step),
        "steps_per_period": repr(log.steps_per_period),
        "gravity_m_s2": json.dumps(log.robot.gravity.tolist()),
        "payload_kg": repr(0.0 if log.robot.payload is None else float(log.robot.payload.mass)),
    }
    more = {name: str(array) for name, array in log.arrays.items() if array.shape == () and name not in facts}
    return facts | more


def thinned(values: ArrayLike, most: int) -> NDArray[np.intp]:
    """Select samples of a series so that their curve looks like that of all samples.

    The series is cut into parts of equal length, each narrower than a curve can show.  The selection contains
    the lowest and the highest sample of each part, one NaN if there is any, so that gaps remain gaps, and the
    first and the last sample of the series.

    Args:
        values: (N,) series.
        most: largest number of samples to select, at least 5.

    Returns:
        (K,) rising indices of the selected samples; all N if N is at most `most`.

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
    selected = np.concatenate([starts + found[0], starts + found[1], (starts + found[2])[there], [0, N - 1]])
    return np.unique(selected[selected < N])

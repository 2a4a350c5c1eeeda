"""Columns of a table: which is which, in what unit it is, and its numbers in SI units.

A column is found by its name, with or without its unit behind it (`twin.recordings.table`). Files that call
a column otherwise are read by naming it: `columns={"x": "X Pos"}`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twin.arrays import Floats
from twin.errors import RecordingError
from twin.recordings.table import (
    UNITS,
    DecimalMark,
    Table,
    open_table,
    quoted,
    require_unit,
    si_unit,
    split_unit,
)
from twin.spatial.rotations import continuous_quaternions


class Wanted(NamedTuple):
    """A column that a reader asks for.

    Attributes:
        name: what we call it.
        quantity: key of `twin.recordings.table.UNITS`.
    """

    name: str
    quantity: str


class Column(NamedTuple):
    """A column as it stands in a file, or an array's; its `unit` is what its numbers are in.

    Attributes:
        label: its name in the header.
        place: where it stands, from 0.
        quantity, unit: keys of `twin.recordings.table.UNITS`.
    """

    label: str
    place: int
    quantity: str
    unit: str


class Reading(NamedTuple):
    """How the header of a file is to be understood.

    Attributes:
        columns: the file's names of columns, by ours; those left out have ours.
        units: what columns are in that name no unit, by quantity.
    """

    columns: Mapping[str, str]
    units: Mapping[str, str]


def reading(
    columns: Mapping[str, str] | str | None = None,
    *,
    length_unit: str = "m",
    angle_unit: str = "rad",
    time_unit: str = "s",
    torque_unit: str = "Nm",
) -> Reading:
    """Return how a header is to be understood.

    Args:
        columns: the file's names by ours, as `{"t": "Time", "x": "X Pos"}` or `"t=Time, x=X Pos"`; with or
            without the unit that the file puts behind a name.
        length_unit: "m" or "mm", of columns that name no unit; so the next two.
        angle_unit: "rad" or "deg".
        time_unit: "s" or "ms".
        torque_unit: "Nm" or "mNm".

    Raises:
        ValueError: an unknown unit, or columns that are not pairs of names.
    """
    units = {
        "time": time_unit,
        "length": length_unit,
        "angle": angle_unit,
        "torque": torque_unit,
        "number": "1",
    }
    for quantity, unit in units.items():
        require_unit(unit, quantity)
    if isinstance(columns, str):
        columns = _pairs(columns)
    return Reading(dict(columns or {}), units)


def _pairs(text: str) -> dict[str, str]:
    """Return the pairs of `t=Time, x=X Pos`."""
    pairs: dict[str, str] = {}
    for pair in text.split(","):
        ours, equals, theirs = (part.strip() for part in pair.partition("="))
        if not (ours and equals and theirs) or ours in pairs:
            what = f"{ours!r} is named twice" if ours in pairs else f"got {pair.strip()!r}"
            raise ValueError(f"expected columns as 't=Time, x=X Pos', each once: {what}")
        pairs[ours] = theirs
    return pairs


def places_of(header: Sequence[str], wanted: Wanted, how: Reading) -> list[int]:
    """Return where in a header a column stands that could be the wanted one."""
    labels = [{label, split_unit(label, wanted.quantity)[0]} for label in header]
    if wanted.name not in how.columns:
        others = set(how.columns.values())  # a column that was given another name has lost its own
        return [k for k, names in enumerate(labels) if wanted.name in names and not names & others]
    name = how.columns[wanted.name]
    exact = [k for k, label in enumerate(header) if label == name]
    return exact or [k for k, names in enumerate(labels) if name in names]


def find_columns(table: Table, wanted: Sequence[Wanted], how: Reading) -> list[Column]:
    """Return the wanted columns of a table.

    Raises:
        RecordingError: one is missing or there more than once, two are the same, or one is in a unit that
            is none of its quantity.
    """
    places = [places_of(table.header, one, how) for one in wanted]
    for fault, wrong in (
        ("no column", [one.name for one, there in zip(wanted, places, strict=True) if not there]),
        (
            "more than one column",
            [one.name for one, there in zip(wanted, places, strict=True) if len(there) > 1],
        ),
    ):
        if wrong:
            told = ", ".join(repr(name) + _by_another_name(name, how) for name in wrong)
            example = ", ".join(f"{name}=NAME" for name in wrong)
            raise RecordingError(
                f"{table.path}, line 1: {fault} {told}; expected the header "
                f"{','.join(one.name for one in wanted)}, got {quoted(table.separator.join(table.header))} "
                f"(if there is one by another name, say so in columns: '{example}')"
            )
    found: dict[int, Column] = {}
    for one, (place,) in zip(wanted, places, strict=True):
        label = table.header[place]
        if place in found:
            raise RecordingError(f"{table.path}, line 1: column {label!r} cannot be two of those expected")
        found[place] = Column(label, place, one.quantity, _unit(table, label, one, how))
    return list(found.values())


def _by_another_name(name: str, how: Reading) -> str:
    return f" (named {how.columns[name]!r})" if name in how.columns else ""


def _unit(table: Table, label: str, wanted: Wanted, how: Reading) -> str:
    """Return the unit of a column: its own, or what is told of its quantity."""
    unit = None if label == wanted.name else split_unit(label, wanted.quantity)[1]
    if unit is None or (wanted.quantity == "number" and unit in ("", "-")):
        return how.units[wanted.quantity]
    if unit not in UNITS[wanted.quantity]:
        raise RecordingError(
            f"{table.path}, line 1, column {label!r}: expected a unit of {wanted.quantity}, "
            f"{' or '.join(UNITS[wanted.quantity])}, got {quoted(unit)}"
        )
    return unit


class Numbers(NamedTuple):
    """What stands in some columns.

    Attributes:
        values: (N, k) in SI units.
        lines: (N) the line of each row.
    """

    values: Floats
    lines: list[int]


def read_numbers(table: Table, columns: Sequence[Column]) -> Numbers:
    """Return the numbers of some columns of a table, whose rows are thereby gone through.

    Raises:
        RecordingError: naming the file, the line, the column and what is there that is no number.
    """
    decimals = DecimalMark(table.path, table.separator)
    rows, lines = [], []
    for line, row in table.rows:
        rows.append([decimals.number(row[column.place].strip(), line, column.label) for column in columns])
        lines.append(line)
    values = np.array(rows, dtype=np.float64).reshape(-1, len(columns))
    return Numbers(values / [UNITS[column.quantity][column.unit] for column in columns], lines)


def si_columns(names: Sequence[str], quantities: Sequence[str]) -> list[Column]:
    """Return columns in SI units, one after the other, as arrays have them."""
    return [
        Column(name, place, quantity, si_unit(quantity))
        for place, (name, quantity) in enumerate(zip(names, quantities, strict=True))
    ]


def read_columns(path: str | Path, wanted: Sequence[Wanted], how: Reading | None = None) -> Numbers:
    """Return the numbers of the wanted columns of a file.

    Raises:
        RecordingError: the file cannot be read, lacks a column, or holds something that is not a number.
    """
    table = open_table(path)
    return read_numbers(table, find_columns(table, wanted, how or reading()))


UNIT_TOLERANCE = 1e-3
"""How far a quaternion's norm may be from 1: the most that rounding to three decimals can do. It is
normalised after that; anything further off is not rounding but another quantity."""

LARGEST_POSITION = 10.0
"""No ABB arm reaches 5 m: a coordinate beyond 10 m is in another unit."""

LARGEST_ANGLE = 8.0 * np.pi
"""In [rad], where no range of a joint is known: four turns."""

LARGEST_TIME = 1e10
"""In [s]; seconds since 1970 are below it, milliseconds since 1970 above."""

SMALLEST_STEP = 1e-6
"""In [s]; closer samples are one sample with rounded times, and speeds from them mean nothing."""

MOST_UNEVEN = 100.0
"""The longest step over the shortest. A spline carries the speed of its short steps into a long one, and
swings far out: a pause needs samples, too."""

LARGEST_TURN = np.deg2rad(120.0)
"""Between neighbouring samples, of the tool or of a joint. Towards 180 degrees it is a guess which way the
tool turned, and the rotation spline no longer reaches a continuous acceleration; an angle that is written
anew from -180 to 180 degrees jumps by 360."""

PLURALS = {"s": "seconds", "m": "metres", "rad": "radians"}
MISTAKEN = {"s": "milliseconds", "m": "millimetres", "rad": "degrees"}
"""What numbers in a unit may be in truth that are far too large."""


class Source(NamedTuple):
    """Where numbers come from, for messages.

    Attributes:
        name: the file's, or "the recording".
        row: tells where a sample stands, as "line 7".
        columns: the columns of the numbers.
    """

    name: str
    row: Callable[[int], str]
    columns: Sequence[Column]

    def at(self, k: int, *columns: int) -> str:
        """Return the place of sample k in some columns."""
        labels = [self.columns[column].label for column in columns]
        told = f"column {labels[0]!r}" if len(labels) == 1 else f"columns {','.join(labels)}"
        return f"{self.name}, {self.row(k)}, {told}"

    def too_large(self, k: int, column: int, value: float, what: str, most: str) -> RecordingError:
        """Return the error of a number that is so large that its unit is likely to be another."""
        unit = self.columns[column].unit
        expected, doubt = f"expected at most {most}", ""
        if unit in PLURALS:  # else the file itself says what it is in
            expected, doubt = f"expected {PLURALS[unit]}, at most {most}", f": are these {MISTAKEN[unit]}?"
        return RecordingError(f"{self.at(k, column)}: {what.format(f'{value:g}')}; {expected}{doubt}")


def check_samples(values: Floats, source: Source) -> None:
    """Check that there are two samples (N, k) or more, that all is finite, and times, the first column."""
    if len(values) < 2:
        raise RecordingError(f"{source.name}: expected at least 2 samples, got {len(values)}")
    if not np.all(np.isfinite(values)):
        k, column = (int(index) for index in np.argwhere(~np.isfinite(values))[0])
        raise RecordingError(f"{source.at(k, column)}: expected a finite number, got {values[k, column]}")
    _check_times(values[:, 0], source)


def _check_times(t: Floats, source: Source) -> None:
    """Check that times (N,) rise, by steps that a spline can follow."""
    if not np.all(np.abs(t) <= LARGEST_TIME):
        k = int(np.argmax(np.abs(t) > LARGEST_TIME))
        raise source.too_large(k, 0, t[k], "{} s is no time", f"{LARGEST_TIME:g}")
    step = np.diff(t)
    if not np.all(step >= SMALLEST_STEP):
        k = int(np.argmax(step < SMALLEST_STEP)) + 1
        fault = "runs backwards" if step[k - 1] < 0.0 else "repeats" if step[k - 1] == 0.0 else "hardly moves"
        raise RecordingError(
            f"{source.at(k, 0)}: time {fault}, {t[k]!s} s after {t[k - 1]!s} s; "
            f"expected steps of at least {SMALLEST_STEP:g} s"
        )
    if not step.max() <= MOST_UNEVEN * step.min():
        k = int(np.argmax(step)) + 1
        raise RecordingError(
            f"{source.at(k, 0)}: a step of {step.max():g} s, the shortest is {step.min():g} s; "
            f"expected steps within a factor of {MOST_UNEVEN:g} (a pause needs samples too)"
        )


def check_positions(position: Floats, first: int, source: Source) -> None:
    """Check coordinates (N, k) in [m], the first of which stands in column `first`."""
    if not np.all(np.abs(position) <= LARGEST_POSITION):
        k, axis = (int(index) for index in np.argwhere(np.abs(position) > LARGEST_POSITION)[0])
        value, most = position[k, axis], f"{LARGEST_POSITION:g}"
        if source.columns[first + axis].unit != "m":
            most += " m"
        raise source.too_large(k, first + axis, value, "{} m is beyond any arm", most)


def unit_quaternions(quats: Floats, source: Source) -> Floats:
    """Return quaternions (N, 4), which stand in the last columns, made unit and continuous in sign."""
    columns = range(len(source.columns) - 4, len(source.columns))
    norm = np.linalg.norm(np.clip(quats, -1e9, 1e9), axis=1)
    if not np.all(np.abs(norm - 1.0) <= UNIT_TOLERANCE):
        k = int(np.argmax(np.abs(norm - 1.0) > UNIT_TOLERANCE))
        raise RecordingError(
            f"{source.at(k, *columns)}: expected a unit quaternion (norm 1 within "
            f"{UNIT_TOLERANCE:g}), got norm {norm[k]:g}"
        )
    return continuous_quaternions(quats / norm[:, None])


def check_turns(quats: Floats, columns: Sequence[int], source: Source) -> None:
    """Check how far the tool turns between samples; quats: (N, 4), unit and continuous in sign."""
    half_turn_cosine = np.sum(quats[1:] * quats[:-1], axis=1)
    if not np.all(half_turn_cosine >= np.cos(0.5 * LARGEST_TURN) - 1e-9):
        k = int(np.argmin(half_turn_cosine)) + 1
        turn = np.rad2deg(2.0 * np.arccos(np.clip(half_turn_cosine[k - 1], -1.0, 1.0)))
        raise RecordingError(
            f"{source.at(k, *columns)}: the tool turns by {turn:.4g} deg from the sample "
            f"before; expected at most {np.rad2deg(LARGEST_TURN):.4g} deg: record more densely"
        )


def check_angles(angles: Floats, largest: Floats, columns: Sequence[int], source: Source) -> None:
    """Check angles (N, k) in [rad] against the largest magnitudes (k,) that can be meant."""
    beyond: NDArray[np.bool_] = ~(np.abs(angles) <= largest)
    if beyond.any():
        k, which = (int(index) for index in np.argwhere(beyond)[0])
        most = f"{largest[which]:.4g}"
        if source.columns[columns[which]].unit != "rad":
            most += f" rad ({np.rad2deg(largest[which]):.4g} deg)"
        raise source.too_large(k, columns[which], angles[k, which], "{} rad is beyond any joint", most)


def check_joint_steps(angles: Floats, columns: Sequence[int], source: Source) -> None:
    """Check how far joints (N, k) turn between samples, in [rad]."""
    step = np.abs(np.diff(angles, axis=0))
    if not np.all(step <= LARGEST_TURN + 1e-9):
        k, which = (int(index) for index in np.argwhere(step > LARGEST_TURN + 1e-9)[0])
        raise RecordingError(
            f"{source.at(k + 1, columns[which])}: the joint turns by {np.rad2deg(step[k, which]):.4g} deg "
            f"from the sample before; expected at most {np.rad2deg(LARGEST_TURN):.4g} deg: record more "
            "densely, and count angles on where they pass 180 deg"
        )

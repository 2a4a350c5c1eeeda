"""Columns of a table: which is which, in what unit it is, and its numbers in SI units.

A column is found by its name, with or without its unit behind it (`twin.recordings.table`). Files that call
a column otherwise are read by naming it: `columns={"x": "X Pos"}`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

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

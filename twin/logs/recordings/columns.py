"""Columns of a table: which is which, in what unit it is, and its numbers in SI units.

A column is found by its name, with or without its unit behind it. Files that call a column otherwise are
read by naming it: `columns={"x": "X Pos"}`.
"""

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from twin.arrays import Floats
from twin.errors import RecordingError

LARGEST_FILE = 100_000_000
"""In bytes: a million samples. What is larger is not read, nor is what never ends, as a device."""

GZIP = b"\x1f\x8b"
"""What a file that gzip packed begins with."""

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}

MARKS = {".": "point", ",": "comma"}


@dataclass(frozen=True)
class Table:
    """A file whose header has been read; make it with `open_table`.

    Attributes:
        path: for messages.
        header: names of the columns, without blanks around them.
        separator: what stands between columns, a key of `SEPARATORS`.
        rows: line number and texts of each row that is not blank, as many texts as the header has; to be gone
            through once.
    """

    path: str | Path
    header: list[str]
    separator: str
    rows: Iterator[tuple[int, list[str]]]


def open_table(path: str | Path) -> Table:
    """Return the table in a file.

    Args:
        path: text in UTF-8 (a byte-order mark is allowed) or in UTF-16 with one, or that packed by gzip.

    Raises:
        RecordingError: the file cannot be read, or its header leaves open what separates columns; later,
            while the rows are gone through, one that has more or fewer texts than the header.
    """
    text = _text(path)
    separator = _separator(path, text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        header = [name.strip() for name in next(reader, [])]
    except csv.Error as error:
        raise _no_table(path, reader.line_num, error) from error
    return Table(path, header, separator, _rows(path, reader, len(header), separator))


def _text(path: str | Path) -> str:
    """Return the text of a file."""
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if content.startswith(GZIP):
            content = gzip.GzipFile(fileobj=io.BytesIO(content)).read(LARGEST_FILE + 1)
        wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except (OSError, ValueError, EOFError, zlib.error) as error:
        reason = (
            getattr(error, "strerror", None) or str(error)
            if not isinstance(error, ValueError)
            else "it is not text in UTF-8 or UTF-16 (spreadsheets save it as 'CSV UTF-8')"
        )
        raise RecordingError(f"{path}: cannot be read: {reason}") from error
    if len(content) > LARGEST_FILE:
        raise RecordingError(f"{path}: cannot be read: it is larger than {LARGEST_FILE:g} bytes")
    return text


def _separator(path: str | Path, text: str) -> str:
    """Return what separates the columns of the header; of a single column, a comma."""
    first = re.match(r"[^\r\n]*", text)
    unquoted = re.sub(r'"[^"]*"', "", first[0] if first else "")
    found = [mark for mark in SEPARATORS if mark in unquoted]
    if len(found) > 1:
        told = " and ".join(SEPARATORS[mark] for mark in found)
        raise RecordingError(
            f"{path}, line 1: the header has {told}, either of which could separate its columns; expected "
            'one of comma, semicolon and tab (a name that has one is put in double quotes, "so, or so")'
        )
    return found[0] if found else ","


def _rows(path: str | Path, reader: Any, width: int, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and texts of each row that is not blank."""
    hint = " (numbers with a decimal comma need semicolons or tabs between them)" if separator == "," else ""
    try:
        for row in reader:
            if not "".join(row).strip():
                continue
            if len(row) != width:
                raise RecordingError(
                    f"{path}, line {reader.line_num}: expected {width} values, "
                    f"as many as the header, got {len(row)}{hint if len(row) > width else ''}"
                )
            yield reader.line_num, row
    except csv.Error as error:
        raise _no_table(path, reader.line_num, error) from error


def _no_table(path: str | Path, line: int, error: csv.Error) -> RecordingError:
    return RecordingError(f"{path}, line {line}: not rows of values: {error}")


class DecimalMark:
    """Reads the numbers of one file, in which one decimal mark is used throughout."""

    def __init__(self, path: str | Path, separator: str) -> None:
        self.path, self.comma_allowed = path, separator != ","
        self.mark, self.seen = "", ""

    def number(self, text: str, line: int, label: str) -> float:
        """Return a decimal number; Python's own extensions (`1_000`, digits of other scripts) are not ones.

        Raises:
            RecordingError: it is none, or its decimal mark is another than that of numbers before it.
        """
        marks = [mark for mark in MARKS if mark in text] if self.comma_allowed else []
        if len(marks) == 1 and marks[0] != self.mark:
            if self.mark:
                raise RecordingError(
                    f"{self._at(line, label)}: {quoted(text)} has a decimal {MARKS[marks[0]]}, {self.seen} a "
                    f"decimal {MARKS[self.mark]}; expected one decimal mark, and none between thousands"
                )
            self.mark, self.seen = marks[0], f"line {line}, column {label!r}"
        try:
            if "_" in text or not text.isascii():
                raise ValueError
            return float(text.replace(",", ".") if marks == [","] else text)
        except ValueError:
            raise RecordingError(f"{self._at(line, label)}: expected a number, got {quoted(text)}") from None

    def _at(self, line: int, label: str) -> str:
        return f"{self.path}, line {line}, column {label!r}"


def quoted(text: str) -> str:
    """Return text for a message: one line, not too long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


UNITS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "time": {"s": 1.0, "ms": 1e3},
        "length": {"m": 1.0, "mm": 1e3},
        "angle": {"rad": 1.0, "deg": 180.0 / np.pi, "°": 180.0 / np.pi},
        "torque": {"Nm": 1.0, "N m": 1.0, "N": 1.0, "mNm": 1e3, "mN m": 1e3},
        "number": {"1": 1.0},
    }
)
"""The units of each quantity, and how many of them make one of the first, which is the SI's.

Numbers are divided by it: 515 mm are then the double nearest to 0.515 m, as if metres had been written."""

BRACKETED = re.compile(r"(.*?)\s*(?:\[([^\[\]]*)\]|\(([^()]*)\))")


def si_unit(quantity: str) -> str:
    """Return the SI unit of a quantity."""
    return next(iter(UNITS[quantity]))


def split_unit(label: str, quantity: str) -> tuple[str, str | None]:
    """Return a column's name without its unit, and the unit; None where it names none.

    What stands in brackets counts as the unit whatever it is, so that a foreign one can be refused; what
    stands behind an underscore only if it is a unit of the quantity: `x_mm` is x in mm, `joint_1` is a name.

    Args:
        label: what the header calls the column, without blanks around it.
        quantity: key of `UNITS`.
    """
    if found := BRACKETED.fullmatch(label):
        name, square, round_ = found.groups()
        return name, (round_ if square is None else square).strip()
    name, _, tail = label.rpartition("_")
    if name and tail in UNITS[quantity]:
        return name, tail
    return label, None


def require_unit(unit: str, quantity: str) -> None:
    """Check a unit that the reader is told.

    Raises:
        ValueError: it is not one of the quantity.
    """
    if unit not in UNITS[quantity]:
        raise ValueError(f"expected a unit of {quantity}, {' or '.join(UNITS[quantity])}, got {unit!r}")


class Wanted(NamedTuple):
    """A column that a reader asks for.

    Attributes:
        name: what we call it.
        quantity: key of `twin.logs.recordings.columns.UNITS`.
    """

    name: str
    quantity: str


class Column(NamedTuple):
    """A column as it stands in a file, or an array's; its `unit` is what its numbers are in.

    Attributes:
        label: its name in the header.
        place: where it stands, from 0.
        quantity, unit: keys of `twin.logs.recordings.columns.UNITS`.
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

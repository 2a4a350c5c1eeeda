"""Columns of a table: their names, their units, and their numbers in SI units.

A column is found by its name, with or without a unit after it.  The names of columns can be mapped:
`columns={"x": "X Pos"}`.  A number names a column by its place, from 1; a file whose first row has numbers
only has no header, and its columns are found by their places.
"""

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import RecordingError

LARGEST_FILE = 100_000_000
"""Largest size of a file, in bytes, about a million samples; it also bounds endless input, as of a device."""

GZIP = b"\x1f\x8b"
"""First bytes of a gzip file."""

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}

MARKS = {".": "point", ",": "comma"}


@dataclass(frozen=True)
class Table:
    """File whose header has been read; `open_table` creates it.

    Attributes:
        path: path of the file, for messages.
        header: names of the columns, without surrounding blanks; their places, from 1, if there is no header.
        separator: character between columns, a key of `SEPARATORS`.
        rows: line number and cells of each row that is not blank, one cell per column; an iterator that can
            be consumed once.
    """

    path: str | Path
    header: list[str]
    separator: str
    rows: Iterator[tuple[int, list[str]]]


def open_table(path: str | Path) -> Table:
    """Open the table in a file.

    Args:
        path: path of a text file in UTF-8 (with or without byte-order mark) or in UTF-16 with byte-order
            mark, optionally compressed by gzip.

    Raises:
        RecordingError: the file cannot be read, or its separator is ambiguous.  While the rows are read: a
            row has more or fewer cells than the header.
    """
    text = _text(path)
    separator = _separator(path, text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        header = [name.strip() for name in next(reader, [])]
    except csv.Error as error:
        raise _no_table(path, reader.line_num, error) from error
    rows = _rows(path, reader, len(header), separator)
    if header and all(_is_number(cell, separator) for cell in header):
        rows = chain([(1, header)], rows)
        header = [str(k + 1) for k in range(len(header))]
    return Table(path, header, separator, rows)


def _is_number(cell: str, separator: str) -> bool:
    """Return whether a cell is a number, with a decimal comma if commas do not separate cells."""
    try:
        return np.isfinite(float(cell if separator == "," else cell.replace(",", ".")))
    except ValueError:
        return False


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
            else "it is not text in UTF-8 or UTF-16 (spreadsheets call this format 'CSV UTF-8')"
        )
        raise RecordingError(f"{path}: cannot be read: {reason}") from error
    if len(content) > LARGEST_FILE:
        raise RecordingError(f"{path}: cannot be read: it is larger than {LARGEST_FILE:g} bytes")
    return text


def _separator(path: str | Path, text: str) -> str:
    """Return the separator of the header's columns; a comma for a single column."""
    first = re.match(r"[^\r\n]*", text)
    unquoted = re.sub(r'"[^"]*"', "", first[0] if first else "")
    found = [mark for mark in SEPARATORS if mark in unquoted]
    if len(found) > 1:
        names = " and ".join(SEPARATORS[mark] for mark in found)
        raise RecordingError(
            f"{path}, line 1: the header contains {names}, either of which could separate its columns; "
            "expected one of comma, semicolon and tab (a name that contains one must be in double quotes)"
        )
    return found[0] if found else ","


def _rows(path: str | Path, reader: Any, width: int, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of each row that is not blank."""
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
    """Parser for the numbers of one file, which must use the same decimal mark throughout."""

    def __init__(self, path: str | Path, separator: str) -> None:
        self.path, self.comma_allowed = path, separator != ","
        self.mark, self.seen = "", ""

    def number(self, text: str, line: int, label: str) -> float:
        """Parse a decimal number; Python's extensions (`1_000`, digits of other scripts) are not accepted.

        Raises:
            RecordingError: the text is not a number, or its decimal mark differs from that of earlier
                numbers.
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
    """Quote a text for a message: on one line, at most 60 characters."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


UNITS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "time": {"s": 1.0, "ms": 1e3},
        "length": {"m": 1.0, "mm": 1e3},
        "angle": {"rad": 1.0, "deg": 180.0 / np.pi, "°": 180.0 / np.pi},
        "speed": {"m/s": 1.0, "mm/s": 1e3},
        "angular speed": {"rad/s": 1.0, "deg/s": 180.0 / np.pi, "°/s": 180.0 / np.pi},
        "torque": {"Nm": 1.0, "N m": 1.0, "N": 1.0, "mNm": 1e3, "mN m": 1e3},
        "number": {"1": 1.0},
    }
)
"""Units of each quantity, and how many of them make one of the first unit, which is the SI unit.

Numbers are divided by this factor: 515 mm become the double nearest to 0.515 m, as if metres had been
written.
"""

BRACKETED = re.compile(r"(.*?)\s*(?:\[([^\[\]]*)\]|\(([^()]*)\))")


def si_unit(quantity: str) -> str:
    """Return the SI unit of a quantity."""
    return next(iter(UNITS[quantity]))


def split_unit(label: str, quantity: str) -> tuple[str, str | None]:
    """Return a column's name without its unit, and the unit, or `None` if the name has none.

    Text in brackets always counts as the unit, so that an unknown unit is rejected.  Text after an underscore
    counts only if it is a unit of the quantity: `x_mm` is x in mm, while `joint_1` is a name.

    Args:
        label: name of the column in the header, without surrounding blanks.
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
    """Check a unit that the caller passed.

    Raises:
        ValueError: the unit is not one of the quantity.
    """
    if unit not in UNITS[quantity]:
        raise ValueError(f"expected a unit of {quantity}, {' or '.join(UNITS[quantity])}, got {unit!r}")


class ColumnRequest(NamedTuple):
    """Column that a reader requests.

    Attributes:
        name: standard name of the column.
        quantity: key of `twin.logs.recordings.columns.UNITS`.
    """

    name: str
    quantity: str


class Column(NamedTuple):
    """Column of a file or an array.

    Attributes:
        label: name in the header.
        place: index of the column.
        quantity: key of `twin.logs.recordings.columns.UNITS`.
        unit: unit of the numbers, a key of `UNITS[quantity]`.
    """

    label: str
    place: int
    quantity: str
    unit: str


class HeaderOptions(NamedTuple):
    """Mapping of names and default units for reading a header.

    Attributes:
        columns: names in the file by standard name; omitted columns have their standard names.
        units: units of columns whose names have none, by quantity.
    """

    columns: Mapping[str, str]
    units: Mapping[str, str]


def header_options(
    columns: Mapping[str, str] | str | None = None,
    *,
    length_unit: str = "m",
    angle_unit: str = "rad",
    time_unit: str = "s",
    torque_unit: str = "Nm",
) -> HeaderOptions:
    """Create the options for reading a header.

    Args:
        columns: names in the file by standard name, as `{"t": "Time", "x": "X Pos"}` or `"t=Time, x=X Pos"`;
            with or without the unit that the file appends.
        length_unit: "m" or "mm", for columns without a unit; likewise the next three.
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
        "speed": f"{length_unit}/s",
        "angular speed": f"{angle_unit}/s",
        "torque": torque_unit,
        "number": "1",
    }
    for quantity, unit in units.items():
        require_unit(unit, quantity)
    if isinstance(columns, str):
        columns = _pairs(columns)
    return HeaderOptions(dict(columns or {}), units)


def _pairs(text: str) -> dict[str, str]:
    """Parse pairs of names, as `t=Time, x=X Pos`."""
    pairs: dict[str, str] = {}
    for pair in text.split(","):
        standard, equals, in_file = (part.strip() for part in pair.partition("="))
        if not (standard and equals and in_file) or standard in pairs:
            what = f"{standard!r} is named twice" if standard in pairs else f"got {pair.strip()!r}"
            raise ValueError(f"expected columns as 't=Time, x=X Pos', each once: {what}")
        pairs[standard] = in_file
    return pairs


def column_indices(header: Sequence[str], requested: ColumnRequest, options: HeaderOptions) -> list[int]:
    """Return the indices of the columns in a header that match the requested one."""
    labels = [{label, split_unit(label, requested.quantity)[0]} for label in header]
    if requested.name not in options.columns:
        others = set(options.columns.values())  # a mapped column is not found by its name in the file
        return [k for k, names in enumerate(labels) if requested.name in names and not names & others]
    name = options.columns[requested.name]
    exact = [k for k, label in enumerate(header) if label == name]
    named = exact or [k for k, names in enumerate(labels) if name in names]
    place = int(name) - 1 if name.isdecimal() else -1
    return named or ([place] if 0 <= place < len(header) else [])


def find_columns(table: Table, requested: Sequence[ColumnRequest], options: HeaderOptions) -> list[Column]:
    """Return the requested columns of a table.

    Raises:
        RecordingError: a column is missing or ambiguous, two requests match the same column, or a unit does
            not fit the quantity.
    """
    places = [column_indices(table.header, request, options) for request in requested]
    for fault, wrong in (
        ("no column", [request.name for request, there in zip(requested, places, strict=True) if not there]),
        (
            "more than one column",
            [request.name for request, there in zip(requested, places, strict=True) if len(there) > 1],
        ),
    ):
        if wrong:
            names = ", ".join(repr(name) + _by_another_name(name, options) for name in wrong)
            example = ", ".join(f"{name}=NAME" for name in wrong)
            if table.header and table.header == [str(k + 1) for k in range(len(table.header))]:
                raise RecordingError(
                    f"{table.path}: no header, and {fault} {names} among {len(table.header)}; name columns "
                    f"by their places, from 1: {', '.join(f'{name}=1' for name in wrong[:3])}"
                )
            raise RecordingError(
                f"{table.path}, line 1: {fault} {names}; expected the header "
                f"{','.join(request.name for request in requested)}, "
                f"got {quoted(table.separator.join(table.header))} "
                f"(if it has another name, give it in columns: '{example}')"
            )
    found: dict[int, Column] = {}
    for request, (place,) in zip(requested, places, strict=True):
        label = table.header[place]
        if place in found:
            raise RecordingError(f"{table.path}, line 1: two of the expected columns are mapped to {label!r}")
        found[place] = Column(label, place, request.quantity, _unit(table, label, request, options))
    return list(found.values())


def _by_another_name(name: str, options: HeaderOptions) -> str:
    return f" (named {options.columns[name]!r})" if name in options.columns else ""


def _unit(table: Table, label: str, requested: ColumnRequest, options: HeaderOptions) -> str:
    """Return the unit of a column: the one in its name, or the default for its quantity."""
    unit = None if label == requested.name else split_unit(label, requested.quantity)[1]
    if unit is None or (requested.quantity == "number" and unit in ("", "-")):
        return options.units[requested.quantity]
    if unit not in UNITS[requested.quantity]:
        raise RecordingError(
            f"{table.path}, line 1, column {label!r}: expected a unit of {requested.quantity}, "
            f"{' or '.join(UNITS[requested.quantity])}, got {quoted(unit)}"
        )
    return unit


class Numbers(NamedTuple):
    """Content of some columns.

    Attributes:
        values: (N, k) numbers in SI units.
        lines: (N) line number of each row.
    """

    values: Floats
    lines: list[int]


def read_numbers(table: Table, columns: Sequence[Column]) -> Numbers:
    """Return the numbers of some columns of a table; this consumes its rows.

    Raises:
        RecordingError: a cell is not a number; the message contains file, line, column and cell.
    """
    decimals = DecimalMark(table.path, table.separator)
    rows, lines = [], []
    for line, row in table.rows:
        rows.append([decimals.number(row[column.place].strip(), line, column.label) for column in columns])
        lines.append(line)
    values = np.array(rows, dtype=np.float64).reshape(-1, len(columns))
    return Numbers(values / [UNITS[column.quantity][column.unit] for column in columns], lines)


def si_columns(names: Sequence[str], quantities: Sequence[str]) -> list[Column]:
    """Return consecutive columns in SI units, which describe those of an array."""
    return [
        Column(name, place, quantity, si_unit(quantity))
        for place, (name, quantity) in enumerate(zip(names, quantities, strict=True))
    ]


def read_columns(
    path: str | Path, requested: Sequence[ColumnRequest], options: HeaderOptions | None = None
) -> Numbers:
    """Return the numbers of the requested columns of a file.

    Raises:
        RecordingError: the file cannot be read, lacks a column, or contains something that is not a number.
    """
    table = open_table(path)
    return read_numbers(table, find_columns(table, requested, options or header_options()))

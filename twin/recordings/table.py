"""Text files of rows and columns, as spreadsheets and robot software write them.

The first line names the columns. What stands between them is recognised there: a comma, a semicolon or a tab.
A decimal comma can stand in numbers where the columns are not separated by commas; the decimal mark is then
whichever the numbers have, one in the whole file.
"""

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

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

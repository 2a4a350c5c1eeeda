"""Parts of reports: JSON documents, and tables for the terminal."""

import json
import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text


def plain(value: Any) -> Any:
    """Return a value as JSON stores it: arrays become lists, and numbers that are not finite `None`."""
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def attributes(item: Any, *names: str) -> dict[str, Any]:
    """Return some attributes of an object by their names."""
    return {name: getattr(item, name) for name in names}


def write_document(path: Path, document: Any) -> None:
    """Write a document as JSON."""
    path.write_text(json.dumps(plain(document), indent=1, allow_nan=False) + "\n", encoding="utf-8")


def table_of(*texts: str, numbers: Iterable[str] = ()) -> Table:
    """Return an empty table.

    Args:
        texts: headings of the first columns, whose long texts are wrapped.
        numbers: headings of the columns after them, on the right.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in texts:
        table.add_column(Text(heading), overflow="fold")
    for heading in numbers:
        table.add_column(Text(heading), justify="right", no_wrap=True)
    return table


def plain_table(rows: Sequence[Sequence[str]]) -> Table:
    """Return a table of the given rows, headings first: one column of texts, then numbers."""
    table = table_of(rows[0][0], numbers=rows[0][1:])
    for row in rows[1:]:
        table.add_row(*map(Text, row))
    return table


NARROWEST = 20  # smallest width of the last column, in characters


def listing(rows: Sequence[Sequence[str]], width: int) -> Iterator[Text]:
    """Yield the lines of each row: the first column in bold, the last wrapped below itself and not padded.

    Args:
        rows: at least one row, all of the same number of texts.
        width: width of the page, in characters.
    """
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)][:-1]
    indent = sum(widths)
    for *cells, last in rows:
        before = "".join(f"{cell:<{room}}" for cell, room in zip(cells, widths, strict=True))
        lines = textwrap.wrap(last, max(width - indent, NARROWEST), break_on_hyphens=False) or [""]
        text = Text.assemble((before[: widths[0]], "bold"), before[widths[0] :], lines[0])
        yield text.append("".join("\n" + " " * indent + line for line in lines[1:]))

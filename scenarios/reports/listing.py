"""Rows of texts whose last column is wrapped below itself, and not padded."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich.text import Text

NARROWEST = 20  # characters of a last column, below which the page is left to wrap it


def listing(rows: Sequence[Sequence[str]], width: int) -> Iterator[Text]:
    """A line or more for each row, the first column in bold.

    Args:
        rows: at least one, of the same number of texts.
        width: of the page, in characters.
    """
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)][:-1]
    indent = sum(widths)
    for *cells, last in rows:
        before = "".join(f"{cell:<{room}}" for cell, room in zip(cells, widths, strict=True))
        lines = textwrap.wrap(last, max(width - indent, NARROWEST), break_on_hyphens=False) or [""]
        text = Text.assemble((before[: widths[0]], "bold"), before[widths[0] :], lines[0])
        yield text.append("".join("\n" + " " * indent + line for line in lines[1:]))

"""Tables for the terminal."""

from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table
from rich.text import Text


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

"""The ledger as a table for the terminal, as Markdown, and as JSON."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from scenarios.ledger.items import VERDICTS
from scenarios.reports.verdicts import verdict
from twin.short_texts import figure

if TYPE_CHECKING:
    from rich.console import RenderableType

    from scenarios.ledger.rows import Row

FEW = 4
"""So many numbers are shown in a table; of more, the first ones."""


WIDEST = 48
"""A formula longer than that is cut in the table; `--id` and the files have the whole."""

DETAILED = 5
"""Up to so many items are shown in full."""


def ledger_report(rows: Sequence[Row], details: bool = False) -> Iterator[RenderableType]:
    """A table a source, with `details` every item in full, the items that do not hold, and the total."""
    for source in dict.fromkeys(row.item.source for row in rows):
        yield Text(f"\n{source}", "bold")
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("item, where")
        for name in ("what", "printed", "computed"):
            table.add_column(name, min_width=15)
        table.add_column("residual\n(as printed)", justify="right", no_wrap=True)
        table.add_column("verdict", no_wrap=True)
        for row in (row for row in rows if row.item.source == source):
            printed, computed, residual, wrong = _values(row)
            cells = (f"{row.item.id}\n{row.item.where}", row.item.what, _short(printed), _short(computed))
            table.add_row(*map(Text, cells), residual + f"\n({wrong})" * bool(wrong), _judged(row))
        yield table
    if details:
        for row in rows:
            yield from _in_full(row)
    yield from faults(rows)
    yield total(rows)


def _in_full(row: Row) -> Iterator[RenderableType]:
    """Everything that is known of one item."""
    item, finding = row.item, row.finding
    yield Text(f"{item.id}: {item.what}; {item.source}, {item.where}", "bold")
    computed = None if finding is None else finding.computed
    if isinstance(computed, np.ndarray):
        computed = np.array2string(computed, precision=12, suppress_small=True)
    for name, value in (
        ("printed", item.printed),
        (
            "printed number" if item.verdict == "reproduced" else "held against",
            item.expected if np.size(item.expected) else "",
        ),
        ("right", item.right),
        ("inputs", item.inputs or ""),
        ("computed", computed),
        ("tolerance", "" if finding is None else figure(item.tolerance)),
        ("as printed it must miss by", figure(item.least_error) if item.least_error else ""),
        ("nothing to compute", item.text_only),
        ("note", item.note),
    ):
        if value is not None and str(value):
            yield Text(f"  {name}: {value}")
    yield Text("")


def faults(rows: Sequence[Row]) -> Iterator[Text]:
    """One sentence for each item that is not confirmed."""
    for row in rows:
        if not row.holds:
            yield Text(f"{row.item.id}, {row.item.what}: {fault(row)}", "red")


def total(rows: Sequence[Row]) -> Text:
    """How many items of each verdict there are, and whether all are confirmed."""
    counts = {name: sum(row.item.verdict == name for row in rows) for name in VERDICTS}
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    broken = sum(not row.holds for row in rows)
    end = "all confirmed" if not broken else f"{broken} not confirmed"
    text = sum(bool(row.item.text_only) for row in rows)
    told += f"; {len(rows) - text} computed, {text} text only" if text else ""
    seconds = sum(row.seconds for row in rows)
    items = f"{len(rows)} published item{'' if len(rows) == 1 else 's'}"
    return Text(f"{items} ({told}) in {seconds:.1f} s: {end}", "bold")


def write_markdown(rows: Sequence[Row], path: Path) -> None:
    """Write one table of all items."""
    lines = [
        "| source | item | where | what | printed | computed | residual | as printed | verdict |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        item = row.item
        cells = [item.source, item.id, item.where, item.what, *_values(row), _judged(row)]
        lines.append(
            "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
        )
    lines += ["", str(total(rows)), ""]
    path.write_text("\n".join(lines), encoding="utf-8")


def write_json(rows: Sequence[Row], path: Path) -> None:
    """Write every item with its finding; a number that is not finite becomes null."""
    computed = sum(row.finding is not None for row in rows)
    document = {
        "holds": all(row.holds for row in rows),
        "computed": computed,
        "text_only": sum(bool(row.item.text_only) for row in rows),
        "items": [as_json(row) for row in rows],
    }
    path.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def as_json(row: Row) -> dict[str, Any]:
    """An item with its finding, for JSON; a number that is not finite becomes null."""
    item, finding = row.item, row.finding
    return {
        "id": item.id,
        "source": item.source,
        "where": item.where,
        "what": item.what,
        "verdict": item.verdict,
        "holds": row.holds,
        "printed": item.printed,
        "right": item.right,
        "expected": _plain(item.expected),
        "computed": None if finding is None else _plain(finding.computed),
        "residual": None if finding is None else _plain(finding.residual),
        "tolerance": item.tolerance,
        "printed_residual": None if finding is None else _plain(finding.printed_residual),
        "text_only": item.text_only,
        "note": item.note,
        "error": row.error,
    }


def _plain(value: Any) -> Any:
    """Numbers and nested lists of them, with null for what is not finite; anything else as text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int | str | None) else str(value)


def _values(row: Row) -> tuple[str, str, str, str]:
    """The cells printed, computed, residual, and residual of the printed form."""
    item, finding = row.item, row.finding
    printed = item.printed or (_numbers(item.expected) if np.size(item.expected) else "")
    if finding is None:
        return printed, item.right or item.text_only, "", ""
    computed = "" if item.verdict == "reproduced" else item.right
    wrong = "" if finding.printed_residual is None else figure(finding.printed_residual)
    return printed, computed or _numbers(finding.computed), figure(finding.residual), wrong


def _short(text: str) -> str:
    return textwrap.shorten(text, WIDEST, placeholder=" ...")


def _numbers(value: Any) -> str:
    if isinstance(value, str):
        return value
    flat = np.ravel(np.asarray(value, dtype=float))
    shown = " ".join(f"{number:.5g}" for number in flat[:FEW])
    return shown if len(flat) <= FEW else f"{shown} ... ({len(flat)})"


def _judged(row: Row) -> Text:
    if row.item.text_only:
        return Text(row.item.verdict)
    return Text.assemble(f"{row.item.verdict}\n", verdict(row.holds))


def fault(row: Row) -> str:
    """Why an item is not confirmed."""
    item, finding = row.item, row.finding
    if finding is None:
        return row.error
    if not finding.residual <= item.tolerance:
        return f"residual {figure(finding.residual)}, wanted at most {figure(item.tolerance)}"
    printed = "nothing" if finding.printed_residual is None else figure(finding.printed_residual)
    return f"as printed it misses by {printed}, expected at least {figure(item.least_error)}"

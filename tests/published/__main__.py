"""Compute the published items and print them, misprints first.

python -m tests.published              # print all items (`make published`)
python -m tests.published N-2.9 T-FK1  # print some items in full
python -m tests.published --write      # print all items, and write the tables of the documentation's page
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scenarios.report.files import plain
from tests.published.items import Row, items, rows

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "published_numbers.md"
MARK = "<!-- From here on the page is made by `python -m tests.published --write`. -->\n"
TITLES = {
    "misprint": ("Misprints", "as printed, misses by"),
    "ambiguous": ("Ambiguous", "holds within"),
    "lost": ("Lost in the text", "holds within"),
    "reproduced": ("Reproduced", "holds within"),
}
"""Title of each verdict's table, and heading of its last column."""
ROUNDING = 1e-12
"""Smallest number that is printed, relative to the largest one beside it."""

FEW = 4
"""Largest count of numbers in a table cell; longer arrays are truncated."""


def tables(found: Sequence[Row]) -> str:
    """Return a table of each verdict as text, without values that depend on rounding."""
    text = []
    for verdict, (title, last) in TITLES.items():
        if lines := [row for row in found if row.item.verdict == verdict]:
            middle = "right" if verdict in ("misprint", "ambiguous") else "computed"
            headings = ("source", "where", "item", "what", "printed", middle, last)
            text += [f"## {title} ({len(lines)})", "", _line(headings), "|---" * len(headings) + "|"]
            for row in lines:
                item = row.item
                text.append(_line((item.source, item.where, item.id, item.what, *_values(row))))
            text.append("")
    return "\n".join(text)


def _values(row: Row) -> tuple[str, str, str]:
    """Return the cells of the printed value, the right or computed value, and the error or tolerance."""
    item, finding = row.item, row.finding
    printed = item.printed or (_numbers(item.expected) if np.size(item.expected) else "")
    if finding is None:
        return printed, item.right or item.text_only, ""
    right = "" if item.verdict == "reproduced" else item.right
    off = finding.printed_residual if item.verdict == "misprint" else item.tolerance
    return printed, right or _numbers(finding.computed), "" if off is None else f"{off:.2g}"


def _numbers(value: Any) -> str:
    if isinstance(value, str):
        return value
    flat = np.ravel(np.asarray(value, dtype=float))
    largest = np.nanmax(np.abs(flat), initial=0.0)
    flat = np.where(np.abs(flat) < ROUNDING * largest, 0.0, flat)  # it differs between processors
    shown = " ".join(f"{number:.5g}" for number in flat[:FEW])
    return shown if len(flat) <= FEW else f"{shown} ... ({len(flat)})"


def total(found: Sequence[Row]) -> str:
    """Return the number of items by verdict, and the number that is not confirmed, as text."""
    counts = {name: sum(row.item.verdict == name for row in found) for name in TITLES}
    verdicts = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    text = sum(bool(row.item.text_only) for row in found)
    broken = sum(not row.passes for row in found)
    computed = f"{len(found) - text} computed, {text} text only"
    end = f"{broken} not confirmed" if broken else "all confirmed"
    return f"{len(found)} published items ({verdicts}; {computed}): {end}"


def page(found: Sequence[Row]) -> str:
    """Return the text of the page: the hand-written part up to the mark, then the tables."""
    by_hand, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    return f"{by_hand}{mark}\n{tables(found)}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(plain, cells)) + " |"


def in_full(row: Row) -> Iterator[str]:
    """Yield lines with all fields of an item and of its finding."""
    item, finding = row.item, row.finding
    yield f"{item.id}: {item.what}; {item.source}, {item.where}"
    known = vars(item) if finding is None else vars(item) | vars(finding)
    for name, value in known.items():
        if name not in ("id", "what", "source", "where") and np.size(value) and str(value):
            yield f"  {name}: {value}"


def main(arguments: Sequence[str]) -> int:
    """Print all items, or those of the given ids; return 1 if one is not confirmed, 2 for an unknown id."""
    names = {item.id: item for item in items()}
    requested = [argument for argument in arguments if argument != "--write"]
    if unknown := [name for name in requested if name not in names]:
        print(f"unknown items: {', '.join(unknown)}", file=sys.stderr)
        return 2
    found = list(rows([names[name] for name in requested] or None))
    if requested:
        for row in found:
            print(*in_full(row), "", sep="\n")
    else:
        print(tables(found))
    for row in found:
        if not row.passes:
            print("not confirmed:", *in_full(row), row.error, sep="\n")
    print(total(found))
    if "--write" in arguments:
        PAGE.write_text(page(list(rows())), encoding="utf-8")
    return 0 if all(row.passes for row in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`irb-twin published`: every published number and equation, computed now."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.console.output import Files, console, writable

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario


def add_parser(parsers: Any, scenarios: list[Scenario]) -> None:
    """Add the command to the command line."""
    parser = parsers.add_parser(
        "published",
        help="compute every number and equation that the sources print, and show the misprints",
        description="Compute the published items by the library, live. A misprint holds if the right form "
        "does and the printed one visibly does not. Exit status 1 if an item is not confirmed.",
        epilog="examples:\n  irb-twin published --source Aliaga\n  irb-twin published --id N-2.9 T-FK1\n",
    )
    parser.set_defaults(parser=parser, carry_out=published)
    parser.add_argument(
        "--source", metavar="NAME", help="one source only, as Aliaga (its name or a part of it)"
    )
    parser.add_argument("--id", nargs="+", metavar="ID", help="some items only, in full: N-2.9 T-FK1")
    parser.add_argument("--json", type=Path, metavar="FILE.json", help="write every item with all digits")
    parser.add_argument("--markdown", type=Path, metavar="FILE.md", help="write the table as Markdown")


def published(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`published`: every published number and equation, computed now."""
    from scenarios.console.progress import shown
    from scenarios.ledger.items import chosen
    from scenarios.ledger.rows import rows
    from scenarios.reports import ledger_report as report

    wanted = chosen(given.source, given.id)
    for path, suffix, option in (
        (given.json, ".json", "--json"),
        (given.markdown, ".md", "--markdown"),
    ):
        if path is not None:
            writable(path, suffix, option)
    found = []
    with shown(len(wanted)) as begin:
        for item in wanted:
            begin(f"{item.id}, {item.what}")
            found += rows([item])
    files = Files()
    files.write(given.json, partial(report.write_json, found))
    files.write(given.markdown, partial(report.write_markdown, found))
    page = console()
    page.print(*report.ledger_report(found, details=len(found) <= report.DETAILED), sep="\n")
    complete = files.name(page)
    return 0 if complete and all(row.holds for row in found) else 1

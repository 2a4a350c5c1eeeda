"""`irb-twin validate`: every scenario with every robot and controller, and every limit checked."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.commands.output import Files, console, writable
from scenarios.running.validation import planned

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario


def add_parser(parsers: Any, scenarios: list[Scenario]) -> None:
    """Add the command to the command line."""
    parser = parsers.add_parser(
        "validate",
        help="run every scenario with every robot and controller, without a window, and check every limit",
        description="Run every scenario with every robot that it suits and every controller, and the "
        "variants that a scenario names; then compute every published item (unless --robot is given).",
    )
    parser.set_defaults(parser=parser, carry_out=validate)
    parser.add_argument(
        "--robot", nargs="+", metavar="NAME", help="names of robots or paths of their files (default all)"
    )
    parser.add_argument("--junit", type=Path, metavar="FILE.xml", help="write the checks as JUnit XML")
    parser.add_argument("--json", type=Path, metavar="FILE.json", help="write every figure")


def validate(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`validate`: every scenario with every robot, and the ledger; every limit checked."""
    import twin

    if given.junit:
        writable(given.junit, ".xml", "--junit")
    if given.json:
        writable(given.json, ".json", "--json")
    plan = planned(given.robot or twin.robot_names())  # wrong use if there is none of that name

    from scenarios.commands.progress import shown
    from scenarios.ledger.items import items
    from scenarios.ledger.rows import rows
    from scenarios.reports.ledger_report import faults
    from scenarios.reports.ledger_report import total as ledger_total
    from scenarios.reports.results_file import write_json, write_junit
    from scenarios.reports.validation_report import validation_report
    from scenarios.running.runs import carry_out

    runs = []
    ledger = [] if given.robot else items()  # the ledger is about no robot in particular
    with shown(len(plan) + len(ledger)) as begin:
        for scenario, config in plan:
            begin(f"{config.robot}, {scenario.name}, {config.controller}")
            runs.append(carry_out(scenario, config))
        published = []
        for item in ledger:
            begin(f"{item.id}, {item.what}")
            published += rows([item])
    files = Files()
    for path, write in ((given.junit, write_junit), (given.json, write_json)):
        files.write(path, partial(write, runs, published=published))
    page = console()
    page.print(*validation_report(runs), sep="\n")
    if published:
        page.print(*faults(published), ledger_total(published), sep="\n")
    complete = files.name(page)
    return 0 if complete and all(one.holds for one in (*runs, *published)) else 1

"""`irb-twin check-model`: a robot file looked over."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.console.output import Files, console, writable

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario


EXAMPLES = """examples:
  irb-twin check-model my_robot.urdf
  irb-twin check-model my_arm/robot.toml --json findings.json
"""


def add_parser(parsers: Any, scenarios: list[Scenario]) -> None:
    """Add the command to the command line."""
    parser = parsers.add_parser(
        "check-model",
        help="tell what the twin makes of a robot file, and whether PyBullet agrees with the model on it",
        description="Show the joints and links of a robot file, say what is suspicious in it, and compare "
        "PyBullet with the analytic model on it from random states. Exit status 1: something is wrong.",
        epilog=EXAMPLES,
    )
    parser.set_defaults(parser=parser, carry_out=check_model)
    parser.add_argument("file", type=Path, metavar="FILE", help="a .urdf, a robot.toml or a dh.toml")
    parser.add_argument("--json", type=Path, metavar="FILE.json", help="write all of it")


def check_model(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`check-model`: a robot file looked over."""
    if given.json:
        writable(given.json, ".json", "--json")

    from scenarios.reports.model_report import Report

    report = Report(given.file)
    files = Files()
    files.write(given.json, report.write_json)
    page = console()
    page.print(*report.tables(), sep="\n", highlight=False)
    complete = files.name(page)
    return 0 if complete and report.holds else 1

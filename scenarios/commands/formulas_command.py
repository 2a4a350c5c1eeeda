"""`irb-twin formulas`: the equations of motion of a small arm, as text."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from scenarios.console.output import console

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario


def add_parser(parsers: Any, scenarios: list[Scenario]) -> None:
    """Add the command to the command line."""
    parser = parsers.add_parser(
        "formulas",
        help="print the equations of motion of a small arm, derived symbolically",
        description="Derive D, C and g of D(q) qdd + C(q, qd) qd + g(q) = tau by Euler and Lagrange, and "
        "print them: of main_axes (the first three axes of the IRB 1400), of two_link (the planar two-link "
        "arm), or of a URDF with at most three joints.",
        epilog="examples:\n  irb-twin formulas main_axes\n  irb-twin formulas my_robot.urdf\n",
    )
    parser.set_defaults(parser=parser, carry_out=show_formulas)
    parser.add_argument("model", metavar="MODEL", help="main_axes, two_link, or the path of a small URDF")


def show_formulas(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`formulas`: equations of motion as text."""
    from twin.dynamics.symbolic.trees import formulas

    console().print(formulas(given.model), highlight=False, soft_wrap=True)
    return 0

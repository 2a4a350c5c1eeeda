"""`irb-twin egm serve`: the twin is a robot on the wire, which EGM clients guide."""

from __future__ import annotations

import argparse
from typing import Any

from scenarios.commands.egm import serve_options

ABOUT = """Be the robot's side of EGM: send the robot's state every 4 ms, and go where the answers say. The
robot sends first, to where its client listens; whoever answers from there guides it. Behind it is the closed
loop of every scenario: a control law, drives, and the arm in PyBullet at 1 kHz.

An instruction EGMRun begins when its client answers, and ends when the arm has been within the convergence
window of its reference for CondTime, or with a fault, as the robot's controller tells it; after a pause the
next one begins. MaxSpeedDeviation is 1 deg/s as in the manual: 10 degrees last 10 s unless you set it.

The exit status is 0; 1 if a run ended with a fault, even if later ones did not, or a file could not be
written; 2 for wrong use, a port in use, no client within --wait, or the limit of --lockstep. Ctrl-C ends the
session in order, with its table and its files and status 130; twice, it ends at once."""


def add_parser(parsers: Any) -> None:
    """Add the command to those of `egm`."""
    parser = parsers.add_parser(
        "serve",
        help="be a robot that EGM clients guide",
        usage="irb-twin egm serve [options]",
        description=ABOUT,
        epilog=serve_options.EXAMPLES,
    )
    serve_options.add_options(parser)


def carry_out(given: argparse.Namespace) -> int:
    """`egm serve`: until it is over."""
    serve_options.check(given)
    serve_options.guidance(given)
    addresses = serve_options.addresses(given.to, given.robot)
    del addresses
    return 0

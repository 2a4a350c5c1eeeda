"""`irb-twin egm replay`: a log sent to a robot, as its client would."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from scenarios.cli.arguments import WrongUse
from scenarios.cli.egm.serve_options import HOST, LAST_PORT, PORT
from scenarios.cli.output import complain, console

ABOUT = """Send the references of a log to a robot whose EGM messages come here: slowly from where the robot
is to where the log begins, then the positions and speeds of the log at the times of the robot's messages,
then the last position until the robot is there.

A robot ends its instruction once it was within the convergence window for CondTime, 1 s by default, and one
that follows closely is within it all the time: give it a CondTime that is longer than the approach and the
log. MaxSpeedDeviation, 1 deg/s by default, is the speed of the joints at most.

The exit status is 0; 1 if the robot did not come to the end of the log; 2 for wrong use, a port in use, no
robot within --wait, or one that the log does not suit."""

EXAMPLES = """examples:
  irb-twin egm serve --cond-time 60 --max-speed-deviation 100 --position-gain 20 --runs 1
  irb-twin egm replay run.npz
  irb-twin egm replay run.npz --port 6511 --approach 5 --hold 60
"""


def add_parser(parsers: Any) -> None:
    """Add the command to those of `egm`."""
    parser = parsers.add_parser(
        "replay",
        help="send a log to a robot, as its client would",
        usage="irb-twin egm replay LOG [options]",
        description=ABOUT,
        epilog=EXAMPLES,
    )
    parser.add_argument("log", type=Path, metavar="LOG", help="a log, .npz")
    parser.add_argument("--port", type=int, default=PORT, metavar="N", help=f"to listen on (default {PORT})")
    parser.add_argument(
        "--host", default=HOST, metavar="ADDRESS",
        help=f"own address to listen on; robots on other machines reach 0.0.0.0 (default {HOST}: this "
        "machine alone)",
    )  # fmt: skip
    parser.add_argument(
        "--wait",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="for the robot's first message (default 60)",
    )
    parser.add_argument(
        "--approach", type=float, default=10.0, metavar="DEG_S",
        help="speed of the fastest joint on the way to where the log begins (default 10)",
    )  # fmt: skip
    parser.add_argument(
        "--patience", type=float, default=30.0, metavar="SECONDS",
        help="how long the robot may take to come to the start, and to the end, after it was sent there "
        "(default 30)",
    )  # fmt: skip
    parser.add_argument(
        "--hold", type=float, default=float("inf"), metavar="SECONDS",
        help="go on at the end until the robot ends its instruction, for so long at most (default: however "
        "long that is); a robot that is left alone before stops with an error",
    )  # fmt: skip


def carry_out(given: argparse.Namespace) -> int:
    """`egm replay`: a log, from its beginning to its end."""
    for name in ("wait", "approach", "patience", "hold"):
        value = getattr(given, name)
        if name == "hold" and not value >= 0.0:
            raise WrongUse(f"--hold {value:g}: expected 0 or more")
        if name != "hold" and not 0.0 < value < float("inf"):
            raise WrongUse(f"--{name} {value:g}: expected a number above 0")
    if not 0 < given.port <= LAST_PORT:
        raise WrongUse(f"--port {given.port}: expected 1 to {LAST_PORT}")

    import numpy as np

    from twin.egm.client import EgmClient
    from twin.egm.log_replay import replay
    from twin.logs.log import Log

    log = Log.load(given.log)
    page = console()
    with EgmClient(given.port, given.host) as client:
        page.print(
            f"waiting for a robot that sends to port {given.port} of {given.host}; then {given.approach:g} "
            f"deg/s to where the log begins, and {log.t[-1] - log.t[0]:.3f} s of the log",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
        done = replay(
            client, log, approach=float(np.radians(given.approach)), patience=given.patience,
            hold=given.hold, wait=given.wait,
        )  # fmt: skip
    joint = int(np.argmax(done.deviation))
    told = f"{done.messages} answers, {done.duration:.3f} s of the log"
    if done.duration > 0.0:
        beside = np.degrees(done.deviation[joint])
        told += f"; what the robot commanded was at most {beside:.3g} deg beside it (joint {joint + 1})"
    page.print(told, highlight=False, soft_wrap=True)
    if done.trouble:
        complain(done.trouble)
    return 1 if done.trouble else 0

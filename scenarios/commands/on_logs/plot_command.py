"""`irb-twin plot`: logs drawn over time, and their figures side by side."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.console.output import Files, apart, console, writable

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario

WHAT = ("error", "torque", "speed", "position", "pose")
"""What can be drawn; `twin.views.curves.TITLES`, which is not imported for the help."""

EXAMPLES = """examples:
  irb-twin plot run.npz
  irb-twin plot run-pose_path-pd.npz run-pose_path-pid.npz --what error torque
  irb-twin plot run.npz --what position --joint joint_2 joint_3 --from 1 --to 2.5 --picture detail.pdf
"""


def add_parser(parsers: Any, scenarios: list[Scenario]) -> None:
    """Add the command to the command line."""
    parser = parsers.add_parser(
        "plot",
        help="draw logs over time, overlaid, and show their figures side by side",
        usage="irb-twin plot LOG [LOG ...] [options]",
        description="Draw logs that `irb-twin run --log` or `Log.save` wrote: a panel a joint, the logs "
        "overlaid, with limits, and where torques were cut to them. Print errors, torques and speeds side by "
        "side.",
        epilog=EXAMPLES,
    )
    parser.set_defaults(parser=parser, carry_out=plot)
    add_logs(parser)
    parser.add_argument(
        "--what", nargs="+", choices=WHAT, default=["error"], metavar="WHAT",
        help=f"what to draw, a picture each: {', '.join(WHAT)} (default error)",
    )  # fmt: skip
    parser.add_argument("--joint", nargs="+", metavar="NAME", help="only these joints")
    add_window(parser)
    parser.add_argument(
        "--picture", type=Path, metavar="FILE.png",
        help="where to draw, also FILE.pdf or FILE.svg; of several pictures one each, named after it "
        "(default beside a single log, of several comparison-WHAT.png in this folder)",
    )  # fmt: skip


def add_logs(parser: argparse.ArgumentParser) -> None:
    """The logs, before any option."""
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG", help="a log; before any option")


def add_window(parser: argparse.ArgumentParser) -> None:
    """The part of the run that is looked at."""
    parser.add_argument("--from", dest="start", type=float, metavar="S", help="only from this time on, in s")
    parser.add_argument("--to", dest="end", type=float, metavar="S", help="only up to this time, in s")


def plot(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`plot`: the logs drawn, and their figures printed."""
    from twin.logs.columns import between
    from twin.views.comparison import compare
    from twin.views.curves import FORMATS, panels

    what = list(dict.fromkeys(given.what))
    pictures = [writable(path, FORMATS, "--picture") for path in _pictures(given, what)]
    whole = compare(given.logs)
    part = compare({name: between(log, given.start, given.end) for name, log in whole.logs.items()})
    for one in what:  # a joint that is not there is wrong use, and told before anything is written
        panels(part.logs, one, given.joint)
    files = Files()
    for one, path in zip(what, pictures, strict=True):
        files.write(path, partial(part.picture, what=one, joints=given.joint))
    page = console()
    page.print(part.table(page.width), highlight=False)
    return 0 if files.name(page) else 1


def _pictures(given: argparse.Namespace, what: list[str]) -> list[Path]:
    """Where each picture goes."""
    if given.picture is not None and len(what) == 1:
        return [given.picture]
    alone = given.logs[0].with_suffix(".png") if len(given.logs) == 1 else Path("comparison.png")
    return apart(given.picture or alone, [(one,) for one in what])

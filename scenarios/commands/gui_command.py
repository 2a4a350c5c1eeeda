"""`irb-twin gui`: a robot in the window under a control law, to jog, teach, push and load."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.base import Config, positive
from scenarios.console.output import Files, console, writable
from scenarios.running import options

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario

EXAMPLES = """examples:
  irb-twin gui
  irb-twin gui irb1400 --controller pid --drives elastic
  irb-twin gui irb140 --payload 6,0,0,0.08 --model-payload 0
  irb-twin gui --poses taught.csv --log taught.npz
  irb-twin run pose_path --csv taught.csv --gui
"""

ABOUT = """Show a robot in PyBullet's window under a control law: jog its joints or its tool, teach poses and
go through them, exchange the law, turn its gains, push the tool, attach and drop a payload, pause, step, slow
down. The window tells its keys. A scenario is watched by `irb-twin run SCENARIO --gui`, a log by
`irb-twin replay`."""

BESIDES = (
    "controller", "robot", "gui", "close_window", "seed", "reference",
    "encoder", "noise", "speed_cutoff", "delay",
)  # fmt: skip
"""Settings of every scenario that are none of the bench."""


def add_parser(parsers: Any, scenarios: list[Scenario]) -> None:
    """Add the command to the command line."""
    parser = parsers.add_parser(
        "gui",
        help="a robot in a window: jog, teach, push, exchange the law",
        usage="irb-twin gui [ROBOT] [options]",
        description=ABOUT,
        epilog=EXAMPLES,
    )
    parser.set_defaults(parser=parser, carry_out=carry_out)
    parser.add_argument(
        "robot", nargs="?", default="irb140", help="name of the robot, or path of its robot.toml or URDF"
    )
    parser.add_argument(
        "--controller", default="computed_torque", metavar="NAME", help="the law to begin with, as in run"
    )
    parser.add_argument("--start", metavar="POSE", help="named pose to begin in (default the zero pose)")
    parser.add_argument(
        "--duration", type=float, default=float("inf"), help="end by itself, in s (default when it is closed)"
    )
    parser.add_argument(
        "--poses", type=Path, metavar="FILE.csv", help="write the motion through taught poses"
    )
    parser.add_argument("--log", type=Path, metavar="FILE.npz", help="write the last two minutes of the run")
    options.add(parser, {}, BESIDES)


def carry_out(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`gui`: until the window is closed."""
    if given.duration != float("inf"):
        positive(given.duration, "duration", "s")
    if given.poses is not None:
        writable(given.poses, ".csv", "--poses")
    if given.log is not None:
        writable(given.log, ".npz", "--log")
    config = options.configs(vars(given), Config, [given.controller])[0]

    from scenarios.bench import taught_poses
    from scenarios.bench.free_bench import FreeBench, start_pose
    from scenarios.reports.report import own_table

    start = start_pose(config.load_robot(), given.start)
    session = FreeBench(config, start, given.poses, given.duration).run()
    files, page = Files(), console()
    if session.poses:
        page.print("Poses kept")
        page.print(own_table(taught_poses.table(session.robot, session.poses)))
    if session.touches:
        page.print("What was done: " + ", ".join(f"{what} at {t:.2f} s" for t, what in session.touches))
    if given.log is not None and session.log is not None:
        files.write(given.log, session.log.save)
    if given.poses is not None and given.poses.exists():
        words = ["irb-twin", "run", "pose_path", "--csv", str(given.poses), "--robot", config.robot]
        page.print("follow them: " + shlex.join(words), soft_wrap=True)
    return 0 if files.name(page) else 1

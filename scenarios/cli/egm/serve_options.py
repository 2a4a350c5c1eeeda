"""What `irb-twin egm serve` is told: the robots, who guides them and how."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.cli import settings
from scenarios.cli.arguments import Parser, WrongUse, count, made
from scenarios.cli.arguments import add_options as add_fields
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.wire.channel import Address

if TYPE_CHECKING:
    from scenarios.base import Config
    from scenarios.cli.egm.serving import Job
HOST, PORT = "127.0.0.1", 6510
LAST_PORT = 65535
LIMIT = 60.0
"""[s] of real time for an answer in lockstep."""

BESIDES = ("controller", "robot", "reference", "close_window")
"""Settings of every scenario that are no options here, or take several values."""

EXAMPLES = """examples:
  irb-twin egm serve
  irb-twin egm serve --max-speed-deviation 60 --ramp-time 0.05 --gui
  irb-twin egm serve --mode pose --tool 0,0,0.1 --log session.npz
  irb-twin egm serve --mode path --path seam.csv --drives rigid
  irb-twin egm serve --robot irb140 irb1600 --to 127.0.0.1:6510 127.0.0.1:6511
  irb-twin egm serve --lockstep --runs 1 --wait 10 --limit 60 --json session.json
"""


def add_options(parser: Parser) -> None:
    """Offer them all."""
    parser.add_argument(
        "--robot", nargs="+", default=["irb140"], metavar="NAME",
        help="one robot or several, each by its name or the path of its robot.toml or URDF, each in a "
        "process of its own (default irb140)",
    )  # fmt: skip
    parser.add_argument(
        "--controller", default="computed_torque", metavar="NAME",
        help="control law that moves the arm, as in run (default computed_torque)",
    )  # fmt: skip
    parser.add_argument(
        "--start", metavar="POSE",
        help="named pose in which the arm begins (default: the zero pose; in pose mode joint 5 is bent by "
        "30 degrees there, as the wrist is singular when it is straight; in path mode where the path begins)",
    )  # fmt: skip
    _add_wire(parser.add_argument_group("who guides it"))
    _add_session(parser.add_argument_group("how long, and how fast"))
    guidance = parser.add_argument_group(
        "guidance", "The arguments of EGMAct and EGMRun in RAPID, and the system parameters behind them."
    )
    guidance.add_argument(
        "--path", type=Path, metavar="FILE.csv", help="path mode: poses over time, as pose_path takes them"
    )
    add_fields(parser, GuidanceSettings, group=guidance)
    files = parser.add_argument_group("files (of several robots: one each, named after them)")
    files.add_argument(
        "--log", type=Path, metavar="FILE.npz", help="write the last two minutes of motion and of the stream"
    )
    files.add_argument(
        "--json",
        type=Path,
        metavar="FILE.json",
        help="write the last 1000 events, and the table's figures",
    )
    add_fields(parser, settings.LawSettings, group=parser.group("settings of the control laws"))
    settings.add_settings(parser, {}, BESIDES)


def _add_wire(group: Any) -> None:
    group.add_argument(
        "--to", nargs="+", default=[], metavar="HOST:PORT", type=address,
        help="where each robot sends its messages, which is where its client listens; a robot for which "
        f"there is none takes the next port (default {HOST}:{PORT})",
    )  # fmt: skip
    group.add_argument(
        "--bind", metavar="HOST[:PORT]", type=own_address,
        help="own address to be answered at, needed where the client is on another machine: 0.0.0.0 listens "
        "on every address of this one (default loopback, which no other machine reaches, and any free port)",
    )  # fmt: skip
    group.add_argument(
        "--wait", type=float, metavar="SECONDS",
        help="give up with status 2 if an instruction waits for its first answer for so long (default: "
        "never)",
    )  # fmt: skip
    group.add_argument(
        "--lag", type=float, default=0.0, metavar="MS",
        help="how much later an answer acts, rounded up to whole cycles; a controller has 10 to 20 ms "
        "(default 0)",
    )  # fmt: skip


def _add_session(group: Any) -> None:
    group.add_argument(
        "--duration",
        type=float,
        metavar="SECONDS",
        help="end by itself after so long, with --lockstep in virtual time (default: by Ctrl-C)",
    )
    group.add_argument(
        "--runs", type=count, metavar="N",
        help="end after so many instructions EGMRun or EGMMove, however they ended (default: no end)",
    )  # fmt: skip
    group.add_argument(
        "--pause", type=float, default=1.0, metavar="SECONDS",
        help="between an instruction's end and the next one (default 1)",
    )  # fmt: skip
    group.add_argument(
        "--lockstep", action="store_true",
        help="virtual time: after each message wait for exactly one answer, as long as it takes; clock and "
        "time-outs count cycles, so that two runs are the same to the bit",
    )  # fmt: skip
    group.add_argument(
        "--limit", type=float, metavar="SECONDS",
        help="with --lockstep: status 2 if an answer takes longer than that in real time (default 60)",
    )  # fmt: skip


def address(text: str, least: int = 1) -> Address:
    """`127.0.0.1:6510`, `[::1]:6510`.

    Raises:
        ArgumentTypeError: it is none.
    """
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and least <= int(port) <= LAST_PORT):
        raise argparse.ArgumentTypeError(
            f"expected HOST:PORT with a port of {least} to {LAST_PORT}, as {HOST}:{PORT}, got {text!r}"
        )
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def own_address(text: str) -> Address:
    """The same, in which the port may be missing, or 0 for any; `::1` is an address alone."""
    alone = ":" not in text or text.endswith(("]", ":")) or (text.count(":") > 1 and not text.startswith("["))
    return address(f"{text}:0" if alone else text, least=0)


def addresses(given: list[Address], robots: list[str]) -> list[Address]:
    """Where each robot sends: as given, then to the ports after the last one.

    Raises:
        WrongUse: there are more addresses than robots, no more ports, or two robots would send to one client.
    """
    if len(given) > len(robots):
        raise WrongUse(f"--to names {len(given)} addresses for {len(robots)} robot{'s' * (len(robots) > 1)}")
    found = given or [Address(HOST, PORT)]
    host, port = found[-1]
    found = [*found, *(Address(host, port + more) for more in range(1, len(robots) - len(found) + 1))]
    if found[-1].port > LAST_PORT:
        raise WrongUse(f"--to {found[-1]}: the last port is {LAST_PORT}")
    for place, address in enumerate(found):
        if address in found[:place]:
            raise WrongUse(f"--to {address}: two robots cannot send to one client")
    return found


def guidance(given: argparse.Namespace) -> GuidanceSettings:
    """The settings of guidance.

    Raises:
        EgmError: one is not valid.
    """
    return made(GuidanceSettings, dict(vars(given)))


def plant(given: argparse.Namespace, robot: str) -> Config:
    """The settings of an arm and of its control loop."""
    from scenarios.base import Config

    laws = made(settings.LawSettings, dict(vars(given)))
    return settings.configs_of(vars(given) | {"robot": robot}, Config, [given.controller], laws)[0]


def jobs(given: argparse.Namespace) -> list[Job]:
    """A job a robot.

    Raises:
        TwinError, ValueError, WrongUse: one is not valid.
    """
    from scenarios.cli.egm.serving import Job
    from scenarios.cli.output import apart

    guided = guidance(given)
    to = addresses(given.to, given.robot)
    several = len(given.robot) > 1
    labels = [
        f"{name}:{address.port}" if several else name for name, address in zip(given.robot, to, strict=True)
    ]
    logs = [given.log] * len(to)
    if given.log is not None and several:
        logs = apart(given.log, [(label,) for label in labels])
    limit = (given.limit or LIMIT) if given.lockstep else None
    return [
        Job(
            label, plant(given, robot), guided, address, given.bind, given.start, given.path,
            given.duration, given.wait, given.runs, given.pause, given.lag, limit, log,
        )
        for label, robot, address, log in zip(labels, given.robot, to, logs, strict=True)
    ]  # fmt: skip


def check(given: argparse.Namespace) -> None:
    """Check what goes together, and numbers.

    Raises:
        WrongUse, ValueError: something does not.
    """
    from scenarios.base import positive
    from scenarios.cli.output import writable

    mode = getattr(given, "mode", GuidanceSettings.mode)
    if mode == "path" and given.path is None:
        raise WrongUse("--mode path corrects a path: give one, --path FILE.csv")
    if mode != "path" and given.path is not None:
        raise WrongUse(f"--path is corrected in path mode: give --mode path, or leave it out of mode {mode}")
    if mode == "path" and given.start is not None:
        raise WrongUse("--start: a path begins where it begins; leave it out in path mode")
    for value, what in ((given.duration, "duration"), (given.wait, "--wait"), (given.limit, "--limit")):
        if value is not None:
            positive(value, what, "s")
    if not 0.0 <= given.pause < float("inf"):
        raise WrongUse(f"--pause {given.pause:g}: expected 0 s or more")
    if given.limit is not None and not given.lockstep:
        raise WrongUse("--limit is of --lockstep: give that, too, or leave it out")
    if given.lockstep and getattr(given, "gui", False):
        raise WrongUse("--lockstep has no real time in which --gui could show it: leave one of them out")
    if given.bind is not None and given.bind.port and len(given.robot) > 1:
        raise WrongUse(f"--bind {given.bind}: several robots cannot share a port; leave the port out")
    if given.log is not None:
        writable(given.log, ".npz", "--log")
    if given.json is not None:
        writable(given.json, ".json", "--json")

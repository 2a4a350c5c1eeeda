"""`irb-twin identify`: from recordings of motion and torques to the parameters of a robot."""

from __future__ import annotations

import argparse
import shlex
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.commands.on_logs.plot_command import add_window
from scenarios.console.output import Files, console, writable
from scenarios.running.options import WrongUse

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario
    from twin.identification.identify import Identification, Source
    from twin.robot.robot import Robot

EXAMPLES = """examples:
  irb-twin identify run.npz --validate other.npz
  irb-twin identify measured.csv --robot irb140 --angle-unit deg --json found.json --picture fit.png
  irb-twin identify positions.csv.gz --torques torques.csv.gz --robot my_arm/dh.toml --motor-side both
      --columns "q*=Joint_*, tau*=Joint_*" --sample-time 0.0002 --split 4.6
  irb-twin identify run.npz --out identified.toml
  irb-twin identify loaded.npz --without bare.npz --payload
"""


def add_parser(parsers: Any, scenarios: list[Scenario]) -> None:
    """Add the command to the command line."""
    parser = parsers.add_parser(
        "identify",
        help="find masses, inertias and friction from recorded positions and torques",
        usage="irb-twin identify LOG.npz | DATA.csv [...] [options]",
        description="Find the dynamic parameters of an arm that recordings of its motion and its torques "
        "tell: base parameters with standard deviations, and how well they explain the torques. A recording "
        "is a log of `irb-twin run --log`, or a table (CSV, also packed by gzip) with columns t, q1, q2 and "
        "so on, tau1, tau2 and so on, in s, rad and N m. Logs are used as they are; what was measured is "
        "filtered.",
        epilog=EXAMPLES,
    )
    parser.set_defaults(parser=parser, carry_out=identify)
    parser.add_argument(
        "recordings", nargs="+", type=Path, metavar="FILE", help="recordings, which count together"
    )
    robot = parser.add_argument_group("the robot")
    robot.add_argument(
        "--robot",
        metavar="NAME",
        help="name of the robot, or path of its file (default: the log's): its kinematics and gears count",
    )
    robot.add_argument("--mounting", metavar="HOW", help="how its base is mounted, floor, wall or inverted")
    robot.add_argument(
        "--both-sides",
        action="store_true",
        help="drives whose motors turn together with other joints rub, and have inertia, on both sides",
    )
    _add_table(parser.add_argument_group("tables"))
    _add_filter(parser.add_argument_group("filter, of what was measured"))
    part = parser.add_argument_group("what counts")
    add_window(part)
    part.add_argument(
        "--split", type=float, metavar="S", help="keep out what comes from this time on, and test with it"
    )
    part.add_argument(
        "--validate", nargs="+", type=Path, default=[], metavar="FILE", help="test with these recordings"
    )
    _add_found(parser.add_argument_group("what is found"))
    files = parser.add_argument_group("files")
    files.add_argument("--json", type=Path, metavar="FILE.json", help="write everything that was found")
    files.add_argument(
        "--picture", type=Path, metavar="FILE.png",
        help="draw measured, predicted and residual torques; also FILE.pdf or FILE.svg",
    )  # fmt: skip
    files.add_argument(
        "--out", type=Path, metavar="FILE.toml",
        help="write the robot with possible links, rotors and friction as found, and its URDF beside it",
    )  # fmt: skip


def _add_found(group: Any) -> None:
    group.add_argument(
        "--physical", action="store_true", help="also the nearest parameters that bodies can have"
    )
    group.add_argument(
        "--payload", action="store_true", help="what the flange carries, in place of the arm's parameters"
    )
    group.add_argument(
        "--without",
        nargs="+",
        type=Path,
        default=[],
        metavar="FILE",
        help="with --payload: recordings without it (default: the robot's own parameters are believed)",
    )


def _add_table(group: Any) -> None:
    group.add_argument(
        "--columns",
        metavar="NAMES",
        help="the table's names of columns, as 't=Time, q*=Pos_*, tau*=Torque_*'; * is the joint's number",
    )
    group.add_argument("--torques", type=Path, metavar="FILE", help="a table of its own for the torques")
    group.add_argument("--angle-unit", default="rad", metavar="UNIT", help="rad or deg (default rad)")
    group.add_argument("--time-unit", default="s", metavar="UNIT", help="s or ms (default s)")
    group.add_argument("--torque-unit", default="Nm", metavar="UNIT", help="Nm or mNm (default Nm)")
    group.add_argument(
        "--sample-time", type=float, metavar="S", help="between two rows, of a table without a time, in s"
    )
    group.add_argument(
        "--motor-side",
        metavar="WHAT",
        help="positions, torques or both are those of the motors, before the gears",
    )
    group.add_argument(
        "--q-offset", metavar="Q1,Q2,...", help="added to the positions of the joints, in the angles' unit"
    )


def _add_filter(group: Any) -> None:
    group.add_argument(
        "--cutoff", type=float, metavar="HZ", help="of torques and model (default: chosen from the motion)"
    )
    group.add_argument(
        "--position-cutoff", type=float, metavar="HZ", help="of positions (default: five times --cutoff)"
    )
    group.add_argument(
        "--row-rate", type=float, metavar="HZ", help="rows kept in a second (default: twice --cutoff)"
    )


def identify(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`identify`: read, fit, tell, and write what was asked for."""
    from twin.views.curves import FORMATS

    if given.json:
        writable(given.json, ".json", "--json")
    if given.picture:
        writable(given.picture, FORMATS, "--picture")

    if given.out:
        writable(given.out, ".toml", "--out")
    _require_together(given)

    import twin
    from scenarios.console.progress import shown
    from scenarios.reports.identification_report import Report
    from twin.identification.measurements import Filtering
    from twin.identification.physical import physical_solution
    from twin.identification.robot_file import require_place, write_robot_file

    robot = _robot(given)
    if given.payload:
        return _identify_payload(given, robot)
    if given.out:
        require_place(robot, given.out)
    sources = [_source(path, robot, given) for path in given.recordings]
    kept_out = [_source(path, robot, given) for path in given.validate]
    with shown(1) as begin:
        found: Identification = twin.identify(
            robot,
            *sources,
            validate=kept_out,
            both_sides=given.both_sides,
            filtering=Filtering(given.cutoff, given.position_cutoff, given.row_rate),
            start=given.start,
            end=given.end,
            split=given.split,
            progress=begin("identifying"),
        )
    solution = physical_solution(found) if given.physical or given.out else None
    report = Report(found, solution)
    files = Files()
    files.write(given.json, report.write_json)
    files.write(given.picture, report.draw)
    if given.out and solution is not None:
        files.write_several(lambda: write_robot_file(solution, given.out, _origin(given)))
    page = console()
    page.print(*report.tables(), sep="\n", highlight=False)
    return 0 if files.name(page) else 1


def _origin(given: argparse.Namespace) -> str:
    """The command, and its date."""
    return f"By `{shlex.join(['irb-twin', *given.words])}`, {date.today().isoformat()}"


def _require_together(given: argparse.Namespace) -> None:
    """Raise `WrongUse` for options that do not go together."""
    if given.without and not given.payload:
        raise WrongUse("--without tells of the arm without its payload: expected --payload with it")
    if given.out and given.both_sides:
        raise WrongUse(
            "--out: a robot's file has friction on one side of each gear: identify it without --both-sides"
        )
    for option in ("physical", "out", "both_sides", "split", "validate", "picture"):
        if given.payload and getattr(given, option) not in (False, None, []):
            raise WrongUse(f"--{option.replace('_', '-')} is about the arm's parameters, not with --payload")


def _identify_payload(given: argparse.Namespace, robot: Robot) -> int:
    """What the flange carries."""
    from scenarios.console.progress import shown
    from scenarios.reports.identification_report import PayloadReport
    from twin.identification.measurements import Filtering
    from twin.identification.payload import identify_payload

    with shown(1) as begin:
        found = identify_payload(
            robot,
            *(_source(path, robot, given) for path in given.recordings),
            bare=[_source(path, robot, given) for path in given.without],
            filtering=Filtering(given.cutoff, given.position_cutoff, given.row_rate),
            start=given.start,
            end=given.end,
            progress=begin("identifying"),
        )
    report = PayloadReport(found)
    files = Files()
    files.write(given.json, report.write_json)
    page = console()
    page.print(*report.parts(), sep="\n", highlight=False)
    page.print(f"--payload {found.text}", highlight=False, soft_wrap=True)
    return 0 if files.name(page) else 1


def _robot(given: argparse.Namespace) -> Robot:
    """The robot that was named, or that of the first log."""
    import twin

    if given.robot is not None:
        robot = twin.load(given.robot)
    else:
        logs = [path for path in given.recordings if _is_log(path)]
        if not logs:
            raise WrongUse("a table does not say whose joints it is about: name the robot, --robot")
        robot = twin.Log.load(logs[0]).robot
    return robot if given.mounting is None else robot.mounted(given.mounting)


def _is_log(path: Path) -> bool:
    return path.suffix.lower() == ".npz"


def _source(path: Path, robot: Robot, given: argparse.Namespace) -> Source:
    """What a file holds."""
    import numpy as np

    import twin
    from twin.identification.measurements import Filtering, measurements_of_log
    from twin.recordings.columns import reading

    if _is_log(path):
        filtering = Filtering(given.cutoff, given.position_cutoff, given.row_rate)
        return measurements_of_log(twin.Log.load(path), str(path), filtering)
    offset = None
    if given.q_offset is not None:
        try:
            offset = np.array([float(text) for text in given.q_offset.split(",")])
        except ValueError:
            raise WrongUse(f"--q-offset {given.q_offset}: expected numbers, as 0,-90,90") from None
        if given.angle_unit == "deg":
            offset = np.deg2rad(offset)
    form = twin.TableForm(
        reading(
            given.columns,
            angle_unit=given.angle_unit,
            time_unit=given.time_unit,
            torque_unit=given.torque_unit,
        ),
        given.torques,
        given.motor_side,
        given.sample_time,
        offset,
    )
    return twin.read_torque_recording(path, robot, form)

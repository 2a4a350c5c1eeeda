"""`irb-twin identify`: from recordings of motion and torques to the parameters of a robot."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.cli.arguments import Call, Command, WrongUse, argument, flag, option, output_file
from scenarios.cli.logs import end_option, start_option
from scenarios.cli.output import Files, console, shown, writable

if TYPE_CHECKING:
    from twin.identification.identify import Identification, Source
    from twin.identification.measurements import Filtering
    from twin.robot.robot import Robot


@dataclass(frozen=True)
class Identify(Command):
    """Find the dynamic parameters of an arm that recordings of its motion and its torques tell.

    Base parameters are shown with standard deviations, and how well they explain the torques. A recording is
    a log of `irb-twin run --log`, or a table (CSV, also packed by gzip) with columns t, q1, q2 and so on,
    tau1, tau2 and so on, in s, rad and N m. Logs are used as they are; what was measured is filtered.
    """

    usage = "irb-twin identify LOG.npz | DATA.csv [...] [options]"
    examples = """examples:
  irb-twin identify run.npz --validate other.npz
  irb-twin identify measured.csv --robot irb140 --angle-unit deg --json found.json --picture fit.png
  irb-twin identify positions.csv.gz --torques torques.csv.gz --robot my_arm/dh.toml --motor-side both
      --columns "q*=Joint_*, tau*=Joint_*" --sample-time 0.0002 --split 4.6
  irb-twin identify run.npz --out identified.toml
  irb-twin identify loaded.npz --without bare.npz --payload
"""

    recordings: tuple[Path, ...] = argument("recordings, which count together", "FILE")
    robot: str | None = option(
        None,
        "name of the robot, or path of its file (default: the log's): its kinematics and gears count",
        "NAME",
        group="the robot",
    )
    mounting: str | None = option(None, "how its base is mounted, floor, wall or inverted", "HOW")
    both_sides: bool = option(
        False, "drives whose motors turn together with other joints rub, and have inertia, on both sides"
    )
    columns: str | None = option(
        None,
        "the table's names of columns, as 't=Time, q*=Pos_*, tau*=Torque_*'; * is the joint's number",
        "NAMES",
        group="tables",
    )
    torques: Path | None = option(None, "a table of its own for the torques", "FILE")
    angle_unit: str = option("rad", "rad or deg", "UNIT")
    time_unit: str = option("s", "s or ms", "UNIT")
    torque_unit: str = option("Nm", "Nm or mNm", "UNIT")
    sample_time: float | None = option(None, "between two rows, of a table without a time, in s", "S")
    motor_side: str | None = option(
        None, "positions, torques or both are those of the motors, before the gears", "WHAT"
    )
    q_offset: str | None = option(
        None, "added to the positions of the joints, in the angles' unit", "Q1,Q2,..."
    )
    cutoff: float | None = option(
        None,
        "of torques and model (default: chosen from the motion)",
        "HZ",
        group="filters of what was measured",
    )
    position_cutoff: float | None = option(None, "of positions (default: five times --cutoff)", "HZ")
    row_rate: float | None = option(None, "rows kept in a second (default: twice --cutoff)", "HZ")
    start: float | None = start_option(group="what counts")
    end: float | None = end_option()
    split: float | None = option(None, "keep out what comes from this time on, and test with it", "S")
    validate: tuple[Path, ...] = option((), "test with these recordings", "FILE")
    physical: bool = option(False, "also the nearest parameters that bodies can have", group="what is found")
    payload: bool = option(False, "what the flange carries, in place of the arm's parameters")
    without: tuple[Path, ...] = option(
        (), "with --payload: recordings without it (default: the robot's own parameters are believed)", "FILE"
    )
    json: Path | None = output_file(".json", "write everything that was found", group="files")
    picture: Path | None = option(
        None, "draw measured, predicted and residual torques; also FILE.pdf or FILE.svg", "FILE.png"
    )
    out: Path | None = output_file(
        ".toml", "write the robot with possible links, rotors and friction as found, and its URDF beside it"
    )

    def run(self, call: Call) -> int:
        """Read, fit, tell, and write what was asked for."""
        from twin.logs.views.curves import FORMATS

        if self.picture:
            writable(self.picture, FORMATS, "--picture")
        _require_together(self)

        import twin
        from scenarios.report.identification_report import Report
        from twin.identification.physical import physical_solution
        from twin.identification.robot_file import require_place, write_robot_file

        robot = _robot(self)
        if self.payload:
            return _identify_payload(self, robot)
        if self.out:
            require_place(robot, self.out)
        sources = [_source(path, robot, self) for path in self.recordings]
        kept_out = [_source(path, robot, self) for path in self.validate]
        with shown(1) as begin:
            found: Identification = twin.identify(
                robot,
                *sources,
                validate=kept_out,
                both_sides=self.both_sides,
                filtering=self.filtering(),
                start=self.start,
                end=self.end,
                split=self.split,
                progress=begin("identifying"),
            )
        solution = physical_solution(found) if self.physical or self.out else None
        report = Report(found, solution)
        files = Files()
        files.write(self.json, report.write_json)
        files.write(self.picture, report.draw)
        if (out := self.out) and solution is not None:
            files.write_several(lambda: write_robot_file(solution, out, _origin(call.words)))
        page = console()
        page.print(*report.tables(), sep="\n", highlight=False)
        return 0 if files.name(page) else 1

    def filtering(self) -> Filtering:
        """Return how what was measured is filtered."""
        from twin.identification.measurements import Filtering

        return Filtering(self.cutoff, self.position_cutoff, self.row_rate)


def _origin(words: Sequence[str]) -> str:
    """The command, and its date."""
    return f"By `{shlex.join(['irb-twin', *words])}`, {date.today().isoformat()}"


def _require_together(given: Identify) -> None:
    """Raise `WrongUse` for options that do not go together."""
    if given.without and not given.payload:
        raise WrongUse("--without tells of the arm without its payload: expected --payload with it")
    if given.out and given.both_sides:
        raise WrongUse(
            "--out: a robot's file has friction on one side of each gear: identify it without --both-sides"
        )
    for name in ("physical", "out", "both_sides", "split", "validate", "picture"):
        if given.payload and getattr(given, name) not in (False, None, ()):
            raise WrongUse(f"{flag(name)} is about the arm's parameters, not with --payload")


def _identify_payload(given: Identify, robot: Robot) -> int:
    """Find what the flange carries, and tell it."""
    from scenarios.report.identification_report import PayloadReport
    from twin.identification.payload import identify_payload

    with shown(1) as begin:
        found = identify_payload(
            robot,
            *(_source(path, robot, given) for path in given.recordings),
            bare=[_source(path, robot, given) for path in given.without],
            filtering=given.filtering(),
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


def _robot(given: Identify) -> Robot:
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


def _source(path: Path, robot: Robot, given: Identify) -> Source:
    """Read a recording."""
    import numpy as np

    import twin
    from twin.identification.measurements import measurements_of_log
    from twin.logs.recordings.columns import header_options

    if _is_log(path):
        return measurements_of_log(twin.Log.load(path), str(path), given.filtering())
    offset = None
    if given.q_offset is not None:
        try:
            offset = np.array([float(text) for text in given.q_offset.split(",")])
        except ValueError:
            raise WrongUse(f"--q-offset {given.q_offset}: expected numbers, as 0,-90,90") from None
        if given.angle_unit == "deg":
            offset = np.deg2rad(offset)
    form = twin.logs.TableForm(
        header_options(
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
    return twin.logs.read_torque_recording(path, robot, form)

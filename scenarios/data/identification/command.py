"""`irb-twin identify`: identify the parameters of a robot from recordings of motion and torques."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from scenarios.options import argument, flag, lock_option, locked_joints, option, output_file
from scenarios.shell.output import Files, console, print_to_stderr, shown, writable
from scenarios.shell.parser import Call, Command, end_option, start_option
from twin.base.errors import WrongUse
from twin.data.logs.recordings.finding import STOPPING

if TYPE_CHECKING:
    from scenarios.data.identification.report import GainReport, PayloadReport
    from twin.data.identification.identify import Identification, Source
    from twin.data.identification.measurements import Filtering
    from twin.data.logs.recordings.finding import Finding
    from twin.physics.robot.robot import Robot


class Identify(Command):
    """Identify the dynamic parameters of an arm from recordings of its motion and torques.

    Base parameters are printed with their standard deviations, and with the torque residuals that remain. A
    recording is a log of `irb-twin run --log`, or a table (CSV, also gzipped) with the columns t, q1, q2,
    ..., tau1, tau2, ..., in s, rad and N m, and for --check-bias the commanded positions qref1, qref2, ...
    With the motors' positions qm1, qm2, ... as well, the stiffness of the gears is identified. Measured
    speeds qd1, qd2, ... are used where they have less noise than those of the positions.
    Logs are used unfiltered; measured tables are filtered.
    """

    usage = "irb-twin identify LOG.npz | DATA.csv [...] [options]"
    examples = """examples:
  irb-twin identify run.npz --validate other.npz
  irb-twin identify measured.csv --robot irb140 --angle-unit deg --json found.json --picture fit.png
  irb-twin identify positions.csv.gz --torques torques.csv.gz --robot my_arm/dh.toml --motor-side both
      --columns "q*=Joint_*, tau*=Joint_*" --sample-time 0.0002 --split 4.6
  irb-twin identify run.npz --out identified.toml --validate other.npz
  irb-twin identify with_sensors.npz --check-bias
  irb-twin identify loaded.npz --without bare.npz --payload
  irb-twin identify 5kg.csv --without bare.csv --known-load 5 --robot my_arm/dh.toml --json gains.json
  irb-twin identify loaded.csv --without bare.csv --payload --robot my_arm/dh.toml --gains gains.json
  irb-twin identify measured.csv --robot my_arm/dh.toml --columns "t=1, q*=2-7, tau*=8-13" --look look.png
"""

    recordings: tuple[Path, ...] = argument("recordings, which are fitted together", "FILE")
    robot: str | None = option(
        None,
        "name of the robot, or path of its file, for its kinematics and gears (default: the log's robot)",
        "NAME",
        group="the robot",
    )
    tool_frame: str | None = option(
        None, "link whose frame is the flange, for --payload (default tool0, or that of the log)", "LINK"
    )
    lock: tuple[str, ...] = lock_option()
    unphysical: bool = option(False, "accept bodies in a URDF that cannot exist")
    mounting: str | None = option(
        None, "mounting of its base: floor, wall, inverted, or degrees about its y axis", "HOW"
    )
    both_sides: bool = option(
        False, "coupled drives have friction and inertia on the motor side and on the joint side"
    )
    friction: tuple[str, ...] = option(
        (),
        "further friction: load (grows with the torque), root (of the speed), difference (of directions)",
        "KIND",
    )
    columns: str | None = option(
        None,
        "column names of the table, as 't=Time, q*=Pos_*, tau*=Torque_*', where * is the joint's number; or "
        "their places, as 't=1, q*=2-7, tau*=8-13'",
        "NAMES",
        group="tables",
    )
    torques: Path | None = option(None, "a separate table for the torques", "FILE")
    angle_unit: str = option("rad", "unit of angles: rad or deg", "UNIT")
    time_unit: str = option("s", "unit of time: s or ms", "UNIT")
    torque_unit: str = option("Nm", "unit of torques: Nm or mNm", "UNIT")
    sample_time: float | None = option(
        None, "time between two rows of a table without a time column, in s", "S"
    )
    motor_side: str | None = option(
        None,
        "positions, torques or both: these columns are measured at the motors, before the gears "
        "(of positions only qm1, qm2, ... if the table has them)",
        "WHAT",
    )
    torque_sensors: bool = option(
        False,
        "torques are those of sensors behind the gears, without rotors and friction of the drives, which "
        "remain those of the robot",
    )
    q_offset: str | None = option(
        None, "offsets added to the joint positions, in the unit of angles", "Q1,Q2,..."
    )
    gains: str | None = option(
        None,
        "torque per unit of each torque column, as of currents, in N m; at the motors with --motor-side; or "
        "the file that --known-load wrote, whose deviations --payload adds to its own",
        "G1,G2,...|FILE.json",
    )
    cutoff: float | None = option(
        None,
        "cutoff frequency for torques and model (default: chosen from the motion)",
        "HZ",
        group="filters of measured tables",
    )
    position_cutoff: float | None = option(
        None, "cutoff frequency for positions (default: five times --cutoff)", "HZ"
    )
    row_rate: float | None = option(None, "rows used per second (default: twice --cutoff)", "HZ")
    min_speed: float | None = option(
        None,
        "exclude samples of joints below this speed, where friction is another, in rad/s; 0 for none "
        "(default: found by cross-validation)",
        "SPEED",
    )
    start: float | None = start_option(group="time range and validation")
    end: float | None = end_option()
    split: float | None = option(
        None, "fit only the rows before this time, and validate with the others, in s", "S"
    )
    validate: tuple[Path, ...] = option((), "validate with these recordings", "FILE")
    physical: bool = option(False, "also find the nearest physically consistent parameters", group="result")
    deviations: Literal["blocks", "white"] = option(
        "blocks", "deviations for noise that lasts (bootstrap of residual blocks), or for white noise"
    )
    weights: tuple[str, ...] = option(
        (),
        "weights of the torques in the fit, 1 / deviation of each up to a factor: one number per joint, or "
        "for each recording a table with the columns w1, w2, ... and as many rows: it may be the recording "
        "(default: 1 / deviation of each joint's residuals)",
        "W1,W2,...|FILE",
    )
    delay: str = option(
        "0",
        "time by which torques were recorded later than positions, in s; auto: the one that is found",
        "S|auto",
        group="faults of recordings",
    )
    accept: tuple[str, ...] = option(
        (),
        f"use the result in spite of a finding: {', '.join(STOPPING)}; without it the status is 1, and --out "
        "writes nothing",
        "FINDING",
    )
    look: Path | None = option(
        None, "draw the recording as it is read: positions, speeds, torques, steps, delay", "FILE.png"
    )
    check_bias: bool = option(
        False, "compare with instrumental variables, which noise of the positions does not bias"
    )
    payload: bool = option(False, "identify the payload at the flange instead of the arm")
    known_load: str | None = option(
        None,
        "identify the gains of the drives by a known load at the flange: its mass, and its centre and "
        "inertia if they are known; requires --without",
        "KG[,X,Y,Z[,IXX,...]]",
    )
    without: tuple[Path, ...] = option(
        (),
        "with --payload or --known-load: recordings without it (default of --payload: use the robot's "
        "parameters)",
        "FILE",
    )
    wide: bool = option(False, "print sums of parameters whole, in lines of any length", group="files")
    json: Path | None = output_file(".json", "write all results")
    picture: Path | None = option(
        None, "draw measured, predicted and residual torques; also FILE.pdf or FILE.svg", "FILE.png"
    )
    out: Path | None = option(
        None,
        "write the robot with the identified, physically consistent parameters, and its URDF beside it; in a "
        "folder as robot.toml",
        "FILE.toml|FOLDER",
    )

    def run(self, call: Call) -> int:
        """Read the recordings, fit the parameters, print them, and write the requested files."""
        from twin.studies.views.curves import FORMATS

        for picture, name in ((self.picture, "--picture"), (self.look, "--look")):
            if picture:
                writable(picture, FORMATS, name)
        _require_together(self)

        import twin
        from scenarios.data.identification.report import Report, draw_recordings
        from twin.data.identification.deviations import check_bias
        from twin.data.identification.physical import file_findings, physical_solution
        from twin.data.identification.robot_file import require_place, write_robot_file

        robot = _robot(self)
        if self.payload:
            return _identify_payload(self, robot)
        if self.known_load is not None:
            return _identify_gains(self, robot, self.known_load)
        if self.out:
            if self.out.suffix and not self.out.is_dir():
                writable(self.out, ".toml", "--out")
            require_place(robot, self.out)
        sources = [_source(path, robot, self) for path in self.recordings]
        validation = [_source(path, robot, self) for path in self.validate]
        files = Files()
        if self.look:
            files.write(self.look, lambda path: draw_recordings(path, robot, sources, self.filtering()))
        with shown(1) as begin:
            found: Identification = twin.identify(
                robot, *sources, validate=validation, both_sides=self.both_sides, split=self.split,
                friction=self.friction, weights=_weights(self.weights, robot.n, len(sources)),
                delay=_delay(self.delay),
                progress=begin("identifying"), **self.common(),
            )  # fmt: skip
        solution = physical_solution(found) if self.physical or self.out else None
        findings = [*found.findings]
        if self.out and solution is not None:
            of_fit = {one.name for one in findings}
            findings += [one for one in file_findings(solution) if one.name not in of_fit]
        bias = check_bias(found) if self.check_bias else None
        report = Report(found, solution, bias, findings, self.wide)
        stops = [one for one in findings if one.stops and one.name not in self.accept]
        files.write(self.json, report.write_json)
        files.write(self.picture, report.draw)
        if (out := self.out) and solution is not None and not stops:
            origin = f"By `{shlex.join(['irb-twin', *call.words])}`, {date.today().isoformat()}"
            files.write_several(lambda: write_robot_file(solution, out, origin))
        page = console()
        page.print(*report.tables(), sep="\n")
        return _status(files.name(page), stops, self.out)

    def common(self) -> dict[str, Any]:
        """Return the arguments that the identification of an arm and of a payload have in common."""
        names = ("start", "end", "min_speed", "deviations", "torque_sensors")
        return {"filtering": self.filtering(), **{name: getattr(self, name) for name in names}}

    def filtering(self) -> Filtering:
        """Return the filter settings for measured tables."""
        from twin.data.identification.measurements import Filtering

        return Filtering(self.cutoff, self.position_cutoff, self.row_rate)


def _status(written: bool, stops: Sequence[Finding], out: Path | None = None) -> int:
    """Return the status: 1 if a file could not be written, or findings stop the result, which is printed."""
    if stops:
        names = sorted({one.name for one in stops})
        nothing = f", and {out} was not written" if out else ""
        print_to_stderr(
            f"the recording seems to be wrong ({', '.join(names)}, see above){nothing}; to use the result in "
            f"spite of it, add --accept {' '.join(names)}"
        )
    return 0 if written and not stops else 1


def _delay(word: str) -> float | Literal["auto"]:
    """Return the delay in s, or `auto`."""
    if word == "auto":
        return "auto"
    try:
        return float(word)
    except ValueError:
        raise WrongUse(f"--delay {word}: expected seconds, as 0.004, or auto") from None


def _require_together(given: Identify) -> None:
    """Raise `WrongUse` for options that exclude or require each other."""
    if given.without and not given.payload and given.known_load is None:
        raise WrongUse("--without requires --payload or --known-load")
    if given.known_load is not None and not given.without:
        raise WrongUse("--known-load requires --without: recordings of the arm without the load")
    for one in given.accept:
        if one not in STOPPING:
            raise WrongUse(f"--accept {one}: expected a finding, one of {', '.join(STOPPING)}")
    for one in given.friction:
        if one not in ("load", "root", "difference"):
            raise WrongUse(f"--friction {one}: expected load, root or difference")
    if given.out and given.both_sides:
        raise WrongUse("--out excludes --both-sides: a robot file has friction on one side of each gear only")
    for name, has in {"gains": "torques in N m", "torque_sensors": "the torques of motors"}.items():
        for path in (*given.recordings, *given.validate, *given.without):
            if getattr(given, name) and _is_log(path):
                raise WrongUse(f"{path}: a log has {has}, {flag(name)} expects a table")
    if given.torque_sensors:
        for name in ("both_sides", "friction"):
            if getattr(given, name):
                raise WrongUse(f"{flag(name)} is of drives, which torque sensors do not see")
        if given.motor_side in ("torques", "both"):
            raise WrongUse("--torque-sensors are behind the gears: they exclude --motor-side torques")
    of_arm = (
        "physical", "out", "both_sides", "split", "validate", "picture", "check_bias", "friction", "look",
        "weights",
    )  # fmt: skip
    if given.known_load is not None and given.payload:
        raise WrongUse("--known-load identifies the gains of the drives: it excludes --payload")
    for name in of_arm:
        for other in ("payload", "known_load"):
            if getattr(given, name) not in (False, None, ()) and getattr(given, other):
                raise WrongUse(
                    f"{flag(name)} identifies the parameters of the arm: it excludes {flag(other)}"
                )


def _identify_payload(given: Identify, robot: Robot) -> int:
    """Identify the payload at the flange, and print it."""
    from scenarios.data.identification.report import PayloadReport
    from twin.data.identification.payload import identify_payload

    with shown(1) as begin:
        found = identify_payload(
            robot,
            *(_source(path, robot, given) for path in given.recordings),
            bare=[_source(path, robot, given) for path in given.without],
            scale_covariance=_gains(given.gains)[1],
            progress=begin("identifying"),
            **given.common(),
        )
    return _written(given, PayloadReport(found), f"--payload {found.text}", found.findings)


def _identify_gains(given: Identify, robot: Robot, load: str) -> int:
    """Identify the gains of the drives by a known load, and print them."""
    from dataclasses import replace

    import numpy as np

    from scenarios.data.identification.report import GainReport
    from twin.data.identification.payload import identify_gains

    drives = robot.drives
    if (
        given.motor_side in ("torques", "both")
        and drives is not None
        and np.any(drives.coupling != np.eye(robot.n))
    ):
        raise WrongUse(
            f"--known-load finds one gain per joint, but motors of {robot.name} turn several joints: "
            "expected torques at the joints, without --motor-side"
        )
    with shown(1) as begin:
        found = identify_gains(
            robot,
            *(_source(path, robot, given) for path in given.recordings),
            bare=[_source(path, robot, given) for path in given.without],
            load=_numbers("--known-load", load, "5 or 5,0,0,0.06") or [],
            progress=begin("identifying"),
            **given.common(),
        )
    before, _ = _gains(given.gains)
    found = replace(found, gains=found.gains * (1.0 if before is None else before))
    option = f"--gains {found.text if given.json is None else given.json}"
    return _written(given, GainReport(found), option, found.findings)


def _written(
    given: Identify, report: PayloadReport | GainReport, line: str, findings: Sequence[Finding]
) -> int:
    """Write and print a report, with its result as an option in the last line, and return the status."""
    files = Files()
    files.write(given.json, report.write_json)
    page = console()
    page.print(*report.parts(), sep="\n")
    page.print(line, soft_wrap=True)
    stops = [one for one in findings if one.stops and one.name not in given.accept]
    return _status(files.name(page), stops)


def _gains(word: str | None) -> tuple[list[float] | None, list[list[float]] | None]:
    """Return the gains that `--gains` states, and their relative covariance if a file has it."""
    if word is None or not word.endswith(".json"):
        return _numbers("--gains", word, "14.9,13.3,11.1, or a file that --known-load wrote"), None
    try:
        document = json.loads(Path(word).read_text(encoding="utf-8"))
        return document["gains"], document["relative_covariance"]
    except OSError as error:
        raise WrongUse(f"--gains {word}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise WrongUse(f"--gains {word}: expected the file of --known-load with --json") from None


def _weights(words: Sequence[str], n: int, recordings: int) -> Any:
    """Return the weights of the joints, or read those of each recording; `None` for none."""
    from twin.data.logs.recordings.columns import ColumnRequest, read_columns

    if not words:
        return None
    try:
        (word,) = words
        return [float(number) for number in word.split(",")]
    except ValueError:  # files
        pass
    if len(words) != recordings:
        raise WrongUse(
            f"--weights {' '.join(words)}: expected {n} numbers, as {','.join('1' * n)}, or {recordings} "
            f"file{'s' if recordings > 1 else ''}, one per recording"
        )
    columns = [ColumnRequest(f"w{joint + 1}", "number") for joint in range(n)]
    return [read_columns(path, columns).values for path in words]


def _robot(given: Identify) -> Robot:
    """Return the robot that was named, or that of the first log."""
    import twin

    if given.robot is not None:
        robot = twin.load(
            given.robot,
            tool_frame=given.tool_frame,
            unphysical=given.unphysical,
            locked=locked_joints(given.lock),
        )
    else:
        logs = [path for path in given.recordings if _is_log(path)]
        if not logs:
            raise WrongUse("a table does not name its robot: give --robot")
        if given.lock or given.unphysical:
            raise WrongUse("--lock and --unphysical require --robot: a log has its robot as it was")
        robot = twin.Log.load(logs[0]).robot
        robot = robot if given.tool_frame is None else robot.with_tool_frame(given.tool_frame)
    return robot if given.mounting is None else robot.mounted(given.mounting)


def _numbers(flag: str, word: str | None, example: str) -> list[float] | None:
    """Return the numbers that an option has, separated by commas; `None` if it was not given."""
    try:
        return None if word is None else [float(text) for text in word.split(",")]
    except ValueError:
        raise WrongUse(f"{flag} {word}: expected numbers, as {example}") from None


def _is_log(path: Path) -> bool:
    return path.suffix.lower() == ".npz"


def _source(path: Path, robot: Robot, given: Identify) -> Source:
    """Read one recording."""
    import numpy as np

    import twin
    from twin.data.identification.measurements import measurements_of_log
    from twin.data.logs.recordings.columns import header_options

    if _is_log(path):
        return measurements_of_log(twin.Log.load(path), str(path), given.filtering())
    offset = _numbers("--q-offset", given.q_offset, "0,-90,90")
    if offset is not None and given.angle_unit == "deg":
        offset = np.deg2rad(offset)
    gains, _ = _gains(given.gains)
    units = {name: getattr(given, name) for name in ("angle_unit", "time_unit", "torque_unit")}
    header = header_options(given.columns, **units)
    form = twin.logs.TableForm(header, given.torques, given.motor_side, given.sample_time, offset, gains)
    return twin.logs.read_torque_recording(path, robot, form)

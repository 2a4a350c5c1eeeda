"""`irb-twin rapid check`, `export` and `fit`: judge a program line by line, write one, fit its plan."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from scenarios.abb.rapid import given
from scenarios.options import argument, lock_option, locked_joints, option, output_file
from scenarios.shell.output import Files, apart, console, print_to_stderr
from scenarios.shell.parser import Call, Command, count
from twin.base.errors import RapidError, WrongUse, printable

if TYPE_CHECKING:
    from twin.abb.rapid.fitting import Measured
    from twin.abb.rapid.language import Source
    from twin.abb.rapid.planning import Limits, Plan
    from twin.abb.rapid.programs import Program, Task
    from twin.abb.rapid.recorder import Note
    from twin.physics.robot.robot import Robot
    from twin.studies.cell.cell import Cell, Closest


class Check(Command):
    """Run a program in RAPID, plan its motion, and judge it line by line.

    No engine is started. What nobody gives is assumed, and listed: the values of signals, the answers of an
    operator, the start. A backup has its modules, its arm and its signals; each of its tasks is checked by
    itself.

    Exit status: 0 no fault; 1 a fault, which the last line names with its line, or a program that waits for
    what never comes; 2 wrong use.
    """

    examples = """examples:
  irb-twin rapid check pick.mod
  irb-twin rapid check backup/RAPID/TASK1 --main production
  irb-twin rapid check pick.mod --robot irb1400 --drives rigid --share 0.8 --settling 0.2
  irb-twin rapid check backup --no-kinematics
  irb-twin rapid check pick.mod --inputs part_there=1,di_stop=1@2.5 --operator 2 --json plan.json
"""

    program: tuple[str, ...] = argument(
        "module files, a .pgf file, a folder of modules, or a controller's backup", "PROGRAM"
    )
    robot: str | None = option(
        None, "name of a robot, or path of its file (default: the arm of the backup, else irb140)"
    )
    tool_frame: str | None = option(None, "link of the robot whose frame is tool0")
    lock: tuple[str, ...] = lock_option()
    unphysical: bool = option(False, "accept bodies in a URDF that cannot exist")
    drives: Literal["ideal", "rigid"] = option("rigid", "torque limits alone, or with rotors and friction")
    no_kinematics: bool = option(False, "run the program alone: list its moves, do not judge them")
    main: str = option("main", "procedure to begin with", "NAME")
    start: str | None = option(
        None, "named pose at the beginning (default: the target of a first linear move, else zero)", "POSE"
    )
    inputs: str | None = option(None, given.INPUTS, "NAME=VALUE")
    operator: str | None = option(None, given.OPERATOR, "ANSWERS")
    signal_delay: float = option(0.0, given.SIGNAL_DELAY, "S")
    home: str | None = option(None, given.HOME, "DIR")
    io: str | None = option(None, given.IO, "EIO.cfg")
    moves: int = option(5000, "stop after N moves, for programs that never end", "N", read=count)
    share: float = option(1.0, "share used of the torque beside gravity and friction, 0 to 1")
    settling: float = option(0.0, "rest at every stop, in s", "S")
    accelerations: tuple[float, ...] = option(
        (), "largest accelerations of the joints in rad/s^2, for robots without masses", "A"
    )
    cell: Path | None = option(None, "file of a cell: check the distance of every move to it", "CELL.toml")
    verbose: bool = option(False, "print the files that the program writes")
    json: Path | None = output_file(".json", "write all figures")
    junit: Path | None = output_file(".xml", "write a JUnit test case for each move")
    markdown: Path | None = output_file(".md", "write the table for a CI's summary page")

    def run(self, call: Call) -> int:
        """Print the table of every task, and return 1 after a fault or an unplanned stop."""
        from twin.abb.rapid.programs import tasks_of

        try:
            tasks = tasks_of(*self.program)
        except RapidError as error:
            print_to_stderr(f"FAULT {error}")
            return 1
        outputs = self.json, self.junit, self.markdown
        if len(tasks) == 1:
            return self._check_task(tasks[0], *outputs)
        labels = [(task.name,) for task in tasks]
        each = [[None] * len(tasks) if one is None else list(apart(one, labels)) for one in outputs]
        return max(map(self._check_task, tasks, *each))

    def _check_task(self, task: Task, json: Path | None, junit: Path | None, markdown: Path | None) -> int:
        from twin.abb.rapid.language import read_task
        from twin.abb.rapid.programs import check, interpret, unjudged_plan

        folder = task.files[0].parent if task.files else Path()
        limits = limits_of(self.share, self.settling, self.accelerations)
        robot, remarks, T_world_base = self._arm(folder)
        name = task.name or ", ".join(Path(one).name for one in self.program)
        try:
            source = read_task(task.files)
            if task.name and not has_main(source, self.main):
                console().print(f"{name}: no procedure {self.main}, not run", soft_wrap=True)
                return 0
            program = interpret(
                source, robot, main=self.main, moves=self.moves, limits=limits, T_world_base=T_world_base,
                start=None if self.start is None or robot is None else named_start(robot, self.start),
                **given.arguments(self, folder),
            )  # fmt: skip
            plan, fault = unjudged_plan(program), program.fault
            if robot is not None:
                plan, fault = check(program, robot, limits)
        except RapidError as error:  # of the language
            print_to_stderr(f"FAULT {error}")
            return 1
        near = {}
        if self.cell is not None and robot is not None:
            from twin.studies.cell.cell import load_cell

            near, too_near, unjudged = check_plan(plan, robot, load_cell(self.cell))
            fault, remarks = too_near or fault, [*remarks, *unjudged]
        remarks, has_files = (*remarks, *source.remarks), len({one.file for one in source.modules}) > 1
        found = Checked(name, has_files, robot, limits, program, remarks, plan, near, fault)
        page, files = console(), Files()
        for line in (found.head(self.main, self.drives), *found.table(), *found.closing(self.verbose)):
            page.print(line, soft_wrap=True)
        files.write(json, found.write_json)
        files.write(junit, found.write_junit)
        files.write(markdown, found.write_markdown)
        return 0 if files.name(page) and found.passes else 1

    def _arm(self, folder: Path) -> tuple[Robot | None, list[str], Any]:
        """Return the arm, None if kinematics is not judged, with remarks and its pose in the world."""
        import numpy as np

        if self.no_kinematics:
            return None, [], None
        installation = given.installed(folder)
        name, remarks = self.robot or "irb140", []
        if installation is not None and self.robot is None:
            name, remarks = given.named_arm(installation)
        given_arm = {"tool_frame": self.tool_frame, "unphysical": self.unphysical}
        robot = robot_of(name, self.drives, locked=locked_joints(self.lock), **given_arm)
        if installation is None:
            return robot, remarks, None
        if self.robot is None:
            robot, more = given.with_ranges(robot, installation)
            remarks += more
        T = installation.T_world_base
        if not np.allclose(T, np.eye(4)):
            remarks.append(
                f"MOC.cfg places the base at {np.round(1e3 * T[:3, 3], 1).tolist()} mm of the world"
            )
        return robot, remarks, T


def named_start(robot: Robot, name: str) -> Any:
    """Return a named pose.

    Raises:
        WrongUse: the robot has none of this name.
    """
    if name not in robot.poses:
        raise WrongUse(f"robot {robot.name} has no pose {name!r}: known are {', '.join(robot.poses)}")
    return robot.poses[name]


def has_main(source: Source, main: str) -> bool:
    """Return whether modules have a procedure."""
    items = (item for module in source.modules for item in module.items)
    return any(getattr(item, "kind", "") == "PROC" and item.name.lower() == main.lower() for item in items)


def robot_of(name: str, drives: str, **given: Any) -> Robot:
    """Return a robot with its drives, and arguments of `twin.load`; one without drives has ideal ones."""
    import twin

    robot = twin.load(name, **given)
    return robot if drives == "ideal" or robot.drives is None else robot.with_drives(drives)


def limits_of(share: float, settling: float, accelerations: Sequence[float]) -> Limits:
    """Return the limits of a plan.

    Raises:
        WrongUse: a number is out of its range.
    """
    import numpy as np

    from twin.abb.rapid.planning import Limits

    if not 0 < share <= 1:
        raise WrongUse(f"--share {share:g}: expected more than 0 and at most 1")
    if not 0 <= settling < float("inf"):
        raise WrongUse(f"--settling {settling:g}: expected at least 0 s")
    if accelerations and (len(accelerations) not in (1, 6) or not min(accelerations) > 0):
        raise WrongUse("--accelerations: expected one number or six, above 0 rad/s^2")
    return Limits(share, settling, np.broadcast_to(accelerations, 6).copy() if accelerations else None)


MOST_ROWS = 60
"""Number of moves above which the table has one row for each line of the program."""

UNJUDGED = 0, 1, 3, 4
"""Columns of the table if kinematics is not judged."""

HEADINGS = "line", "move", "mm", "v", "zone", "time s", "joint speed", "torque", "singular", "nearest"


class Checked(NamedTuple):
    """Checked program.

    Attributes:
        names: names of its files.
        has_files: whether its modules are of several files, which lines are then named with.
        robot: robot that executes it, None if kinematics is not judged.
        limits: limits of its motion.
        program: executed program.
        remarks: remarks on its source.
        plan: planned motion.
        near: nearest approach to the cell of each move by its index.
        fault: the first fault, if any.
    """

    names: str
    has_files: bool
    robot: Robot | None
    limits: Limits
    program: Program
    remarks: tuple[str, ...]
    plan: Plan
    near: Mapping[int, Closest]
    fault: RapidError | None

    @property
    def passes(self) -> bool:
        """Whether the program has no fault, and ran to its end or repeats itself for ever."""
        return self.fault is None and self.program.is_complete

    def head(self, main: str, drives: str) -> str:
        """Return the line above the table."""
        from twin.abb.rapid.targets import NO_LOAD

        plan = self.plan
        load = max((one.move.settings.load.values[0] for one in plan.moves), default=0.0)
        loads = f", loads up to {load:g} kg" if load > NO_LOAD else ""
        how = "kinematics not judged" if self.robot is None else f"{self.robot.name}, {drives} drives{loads}"
        return f"{self.names}: {main}, {len(plan.moves)} moves, {how}\n"

    def rows(self) -> list[tuple[str, ...]]:
        """Return the cells of the table, headings first: a row per move, or per line of many moves.

        A row of several moves has the sums of lengths and times, and the largest shares.
        """
        groups: dict[Any, list[int]] = {}
        for k, one in enumerate(self.plan.moves):
            move = one.move
            place = (move.file, move.line, move.name, move.speed[0], move.zone.values[1], move.stops)
            groups.setdefault(place if len(self.plan.moves) > MOST_ROWS else k, []).append(k)
        rows: list[tuple[str, ...]] = [HEADINGS if self.near else HEADINGS[:-1]]
        for members in groups.values():
            moves = [self.plan.moves[k] for k in members]
            move = moves[0].move
            name = move.name if len(moves) == 1 else f"{move.name} x {len(moves)}"
            zone = "fine" if move.stops else f"z{move.zone.values[1]:g}"
            place = f"{Path(move.file).name}:{move.line}" if self.has_files else str(move.line)
            shares = [max(one.joint_speed for one in moves), max(one.torque for one in moves)]
            texts = [
                "-"
                if share != share or self.robot is None
                else f"{self.robot.joint_names[joint]} {100 * share:.0f} %"
                for share, joint in shares
            ]
            length, time = sum(one.length for one in moves), sum(one.time for one in moves)
            singular = (one.singular for one in moves if one.singular)
            texts.append(min(singular, key=lambda text: text.split()[1], default=""))
            cells = [place, name, f"{length:.0f}", f"{move.speed[0]:g}", zone, f"{time:.3f}", *texts]
            if self.near:
                closest = [self.near[k].nearest for k in members if k in self.near]
                least = min(closest, key=lambda one: one.clearance, default=None)
                cells.append("" if least is None else f"{least.text} {least.names}")
            rows.append(tuple(cells))
        return rows if self.robot is not None else [tuple(row[k] for k in UNJUDGED) for row in rows]

    def table(self) -> list[str]:
        """Return the lines of the table."""
        rows = self.rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        right = {0, 2} if self.robot is None else {0, 2, 3, 5}
        return [
            "  ".join(
                cell.rjust(width) if k in right else cell.ljust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]

    def closing(self, verbose: bool = False) -> list[str]:
        """Return the lines below the table: times, what was assumed and not done, and the fault."""
        program = self.program
        lines = ["", self._times()] if self.robot is not None else [""]
        for title, notes in (("assumed:", program.assumed), ("not done, or worth a look:", program.notes)):
            if notes:
                lines.append(title)
                lines += [f"  {self._place(note)}{printable(note.text)}" for note in notes]
        lines += [f"remark: {remark}" for remark in (*self.remarks, *self._unjudged())]
        for name, text in program.written.items() if verbose else ():
            lines += [
                f"written into {printable(name)}:",
                *(f"  {printable(one)}" for one in text.splitlines()),
            ]
        if program.stopped:
            lines.append(program.stopped)
        clean = "no fault until then" if program.stopped else "no fault"
        lines.append(clean if self.fault is None else printable(f"FAULT {self.fault}"))
        return lines

    def _place(self, note: Note) -> str:
        """Return the line of a note, with its file if the modules are of several ones."""
        name = f"{Path(note.file).name}, " if self.has_files else ""
        return f"{name}line {note.line}: " if note.line else ""

    def _times(self) -> str:
        """Return the sentence on the times."""
        plan, limits = self.plan, self.limits
        assert self.robot is not None
        at_limits = f"{plan.bound:.2f} s at the limits (a lower bound"
        if limits.accelerations is None and (unknown := self.robot.joints_without_torque_limit):
            at_limits = f"not judged at the limits (no torque limit is known of {', '.join(unknown)}"
        start = f"time: {plan.by_speed:.2f} s by speeds alone, {at_limits}"
        slowed = any(one.move.settings.acceleration != 1.0 for one in plan.moves)
        if limits.share == 1.0 and not limits.settling and not slowed:
            return f"{start}; --share and --settling estimate it)"
        rest = ", which the rows leave out" if limits.settling else ""
        return (
            f"{start}), {plan.time:.2f} s estimated (share {limits.share:g}, settling {limits.settling:g} s"
            f"{rest})"
        )

    def _unjudged(self) -> list[str]:
        """Return a remark on each angle between joints whose range nobody knows."""
        from twin.physics.robot.limits import combination

        if (robot := self.robot) is None:
            return []
        return [
            f"the angle {combination(robot, joint)} is not judged: {why}"
            for joint, why in robot.unjudged.items()
        ]

    def write_json(self, path: Path) -> None:
        """Write all figures; numbers that are unknown are null."""
        from scenarios.report.documents import attributes, write_document

        plan, fault = self.plan, self.fault
        judged = self.robot is not None
        document = {
            "passes": self.passes,
            "judged": judged,
            "fault": fault and {**attributes(fault, "kind", "file", "line"), "message": str(fault)},
            "time_s": {
                "by_speed": plan.by_speed,
                "bound": plan.bound,
                "estimate": plan.time if judged else None,
            },
            "share": self.limits.share,
            "settling_s": self.limits.settling,
            "moves": [self._move_document(k) for k in range(len(plan.moves))],
            "notes": [note._asdict() for note in self.program.notes],
            "assumed": [note._asdict() for note in self.program.assumed],
            "written": self.program.written,
            "remarks": [*self.remarks, *self._unjudged()],
            "stopped": self.program.stopped,
        }
        write_document(path, document)

    def _move_document(self, k: int) -> dict[str, Any]:
        """Return the figures of a move."""
        one, near = self.plan.moves[k], self.near.get(k)
        nearest = None
        if near is not None:
            pair = list(near.nearest.pair)
            nearest = {"distance_m": near.nearest.distance, "pair": pair, "time_s": near.t}
        return {
            "file": one.move.file,
            "line": one.move.line,
            "move": one.move.name,
            "length_mm": one.length,
            "speed_mm_s": one.move.speed[0],
            "stops": one.move.stops,
            "time_s": one.time,
            "bound_s": one.bound,
            "by_speed_s": one.by_speed,
            "joint_speed": {"share": one.joint_speed[0], "joint": one.joint_speed[1] + 1},
            "torque": {"share": one.torque[0], "joint": one.torque[1] + 1},
            "singular": one.singular,
            "nearest": nearest,
        }

    def write_junit(self, path: Path) -> None:
        """Write a JUnit test case for each move, and one for the program."""
        from junitparser import Failure, Skipped, TestCase, TestSuite

        from scenarios.report.files import write_suites, xml_text

        name = xml_text(self.names)
        suite = TestSuite(name)
        for one in self.plan.moves:
            place = f"{Path(one.move.file).name}, line {one.move.line}"
            time = one.time if self.robot is not None else 0.0
            suite.append(TestCase(xml_text(f"{place} {one.move.name}"), name, time))
        last = TestCase(f"{name} has no fault", name, 0.0)
        if self.fault is not None:
            last.result = [Failure(xml_text(str(self.fault)))]
        elif not self.program.is_complete:
            last.result = [Skipped(xml_text(self.program.stopped))]
        suite.append(last)
        write_suites("irb-twin rapid check", [suite], path)

    def write_markdown(self, path: Path) -> None:
        """Write the table and the lines below it for a CI's summary page."""
        from scenarios.report.files import plain

        headings, *rows = self.rows()
        lines = [f"## irb-twin rapid check: {plain(self.names)}", "", "| " + " | ".join(headings) + " |"]
        lines.append("|" + "---|" * len(headings))
        lines += ["| " + " | ".join(map(plain, row)) + " |" for row in rows]
        lines += ["", *(f"{plain(line)}\n" for line in self.closing() if line)]
        path.write_text("\n".join(lines), encoding="utf-8")


PERIOD = 2e-3
"""Time between the configurations of a planned motion, in [s]."""


def check_plan(plan: Plan, robot: Robot, cell: Cell) -> tuple[dict[int, Closest], RapidError | None, list]:
    """Return the nearest approach of each move by its index, the first fault or None, and what is not judged.

    The arm holds a part of the cell from the move on that begins with a load in the gripper (GripLoad).
    Between two configurations a planned joint differs from an even turn by at most its acceleration times the
    square of their time, over 8.
    """
    import numpy as np

    from scenarios.studies.cell.clearance import clearance_metric, place
    from twin.abb.rapid.targets import is_load, tool_frame
    from twin.studies.cell.clearance import Clearance, Gripper, closest

    clearance = Clearance(robot, cell)
    gripper, unjudged = Gripper(clearance), []
    found: dict[int, Closest] = {}
    fault = None
    for k, (one, start) in enumerate(zip(plan.moves, plan.starts, strict=True)):
        if one.time == 0.0:
            continue
        t = np.linspace(start, start + one.time, max(2, int(np.ceil(one.time / PERIOD)) + 1))
        q, _, qdd = plan.motion(t)
        move = one.move
        if clearance.parts:
            said = gripper.switch(is_load(move.settings.load), q[0], tool_frame(move.tool))
            if gripper.is_closed and said and not gripper.held:
                unjudged.append(f"line {move.line}: {said}: what the load stands for is not judged")
        bend = np.abs(qdd).max(axis=0) * (t[1] - t[0]) ** 2 / 8.0
        found[k] = closest(clearance, t, q, np.abs(robot.embedding) @ bend)
        metric = clearance_metric(found[k], cell, robot)
        if not metric.passes and fault is None:
            fault = RapidError(f"{move.name} comes too near: {place(found[k])}", "cell", move.file, move.line)
    if clearance.parts and not any(is_load(one.move.settings.load) for one in plan.moves):
        unjudged.append("no GripLoad with a load: the parts of the cell stay, held ones are not judged")
    return found, fault, unjudged


class ExportPath(Command):
    """Print the motion of a log as a RAPID module of joint moves."""

    examples = """examples:
  irb-twin rapid export run.npz > path.mod
  irb-twin rapid export run.npz --every 50 --speed v200 --zone z5 > path.mod
"""

    log: Path = argument("a log file, .npz", "LOG")
    every: int = option(20, "use one sample of N, and the last one", "N", read=count)
    speed: str = option("v100", "predefined speed", "NAME")
    zone: str = option("z1", "predefined zone, or fine", "NAME")
    name: str = option("Path", "name of the module", "NAME")

    def run(self, call: Call) -> int:
        """Print the module."""
        import numpy as np

        from twin.abb.rapid.programs import export
        from twin.data.logs.log import Log

        log = Log.load(self.log)
        samples = np.unique([*range(0, len(log.t), self.every), len(log.t) - 1])
        sys.stdout.write(export(log.robot, log.q[samples], speed=self.speed, zone=self.zone, name=self.name))
        return 0


class Fit(Command):
    """Find the share of the torque and the settling time from measured times of moves and programs.

    The times are a CSV file with the columns `line` and `time_s`: the line of a move that ends in a stop, and
    the time from the stop before it. A row without a line is the time of the whole program, whose moves may
    have zones. With several programs, a column `program` has their file names.

    Both numbers are printed with their standard deviations, and their correlation. The times of the stops of
    one program at one speed fit well, and predict others with errors of 10 to 25 %: measure at two speeds, or
    a program with zones, which leaves 3 % (as seen on measured runs of another arm).

    Exit status: 0; 1 if a number ends at a bound, because then the times do not fit the plan; 2 wrong use.
    """

    examples = """examples:
  irb-twin rapid fit stops.mod --times stops.csv
  irb-twin rapid fit slow.mod fast.mod --times stops.csv --drives rigid
"""

    program: tuple[str, ...] = argument("programs, each a module file, a .pgf file or a folder", "PROGRAM")
    times: Path | None = option(
        None,
        "CSV file with the columns line and time_s, and program if there are several (required)",
        "FILE.csv",
    )
    robot: str = option("irb140", "name of a robot, or path of its file")
    drives: Literal["ideal", "rigid"] = option("rigid", "torque limits alone, or with rotors and friction")
    accelerations: tuple[float, ...] = option(
        (), "largest accelerations of the joints in rad/s^2, for robots without masses", "A"
    )

    def run(self, call: Call) -> int:
        """Print share and settling time with their deviations and the residuals."""
        from twin.abb.rapid.fitting import fit
        from twin.abb.rapid.programs import interpret, read

        if self.times is None:
            raise WrongUse("--times FILE.csv is required: the columns are line and time_s")
        robot = robot_of(self.robot, self.drives)
        programs = [interpret(read(one), robot) for one in self.program]
        for program in programs:
            if program.fault is not None:
                raise program.fault
        measured = _measured(self.times, self.program)
        accelerations = limits_of(1.0, 0.0, self.accelerations).accelerations
        found = fit(programs, robot, measured, accelerations=accelerations)
        limits, page = found.limits, console()
        lines = [
            f"share {limits.share:.3f} +- {found.share_deviation:.3f}, "
            f"settling {limits.settling:.3f} +- {found.settling_deviation:.3f} s, "
            f"correlation {found.correlation:.2f}",
            f"largest residual of {len(measured)} times: {abs(found.residuals).max():.3f} s",
        ]
        if math.isinf(found.share_deviation):
            lines.append("the times do not tell both apart: add moves of other lengths and speeds")
        speeds = {move.speed.tcp for program in programs for move in program.moves}
        if len(speeds) < 2 and all(one.line is not None for one in measured):
            lines.append("stops at one speed alone: other speeds and zones may differ by 10 to 25 %")
        if not found.at_bounds:
            use = f"--share {limits.share:.3f} --settling {limits.settling:.3f}"
            lines.append(f"use: irb-twin rapid check ... {use}")
        for line in (*lines, *found.at_bounds):
            page.print(line, soft_wrap=True)
        return 1 if found.at_bounds else 0


def _measured(path: Path, programs: Sequence[str]) -> list[Measured]:
    """Return the times of a CSV file.

    Raises:
        WrongUse: a column is missing, a cell is malformed, or a program is unknown.
    """
    from twin.abb.rapid.fitting import Measured

    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    names = [Path(one).name for one in programs]
    found = []
    for k, row in enumerate(rows, 2):
        try:
            line, time = row["line"].strip(), float(row["time_s"])
            if len(row) != len([name for name in row if name]) or not 0.0 < time < math.inf:
                raise ValueError
            name = (row.get("program") or names[0]).strip()
            found.append(Measured(time, int(line) if line else None, names.index(Path(name).name)))
        except (AttributeError, KeyError, TypeError, ValueError):
            known = f", and program, one of {', '.join(names)}" if len(names) > 1 else ""
            raise WrongUse(
                f"{path}, row {k}: expected the columns line, a whole number or empty for the whole program, "
                f"and time_s, a positive number{known}"
            ) from None
    return found

"""`irb-twin rapid check`: run a program, plan its motion, and judge it line by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from scenarios.options import argument, option, output_file
from scenarios.shell.output import Files, console, print_to_stderr
from scenarios.shell.parser import Call, Command, count
from twin.errors import RapidError, WrongUse, printable

if TYPE_CHECKING:
    from twin.cell.closest import Closest
    from twin.rapid.planning import Limits, Plan
    from twin.rapid.programs import Program
    from twin.robot.robot import Robot


class Check(Command):
    """Run a program in RAPID, plan its motion, and judge it line by line.

    No engine is started. Exit status: 0 no fault; 1 a fault, which the last line names with its line; 2 wrong
    use.
    """

    examples = """examples:
  irb-twin rapid check pick.mod
  irb-twin rapid check backup/RAPID/TASK1 --main production
  irb-twin rapid check pick.mod --robot irb1400 --drives rigid --share 0.8 --settling 0.2
  irb-twin rapid check pick.mod --input part_there=1 --json plan.json --junit results.xml
"""

    program: tuple[str, ...] = argument("module files, or a folder with all modules of a task", "PROGRAM")
    robot: str = option("irb140", "name of a robot, or path of its file")
    tool_frame: str | None = option(None, "link of the robot whose frame is tool0")
    drives: Literal["ideal", "rigid"] = option("rigid", "torque limits alone, or with rotors and friction")
    main: str = option("main", "procedure to begin with", "NAME")
    start: str | None = option(None, "named pose at the beginning (default the zero pose)", "POSE")
    input: tuple[str, ...] = option((), "values of inputs; others are 0", "NAME=VALUE")
    answer_after: float = option(0.0, "time after which waits for signals are answered, in s", "S")
    moves: int = option(5000, "stop after N moves, for programs that never end", "N", read=count)
    share: float = option(1.0, "share used of the torque beside gravity and friction, 0 to 1")
    settling: float = option(0.0, "rest at every stop, in s", "S")
    accelerations: tuple[float, ...] = option(
        (), "largest accelerations of the joints in rad/s^2, for robots without masses", "A"
    )
    cell: Path | None = option(None, "file of a cell: check the distance of every move to it", "CELL.toml")
    json: Path | None = output_file(".json", "write all figures")
    junit: Path | None = output_file(".xml", "write a JUnit test case for each move")
    markdown: Path | None = output_file(".md", "write the table for a CI's summary page")

    def run(self, call: Call) -> int:
        """Print the table, and return 1 after a fault."""
        from twin.rapid.programs import check
        from twin.rapid.targets import NO_LOAD

        robot = robot_of(self.robot, self.drives, self.tool_frame)
        if self.start is not None and self.start not in robot.poses:
            raise WrongUse(
                f"robot {robot.name} has no pose {self.start!r}: known are {', '.join(robot.poses)}"
            )
        limits = _limits(self.share, self.settling, self.accelerations)
        try:
            program, remarks = _interpreted(self, robot)
            plan, fault = check(program, robot, limits)
        except RapidError as error:  # of the language
            print_to_stderr(f"FAULT {error}")
            return 1
        near = {}
        if self.cell is not None:
            from scenarios.cell.clearance import check_plan
            from twin.cell.cell import load_cell

            near, too_near = check_plan(plan, robot, load_cell(self.cell))
            fault = too_near or fault
        names = ", ".join(Path(one).name for one in self.program)
        found = Checked(names, robot, limits, program, remarks, plan, near, fault)
        load = max((one.move.settings.load.values[0] for one in plan.moves), default=0.0)
        loads = f", loads up to {load:g} kg" if load > NO_LOAD else ""
        head = f"{names}: {self.main}, {len(plan.moves)} moves, {robot.name}, {self.drives} drives{loads}\n"
        page, files = console(), Files()
        for line in (head, *found.table(), *found.closing()):
            page.print(line, soft_wrap=True)
        files.write(self.json, found.write_json)
        files.write(self.junit, found.write_junit)
        files.write(self.markdown, found.write_markdown)
        return 0 if files.name(page) and fault is None else 1


def robot_of(name: str, drives: str, tool_frame: str | None = None) -> Robot:
    """Return a robot with its drives; a robot without drives has ideal ones."""
    import twin

    robot = twin.load(name, tool_frame=tool_frame)
    return robot if drives == "ideal" or robot.drives is None else robot.with_drives(drives)


def _limits(share: float, settling: float, accelerations: Sequence[float]) -> Limits:
    import numpy as np

    from twin.rapid.planning import Limits

    if not 0 < share <= 1:
        raise WrongUse(f"--share {share:g}: expected more than 0 and at most 1")
    if not 0 <= settling < float("inf"):
        raise WrongUse(f"--settling {settling:g}: expected at least 0 s")
    if accelerations and (len(accelerations) not in (1, 6) or not min(accelerations) > 0):
        raise WrongUse("--accelerations: expected one number or six, above 0 rad/s^2")
    return Limits(share, settling, np.broadcast_to(accelerations, 6).copy() if accelerations else None)


def _interpreted(given: Check, robot: Robot) -> tuple[Program, tuple[str, ...]]:
    from twin.rapid.programs import input_values, interpret, read

    try:
        inputs = input_values(",".join(given.input))
    except ValueError:
        raise WrongUse(f"--input {' '.join(given.input)}: expected NAME=VALUE with a number") from None
    source = read(*given.program)
    start = None if given.start is None else robot.poses[given.start]
    program = interpret(
        source, robot, main=given.main, inputs=inputs, answer_after=given.answer_after, moves=given.moves,
        start=start,
    )  # fmt: skip
    return program, source.remarks


MOST_ROWS = 60
"""Number of moves above which the table has one row for each line of the program."""

HEADINGS = "line", "move", "mm", "v", "zone", "time s", "joint speed", "torque", "singular", "nearest"


class Checked(NamedTuple):
    """Checked program.

    Attributes:
        names: names of its files.
        robot: robot that executes it.
        limits: limits of its motion.
        program: executed program.
        remarks: remarks on its source.
        plan: planned motion.
        near: nearest approach to the cell of each move by its index.
        fault: the first fault, if any.
    """

    names: str
    robot: Robot
    limits: Limits
    program: Program
    remarks: tuple[str, ...]
    plan: Plan
    near: Mapping[int, Closest]
    fault: RapidError | None

    @property
    def is_incomplete(self) -> bool:
        """Whether the program was stopped at a limit of moves or statements; `ExitCycle` is an end."""
        return self.program.stopped.startswith("stopped")

    def rows(self, with_files: bool) -> list[tuple[str, ...]]:
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
            place = f"{Path(move.file).name}:{move.line}" if with_files else str(move.line)
            shares = [max(one.joint_speed for one in moves), max(one.torque for one in moves)]
            texts = [
                "-" if share != share else f"{self.robot.joint_names[joint]} {100 * share:.0f} %"
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
        return rows

    def table(self) -> list[str]:
        """Return the lines of the table."""
        rows = self.rows(with_files=len({one.move.file for one in self.plan.moves}) > 1)
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        right = {0, 2, 3, 5}
        return [
            "  ".join(
                cell.rjust(width) if k in right else cell.ljust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]

    def closing(self) -> list[str]:
        """Return the lines below the table: times, what was not done, and the fault."""
        plan, program, limits = self.plan, self.program, self.limits
        at_limits = f"{plan.bound:.2f} s at the limits (a lower bound)"
        if limits.accelerations is None and (unknown := self.robot.joints_without_torque_limit):
            at_limits = f"not judged at the limits (no torque limit is known of {', '.join(unknown)})"
        lines = [
            "",
            f"time: {plan.by_speed:.2f} s by speeds alone, {at_limits}, "
            f"{plan.time:.2f} s estimated (share {limits.share:g}, settling {limits.settling:g} s)",
        ]
        if program.notes:
            lines.append("not done, or worth a look:")
            lines += [f"  line {note.line}: {printable(note.text)}" for note in program.notes]
        lines += [f"remark: {remark}" for remark in self.remarks]
        if program.stopped:
            lines.append(program.stopped)
        clean = "no fault until then" if program.stopped else "no fault"
        lines.append(clean if self.fault is None else printable(f"FAULT {self.fault}"))
        return lines

    def write_json(self, path: Path) -> None:
        """Write all figures; numbers that are unknown are null."""
        from scenarios.report.documents import attributes, write_document

        plan, fault = self.plan, self.fault
        document = {
            "passes": fault is None and not self.is_incomplete,
            "fault": fault and {**attributes(fault, "kind", "file", "line"), "message": str(fault)},
            "time_s": {"by_speed": plan.by_speed, "bound": plan.bound, "estimate": plan.time},
            "share": self.limits.share,
            "settling_s": self.limits.settling,
            "moves": [self._move_document(k) for k in range(len(plan.moves))],
            "notes": [note._asdict() for note in self.program.notes],
            "remarks": self.remarks,
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
            suite.append(TestCase(xml_text(f"{place} {one.move.name}"), name, one.time))
        last = TestCase(f"{name} has no fault", name, 0.0)
        if self.fault is not None:
            last.result = [Failure(xml_text(str(self.fault)))]
        elif self.is_incomplete:
            last.result = [Skipped(xml_text(self.program.stopped))]
        suite.append(last)
        write_suites("irb-twin rapid check", [suite], path)

    def write_markdown(self, path: Path) -> None:
        """Write the table and the lines below it for a CI's summary page."""
        from scenarios.report.files import plain

        headings, *rows = self.rows(with_files=False)
        lines = [f"## irb-twin rapid check: {plain(self.names)}", "", "| " + " | ".join(headings) + " |"]
        lines.append("|" + "---|" * len(headings))
        lines += ["| " + " | ".join(map(plain, row)) + " |" for row in rows]
        lines += ["", *(f"{plain(line)}\n" for line in self.closing() if line)]
        path.write_text("\n".join(lines), encoding="utf-8")

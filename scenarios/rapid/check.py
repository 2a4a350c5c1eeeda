"""`irb-twin rapid check`: run a program, plan its motion, and judge it line by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from scenarios.option import argument, option, output_file
from scenarios.shell.output import Files, console, print_to_stderr
from scenarios.shell.parser import Call, Command, count
from twin.errors import RapidError, WrongUse, printable

if TYPE_CHECKING:
    from twin.cell.closest import Closest
    from twin.rapid.planning import Limits, Plan, PlannedMove
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

        robot = robot_of(self.robot, self.drives)
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
        page = console()
        names = ", ".join(Path(one).name for one in self.program)
        load = max((one.move.settings.load.values[0] for one in plan.moves), default=0.0)
        page.print(
            f"{names}: {self.main}, {len(plan.moves)} moves, {robot.name}, {self.drives} drives"
            + (f", loads up to {load:g} kg\n" if load > NO_LOAD else "\n"),
            soft_wrap=True,
        )
        for line in _table(plan, robot, near, len({one.move.file for one in plan.moves}) > 1):
            page.print(line, soft_wrap=True)
        unknown = () if limits.accelerations is not None else robot.joints_without_torque_limit
        closing = _closing(plan, program, remarks, limits, unknown, fault)
        for line in closing:
            page.print(line, soft_wrap=True)
        files = Files()
        files.write(self.json, partial(_write_json, plan, near, program, remarks, limits, fault))
        files.write(self.junit, partial(_write_junit, names, plan, program, fault))
        files.write(self.markdown, partial(_write_markdown, names, plan, robot, near, closing))
        return 0 if files.name(page) and fault is None else 1


def robot_of(name: str, drives: str) -> Robot:
    """Return a robot with its drives; a robot without drives has ideal ones."""
    import twin

    robot = twin.load(name)
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
        source,
        robot,
        main=given.main,
        inputs=inputs,
        answer_after=given.answer_after,
        moves=given.moves,
        start=start,
    )
    return program, source.remarks


MOST_ROWS = 60
"""Number of moves above which the table has one row for each line of the program."""

HEADINGS = "line", "move", "mm", "v", "zone", "time s", "joint speed", "torque", "singular", "nearest"


def _headings(near: Mapping[int, Closest]) -> tuple[str, ...]:
    return HEADINGS if near else HEADINGS[:-1]


def _rows(plan: Plan, robot: Robot, near: Mapping[int, Closest], with_files: bool) -> list[tuple[str, ...]]:
    """Return the cells of the table: a row per move, or per line of a program of many moves.

    A row of several moves has the sums of lengths and times, and the largest shares.
    """
    groups: dict[Any, list[PlannedMove]] = {}
    closest: dict[Any, list[Closest]] = {}
    for k, one in enumerate(plan.moves):
        move = one.move
        place = (move.file, move.line, move.name, move.speed[0], move.zone.values[1], move.stops)
        key = place if len(plan.moves) > MOST_ROWS else k
        groups.setdefault(key, []).append(one)
        closest.setdefault(key, []).extend([near[k]] if k in near else [])
    rows = []
    for key, moves in groups.items():
        move = moves[0].move
        name = move.name if len(moves) == 1 else f"{move.name} x {len(moves)}"
        zone = "fine" if move.stops else f"z{move.zone.values[1]:g}"
        place = f"{Path(move.file).name}:{move.line}" if with_files else str(move.line)
        shares = [max(one.joint_speed for one in moves), max(one.torque for one in moves)]
        texts = [
            "-" if share != share else f"{robot.joint_names[joint]} {100 * share:.0f} %"
            for share, joint in shares
        ]
        length, time = sum(one.length for one in moves), sum(one.time for one in moves)
        singular = min(
            (one.singular for one in moves if one.singular), key=lambda text: text.split()[1], default=""
        )
        cells = [place, name, f"{length:.0f}", f"{move.speed[0]:g}", zone, f"{time:.3f}", *texts, singular]
        if near:
            least = min(closest[key], key=lambda one: one.nearest.clearance, default=None)
            cells.append("" if least is None else f"{least.nearest.text} {least.nearest.names}")
        rows.append(tuple(cells))
    return rows


def _table(plan: Plan, robot: Robot, near: Mapping[int, Closest], with_files: bool) -> list[str]:
    """Return the lines of the table."""
    rows = [_headings(near), *_rows(plan, robot, near, with_files)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = {0, 2, 3, 5}
    return [
        "  ".join(
            cell.rjust(width) if k in right else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _closing(
    plan: Plan, program: Program, remarks: Sequence[str], limits: Limits, unknown: Sequence[str],
    fault: RapidError | None,
) -> list[str]:  # fmt: skip
    """Return the lines below the table: times, what was not done, and the fault.

    `unknown` are the joints of which no torque limit is known.
    """
    at_limits = f"{plan.bound:.2f} s at the limits (a lower bound)"
    if unknown:
        at_limits = f"not judged at the limits (no torque limit is known of {', '.join(unknown)})"
    lines = [
        "",
        f"time: {plan.by_speed:.2f} s by speeds alone, {at_limits}, "
        f"{plan.time:.2f} s estimated (share {limits.share:g}, settling {limits.settling:g} s)",
    ]
    if program.notes:
        lines += [
            "not done, or worth a look:",
            *(f"  line {note.line}: {printable(note.text)}" for note in program.notes),
        ]
    lines += [f"remark: {remark}" for remark in remarks]
    if program.stopped:
        lines.append(program.stopped)
    clean = "no fault until then" if program.stopped else "no fault"
    lines.append(clean if fault is None else printable(f"FAULT {fault}"))
    return lines


def _is_incomplete(program: Program) -> bool:
    """Return whether the program was stopped at a limit of moves or statements; `ExitCycle` is an end."""
    return program.stopped.startswith("stopped")


def _write_json(
    plan: Plan,
    near: Mapping[int, Closest],
    program: Program,
    remarks: Sequence[str],
    limits: Limits,
    fault: RapidError | None,
    path: Path,
) -> None:
    def figure(value: float) -> float | None:
        return None if value != value else value

    moves: list[dict[str, Any]] = [
        {
            "file": one.move.file,
            "line": one.move.line,
            "move": one.move.name,
            "length_mm": one.length,
            "speed_mm_s": one.move.speed[0],
            "stops": one.move.stops,
            "time_s": one.time,
            "bound_s": figure(one.bound),
            "by_speed_s": one.by_speed,
            "joint_speed": {"share": figure(one.joint_speed[0]), "joint": one.joint_speed[1] + 1},
            "torque": {"share": figure(one.torque[0]), "joint": one.torque[1] + 1},
            "singular": one.singular,
            "nearest": None
            if k not in near
            else {
                "distance_m": near[k].nearest.distance,
                "pair": list(near[k].nearest.pair),
                "time_s": near[k].t,
            },
        }
        for k, one in enumerate(plan.moves)
    ]
    result = {
        "passes": fault is None and not _is_incomplete(program),
        "fault": None
        if fault is None
        else {"kind": fault.kind, "file": fault.file, "line": fault.line, "message": str(fault)},
        "time_s": {"by_speed": plan.by_speed, "bound": figure(plan.bound), "estimate": plan.time},
        "share": limits.share,
        "settling_s": limits.settling,
        "moves": moves,
        "notes": [note._asdict() for note in program.notes],
        "remarks": list(remarks),
        "stopped": program.stopped,
    }
    from scenarios.report.documents import write_document

    write_document(path, result)


def _write_junit(names: str, plan: Plan, program: Program, fault: RapidError | None, path: Path) -> None:
    from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite

    from scenarios.report.files import xml_text

    name = xml_text(names)
    suite = TestSuite(name)
    for one in plan.moves:
        place = f"{Path(one.move.file).name}, line {one.move.line}"
        suite.append(TestCase(xml_text(f"{place} {one.move.name}"), name, one.time))
    last = TestCase(f"{name} has no fault", name, 0.0)
    if fault is not None:
        last.result = [Failure(xml_text(str(fault)))]
    elif _is_incomplete(program):
        last.result = [Skipped(xml_text(program.stopped))]
    suite.append(last)
    document = JUnitXml("irb-twin rapid check")
    document.add_testsuite(suite)
    document.update_statistics()
    document.write(str(path), pretty=True)


def _write_markdown(
    names: str, plan: Plan, robot: Robot, near: Mapping[int, Closest], closing: Sequence[str], path: Path
) -> None:
    from scenarios.report.files import plain

    headings = _headings(near)
    lines = [f"## irb-twin rapid check: {plain(names)}", "", "| " + " | ".join(headings) + " |"]
    lines.append("|" + "---|" * len(headings))
    lines += ["| " + " | ".join(map(plain, row)) + " |" for row in _rows(plan, robot, near, False)]
    lines += ["", *(f"{plain(line)}\n" for line in closing if line)]
    path.write_text("\n".join(lines), encoding="utf-8")

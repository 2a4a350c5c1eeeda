"""Programs: read them from files and backups, run them on an arm, check their moves, export a path as one.

A backup has the modules of its tasks in `RAPID/TASK1/PROGMOD` and `SYSMOD`, its signals in `SYSPAR/EIO.cfg`,
and its arm in `SYSPAR/MOC.cfg`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike

from twin.abb.rapid.functions import functions_for
from twin.abb.rapid.instructions import instructions_for
from twin.abb.rapid.language import Source, read_task
from twin.abb.rapid.planning import LargestShare, Limits, Plan, PlannedMove, plan
from twin.abb.rapid.program import FRAMES, STEP_LIMIT, Interpreter
from twin.abb.rapid.recorder import Files, Note, Operator, Recorder, Stopped
from twin.abb.rapid.signals import Inputs, Signals
from twin.abb.rapid.targets import Arm, Move, Pause, Segment
from twin.abb.rapid.values import PREDEFINED, SUFFIXES
from twin.base.arrays import Floats, float_array
from twin.base.errors import RapidError, RobotError
from twin.data.logs.annotations import read_text
from twin.physics.robot.limits import check_position
from twin.physics.robot.robot import Robot
from twin.physics.rotations.rotations import matrix_from_quaternion
from twin.physics.trajectories.joint_trajectories import Sequence as MotionSequence
from twin.physics.trajectories.joint_trajectories import hold

ATTRIBUTE = re.compile(r'-(\w+)\s+("[^"]*"|\S+)')
MODEL = re.compile(r"^ROB\d+_(\w+?)_(\d\.\d+)(?:_(\d+))?", re.I)


class Task(NamedTuple):
    """Task of a controller: its name, "" for the only one, and the files of its modules."""

    name: str
    files: tuple[Path, ...]


class Installation(NamedTuple):
    """Arm of a controller, as its configuration states it.

    Attributes:
        type: name of the arm's type, such as ROB1_1600_1.45_8.
        model: model in it, such as 1600; "" if the type names none.
        reach: reach in [m], 0 if the type names none.
        payload: payload in [kg], 0 if the type names none.
        ranges: smallest and largest angles of joints by their indices, in [rad].
        T_world_base: (4, 4) pose of the base frame, in [m].
    """

    type: str
    model: str
    reach: float
    payload: float
    ranges: dict[int, tuple[float, float]]
    T_world_base: Floats


# ------------------------------------------------------------------------------------------------ modules


def tasks_of(*paths: str | Path) -> list[Task]:
    """Return the tasks of files and folders: one, or those of a backup.

    Args:
        paths: module files, `.pgf` files, folders with modules, or one folder of a backup.

    Raises:
        FileNotFoundError: a path does not exist, or a `.pgf` names a module that does not.
        RapidError: a folder has no module, or a `.pgf` cannot be read.
    """
    found = [Path(path) for path in paths]
    for path in found:
        if not path.exists():
            raise FileNotFoundError(f"there is no file or folder {path}")
    if len(found) == 1 and (folders := _task_folders(found[0])):
        tasks = [Task(one.name if len(folders) > 1 else "", _modules(one)) for one in folders]
        return [task for task in tasks if task.files]
    return [Task("", tuple(file for path in found for file in _files(path)))]


def _task_folders(path: Path) -> list[Path]:
    """Return the folders of the tasks of a backup, which have modules."""
    rapid = path / "RAPID" if (path / "RAPID").is_dir() else path
    folders = sorted(one for one in rapid.glob("TASK*") if one.is_dir()) if rapid.is_dir() else []
    return [one for one in folders if _modules(one)]


def _files(path: Path) -> tuple[Path, ...]:
    if path.suffix.lower() == ".pgf":
        return _modules_of_pgf(path)
    if not path.is_dir():
        return (path,)
    lists = sorted(one for one in path.iterdir() if one.suffix.lower() == ".pgf")
    if len(lists) == 1:
        return _modules_of_pgf(lists[0])
    if files := _modules(path):
        return files
    raise RapidError(f"{path} has no module ({', '.join(SUFFIXES)})", "name")


def _modules(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(one for one in folder.rglob("*") if one.suffix.lower() in SUFFIXES and one.is_file()))


def _modules_of_pgf(path: Path) -> tuple[Path, ...]:
    """Return the modules that a `.pgf` file lists."""
    try:
        names = [one.text or "" for one in ElementTree.fromstring(path.read_bytes()).iter("Module")]
    except ElementTree.ParseError as error:
        raise RapidError(f"{path}: expected <Program> with <Module> in XML: {error}", "syntax") from None
    files = [path.parent / name.strip().replace("\\", "/") for name in names]
    for file in files:
        if not file.is_file():
            raise FileNotFoundError(f"there is no file {file}, which {path.name} lists")
    if not files:
        raise RapidError(f"{path} lists no module", "name")
    return tuple(files)


# ------------------------------------------------------------------------------------------ configuration


def system_file(path: str | Path, name: str) -> Path | None:
    """Return a file of a backup's SYSPAR, such as EIO.cfg; None if there is none.

    Args:
        path: folder of a backup, or a task's folder in it.
        name: name of the file.
    """
    folder = Path(path).resolve()
    roots = [folder, *(one.parent for one in (folder, *folder.parents) if one.name.upper() == "RAPID")]
    files = (root / "SYSPAR" / name for root in roots)
    return next((file for file in files if file.is_file()), None)


def signal_types(path: str | Path) -> dict[str, str]:
    """Return the types (DI, DO, GI, GO, AI, AO) of the signals in EIO.cfg by their names.

    Raises:
        OSError: the file cannot be read.
        RapidError: it has no signal.
    """
    items = _items(read_text(path), "EIO_SIGNAL")
    found = {one["name"]: one.get("signaltype", "") for one in items if "name" in one}
    if not found:
        raise RapidError(f"{path}: expected EIO.cfg with -Name and -SignalType under EIO_SIGNAL", "syntax")
    return found


def installation(path: str | Path) -> Installation | None:
    """Return the first arm in MOC.cfg, None if it states none.

    Raises:
        OSError: the file cannot be read.
    """
    text = read_text(path)
    for robot in _items(text, "ROBOT"):
        if type_ := robot.get("use_robot_type", ""):
            found = MODEL.match(type_)
            joints = [robot.get(f"use_joint_{k}", "") for k in range(6)]
            ranges = {
                joints.index(one["name"]): (float(one["lower_joint_bound"]), float(one["upper_joint_bound"]))
                for one in _items(text, "ARM")
                if one.get("name") in joints and {"lower_joint_bound", "upper_joint_bound"} <= set(one)
            }
            model, reach, payload = found.groups() if found else ("", 0.0, 0.0)
            return Installation(type_, model, float(reach), float(payload or 0.0), ranges, _base_frame(robot))
    return None


def _base_frame(robot: dict[str, str]) -> Floats:
    T = np.eye(4)
    q = [float(robot.get(f"base_frame_orient_u{k}", "1" if k == 0 else "0")) for k in range(4)]
    T[:3, :3] = matrix_from_quaternion(np.array(q) / np.linalg.norm(q))
    T[:3, 3] = [float(robot.get(f"base_frame_pos_{axis}", "0")) for axis in "xyz"]
    return T


def _items(text: str, section: str) -> Iterator[dict[str, str]]:
    """Yield the attributes of the items of a section, by their names in lower case."""
    text = re.sub(r"\\\s*\n\s*", " ", text.replace("\r\n", "\n"))
    found = re.search(rf"^{section}:\s*$(.*?)(?=^#|^\w+:\s*$|\Z)", text, re.M | re.S)
    for line in found[1].splitlines() if found else ():
        if attributes := ATTRIBUTE.findall(line):
            yield {name.lower(): value.strip('"') for name, value in attributes}


@dataclass(frozen=True, eq=False)
class Program:
    """Executed program.

    Attributes:
        events: moves and pauses in order.
        segments: paths of the moves; empty without a robot.
        notes: what was not done, and remarks.
        assumed: what nobody gave, and was assumed: signals, answers of the operator, the start.
        stopped: why the execution ended early, "" if it did not.
        is_complete: whether it ran to its end, as the program means it, or repeats itself for ever.
        fault: fault that ended the execution, or None.
        written: texts that it wrote into files, by their names.
    """

    events: tuple[Move | Pause, ...]
    segments: tuple[Segment, ...]
    notes: tuple[Note, ...]
    assumed: tuple[Note, ...]
    stopped: str
    is_complete: bool
    fault: RapidError | None
    written: Mapping[str, str]

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves."""
        return tuple(event for event in self.events if isinstance(event, Move))


def read(*paths: str | Path) -> Source:
    r"""Return the modules of one task.

    Args:
        paths: module files, `.pgf` files with their modules, or folders, such as a backup with one task.

    Example:
        >>> import pathlib
        >>> lines = "MODULE M", "PROC main()", "WaitTime 1;", "ENDPROC", "ENDMODULE"
        >>> size = pathlib.Path("a.mod").write_text("\n".join(lines))
        >>> twin.rapid.read("a.mod").modules[0].name
        'M'

    Raises:
        OSError: a file cannot be read.
        RapidError: a file is not RAPID, or a folder has no module.
    """
    tasks = tasks_of(*paths)
    if len(tasks) > 1:
        names = ", ".join(task.name for task in tasks)
        raise RapidError(f"{paths[0]} has the tasks {names}: expected one of their folders", "name")
    return read_task(tasks[0].files)


def interpret(
    source: Source,
    robot: Robot | None = None,
    *,
    main: str = "main",
    inputs: Inputs | None = None,
    operator: Sequence[str] = (),
    signal_delay: float = 0.0,
    moves: int | None = None,
    start: ArrayLike | None = None,
    displacement: ArrayLike | None = None,
    T_world_base: ArrayLike | None = None,
    home: str | Path | None = None,
    signals: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    step_limit: int = STEP_LIMIT,
) -> Program:
    r"""Run a program, and return its moves with the joint angles along them.

    Args:
        source: modules of one task.
        robot: arm that follows the moves; without one, kinematics is not judged: moves have no joint angles,
            and functions such as `CRobT` return the last target.
        main: name of the procedure to begin with.
        inputs: values of inputs by their names, or pairs of a time in [s] and a value; others are 0, or what
            the program waits for.
        operator: answers of the operator in order; `part=2` answers questions whose text has `part`.
        signal_delay: time after which waits for signals that nobody gives are answered, in [s].
        moves: largest number of moves.
        start: (6,) joint angles at the beginning, in [rad]; by default the target of a first linear move,
            otherwise zero.
        displacement: (4, 4) pose by which all work objects but wobj0 are displaced, in their axes, in [m].
        T_world_base: (4, 4) pose of the arm's base in the world of its work objects, in [m].
        home: folder that stands for HOME: when the program reads files.
        signals: types of the controller's signals by their names, from `twin.rapid.programs.signal_types`.
        limits: limits of the plan, whose time the program's clocks show.
        step_limit: largest number of statements.

    Returns:
        The program; a fault ends it, and is part of the result.

    Example:
        >>> lines = "MODULE M", "PROC main()", "WaitTime 1;", "TPWrite 1;", "ENDPROC", "ENDMODULE"
        >>> program = twin.rapid.interpret(twin.rapid.parse("\n".join(lines)))
        >>> program.events[0].seconds, program.notes[0].line
        (1.0, 4)

    Raises:
        RobotError: the arm has no closed inverse kinematics.
        LimitError: `start` is outside the joint ranges.
    """
    arm = None
    if robot is not None:
        q = None if start is None else float_array(start, "start", (robot.n,))
        if q is not None:
            check_position(robot, q)
        off = None if displacement is None else float_array(displacement, "displacement", (4, 4))
        base = None if T_world_base is None else float_array(T_world_base, "T_world_base", (4, 4))
        arm = Arm(robot, q, off, base)
    bounds = limits or Limits()
    recorder = Recorder(
        arm,
        Signals(inputs or {}, declared=signals),
        operator=Operator(operator),
        files=Files(None if home is None else Path(home)),
        signal_delay=signal_delay,
        limit=moves,
        clock=None
        if robot is None or not (robot.has_inertia or bounds.accelerations is not None)
        else lambda segments, events: plan(robot, segments, events, bounds).time,
    )
    fault, stopped = None, Stopped("", planned=True)
    deepest = sys.getrecursionlimit()
    sys.setrecursionlimit(max(deepest, FRAMES))
    try:
        tables = instructions_for(recorder), functions_for(recorder)
        interpreter = Interpreter(source.modules, *tables, recorder, step_limit=step_limit)
        stopped = interpreter.run_program(main)
        for cause in interpreter.interrupts.never_fired():
            recorder.note(cause.place, f"never fired: {cause.name}")
        for type_ in interpreter.types.unknown:
            recorder.assume(("", 0), f"the type {type_} is unknown here: its data has no meaning")
    except RecursionError:
        fault = RapidError("expressions or calls are nested too deep", "value")
    except RapidError as error:
        fault = error
    finally:
        sys.setrecursionlimit(deepest)
    notes, assumed = list(recorder.notes), _assumed_signals(recorder) + recorder.assumed
    if arm is not None:
        notes += [Note(move.file, move.line, f"{move.name} {text}") for move, text in arm.warnings]
        assumed += [Note(move.file, move.line, f"{move.name} {text}") for move, text in arm.assumed]
    segments = () if arm is None else tuple(arm.segments)
    return Program(
        tuple(recorder.events), segments, tuple(notes), tuple(assumed), str(stopped), stopped.planned, fault,
        {name: "".join(texts) for name, texts in recorder.files.written.items()},
    )  # fmt: skip


def _assumed_signals(recorder: Recorder) -> list[Note]:
    """Return one sentence on all signals that nobody gave."""
    found = list(recorder.signals.assumed.values())
    if not found:
        return []
    names = ", ".join(sorted((name for name, _ in found), key=str.lower))
    first = found[0][0]
    return [Note(*found[0][1], f"signals of the cell, taken as 0: {names} (--inputs {first}=1)")]


def unjudged_plan(program: Program) -> Plan:
    """Return a plan without figures, of a program whose kinematics is not judged."""
    none, unknown = LargestShare(float("nan"), 0), float("nan")
    moves = tuple(
        PlannedMove(one, unknown, unknown, unknown, unknown, none, none, "") for one in program.moves
    )
    pauses = sum(one.seconds for one in program.events if isinstance(one, Pause))
    return Plan(moves, (0.0,) * len(moves), (), pauses, MotionSequence((hold(np.zeros(6), 0.0),)))


def check(program: Program, robot: Robot, limits: Limits | None = None) -> tuple[Plan, RapidError | None]:
    """Return the plan of a program, and its first fault or None.

    Moves before a fault are planned.

    Args:
        program: from `interpret` with this robot.
        robot: the arm.
        limits: share of the torque, settling time, accelerations.

    Example:
        >>> robot = twin.load("irb140").with_drives("rigid")
        >>> module = twin.rapid.export(robot, [robot.poses["zero"], robot.poses["test_1"]])
        >>> program = twin.rapid.interpret(twin.rapid.parse(module), robot)
        >>> plan, fault = twin.rapid.check(program, robot)
        >>> len(plan.moves), fault, plan.by_speed < plan.bound
        (2, None, True)

    Raises:
        RobotError: the robot has no masses, and `limits` has no accelerations.
    """
    limits = limits or Limits()
    if limits.accelerations is None and robot.inertia_fault:
        raise RobotError(
            f"robot {robot.name!r} has no dynamics: {robot.inertia_fault}; accelerations, as rapid check "
            "--accelerations 5, plan without torques"
        )
    try:
        return plan(robot, program.segments, program.events, limits), program.fault
    except RapidError as error:
        lines = [(segment.move.file, segment.move.line) for segment in program.segments]
        before = lines.index((error.file, error.line))
        return plan(robot, program.segments[:before], program.events, limits), error


NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}")


def export(
    robot: Robot,
    q: ArrayLike,
    *,
    speed: str = "v100",
    zone: str = "z1",
    name: str = "Path",
    tool: str = "tool0",
) -> str:
    """Return a RAPID module that moves through joint angles by `MoveAbsJ`.

    Args:
        robot: the arm, whose ranges the angles must keep.
        q: (N, 6) joint angles, in [rad].
        speed: name of predefined speed data.
        zone: name of predefined zone data, or `fine`; the arm stops at the last point.
        name: name of the module.
        tool: name of the tool data.

    Example:
        >>> robot = twin.load("irb140")
        >>> module = twin.rapid.export(robot, [robot.poses["zero"], robot.poses["test_1"]])
        >>> module.count("MoveAbsJ")
        2

    Raises:
        LimitError: an angle is outside its range.
        ValueError: a wrong shape, or an unknown name of a speed or a zone.
    """
    angles = np.atleast_2d(float_array(q, "q", (6,)))
    if angles.ndim != 2 or angles.shape[1] != 6 or robot.n != 6:
        raise ValueError(f"expected q of shape (N, 6), got {angles.shape}")
    for kind, given in (("speeddata", speed), ("zonedata", zone)):
        if given.lower() not in PREDEFINED or PREDEFINED[given.lower()].type != kind:
            raise ValueError(f"expected predefined {kind} such as v100 or z10, got {given!r}")
    if not NAME.fullmatch(name):
        raise ValueError(f"expected a name of letters, digits and _ for the module, got {name!r}")
    lines = [f"MODULE {name}", "  PROC main()"]
    for k, one in enumerate(angles):
        check_position(robot, one)
        axes = ",".join(f"{angle:.9f}" for angle in np.degrees(one))
        stop = "fine" if k == len(angles) - 1 else zone
        lines.append(f"    MoveAbsJ [[{axes}],[9E9,9E9,9E9,9E9,9E9,9E9]],{speed},{stop},{tool};")
    return "\n".join([*lines, "  ENDPROC", "ENDMODULE", ""])

"""Programs from files to a plan: read modules, run them on an arm, plan its moves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from twin.arrays import float_array
from twin.errors import RapidError, RobotError
from twin.rapid.functions import functions_for
from twin.rapid.instructions import Move, Note, Pause, Recorder, instructions_for
from twin.rapid.language import Source, read_source
from twin.rapid.planning import Limits, Plan, plan
from twin.rapid.program import STEP_LIMIT, Interpreter
from twin.rapid.targets import Arm, Segment
from twin.rapid.values import SUFFIXES
from twin.robot.limits import check_position
from twin.robot.robot import Robot

FRAMES = 5000
"""Depth of Python's calls for nested calls of a program."""


@dataclass(frozen=True, eq=False)
class Program:
    """Executed program.

    Attributes:
        events: moves and pauses in order.
        segments: paths of the moves; empty without a robot.
        notes: what was not done, and remarks.
        stopped: why the execution ended early, "" if it did not.
        fault: fault that ended the execution, or None.
    """

    events: tuple[Move | Pause, ...]
    segments: tuple[Segment, ...]
    notes: tuple[Note, ...]
    stopped: str
    fault: RapidError | None

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves."""
        return tuple(event for event in self.events if isinstance(event, Move))


def read(*paths: str | Path) -> Source:
    r"""Return the modules of files; of a folder those of all module files below it.

    Args:
        paths: files, or folders such as a task of a controller's backup.

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
    sources = []
    for path in map(Path, paths):
        if not path.exists():
            raise FileNotFoundError(f"there is no file or folder {path}")
        files = [path]
        if path.is_dir():
            files = sorted(one for one in path.rglob("*") if one.suffix.lower() in SUFFIXES and one.is_file())
            if not files:
                raise RapidError(f"{path} has no module ({', '.join(SUFFIXES)})", "name")
        sources += [read_source(one) for one in files]
    modules = [module for source in sources for module in source.modules]
    return Source(tuple(modules), tuple(remark for source in sources for remark in source.remarks))


def interpret(
    source: Source,
    robot: Robot | None = None,
    *,
    main: str = "main",
    inputs: Mapping[str, float] | None = None,
    answer_after: float = 0.0,
    moves: int | None = None,
    start: ArrayLike | None = None,
    displacement: ArrayLike | None = None,
    step_limit: int = STEP_LIMIT,
) -> Program:
    r"""Run a program, and return its moves with the joint angles along them.

    Args:
        source: modules of one task.
        robot: arm that follows the moves; without one, moves have no joint angles, and functions such as
            `CRobT` are refused.
        main: name of the procedure to begin with.
        inputs: values of inputs by their names; others are 0.
        answer_after: time after which waits for signals are answered, in [s].
        moves: largest number of moves.
        start: (6,) joint angles at the beginning, in [rad]; zero by default.
        displacement: (4, 4) pose by which all work objects but wobj0 are displaced, in their axes, in [m].
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
        arm = Arm(robot, q, off)
    recorder = Recorder(arm, lower_case(inputs), answer_after, moves)
    fault, stopped = None, ""
    try:
        stopped = executed(
            source, main, recorder, instructions_for(recorder), functions_for(recorder), step_limit
        )
    except RapidError as error:
        fault = error
    notes = list(recorder.notes)
    if arm is not None:
        notes += [Note(move.file, move.line, f"{move.name} {text}") for move, text in arm.warnings]
    segments = () if arm is None else tuple(arm.segments)
    return Program(tuple(recorder.events), segments, tuple(notes), stopped, fault)


def input_values(text: str) -> dict[str, float]:
    """Return the values of inputs in a text such as `part_there=1,count=3`.

    Raises:
        ValueError: the text has another form.
    """
    found = {}
    for part in text.split(",") if text else ():
        name, _, value = part.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise ValueError(f"expected inputs as part_there=1,count=3, got {text!r}") from None
    return found


def lower_case(inputs: Mapping[str, float] | None) -> dict[str, float]:
    """Return the values of inputs by their names in lower case."""
    return {name.lower(): value for name, value in (inputs or {}).items()}


def executed(
    source: Source,
    main: str,
    recorder: Recorder,
    instructions: Mapping[str, Callable[..., None]],
    functions: Mapping[str, Callable[..., Any]],
    step_limit: int = STEP_LIMIT,
) -> str:
    """Execute a program; return why it stopped early, "" if it did not.

    Raises:
        RapidError: a fault; the message states file and line.
    """
    deepest = sys.getrecursionlimit()
    sys.setrecursionlimit(max(deepest, FRAMES))
    try:
        interpreter = Interpreter(source.modules, instructions, functions, step_limit=step_limit)
        interpreter.signals.update(recorder.inputs)
        return interpreter.run_program(main)
    except RecursionError:
        raise RapidError("expressions or calls are nested too deep", "value") from None
    finally:
        sys.setrecursionlimit(deepest)


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

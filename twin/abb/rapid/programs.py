"""Programs from files to a plan: read modules, run them on an arm, plan its moves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from twin.abb.rapid.backups import tasks_of
from twin.abb.rapid.files import Files
from twin.abb.rapid.functions import functions_for
from twin.abb.rapid.instructions import instructions_for
from twin.abb.rapid.language import Source, joined, read_source
from twin.abb.rapid.operator_panel import Operator
from twin.abb.rapid.planning import LargestShare, Limits, Plan, PlannedMove, plan
from twin.abb.rapid.program import FRAMES, STEP_LIMIT, Interpreter
from twin.abb.rapid.recorder import Move, Note, Pause, Recorder, Stopped
from twin.abb.rapid.signals import Inputs, Signals
from twin.abb.rapid.targets import Arm, Segment
from twin.base.arrays import float_array
from twin.base.errors import RapidError, RobotError
from twin.physics.robot.limits import check_position
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.joint_trajectories import Sequence as MotionSequence
from twin.physics.trajectories.joint_trajectories import hold


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
    return joined([read_source(one) for one in tasks[0].files])


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
        signals: types of the controller's signals by their names, from `twin.rapid.backups`.
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
    recorder = Recorder(
        arm,
        Signals(inputs or {}, declared=signals),
        operator=Operator(operator),
        files=Files(None if home is None else Path(home)),
        signal_delay=signal_delay,
        limit=moves,
        clock=None if robot is None else planned_clock(robot, limits or Limits()),
    )
    fault, stopped = None, Stopped("", planned=True)
    try:
        stopped = executed(
            source, main, recorder, instructions_for(recorder), functions_for(recorder), step_limit
        )
    except RapidError as error:
        fault = error
    notes, assumed = list(recorder.notes), _assumed_signals(recorder) + recorder.assumed
    if arm is not None:
        notes += [Note(move.file, move.line, f"{move.name} {text}") for move, text in arm.warnings]
        assumed += [Note(move.file, move.line, f"{move.name} {text}") for move, text in arm.assumed]
    segments = () if arm is None else tuple(arm.segments)
    return Program(
        tuple(recorder.events), segments, tuple(notes), tuple(assumed), str(stopped), stopped.planned, fault,
        {name: "".join(texts) for name, texts in recorder.files.written.items()},
    )  # fmt: skip


def planned_clock(robot: Robot, limits: Limits) -> Callable[[Sequence[Segment], Sequence[Any]], float] | None:
    """Return the function of the planned time of moves, None for a robot that has no limits for a plan."""
    if not robot.has_inertia and limits.accelerations is None:
        return None
    return lambda segments, events: plan(robot, segments, events, limits).time


def _assumed_signals(recorder: Recorder) -> list[Note]:
    """Return one sentence on all signals that nobody gave."""
    found = list(recorder.signals.assumed.values())
    if not found:
        return []
    names = ", ".join(sorted((name for name, _ in found), key=str.lower))
    first = found[0][0]
    return [Note(*found[0][1], f"signals of the cell, taken as 0: {names} (--inputs {first}=1)")]


def executed(
    source: Source,
    main: str,
    recorder: Recorder,
    instructions: Mapping[str, Callable[..., None]],
    functions: Mapping[str, Callable[..., Any]],
    step_limit: int = STEP_LIMIT,
) -> Stopped:
    """Execute a program; return why it stopped early, with an empty sentence if it did not.

    Raises:
        RapidError: a fault; the message states file and line.
    """
    deepest = sys.getrecursionlimit()
    sys.setrecursionlimit(max(deepest, FRAMES))
    try:
        interpreter = Interpreter(source.modules, instructions, functions, recorder, step_limit=step_limit)
        stopped = interpreter.run_program(main)
        for cause in interpreter.interrupts.never_fired():
            recorder.note(cause.place, f"never fired: {cause.name}")
        for type_ in interpreter.types.unknown:
            recorder.assume(("", 0), f"the type {type_} is unknown here: its data has no meaning")
        return stopped
    except RecursionError:
        raise RapidError("expressions or calls are nested too deep", "value") from None
    finally:
        sys.setrecursionlimit(deepest)


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

"""Scenario of a program in RAPID, and its figures line by line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenarios.abb.rapid import given
from scenarios.judging import bounds
from scenarios.judging.run import TrackingRun
from scenarios.judging.tracking import tracking_metrics
from scenarios.metric import Metric
from scenarios.options import at_least, option, share
from scenarios.scenario import ScenarioTable, TrackingScenario, load_changes
from scenarios.setup import Arms, Sampling, Setup, named_pose
from twin.base.errors import DivergenceError, RapidError, RobotError, TouchedError, VariationError
from twin.base.formatting import figure
from twin.data.logs.annotations import ProgramLines
from twin.data.logs.figures import joint_error, motor_load
from twin.physics.robot.robot import Payload, Robot

if TYPE_CHECKING:
    from twin.abb.rapid.planning import Plan
    from twin.abb.rapid.programs import Program
    from twin.abb.rapid.signals import Inputs
    from twin.physics.engine.simulation import Simulation
    from twin.physics.trajectories.sampling import Samples


class Performance(NamedTuple):
    """Interpreted and planned program.

    Attributes:
        program: the executed program.
        plan: plan of its moves before the fault.
        fault: fault that ends it, or None.
    """

    program: Program
    plan: Plan
    fault: RapidError | None

    def lines(self, t: NDArray) -> ProgramLines:
        """Return the lines that are executed at the times t (N,), in [s]."""
        moves = zip(self.plan.starts, self.plan.moves, strict=True)
        marks = [(start, one.move.file, one.move.line) for start, one in moves]
        waits = ((start, wait.file, wait.line) for start, wait in self.plan.waits)
        return ProgramLines.of(sorted([*marks, *waits], key=lambda mark: mark[0]), t)


@dataclass(frozen=True, eq=False, kw_only=True)
class ProgramRun(TrackingRun):
    """Run of a program.

    Attributes:
        performance: the interpreted and planned program.
        move: (N,) index of the last move that began, -1 before the first.
    """

    performance: Performance
    move: NDArray


class RapidProgram(TrackingScenario):
    """Run a program in RAPID on the engine's arm.

    What it shows: whether the arm with this controller does what the program says. The program is interpreted
    and planned as by `irb-twin rapid check`; its motion is the reference, and its tool and grip loads are the
    payload of the plant and of the controller's model. Where a load changes, the arm continues with the other
    payload, and with a controller made for it. `--payload` is what the arm really carries during the whole
    program; the controller then believes the program's loads, or `--model-payload`.

    What must hold: the program has no fault. The moves before a fault are run. The motion stays within every
    joint's range, speed limit and torque limit, and computed torque with an exact model follows it to
    rounding. The table has the moves line by line: the time from the middle of the first corner to the middle
    of the last beside that of the plan, the errors, and the use of the torque with drives and friction.
    """

    program: str = field(default="")
    """Module file, or folder with the modules of a task; on the command line the scenario's name."""
    main: str = option("main", "procedure to begin with")
    start: str | None = option(
        None, "named pose at the beginning (default: the target of a first linear move, else zero)"
    )
    inputs: str | None = option(None, given.INPUTS)
    operator: str | None = option(None, given.OPERATOR)
    signal_delay: float = option(0.0, given.SIGNAL_DELAY)
    home: str | None = option(None, given.HOME)
    io: str | None = option(None, given.IO)
    moves: int = option(5000, "stop after this number of moves, for programs that never end")
    share: float = option(0.9, "share used of the torque beside gravity and friction, 0 to 1")
    settling: float = option(0.0, "rest at every stop, in s")
    work_object_x_mm: float = option(0.0, "displacement of all work objects along their x axes, in mm")
    work_object_y_mm: float = option(0.0, "displacement of all work objects along their y axes, in mm")
    work_object_z_mm: float = option(0.0, "displacement of all work objects along their z axes, in mm")
    declares_loads = True

    def __post_init__(self) -> None:
        share(self.share, "share")
        for name in ("settling", "signal_delay"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"expected {name} of 0 s or more, got {getattr(self, name)}")
        at_least(self.moves, "moves")
        _ = self.input_values

    @property
    def input_values(self) -> Inputs:
        """Values of inputs by their names."""
        from twin.abb.rapid.signals import input_values

        return input_values(self.inputs or "")

    @property
    def displacement(self) -> NDArray:
        """Displacement (4, 4) of the work objects, in [m]."""
        T = np.eye(4)
        T[:3, 3] = 1e-3 * np.array([self.work_object_x_mm, self.work_object_y_mm, self.work_object_z_mm])
        return T

    def suits(self, robot: Robot) -> bool:
        """Return whether programs can be planned for a robot."""
        from twin.abb.rapid.targets import Arm

        try:
            Arm(robot)
        except RobotError:
            return False
        return robot.has_inertia

    def performed(self, robot: Robot) -> Performance:
        """Interpret and plan the program.

        Raises:
            RapidError: a file is not RAPID; faults of the execution are part of the result.
        """
        from twin.abb.rapid.planning import Limits
        from twin.abb.rapid.programs import check, interpret, read

        start = None if self.start is None else named_pose(robot, self.start)
        limits = Limits(self.share, self.settling)
        program = interpret(
            read(self.program), robot, main=self.main, moves=self.moves, start=start, limits=limits,
            displacement=self.displacement, **given.arguments(self, Path(self.program)),
        )  # fmt: skip
        plan, fault = check(program, robot, limits)
        if fault is None and not program.is_complete:
            fault = RapidError(program.stopped, "refusal")
        return Performance(program, plan, fault)

    def reference(self, robot: Robot, sampling: Sampling) -> Samples:
        """Return the motion of the program, sampled.

        Raises:
            RapidError: the program has a fault.
        """
        done = self.performed(robot)
        if done.fault is not None:
            raise done.fault
        return sampling.sampled(done.plan.motion)

    def constant_arms(self, robot: Robot, setup: Setup) -> Arms:
        """Return plant and model with the payload of the program.

        Raises:
            VariationError: the loads of the program change.
        """
        changes = load_changes(loads_of(self.performed(robot)), setup)
        for before, after in pairwise(changes):
            if before.payload is not after.payload or (
                setup.model_payload is None and before.model_payload is not after.model_payload
            ):
                raise VariationError(
                    f"{self.program}: its loads change at {after.sample * setup.period:.3f} s, and this "
                    "command needs one: give --payload and --model-payload"
                )
        first = changes[0]
        model = None if first.model_payload is first.payload else robot.with_payload(first.model_payload)
        return Arms(robot.with_payload(first.payload), model)

    def run(self, setup: Setup | None = None) -> ProgramRun:
        """Run the program, up to its fault if it has one."""
        from scenarios.judging.following import follow

        setup = self.checked(setup)
        robot = setup.nominal_robot()
        done = self.performed(robot)
        samples = setup.sampling().sampled(done.plan.motion)
        if setup.tool is None and done.plan.moves:
            setup = replace(setup, tool=_tool_text(done.plan))
        now = samples.t + 1e-9
        lines = done.lines(now)
        try:
            loads = load_changes(loads_of(done), setup)
            run = follow(setup, samples, robot, loads=loads, at_sample=_shown_line(lines))
        except (DivergenceError, TouchedError) as error:
            if error.log is not None:
                count = len(error.log.t)
                error.log = replace(error.log, program=done.lines(now[:count]))
            raise
        run = replace(run, log=replace(run.log, program=lines))
        move = np.searchsorted(done.plan.starts, now, side="right") - 1
        return ProgramRun(**vars(run), performance=done, move=move)

    def metrics(self, run: ProgramRun) -> tuple[Metric, ...]:
        """Return the checks of the program and of its motion."""
        from twin.data.logs.figures import motor_load, place_of_largest

        log, fault = run.log, run.performance.fault
        load, where = motor_load(log), "" if fault is None else str(fault)
        most, place = float(np.max(np.abs(load))), place_of_largest(log, load)
        planned = "the program is planned without a fault, see irb-twin rapid check"
        of_motors = "of the motors at their speeds, with rotors and friction"
        return (
            Metric("faults of the program", float(fault is not None), "", 0.0, planned, where),
            Metric("time of the program", float(log.t[-1]), "s", None, "time of the plan, in whole periods"),
            Metric("largest torque / its limit", most, "", None, of_motors, place),
            *tracking_metrics(run),
        )

    def cases(self, run: ProgramRun) -> Sequence[tuple[str, str, float, str]]:
        """Return the result of every line with a move, by routine, and of the line with the fault."""
        moves, found, fault = run.performance.plan.moves, move_figures(run), run.performance.fault
        limit = bounds.ROUND_OFF if bounds.is_exact(run) else np.inf
        lines: dict[tuple[str, int], list[int]] = {}
        for k, one in enumerate(moves):
            lines.setdefault((one.move.file, one.move.line), []).append(k)
        cases: list[tuple[str, str, float, str]] = []
        for (file, line), members in lines.items():
            failures = []
            if cut := int(found.cut[members].sum()):
                failures.append(f"{cut} samples at the torque limit")
            if not found.joint_error[members].max() <= limit:
                failures.append(f"joint error {figure(float(found.joint_error[members].max()))} rad")
            names = " ".join(dict.fromkeys(moves[k].move.name for k in members))
            cases.append((
                moves[members[0]].move.routine, f"{Path(file).name} line {line} {names}",
                float(np.nansum(found.time[members])), "; ".join(failures),
            ))  # fmt: skip
        if fault is not None:
            cases.append(("", f"{Path(fault.file).name} line {fault.line}", 0.0, str(fault)))
        return tuple(cases)

    def table(self, run: ProgramRun) -> ScenarioTable:
        """Return the moves line by line; a line of a program of many moves has sums and largest figures."""
        moves, found = run.performance.plan.moves, move_figures(run)
        head = (
            "line", "move", "mm", "plan s", "time s", "joint error rad", "tool error m", "torque", "cut"
        )  # fmt: skip
        groups: dict[Any, list[int]] = {}
        for k, one in enumerate(moves):
            place = one.move.file, one.move.line
            groups.setdefault(place if len(moves) > MOST_ROWS else k, []).append(k)
        rows = [head, *(_row(run, found, members) for members in groups.values())]
        names = ", ".join(_files(run)) or "the program"
        program = run.performance.program
        remarks = len(program.notes) + len(program.assumed) + bool(program.stopped)
        also = f"; {remarks} remark{'s' * (remarks > 1)}, which irb-twin rapid check prints" * bool(remarks)
        return f"{names}: {len(moves)} moves{also}", rows


def loads_of(done: Performance) -> dict[float, Payload | None]:
    """Return the payloads of the program by the times from which the arm carries them, in [s]."""
    from twin.abb.rapid.targets import payload_of

    found: dict[float, Payload | None] = {}
    before: Any = None
    for one, start in zip(done.plan.moves, done.plan.starts, strict=True):
        load = one.move.tool.values[2].values, one.move.tool.values[1].values, one.move.settings.load.values
        if load != before:
            before = load
            found[start if found else 0.0] = payload_of(one.move.tool, one.move.settings.load)
    return found or {0.0: None}


def _tool_text(plan: Plan) -> str:
    """Return the tool of the first move, in the form of `--tool`."""
    from twin.abb.rapid.targets import tool_frame
    from twin.physics.rotations.rotations import pose_vector

    return ",".join(map(repr, pose_vector(tool_frame(plan.moves[0].move.tool)).tolist()))


def _shown_line(lines: ProgramLines) -> Callable[[Simulation, int], None]:
    """Return a function that shows the present line in the window, if there is one."""

    def show(simulation: Simulation, k: int) -> None:
        if simulation.bench is None or (k and lines.place(k) == lines.place(k - 1)):
            return
        simulation.bench.write_line("program", lines.text(k))

    return show


MOST_ROWS = 60
"""Number of moves above which the table has one row for each line of the program."""

AT_STOP = 1e-3
"""Distance of the joints, in [rad], within which the arm has arrived at a stop (ours)."""


def measured_times(run: ProgramRun) -> NDArray:
    """Return the durations (M,) of the moves in the engine, in [s].

    A move ends where the joints are nearest to the middle of its last corner; at a stop, when the plan has
    ended and they are within `AT_STOP`, or where they are nearest. It begins where the one before ends, after
    a stop when the plan begins it.
    """
    log, plan = run.log, run.performance.plan
    starts, times = plan.starts, [one.time for one in plan.moves]
    stops = [one.move.stops for one in plan.moves]
    found = np.zeros(len(starts))
    begins = 0.0
    for k, (start, time) in enumerate(zip(starts, times, strict=True)):
        if time == 0.0:
            continue
        if k == 0 or stops[k - 1] or start > starts[k - 1] + times[k - 1] + 1e-9:
            begins = start
        end, since, tolerance = start + time, start + time / 2, 0.0
        if stops[k]:  # at rest from the next sample on
            end = since = log.t[min(int(np.searchsorted(log.t, end - 1e-9)), len(log.t) - 1)]
            tolerance = AT_STOP
        later = [i for i in range(k + 1, len(starts)) if times[i] > 0.0][:1]
        until = starts[later[0]] + times[later[0]] / 2 if later else log.t[-1]
        near = np.flatnonzero((log.t >= since - 1e-9) & (log.t <= until + 1e-9))
        if near.size == 0:  # the run ended before
            found[k] = np.nan
            continue
        goal = [np.interp(end, log.t, q) for q in log.q_ref.T]
        distance = np.abs(log.q[near] - goal).max(axis=1)
        arrived = near[int(np.argmax(distance <= max(distance.min(), tolerance)))]
        found[k] = log.t[arrived] - begins
        begins = log.t[arrived]
    return found


class MoveFigures(NamedTuple):
    """Figures of the moves, (M,) each: times in [s], errors in [rad] and [m], the torque's largest share."""

    time: NDArray
    joint_error: NDArray
    tool_error: NDArray
    torque: NDArray
    torque_joint: NDArray
    cut: NDArray


def move_figures(run: ProgramRun) -> MoveFigures:
    """Return the figures of the moves in the engine."""
    from twin.abb.rapid.targets import tool_frame
    from twin.physics.kinematics.forward import forward_kinematics

    log = run.log
    error, load = np.abs(joint_error(log)).max(axis=1), np.abs(motor_load(log))
    T, T_ref = (forward_kinematics(log.robot, q) for q in (log.q, log.q_ref))
    tool_errors: dict[bytes, NDArray] = {}  # by the tool: most programs have one or two
    cut = np.any(log.saturated, axis=1)
    rows = []
    for k, one in enumerate(run.performance.plan.moves):
        tool = tool_frame(one.move.tool)
        if tool.tobytes() not in tool_errors:
            difference = ((T - T_ref) @ tool)[:, :3, 3]
            tool_errors[tool.tobytes()] = np.linalg.norm(difference, axis=1)
        during = run.move == k
        if not during.any():
            rows.append((0.0, 0.0, 0.0, 0, 0))
            continue
        most = load[during].max(axis=0)
        rows.append((
            error[during].max(), tool_errors[tool.tobytes()][during].max(), most.max(), int(most.argmax()),
            int(cut[during].sum()),
        ))  # fmt: skip
    return MoveFigures(measured_times(run), *np.array(rows, dtype=float).reshape(-1, 5).T)


def _files(run: ProgramRun) -> list[str]:
    """Return the names of the program's files with a move or a wait."""
    return [] if run.log.program is None else run.log.program.files.tolist()


def _row(run: ProgramRun, found: MoveFigures, members: Sequence[int]) -> tuple[str, ...]:
    log, moves = run.log, [run.performance.plan.moves[k] for k in members]
    first = moves[0].move
    place = f"{Path(first.file).name}:" * (len(_files(run)) > 1) + str(first.line)
    name = first.name + (f" x {len(members)}" if len(members) > 1 else "")
    worst = members[int(np.argmax(found.torque[members]))]
    joint = log.robot.joint_names[int(found.torque_joint[worst])]
    cut = int(found.cut[members].sum())
    return (
        place,
        name,
        f"{np.sum([1e-3 * one.length for one in moves]) * 1e3:.0f}",
        f"{np.sum([one.time for one in moves]):.3f}",
        f"{found.time[members].sum():.3f}",
        figure(float(found.joint_error[members].max())),
        figure(float(found.tool_error[members].max())),
        f"{joint} {100 * found.torque[worst]:.0f} %",
        str(cut) if cut else "",
    )

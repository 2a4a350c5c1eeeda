"""Scenario of a program in RAPID."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenarios.abb.rapid import given
from scenarios.judging.run import TrackingRun
from scenarios.judging.tracking import tracking_metrics
from scenarios.metric import Metric
from scenarios.options import at_least, option, share
from scenarios.scenario import ScenarioTable, TrackingScenario, load_changes
from scenarios.setup import Arms, Sampling, Setup, named_pose
from twin.base.errors import DivergenceError, RapidError, RobotError, TouchedError, VariationError
from twin.data.logs.program_lines import ProgramLines
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
        """Return the result of every line with a move, by routine."""
        from scenarios.abb.rapid.lines import line_cases

        return line_cases(run)

    def table(self, run: ProgramRun) -> ScenarioTable:
        """Return the moves line by line."""
        from scenarios.abb.rapid.lines import line_table

        return line_table(run)


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

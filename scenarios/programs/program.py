"""Run a program in RAPID on the engine's arm.

What it shows: whether the arm with this controller does what the program says. The program is interpreted and
planned as by `irb-twin rapid check`; its motion is the reference, and its tool and grip loads are the payload
of the plant and of the controller's model. Where a load changes, the arm continues with the other payload,
and with a controller made for it. `--payload` is what the arm really carries during the whole program;
the controller then believes the program's loads, or `--model-payload`.

What must hold: the program has no fault. The moves before a fault are run. The motion stays within every
joint's range, speed limit and torque limit, and computed torque with an exact model follows it to rounding.
The table has the moves line by line: the time from the middle of the first corner to the middle of the last
beside that of the plan, the errors, and the use of the torque with drives and friction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenarios import base
from scenarios.base import Metric, named_pose, option
from scenarios.checks.closed_loop import Arms
from scenarios.checks.tracking import follow, sampled, tracking_metrics, with_arrays
from twin.errors import DivergenceError, RapidError, RobotError, TouchedError, VariationError
from twin.robot.robot import Payload, Robot

if TYPE_CHECKING:
    from twin.engine.simulation import Simulation
    from twin.logs.log import Log
    from twin.logs.payload_changes import LoadChange
    from twin.rapid.planning import Plan
    from twin.rapid.programs import Program
    from twin.trajectories.sampling import Samples


@dataclass(frozen=True)
class Config(base.Config):
    """Settings of a program."""

    program: str = ""
    """Module file, or folder with the modules of a task; on the command line the scenario's name."""
    main: str = option("main", "procedure to begin with")
    start: str | None = option(None, "named pose at the beginning (default the zero pose)")
    inputs: str | None = option(None, "values of inputs, as part_there=1,count=3 (default 0)")
    answer_after: float = option(0.0, "time after which waits for signals are answered, in s")
    moves: int = option(5000, "stop after this number of moves, for programs that never end")
    share: float = option(0.9, "share used of the torque beside gravity and friction, 0 to 1")
    settling: float = option(0.0, "rest at every stop, in s")
    work_object_x_mm: float = option(0.0, "displacement of all work objects along their x axes, in mm")
    work_object_y_mm: float = option(0.0, "displacement of all work objects along their y axes, in mm")
    work_object_z_mm: float = option(0.0, "displacement of all work objects along their z axes, in mm")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.share <= 1:
            raise ValueError(f"expected a share above 0 and up to 1, got {self.share}")
        for name in ("settling", "answer_after"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"expected {name} of 0 s or more, got {getattr(self, name)}")
        if not self.moves >= 1:
            raise ValueError(f"expected at least 1 move, got {self.moves}")
        _ = self.input_values

    def __reduce__(self) -> tuple[Any, ...]:
        # The class of a program is made by `config_of`, so that pickle cannot find it by its name.
        return _restored, (self.program, dict(vars(self)))

    @property
    def declares_loads(self) -> bool:
        """Whether the scenario itself declares tool and payload: a program does."""
        return True

    @property
    def known_law(self) -> bool:
        """Whether a bound of the tracking error may apply; not if the program's loads are replaced."""
        return super().known_law and self.payload is None

    @property
    def input_values(self) -> dict[str, float]:
        """Values of inputs by their names."""
        from twin.rapid.programs import input_values

        return input_values(self.inputs or "")

    @property
    def displacement(self) -> NDArray:
        """Displacement (4, 4) of the work objects, in [m]."""
        T = np.eye(4)
        T[:3, 3] = 1e-3 * np.array([self.work_object_x_mm, self.work_object_y_mm, self.work_object_z_mm])
        return T


@cache
def config_of(path: str) -> type[Config]:
    """Return the settings whose default program is this one.

    Args:
        path: module file, or folder with the modules of a task.
    """

    @dataclass(frozen=True)
    class ProgramConfig(Config):
        __doc__ = Config.__doc__
        program: str = path

    return ProgramConfig


def _restored(program: str, values: dict[str, Any]) -> Config:
    config = object.__new__(config_of(program))
    config.__dict__.update(values)
    return config


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


def suits(robot: Robot) -> bool:
    """Return whether programs can be planned for a robot."""
    from twin.rapid.targets import Arm

    try:
        Arm(robot)
    except RobotError:
        return False
    return robot.has_inertia


def performed(robot: Robot, config: Config) -> Performance:
    """Interpret and plan the program of the settings.

    Raises:
        RapidError: a file is not RAPID; faults of the execution are part of the result.
    """
    from twin.rapid.planning import Limits
    from twin.rapid.programs import check, interpret, read

    start = None if config.start is None else named_pose(robot, config.start)
    program = interpret(
        read(config.program), robot, main=config.main, inputs=config.input_values,
        answer_after=config.answer_after, moves=config.moves, start=start, displacement=config.displacement,
    )  # fmt: skip
    return Performance(program, *check(program, robot, Limits(config.share, config.settling)))


def reference(robot: Robot, config: Config) -> Samples:
    """Return the motion of the program, sampled.

    Raises:
        RapidError: the program has a fault.
    """
    done = performed(robot, config)
    if done.fault is not None:
        raise done.fault
    return sampled(config, done.plan.motion)


def arms(robot: Robot, config: Config) -> Arms:
    """Return the arm with the payload of the program, for sweeps, which have one payload per run.

    Raises:
        VariationError: the loads of the program change.
    """
    changes = load_changes(performed(robot, config), config)
    for before, after in pairwise(changes):
        if before.payload is not after.payload or (
            config.model_payload is None and before.model_payload is not after.model_payload
        ):
            raise VariationError(
                f"{config.program}: its loads change at {after.sample * config.period:.3f} s, and this "
                "command needs one: give --payload and --model-payload"
            )
    return Arms(robot.with_payload(changes[0].payload), robot.with_payload(changes[0].model_payload))


def load_changes(done: Performance, config: Config) -> list[LoadChange]:
    """Return the payloads of the program in their order, the first one at sample 0."""
    from twin.logs.payload_changes import LoadChange
    from twin.rapid.targets import payload_of

    found: list[LoadChange] = []
    declared: Payload | None = None
    before: Any = None
    for one, start in zip(done.plan.moves, done.plan.starts, strict=True):
        load = one.move.tool.values[2].values, one.move.tool.values[1].values, one.move.settings.load.values
        if load == before:
            continue
        before, declared = load, payload_of(one.move.tool, one.move.settings.load)
        sample = int(np.ceil(start / config.period - 1e-9)) if found else 0
        real = declared if config.payload is None else config.plant_payload
        if found and found[-1].sample == sample:
            found.pop()
        found.append(LoadChange(sample, real, declared))
    return found or [LoadChange(0, config.plant_payload, None)]


def run(config: Config) -> Log:
    """Run the program, up to its fault if it has one."""
    from scenarios.programs.lines import line_arrays

    robot = config.bare_robot()
    done = performed(robot, config)
    samples = sampled(config, done.plan.motion)
    if config.tool is None and done.plan.moves:
        config = replace(config, tool=_tool_text(done.plan))
    arrays = line_arrays(done, samples)
    try:
        log = follow(
            config, samples, robot, loads=load_changes(done, config), at_sample=_shown_line(arrays)
        )  # fmt: skip
    except (DivergenceError, TouchedError) as error:
        if error.log is not None:
            error.log = with_arrays(error.log, **_first(arrays, len(error.log.t), len(samples.t)))
        raise
    return with_arrays(log, **arrays)


def _first(arrays: dict[str, NDArray], count: int, samples: int) -> dict[str, NDArray]:
    """Return the arrays for the first samples of a run that ended early."""
    names = ("line", "file", "move")
    return {name: array[:count] if name in names else array for name, array in arrays.items()}


def _tool_text(plan: Plan) -> str:
    """Return the tool of the first move, in the form of `--tool`."""
    from twin.rapid.targets import tool_frame
    from twin.rotations.rotations import pose_vector

    return ",".join(map(repr, pose_vector(tool_frame(plan.moves[0].move.tool)).tolist()))


def _shown_line(arrays: dict[str, NDArray]) -> Any:
    """Return a function that shows the present line in the window, if there is one."""
    from twin.logs.program_lines import line_text

    line, file = arrays["line"], arrays["file"]

    def show(simulation: Simulation, k: int) -> None:
        if simulation.bench is None or (k and (line[k], file[k]) == (line[k - 1], file[k - 1])):
            return
        simulation.bench.write_line("program", line_text(arrays, k))

    return show


def metrics(log: Log) -> tuple[Metric, ...]:
    """Return the checks of the program and of its motion."""
    from twin.logs.figures import motor_load, place_of_largest

    fault = str(log.arrays["fault"])
    load = motor_load(log)
    return (
        Metric(
            "faults of the program",
            float(bool(fault)),
            "",
            0.0,
            "the program is planned without a fault, see irb-twin rapid check",
            fault,
        ),
        Metric("time of the program", float(log.t[-1]), "s", None, "time of the plan, in whole periods"),
        Metric(
            "largest torque / its limit",
            float(np.max(np.abs(load))),
            "",
            None,
            "of the motors at their speeds, with rotors and friction",
            place_of_largest(log, load),
        ),
        *tracking_metrics(log),
    )


def cases(log: Log) -> Sequence[tuple[str, str, float, str]]:
    """Return the result of every line with a move, by routine."""
    from scenarios.programs.lines import line_cases

    return line_cases(log)


def table(log: Log) -> tuple[str, list[tuple[str, ...]]]:
    """Return the moves line by line."""
    from scenarios.programs.lines import line_table

    return line_table(log)

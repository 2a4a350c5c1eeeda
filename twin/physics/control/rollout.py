"""Rollouts: closed loops around the analytic model that run entirely in compiled code, in batches.

A rollout equals `run_closed_loop` with `twin.control.plant.AnalyticPlant`, to the bit.  It differs from
`run_closed_loop` with the engine only by the rounding of the accelerations.  It takes about a microsecond a
step, so that starts, gains, payloads and mountings can be swept:

    arms = [robot.with_payload(Payload(mass)) for mass in masses]
    laws = [controllers.make("computed_torque", robot, bandwidth=omega) for omega in bandwidths]
    sweep = run_rollouts(np.array(arms)[:, None], laws, reference)  # sweep.q: (masses, bandwidths, N, n)

The controller must be a `twin.control.control_law.ControlLaw`.  Its first use in a process compiles the law,
which takes about a second.  The first rollout on a machine compiles the loop for all robots and laws, which
takes half a minute.  The machine code of the loop and of the laws in `controllers/` is cached on disk.
Rollouts are distributed over the cores, see `twin/base/threads.py`; the results are identical to the bit for
any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import is_jitted
from numpy.typing import ArrayLike

from twin.base.arrays import checked_time_step, real_array
from twin.base.errors import DivergenceError
from twin.base.formatting import short_repr
from twin.base.threads import in_threads, thread_count
from twin.physics.control import rollout_loop
from twin.physics.control.control_law import (
    COMPILE_LOCK,
    COUNT,
    COUNTS,
    CUBE,
    DYNAMICS,
    FLOAT,
    INDICES,
    INTEGER,
    KERNEL_POINTERS,
    LAW,
    LOGS,
    MASS_MATRIX,
    MATRIX,
    MODEL,
    MODEL_KERNELS,
    TREE,
    VECTOR,
    ControlLaw,
    Law,
    Model,
    compile_kernels,
    is_compiled,
    machine_code,
    tuple_of,
)  # fmt: skip
from twin.physics.control.rollout_batch import (
    Batch,
    Block,
    Course,
    Failure,
    Figures,
    Passive,
    Record,
    Settings,
    batch_shape,
    check_compatible,
    collect_failures,
    figures_of,
    object_array,
    rollout_suffix,
    stack_rows,
    worst_violations,
)
from twin.physics.control.rollout_loop import RK4, SEMI_IMPLICIT_EULER
from twin.physics.control.signals import (
    ALL_ROWS,
    DEMAND,
    PLAIN_ROWS,
    QD,
    RUNAWAY_SPEED,
    TAU,
    Q,
    check_period,
    checked_reference,
    other_rows,
    prepared_table,
    whole_steps,
)
from twin.physics.dynamics.environment import Environment
from twin.physics.dynamics.flexible_joint import warn_of_unresolved_springs
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.robot.drives.motors import Sensors, sensor_numbers
from twin.physics.robot.evaluation import copied, joint_vectors
from twin.physics.robot.limits import ROUND_OFF, Violation, check_folding
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.sampling import Samples, check_radians

PLANT_KERNELS = ("bias", "tool_pose", "jacobian")
POINTERS = (LAW, *MODEL, DYNAMICS, MASS_MATRIX, *(KERNEL_POINTERS[name] for name in PLANT_KERNELS))
RUN = types.void(
    *POINTERS,
    tuple_of(Block, INTEGER, INTEGER, LOGS, CUBE, CUBE),
    tuple_of(
        Batch, CUBE, MATRIX, CUBE, LOGS, CUBE, CUBE, CUBE, LOGS, COUNT, LOGS, MATRIX, MATRIX, MATRIX, MATRIX,
        VECTOR, CUBE, MATRIX, MATRIX, VECTOR, CUBE, CUBE, CUBE, TREE, CUBE, CUBE, COUNT, MATRIX, MATRIX,
    ),
    tuple_of(Passive, MATRIX, VECTOR, VECTOR, VECTOR),
    tuple_of(Settings, FLOAT, INTEGER, FLOAT, INTEGER, FLOAT, INTEGER, FLOAT, FLOAT, INTEGER, VECTOR),
    tuple_of(Course, VECTOR, CUBE, MATRIX, MATRIX, LOGS, MATRIX, MATRIX, MATRIX),
    tuple_of(Record, LOGS, LOGS, COUNTS, COUNT, COUNT, CUBE, MATRIX, INDICES, MATRIX, CUBE, MATRIX, COUNT),
)  # fmt: skip


def compiled_rollout(plant: Robot, controller: ControlLaw) -> Callable[..., None]:
    """Return `rollout_loop.run` with its functions bound: the law, its model's kernels and the plant's.

    Args:
        plant: robot whose kernels simulate the motion.
        controller: controller that provides the law and its model's kernels.

    Raises:
        ValueError: numba cannot compile the law, or the kernels are not compiled.
    """
    kernels = [getattr(controller.model, name) for name in Model._fields[: len(MODEL_KERNELS)]]
    plant_functions = ("forward_dynamics", "mass_matrix", *PLANT_KERNELS)
    kernels += [getattr(plant.kernels, name) for name in plant_functions]
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return partial(rollout_loop.run, controller.law, *kernels)
    if not all(is_jitted(kernel) for kernel in kernels):
        raise ValueError("expected robots with compiled kernels, as twin.load returns them")
    with COMPILE_LOCK:
        return partial(rollout_loop.run, *_compile_all(controller.law, *kernels))


@lru_cache(maxsize=64)
def _compile_all(law: Law, *kernels: Any) -> tuple[Any, ...]:
    """Compile the loop, the law and the kernels for their signatures; return the law and the kernels."""
    compile_kernels(kernels, POINTERS[1:])
    if RUN.args not in rollout_loop.run.overloads:
        rollout_loop.run.compile(RUN)
        rollout_loop.run.disable_compile()  # numba converts functions to pointers only if it may not compile
    return machine_code(law), *kernels


INTEGRATORS = {"semi_implicit_euler": SEMI_IMPLICIT_EULER, "rk4": RK4}

STEPS_AT_ONCE = 20_000
"""Number of time steps for one call of the compiled loop. The call itself costs as much as 500 steps."""


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Results of a batch of rollouts at K stored samples; `...` is the shape of the batch, `()` for one.

    Attributes:
        t: (K,) times, in [s].
        q, qd: (..., K, n) joint positions and velocities, in [rad, rad/s].
        tau, tau_demand: (..., K, n) torques that the motors delivered and that the law demanded, in [N m].
        saturated: (..., n) number of all samples at which a drive could not deliver the demanded torque.
        failures: rollouts that ended early; their arrays are NaN from the sample at which they ended.
        violations: largest violations of the position range and of the speed limits over all samples, at most
            one of each kind per rollout.
        figures: errors and other figures over all samples.
        law: (..., K, n) recorded signals of the controllers by name, see `ControlLaw`.
        tau_joint, q_motor, qd_motor, q_seen, qd_seen: (..., K, n) torques that the drives applied to the arm,
            motor positions and speeds, and the measured values, see `twin.logs.log.Log`. Those that are not
            recorded are the arrays that they equal.
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    tau_demand: np.ndarray
    saturated: np.ndarray
    failures: tuple[Failure, ...]
    violations: tuple[Violation, ...]
    figures: Figures
    law: dict[str, np.ndarray]
    tau_joint: np.ndarray
    q_motor: np.ndarray
    qd_motor: np.ndarray
    q_seen: np.ndarray
    qd_seen: np.ndarray

    __repr__ = short_repr


def run_rollouts(
    plant: Robot | Sequence[Robot] | np.ndarray,
    controller: ControlLaw | Sequence[ControlLaw] | np.ndarray,
    reference: Samples,
    *,
    start: tuple[ArrayLike, ArrayLike] | None = None,
    sensors: Sensors | None = None,
    time_step: float = 1e-3,
    steps_per_period: int = 1,
    integrator: str = "semi_implicit_euler",
    every: int = 1,
    keep_failures: bool = False,
    T_flange_tool: ArrayLike | None = None,
    noise_seeds: Sequence[int] | None = None,
    kicks: ArrayLike | None = None,
    environment: Environment | None = None,
    threads: int | None = None,
    warn: bool = True,
) -> Rollouts:
    """Run a batch of closed loops around analytic plants along a reference, in compiled code.

    Plants, controllers and starts are broadcast against each other.  Use it for thousands of runs: it
    compiles the loop around the analytic plant, runs batches on all cores, and requires a `ControlLaw`.  Use
    `run_closed_loop` for a single run with any plant (PyBullet included), any controller object and sensors:
    each step can be watched in a debugger, and the log holds every signal.

    Args:
        plant: one robot, or a nested sequence of robots that differ only in payload, gravity, limits and the
            numbers of their drives.
        controller: one controller, or a nested sequence of controllers of the same law and geometry; their
            parameters and payloads may differ.
        reference: N samples, one per control period, for all rollouts.
        start: initial joint positions and velocities (..., n), in [rad, rad/s]; by default those of the first
            sample.
        sensors: sensors between the motors and the laws; the noise differs from rollout to rollout. By
            default laws receive the exact values.
        time_step: integration step, in [s].
        steps_per_period: number of time steps in a control period, during which the torque is constant.
        integrator: `"semi_implicit_euler"`, as in the engine, or `"rk4"`, of fourth order, for comparison;
            `"rk4"` requires ideal drives.
        every: stride of the stored samples, to save memory; the first sample is always stored.
        keep_failures: whether to return rollouts that ended early, with a report in `failures`, instead of
            raising an error.
        T_flange_tool: (4, 4) pose of the tool for `Rollouts.figures.tool_error`, which is NaN by default.
        noise_seeds: one seed of the sensor noise per rollout, as in `run_closed_loop`; by default all noise
            is drawn from the seed of `sensors`.
        kicks: (..., N, 4, n) perturbations added to the state of each rollout at every sample, before it is
            measured: positions and speeds of the joints, then of the motors in joint units, in
            [rad, rad/s]. They serve to study the effect of rounding.
        environment: pushes and surfaces that act on the tools of all arms, see `run_closed_loop`; not with
            `"rk4"`.
        threads: number of threads; by default that of `twin/base/threads.py`.
        warn: whether to warn about springs that are too fast for the time step.

    Raises:
        DivergenceError: the state of a rollout diverged, a closed kinematic loop of its robot folded, or its
            law demanded a torque that is not finite. The message names the first such rollout; `log` holds
            the `Rollouts`. Never raised if `keep_failures`.
        LimitError: the start folds a closed kinematic loop; the reference is in degrees.
        ValueError: plants or controllers cannot be combined; the law cannot be compiled or returns an array
            of another shape; another argument is invalid.
        RobotError: the sensors are encoders, and those of a plant are unknown.

    Exceptions that a law raises are passed on.  numba never frees the arrays of a call that raised, which
    include the results.  Debug such a law with `run_closed_loop` and an `AnalyticPlant`.

    Example:
        >>> import controllers, twin
        >>> robot = twin.load("irb140")
        >>> laws = [controllers.make("pd_gravity", robot, bandwidth=omega) for omega in (10, 20, 40)]
        >>> runs = twin.run_rollouts(robot, laws, twin.sample(twin.quintic([0] * 6, [0.1] * 6, 0.5), 1e-3))
        >>> runs.q.shape, runs.figures.joint_error.max(axis=-1).round(3).tolist()
        ((3, 501, 6), [0.094, 0.037, 0.011])
    """
    plants, controllers = (
        object_array(plant, Robot, "plant"),
        object_array(controller, ControlLaw, "controller"),
    )
    arm, law = plants.flat[0], controllers.flat[0]
    check_compatible(plants, controllers)
    t, *desired = checked_reference(reference, arm.n)
    check_radians(arm, Samples(t, *desired))
    _check_integrator(integrator, arm, environment)
    outside = environment or Environment()
    settings = _settings(t, time_step, steps_per_period, every, INTEGRATORS[integrator], sensors)
    for robot in plants.flat if warn else ():
        if warn_of_unresolved_springs(robot, settings.dt):  # one warning is enough
            break
    sensors_used = Sensors() if sensors is None else sensors
    batch, shape = _batch(
        plants, controllers, start or (desired[0][0], desired[1][0]), settings, sensors_used
    )
    others = other_rows(arm, sensors)
    signals = (ALL_ROWS if others else PLAIN_ROWS, arm.n)
    record = _empty_record(len(batch.q), (len(t) - 1) // settings.every + 1, signals, len(law.signal_rows))
    flange_tool = np.eye(4) if T_flange_tool is None else copied(real_array(T_flange_tool, "T_flange_tool"))
    tool_path = np.zeros((0, 3))
    if T_flange_tool is not None:
        tool_path = copied(forward_kinematics(arm, desired[0], flange_tool)[:, :3, 3])
    course = Course(
        copied(t),
        copied(np.stack(desired, axis=1)),
        tool_path,
        flange_tool,
        _checked_kicks(kicks, shape, len(batch.q), len(t), arm.n),
        outside.pushes,
        outside.surfaces,
        outside.T_flange_tool,
    )
    rows = list(arm.passive)
    low, high = arm.passive_min - ROUND_OFF, arm.passive_max + ROUND_OFF
    passive = Passive(*map(copied, (arm.embedding[rows], arm.embedding_offset[rows], low, high)))
    run = compiled_rollout(arm, law)

    def noise(r: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw the noise of positions and forces of a rollout."""
        seeded = sensors_used if noise_seeds is None else replace(sensors_used, seed=noise_seeds[r])
        run = r if noise_seeds is None else 0
        return seeded.draws(run, len(t), arm.n), seeded.force_draws(run, len(t))

    # The tables of a block are prepared when it runs, since those of a whole batch may exceed the memory.
    laws, samples = list(np.broadcast_to(controllers, shape).flat), Samples(t, *desired)
    one_table = prepared_table(law, samples)[None] if controllers.size == 1 else None

    def tables(first: int, last: int) -> np.ndarray:
        """Return the tables of a block of rollouts, or the one that all share."""
        if one_table is not None:
            return one_table
        return np.array([prepared_table(laws[r], samples) for r in range(first, last)])

    def run_block(first: int, last: int) -> None:
        draws = force_draws = np.zeros((0, 0, 0))
        if sensors_used.noise > 0 or len(settings.force):
            draws, force_draws = map(np.array, zip(*map(noise, range(first, last)), strict=True))
        block = Block(first, last, tables(first, last), draws, force_draws)
        run(block, batch, passive, settings, course, record)

    _run_blocks(run_block, len(batch.q), settings.steps * len(t), is_compiled(law.law), threads, record)
    arms = np.broadcast_to(plants, shape)
    law_log = record.law.reshape(shape + record.law.shape[1:])
    failures = tuple(collect_failures(record, shape, arms, law.name, settings.every, t))
    result = Rollouts(
        t=t[:: settings.every],
        saturated=record.saturated.reshape(*shape, arm.n),
        failures=failures,
        violations=tuple(worst_violations(record, shape, arms, t)),
        figures=figures_of(record, shape, t, tool=T_flange_tool is not None),
        law={name: law_log[..., row, :] for row, name in enumerate(law.signal_rows)},
        **_series(record, shape, others),
    )
    if failures and not keep_failures:
        more = f" ({len(failures)} of {len(batch.q)} rollouts ended early)" if shape else ""
        raise DivergenceError(f"{failures[0].message}{more}", result)
    return result


def _check_integrator(integrator: str, arm: Robot, environment: Environment | None) -> None:
    """Raise `ValueError` for an unknown integrator, or one that does not support drives or environment."""
    if integrator not in INTEGRATORS:
        raise ValueError(f"unknown integrator {integrator!r}: expected one of {', '.join(INTEGRATORS)}")
    if arm.active_drives is not None and integrator == "rk4":
        raise ValueError(
            f"the integrator 'rk4' supports only ideal drives, got {arm.drive_mode} ones: friction is solved "
            "within the step of 'semi_implicit_euler'"
        )
    if environment and integrator == "rk4":
        raise ValueError("the integrator 'rk4' supports no environment, expected 'semi_implicit_euler'")


def _batch(
    plants: np.ndarray, controllers: np.ndarray, start: tuple[ArrayLike, ArrayLike], settings: Settings,
    sensors: Sensors,
) -> tuple[Batch, tuple[int, ...]]:  # fmt: skip
    """Broadcast plants, controllers and starts; return one row per rollout, and the shape of the batch."""
    arm = plants.flat[0]
    q, qd = joint_vectors(arm, **{"start q": start[0], "start qd": start[1]})
    shape = batch_shape(plants.shape, controllers.shape, q.shape[:-1], qd.shape[:-1])

    def encoder(robot: Robot) -> np.ndarray:
        return sensor_numbers(sensors, robot.drives, settings.period).encoder

    batch = stack_rows(plants, controllers, q, qd, shape, settings.dt, encoder)
    if arm.passive:
        for index, position in zip(np.ndindex(shape), batch.q, strict=True):
            check_folding(arm, position, f" at the start{rollout_suffix(index)}")
    return batch, shape


def _checked_kicks(
    kicks: ArrayLike | None, shape: tuple[int, ...], count: int, samples: int, n: int
) -> np.ndarray:
    """Return the kicks with one row per rollout (count, samples, 4, n), or no rows if there are none."""
    if kicks is None:
        return np.zeros((0, 1, 4, n))
    added = copied(real_array(kicks, "kicks")).reshape(-1, samples, 4, n)
    if len(added) != count:
        raise ValueError(f"expected kicks of shape {(*shape, samples, 4, n)}, got {np.shape(kicks)}")
    return added


def _run_blocks(
    run_block: Callable[[int, int], None], count: int, steps: int, compiled: bool, threads: int | None,
    record: Record,
) -> None:  # fmt: skip
    """Run all rollouts in blocks, on several threads.

    Args:
        run_block: function that runs the rollouts from `first` to `last`, without the latter.
        count: number of rollouts.
        steps: number of time steps of each rollout.
        compiled: whether the law is marked by `compiled_law`.
        threads: number of threads, or `None` for that of `twin/base/threads.py`.
        record: results of the loop; its `stop` ends the running blocks if an exception is raised here.
    """
    block = 1 + STEPS_AT_ONCE // steps
    blocks = range(0, count, block)
    waiting = iter(blocks)

    def work() -> None:
        """Run the next block as long as there is one; a busy core thus runs fewer blocks."""
        with np.errstate(over="ignore", invalid="ignore"):  # where the loop is plain Python
            for first in waiting:
                run_block(first, min(first + block, count))

    # Another thread costs a millisecond. It lets Ctrl-C interrupt a long run or an endless loop in a law.
    in_this_thread = count * steps <= STEPS_AT_ONCE and compiled
    limit = thread_count() if threads is None else threads
    try:
        work() if in_this_thread else in_threads(work, min(limit, len(blocks)))
    except BaseException:
        record.stop[0] = 1
        raise


def _series(record: Record, shape: tuple[int, ...], others: dict[str, int]) -> dict[str, np.ndarray]:
    """Return the recorded series by name; a series that is not recorded is the one that it equals."""
    log = record.log.reshape(shape + record.log.shape[1:])
    rows = {"q": Q, "qd": QD, "tau": TAU, "tau_demand": DEMAND}
    rows |= {"tau_joint": TAU, "q_motor": Q, "qd_motor": QD, "q_seen": Q, "qd_seen": QD}
    if "q_motor" in others:
        rows |= {"q_seen": others["q_motor"], "qd_seen": others["qd_motor"]}
    return {name: log[..., row, :] for name, row in (rows | others).items()}


def _settings(
    t: np.ndarray, time_step: float, steps_per_period: int, every: int, integrator: int,
    sensors: Sensors | None,
) -> Settings:  # fmt: skip
    dt, steps = checked_time_step(time_step), whole_steps(steps_per_period)
    check_period(t, dt, steps)
    if not (isinstance(every, (int, np.integer)) and every >= 1):
        raise ValueError(f"expected every to be an integer of at least 1, got {every!r}")
    period = dt * steps
    noise, gain, past, force = 0.0, 0.0, 0, np.zeros(0)
    if sensors is not None:
        noise, gain = sensor_numbers(replace(sensors, encoder=False), None, period)[:2]
        past, force = len(sensors.past(len(t), 1)), sensors.force_numbers
    return Settings(dt, steps, period, int(every), RUNAWAY_SPEED, integrator, noise, gain, past, force)


def _empty_record(rollouts: int, stored: int, signals: tuple[int, int], law_rows: int) -> Record:
    samples, trouble = np.zeros((2, rollouts), dtype=np.int64)
    return Record(
        log=np.empty((rollouts, stored, *signals)),
        law=np.empty((rollouts, stored, law_rows, signals[1])),
        saturated=np.zeros((rollouts, signals[1]), dtype=np.int64),
        samples=samples,
        trouble=trouble,
        last=np.empty((rollouts, *signals)),
        worst=np.zeros((rollouts, 2)),
        where=np.full((rollouts, 2, 2), -1, dtype=np.int64),
        value=np.zeros((rollouts, 2)),
        summed=np.zeros((rollouts, 4, signals[1])),
        tool=np.zeros((rollouts, 2)),
        stop=np.zeros(1, dtype=np.int64),
    )

"""The analytic twin as a simulator of its own: closed loops run whole in compiled code, one or many at once.

A rollout is what `run_closed_loop` does with `twin.control.plant.AnalyticPlant`, to the bit, and
what it does with the engine but for the rounding of the accelerations: state, law, drives, steps.  It takes
about a microsecond a step, so that starts, gains, payloads and mountings can be swept:

    arms = [robot.with_payload(Payload(mass)) for mass in masses]
    laws = [controllers.make("computed_torque", robot, bandwidth=omega) for omega in bandwidths]
    sweep = run_rollouts(np.array(arms)[:, None], laws, reference)  # sweep.q: (masses, bandwidths, N, n)

A law has to be a `twin.control.control_law.ControlLaw`.  Its first use in a process compiles it, for a second
or so; the first rollout of all compiles the loop, for half a minute, and its machine code is kept, as is that
of the laws in `controllers/`.  Rollouts are shared between the cores, see `twin/threads.py`; the results are
the same to the bit for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import checked_time_step, real_array
from twin.control.closed_loop import (
    RUNAWAY_SPEED,
    check_period,
    checked_reference,
    divergence_message,
    whole_steps,
)
from twin.control.compiled_rollout import compiled_rollout
from twin.control.control_law import ControlLaw, is_compiled
from twin.control.rollout_batch import (
    Batch,
    Passive,
    Record,
    Settings,
    batch_shape,
    check_alike,
    objects_of,
    rows_of,
)
from twin.control.rollout_loop import (
    FOLDED,
    ITS_SAMPLE,
    LARGEST_ERROR,
    NOT_A_TORQUE,
    POSITION,
    RK4,
    SEMI_IMPLICIT_EULER,
    SPEED,
    SQUARED_ERRORS,
    SQUARED_TORQUES,
    WRONG_SHAPE,
)
from twin.control.signals import ALL_ROWS, DEMAND, PLAIN_ROWS, QD, TAU, Q, joint_without_torque, other_rows
from twin.dynamics.flexible_joint import warn_of_unresolved_springs
from twin.errors import DivergenceError, LimitError
from twin.kinematics.forward import forward_kinematics
from twin.robot.drives.sensors import Sensors, sensor_numbers
from twin.robot.evaluation import copied, joint_vectors
from twin.robot.limits import ROUND_OFF, Violation, check_folding, joint_unit, violation
from twin.robot.robot import Robot
from twin.threads import in_threads, thread_count
from twin.trajectories.sampling import Samples, check_radians

INTEGRATORS = {"semi_implicit_euler": SEMI_IMPLICIT_EULER, "rk4": RK4}

STEPS_AT_ONCE = 20_000
"""So many steps are worth a call of the compiled loop, which costs as much as 500."""


@dataclass(frozen=True, eq=False)
class Rollouts:
    """What happened, at the samples that were kept; `...` is the shape of the batch, `()` for one rollout.

    Attributes:
        t: (K,) times, in [s].
        q, qd: (..., K, n) joint positions and velocities, in [rad, rad/s].
        tau, tau_demand: (..., K, n) torques that the motors brought to the joints, and that the law demanded,
            in [N m].
        saturated: (..., n) number of samples, of all that were reached, at which a drive could not deliver.
        failures: rollouts that ended early; their arrays are NaN from there on.
        violations: where arms went beyond the range or the speed limit of a joint, at any sample, kept or
            not: the furthest of each rollout and kind.
        figures: what came of every sample, kept or not.
        tau_joint, q_motor, qd_motor, q_seen, qd_seen: (..., K, n) what the arm got from its drives, where the
            motors were and what the law saw, see `twin.logs.log.Log`; where they are not recorded, the
            arrays that they are equal to.
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
    tau_joint: np.ndarray
    q_motor: np.ndarray
    qd_motor: np.ndarray
    q_seen: np.ndarray
    qd_seen: np.ndarray


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
    threads: int | None = None,
    warn: bool = True,
) -> Rollouts:
    """Run laws on analytic plants along a reference, every combination that broadcasting makes of them.

    Args:
        plant: one robot, or a nested sequence of robots that differ in payload, gravity, limits and the
            numbers of their drives alone.
        controller: one, or a nested sequence of controllers of one law and one geometry; their parameters and
            payloads may differ.
        reference: N samples, one a control period; for all rollouts.
        start: joint positions and velocities (..., n), in [rad, rad/s]; the first sample's by default.
        sensors: between the motors and the laws; each rollout has noise of its own. By default laws see the
            motors as they are.
        time_step: of the integration, in [s].
        steps_per_period: steps in a control period, through which the torque is held.
        integrator: `"semi_implicit_euler"`, the engine's, or `"rk4"`, of fourth order, to compare with
            where drives are ideal.
        every: so many samples one is kept, the first included: sweeps fill the memory.
        keep_failures: return rollouts that ended early like the others, and report them in `failures`.
        T_flange_tool: (4, 4) the tool of `Rollouts.figures.tool_error`; by default nobody asks for it.
        noise_seeds: of the sensors' noise, one a rollout, each as `run_closed_loop` takes it; by default all
            is drawn from the sensors' own seed.
        kicks: (..., N, 4, n) added to the state of each rollout at every sample, before the law sees it:
            positions and speeds of the joints, then of the motors in joint units, in [rad, rad/s]. Rounding
            is studied with them.
        threads: so many; by default those of `twin/threads.py`.
        warn: of springs that are too fast for the steps; a sweep does it once, of its nominal arm.

    Raises:
        DivergenceError: a rollout ran away, a closed loop of its robot folded, or its law demanded a torque
            that is not finite. It names the first; its `log` holds the `Rollouts`. Not if `keep_failures`.
        LimitError: a start that folds a closed loop; a reference in degrees.
        ValueError: plants or controllers that do not go together, a law that cannot be compiled or that
            returns another shape, another misfit of the arguments.
        RobotError: the sensors are to be encoders, and a plant's are not known.

    What a law itself raises comes through.  numba never gives back the arrays of a call that raised, those of
    the results here: `run_closed_loop` around an `AnalyticPlant` is the place to find such mistakes.
    """
    plants, controllers = objects_of(plant, Robot, "plant"), objects_of(controller, ControlLaw, "controller")
    arm, law = plants.flat[0], controllers.flat[0]
    check_alike(plants, controllers)
    t, *wanted = checked_reference(reference, arm.n)
    check_radians(arm, Samples(t, *wanted))
    _check_integrator(integrator, arm)
    settings = _settings(
        t, time_step, steps_per_period, every, len(law.memory), INTEGRATORS[integrator], sensors
    )
    for robot in plants.flat if warn else ():
        if warn_of_unresolved_springs(robot, settings.dt):  # of the first alone
            break
    senses = Sensors() if sensors is None else sensors
    batch, shape = _batch(plants, controllers, start or (wanted[0][0], wanted[1][0]), settings, senses)
    others = other_rows(arm, sensors)
    signals = (ALL_ROWS if others else PLAIN_ROWS, arm.n)
    record = _empty_record(len(batch.q), (len(t) - 1) // settings.every + 1, signals)
    added = _checked_kicks(kicks, shape, len(batch.q), len(t), arm.n)
    flange_tool = np.eye(4) if T_flange_tool is None else copied(real_array(T_flange_tool, "T_flange_tool"))
    tool_path = np.zeros((0, 3))
    if T_flange_tool is not None:
        tool_path = copied(forward_kinematics(arm, wanted[0], flange_tool)[:, :3, 3])
    run, passive, path, times = (
        compiled_rollout(arm, law), _passive_ranges(arm), copied(np.stack(wanted, axis=1)), copied(t)
    )  # fmt: skip

    def noise(r: int) -> np.ndarray:
        """Draw the noise of a rollout."""
        seeded = senses if noise_seeds is None else replace(senses, seed=noise_seeds[r])
        return seeded.draws(r if noise_seeds is None else 0, len(t), arm.n)

    def run_block(first: int, last: int) -> None:
        draws = np.zeros((0, 0, 0))
        if senses.noise > 0:
            draws = np.array([noise(r) for r in range(first, last)])
        run(
            first, last, batch, passive, settings, path, times, draws, added, tool_path, flange_tool, record
        )  # fmt: skip

    _run_blocks(run_block, len(batch.q), settings.steps * len(t), is_compiled(law.law), threads, record)
    arms = np.broadcast_to(plants, shape)
    failures = tuple(early_ends(record, shape, arms, law.name, settings.every, t))
    result = Rollouts(
        t=t[:: settings.every],
        saturated=record.saturated.reshape(*shape, arm.n),
        failures=failures,
        violations=tuple(worst_violations(record, shape, arms, t)),
        figures=figures_of(record, shape, t, tool=T_flange_tool is not None),
        **_series(record, shape, others),
    )
    if failures and not keep_failures:
        more = f" ({len(failures)} of {len(batch.q)} rollouts ended early)" if shape else ""
        raise DivergenceError(f"{failures[0].message}{more}", result)
    return result


def _check_integrator(integrator: str, arm: Robot) -> None:
    """Raise `ValueError` for an unknown integrator, or one that does not know the arm's drives."""
    if integrator not in INTEGRATORS:
        raise ValueError(f"unknown integrator {integrator!r}: known are {', '.join(INTEGRATORS)}")
    if arm.active_drives is not None and integrator == "rk4":
        raise ValueError(
            f"the integrator 'rk4' knows ideal drives alone, got {arm.drive_mode} ones: friction is solved "
            "with the step of 'semi_implicit_euler'"
        )


def _batch(
    plants: np.ndarray, controllers: np.ndarray, start: tuple[ArrayLike, ArrayLike], settings: Settings,
    senses: Sensors,
) -> tuple[Batch, tuple[int, ...]]:  # fmt: skip
    """Broadcast plants, controllers and starts against each other; return a row a rollout, and the shape."""
    arm = plants.flat[0]
    q, qd = joint_vectors(arm, **{"start q": start[0], "start qd": start[1]})
    shape = batch_shape(plants.shape, controllers.shape, q.shape[:-1], qd.shape[:-1])

    def encoder(robot: Robot) -> np.ndarray:
        return sensor_numbers(senses, robot.drives, settings.period).encoder

    batch = rows_of(plants, controllers, q, qd, shape, settings.dt, encoder)
    if arm.passive:
        for index, position in zip(np.ndindex(shape), batch.q, strict=True):
            check_folding(arm, position, f" at the start{of_rollout(index)}")
    return batch, shape


def _passive_ranges(arm: Robot) -> Passive:
    """Return the passive joints of an arm, and the ranges beyond which a loop folds."""
    rows = list(arm.passive)
    low, high = arm.passive_min - ROUND_OFF, arm.passive_max + ROUND_OFF
    return Passive(*map(copied, (arm.embedding[rows], arm.embedding_offset[rows], low, high)))


def _checked_kicks(
    kicks: ArrayLike | None, shape: tuple[int, ...], count: int, samples: int, n: int
) -> np.ndarray:
    """Return the kicks a row a rollout (count, samples, 4, n), or no rows."""
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
    """Run all rollouts, a block of them at a time, on so many threads.

    Args:
        run_block: runs those from the first up to the last.
        count: of rollouts.
        steps: of each.
        compiled: whether the law is.
        threads: so many, or `None` for those of `twin/threads.py`.
        record: it stops what is running when this raises.
    """
    block = 1 + STEPS_AT_ONCE // steps
    blocks = range(0, count, block)
    waiting = iter(blocks)

    def work() -> None:
        """Take the next block as long as there is one: a core that others use takes fewer."""
        with np.errstate(over="ignore", invalid="ignore"):  # where the loop is plain Python
            for first in waiting:
                run_block(first, min(first + block, count))

    # Another thread costs a millisecond, and lets Ctrl-C end what is long, or may be endless.
    here = count * steps <= STEPS_AT_ONCE and compiled
    most = thread_count() if threads is None else threads
    try:
        work() if here else in_threads(work, min(most, len(blocks)))
    except BaseException:
        record.stop[0] = 1
        raise


def _series(record: Record, shape: tuple[int, ...], others: dict[str, int]) -> dict[str, np.ndarray]:
    """Return the recorded series by their names; what has no row of its own is the row that it equals."""
    log = record.log.reshape(shape + record.log.shape[1:])
    rows = {"q": Q, "qd": QD, "tau": TAU, "tau_demand": DEMAND}
    rows |= {"tau_joint": TAU, "q_motor": Q, "qd_motor": QD, "q_seen": Q, "qd_seen": QD}
    if "q_motor" in others:
        rows |= {"q_seen": others["q_motor"], "qd_seen": others["qd_motor"]}
    return {name: log[..., row, :] for name, row in (rows | others).items()}


def _settings(
    t: np.ndarray, time_step: float, steps_per_period: int, every: int, memory: int, integrator: int,
    sensors: Sensors | None,
) -> Settings:  # fmt: skip
    dt, steps = checked_time_step(time_step), whole_steps(steps_per_period)
    check_period(t, dt, steps)
    if not (isinstance(every, (int, np.integer)) and every >= 1):
        raise ValueError(f"expected every to be an integer of at least 1, got {every!r}")
    period = dt * steps
    noise, gain, past = 0.0, 0.0, 0
    if sensors is not None:
        noise, gain = sensor_numbers(replace(sensors, encoder=False), None, period)[:2]
        past = len(sensors.past(len(t), 1))
    return Settings(dt, steps, period, int(every), memory, RUNAWAY_SPEED, integrator, noise, gain, past)


def _empty_record(rollouts: int, kept: int, signals: tuple[int, int]) -> Record:
    samples, trouble = np.zeros((2, rollouts), dtype=np.int64)
    return Record(
        log=np.empty((rollouts, kept, *signals)),
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


class Failure(NamedTuple):
    """A rollout that ended early.

    Attributes:
        rollout: its place in the batch, `()` where there is one alone.
        samples: how many samples it reached.
        message: what ended it.
    """

    rollout: tuple[int, ...]
    samples: int
    message: str


def worst_violations(
    record: Record, shape: tuple[int, ...], plants: np.ndarray, t: np.ndarray
) -> Iterator[Violation]:
    """Report where the arms were furthest beyond their limits."""
    for r, kind in np.argwhere(record.worst > [ROUND_OFF, 1.0 + ROUND_OFF]).tolist():
        index = tuple(int(i) for i in np.unravel_index(r, shape))
        joint, sample = record.where[r, kind].tolist()
        quantity, value = ("position", "speed")[kind], float(record.value[r, kind])
        yield violation(plants[index], quantity, joint, float(t[sample]), value, index)


def early_ends(
    record: Record, shape: tuple[int, ...], plants: np.ndarray, law: str, every: int, t: np.ndarray
) -> list[Failure]:
    """Report the rollouts that ended early, and put NaN where they did not get to."""
    failures = []
    for r in np.flatnonzero(record.trouble).tolist():
        index = tuple(int(i) for i in np.unravel_index(r, shape))
        samples = int(record.samples[r])
        record.log[r, -(-samples // every) :] = np.nan
        message = _trouble(int(record.trouble[r]), plants[index], record.last[r], law, samples, t)
        failures.append(Failure(index, samples, message + of_rollout(index)))
    return failures


def _trouble(trouble: int, robot: Robot, last: np.ndarray, law: str, samples: int, t: np.ndarray) -> str:
    """What ended a rollout, where and when."""
    q, qd, demand, tau = last[:PLAIN_ROWS]
    k = samples if trouble not in (NOT_A_TORQUE, FOLDED) else samples - 1
    when = f"t = {t[k]:.6g} s (sample {k})"
    if trouble == WRONG_SHAPE:
        raise ValueError(f"law {law!r} returned tau of another shape than ({robot.n},) at {when}")
    if trouble == NOT_A_TORQUE:
        joint = joint_without_torque(demand, tau)
        unit = joint_unit(robot.joint_kinds[joint], "torque")
        return f"law {law!r} demands {demand[joint]} {unit} of {robot.joint_names[joint]} at {when}"
    if trouble == FOLDED:
        try:
            check_folding(robot, q)
        except LimitError as error:
            return f"{error}, in the step after {when}"
        return f"a passive joint is at the end of its range in the step after {when}"
    return f"{divergence_message(robot, q, qd)} at {when}"


def of_rollout(index: tuple[int, ...]) -> str:
    """Which rollout, as the end of a message; nothing where there is one alone."""
    return f" in rollout {index[0] if len(index) == 1 else index}" if index else ""


class Figures(NamedTuple):
    """Of all samples that were reached, kept or not; `...` is the shape of the batch.

    Attributes:
        samples: (...) how many there were.
        trouble: (...) what ended the rollout early, 0 where nothing did; see `twin.control.rollout_loop`.
        joint_error: (..., n) the largest `|q_ref - q|`, in [rad].
        joint_error_time: (..., n) when that was, in [s].
        rms_error: (..., n) root of the mean of its square, in [rad].
        rms_torque: (..., n) root of the mean square of the motors' torque at the joint, in [N m].
        tool_error: (...) the largest distance of the tool from where it should be, in [m]; NaN where nobody
            asked.
        tool_error_time: (...) when that was, in [s].
        beyond_range: (...) how far a joint was beyond its range, in [rad], 0 where none was.
        speed_ratio: (...) the largest speed over its limit.
    """

    samples: np.ndarray
    trouble: np.ndarray
    joint_error: np.ndarray
    joint_error_time: np.ndarray
    rms_error: np.ndarray
    rms_torque: np.ndarray
    tool_error: np.ndarray
    tool_error_time: np.ndarray
    beyond_range: np.ndarray
    speed_ratio: np.ndarray


def figures_of(record: Record, shape: tuple[int, ...], t: np.ndarray, tool: bool) -> Figures:
    """The figures in a record.

    Args:
        record: that the loop filled.
        shape: of the batch.
        t: (N,) times of the samples, in [s].
        tool: whether the tool was asked for.
    """
    samples = record.samples
    mean = np.sqrt(
        record.summed[:, [SQUARED_ERRORS, SQUARED_TORQUES]] / np.maximum(samples, 1)[:, None, None]
    )
    where = np.where(tool, record.tool.T, np.nan)
    seconds = t[record.tool[:, 1].astype(np.int64)] if tool else where[1]
    each = Figures(
        samples=samples,
        trouble=record.trouble,
        joint_error=record.summed[:, LARGEST_ERROR],
        joint_error_time=t[record.summed[:, ITS_SAMPLE].astype(np.int64)],
        rms_error=mean[:, 0],
        rms_torque=mean[:, 1],
        tool_error=where[0],
        tool_error_time=seconds,
        beyond_range=record.worst[:, POSITION],
        speed_ratio=record.worst[:, SPEED],
    )
    return Figures(*(array.reshape(shape + array.shape[1:]) for array in each))

"""Evaluate trials by compiled rollouts or in the engine: a row of figures, and whether the trial passes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from twin.base.errors import DivergenceError
from twin.data.logs.annotations import Surroundings
from twin.data.logs.closed_loop import run_closed_loop
from twin.data.logs.loads import Motion, load_magnitudes
from twin.data.logs.log import Log
from twin.physics.control.control_law import ControlLaw
from twin.physics.control.rollout import Rollouts, run_rollouts
from twin.physics.control.rollout_loop import FOLDED, NOT_A_TORQUE, RAN_AWAY
from twin.physics.dynamics.environment import Environment
from twin.physics.engine.simulation import Simulation
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.robot.limits import ROUND_OFF
from twin.physics.robot.robot import Robot
from twin.studies.sweeps.trial import LOAD_FIGURES, OUTCOME, TROUBLES, Trial, outcome_type

SIGNALS = ("q", "qd", "tau", "tau_demand", "tau_joint", "q_motor", "qd_motor", "q_seen", "qd_seen")
"""Signals of a rollout that are those of a log."""
ERRORS = ("joint_error", "rms_error", "tool_error")
"""Figures that are infinite for a trial that ended early."""
LOADS_AT_ONCE = 8
"""Number of rollouts whose samples are in memory at a time for their loads: 20 MB for runs of 4 s."""


def outcomes(trials: Sequence[Trial], threads: int | None = None) -> np.ndarray:
    """Run trials in compiled code; trials that differ in numbers only run in one call.

    Args:
        trials: R trials.
        threads: number of threads; by default that of `twin/base/threads.py`. It does not change any bit.

    Returns:
        (R,) rows of `OUTCOME`, with the metrics of the first trial.

    Raises:
        ValueError: a controller is not a `twin.ControlLaw`.
    """
    table = np.zeros(len(trials), dtype=outcome_type(trials[0].metrics))
    groups: dict[object, list[int]] = {}
    for number, trial in enumerate(trials):
        groups.setdefault(_alike(trial), []).append(number)
    for members in groups.values():
        table[members] = _rolled_out([trials[number] for number in members], threads)
    return table


def engine_outcomes(trials: Sequence[Trial]) -> np.ndarray:
    """Run trials in PyBullet, one after the other.

    Args:
        trials: R trials, with any kind of controller.

    Returns:
        (R,) rows of `OUTCOME`, with the metrics of the first trial.
    """
    return np.array([_in_engine(trial) for trial in trials], dtype=outcome_type(trials[0].metrics))


def verdict(table: np.ndarray, limits: Mapping[str, float]) -> np.ndarray:
    """Return a copy of the outcomes in which trials that exceed a limit fail.

    Args:
        table: (R,) with the fields of `OUTCOME`.
        limits: limits of figures, by name; a figure that is NaN meets no limit.
    """
    judged = table.copy()
    for name, limit in limits.items():
        judged["passes"] &= judged[name] <= limit
    return judged


def _alike(trial: Trial) -> object:
    """Return what the trials of one call must share; numbers of robots, gains and noise may differ."""
    law = trial.controller
    if not isinstance(law, ControlLaw):
        raise ValueError(
            f"only a twin.ControlLaw can be compiled for rollouts, got a controller of type "
            f"{type(law).__name__}: run it in the engine"
        )
    sensors = trial.sensors and replace(trial.sensors, seed=0)
    tool = None if trial.T_flange_tool is None else trial.T_flange_tool.tobytes()
    kind = trial.loads, trial.plant.drive_mode, law.law, law.parameters.shape, law.robot.drive_mode
    world = trial.environment and tuple(part.tobytes() for part in vars(trial.environment).values())
    kind += trial.judge is not None, world
    return id(trial.reference), sensors, trial.time_step, trial.steps_per_period, tool, kind


def _rolled_out(trials: list[Trial], threads: int | None) -> np.ndarray:
    """Return the outcomes of trials of one call."""
    first = trials[0]
    every_sample = first.loads or first.judge is not None
    if every_sample and len(trials) > LOADS_AT_ONCE:
        blocks = [trials[k : k + LOADS_AT_ONCE] for k in range(0, len(trials), LOADS_AT_ONCE)]
        return np.concatenate([_rolled_out(block, threads) for block in blocks])
    laws = [trial.controller for trial in trials]
    rollouts = run_rollouts(
        [trial.plant for trial in trials],
        laws,
        first.reference,
        sensors=first.sensors,
        time_step=first.time_step,
        steps_per_period=first.steps_per_period,
        every=1 if every_sample else len(first.reference.t),
        keep_failures=True,
        T_flange_tool=first.T_flange_tool,
        noise_seeds=[0 if trial.sensors is None else trial.sensors.seed for trial in trials],
        environment=first.environment,
        threads=threads,
        warn=False,
    )
    return _table(rollouts, trials)


def _table(rollouts: Rollouts, trials: list[Trial]) -> np.ndarray:
    """Return the outcomes from the figures of rollouts."""
    figures, t = rollouts.figures, trials[0].reference.t
    each = np.arange(len(trials))
    joint = np.argmax(figures.joint_error, axis=1)
    limits = np.array([trial.plant.drive_torque_max for trial in trials])
    table = _empty(len(trials), trials[0].metrics)
    table["trouble"] = figures.trouble
    table["duration"] = t[np.maximum(figures.samples - 1, 0)] - t[0]
    table["joint_error"] = figures.joint_error[each, joint]
    table["joint_error_joint"] = joint + 1
    table["joint_error_time"] = figures.joint_error_time[each, joint]
    table["rms_error"] = np.sqrt(np.mean(figures.rms_error**2, axis=1))
    table["tool_error"], table["tool_error_time"] = figures.tool_error, figures.tool_error_time
    table["rms_torque"] = np.sqrt(np.mean((figures.rms_torque / limits) ** 2, axis=1))
    for row, trial, r in zip(table, trials, each, strict=True):
        series = (rollouts.q[r], rollouts.qd[r], rollouts.tau_joint[r], rollouts.tau[r])
        wanted = trial.loads, trial.environment, rollouts.t
        _fill_loads(row, trial.plant, series, trial.time_step, trial.steps_per_period, *wanted)
    table["beyond_range"], table["speed_ratio"] = figures.beyond_range, figures.speed_ratio
    table["saturated"] = rollouts.saturated.sum(axis=1)
    for r, (row, trial) in enumerate(zip(table, trials, strict=True)):
        if trial.judge is not None and not row["trouble"]:
            _fill_judgement(row, trial, _log(rollouts, r, trial))
    return _judged(table, trials)


def _log(rollouts: Rollouts, r: int, trial: Trial) -> Log:
    """Return the log of a rollout that did not end early and of which every sample was recorded."""
    signals = {name: getattr(rollouts, name)[r] for name in SIGNALS}
    t, q, qd, qdd = trial.reference
    world, surroundings = trial.environment, None
    if world is not None:
        surroundings = Surroundings.of(world, trial.plant, t, signals["q"], signals["qd"])
    return Log(
        robot=trial.plant, controller=trial.controller.name, time_step=trial.time_step,
        steps_per_period=trial.steps_per_period, t=t, q_ref=q, qd_ref=qd, qdd_ref=qdd,
        saturated=signals["tau"] != signals["tau_demand"], loop_gap=np.zeros(len(t)), **signals,
        law_signals={name: rows[r] for name, rows in rollouts.law.items()}, surroundings=surroundings,
        T_flange_tool=np.eye(4) if world is None else world.T_flange_tool,
    )  # fmt: skip


def _in_engine(trial: Trial) -> np.void:
    """Return the outcome of one trial in PyBullet."""
    trouble = 0
    with Simulation(trial.plant, time_step=trial.time_step) as simulation:
        try:
            log = run_closed_loop(
                simulation,
                trial.controller,
                trial.reference,
                steps_per_period=trial.steps_per_period,
                sensors=trial.sensors,
                environment=trial.environment,
            )
        except DivergenceError as error:
            log, trouble = error.log, _trouble(error)
    table = _empty(1, trial.metrics)
    row = table[0]
    row["trouble"] = trouble
    if log is not None and len(log.t):
        _fill(row, log, trial.T_flange_tool, trial.loads)
        if trial.judge is not None and not trouble:
            _fill_judgement(row, trial, log)
    return _judged(table, [trial])[0]


def _empty(count: int, metrics: Sequence[str]) -> np.ndarray:
    """Return rows of zeros, in which metrics are not computed yet."""
    table = np.zeros(count, dtype=outcome_type(metrics))
    for name in metrics:
        table[name] = np.nan
    return table


def _fill_judgement(row: np.void, trial: Trial, log: Log) -> None:
    assert trial.judge is not None
    row["check"], values = trial.judge(log)
    for name, value in zip(trial.metrics, values, strict=True):
        row[name] = value


def figures_of_log(log: Log) -> np.void:
    """Return the figures of a log with at least one sample, as those of a trial; `passes` is not set."""
    row = np.zeros(1, dtype=OUTCOME)[0]
    _fill(row, log, log.T_flange_tool, log.robot.has_inertia)
    return row


def _fill(row: np.void, log: Log, T_flange_tool: np.ndarray | None, loads: bool) -> None:
    """Fill a row with the figures of a log."""
    robot = log.robot
    error = np.abs(log.q_ref - log.q)
    sample, joint = np.unravel_index(np.argmax(error), error.shape)
    row["duration"] = log.t[-1] - log.t[0]
    row["joint_error"], row["joint_error_joint"] = error[sample, joint], joint + 1
    row["joint_error_time"] = log.t[sample]
    row["rms_error"] = np.sqrt(np.mean(error**2))
    row["tool_error"] = row["tool_error_time"] = np.nan
    if T_flange_tool is not None:
        actual, desired = (forward_kinematics(robot, q, T_flange_tool) for q in (log.q, log.q_ref))
        distance = np.linalg.norm((actual - desired)[:, :3, 3], axis=1)
        row["tool_error"], row["tool_error_time"] = np.max(distance), log.t[np.argmax(distance)]
    row["rms_torque"] = np.sqrt(np.mean((log.tau / robot.drive_torque_max) ** 2))
    excess = np.maximum(log.q - robot.q_max, robot.q_min - log.q)
    row["beyond_range"] = max(0.0, float(np.max(excess)))
    row["speed_ratio"] = np.max(np.abs(log.qd) / robot.qd_max)
    row["saturated"] = np.count_nonzero(log.saturated)
    series = (log.q, log.qd, log.tau_joint, log.tau)
    _fill_loads(row, robot, series, log.time_step, log.steps_per_period, loads, log.environment, log.t)


def _fill_loads(
    row: np.void, robot: Robot, series: Sequence[np.ndarray], time_step: float, steps: int, wanted: bool,
    world: Environment | None, t: np.ndarray,
) -> None:  # fmt: skip
    """Fill a row with the loads of a run.

    Args:
        row: a row of `OUTCOME`.
        robot: the arm.
        series: (N, n) positions, speeds, torques of the drives on the arm, and torques of the motors.
        time_step: time step, in [s].
        steps: number of time steps per control period.
        wanted: whether to compute the loads; without, they are NaN.
        world: pushes and surfaces that act on the tool; `None` for none.
        t: (N,) times, in [s].
    """
    for name in LOAD_FIGURES:
        row[name] = np.nan
    finite = np.all(np.isfinite(series), axis=(0, 2)) if wanted else np.array([False])
    reached = len(finite) if np.all(finite) else int(np.argmin(finite))
    if reached:
        q, qd, tau_joint, tau = (array[:reached] for array in series)
        row["cubic_torque"] = np.cbrt(np.mean(np.abs(tau / robot.drive_torque_max) ** 3))
        tool = (world.wrench(robot, t[:reached], q, qd), world.T_flange_tool) if world else ()
        wrenches = Motion(robot, q, qd, tau_joint, time_step, steps, *tool).wrenches()
        for name, load in load_magnitudes(robot, wrenches).items():
            row[name] = np.max(load)


def _trouble(error: DivergenceError) -> int:
    """Return the trouble that ended a run of the engine early."""
    if error.__cause__ is not None:  # the range of a passive joint, or an opened loop
        return FOLDED
    finite = not len(error.log.tau) or np.all(np.isfinite(error.log.tau[-1]))
    return RAN_AWAY if finite else NOT_A_TORQUE


def _judged(table: np.ndarray, trials: list[Trial]) -> np.ndarray:
    """Set `passes` in all rows, and infinite errors in the rows of trials that ended early."""
    early = table["trouble"] > 0
    for name in ERRORS:
        table[name][early & ~np.isnan(table[name])] = np.inf
    free = np.array([trial.leaves_limits for trial in trials])
    within = (table["beyond_range"] <= ROUND_OFF) & (table["speed_ratio"] <= 1.0 + ROUND_OFF)
    allowed = np.array([trial.error_limit for trial in trials])
    passes = (within | free) & (table["saturated"] == 0) & (table["joint_error"] <= allowed)
    judged = np.array([trial.judge is not None for trial in trials])
    table["passes"] = ~early & np.where(judged, table["check"] == "", passes)
    return table


def unmade(metrics: Sequence[str]) -> np.void:
    """Return the row of a point for which no trial can be made."""
    table = _empty(1, metrics)
    table["trouble"] = TROUBLES.index("cannot be made")
    for name in (
        *ERRORS,
        "rms_torque",
        "beyond_range",
        "speed_ratio",
        "joint_error_time",
        "tool_error_time",
        *LOAD_FIGURES,
    ):
        table[name] = np.nan
    for name in ERRORS:
        table[name] = np.inf
    return table[0]

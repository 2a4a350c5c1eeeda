"""Compare the engine with the model step by step, to verify that the two are the same robot.

From every state of the engine, the analytic plant simulates one control period. Its result must equal the
engine's next state to rounding: joints, motors and the torque on the arm. Controller, sensors and motor
limits run again on the recorded states, and must give the recorded torques to the last bit. This reveals an
error of 1e-9 in the engine in a single step, before the closed loop can hide it.

No limit in this module depends on the residual that it judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scenarios.metric import Metric
from twin.logs.figures import place_of_largest, unit_of_largest
from twin.logs.payload_changes import LOAD

if TYPE_CHECKING:
    from twin.control.control_law import ControlLaw
    from twin.control.rollout import Rollouts
    from twin.dynamics.equation_of_motion import PlantState
    from twin.logs.log import Log
    from twin.robot.drives.sensors import Sensors
    from twin.robot.robot import Robot
    from twin.trajectories.sampling import Samples


STATES = ("q", "qd", "q_motor", "qd_motor", "tau_joint")
"""Compared signals: the fields of `twin.dynamics.equation_of_motion.PlantState`."""
SPEED_CHANGE = 1e-11
"""Rounding over the largest change of speed in a period; stiff springs and wrists amplify it.

Observed: 2e-12 with elastic drives and five steps in a period, 1e-13 otherwise.
"""
SPEED = 1e-14
"""Rounding of the speed in a step, over the largest speed or 1 rad/s. Observed: 5e-16."""
LOOP_SPEED = 2e-12
"""[rad/s]: speed error of a closed loop in a step.

The engine solves the loop's constraint to a residual of 1e-25, the square of 3e-13. Observed: 3.3e-13.
"""
LOOP_GAP = 1e-12
"""[m]: largest gap of a closed loop in the engine. Observed: 1e-15."""
POSITION = 8.0
"""Rounding of the position in a step, besides the error of the speed.

In units in the last place of the largest angle. Observed: 2.
"""
TORQUE = 3e-14
"""Rounding over the largest torque in the arm; mass matrix and bias are sums of some dozen products.

Observed: 2e-15.
"""


class Playback:
    """Plant that follows the states of a log and ignores the torques.

    In a closed loop with it, the controller, the sensors and the motor limits repeat their computations.
    """

    def __init__(self, log: Log) -> None:
        self.robot, self.time_step, self.loop_gap = log.robot, log.time_step, 0.0
        self._log, self._steps, self._step = log, log.steps_per_period, 0

    def reset(self, q: Any, qd: Any = None) -> None:
        """Go to the first sample."""
        self._step = 0

    def state(self, out: NDArray | None = None) -> NDArray:
        """Return positions and speeds (2, n) of the joints, in [rad, rad/s]."""
        k = self._step // self._steps
        return np.array([self._log.q[k], self._log.qd[k]])

    def motor_state(self) -> NDArray:
        """Return positions and speeds (2, n) of the motors in joint units, in [rad, rad/s]."""
        k = self._step // self._steps
        return np.array([self._log.q_motor[k], self._log.qd_motor[k]])

    @property
    def tau_joint(self) -> NDArray:
        """Torque (n,) on the arm, in [N m]."""
        return self._log.tau_joint[max(self._step - 1, 0) // self._steps]

    def step(self, tau: NDArray) -> None:
        """Advance by one engine step."""
        self._step += 1


def differing_samples(log: Log, law: Callable, reference: Samples, sensors: Sensors | None) -> NDArray:
    """Return the samples (N,), as a mask, where a repeated run of the controller differs from the log.

    Sensors and motor limits are repeated, too. Any different bit counts.

    Args:
        log: log of the engine's run, from reset on.
        law: the controller; it is reset.
        reference: reference of the run.
        sensors: sensors of the run.
    """
    from twin.control.closed_loop import run_closed_loop

    again = run_closed_loop(
        Playback(log),
        law,
        reference,
        steps_per_period=log.steps_per_period,
        sensors=sensors,
        learn=False,
    )
    names = ("q_seen", "qd_seen", "tau_demand", "tau")
    return np.any([np.any(getattr(again, name) != getattr(log, name), axis=1) for name in names], axis=0)


def step_limits(log: Log, residuals: PlantState) -> PlantState:
    """Return the limits of the residuals in a control period from rounding: one number for each signal.

    Args:
        log: log of the engine's run.
        residuals: engine less model, see `Log.model_residuals`.
    """
    s = log.steps_per_period
    # The changes of speed are those of the model, because a fault of the engine would widen its limit.
    change = _largest(log.qd[1:] - residuals.qd - log.qd[:-1])
    change_motor = _largest(log.qd_motor[1:] - residuals.qd_motor - log.qd_motor[:-1])
    speed = SPEED_CHANGE * max(change, change_motor) + s * SPEED * max(1.0, _largest(log.qd))
    if log.robot.loops:
        speed += s * LOOP_SPEED
    place = s * POSITION * float(np.spacing(max(1.0, _largest(log.q)))) + s * log.time_step * speed
    torque = TORQUE * max(1.0, _largest(log.tau_joint[:-1] - residuals.tau_joint))
    return type(residuals)(place, speed, place, speed, torque)  # type: ignore[arg-type]


def step_ratios(log: Log) -> NDArray:
    """Return the residuals of all states over their limits (5, N, n), see `PlantState`.

    The first sample compares the initial states of engine and model.
    """
    residuals = log.model_residuals()
    limits = step_limits(log, residuals)
    ratios = np.zeros((len(residuals), *log.q.shape))
    for row, (name, residual, limit) in enumerate(zip(STATES, residuals, limits, strict=True)):
        if name == "tau_joint":
            ratios[row, :-1] = residual / limit
        else:
            ratios[row, 0] = (getattr(log, name)[0] - log.arrays["start_model"][row]) / limit
            ratios[row, 1:] = residual / limit
    return ratios


def loop_metrics(log: Log) -> tuple[Metric, ...]:
    """Return the check of the largest gap of the closed loops; empty for an open chain.

    Example:
        >>> from scenarios.checks.replay import loop_metrics
        >>> from scenarios.gravity_hold import Config, run
        >>> metrics = loop_metrics(run(Config(robot="irb1400", duration=0.1)))
        >>> [(metric.name, metric.passes) for metric in metrics]
        [('largest gap of a closed loop', True)]
    """
    if not log.robot.loops:
        return ()
    return (
        Metric(
            "largest gap of a closed loop",
            float(np.max(log.loop_gap)),
            "m",
            LOOP_GAP,
            "the loop's constraint is affine in the joint angles, so that integration preserves it",
            place_of_largest(log, log.loop_gap),
        ),
    )


def agreement_metrics(log: Log) -> tuple[Metric, ...]:
    """Return the checks of the engine against the model of the plant: in every step, and in the whole run.

    Example:
        >>> from scenarios.checks.replay import agreement_metrics
        >>> from scenarios.gravity_hold import Config, run
        >>> metrics = agreement_metrics(run(Config(duration=0.1)))
        >>> for metric in metrics:
        ...     print(f"{metric.name}: {metric.outcome}")
        engine - model, whole run: passes
        engine - model, one step: passes
        engine - model, every state / its limit: passes
        samples not replayed: passes
    """
    if "q_model" not in log.arrays:  # a kicked run, which is not one of the engine
        return ()
    if len(log.t) < 2:
        return (whole_run_metric(log), *loop_metrics(log))
    residuals = log.model_residuals()
    speeds = np.concatenate([np.zeros((1, log.robot.n)), residuals.qd])
    ratios = step_ratios(log)
    state = STATES[int(np.argmax(np.max(np.nan_to_num(np.abs(ratios), nan=np.inf), axis=(1, 2))))]
    differs = log.arrays["replay_differs"]
    repeatable = bool(log.arrays["repeatable"])
    return (
        whole_run_metric(log),
        Metric(
            "engine - model, one step",
            float(np.max(np.abs(speeds))),
            unit_of_largest(log, speeds, "speed"),
            float(step_limits(log, residuals).qd),
            "1e-11 of the largest change of speed in a step, or the rounding of the speed itself",
            place_of_largest(log, speeds),
        ),
        Metric(
            "engine - model, every state / its limit",
            float(np.max(np.abs(ratios))),
            "",
            1.0,
            "positions, speeds and torques of joints and motors after each control period, from the engine's "
            f"state before it; limits from rounding alone; the largest ratio is that of {state}",
            place_of_largest(log, np.max(np.abs(ratios), axis=0)),
        ),
        Metric(
            "samples not replayed",
            float(np.count_nonzero(differs)),
            "",
            0.0 if repeatable else None,
            "controller, sensors and motor limits, run again on the recorded states from reset on, give the "
            "recorded torques to the last bit"
            + ("" if repeatable else "; no limit, because this controller may not be repeatable"),
            place_of_largest(log, differs.astype(float)),
        ),
        *loop_metrics(log),
    )


def whole_run_metric(log: Log) -> Metric:
    """Return the check of the engine's run against the analytic plant's, until rounding decides the path."""
    # Number of samples before rounding decides the path; a spread of NaN does not end the comparison.
    decided = int(np.count_nonzero(~(log.arrays["spread"] > DECIDED)))
    difference = (log.q - log.arrays["q_model"])[:decided]
    limit = whole_run_limit(log, decided)
    why = "the analytic plant under the same controller"
    if np.isfinite(limit):
        why += ": 5 x the steps' rounding, amplified by this loop"
    if decided < len(log.t):
        why += f"; from {log.t[decided]:.6g} s on rounding decides the path, and the comparison ends"
    return Metric(
        "engine - model, whole run",
        float(np.max(np.abs(difference), initial=0.0)),
        unit_of_largest(log, difference),
        limit if np.isfinite(limit) else None,
        why,
        place_of_largest(log, difference),
    )


def _largest(values: NDArray) -> float:
    return float(np.max(np.abs(values), initial=0.0))


RUNS = 8
"""Number of kicked runs: runs of the analytic plant with random rounding errors ("kicks")."""
MARGIN = 5.0
"""Factor of the spread of the kicked runs, because real rounding has other signs than the drawn kicks."""
ULPS = 8.0
"""Rounding of the positions themselves, in units in the last place of the largest angle."""
DECIDED = 1e-6
"""[rad]: difference of two runs above which rounding has decided the path."""
SOUND = 1e-9
"""Difference of a figure between kicked runs, absolute or relative, below which the figure has no span."""
SIGNALS = ("q", "qd", "tau", "tau_demand", "tau_joint", "q_motor", "qd_motor", "q_seen", "qd_seen")
KICKED = "kicked_"
"""Prefix of the names of `SIGNALS` in the arrays of a log whose path rounding decides."""


def rounding_arrays(
    log: Log, predicted: Log, law: Any, reference: Samples, sensors: Sensors | None
) -> dict[str, NDArray]:
    """Return the distance between runs that differ by rounding, as arrays of a log.

    Args:
        log: the engine's run.
        predicted: run of the analytic plant under the same controller.
        law: the controller.
        reference: reference of both runs.
        sensors: sensors of both runs.

    Returns:
        `spread` (N,), the largest distance of two such runs up to each sample, in [rad]. It is 0 if engine
        and model agree to the rounding of the positions, and NaN if it is unknown, as for a controller that
        is not a `ControlLaw`, and for a payload that changes. If rounding decides the path, also
        `undetermined_from`, the time from which it does, in [s], and the signals of the kicked runs.
    """
    from twin.control.control_law import ControlLaw

    N = len(log.t)
    if np.max(np.abs(log.q - predicted.q)) <= position_rounding(log):
        return {"spread": np.zeros(N)}
    try:
        one_robot = isinstance(law, ControlLaw) and LOAD not in log.arrays
        kicked = kicked_runs(log, law, reference, sensors) if one_robot else None
    except ValueError:  # a controller that cannot be compiled
        kicked = None
    if kicked is None:
        return {"spread": np.full(N, np.nan)}
    paths = np.concatenate([predicted.q[None], kicked.q])
    # A run that diverged has NaN and counts as infinitely far away.
    distance = np.max(np.nan_to_num(np.ptp(paths, axis=0), nan=np.inf), axis=1)
    spread = np.maximum.accumulate(distance)
    if spread[-1] <= DECIDED:
        return {"spread": spread}
    first = np.array(log.t[np.argmax(spread > DECIDED)])
    runs = {KICKED + name: getattr(kicked, name) for name in SIGNALS}
    return {"spread": spread, "undetermined_from": first, **runs}


def kicked_runs(log: Log, law: ControlLaw, reference: Samples, sensors: Sensors | None) -> Rollouts:
    """Run the analytic plant `RUNS` times with the engine's residuals and random rounding errors.

    Raises:
        ValueError: the controller cannot be compiled.
    """
    from twin.control.rollout import run_rollouts

    rng, (N, n) = np.random.default_rng(0), log.q.shape
    signs = np.resize([1.0, -1.0], RUNS)
    kicks = np.zeros((RUNS, N, 4, n))
    residuals = log.model_residuals()
    limits = step_limits(log, residuals)
    for row, (residual, limit) in enumerate(zip(residuals[:4], limits[:4], strict=True)):
        kicks[:, 1:, row] = signs[:, None, None] * np.clip(residual, -limit, limit)
    half_ulps = 0.5 * np.spacing(np.max(np.abs(log.qd), axis=0)) * rng.choice([-1.0, 1.0], (RUNS, N, n))
    kicks[:, :, 1] += half_ulps
    kicks[:, :, 3] += half_ulps  # equal to the joints' kicks, because rigid drives couple motors and joints
    return run_rollouts(
        [with_friction_scaled(log.robot, ulps) for ulps in np.resize([1, -1, 2, -2], RUNS)],
        law,
        reference,
        sensors=sensors,
        time_step=log.time_step,
        steps_per_period=log.steps_per_period,
        keep_failures=True,
        noise_seeds=None if sensors is None else [sensors.seed] * RUNS,
        kicks=kicks,
        warn=False,
    )


def with_friction_scaled(robot: Robot, ulps: float) -> Robot:
    """Return a robot with friction increased by some units in the last place, if its drives are not ideal."""
    drives = robot.active_drives
    if drives is None:
        return robot
    scale = 1.0 + ulps * np.finfo(float).eps
    scaled = replace(drives, coulomb=scale * drives.coulomb, static=scale * drives.static)
    return robot.with_drives(robot.drive_mode, scaled)


def without_comparison(log: Log) -> dict[str, NDArray]:
    """Return the arrays of a log except those that compare the engine with the model."""
    compared = ("q_model", "start_model", "spread", "replay_differs", "undetermined_from")
    return {
        name: array
        for name, array in log.arrays.items()
        if name not in compared and not name.startswith(KICKED)
    }


def kicked_logs(log: Log) -> Iterator[Log]:
    """Yield the logs of the kicked runs that did not diverge."""
    from twin.kinematics.forward import forward_kinematics
    from twin.rotations.rotations import pose_vector

    arrays = without_comparison(log)
    for run in range(RUNS):
        signals = {name: log.arrays[KICKED + name][run] for name in SIGNALS}
        if all(np.all(np.isfinite(signal)) for signal in signals.values()):
            arrays["tool_at_stops"] = pose_vector(
                forward_kinematics(log.robot, signals["q"][arrays["stops"]])
            )
            saturated = signals["tau"] != signals["tau_demand"]
            yield replace(log, arrays=arrays, saturated=saturated, **signals)


def with_spans(
    metrics: Sequence[Metric], log: Log, judge: Callable[[Log], Sequence[Metric]]
) -> tuple[Metric, ...]:
    """Return metrics with their spans over the kicked runs; unchanged if rounding does not decide the path.

    Args:
        metrics: metrics of the engine's run.
        log: log of the engine's run.
        judge: function that returns the metrics of a log.
    """
    if "undetermined_from" not in log.arrays:
        return tuple(metrics)
    # The engine's run comes first, without the checks of engine against model, which have no span.
    figures = {metric.name: [metric.value] for metric in judge(replace(log, arrays=without_comparison(log)))}
    kicked = list(kicked_logs(log))
    for run in kicked:
        for metric in judge(run):
            figures[metric.name].append(metric.value)
    if len(kicked) < RUNS:  # a kicked run diverged
        figures = {name: [*values, np.inf] for name, values in figures.items()}
    found = []
    for metric in metrics:
        low, high = min(figures.get(metric.name, [0.0])), max(figures.get(metric.name, [0.0]))
        sound = high - low <= SOUND * max(1.0, abs(low))
        found.append(metric if sound else replace(metric, span=(low, high)))
    return tuple(found)


def position_rounding(log: Log) -> float:
    """Return the rounding of a run's positions alone, in [rad]."""
    return ULPS * float(np.spacing(np.max(np.abs(log.q), initial=1.0)))


def whole_run_limit(log: Log, samples: int | None = None) -> float:
    """Return the allowed distance of the engine's run from the model's, in [rad]; infinity if unknown.

    Args:
        log: log of the engine's run.
        samples: number of compared samples, from the first on; all by default.
    """
    spread = np.nan_to_num(log.arrays["spread"][:samples], nan=np.inf)
    return MARGIN * float(np.max(spread, initial=0.0)) + position_rounding(log)

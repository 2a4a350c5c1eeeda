"""Engine against model, step by step: the check that proves that the two are the same robot.

From every state that the engine was in, the analytic plant makes one control period, and lands where the
engine did: joints, motors and the torque that the arm got differ by rounding alone.  Controller, sensors and
motor limits run once more on the recorded states and must give the recorded torques to the last bit.  An
error of 1e-9 in the engine shows in one step, before the loop can hide it.

No limit here depends on the residual that it judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scenarios.metric import Metric
from twin.logs.figures import place_of_largest, unit_of_largest

if TYPE_CHECKING:
    from twin.control.control_law import ControlLaw
    from twin.control.rollout import Rollouts
    from twin.dynamics.equation_of_motion import PlantState
    from twin.logs.log import Log
    from twin.robot.drives.sensors import Sensors
    from twin.robot.robot import Robot
    from twin.trajectories.sampling import Samples


STATES = ("q", "qd", "q_motor", "qd_motor", "tau_joint")
"""What is compared: the fields of `twin.dynamics.equation_of_motion.PlantState`."""
SPEED_CHANGE = 1e-11
"""Of the largest change of speed in a period: what rounding makes of it where springs or wrists are stiff.
Seen: 2e-12 with elastic drives and five steps in a period, 1e-13 else."""
SPEED = 1e-14
"""In a step, of the largest speed, or of 1 rad/s. Seen: 5e-16."""
LOOP_SPEED = 2e-12
"""[rad/s]: what the engine leaves of a closed loop's constraint in a step, which it solves to a residual of
1e-25, the square of 3e-13. Seen: 3.3e-13."""
LOOP_GAP = 1e-12
"""[m]: how far a closed loop may come open in the engine. Seen: 1e-15."""
POSITION = 8.0
"""Units in the last place of the largest angle, in a step, besides what its speed is off. Seen: 2."""
TORQUE = 3e-14
"""Of the largest torque in the arm: mass matrix and bias are sums of some dozen products. Seen: 2e-15."""


class Playback:
    """A plant that goes through the states of a log, whatever torques it gets.

    A closed loop around it has the controller, the sensors and the motor limits do again what they did.
    """

    def __init__(self, log: Log) -> None:
        self.robot, self.time_step, self.loop_gap = log.robot, log.time_step, 0.0
        self._log, self._steps, self._step = log, log.steps_per_period, 0

    def reset(self, q: Any, qd: Any = None) -> None:
        """Go to the first sample."""
        self._step = 0

    def state(self, out: NDArray | None = None) -> NDArray:
        """Positions and speeds (2, n) of the joints, in [rad, rad/s]."""
        k = self._step // self._steps
        return np.array([self._log.q[k], self._log.qd[k]])

    def motor_state(self) -> NDArray:
        """Positions and speeds (2, n) of the motors in joint units, in [rad, rad/s]."""
        k = self._step // self._steps
        return np.array([self._log.q_motor[k], self._log.qd_motor[k]])

    @property
    def tau_joint(self) -> NDArray:
        """Torque (n,) that the arm got, in [N m]."""
        return self._log.tau_joint[max(self._step - 1, 0) // self._steps]

    def step(self, tau: NDArray) -> None:
        """Go on by an engine step."""
        self._step += 1


def differing_samples(log: Log, law: Callable, reference: Samples, sensors: Sensors | None) -> NDArray:
    """Return at which samples (N,) controller, sensors and motor limits differ in any bit from the log.

    Args:
        log: of the engine's run, from reset on.
        law: the controller; its memory is emptied.
        reference: what it followed.
        sensors: what it measured with.
    """
    from twin.control.closed_loop import run_closed_loop

    again = run_closed_loop(
        Playback(log), law, reference, steps_per_period=log.steps_per_period, sensors=sensors
    )
    names = ("q_seen", "qd_seen", "tau_demand", "tau")
    return np.any([np.any(getattr(again, name) != getattr(log, name), axis=1) for name in names], axis=0)


def step_limits(log: Log, residuals: PlantState) -> PlantState:
    """Return what rounding may make of the engine's states in a control period: one number for each.

    Args:
        log: of the engine's run.
        residuals: engine less model, see `Log.model_residuals`.
    """
    s = log.steps_per_period
    # The model's changes of speed: those of the engine might hide its fault.
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

    Those of the first sample are about where the run began: on the states that the model began with.
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
    """How far closed loops came open; nothing for an open chain."""
    if not log.robot.loops:
        return ()
    return (
        Metric(
            "largest gap of a closed loop",
            float(np.max(log.loop_gap)),
            "m",
            LOOP_GAP,
            "the loop's constraint is affine in the joint angles, so that the integrator keeps it closed",
            place_of_largest(log, log.loop_gap),
        ),
    )


def agreement_metrics(log: Log) -> tuple[Metric, ...]:
    """Return whether the engine did what the model of the plant predicts: every step, and the whole run."""
    if "q_model" not in log.arrays:  # a kicked run, which is none of the engine's
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
            "relative 1e-11 of the largest change of speed in a step, or the rounding of the speed itself",
            place_of_largest(log, speeds),
        ),
        Metric(
            "engine - model, every state / its limit",
            float(np.max(np.abs(ratios))),
            "",
            1.0,
            "positions, speeds and torques of joints and motors after each control period, from the engine's "
            f"state before it; limits from rounding alone, closest to its own is {state}",
            place_of_largest(log, np.max(np.abs(ratios), axis=0)),
        ),
        Metric(
            "samples not replayed",
            float(np.count_nonzero(differs)),
            "",
            0.0 if repeatable else None,
            "controller, sensors and motor limits, run again on the recorded states from reset on, give the "
            "recorded torques to the last bit"
            + ("" if repeatable else "; of this controller it is not known"),
            place_of_largest(log, differs.astype(float)),
        ),
        *loop_metrics(log),
    )


def whole_run_metric(log: Log) -> Metric:
    """Return how far the engine's run was from the analytic plant's, as long as rounding does not decide."""
    decided = int(np.count_nonzero(~(log.arrays["spread"] > DECIDED)))
    difference = (log.q - log.arrays["q_model"])[:decided]
    limit = whole_run_limit(log, decided)
    why = "the analytic plant under the same controller"
    if np.isfinite(limit):
        why += ": 5 x what this loop makes of the steps' rounding"
    if decided < len(log.t):
        why += f"; from {log.t[decided]:.6g} s on rounding decides the path, and nothing is compared"
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
MARGIN = 5.0
"""What rounds once more on the way has other signs than those that were drawn."""
ULPS = 8.0
"""So many units in the last place of the largest angle are the rounding of the positions themselves."""
DECIDED = 1e-6
"""[rad]: runs that differ by more are different runs."""
SOUND = 1e-9
"""A figure whose runs differ by less, or by less of its size, is sound though the path is not."""
SIGNALS = ("q", "qd", "tau", "tau_demand", "tau_joint", "q_motor", "qd_motor", "q_seen", "qd_seen")
KICKED = "kicked_"
"""Before the names of `SIGNALS` in the arrays of a log that rounding decides."""


def rounding_arrays(
    log: Log, predicted: Log, law: Any, reference: Samples, sensors: Sensors | None
) -> dict[str, NDArray]:
    """Return how far apart runs are that differ by rounding, as arrays of a log.

    Args:
        log: the engine's run.
        predicted: the analytic plant's under the same controller.
        law: that controller.
        reference: what both followed.
        sensors: what it measured with.

    Returns:
        `spread` (N,), the largest distance of two such runs up to each sample, in [rad]: zeros where engine
        and model agree without, NaN where it is not known, as of a controller that is no `ControlLaw`.
        Where rounding decides the path also `undetermined_from`, in [s], and the kicked runs.
    """
    from twin.control.control_law import ControlLaw

    N = len(log.t)
    if np.max(np.abs(log.q - predicted.q)) <= position_rounding(log):
        return {"spread": np.zeros(N)}
    try:
        kicked = kicked_runs(log, law, reference, sensors) if isinstance(law, ControlLaw) else None
    except ValueError:  # a law that only Python can run
        kicked = None
    if kicked is None:
        return {"spread": np.full(N, np.nan)}
    paths = np.concatenate([predicted.q[None], kicked.q])
    apart = np.max(np.nan_to_num(np.ptp(paths, axis=0), nan=np.inf), axis=1)  # one that ran away is anywhere
    spread = np.maximum.accumulate(apart)
    if spread[-1] <= DECIDED:
        return {"spread": spread}
    first = np.array(log.t[np.argmax(spread > DECIDED)])
    runs = {KICKED + name: getattr(kicked, name) for name in SIGNALS}
    return {"spread": spread, "undetermined_from": first, **runs}


def kicked_runs(log: Log, law: ControlLaw, reference: Samples, sensors: Sensors | None) -> Rollouts:
    """Run the analytic plant `RUNS` times with the engine's residuals and other roundings.

    Raises:
        ValueError: the law cannot be compiled.
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
    kicks[:, :, 3] += half_ulps  # of rigid drives, whose motors are where the joints are, the same
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
    """Return a robot with some units in the last place more friction in its drives, if they act."""
    drives = robot.active_drives
    if drives is None:
        return robot
    scale = 1.0 + ulps * np.finfo(float).eps
    scaled = replace(drives, coulomb=scale * drives.coulomb, static=scale * drives.static)
    return robot.with_drives(robot.drive_mode, scaled)


def without_comparison(log: Log) -> dict[str, NDArray]:
    """Return the arrays of a log but for those that compare the engine with the model."""
    compared = ("q_model", "start_model", "spread", "replay_differs", "undetermined_from")
    return {
        name: array
        for name, array in log.arrays.items()
        if name not in compared and not name.startswith(KICKED)
    }


def kicked_logs(log: Log) -> Iterator[Log]:
    """Yield the logs of the kicked runs that reached the end."""
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
    """Return metrics with the span that each has over the kicked runs, where rounding decides the path.

    Args:
        metrics: of the engine's run.
        log: of that run.
        judge: makes the metrics of a log.
    """
    if "undetermined_from" not in log.arrays:
        return tuple(metrics)
    # The engine's own run comes first, without the checks of engine against model, which have no span.
    figures = {metric.name: [metric.value] for metric in judge(replace(log, arrays=without_comparison(log)))}
    kicked = list(kicked_logs(log))
    for run in kicked:
        for metric in judge(run):
            figures[metric.name].append(metric.value)
    if len(kicked) < RUNS:  # one of them ran away
        figures = {name: [*values, np.inf] for name, values in figures.items()}
    found = []
    for metric in metrics:
        low, high = min(figures.get(metric.name, [0.0])), max(figures.get(metric.name, [0.0]))
        sound = high - low <= SOUND * max(1.0, abs(low))
        found.append(metric if sound else replace(metric, span=(low, high)))
    return tuple(found)


def position_rounding(log: Log) -> float:
    """Return what rounding the positions alone may make of a run, in [rad]."""
    return ULPS * float(np.spacing(np.max(np.abs(log.q), initial=1.0)))


def whole_run_limit(log: Log, samples: int | None = None) -> float:
    """Return how far the engine's run may be from the model's, in [rad]; infinity where that is not known.

    Args:
        log: of the engine's run.
        samples: so many, from the first on; all by default.
    """
    spread = np.nan_to_num(log.arrays["spread"][:samples], nan=np.inf)
    return MARGIN * float(np.max(spread, initial=0.0)) + position_rounding(log)

"""How far the engine's whole run may be from the model's, when each step differs by rounding.

A loop that is stable forgets a rounding after a while; a payload that swings freely adds all of them up, or
makes them grow; friction that falls with speed multiplies them by 3 to 4 in a step.  So no number fits all
runs, and the loop itself is asked: the analytic plant runs `RUNS` times more under the same controller.  Its
states are kicked at every sample by the engine's residuals, with either sign and never by more than
`scenarios.checks.replay` lets one step differ, and by half a unit in the last place of the speed; its
friction is scaled by 1 or 2 units in the last place.  The engine is one more such run.

Where the runs are more than `DECIDED` apart, rounding decides the path from there on.  That is a property of
arm, drives and controller: the figures of the run have a range then, which the kicked runs show.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from scenarios.metric import Metric
    from twin.control.control_law import ControlLaw
    from twin.control.rollout import Rollouts
    from twin.drives.sensors import Sensors
    from twin.logs.log import Log
    from twin.robot.robot import Robot
    from twin.trajectories.sampling import Samples

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
    from scenarios.checks.replay import step_limits  # whose checks ask for the spread of these runs
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
    from twin.spatial.rotations import pose_vector

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

"""Rounding of a run: the limits of a step, and the spread of runs that differ by rounding alone.

No limit in this module depends on the residual that it judges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import twin
from scenarios.judging.run import Rounding
from scenarios.metric import Metric
from twin.physics.multibody.recursions import mass_matrix, placements

if TYPE_CHECKING:
    from scenarios.judging.run import TrackingRun
    from twin.data.logs.log import Log
    from twin.physics.control.control_law import ControlLaw
    from twin.physics.control.rollout import Rollouts
    from twin.physics.dynamics.equation_of_motion import PlantState
    from twin.physics.robot.drives.motors import Sensors
    from twin.physics.robot.robot import Robot
    from twin.physics.trajectories.sampling import Samples

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
LIGHT = 1e-5
"""Inertia of a joint, in [kg m^2], below which rounding of its torque shows in its speed."""
EPS = 2.0 * float(np.finfo(np.float64).eps)
"""Rounding of a sum of a few products, over the largest of them."""
POSITION = 8.0
"""Rounding of the position in a step, besides the error of the speed.

In units in the last place of the largest angle. Observed: 2.
"""
TORQUE = 3e-14
"""Rounding over the largest torque in the arm; mass matrix and bias are sums of some dozen products.

Observed: 2e-15.
"""
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


def largest(values: NDArray) -> float:
    """Return the largest magnitude of values; 0 for none."""
    return float(np.max(np.abs(values), initial=0.0))


def step_limits(log: Log, residuals: PlantState) -> PlantState:
    """Return the limits of the residuals in a control period from rounding: one number for each signal.

    Args:
        log: log of the engine's run.
        residuals: engine less model, see `Log.model_residuals`.
    """
    s = log.steps_per_period
    # The changes of speed are those of the model, because a fault of the engine would widen its limit.
    change = largest(log.qd[1:] - residuals.qd - log.qd[:-1])
    change_motor = largest(log.qd_motor[1:] - residuals.qd_motor - log.qd_motor[:-1])
    speed = SPEED_CHANGE * max(change, change_motor) + s * SPEED * max(1.0, largest(log.qd))
    speed = max(speed, s * log.time_step * light_joint_rounding(log))
    if log.robot.loops:
        speed += s * LOOP_SPEED
    place = s * POSITION * float(np.spacing(max(1.0, largest(log.q)))) + s * log.time_step * speed
    torque = TORQUE * max(1.0, largest(log.tau_joint[:-1] - residuals.tau_joint))
    return type(residuals)(place, speed, place, speed, torque)  # type: ignore[arg-type]


def light_joint_rounding(log: Log) -> float:
    """Return the rounding of the accelerations of an arm with a light joint, in [rad/s^2]; 0 for another.

    The torque of a joint is a component of the moment on its link, and has the rounding of the whole moment.
    A point load on the axis of a flange turns with the flange's inertia alone: 5 N m round by 1e-15 N m,
    which accelerate 2e-6 kg m^2 by 5e-10 rad/s^2.
    """
    robot = log.robot
    if not robot.has_inertia or len(log.t) < 2:
        return 0.0
    rotors = 0.0 if robot.active_drives is None else robot.active_drives.reflected_inertia
    at = placements(robot.tree, robot.tree_positions(log.q[0]).tolist(), math)
    G = robot.embedding
    M = G.T @ np.array(mass_matrix(robot.tree, at, robot.tree.inertias.tolist())) @ G + rotors
    if not np.max(np.diag(np.linalg.inv(M))) > 1.0 / LIGHT:
        return 0.0
    chosen = np.unique(np.linspace(0, len(log.t) - 2, 100).astype(int))
    qdd = np.diff(log.qd, axis=0)[chosen] / (log.time_step * log.steps_per_period)
    q, qd = log.q[chosen], log.qd[chosen]
    wrenches = twin.joint_wrenches(robot, q, qd, qdd).joints
    turns = np.array(robot.tree.kinds) == "revolute"
    size = np.linalg.norm(np.where(turns[:, None], wrenches[..., 3:], wrenches[..., :3]), axis=-1)
    inverse = np.abs(np.linalg.inv(twin.mass_matrix(robot, q)))
    return EPS * largest(np.einsum("kij,kj->ki", inverse, size @ np.abs(G)))


def rounding_of(log: Log, predicted: Log, law: Any, reference: Samples, sensors: Sensors | None) -> Rounding:
    """Return the distance between runs that differ by rounding.

    It is 0 if engine and model agree to the rounding of the positions, and NaN if it is unknown, as for a
    controller that is not a `ControlLaw`, and for a payload that changes.

    Args:
        log: the engine's run.
        predicted: run of the analytic plant under the same controller.
        law: the controller.
        reference: reference of both runs.
        sensors: sensors of both runs.
    """
    from twin.physics.control.control_law import ControlLaw

    N = len(log.t)
    if np.max(np.abs(log.q - predicted.q)) <= position_rounding(log):
        return Rounding(np.zeros(N))
    try:
        one_robot = isinstance(law, ControlLaw) and log.payloads is None
        kicked = kicked_runs(log, law, reference, sensors) if one_robot else None
    except ValueError:  # a controller that cannot be compiled
        kicked = None
    if kicked is None:
        return Rounding(np.full(N, np.nan))
    paths = np.concatenate([predicted.q[None], kicked.q])
    # A run that diverged has NaN and counts as infinitely far away.
    distance = np.max(np.nan_to_num(np.ptp(paths, axis=0), nan=np.inf), axis=1)
    spread = np.maximum.accumulate(distance)
    if spread[-1] <= DECIDED:
        return Rounding(spread)
    first = float(log.t[np.argmax(spread > DECIDED)])
    return Rounding(spread, first, {name: getattr(kicked, name) for name in SIGNALS})


def kicked_runs(log: Log, law: ControlLaw, reference: Samples, sensors: Sensors | None) -> Rollouts:
    """Run the analytic plant `RUNS` times with the engine's residuals and random rounding errors.

    Raises:
        ValueError: the controller cannot be compiled.
    """
    from twin.physics.control.rollout import run_rollouts

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


def other_roundings(run: TrackingRun) -> Iterator[TrackingRun]:
    """Yield the kicked runs that did not diverge."""
    from twin.physics.kinematics.forward import forward_kinematics
    from twin.physics.rotations.rotations import pose_vector

    assert run.prediction is not None
    kicked = run.prediction.rounding.kicked
    for k in range(RUNS):
        signals = {name: kicked[name][k] for name in SIGNALS}
        if all(np.all(np.isfinite(signal)) for signal in signals.values()):
            saturated = signals["tau"] != signals["tau_demand"]
            other = run.with_log(replace(run.log, saturated=saturated, **signals))
            if run.stops is not None:
                poses = forward_kinematics(run.log.robot, signals["q"][run.stops.samples])
                other = replace(other, stops=replace(run.stops, poses=pose_vector(poses)))
            yield other


def with_spans(
    metrics: Sequence[Metric], run: TrackingRun, judge: Callable[[TrackingRun], Sequence[Metric]]
) -> tuple[Metric, ...]:
    """Return metrics with their spans over the kicked runs; unchanged if rounding does not decide the path.

    Args:
        metrics: metrics of the engine's run.
        run: the engine's run.
        judge: function that returns the metrics of a run.
    """
    if run.prediction is None or run.prediction.rounding.undetermined_from is None:
        return tuple(metrics)
    # The engine's run comes first, without the checks of engine against model, which have no span.
    kicked = list(other_roundings(run))
    figures: dict[str, list[float]] = {}
    for one in (run.with_log(run.log), *kicked):
        for metric in judge(one):
            if metric.value is not None:
                figures.setdefault(metric.name, []).append(metric.value)
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


def whole_run_limit(log: Log, rounding: Rounding, samples: int | None = None) -> float:
    """Return the allowed distance of the engine's run from the model's, in [rad]; infinity if unknown.

    Args:
        log: log of the engine's run.
        rounding: distance of runs that differ by rounding.
        samples: number of compared samples, from the first on; all by default.
    """
    spread = np.nan_to_num(rounding.spread[:samples], nan=np.inf)
    return MARGIN * float(np.max(spread, initial=0.0)) + position_rounding(log)

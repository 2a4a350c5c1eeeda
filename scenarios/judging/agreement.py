"""Compare the engine with the model step by step, to verify that the two are the same robot.

From every state of the engine, the analytic plant simulates one control period. Its result must equal the
engine's next state to rounding: joints, motors and the torque on the arm. Controller, sensors and motor
limits run again on the recorded states, and must give the recorded torques to the last bit. This reveals an
error of 1e-9 in the engine in a single step, before the closed loop can hide it.

No limit in this module depends on the residual that it judges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scenarios.judging.rounding import DECIDED, largest, step_limits, whole_run_limit
from scenarios.metric import Metric
from twin.data.logs.figures import place_of_largest, unit_of_largest

if TYPE_CHECKING:
    from scenarios.judging.run import Prediction, TrackingRun
    from twin.data.logs.log import Log
    from twin.physics.robot.drives.motors import Sensors
    from twin.physics.trajectories.sampling import Samples


STATES = ("q", "qd", "q_motor", "qd_motor", "tau_joint")
"""Compared signals: the fields of `twin.dynamics.equation_of_motion.PlantState`."""
LOOP_GAP = 1e-12
"""[m]: largest gap of a closed loop in the engine. Observed: 1e-15."""


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
    from twin.physics.control.closed_loop import run_closed_loop

    again = run_closed_loop(
        Playback(log), law, reference, steps_per_period=log.steps_per_period, sensors=sensors, learn=False
    )
    names = ("q_seen", "qd_seen", "tau_demand", "tau")
    return np.any([np.any(getattr(again, name) != getattr(log, name), axis=1) for name in names], axis=0)


def step_ratios(log: Log, prediction: Prediction | None = None) -> NDArray:
    """Return the residuals of all states over their limits (5, N, n), see `PlantState`.

    The first sample compares the initial states of engine and model; it is 0 without a prediction.
    """
    residuals = log.model_residuals()
    limits = step_limits(log, residuals)
    ratios = np.zeros((len(residuals), *log.q.shape))
    for row, (name, residual, limit) in enumerate(zip(STATES, residuals, limits, strict=True)):
        if name == "tau_joint":
            ratios[row, :-1] = residual / limit
        else:
            ratios[row, 1:] = residual / limit
            if prediction is not None:
                ratios[row, 0] = (getattr(log, name)[0] - prediction.start[row]) / limit
    return ratios


def loop_metrics(log: Log) -> tuple[Metric, ...]:
    """Return the check of the largest gap of the closed loops; empty for an open chain.

    Example:
        >>> from scenarios.gravity_hold import GravityHold
        >>> from scenarios.judging.agreement import loop_metrics
        >>> from scenarios.setup import Setup
        >>> run = GravityHold(duration=0.1).run(Setup(robot="irb1400"))
        >>> [(metric.name, metric.passes) for metric in loop_metrics(run.log)]
        [('largest gap of a closed loop', True)]
    """
    if not log.robot.loops:
        return ()
    return (gap_metric("largest gap of a closed loop", log.loop_gap, place_of_largest(log, log.loop_gap)),)


def gap_metric(name: str, gap: NDArray, where: str = "") -> Metric:
    """Return the check of the gap (N,) of closed loops in the engine, in [m]."""
    why = "the loop's constraint is affine in the joint angles, so that integration preserves it"
    return Metric(name, float(np.max(gap)), "m", LOOP_GAP, why, where)


WHOLE_RUN, REPLAY = "engine - model, whole run", "samples not replayed"
"""Names of the checks that need the model's prediction."""
NO_PREDICTION = "not judged: no prediction, use follow(...) or a TrackingScenario"


def agreement_metrics(run: TrackingRun) -> tuple[Metric, ...]:
    """Return the checks of the engine against the model of the plant: in every step, and in the whole run.

    Example:
        >>> from scenarios.gravity_hold import GravityHold
        >>> from scenarios.judging.agreement import agreement_metrics
        >>> for metric in agreement_metrics(GravityHold(duration=0.1).run()):
        ...     print(f"{metric.name}: {metric.outcome}")
        engine - model, whole run: passes
        engine - model, one step: passes
        engine - model, every state / its limit: passes
        samples not replayed: passes
    """
    if run.is_draw:
        return ()
    log, prediction = run.log, run.prediction
    if len(log.t) < 2:
        return (whole_run_metric(run), *loop_metrics(log))
    residuals = log.model_residuals()
    speeds = np.concatenate([np.zeros((1, log.robot.n)), residuals.qd])
    ratios = step_ratios(log, prediction)
    state = STATES[int(np.argmax(np.max(np.nan_to_num(np.abs(ratios), nan=np.inf), axis=(1, 2))))]
    return (
        whole_run_metric(run),
        Metric(
            "engine - model, one step",
            float(np.max(np.abs(speeds))),
            unit_of_largest(log, speeds, "speed"),
            float(step_limits(log, residuals).qd),
            "1e-11 of the largest change of speed in a step, the rounding of the speed itself, or that of "
            "torques over the inertia of a light joint",
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
        replay_metric(run),
        *loop_metrics(log),
    )


def replay_metric(run: TrackingRun) -> Metric:
    """Return the check that the controller repeats its torques; not judged without a prediction."""
    if run.prediction is None:
        return Metric(REPLAY, None, "", None, NO_PREDICTION)
    differs, repeatable = run.prediction.differs, run.loop is not None and run.loop.repeatable
    why = (
        "controller, sensors and motor limits, run again on the recorded states from reset on, give the "
        "recorded torques to the last bit"
    )
    return Metric(
        REPLAY,
        float(np.count_nonzero(differs)),
        "",
        0.0 if repeatable else None,
        why if repeatable else f"{why}; no limit, because this controller may not be repeatable",
        place_of_largest(run.log, differs.astype(float)),
    )


def whole_run_metric(run: TrackingRun) -> Metric:
    """Return the check of the engine's run against the analytic plant's, until rounding decides the path."""
    log = run.log
    if run.prediction is None:
        return Metric(WHOLE_RUN, None, "", None, NO_PREDICTION)
    rounding = run.prediction.rounding
    # Number of samples before rounding decides the path; a spread of NaN does not end the comparison.
    decided = int(np.count_nonzero(~(rounding.spread > DECIDED)))
    difference = (log.q - run.prediction.q)[:decided]
    limit = whole_run_limit(log, rounding, decided)
    why = "the analytic plant under the same controller"
    if np.isfinite(limit):
        why += ": 5 x the steps' rounding, amplified by this loop"
    if decided < len(log.t):
        why += f"; from {log.t[decided]:.6g} s on rounding decides the path, and the comparison ends"
    return Metric(
        WHOLE_RUN,
        largest(difference),
        unit_of_largest(log, difference),
        limit if np.isfinite(limit) else None,
        why,
        place_of_largest(log, difference),
    )

"""Engine against model, step by step: the check that proves that the two are the same robot.

From every state that the engine was in, the analytic plant makes one control period, and lands where the
engine did: joints, motors and the torque that the arm got differ by rounding alone.  Controller, sensors and
motor limits run once more on the recorded states and must give the recorded torques to the last bit.  An
error of 1e-9 in the engine shows in one step, before the loop can hide it.

No limit here depends on the residual that it judges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scenarios.checks.rounding import DECIDED, whole_run_limit
from scenarios.metric import Metric
from twin.logs.figures import place_of_largest, unit_of_largest

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from twin.drives.sensors import Sensors
    from twin.dynamics.equation_of_motion import PlantState
    from twin.logs.log import Log
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

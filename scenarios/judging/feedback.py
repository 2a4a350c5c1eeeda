"""Feedback of a run whose error is only rounding: it never acts, so that a wrong gain would stay hidden.

The model therefore runs once more, from an initial error of 1 mrad (of 1 mm) in every joint.  With an exact
model, a reference in the engine's steps and `computed_torque` or `dob`, the difference d of both runs obeys a
linear recursion for each joint, whatever the motion and the friction are:

    dd+ = dd - T (Kv dd + Kp d),    d+ = d + T dd+

Its spectral radius must be below 1.  The gains of `cascade` act on the coupled arm; there the error must
decay.  Where the second run reaches a torque limit, its motion is not judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scenarios.judging.bounds import RECURSIVE
from scenarios.judging.run import Feedback, Loop
from scenarios.metric import Metric
from twin.base.errors import DivergenceError

if TYPE_CHECKING:
    from controllers import Controller
    from scenarios.judging.run import TrackingRun
    from twin.data.logs.log import Log
    from twin.physics.control.plant import AnalyticPlant
    from twin.physics.trajectories.sampling import Samples

START = 1e-3
"""Initial error, in [rad] or [m]."""
DECAYED = 0.1
"""Share of the initial error to which it decays."""
TIME_CONSTANTS = 30.0
"""Longest second run, in units of 1 / bandwidth: a tenth takes 3.9 of them, and some 10 with `cascade`."""
RECURSION = 1e-9
"""[rad]: largest deviation from the recursion."""
STABLE = 1.0 - 1e-9
"""Largest spectral radius."""
RADIUS, DECAY = "spectral radius of the feedback", "time in which 1 mrad decays to a tenth"
"""Names of the checks."""


def feedback_of(
    log: Log, q_model: np.ndarray, loop: Loop, plant: AnalyticPlant, law: Controller, reference: Samples
) -> Feedback:
    """Return the second run for a run that may only have rounding as its error.

    Args:
        log: log of the run.
        q_model: (N, n) positions of the model's first run, in [rad].
        loop: facts of the closed loop.
        plant: the model's plant.
        law: the controller.
        reference: reference of the run.
    """
    from twin.data.logs.closed_loop import run_closed_loop

    longest = TIME_CONSTANTS / loop.bandwidth
    count = min(len(log.t), int(np.searchsorted(log.t, longest, side="right")) + 1)
    if log.payloads is not None:  # up to the first change of the payload
        count = min(count, int(np.count_nonzero(log.payloads.load == log.payloads.load[0])))
    first = type(reference)(*(part[:count] for part in reference))
    start = reference.q[0] + START, reference.qd[0]
    try:
        again = run_closed_loop(plant, law, first, start=start, learn=False)
        d, saturates = again.q - q_model[:count], bool(np.any(again.saturated))
    except DivergenceError:
        d, saturates = np.full((count, plant.robot.n), np.inf), False
    if log.controller not in RECURSIVE:
        return Feedback(d, saturates)
    return Feedback(d, saturates, loop.gains["Kp"], loop.gains["Kv"])


def recursion(Kp: np.ndarray, Kv: np.ndarray, T: float) -> np.ndarray:
    """Return the matrices (n, 2, 2) by which an error and its speed change in a period T, in [s]."""
    A = np.empty((len(Kp), 2, 2))
    A[:, 1, 0], A[:, 1, 1] = -T * Kp, 1.0 - T * Kv
    A[:, 0] = [1.0, 0.0] + T * A[:, 1]
    return A


def feedback_metrics(run: TrackingRun) -> tuple[Metric, ...]:
    """Return the checks of the feedback; empty for a run whose error judges it."""
    feedback = None if run.prediction is None else run.prediction.feedback
    if feedback is None or run.loop is None:
        return ()
    log, Kp, Kv = run.log, feedback.Kp, feedback.Kv
    d, T, longest = feedback.difference, log.time_step, TIME_CONSTANTS / run.loop.bandwidth
    time, why = _decay_time(d, T), "the model's run from an initial error of 1 mrad"
    saturates, judged = feedback.saturates, time < np.inf or len(d) * T >= longest
    if saturates or not judged:
        why = f"not judged: the second run {'reaches a torque limit' if saturates else 'is short'}"
    if Kp is None or Kv is None:
        return (Metric(DECAY, time, "s", None if saturates or not judged else longest, why),)
    A = recursion(Kp, Kv, T)
    count, state = max(len(d), int(longest / T)), np.zeros((log.robot.n, 2, 1))
    expected, state[:, 0] = np.full((count, log.robot.n), np.inf), START
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(count):
            expected[k], state = state[:, 0, 0], A @ state
    radii = np.max(np.abs(np.linalg.eigvals(A)), axis=1)
    joint, stable = log.robot.joint_names[int(np.argmax(radii))], np.max(radii) <= STABLE
    return (
        Metric(RADIUS, float(np.max(radii)), "", STABLE, "an error decays; it follows from Kp, Kv", joint),
        Metric(DECAY, _decay_time(expected, T), "s", None, "by the recursion"),
        Metric(
            "1 mrad, model - its recursion",
            float(np.max(np.abs(d - expected[: len(d)]))) if stable else 0.0,
            "rad",
            RECURSION if stable and not saturates else None,
            "with an exact model the feedback is linear; rounding is left",
        ),
    )


def _decay_time(d: np.ndarray, T: float) -> float:
    """Return the time after which the differences (M, n) stay below a tenth, in [s]; inf if they do not."""
    above = np.flatnonzero(~(np.max(np.abs(d), axis=1) <= DECAYED * START))
    last = int(above[-1]) if len(above) else -1
    return (last + 1) * T if last + 1 < len(d) else np.inf

"""What a closed loop does at each sample, whatever moves the robot in between.

`control` is a generator, which waits while the plant moves: Python resumes it around the engine
(`twin/closed_loop.py`).  `twin/rollout_loop.py` does the same with the analytic model in the loop.  Both are
written for numba, which compiles them once for all robots and laws (`twin/compiled_loops.py`): the law, the
kernels and the numbers that are defined elsewhere are passed in.

The signals at a sample are one array (4, n), because numba counts references to every array that it touches:
the positions and velocities, in [rad, rad/s], the torque that the law demands and what the drives make of it,
in [N m].
"""

from __future__ import annotations

from collections import namedtuple
from typing import NamedTuple

import numpy as np

from twin.control_law import FUNCTIONS, Model
from twin.sampling import Reference, State

Q, QD, DEMAND, TAU = range(4)
"""The rows of the signals."""

RAN_AWAY, NOT_A_TORQUE, FOLDED, NO_DEMAND = 1, 2, 3, 4
"""What may end a run early; `NO_DEMAND`: the law raised, or returned something else than (n,) torques."""

ASKED = -1
"""What `control` yields in place of asking a law: write the demand to the signals, then resume it."""


Functions = namedtuple(
    "Functions",
    ("law", *FUNCTIONS, "forward_dynamics", "plant_mass_matrix", "beyond_reason", "step", "folded"),
)
"""What a loop calls; compiled for fixed signatures if the loop is.

The law, with the kernels of its model; two kernels of the robot that moves; `twin.watch.beyond_reason`; two
functions of `twin.rollout_loop`.
"""


class Knowledge(NamedTuple):
    """The numbers in a law's `Model`."""

    inertias: np.ndarray
    gravity: np.ndarray
    tau_max: np.ndarray


def model_of(functions, knowledge):
    """What a law is told about the robot."""
    return Model(
        functions.inverse_dynamics, functions.bias, functions.gravity_torque, functions.mass_matrix,
        functions.tool_pose, functions.jacobian, functions.jacobian_rate,
        knowledge.inertias, knowledge.gravity, knowledge.tau_max,
    )  # fmt: skip


def calm(signals, per_speed):
    """Whether the positions are finite and no joint is above twice its speed limit; NaN is not calm."""
    place, speed = 0.0, 0.0
    for i in range(signals.shape[1]):
        place += signals[Q, i] * signals[Q, i]
        speed += (signals[QD, i] * per_speed[i]) ** 2
    return speed <= 4.0 and place < np.inf


def deliver(signals, tau_max):
    """Limit the demand to what the drives can do; whether that is finite."""
    finite = True
    for i in range(signals.shape[1]):
        torque = signals[DEMAND, i]
        if torque > tau_max[i]:
            torque = tau_max[i]
        elif torque < -tau_max[i]:
            torque = -tau_max[i]
        signals[TAU, i] = torque
        finite = finite and abs(torque) < np.inf
    return finite


def saturated(tau_demand, tau_max):
    """Where (..., n) the drives cannot deliver: a demand at the limit is met, one that is NaN is not."""
    return ~(np.abs(tau_demand) <= tau_max)


def demanded(functions, state, reference, parameters, memory, knowledge):
    """What the law demands; nothing, of shape (0,), where it raises, for a compiled generator must not."""
    try:
        return functions.law(state, reference, parameters, memory, model_of(functions, knowledge))
    except Exception:
        return np.empty(0)


def nobody(state, reference, parameters, memory, model):
    """Stands for the law where the caller is asked instead."""
    return state.q


def control(functions, asks, knowledge, parameters, memory, bounds, path, t, signals, log):
    """At each sample: watch the state, ask the law, limit the torque by the drives, log, and yield.

    To end it early, make the state NaN and resume it.

    Yields:
        0, or what ended the run, or `ASKED`.

    Args:
        functions: see `Functions`.
        asks: whether the caller is the law, so that `ASKED` is yielded.
        knowledge: the numbers of the law's model.
        parameters: (m, n) of the law.
        memory: (rows, n) of the law.
        bounds: see `twin.watch.Bounds`.
        path: (N, 3, n) the reference's positions, velocities and accelerations.
        t: (N,) times.
        signals: (4, n); before a sample the state is written to it, after it the torque is in it.
        log: (N, 4, n) filled with the signals.
    """
    n = signals.shape[1]
    # A law sees copies: one that writes to them must not move the robot or falsify the reference.
    seen = np.empty((5, n))
    for k in range(len(t)):
        if not calm(signals, bounds.per_speed) and functions.beyond_reason(
            functions.plant_mass_matrix, signals[Q], signals[QD], bounds
        ):
            yield RAN_AWAY
            return
        if asks:
            yield ASKED
        else:
            for i in range(n):
                seen[0, i], seen[1, i] = signals[Q, i], signals[QD, i]
                seen[2, i], seen[3, i], seen[4, i] = path[k, 0, i], path[k, 1, i], path[k, 2, i]
            state, reference = State(t[k], seen[0], seen[1]), Reference(seen[2], seen[3], seen[4])
            demand = demanded(functions, state, reference, parameters, memory, knowledge)
            if len(demand) != n:
                yield NO_DEMAND
                return
            for i in range(n):
                signals[DEMAND, i] = demand[i]
        finite = deliver(signals, bounds.tau_max)
        for j in range(4):
            for i in range(n):
                log[k, j, i] = signals[j, i]
        if not finite:
            yield NOT_A_TORQUE
            return
        yield 0


HELPERS = (model_of, calm, deliver, demanded)
"""What the loops call by name, to be compiled first."""

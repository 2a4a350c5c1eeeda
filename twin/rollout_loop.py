"""The analytic model in the closed loop, as plain functions that `twin/compiled_loops.py` compiles.

Law, integrator and kernels are passed in, and so are numbers that are defined elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from twin.control_loop import (
    DEMAND,
    FOLDED,
    NO_DEMAND,
    NOT_A_TORQUE,
    QD,
    RAN_AWAY,
    TAU,
    Knowledge,
    Q,
    calm,
    deliver,
    model_of,
)  # fmt: skip
from twin.sampling import Reference, State
from twin.watch import Bounds


class Batch(NamedTuple):
    """R rollouts: their plants, controllers and starts, one a row.

    inertias (R, n_tree, 10), gravity (R, 3), tau_max (R, n): of the plants.
    per_speed (R, n), energy (R,): 1 / speed limits, and the kinetic energy of a robot that has run away.
    model_inertias, model_gravity, model_tau_max: of the controllers' models.
    parameters (R, m, n): of the laws.
    q, qd (R, n): the starts.
    """

    inertias: np.ndarray
    gravity: np.ndarray
    tau_max: np.ndarray
    per_speed: np.ndarray
    energy: np.ndarray
    model_inertias: np.ndarray
    model_gravity: np.ndarray
    model_tau_max: np.ndarray
    parameters: np.ndarray
    q: np.ndarray
    qd: np.ndarray


class Passive(NamedTuple):
    """The p passive joints: their positions are `G q + g0`, (p, n) and (p,), their range is (p,) each."""

    G: np.ndarray
    g0: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Settings(NamedTuple):
    """What all rollouts share.

    dt: of a step, in [s].
    steps: in a period.
    every: so many samples one is kept.
    memory: number of rows of the law's memory.
    runaway: a speed over its limit at which a joint has run away.
    """

    dt: float
    steps: int
    every: int
    memory: int
    runaway: float


class Record(NamedTuple):
    """What the loop fills.

    log (R, K, 4, n): the signals at the samples that are kept.
    saturated (R, n): number of samples at which a drive could not deliver.
    samples (R,): number of samples that were reached.
    trouble (R,): what ended the rollout early, or 0.
    last (R, 4, n): the signals when it ended.
    """

    log: np.ndarray
    saturated: np.ndarray
    samples: np.ndarray
    trouble: np.ndarray
    last: np.ndarray


def euler_step(forward_dynamics, q, qd, tau, inertias, gravity, dt):
    """The engine's step, in place, and rounded alike: `qd+ = qd + dt qdd`, then `q+ = q + dt qd+`."""
    qdd = np.empty(len(q))
    forward_dynamics(q, qd, tau, inertias, gravity, qdd)
    for i in range(len(q)):
        qd[i] = qd[i] + qdd[i] * dt
        q[i] = q[i] + qd[i] * dt


def rk4_step(forward_dynamics, q, qd, tau, inertias, gravity, dt):
    """The classical step of fourth order under a held torque, in place."""
    n = len(q)
    a1, a2, a3, a4 = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    forward_dynamics(q, qd, tau, inertias, gravity, a1)
    v2 = qd + 0.5 * dt * a1
    forward_dynamics(q + 0.5 * dt * qd, v2, tau, inertias, gravity, a2)
    v3 = qd + 0.5 * dt * a2
    forward_dynamics(q + 0.5 * dt * v2, v3, tau, inertias, gravity, a3)
    v4 = qd + dt * a3
    forward_dynamics(q + dt * v3, v4, tau, inertias, gravity, a4)
    q += dt / 6.0 * (qd + 2.0 * v2 + 2.0 * v3 + v4)
    qd += dt / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)


INTEGRATORS: dict[str, Callable[..., None]] = {"semi_implicit_euler": euler_step, "rk4": rk4_step}


def folded(q, passive):
    """Whether a passive joint is beyond its range, NaN included."""
    for p in range(len(passive.g0)):
        angle = passive.g0[p]
        for i in range(len(q)):
            angle += passive.G[p, i] * q[i]
        if not (angle >= passive.low[p] and angle <= passive.high[p]):
            return True
    return False


def loop(functions, first, last, batch, passive, settings, path, t, record):
    """Run the rollouts `first` to `last`, that one excluded, along the path (N, 3, n) at the times `t`.

    What happens at a sample is what `twin.control_loop.control` does.
    """
    n, N = batch.q.shape[1], len(t)
    dt, steps, every, closed = settings.dt, settings.steps, settings.every, len(passive.g0) > 0
    # Local names for all that the inner loops touch: reaching into a tuple counts references, every time.
    law, step, forward_dynamics = functions.law, functions.step, functions.forward_dynamics
    folded, beyond_reason, plant_mass_matrix = (
        functions.folded, functions.beyond_reason, functions.plant_mass_matrix
    )  # fmt: skip
    log = record.log
    signals, seen, wanted = np.empty((4, n)), np.empty((2, n)), np.empty((3, n))
    q, qd, tau, q_seen, qd_seen = signals[Q], signals[QD], signals[TAU], seen[0], seen[1]
    reference = Reference(wanted[0], wanted[1], wanted[2])
    for r in range(first, last):
        inertias, gravity, tau_max = batch.inertias[r], batch.gravity[r], batch.tau_max[r]
        per_speed, parameters, saturated = batch.per_speed[r], batch.parameters[r], record.saturated[r]
        bounds = Bounds(inertias, tau_max, per_speed, settings.runaway, batch.energy[r])
        knowledge = Knowledge(batch.model_inertias[r], batch.model_gravity[r], batch.model_tau_max[r])
        model, memory = model_of(functions, knowledge), np.zeros((settings.memory, n))
        signals[:] = 0.0
        q[:], qd[:] = batch.q[r], batch.qd[r]
        trouble, samples, kept = 0, 0, 0
        for k in range(N):
            if not calm(signals, per_speed) and beyond_reason(plant_mass_matrix, q, qd, bounds):
                trouble = RAN_AWAY
                break
            for i in range(n):
                q_seen[i], qd_seen[i] = q[i], qd[i]
                wanted[0, i], wanted[1, i], wanted[2, i] = path[k, 0, i], path[k, 1, i], path[k, 2, i]
            demand = law(State(t[k], q_seen, qd_seen), reference, parameters, memory, model)
            if len(demand) != n:
                trouble = NO_DEMAND
                break
            samples = k + 1
            for i in range(n):
                signals[DEMAND, i] = demand[i]
                if not abs(demand[i]) <= tau_max[i]:
                    saturated[i] += 1
            finite = deliver(signals, tau_max)
            if k == kept * every:
                for j in range(4):
                    for i in range(n):
                        log[r, kept, j, i] = signals[j, i]
                kept += 1
            if not finite:
                trouble = NOT_A_TORQUE
                break
            if k == N - 1:
                break
            for _ in range(steps):
                step(forward_dynamics, q, qd, tau, inertias, gravity, dt)
                if closed and folded(q, passive):
                    trouble = FOLDED
                    break
            if trouble != 0:
                break
        record.samples[r], record.trouble[r] = samples, trouble
        record.last[r] = signals

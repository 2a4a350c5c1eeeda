"""The closed loop over the analytic model, as plain functions that `twin/compiled_rollout.py` compiles.

Law, integrator and kernels are passed in.  So are numbers that are defined elsewhere: the machine code is
kept until this file changes, whatever another does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from twin.control_law import Model
from twin.sampling import Reference, State

RAN_AWAY, NOT_A_TORQUE, FOLDED, OTHER_SHAPE = 1, 2, 3, 4
"""What may end a rollout early."""


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

    q, qd, tau, tau_demand (R, K, n): at the samples that are kept.
    saturated (R, n): number of samples at which a drive could not deliver.
    samples (R,): number of samples that were reached.
    trouble (R,): what ended the rollout early, or 0.
    last (R, 3, n): q, qd, tau_demand when it ended.
    """

    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    tau_demand: np.ndarray
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


def beyond_reason(mass_matrix, q, qd, inertias, per_speed, energy, runaway):
    """Whether a state is not finite or has run away, as `twin.closed_loop` judges it."""
    n = len(q)
    for i in range(n):
        if not (abs(q[i]) < np.inf and abs(qd[i] * per_speed[i]) <= runaway):
            return True
    M = np.empty((n, n))
    mass_matrix(q, inertias, M)
    kinetic = 0.0
    for i in range(n):
        for j in range(n):
            kinetic += 0.5 * qd[i] * M[i, j] * qd[j]
    return not kinetic <= energy


def folded(q, passive):
    """Whether a passive joint is beyond its range, NaN included."""
    for p in range(len(passive.g0)):
        angle = passive.g0[p]
        for i in range(len(q)):
            angle += passive.G[p, i] * q[i]
        if not (angle >= passive.low[p] and angle <= passive.high[p]):
            return True
    return False


def loop(
    law, step, beyond_reason, folded, forward_dynamics, plant_mass_matrix,
    inverse_dynamics, bias, gravity_torque, mass_matrix, tool_pose, jacobian, jacobian_rate,
    first, last, batch, passive, settings, reference, t, record,
):  # fmt: skip
    """Run the rollouts `first` to `last`, that one excluded.

    The functions from `inverse_dynamics` on are those of the law's model; `reference` is (q, qd, qdd) at the
    times `t`.
    """
    n, N = batch.q.shape[1], len(t)
    dt, steps, every, runaway = settings.dt, settings.steps, settings.every, settings.runaway
    closed = len(passive.g0) > 0
    # Local names for all that the inner loops touch: reaching into a tuple counts references, every time.
    q_ref, qd_ref, qdd_ref = reference.q, reference.qd, reference.qdd
    q_kept, qd_kept, tau_kept, demand_kept = record.q, record.qd, record.tau, record.tau_demand
    q, qd, demand, tau = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    # A law sees copies: one that writes to them must not move the robot or falsify the reference.
    q_seen, qd_seen, q_wanted, qd_wanted, qdd_wanted = (
        np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    )  # fmt: skip
    wanted = Reference(q_wanted, qd_wanted, qdd_wanted)
    for r in range(first, last):
        inertias, gravity, tau_max = batch.inertias[r], batch.gravity[r], batch.tau_max[r]
        per_speed, energy, parameters = batch.per_speed[r], batch.energy[r], batch.parameters[r]
        saturated, memory = record.saturated[r], np.zeros((settings.memory, n))
        model = Model(
            inverse_dynamics, bias, gravity_torque, mass_matrix, tool_pose, jacobian, jacobian_rate,
            batch.model_inertias[r], batch.model_gravity[r], batch.model_tau_max[r],
        )  # fmt: skip
        q[:], qd[:], demand[:] = batch.q[r], batch.qd[r], 0.0
        trouble, samples, kept = 0, 0, 0
        for k in range(N):
            place, speed = 0.0, 0.0
            for i in range(n):
                place += q[i] * q[i]
                speed += (qd[i] * per_speed[i]) ** 2
                q_seen[i], qd_seen[i] = q[i], qd[i]
                q_wanted[i], qd_wanted[i], qdd_wanted[i] = q_ref[k, i], qd_ref[k, i], qdd_ref[k, i]
            # Well is where no joint is above twice its limit; NaN is not.
            well = speed <= 4.0 and place < np.inf
            if not well and beyond_reason(plant_mass_matrix, q, qd, inertias, per_speed, energy, runaway):
                trouble = RAN_AWAY
                break
            demanded = law(State(t[k], q_seen, qd_seen), wanted, parameters, memory, model)
            if len(demanded) != n:
                trouble = OTHER_SHAPE
                break
            samples = k + 1
            squares = 0.0
            for i in range(n):
                demand[i] = tau[i] = demanded[i]
                if not abs(demand[i]) <= tau_max[i]:
                    saturated[i] += 1
                    if demand[i] > tau_max[i]:
                        tau[i] = tau_max[i]
                    elif demand[i] < -tau_max[i]:
                        tau[i] = -tau_max[i]
                squares += tau[i] * tau[i]
            if k == kept * every:
                for i in range(n):
                    q_kept[r, kept, i], qd_kept[r, kept, i] = q[i], qd[i]
                    tau_kept[r, kept, i], demand_kept[r, kept, i] = tau[i], demand[i]
                kept += 1
            if not squares < np.inf:
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
        for i in range(n):
            record.last[r, 0, i], record.last[r, 1, i], record.last[r, 2, i] = q[i], qd[i], demand[i]

"""What is compiled of a control loop: a sample's bookkeeping, the integrators, and the loop of a rollout.

All of it is in this one file, so that numba, which keeps machine code as long as the file of a function stays
as it is, compiles it anew when any of it changes.  The law and the kernels of the robots are passed in; see
`twin/control/compiled_rollout.py`.  With `NUMBA_DISABLE_JIT=1` the same functions run as plain Python.

The signals at a sample are one array (4, n), because numba counts references to every array that it touches:
the positions and velocities, in [rad, rad/s], the torque that the law demands and what the drives make of it,
in [N m].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twin.control.control_law import Model
from twin.drives.drive_model import DriveModel
from twin.jit import compiled
from twin.trajectories.sampling import Reference, State

Q, QD, DEMAND, TAU = 0, 1, 2, 3
"""The rows of the signals."""

RAN_AWAY, NOT_A_TORQUE, FOLDED, WRONG_SHAPE = 1, 2, 3, 4
"""What may end a rollout early; `WRONG_SHAPE`: the law returned something else than (n,) torques."""

SEMI_IMPLICIT_EULER, RK4 = 0, 1
"""The integrators: the engine's, and the classical one of fourth order."""

POSITION, SPEED = 0, 1
"""The limits that a rollout is held against; see `Record.worst`."""


class Batch(NamedTuple):
    """R rollouts: their plants, controllers and starts, one a row.

    inertias (R, n_tree, 10), gravity (R, 3), tau_max (R, n): of the plants.
    q_min, q_max (R, n), per_speed (R, n): the ranges of their joints, and 1 / speed limits, 0 where none is.
    watched (R, n), energy (R,): see `twin.control.divergence.Bounds`.
    model_inertias, model_gravity, model_tau_max, model_period: of the controllers' models.
    model_drive_inertia (R, n, n), model_friction (R, 4, n), model_shafts (R, n, n): their drives.
    parameters (R, m, n): of the laws.
    q, qd (R, n): the starts.
    """

    inertias: np.ndarray
    gravity: np.ndarray
    tau_max: np.ndarray
    q_min: np.ndarray
    q_max: np.ndarray
    per_speed: np.ndarray
    watched: np.ndarray
    energy: np.ndarray
    model_inertias: np.ndarray
    model_gravity: np.ndarray
    model_tau_max: np.ndarray
    model_period: np.ndarray
    model_drive_inertia: np.ndarray
    model_friction: np.ndarray
    model_shafts: np.ndarray
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
    integrator: `SEMI_IMPLICIT_EULER` or `RK4`.
    """

    dt: float
    steps: int
    every: int
    memory: int
    runaway: float
    integrator: int


class Record(NamedTuple):
    """What the loop fills.

    log (R, K, 4, n): the signals at the samples that are kept.
    saturated (R, n): number of samples at which a drive could not deliver.
    samples (R,): number of samples that were reached.
    trouble (R,): what ended the rollout early, or 0.
    last (R, 4, n): the signals when it ended.
    worst (R, 2): how far a joint was beyond its range, in [rad], and the largest speed over its limit.
    where (R, 2, 2): the joint and the sample of these; the joint is -1 where none was beyond.
    value (R, 2): the position, in [rad], and the speed, in [rad/s], there.
    stop (1,): not 0 when the caller wants no more; the rollout under way is left as it is.
    """

    log: np.ndarray
    saturated: np.ndarray
    samples: np.ndarray
    trouble: np.ndarray
    last: np.ndarray
    worst: np.ndarray
    where: np.ndarray
    value: np.ndarray
    stop: np.ndarray


@compiled
def within_twice_the_speed_limits(signals, watched):
    """Whether the positions are finite and no joint is above twice its speed limit; not so of NaN."""
    place, speed = 0.0, 0.0
    for i in range(signals.shape[1]):
        place += signals[Q, i] * signals[Q, i]
        speed += (signals[QD, i] * watched[i]) ** 2
    return speed <= 4.0 and place < np.inf


@compiled
def saturate(signals, tau_max):
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


@compiled
def record_sample(signals, log, k):
    """Write the signals to row k of a log (N, 4, n)."""
    for j in range(4):
        for i in range(signals.shape[1]):
            log[k, j, i] = signals[j, i]


@compiled
def saturate_and_record(signals, tau_max, log, k):
    """`saturate`, and write the sample to row k of the log (N, 4, n)."""
    finite = saturate(signals, tau_max)
    record_sample(signals, log, k)
    return finite


@compiled
def has_diverged(mass_matrix, q, qd, inertias, watched, runaway, energy):
    """Whether a state is not finite or has run away, see `divergence.Bounds`; `mass_matrix` is the kernel."""
    n = len(q)
    for i in range(n):
        if not (abs(q[i]) < np.inf and abs(qd[i] * watched[i]) <= runaway):
            return True
    M = np.empty((n, n))
    mass_matrix(q, inertias, M)
    kinetic = 0.0
    for i in range(n):
        for j in range(n):
            kinetic += 0.5 * qd[i] * M[i, j] * qd[j]
    return not kinetic <= energy


@compiled
def hold_against_limits(q, qd, q_min, q_max, per_speed, k, worst, where, value):
    """Keep where the arm was furthest beyond its limits; the arguments are rows of `Batch` and `Record`."""
    for i in range(len(q)):
        excess = max(q[i] - q_max[i], q_min[i] - q[i])
        if excess > worst[POSITION]:
            worst[POSITION], value[POSITION] = excess, q[i]
            where[POSITION, 0], where[POSITION, 1] = i, k
        ratio = abs(qd[i]) * per_speed[i]
        if ratio > worst[SPEED]:
            worst[SPEED], value[SPEED] = ratio, qd[i]
            where[SPEED, 0], where[SPEED, 1] = i, k


@compiled
def folded(q, passive):
    """Whether a passive joint is beyond its range, NaN included."""
    for p in range(len(passive.g0)):
        angle = passive.g0[p]
        for i in range(len(q)):
            angle += passive.G[p, i] * q[i]
        if not (angle >= passive.low[p] and angle <= passive.high[p]):
            return True
    return False


@compiled
def euler_step(forward_dynamics, q, qd, tau, inertias, gravity, dt):
    """The engine's step, in place, and rounded alike: `qd+ = qd + dt qdd`, then `q+ = q + dt qd+`."""
    qdd = np.empty(len(q))
    forward_dynamics(q, qd, tau, inertias, gravity, qdd)
    for i in range(len(q)):
        qd[i] = qd[i] + qdd[i] * dt
        q[i] = q[i] + qd[i] * dt


@compiled
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


@compiled
def run(
    law, inverse_dynamics, bias, gravity_torque, mass_matrix, tool_pose, jacobian, jacobian_rate,
    forward_dynamics, plant_mass_matrix, first, last, batch, passive, settings, path, t, record,
):  # fmt: skip
    """Run the rollouts `first` to `last`, that one excluded, along the path (N, 3, n) at the times `t`.

    What happens at a sample is what `twin.control.closed_loop.run_closed_loop` does.
    """
    n, N = batch.q.shape[1], len(t)
    dt, steps, every, closed = settings.dt, settings.steps, settings.every, len(passive.g0) > 0
    # Local names for all that the inner loops touch: reaching into a tuple counts references, every time.
    log, stop, rk4 = record.log, record.stop, settings.integrator == RK4
    signals, seen, wanted = np.empty((4, n)), np.empty((2, n)), np.empty((3, n))
    q, qd, tau, q_seen, qd_seen = signals[Q], signals[QD], signals[TAU], seen[0], seen[1]
    reference = Reference(wanted[0], wanted[1], wanted[2])
    for r in range(first, last):
        inertias, gravity, tau_max = batch.inertias[r], batch.gravity[r], batch.tau_max[r]
        q_min, q_max, per_speed = batch.q_min[r], batch.q_max[r], batch.per_speed[r]
        watched, energy, parameters = batch.watched[r], batch.energy[r], batch.parameters[r]
        saturated, worst = record.saturated[r], record.worst[r]
        where, value, memory = record.where[r], record.value[r], np.zeros((settings.memory, n))
        model = Model(
            inverse_dynamics, bias, gravity_torque, mass_matrix, tool_pose, jacobian, jacobian_rate,
            batch.model_inertias[r], batch.model_gravity[r], batch.model_tau_max[r], batch.model_period[r],
            DriveModel(batch.model_drive_inertia[r], batch.model_friction[r], batch.model_shafts[r]),
        )  # fmt: skip
        signals[:] = 0.0
        q[:], qd[:] = batch.q[r], batch.qd[r]
        trouble, samples, kept = 0, 0, 0
        for k in range(N):
            if stop[0] != 0:
                return
            if not within_twice_the_speed_limits(signals, watched) and has_diverged(
                plant_mass_matrix, q, qd, inertias, watched, settings.runaway, energy
            ):
                trouble = RAN_AWAY
                break
            hold_against_limits(q, qd, q_min, q_max, per_speed, k, worst, where, value)
            for i in range(n):  # a law sees copies: one that writes to them must not move the robot
                q_seen[i], qd_seen[i] = q[i], qd[i]
                wanted[0, i], wanted[1, i], wanted[2, i] = path[k, 0, i], path[k, 1, i], path[k, 2, i]
            demand = law(State(t[k], q_seen, qd_seen), reference, parameters, memory, model)
            if len(demand) != n:
                trouble = WRONG_SHAPE
                break
            samples = k + 1
            for i in range(n):
                signals[DEMAND, i] = demand[i]
                if not abs(demand[i]) <= tau_max[i]:
                    saturated[i] += 1
            finite = saturate(signals, tau_max)
            if k == kept * every:
                record_sample(signals, log[r], kept)
                kept += 1
            if not finite:
                trouble = NOT_A_TORQUE
                break
            if k == N - 1:
                break
            for _ in range(steps):
                if rk4:
                    rk4_step(forward_dynamics, q, qd, tau, inertias, gravity, dt)
                else:
                    euler_step(forward_dynamics, q, qd, tau, inertias, gravity, dt)
                if closed and folded(q, passive):
                    trouble = FOLDED
                    break
            if trouble != 0:
                break
        record.samples[r], record.trouble[r] = samples, trouble
        record.last[r] = signals

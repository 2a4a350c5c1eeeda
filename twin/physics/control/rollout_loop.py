"""Compiled loop of a rollout, with its integrators and limit checks.

The law and the kernels of the robots are passed in; see `control/rollout.py`.  With
`NUMBA_DISABLE_JIT=1` the same functions run as plain Python.
"""

from typing import Any, NamedTuple

import numpy as np

from twin.base.jit import compiled
from twin.physics.control.control_law import Model
from twin.physics.control.signals import (
    DEMAND,
    PLAIN_ROWS,
    Q_MOTOR,
    Q_SEEN,
    QD,
    QD_MOTOR,
    QD_SEEN,
    TAU,
    TAU_JOINT,
    Q,
    record_sample,
    within_twice_the_speed_limits,
)
from twin.physics.dynamics.environment import joint_torque, tool_twist, touch
from twin.physics.robot.drives.drive_step import DriveModel, DriveNumbers, drive_step, rest_motors
from twin.physics.robot.drives.motors import (
    SensorNumbers,
    limit_together,
    observe,
    read_force,
    torque_at_speed,
)
from twin.physics.trajectories.sampling import Reference, State

RAN_AWAY, NOT_A_TORQUE, FOLDED, WRONG_SHAPE = 1, 2, 3, 4
"""Codes for the cause of an early end; `WRONG_SHAPE`: the law did not return n torques."""

SEMI_IMPLICIT_EULER, RK4 = 0, 1
"""Integrators: that of the engine, and the classical Runge-Kutta method of fourth order."""

POSITION, SPEED = 0, 1
"""Indices of the two kinds of limits in `Record.worst`."""

LARGEST_ERROR, LARGEST_ERROR_SAMPLE, SQUARED_ERRORS, SQUARED_TORQUES = range(4)
"""Rows of the statistics of a joint in `Record.summed`."""


@compiled
def copy(source, target):
    """Copy `source` (n,) to `target` (n,); numba would take seconds to compile `target[:] = source`."""
    for i in range(len(target)):
        target[i] = source[i]


@compiled
def has_diverged(mass_matrix, q, qd, inertias, inverse_speed_limits, runaway, energy):
    """Return whether a state is not finite or has run away, see `closed_loop.Bounds`.

    `mass_matrix` is the kernel.
    """
    n = len(q)
    for i in range(n):
        if not (abs(q[i]) < np.inf and abs(qd[i] * inverse_speed_limits[i]) <= runaway):
            return True
    M = np.empty((n, n))
    mass_matrix(q, inertias, M)
    kinetic = 0.0
    for i in range(n):
        for j in range(n):
            kinetic += 0.5 * qd[i] * M[i, j] * qd[j]
    return not kinetic <= energy


@compiled
def record_violations(q, qd, q_min, q_max, per_speed, k, worst, where, value):
    """Update the largest violations with the state at sample k; arrays are rows of `Batch` and `Record`."""
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
    """Return whether a passive joint is beyond its range; true for NaN."""
    for p in range(len(passive.g0)):
        angle = passive.g0[p]
        for i in range(len(q)):
            angle += passive.G[p, i] * q[i]
        if not (angle >= passive.low[p] and angle <= passive.high[p]):
            return True
    return False


@compiled
def euler_step(forward_dynamics, q, qd, tau, inertias, gravity, dt):
    """Advance the state in place as the engine does: `qd+ = qd + dt qdd`, then `q+ = q + dt qd+`."""
    qdd = np.empty(len(q))
    forward_dynamics(q, qd, tau, inertias, gravity, qdd)
    for i in range(len(q)):
        qd[i] = qd[i] + qdd[i] * dt
        q[i] = q[i] + qd[i] * dt


@compiled
def rk4_step(forward_dynamics, q, qd, tau, inertias, gravity, dt):
    """Advance the state in place by a classical Runge-Kutta step of fourth order under a constant torque."""
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


class ModelFunctions(NamedTuple):
    """Kernels of the law's model, the first members of a `Model`."""

    inverse_dynamics: Any
    bias: Any
    gravity_torque: Any
    mass_matrix: Any
    tool_pose: Any
    jacobian: Any
    jacobian_rate: Any


class PlantFunctions(NamedTuple):
    """Kernels of the plant."""

    forward_dynamics: Any
    mass_matrix: Any
    bias: Any
    tool_pose: Any
    jacobian: Any


class Functions(NamedTuple):
    """Compiled functions that the loop calls."""

    law: Any
    model: ModelFunctions
    plant: PlantFunctions


@compiled
def run(
    law, inverse_dynamics, bias, gravity_torque, mass_matrix, tool_pose, jacobian, jacobian_rate,
    forward_dynamics, plant_mass_matrix, plant_bias, plant_tool_pose, plant_jacobian,
    block, batch, passive, settings, course, record,
):  # fmt: skip
    """Group the functions, and run a block of rollouts, see `run_block`.

    The functions are separate arguments, because numba converts a compiled function to a pointer only where
    it is an argument, not where a named tuple contains it.
    """
    model = ModelFunctions(
        inverse_dynamics, bias, gravity_torque, mass_matrix, tool_pose, jacobian, jacobian_rate
    )
    plant = PlantFunctions(forward_dynamics, plant_mass_matrix, plant_bias, plant_tool_pose, plant_jacobian)
    run_block(Functions(law, model, plant), block, batch, passive, settings, course, record)


@compiled
def wrench_at(plant, course, t, q, qd, T, J, F, tau):
    """Fill the pose T of the tool, its Jacobian J, and the wrench F of the environment and its torque."""
    plant.tool_pose(q, course.T_touch, T)
    plant.jacobian(q, course.T_touch, J)
    V = np.empty(6)
    tool_twist(J, qd, V)
    touch(t, T, V, course.pushes, course.surfaces, F)
    joint_torque(J, F, tau)


@compiled
def run_block(functions, block, batch, passive, settings, course, record):
    """Run a block of rollouts; the arguments are the groups of this module and of `rollout_batch`.

    The steps of a sample are those of `twin.logs.closed_loop.run_closed_loop`.
    """
    law, kernels, plant = functions.law, functions.model, functions.plant
    first, tables, draws = block.first, block.tables, block.draws
    t, path, tool_path, kicks = course.t, course.path, course.tool_path, course.kicks
    n, N, rows = batch.q.shape[1], len(t), record.log.shape[2]
    dt, steps, every, closed = settings.dt, settings.steps, settings.every, len(passive.g0) > 0
    plain, sensed, driven = rows == PLAIN_ROWS, settings.past > 0, batch.drive_inertia.shape[1] > 0
    kicked, outside = len(kicks) > 0, len(course.pushes) + len(course.surfaces) > 0
    has_wrench, slots = outside or len(settings.force) > 0, max(settings.past, 1)
    T_touch, J, F, tau_outside, total = np.eye(4), np.zeros((6, n)), np.zeros(6), np.zeros(n), np.empty(n)
    wrenches, wrench_seen, no_force_draw = np.zeros((slots, 6)), np.zeros(6), np.zeros(6)
    rk4 = settings.integrator == RK4
    # Local names for all arrays of the inner loops: each access to a tuple member counts references.
    log, stop, law_log, law_rows = record.log, record.stop, record.law, batch.signals
    signals, measured, desired = np.empty((rows, n)), np.empty((2, n)), np.empty((3, n))
    q, qd, demanded, tau = signals[Q], signals[QD], signals[DEMAND], signals[TAU]
    q_measured, qd_measured, tau_given = measured[0], measured[1], np.empty(n)
    motors = signals[Q : QD + 1] if plain else signals[Q_MOTOR : QD_MOTOR + 1]
    view = signals[Q_SEEN : QD_SEEN + 1] if sensed else motors
    q_motor, qd_motor = motors[0], motors[1]
    M, h, tau_joint, no_draw = np.empty((n, n)), np.empty(n), np.empty(n), np.zeros(n)
    T_base_tool, has_tool = np.empty((4, 4)), len(tool_path) > 0
    next_qd, next_qd_motor = np.empty(n), np.empty(n)
    table = np.empty((tables.shape[2], n))
    reference = Reference(desired[0], desired[1], desired[2])
    for r in range(first, block.last):
        inertias, gravity = batch.inertias[r], batch.gravity[r]
        limits, coupling = batch.motor_limits[r], batch.motor_coupling[r]
        coupled = coupling.shape[1] > 0
        q_min, q_max, per_speed = batch.q_min[r], batch.q_max[r], batch.per_speed[r]
        inverse_speed_limits, energy = batch.inverse_speed_limits[r], batch.energy[r]
        parameters = batch.parameters[r]
        saturated, worst, summed, tool = (
            record.saturated[r], record.worst[r], record.summed[r], record.tool[r],
        )  # fmt: skip
        where, value, memory = record.where[r], record.value[r], batch.memory[r].copy()
        prepared = tables[0 if len(tables) == 1 else r - first]
        model = Model(
            kernels.inverse_dynamics, kernels.bias, kernels.gravity_torque, kernels.mass_matrix,
            kernels.tool_pose, kernels.jacobian, kernels.jacobian_rate,
            batch.model_inertias[r], batch.model_gravity[r], batch.model_tau_max[r], batch.model_period[r],
            DriveModel(batch.model_drive_inertia[r], batch.model_friction[r], batch.model_shafts[r]),
            batch.model_tree,
        )  # fmt: skip
        inertia, friction, springs = batch.drive_inertia[r], batch.drive_friction[r], batch.springs[r]
        elastic, shafts = batch.elastic, batch.shafts[r]
        sensors = SensorNumbers(settings.noise, settings.speed_gain, settings.period, batch.encoder[r])
        past = np.zeros((settings.past, 2, n))
        signals[:] = 0.0
        copy(batch.q[r], q)
        copy(batch.qd[r], qd)
        if driven:
            plant.bias(q, qd, inertias, gravity, h)
            copy(q, q_motor)
            copy(qd, qd_motor)
            rest_motors(DriveNumbers(dt, inertia, friction, springs, elastic, shafts), h, motors)
            copy(h, signals[TAU_JOINT])
            copy(h, tau_joint)
        trouble, samples, stored = 0, 0, 0
        for k in range(N):
            if stop[0] != 0:
                return
            if kicked:
                for i in range(n):
                    q[i] += kicks[r, k, 0, i]
                    qd[i] += kicks[r, k, 1, i]
                    if driven:  # otherwise these rows are those of the joints, or copies of them
                        q_motor[i] += kicks[r, k, 2, i]
                        qd_motor[i] += kicks[r, k, 3, i]
            if not within_twice_the_speed_limits(signals, inverse_speed_limits) and has_diverged(
                plant.mass_matrix, q, qd, inertias, inverse_speed_limits, settings.runaway, energy
            ):
                trouble = RAN_AWAY
                break
            record_violations(q, qd, q_min, q_max, per_speed, k, worst, where, value)
            if sensed:
                if not driven:
                    copy(q, q_motor)
                    copy(qd, qd_motor)
                draw = draws[r - first, k] if sensors.noise > 0.0 else no_draw
                observe(sensors, k, motors, draw, past, view)
            for i in range(n):  # the law receives copies: if it writes to them, the robot must not move
                q_measured[i], qd_measured[i] = view[0, i], view[1, i]
                desired[0, i], desired[1, i], desired[2, i] = path[k, 0, i], path[k, 1, i], path[k, 2, i]
                tau_given[i] = tau[i]
            for row in range(len(table)):
                copy(prepared[k, row], table[row])
            if has_wrench:
                wrench_at(plant, course, t[k], q, qd, T_touch, J, F, tau_outside)
                force_draw = block.force_draws[r - first, k] if len(block.force_draws) > 0 else no_force_draw
                read_force(settings.force, T_touch, gravity, F, force_draw, wrenches[k % slots])
                copy(wrenches[max(k - slots + 1, 0) % slots], wrench_seen)
            state = State(t[k], q_measured, qd_measured, tau_given, table, wrench_seen)
            demand = law(state, reference, parameters, memory, model)
            if len(demand) != n:
                trouble = WRONG_SHAPE
                break
            samples = k + 1
            for i in range(n):
                signals[DEMAND, i] = demand[i]
            finite = True  # `limited_torque` is written out here: a call would cost a tenth of a rollout
            if coupled:
                limit_together(limits, coupling, demanded, qd_motor, tau)
            for i in range(n):
                if not coupled:
                    tau[i] = torque_at_speed(limits, i, demanded[i], qd_motor[i])
                finite = finite and abs(tau[i]) < np.inf
                if tau[i] != signals[DEMAND, i]:
                    saturated[i] += 1
                error = abs(path[k, 0, i] - q[i])
                if error > summed[LARGEST_ERROR, i]:
                    summed[LARGEST_ERROR, i], summed[LARGEST_ERROR_SAMPLE, i] = error, k
                summed[SQUARED_ERRORS, i] += error * error
                summed[SQUARED_TORQUES, i] += tau[i] * tau[i]
            if has_tool:
                plant.tool_pose(q, course.T_flange_tool, T_base_tool)
                x, y, z = (
                    T_base_tool[0, 3] - tool_path[k, 0], T_base_tool[1, 3] - tool_path[k, 1],
                    T_base_tool[2, 3] - tool_path[k, 2],
                )  # fmt: skip
                distance = np.sqrt(x * x + y * y + z * z)
                if distance > tool[0]:
                    tool[0], tool[1] = distance, k
            store = k == stored * every
            if store:
                record_sample(signals, log[r], stored)
                for row in range(len(law_rows)):
                    copy(memory[law_rows[row]], law_log[r, stored, row])
                stored += 1
            if not finite:
                trouble = NOT_A_TORQUE
                break
            if k == N - 1:
                break
            for step in range(steps):
                if outside and step > 0:
                    wrench_at(plant, course, t[k] + step * dt, q, qd, T_touch, J, F, tau_outside)
                if driven:
                    plant.bias(q, qd, inertias, gravity, h)
                    if outside:
                        for i in range(n):
                            h[i] -= tau_outside[i]
                    plant.mass_matrix(q, inertias, M)
                    drives = DriveNumbers(dt, inertia, friction, springs, elastic, shafts)
                    drive_step(drives, M, h, tau, q, qd, q_motor, qd_motor, next_qd, next_qd_motor, tau_joint)
                    for i in range(n):
                        qd[i], qd_motor[i] = next_qd[i], next_qd_motor[i]
                        q[i] = q[i] + qd[i] * dt
                        q_motor[i] = q_motor[i] + qd_motor[i] * dt
                elif rk4:
                    rk4_step(plant.forward_dynamics, q, qd, tau, inertias, gravity, dt)
                else:
                    for i in range(n):
                        total[i] = tau[i] + tau_outside[i]
                    euler_step(plant.forward_dynamics, q, qd, total, inertias, gravity, dt)
                if closed and folded(q, passive):
                    trouble = FOLDED
                    break
                if driven and step == 0:
                    for i in range(n):
                        signals[TAU_JOINT, i] = tau_joint[i]
                        if store:
                            log[r, stored - 1, TAU_JOINT, i] = tau_joint[i]
            if trouble != 0:
                break
        record.samples[r], record.trouble[r] = samples, trouble
        for row in range(rows):
            copy(signals[row], record.last[r, row])

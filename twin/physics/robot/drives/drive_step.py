"""Time step of an arm with its drives.

Engine, analytic plant and rollouts supply the mass matrix M and the bias h.  A step computes the speeds after
it and the torque on the arm.  Rigid drives obey

    (M + A) qdd = tau - h - R^T F(R qd+),     A = N^T J N,  tau = N^T tau_m

where `R qd` are the speeds of the shafts with friction, those of the motors or the joints, in joint units.
The motors of elastic joints have separate angles `theta = q_motor`:

    M qdd + h = T,     A thetadd = tau - T - R^T F(R thetad+),     T = K (theta - q) + D (thetad - qd)

The spring is evaluated at `e + dt (thetad+ - thetad - qd+ + qd) / 4`, where `e = theta - q` before the step,
and the damper at the mean of the speeds before and after it.  With the engine's recursion `q+ = q + dt qd+`
this is the average of the spring's torques at three neighbouring steps, with weights 1/4, 1/2 and 1/4.  It
equals Newmark's method of constant average acceleration: stable at any stiffness, without numerical damping.

The unknowns are the accelerations of the joints and of the elastic joints' motors, m together.  They are
expressed in coordinates that are each the angle of one shaft with friction, so friction couples none of them.

Sources: Norrlöf 1999, eq. (3.70); Ljubljana lab manual, eq. (6.93); N. Newmark, "A method of computation for
structural dynamics", J. Eng. Mech. Div. ASCE 85 (1959), beta = 1/4.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from twin.base.jit import NO_COUNTS, compiled
from twin.physics.robot.drives.drives import MOTOR, Drives
from twin.physics.robot.drives.friction import (
    AT_REST,
    COULOMB,
    EXCESS,
    LOAD,
    TRANSMISSION,
    VISCOUS,
    accelerations_with_friction,
    friction_level,
    friction_rows,
    smooth_friction,
)


class DriveNumbers(NamedTuple):
    """Drives of n joints for compiled code; e joints are elastic, and there are m = n + e shafts.

    Attributes:
        dt: time step, in [s].
        inertia: (m, m) matrix of the equations without M: rotors, springs, dampers and viscous friction.
        friction: (8 + n, m), see `twin.robot.drives.friction`.
        springs: (2, e) stiffness in [N m/rad] and damping in [N m s/rad].
        elastic: (e,) indices of the elastic joints.
        shafts: (2, m, m) matrices from the speeds of joints and motors to those of the shafts, and back;
            (2, 0, 0) if these are the same.
    """

    dt: float
    inertia: np.ndarray
    friction: np.ndarray
    springs: np.ndarray
    elastic: np.ndarray
    shafts: np.ndarray


@lru_cache(maxsize=32)
def drive_numbers(drives: Drives | None, mode: str, dt: float) -> DriveNumbers:
    """Return `"rigid"` or `"elastic"` drives for a step `dt`, in [s]; empty for ideal drives.

    The arrays are shared between callers, who must not change them.
    """
    if drives is None:
        empty, none = np.zeros((2, 0, 0)), np.zeros(0, dtype=np.int64)
        return DriveNumbers(float(dt), empty[0], np.zeros((TRANSMISSION, 0)), np.zeros((2, 0)), none, empty)
    n, A = drives.n, drives.reflected_inertia
    elastic = np.flatnonzero(np.isfinite(drives.stiffness)) if mode == "elastic" else np.zeros(0, dtype=int)
    m = n + len(elastic)
    motor = np.arange(n)  # index of the coordinate of each joint's motor
    motor[elastic] = np.arange(n, m)
    thetad, twist = np.zeros((n, m)), np.zeros((len(elastic), m))
    thetad[np.arange(n), motor] = 1.0
    for row, joint in enumerate(elastic):
        twist[row, motor[joint]], twist[row, joint] = 1.0, -1.0
    springs = np.array([drives.stiffness[elastic], drives.damping[elastic]])
    inertia = thetad.T @ A @ thetad
    inertia += twist.T @ ((dt**2 / 4 * springs[0] + dt / 2 * springs[1])[:, None] * twist)
    rows, friction, shafts = friction_rows(drives), np.zeros((TRANSMISSION + n, m)), np.eye(m)
    for joint, side in enumerate(drives.friction_at):
        shaft = motor[joint] if side == MOTOR else joint
        if side == MOTOR:
            shafts[shaft] = drives.coupling[joint] @ thetad
        friction[:, shaft] = rows[:, joint]
    plain = np.array_equal(shafts, np.eye(m))
    back = np.eye(m) if plain else np.linalg.inv(shafts)
    inertia = back.T @ inertia @ back
    inertia[np.arange(m), np.arange(m)] += dt * friction[VISCOUS]
    maps = np.zeros((2, 0, 0)) if plain else np.array([shafts, back])
    return DriveNumbers(float(dt), inertia, friction, springs, elastic.astype(np.int64), maps)


def joints_that_can_stick(numbers: DriveNumbers) -> np.ndarray:
    """Return whether friction can hold a joint (n,): all shafts that determine its speed have friction."""
    m, n = len(numbers.inertia), len(numbers.inertia) - len(numbers.elastic)
    rubs = numbers.friction[COULOMB] + numbers.friction[EXCESS] + numbers.friction[LOAD] > 0.0
    back = numbers.shafts[1] if numbers.shafts.size else np.eye(m)
    return np.all(rubs | (back[:n] == 0.0), axis=1)


@compiled
def to_shafts(shafts, M, H, w, force):
    """Add the arm's M (n, n) to H (m, m), and transform the speeds w and `force` (m,) to the shafts."""
    n, m = len(M), len(w)
    back, speed, torque, M_back = shafts[1], w.copy(), force.copy(), np.zeros((n, m))
    for k in range(n):
        for i in range(n):
            for j in range(m):
                M_back[i, j] += M[i, k] * back[k, j]
    for i in range(m):
        w[i], force[i] = 0.0, 0.0
        for k in range(m):
            w[i] += shafts[0, i, k] * speed[k]
            force[i] += back[k, i] * torque[k]
        for k in range(n):
            for j in range(i + 1):
                H[i, j] += back[k, i] * M_back[k, j]


@compiled
def from_shafts(shafts, a, held):
    """Transform accelerations (m,) back from the shafts; joints and motors rest if all their shafts do."""
    back, of_shafts, shafts_held, m = shafts[1], a.copy(), held.copy(), len(a)
    for i in range(m):
        a[i], held[i] = 0.0, 1
        for k in range(m):
            if back[i, k] != 0.0:
                a[i] += back[i, k] * of_shafts[k]
                held[i] *= shafts_held[k]


@partial(compiled, inline="always")
def drive_accelerations(numbers, M, h, tau, q, qd, q_motor, qd_motor, tau_joint, a):
    """Compute the accelerations of joints and motors, and the torque on the arm.

    The arguments are those of `drive_step`, and a (m,) is the output, in [rad/s^2].

    Returns:
        held (m,), nonzero where a joint or a motor sticks, and whether any shaft does.
    """
    # Local names, because every access to a tuple counts references.
    dt, elastic, springs, shafts = numbers.dt, numbers.elastic, numbers.springs, numbers.shafts
    inertia, friction = numbers.inertia, numbers.friction
    n, e = len(q), len(elastic)
    m, coupled = n + e, shafts.shape[1] > 0
    # One array instead of three, because their allocation would take as long as solving.
    work = np.empty((m + 2, m))
    H, w, force = work[:m], work[m], work[m + 1]
    for i in range(n):
        w[i] = qd[i]
        force[i] = tau[i] - h[i]
    for k in range(e):
        joint, motor = elastic[k], n + k
        w[motor] = qd_motor[joint]
        T = springs[0, k] * (q_motor[joint] - q[joint]) + springs[1, k] * (qd_motor[joint] - qd[joint])
        force[joint] = T - h[joint]
        force[motor] = tau[joint] - T
    for i in range(m):
        for j in range(i + 1):
            H[i, j] = inertia[i, j]
            if i < n and not coupled:
                H[i, j] += M[i, j]
    if coupled:
        to_shafts(shafts, M, H, w, force)
    for i in range(m):
        force[i] -= smooth_friction(friction, i, w[i], w[i])
    held = accelerations_with_friction(H, force, friction, w, tau_joint, dt, a)
    sticks = False
    for i in range(m):
        sticks = sticks or held[i] != 0
    if coupled:
        from_shafts(shafts, a, held)
    for i in range(n):
        torque = h[i]
        for j in range(n):
            torque += M[i, j] * a[j]
        tau_joint[i] = torque
    return held, sticks


@partial(compiled, inline="always")
def drive_step(numbers, M, h, tau, q, qd, q_motor, qd_motor, next_qd, next_qd_motor, tau_joint):
    """Compute the speeds after a step, and the torque on the arm.

    Args:
        numbers: numbers of the drives.
        M: (n, n) mass matrix of the arm without drives, in [kg m^2].
        h: (n,) Coriolis and gravity torque of the arm, less the torque of external forces, in [N m].
        tau: (n,) torque of the motors at the joints, N^T tau_m, in [N m].
        q: (n,) positions of the joints, in [rad].
        qd: (n,) speeds of the joints, in [rad/s].
        q_motor: (n,) positions of the motors in joint units, in [rad]; unused for a rigid drive.
        qd_motor: (n,) speeds of the motors, in [rad/s].
        next_qd: (n,) output: the joints' speeds after the step, in [rad/s].
        next_qd_motor: (n,) output: the motors' speeds after the step; for a rigid drive that of the joint.
        tau_joint: (n,) torque of the drives on the arm in the step before, replaced by that in the step, in
            [N m].

    Returns:
        True if a joint or a motor sticks.
    """
    dt, elastic, n = numbers.dt, numbers.elastic, len(q)
    a = np.empty(len(numbers.inertia))
    held, sticks = drive_accelerations(numbers, M, h, tau, q, qd, q_motor, qd_motor, tau_joint, a)
    for i in range(n):
        next_qd[i] = 0.0 if held[i] != 0 else qd[i] + dt * a[i]
        next_qd_motor[i] = next_qd[i]
    for k in range(len(elastic)):
        motor = elastic[k]
        next_qd_motor[motor] = 0.0 if held[n + k] != 0 else qd_motor[motor] + dt * a[n + k]
    return sticks


MOST_LOAD_ROUNDS = 2000
"""Rounds in which the torque on the arm and the friction that grows with it agree; usually some ten."""


@compiled
def rigid_accelerations(dt, inertia, friction, springs, elastic, shafts, M, h, tau, qd, tau_joint, qdd):
    """Compute the accelerations of N arms with rigid drives; every array from M on has a row per arm.

    With a step, friction by load depends on the torque on the arm in the step before, as in `drive_step`.
    At the instant, `dt = 0`, it depends on the present one, which depends on the acceleration.

    Args:
        dt: see `DriveNumbers`, whose members are separate arguments as those of `advance`.
        inertia: see `DriveNumbers`.
        friction: see `DriveNumbers`.
        springs: see `DriveNumbers`.
        elastic: see `DriveNumbers`.
        shafts: see `DriveNumbers`.
        M: see `drive_step`.
        h: see `drive_step`.
        tau: see `drive_step`.
        qd: see `drive_step`.
        tau_joint: torque on the arm in the step before, or a guess of the present one; replaced by that of
            the acceleration.
        qdd: output, in [rad/s^2].

    Returns:
        Index of an arm whose friction by load has no solution that the rounds find; -1 if there is none.
    """
    numbers = DriveNumbers(dt, inertia, friction, springs, elastic, shafts)
    by_load = dt == 0.0 and np.max(friction[LOAD]) > 0.0
    for k in range(len(qd)):
        for rounds in range(MOST_LOAD_ROUNDS):
            guess = tau_joint[k].copy()
            drive_accelerations(numbers, M[k], h[k], tau[k], qd[k], qd[k], qd[k], qd[k], tau_joint[k], qdd[k])
            size = np.max(np.abs(tau_joint[k])) + np.max(np.abs(tau[k]))
            if not by_load or not np.max(np.abs(tau_joint[k] - guess)) > 4e-16 * size:
                break
            if rounds == MOST_LOAD_ROUNDS - 1:
                return k
    return -1


@compiled
def rest_motors(numbers, h, motors):
    """Move the motors from the joints' positions to those at which the springs carry the moving arm.

    Args:
        numbers: numbers of the drives.
        h: (n,) Coriolis and gravity torque, in [N m].
        motors: (2, n) positions and speeds of the joints, replaced by those of the motors in joint units.
    """
    for k in range(len(numbers.elastic)):
        joint = numbers.elastic[k]
        motors[0, joint] += h[joint] / numbers.springs[0, k]


@compiled
def drive_steps(numbers, M, h, tau, q, qd, q_motor, qd_motor, tau_joint):
    """Advance N arms by one step in place; every array has a row per arm, see `drive_step`."""
    next_qd, next_qd_motor = np.empty(q.shape[1]), np.empty(q.shape[1])
    for k in range(len(q)):
        drive_step(
            numbers, M[k], h[k], tau[k], q[k], qd[k], q_motor[k], qd_motor[k], next_qd, next_qd_motor,
            tau_joint[k],
        )  # fmt: skip
        for i in range(q.shape[1]):
            qd[k, i], qd_motor[k, i] = next_qd[i], next_qd_motor[i]
            q[k, i] += qd[k, i] * numbers.dt
            q_motor[k, i] += qd_motor[k, i] * numbers.dt


TAU, H, Q, QD, Q_MOTOR, QD_MOTOR, NEXT_QD, NEXT_QD_MOTOR, TAU_JOINT = range(9)
"""Rows of a drive train's signals: inputs of a step, the motors' state, and outputs of the step."""


class DriveTrain:
    """Drives between the torque of the motors and the torque on the arm.

    Attributes:
        signals: (9, n) inputs and outputs of `drive_step`, one row each; see `TAU` and the others.
        tau_joint: (n,) torque of the drives on the arm in the last step, in [N m].
        next_qd: (n,) speeds of the joints after that step, in [rad/s].
        sticks: whether a joint or a motor stuck in that step.
        can_stick: (n,) whether friction can hold the joint itself, not only the motor of its spring.

    Args:
        drives: drives of the arm.
        mode: `"rigid"` or `"elastic"`.
        time_step: integration step, in [s].
    """

    def __init__(self, drives: Drives, mode: str, time_step: float) -> None:
        self._numbers = drive_numbers(drives, mode, time_step)
        self._elastic = self._numbers.elastic
        self.signals = np.zeros((9, drives.n))
        self._motors = self.signals[Q_MOTOR : QD_MOTOR + 1]
        self.tau_joint, self.next_qd, self.sticks = self.signals[TAU_JOINT], self.signals[NEXT_QD], False
        self.can_stick = joints_that_can_stick(self._numbers)

    def reset(self, q: np.ndarray, qd: np.ndarray, h: np.ndarray) -> None:
        """Place the motors where the springs carry the moving arm under the bias h.

        Args:
            q: (n,) positions of the arm, in [rad].
            qd: (n,) velocities of the arm, in [rad/s].
            h: (n,) Coriolis and gravity torque in that state, in [N m].
        """
        self._motors[:] = q, qd
        rest_motors(self._numbers, h, self._motors)
        self.tau_joint[:] = h

    def motor_state(self, state: np.ndarray) -> np.ndarray:
        """Return positions and speeds (2, n) of the motors in joint units, in [rad, rad/s].

        Args:
            state: (2, n) positions and speeds of the joints, which rigid drives follow.
        """
        motors = state.copy()
        motors[:, self._elastic] = self._motors[:, self._elastic]
        return motors

    def step(self, M: np.ndarray, h: np.ndarray, tau: np.ndarray, q: np.ndarray, qd: np.ndarray) -> None:
        """Advance the motors by one step, and compute `next_qd` and `tau_joint` of the arm.

        Args:
            M: (n, n) mass matrix of the arm, in [kg m^2].
            h: (n,) bias of the arm, in [N m].
            tau: (n,) torque of the motors at the joints, in [N m].
            q: (n,) positions of the arm, in [rad].
            qd: (n,) velocities of the arm, in [rad/s].
        """
        self.signals[TAU : QD + 1] = tau, h, q, qd
        self.advance(M)

    def advance(self, M: np.ndarray) -> None:
        """Advance by one step; `signals` already contains the torque, the bias and the state."""
        self.sticks = advance(*self._numbers, M, self.signals)


@compiled
def advance(dt, inertia, friction, springs, elastic, shafts, M, signals):
    """Make a step on the signals of a `DriveTrain`, and move the motors of elastic joints.

    The members of `DriveNumbers` are separate arguments, because numba needs as long as for a step to
    determine the type of such a tuple.
    """
    numbers = DriveNumbers(dt, inertia, friction, springs, elastic, shafts)
    inputs, motors = signals[TAU : QD + 1], signals[Q_MOTOR : QD_MOTOR + 1]
    next_qd, next_qd_motor, tau_joint = signals[NEXT_QD], signals[NEXT_QD_MOTOR], signals[TAU_JOINT]
    sticks = drive_step(
        numbers, M, inputs[H], inputs[TAU], inputs[Q], inputs[QD], motors[0], motors[1], next_qd,
        next_qd_motor, tau_joint,
    )  # fmt: skip
    for joint in elastic:
        motors[1, joint] = next_qd_motor[joint]
        motors[0, joint] += dt * next_qd_motor[joint]
    return sticks


class DriveModel(NamedTuple):
    """Drives of n joints for control laws.

    Attributes:
        inertia: (n, n) inertia A of the rotors at the joints, in [kg m^2]; zeros for ideal drives.
        friction: (8 + n, n), see `twin.robot.drives.friction`.
        shafts: (n, n) matrix from joint speeds to those of the shafts with friction; (0, 0) if equal.
    """

    inertia: np.ndarray
    friction: np.ndarray
    shafts: np.ndarray

    @classmethod
    def of(cls, drives: Drives | None, n: int) -> DriveModel:
        """Return the model of these drives of n joints; `None` stands for ideal drives."""
        if drives is None:
            return cls(np.zeros((n, n)), np.zeros((TRANSMISSION + n, n)), np.zeros((0, 0)))
        shafts = drives.friction_matrix.copy()
        if np.array_equal(shafts, np.eye(n)):
            shafts = np.zeros((0, 0))
        return cls(drives.reflected_inertia.copy(), friction_rows(drives), shafts)


@compiled
def are_ideal(drives):
    """Return whether a `DriveModel` has neither rotors nor friction."""
    for rows in (drives.inertia, drives.friction):
        for i in range(rows.shape[0]):
            for j in range(rows.shape[1]):
                if rows[i, j] != 0.0:
                    return False
    return True


@compiled
def add_drive_torque(drives, qd, qdd, period, load, tau):
    """Add to `tau` the torque that the drives consume for an acceleration.

    Friction is that of a step: its sign and its viscous part belong to the speed after the period.  With the
    period 0 it is that of the instant, and a shaft at rest rubs against its acceleration.

    Args:
        drives: a `DriveModel`.
        qd: (n,) joint speeds, in [rad/s].
        qdd: (n,) desired accelerations, in [rad/s^2].
        period: duration of the accelerations, in [s].
        load: (n,) torque on the arm by which friction grows, in [N m]: in a plant, that of the step before;
            `tau` itself is allowed.
        tau: (n,) torque, in [N m]; changed in place.

    Example:
        >>> import numpy as np
        >>> from twin.physics.robot.drives.drive_step import DriveModel, add_drive_torque
        >>> drives = DriveModel(inertia=2.0 * np.eye(1), friction=np.zeros((9, 1)), shafts=np.empty((0, 0)))
        >>> add_drive_torque(drives, np.zeros(1), np.array([3.0]), 1e-3, np.zeros(1), tau := np.ones(1))
        >>> tau.tolist()  # 1 + 2 * 3
        [7.0]
    """
    add_rotors_and_friction(drives.inertia, drives.friction, drives.shafts, qd, qdd, period, load.copy(), tau)


@partial(compiled, **NO_COUNTS)
def add_rotors_and_friction(inertia, friction, shafts, qd, qdd, period, load, tau):
    """Add to `tau` as `add_drive_torque` does, with the members of its `DriveModel`; `load` is not `tau`."""
    n, coupled = len(qd), len(shafts) > 0
    for i in range(n):
        torque = tau[i]
        for j in range(n):
            torque += inertia[i, j] * qdd[j]
        tau[i] = torque
    for i in range(n):
        before, after, rate = qd[i], qd[i] + period * qdd[i], qdd[i]
        if coupled:
            before, after, rate = 0.0, 0.0, 0.0
            for j in range(n):
                before += shafts[i, j] * qd[j]
                after += shafts[i, j] * (qd[j] + period * qdd[j])
                rate += shafts[i, j] * qdd[j]
        rub = smooth_friction(friction, i, after, before)
        direction = rate if period == 0.0 and abs(before) <= AT_REST else after
        if abs(direction) > AT_REST:  # otherwise the shaft sticks, and needs no torque
            rub += friction_level(friction, i, before, load) * np.sign(direction)
        if coupled:
            for j in range(n):
                tau[j] += shafts[i, j] * rub
        else:
            tau[i] += rub


@partial(compiled, **NO_COUNTS)
def torques_with_drives(qd, qdd, load, inertia, friction, shafts, tau):
    """Fill `tau` (N, n) with the torques `load` on N arms plus those that their drives consume now."""
    for k in range(len(tau)):
        for i in range(tau.shape[1]):
            tau[k, i] = load[k, i]
        add_rotors_and_friction(inertia, friction, shafts, qd[k], qdd[k], 0.0, load[k], tau[k])

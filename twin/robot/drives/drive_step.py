"""One time step of an arm with its drives, and the drive train that takes such steps.

Engine, analytic plant and rollouts hand it their mass matrix M and bias h, and it gives the speeds after the
step and the torque that the arm got.  Rigid drives:

    (M + A) qdd = tau - h - R^T F(R qd+),     A = N^T J N,  tau = N^T tau_m

`R qd` are the speeds of the shafts that rub, in joint units: those of the motors, or of the joints.  Where
joints are elastic their motors have angles `theta = q_motor` of their own:

    M qdd + h = T,     A thetadd = tau - T - R^T F(R thetad+),     T = K (theta - q) + D (thetad - qd)

with the spring at `e + dt (thetad+ - thetad - qd+ + qd) / 4`, where `e = theta - q` before the step, and the
damper at the mean of the speeds before and after it.  With the engine's recursion `q+ = q + dt qd+` this is
the average of the spring's torques at three neighbouring steps, 1/4, 1/2 and 1/4, and so Newmark's method of
constant average acceleration: stable at any stiffness, without damping of its own.

Unknowns are the accelerations of the joints and of the elastic joints' motors, m together, in coordinates of
which each is the speed of one shaft that rubs, so that friction couples none of them.

Sources: Norrlöf 1999, eq. (3.70); Ljubljana lab manual, eq. (6.93); N. Newmark, "A method of computation for
structural dynamics", J. Eng. Mech. Div. ASCE 85 (1959), beta = 1/4.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from twin.jit import compiled
from twin.robot.drives.drives import MOTOR, Drives
from twin.robot.drives.friction import (
    AT_REST,
    COULOMB,
    EXCESS,
    VISCOUS,
    accelerations_with_friction,
    friction_level,
    friction_rows,
)


class DriveNumbers(NamedTuple):
    """The drives of n joints, of which e are elastic, as compiled code takes them; m = n + e shafts.

    Attributes:
        dt: the step, in [s].
        inertia: (m, m), all of the equations' matrix but M: rotors, springs, dampers and viscous friction.
        friction: (4, m), see `twin.robot.drives.friction`.
        springs: (2, e) stiffness in [N m/rad] and damping in [N m s/rad].
        elastic: (e,) the elastic joints.
        shafts: (2, m, m) from the speeds of joints and motors to those of the shafts, and back;
            (2, 0, 0) where they are the same.
    """

    dt: float
    inertia: np.ndarray
    friction: np.ndarray
    springs: np.ndarray
    elastic: np.ndarray
    shafts: np.ndarray


def drive_numbers(drives: Drives | None, mode: str, dt: float) -> DriveNumbers:
    """What a step of `dt`, in [s], needs to know of `"rigid"` or `"elastic"` drives; empty for ideal ones."""
    if drives is None:
        empty, none = np.zeros((2, 0, 0)), np.zeros(0, dtype=np.int64)
        return DriveNumbers(float(dt), empty[0], np.zeros((4, 0)), np.zeros((2, 0)), none, empty)
    n, A = drives.n, drives.reflected_inertia
    elastic = np.flatnonzero(np.isfinite(drives.stiffness)) if mode == "elastic" else np.zeros(0, dtype=int)
    m = n + len(elastic)
    own = np.arange(n)  # which coordinate the motor of a joint is
    own[elastic] = np.arange(n, m)
    thetad, twist = np.zeros((n, m)), np.zeros((len(elastic), m))
    thetad[np.arange(n), own] = 1.0
    for row, joint in enumerate(elastic):
        twist[row, own[joint]], twist[row, joint] = 1.0, -1.0
    springs = np.array([drives.stiffness[elastic], drives.damping[elastic]])
    inertia = thetad.T @ A @ thetad
    inertia += twist.T @ ((dt**2 / 4 * springs[0] + dt / 2 * springs[1])[:, None] * twist)
    rows, friction, shafts = friction_rows(drives), np.zeros((4, m)), np.eye(m)
    for joint, side in enumerate(drives.friction_at):
        shaft = own[joint] if side == MOTOR else joint
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
    """Whether friction can hold a joint (n,): there is some on all shafts that its speed hangs on."""
    m, n = len(numbers.inertia), len(numbers.inertia) - len(numbers.elastic)
    rubs = numbers.friction[COULOMB] + numbers.friction[EXCESS] > 0.0
    back = numbers.shafts[1] if numbers.shafts.size else np.eye(m)
    return np.all(rubs | (back[:n] == 0.0), axis=1)


@compiled
def to_shafts(shafts, M, H, w, force):
    """Add the arm's M (n, n) to H (m, m), and take the speeds w and `force` (m,) over to the shafts."""
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
    """Take accelerations (m,) back from the shafts; joints and motors stand still if all their shafts do."""
    back, of_shafts, shafts_held, m = shafts[1], a.copy(), held.copy(), len(a)
    for i in range(m):
        a[i], held[i] = 0.0, 1
        for k in range(m):
            if back[i, k] != 0.0:
                a[i] += back[i, k] * of_shafts[k]
                held[i] *= shafts_held[k]


@partial(compiled, inline="always")
def drive_step(numbers, M, h, tau, q, qd, q_motor, qd_motor, next_qd, next_qd_motor, tau_joint):
    """The speeds after a step, and what the arm got.

    Args:
        numbers: of the drives.
        M: (n, n) mass matrix of the arm without drives, in [kg m^2].
        h: (n,) its Coriolis and gravity torque, less what acts on it from outside, in [N m].
        tau: (n,) torque of the motors at the joints, N^T tau_m, in [N m].
        q: (n,) positions of the joints, in [rad].
        qd: (n,) their speeds, in [rad/s].
        q_motor: (n,) positions of the motors in joint units, in [rad]; of a rigid drive not looked at.
        qd_motor: (n,) their speeds, in [rad/s].
        next_qd: (n,) filled with the joints' speeds after the step, in [rad/s].
        next_qd_motor: (n,) filled with those of the motors; of a rigid drive they are the joint's.
        tau_joint: (n,) filled with the torque that the arm gets from its drives in the step, in [N m].

    Returns:
        Whether some joint or motor sticks.
    """
    # Local names: reaching into a tuple counts references, every time.
    dt, elastic, springs, shafts = numbers.dt, numbers.elastic, numbers.springs, numbers.shafts
    inertia, friction = numbers.inertia, numbers.friction
    n, e = len(q), len(elastic)
    m, coupled = n + e, shafts.shape[1] > 0
    # One array in the place of four: setting them aside would take as long as solving.
    work = np.empty((m + 3, m))
    H, w, force, a = work[:m], work[m], work[m + 1], work[m + 2]
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
        force[i] -= friction[VISCOUS, i] * w[i]
    held = accelerations_with_friction(H, force, friction, w, dt, a)
    sticks = False
    for i in range(m):
        sticks = sticks or held[i] != 0
    if coupled:
        from_shafts(shafts, a, held)
    for i in range(n):
        next_qd[i] = 0.0 if held[i] != 0 else qd[i] + dt * a[i]
        next_qd_motor[i] = next_qd[i]
    for k in range(e):
        motor = elastic[k]
        next_qd_motor[motor] = 0.0 if held[n + k] != 0 else qd_motor[motor] + dt * a[n + k]
    for i in range(n):
        torque = h[i]
        for j in range(n):
            torque += M[i, j] * a[j]
        tau_joint[i] = torque
    return sticks


@compiled
def rest_motors(numbers, h, motors):
    """Move the motors from where the joints are to where the springs carry the arm, and move on with it.

    Args:
        numbers: of the drives.
        h: (n,) Coriolis and gravity torque, in [N m].
        motors: (2, n) positions and speeds of the motors in joint units; those of the joints, altered.
    """
    for k in range(len(numbers.elastic)):
        joint = numbers.elastic[k]
        motors[0, joint] += h[joint] / numbers.springs[0, k]


@compiled
def drive_steps(numbers, M, h, tau, q, qd, q_motor, qd_motor, tau_joint):
    """Advance N arms by a step each, in place, of which every array has a row: see `drive_step`."""
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
"""The rows of a drive train's signals: what goes into a step, the motors' state, and what comes out."""


class DriveTrain:
    """Between the torque that a plant is stepped with and the torque that its arm gets.

    Attributes:
        signals: (9, n) all that `drive_step` reads and writes, a row each; see `TAU` and the others.
        tau_joint: (n,) torque that the arm got from its drives in the last step, in [N m].
        next_qd: (n,) the joints' speeds after it, in [rad/s].
        sticks: whether a joint or a motor stuck in it.
        can_stick: (n,) whether friction can hold the joint itself, not the motor of its spring alone.

    Args:
        drives: of the arm.
        mode: `"rigid"` or `"elastic"`.
        time_step: of the integration, in [s].
    """

    def __init__(self, drives: Drives, mode: str, time_step: float) -> None:
        self._numbers = drive_numbers(drives, mode, time_step)
        self._elastic = self._numbers.elastic
        self.signals = np.zeros((9, drives.n))
        self._motors = self.signals[Q_MOTOR : QD_MOTOR + 1]
        self.tau_joint, self.next_qd, self.sticks = self.signals[TAU_JOINT], self.signals[NEXT_QD], False
        self.can_stick = joints_that_can_stick(self._numbers)

    def reset(self, q: np.ndarray, qd: np.ndarray, h: np.ndarray) -> None:
        """Put the motors where the springs carry the arm: where they move on with it, under the bias h.

        Args:
            q: (n,) positions of the arm, in [rad].
            qd: (n,) its velocities, in [rad/s].
            h: (n,) Coriolis and gravity torque there, in [N m].
        """
        self._motors[:] = q, qd
        rest_motors(self._numbers, h, self._motors)
        self.tau_joint[:] = h

    def motor_state(self, state: np.ndarray) -> np.ndarray:
        """Positions and speeds (2, n) of the motors in joint units, in [rad, rad/s].

        Args:
            state: (2, n) of the joints, which rigid drives follow.
        """
        motors = state.copy()
        motors[:, self._elastic] = self._motors[:, self._elastic]
        return motors

    def step(self, M: np.ndarray, h: np.ndarray, tau: np.ndarray, q: np.ndarray, qd: np.ndarray) -> None:
        """Advance the motors; of the arm it fills `next_qd` and `tau_joint`.

        Args:
            M: (n, n) mass matrix of the arm, in [kg m^2].
            h: (n,) its bias, in [N m].
            tau: (n,) torque of the motors at the joints, in [N m].
            q: (n,) positions of the arm, in [rad].
            qd: (n,) its velocities, in [rad/s].
        """
        self.signals[TAU : QD + 1] = tau, h, q, qd
        self.advance(M)

    def advance(self, M: np.ndarray) -> None:
        """The same where `signals` has the torque, the bias and the state already."""
        self.sticks = advance(*self._numbers, M, self.signals)


@compiled
def advance(dt, inertia, friction, springs, elastic, shafts, M, signals):
    """Make a step on the signals of a `DriveTrain`, and move the motors of elastic joints.

    The `DriveNumbers` come one by one, since finding out the type of such a tuple costs as much as the step.
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
    """The drives of n joints as laws take them.

    Attributes:
        inertia: (n, n) of the rotors at the joints, A, in [kg m^2]; zeros where drives are ideal.
        friction: (4, n), see `twin.robot.drives.friction`.
        shafts: (n, n) from joint speeds to those of the shafts that rub; (0, 0) where they are the same.
    """

    inertia: np.ndarray
    friction: np.ndarray
    shafts: np.ndarray

    @classmethod
    def of(cls, drives: Drives | None, n: int) -> DriveModel:
        """What is known of these drives of n joints; `None` stands for ideal ones."""
        if drives is None:
            return cls(np.zeros((n, n)), np.zeros((4, n)), np.zeros((0, 0)))
        shafts = drives.friction_matrix.copy()
        if np.array_equal(shafts, np.eye(n)):
            shafts = np.zeros((0, 0))
        return cls(drives.reflected_inertia.copy(), friction_rows(drives), shafts)


@compiled
def add_drive_torque(drives, qd, qdd, period, tau):
    """Add to `tau` what the drives take for themselves on the way to an acceleration.

    Args:
        drives: a `DriveModel`.
        qd: (n,) joint speeds, in [rad/s].
        qdd: (n,) the accelerations that are wanted, in [rad/s^2].
        period: for which they last, in [s].
        tau: (n,), in [N m], added to.
    """
    n, coupled = len(qd), len(drives.shafts) > 0
    for i in range(n):
        torque = tau[i]
        for j in range(n):
            torque += drives.inertia[i, j] * qdd[j]
        tau[i] = torque
    for i in range(n):
        before, after = qd[i], qd[i] + period * qdd[i]
        if coupled:
            before, after = 0.0, 0.0
            for j in range(n):
                before += drives.shafts[i, j] * qd[j]
                after += drives.shafts[i, j] * (qd[j] + period * qdd[j])
        rub = drives.friction[VISCOUS, i] * after
        if abs(after) > AT_REST:  # else the shaft sticks by itself, and needs no torque to
            rub += friction_level(drives.friction, i, before) * np.sign(after)
        if coupled:
            for j in range(n):
                tau[j] += drives.shafts[i, j] * rub
        else:
            tau[i] += rub

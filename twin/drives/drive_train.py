"""The drives of one simulated arm: what they are, and where its motors are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twin.drives.drive_step import (
    DriveNumbers,
    drive_numbers,
    drive_step,
    joints_that_can_stick,
    rest_motors,
)
from twin.drives.drives import Drives
from twin.drives.friction import AT_REST, VISCOUS, friction_level, friction_rows
from twin.jit import compiled

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
        friction: (4, n), see `twin.drives.friction`.
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

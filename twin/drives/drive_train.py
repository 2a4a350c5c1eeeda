"""The drives of one simulated arm: what they are, and where its motors are."""

from __future__ import annotations

import numpy as np

from twin.drives.drive_step import drive_numbers, drive_step, rest_motors
from twin.drives.drives import Drives


class DriveTrain:
    """Between the torque that a plant is stepped with and the torque that its arm gets.

    Attributes:
        tau_joint: (n,) torque that the arm got from its drives in the last step, in [N m].
        next_qd: (n,) the joints' speeds after it, in [rad/s].
        sticks: whether a joint or a motor stuck in it.

    Args:
        drives: of the arm.
        mode: `"rigid"` or `"elastic"`.
        time_step: of the integration, in [s].
    """

    def __init__(self, drives: Drives, mode: str, time_step: float) -> None:
        self._numbers = drive_numbers(drives, mode, time_step)
        self._elastic = self._numbers.elastic
        self._motors, self._next_motors = np.zeros((2, drives.n)), np.zeros(drives.n)
        self.tau_joint, self.next_qd, self.sticks = np.zeros(drives.n), np.zeros(drives.n), False

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
        theta, thetad = self._motors
        self.sticks = drive_step(
            self._numbers, M, h, tau, q, qd, theta, thetad, self.next_qd, self._next_motors, self.tau_joint
        )
        thetad[:] = self._next_motors
        theta += thetad * self._numbers.dt

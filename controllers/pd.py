"""Proportional-derivative feedback, alone and with the weight of the arm taken off.

    PD:         tau = Kp (q_ref - q) + Kd (qd_ref - qd)
    PDGravity:  tau = Kp (q_ref - q) + Kd (qd_ref - qd) + g(q)

Both ignore the inertial torque that the motion itself needs, so their tracking error is about that
missing torque over Kp. The plain law also sags: at rest `Kp e = g(q_ref - e)`. The gains are derived in
`controllers.gains`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from controllers.gains import pd_gains

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from twin.robot import Robot
    from twin.sampling import Reference, State


class PD:
    """Spring and damper at every joint."""

    name = "pd"

    def __init__(self, robot: Robot, *, bandwidth: ArrayLike = 20.0, period: float = 1e-3) -> None:
        """Derive the gains from the model.

        Args:
            robot: the controller's own model of the robot.
            bandwidth: omega, scalar or (n,), in [rad/s].
            period: unused; every law takes the same arguments.
        """
        self.robot = robot
        self.gains = pd_gains(robot, bandwidth)

    def __call__(self, state: State, reference: Reference) -> NDArray:
        """Demanded torques (n,) in [N m]."""
        return self.gains.Kp * (reference.q - state.q) + self.gains.Kd * (reference.qd - state.qd)

    def reset(self) -> None:
        """Nothing to forget: the law has no memory."""


class PDGravity(PD):
    """Spring and damper at every joint, and the gravity torque of the measured pose."""

    name = "pd_gravity"

    def __call__(self, state: State, reference: Reference) -> NDArray:
        """Demanded torques (n,) in [N m]."""
        robot = self.robot
        weight = np.empty(robot.n)
        robot.kernels.gravity_torque(state.q, robot.inertias, robot.gravity, weight)
        return super().__call__(state, reference) + weight

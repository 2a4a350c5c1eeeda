"""Computed torque: the model's own torque for the acceleration that the error asks for.

    tau = M(q) [qdd_ref + Kv (qd_ref - qd) + Kp (q_ref - q)] + C(q, qd) qd + g(q)
    Kp = diag(omega_i^2),  Kv = diag(2 omega_i)                 (Aliaga 2019, eqs. (2.28)-(2.29))

On a robot that is the model, every joint becomes `edd + 2 omega ed + omega^2 e = 0`, whatever the others
do. The right-hand side is the inverse dynamics of the commanded acceleration, so the whole law is one
call of the recursive Newton-Euler kernel; no mass matrix is formed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from controllers.gains import natural_frequencies
from twin.control.control_law import ControlLaw, kept_law

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from twin.control.control_law import Model
    from twin.robot.robot import Robot
    from twin.trajectories.sampling import Reference, State


@kept_law
def computed_torque(
    state: State, reference: Reference, parameters: NDArray, memory: NDArray, model: Model
) -> NDArray:
    """The law with Kp and Kv as parameters; see `twin.control.control_law`."""
    Kp, Kv = parameters[0], parameters[1]
    qdd = reference.qdd + Kv * (reference.qd - state.qd) + Kp * (reference.q - state.q)
    tau = np.empty(len(qdd))
    model.inverse_dynamics(state.q, state.qd, qdd, model.inertias, model.gravity, tau)
    return tau


class ComputedTorque(ControlLaw):
    """Inverse dynamics of the reference acceleration plus PD in acceleration units."""

    name = "computed_torque"

    def __init__(self, robot: Robot, *, bandwidth: ArrayLike = 20.0, period: float = 1e-3) -> None:
        """Place the poles.

        Args:
            robot: the controller's own model of the robot.
            bandwidth: natural frequencies omega, scalar or (n,), in [rad/s].
            period: unused; every law takes the same arguments.
        """
        omega = natural_frequencies(bandwidth, robot.n)
        super().__init__(robot, computed_torque, (omega**2, 2 * omega))

    @property
    def Kp(self) -> NDArray:
        """omega^2 (n,), in [1/s^2]."""
        return self.parameters[0]

    @property
    def Kv(self) -> NDArray:
        """2 omega (n,), in [1/s]."""
        return self.parameters[1]

"""Computed torque: the model's torque for the reference acceleration plus feedback.

    tau = M(q) [qdd_ref + Kv (qd_ref - qd) + Kp (q_ref - q)] + C(q, qd) qd + g(q)
    Kp = diag(omega_i^2),  Kv = diag(2 omega_i)                 (Aliaga 2019, eqs. (2.28)-(2.29))

If the model is exact, every joint obeys `edd + 2 omega ed + omega^2 e = 0`, independent of the others.  The
right-hand side is the inverse dynamics of the commanded acceleration, so the whole law is one call of
`twin.control.control_law.motor_torque`; no mass matrix is formed.

For a model with drives, the torque of rotors and friction belongs to it (elastic drives act as rigid ones):

    tau = M a + C qd + g + A a + F,     a = qdd_ref + Kv (qd_ref - qd) + Kp (q_ref - q)

F is the friction in the coming step: its level at the measured speed, its sign and its viscous part at the
speed `qd + T a` after the period T (`robot/drives/drive_step.py`).  On a plant with the same drives this
is exact, also at reversals.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from controllers.gains import AccelerationGains, acceleration_gains, with_chosen
from twin.physics.control.control_law import ControlLaw, Model, compiled_law, load_memory, motor_torque
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.sampling import Reference, State


@compiled_law
def computed_torque(
    state: State, reference: Reference, parameters: NDArray, memory: NDArray, model: Model
) -> NDArray:
    """Return the torque; Kp and Kv are the parameters, see `twin.control.control_law`."""
    Kp, Kv = parameters[0], parameters[1]
    qdd = reference.qdd + Kv * (reference.qd - state.qd) + Kp * (reference.q - state.q)
    tau = np.empty(len(qdd))
    motor_torque(model, state.q, state.qd, qdd, memory, tau)
    return tau


class ComputedTorque(ControlLaw):
    """Inverse dynamics of the reference acceleration plus PD in acceleration units."""

    name = "computed_torque"

    def __init__(
        self, robot: Robot, *, bandwidth: ArrayLike = 20.0, period: float = 1e-3,
        Kp: ArrayLike | None = None, Kv: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        """Derive the gains from the bandwidth, except for those that are given.

        Args:
            robot: the controller's model of the robot, drives included.
            bandwidth: natural frequencies omega, scalar or (n,), in [rad/s].
            period: time between two calls, in [s]; friction is predicted at its end.
            Kp: position gain, scalar or (n,), in [1/s^2].
            Kv: speed gain, scalar or (n,), in [1/s].
        """
        gains = with_chosen(acceleration_gains(robot, bandwidth), Kp=Kp, Kv=Kv)
        super().__init__(robot, computed_torque, gains, memory=load_memory(robot), period=period)

    @property
    def gains(self) -> AccelerationGains:
        """Gains Kp, Kv."""
        return AccelerationGains(*self.parameters)

    @property
    def Kp(self) -> NDArray:
        """Position gain, by default omega^2 (n,), in [1/s^2]."""
        return self.parameters[0]

    @property
    def Kv(self) -> NDArray:
        """Speed gain, by default 2 omega (n,), in [1/s]."""
        return self.parameters[1]

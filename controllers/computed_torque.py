"""Computed torque: the model's torque for the reference acceleration plus feedback; and its observer.

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

The disturbance observer finds and cancels torques that the model lacks.  The plant moves by `qd+ = qd + T
qdd` under the torque tau of its motors and a disturbance d: an unknown payload, another friction, a push.
From the speeds at both ends of a period, the model's torque for this motion less that of the motors is the
disturbance of the period,

    d_k = M(q_k) (qd_{k+1} - qd_k) / T + C qd_k + g(q_k) + A (qd_{k+1} - qd_k) / T + F_k - tau_k,

with the rotors' inertia A and the friction F of the model's drives.  In this discrete form d is exact up to
rounding if the measurements are, also while friction reverses; while a joint sticks, it is within the static
friction.  The estimate r follows with a first-order filter of the bandwidth K,

    r <- r + K T (d_k - r),

and the law is computed torque less r.  With an exact model r is rounding.  With delayed or filtered
measurements, or elastic drives, a high K rings: 100 rad/s is the default.

The torque of the motors is that of the state, not the demand: at a torque limit the two differ.

Source: the discrete form is ours; the observer in continuous time is A. De Luca's momentum observer with the
acceleration in place of the momentum's derivative.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from controllers.gains import AccelerationGains, ObserverGains, acceleration_gains, with_chosen
from twin.physics.control.control_law import ControlLaw, Model, compiled_law, load_memory, motor_torque
from twin.physics.control.supervision import observe, observer_memory
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


@compiled_law
def disturbance_observer(
    state: State, reference: Reference, parameters: NDArray, memory: NDArray, model: Model
) -> NDArray:
    """Return the torque; Kp, Kv and K are the parameters, see `twin.control.control_law`."""
    n, disturbance, load = len(state.q), memory[2], memory[4:]
    if len(state.tau) != n:
        raise ValueError("expected the torques that the motors gave, state.tau, one for each joint")
    observe(model, state.q, state.qd, state.tau, parameters[2], np.zeros(n), memory)
    Kp, Kv, tau = parameters[0], parameters[1], np.empty(n)
    qdd = reference.qdd + Kv * (reference.qd - state.qd) + Kp * (reference.q - state.q)
    motor_torque(model, state.q, state.qd, qdd, load.copy(), tau)  # the load follows from the actual motion
    return tau - disturbance


class DisturbanceObserver(ControlLaw):
    """Computed torque that finds and cancels the torques which its model lacks."""

    name = "dob"

    def __init__(
        self, robot: Robot, *, bandwidth: ArrayLike = 20.0, period: float = 1e-3,
        Kp: ArrayLike | None = None, Kv: ArrayLike | None = None, K: ArrayLike = 100.0,
    ) -> None:  # fmt: skip
        """Derive the gains from the bandwidth, except for those that are given.

        Args:
            robot: the controller's model of the robot, drives included.
            bandwidth: natural frequencies omega, scalar or (n,), in [rad/s].
            period: time between two calls, in [s].
            Kp: position gain, scalar or (n,), in [1/s^2].
            Kv: speed gain, scalar or (n,), in [1/s].
            K: bandwidth of the observer, scalar or (n,), in [1/s]; from 1 / period on it does not filter.
        """
        derived = acceleration_gains(robot, bandwidth)
        gains = with_chosen(ObserverGains(*derived, np.full(robot.n, 100.0)), Kp=Kp, Kv=Kv, K=K)
        super().__init__(
            robot, disturbance_observer, gains, memory=observer_memory(robot), period=period,
            signals={"disturbance": 2},
        )  # fmt: skip

    @property
    def gains(self) -> ObserverGains:
        """Gains Kp, Kv, K."""
        return ObserverGains(*self.parameters)

    @property
    def disturbance(self) -> NDArray:
        """Estimated disturbance (n,), the model's torque for the motion less that of the motors, in [N m]."""
        return self.memory[2]

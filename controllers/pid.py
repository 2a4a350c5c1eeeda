"""Feedback of each joint: proportional-derivative, with compensation of gravity, or with an integral.

    PD:         tau = Kp (q_ref - q) + Kd (qd_ref - qd)
    PDGravity:  tau = Kp (q_ref - q) + Kd (qd_ref - qd) + g(q)

Neither contains the inertial torque of the motion, so the tracking error is about that torque over Kp.
Without compensation the arm also sags: at rest `Kp e = g(q_ref - e)`.  The gains are derived in
`controllers.gains`.

PID is in the parallel form, with anti-windup:

    tau = Kp e + Ki int(e dt) + Kd ed,      e = q_ref - q       (Aliaga 2019, eq. (2.27))

The integral compensates the weight of the arm, so that a constant pose is held without error.  It is summed
by the rectangle rule, once per control period, including the present error.

Anti-windup is conditional integration: while the demanded torque of a joint exceeds the drive's limit, and
its error would increase the demand, the integral of that joint stops.  If the error would reduce the demand,
the integral continues.  Other joints are not affected.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from controllers.gains import PDGains, PIDGains, pd_gains, pid_gains, with_chosen
from twin.physics.control.control_law import ControlLaw, Law, Model, compiled_law
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.sampling import Reference, State


@compiled_law
def pd(state: State, reference: Reference, parameters: NDArray, memory: NDArray, model: Model) -> NDArray:
    """Return the torque; Kp and Kd are the parameters, see `twin.control.control_law`."""
    Kp, Kd = parameters[0], parameters[1]
    return Kp * (reference.q - state.q) + Kd * (reference.qd - state.qd)


@compiled_law
def pd_gravity(
    state: State, reference: Reference, parameters: NDArray, memory: NDArray, model: Model
) -> NDArray:
    """Return the torque with gravity compensation; Kp and Kd are the parameters."""
    Kp, Kd = parameters[0], parameters[1]
    weight = np.empty(len(state.q))
    model.gravity_torque(state.q, model.inertias, model.gravity, weight)
    return Kp * (reference.q - state.q) + Kd * (reference.qd - state.qd) + weight


class PD(ControlLaw):
    """Spring and damper at every joint."""

    name = "pd"
    function: Law = staticmethod(pd)

    def __init__(
        self, robot: Robot, *, bandwidth: ArrayLike = 20.0, period: float = 1e-3,
        Kp: ArrayLike | None = None, Kd: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        """Derive the gains from the model, except for those that are given.

        Args:
            robot: the controller's model of the robot.
            bandwidth: omega, scalar or (n,), in [rad/s].
            period: time between two calls, in [s]; not used.
            Kp: position gain, scalar or (n,), in [N m/rad].
            Kd: speed gain, scalar or (n,), in [N m s/rad].
        """
        gains = with_chosen(pd_gains(robot, bandwidth), Kp=Kp, Kd=Kd)
        super().__init__(robot, self.function, gains, period=period)

    @property
    def gains(self) -> PDGains:
        """Gains Kp, Kd."""
        return PDGains(*self.parameters)


class PDGravity(PD):
    """Spring and damper at every joint, and the gravity torque of the measured pose."""

    name = "pd_gravity"
    function = staticmethod(pd_gravity)


@compiled_law
def pid(state: State, reference: Reference, parameters: NDArray, memory: NDArray, model: Model) -> NDArray:
    """Return the torque; Kp, Ki and Kd are the parameters, the integral is the memory."""
    Kp, Ki, Kd = parameters[0], parameters[1], parameters[2]
    error = reference.q - state.q
    feedback = Kp * error + Kd * (reference.qd - state.qd)
    advanced = memory[0] + error * model.period
    demand = feedback + Ki * advanced
    for i in range(len(demand)):
        winding_up = abs(demand[i]) > model.tau_max[i] and demand[i] * error[i] > 0
        if not winding_up:
            memory[0, i] = advanced[i]
    return feedback + Ki * memory[0]


class PID(ControlLaw):
    """PD feedback with an integral of the error, which stops while the drive is at its limit."""

    name = "pid"

    def __init__(
        self, robot: Robot, *, bandwidth: ArrayLike = 20.0, period: float = 1e-3,
        Kp: ArrayLike | None = None, Ki: ArrayLike | None = None, Kd: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        """Derive the gains from the model, except for those that are given.

        Args:
            robot: the controller's model of the robot; the drives' torque at standstill limits the integral.
            bandwidth: omega, scalar or (n,), in [rad/s].
            period: time between two calls, in [s].
            Kp: position gain, scalar or (n,), in [N m/rad].
            Ki: integral gain, scalar or (n,), in [N m/(rad s)].
            Kd: speed gain, scalar or (n,), in [N m s/rad].

        Raises:
            ValueError: the bandwidth or the period is not positive and finite, or a gain is not a number.
        """
        gains = with_chosen(pid_gains(robot, bandwidth), Kp=Kp, Ki=Ki, Kd=Kd)
        super().__init__(robot, pid, gains, memory=1, period=period)

    @property
    def gains(self) -> PIDGains:
        """Gains Kp, Ki, Kd."""
        return PIDGains(*self.parameters)

    @property
    def integral(self) -> NDArray:
        """Integral of the error (n,), in [rad s]."""
        return self.memory[0]

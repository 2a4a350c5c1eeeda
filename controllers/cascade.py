"""Cascade of industrial drives: a proportional position loop around a speed loop with an integral.

    u   = qd_ref + kp (q_ref - q) - qd
    tau = Kv (u + int(u dt) / Ti) + tau_forward + tau_hold

`u` is the error of the speed loop.  Its set point is the output of the position loop plus the reference's
speed (speed feed-forward).  `tau_forward` is the torque feed-forward: the model's torque along the reference,
including rotors and friction, without any measurement.  `tau_hold` is a constant torque that can carry the
arm from the beginning.

With an exact model of ideal drives the feed-forward leaves no error to correct.  With friction it may: it
does not detect whether a joint has broken away.  Where friction falls with speed (Stribeck), a rounding error
grows until the loops react.

The loops close on the motor's side of a gear, in joint units, where the encoder is.  Each joint is controlled
separately, as with PID; the gains are derived in `controllers.gains`.  The integral is summed by the
rectangle rule, including the present error.  It stops while the motor is at its limit and the error would
increase the demand, as in `controllers.pid`.

Source: the usual scheme.  With constant gains and without the torque feed-forward it is the controller of the
Manutec r3 in the Modelica Standard Library (Mechanics.MultiBody.Examples.Systems.RobotR3).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from controllers.gains import CascadeGains, cascade_gains, with_chosen
from twin.physics.control.control_law import ControlLaw, Model, compiled_law, motor_torque
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.sampling import Reference, State


@compiled_law
def cascade(
    state: State, reference: Reference, parameters: NDArray, memory: NDArray, model: Model
) -> NDArray:
    """Return the torque; parameters: kp, Kv, Ti, tau_hold and the share of feed-forward; memory: integral."""
    kp, Kv, Ti, hold, share = parameters[0], parameters[1], parameters[2], parameters[3], parameters[4]
    given = hold
    if share[0] != 0.0:
        forward = np.empty(len(kp))
        motor_torque(model, reference.q, reference.qd, reference.qdd, memory[1:], forward)
        given = hold + forward
    u = reference.qd + kp * (reference.q - state.q) - state.qd
    advanced = memory[0] + u * model.period
    demand = Kv * (u + advanced / Ti) + given
    for i in range(len(demand)):
        winding_up = abs(demand[i]) > model.tau_max[i] and demand[i] * u[i] > 0
        if not winding_up:
            memory[0, i] = advanced[i]
    return Kv * (u + memory[0] / Ti) + given


class Cascade(ControlLaw):
    """Position loop around a speed loop with an integral, with speed and torque feed-forward."""

    name = "cascade"
    parameter_names = (*CascadeGains._fields, "tau_hold", "feed_forward")

    def __init__(
        self, robot: Robot, *, bandwidth: ArrayLike = 20.0, period: float = 1e-3,
        kp: ArrayLike | None = None, Kv: ArrayLike | None = None, Ti: ArrayLike | None = None,
        feed_forward: bool = True, tau_hold: ArrayLike = 0.0,
    ) -> None:  # fmt: skip
        """Derive the gains from the model, except for those that are given.

        Args:
            robot: the controller's model of the robot, drives included.
            bandwidth: omega of the speed loop, scalar or (n,), in [rad/s].
            period: time between two calls, in [s].
            kp: gain of the position loop, scalar or (n,), in [1/s].
            Kv: gain of the speed loop, scalar or (n,), at the joint, in [N m s/rad].
            Ti: integral time of the speed loop, scalar or (n,), in [s]; infinite for no integral.
            feed_forward: whether the model's torque along the reference is added.
            tau_hold: torque that is always added, scalar or (n,), in [N m].

        Raises:
            ValueError: the bandwidth or the period is not positive and finite; Ti is not positive; a gain or
                the holding torque is not a number.
        """
        gains = with_chosen(cascade_gains(robot, bandwidth), kp=kp, Kv=Kv, Ti=Ti)
        if not np.all(gains.Ti > 0):
            raise ValueError(f"expected Ti above 0 s, inf for no integral, got {Ti}")
        rows = (*gains, tau_hold, float(feed_forward))
        super().__init__(robot, cascade, rows, memory=1, period=period)

    @property
    def gains(self) -> CascadeGains:
        """Gains kp, Kv, Ti."""
        return CascadeGains(*self.parameters[:3])

    @property
    def integral(self) -> NDArray:
        """Integral of the speed error (n,), in [rad]."""
        return self.memory[0]

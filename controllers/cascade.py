"""What drives of industrial robots run: a proportional position loop around a speed loop with an integral.

    u   = qd_ref + kp (q_ref - q) - qd
    tau = Kv (u + int(u dt) / Ti) + tau_forward + tau_hold

`u` is the error of the speed loop, whose set value is what the position loop asks for on top of the
reference's own speed (speed feed-forward).  `tau_forward` is the torque feed-forward, the model's torque
along the reference: rotors and friction of its drives included, nothing of it measured.  `tau_hold` is a
constant torque that carries the arm from the beginning.

With an exact model of ideal drives the feed-forward leaves the loops nothing to correct.  With friction it
may: it does not see whether a joint has broken away, and where friction falls with speed (Stribeck) an error
of rounding grows until the loops notice.

The loops close on the motor's side of a gear, in joint units, for that is where the encoder sits.  Each joint
is controlled on its own, as with PID; the gains are derived in `controllers.gains`.  The integral is summed
by the rectangle rule, the present error included, and stops while the motor is at its limit and the error
would push it further, as that of `controllers.pid`.

Source: the usual scheme; with constant gains and without the torque feed-forward it is the controller of the
Manutec r3 in the Modelica Standard Library (Mechanics.MultiBody.Examples.Systems.RobotR3).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from controllers.gains import CascadeGains, cascade_gains, with_chosen
from twin.control.control_law import ControlLaw, Model, compiled_law
from twin.robot.drives.drive_step import add_drive_torque
from twin.robot.robot import Robot
from twin.trajectories.sampling import Reference, State


@compiled_law
def cascade(
    state: State, reference: Reference, parameters: NDArray, memory: NDArray, model: Model
) -> NDArray:
    """The law with kp, Kv, Ti, tau_hold and the share of feed-forward; the integral is its memory."""
    kp, Kv, Ti, hold, share = parameters[0], parameters[1], parameters[2], parameters[3], parameters[4]
    given = hold
    if share[0] != 0.0:
        forward = np.empty(len(kp))
        model.inverse_dynamics(
            reference.q, reference.qd, reference.qdd, model.inertias, model.gravity, forward
        )
        add_drive_torque(model.drives, reference.qd, reference.qdd, model.period, forward)
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
    """Position loop around a speed loop with an integral, speed and torque fed forward, as drives have it."""

    name = "cascade"
    parameter_names = (*CascadeGains._fields, "tau_hold", "feed_forward")

    def __init__(
        self, robot: Robot, *, bandwidth: ArrayLike = 20.0, period: float = 1e-3,
        kp: ArrayLike | None = None, Kv: ArrayLike | None = None, Ti: ArrayLike | None = None,
        feed_forward: bool = True, tau_hold: ArrayLike = 0.0,
    ) -> None:  # fmt: skip
        """Derive the gains from the model, but for those that are given.

        Args:
            robot: the controller's own model of the robot, with the drives that it believes in.
            bandwidth: omega of the speed loop, scalar or (n,), in [rad/s].
            period: time between two calls, in [s].
            kp: of the position loop, scalar or (n,), in [1/s].
            Kv: of the speed loop, scalar or (n,), at the joint, in [N m s/rad].
            Ti: of its integral, scalar or (n,), in [s]; infinite for none.
            feed_forward: whether the model's torque along the reference is added.
            tau_hold: added at all times, scalar or (n,), in [N m].

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
        """kp, Kv, Ti."""
        return CascadeGains(*self.parameters[:3])

    @property
    def integral(self) -> NDArray:
        """The integral of the speed error (n,), in [rad]."""
        return self.memory[0]

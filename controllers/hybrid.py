"""Hybrid control of an arm on a constraint: position control along it, force control across it.

Any controller demands the torque u. By the model, the constraint would answer it with the multipliers

    lambda_u = Lambda (-Jd qd - J qdd_free(u)),    Lambda = (J M^-1 J^T)^-1.

The law adds what turns them into the desired ones, and nothing that moves the arm along the constraint:

    tau = u + J^T (lambda_u - f),    f = lambda_d + K int (lambda_d - lambda) dt.

This is the decoupling of Khatib's hybrid control: `tau = (1 - J^T J_bar^T) u` plus the wrench across. With an
exact model the force is lambda_d at every sample, whatever u is. Otherwise the integral of the measured force
removes a constant error with the time constant 1/K.

Source: Khatib 1987, "A unified approach for motion and force control of robot manipulators"; Siciliano,
Sciavicco, Villani and Oriolo 2009, "Robotics: Modelling, Planning and Control", chapter 9 (hybrid
force/motion control, rigid environment).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.physics.dynamics.constrained import least_change
from twin.physics.dynamics.equation_of_motion import forward_dynamics
from twin.physics.dynamics.holonomic import PositionConstraint
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.sampling import Reference, State


@dataclass(eq=False)
class Hybrid:
    """Position control along a constraint by a controller, and force control across it.

    Attributes:
        law: controller `(state, reference) -> tau` of the position.
        robot: model of the robot.
        constraint: m constraints of the model.
        desired: (m,) desired multipliers, for a tool on surfaces its forces along their gradients, in [N].
        measured: function that returns the multipliers (m,) of the last step, as
            `lambda: plant.force` of a `twin.ConstrainedPlant`; without it there is no integral.
        gain: gain K of the integral, in [1/s].
        period: control period, in [s].

    Example:
        >>> import controllers, numpy as np, twin
        >>> from twin.physics.dynamics import Plane, ToolOn
        >>> robot, q = twin.load("two_link").mounted("wall"), [0, np.pi / 2]
        >>> wall = ToolOn(Plane(point=[1, 0, 0], normal=[1, 0, 0]))
        >>> plant = twin.ConstrainedPlant(robot, wall)
        >>> law = controllers.hybrid.Hybrid(controllers.make("computed_torque", robot), robot, wall, [-5.0])
        >>> _ = twin.run_closed_loop(plant, law, twin.sample(twin.hold(q, 0.01), 1e-3))
        >>> plant.forces.round(6)[:2].tolist()
        [[-5.0], [-5.0]]
    """

    law: Callable[[State, Reference], NDArray]
    robot: Robot
    constraint: PositionConstraint
    desired: ArrayLike
    measured: Callable[[], NDArray] | None = None
    gain: float = 0.0
    period: float = 1e-3

    def __getattr__(self, name: str) -> Any:
        # `prepare`, `signals` and `name` are those of the position's law.
        return getattr(self.__dict__["law"], name)

    def reset(self) -> None:
        """Restart both laws."""
        self._force = np.array(self.desired, dtype=np.float64)
        getattr(self.law, "reset", lambda: None)()

    def __call__(self, state: State, reference: Reference) -> NDArray:
        """Return the torques (n,), in [N m]."""
        if self.measured is not None and state.t > 0.0:
            self._force += self.gain * self.period * (self.desired - self.measured())
        u = np.asarray(self.law(state, reference))
        _, J, Jd = self.constraint.at(self.robot, state.q, state.qd)
        across = -(Jd @ state.qd) - J @ forward_dynamics(self.robot, state.q, state.qd, u)
        return u + J.T @ (least_change(self.robot, state.q, J, across)[1] - self._force)

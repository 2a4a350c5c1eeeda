"""Plant of an arm whose motion is constrained, `phi(q) = 0`, with the forces of the constraint."""

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, checked_time_step
from twin.base.errors import RobotError, SingularityError
from twin.physics.dynamics.constrained import least_change
from twin.physics.dynamics.equation_of_motion import forward_dynamics
from twin.physics.dynamics.holonomic import PositionConstraint, check_jacobian, onto_constraint
from twin.physics.robot.evaluation import joint_vector
from twin.physics.robot.limits import check_folding
from twin.physics.robot.robot import Robot

ON_IT = 1e-8
"""Largest violation of the constraint, and of its rate, at the start."""
KEPT = 1e-10
"""Largest violation of the constraint after a step. Observed: 1e-14 m for a tool."""


class ConstrainedPlant:
    """Plant of the analytic model with a constraint on the tool or on the joints.

    One step is a Runge-Kutta step of fourth order of

        M qdd + C qd + g = tau + J^T lambda,    J qdd + Jd qd = 0

    under constant torques. Then the positions are projected onto `phi(q) = 0` and the speeds onto `J qd = 0`,
    both by the smallest change in the metric of M, so that the error of the integration does not add up. The
    constraint acts in both directions and has no friction.

    The motion is that of the differential equations. `AnalyticPlant` and the engine make steps of first order
    instead. Sample references for this plant with `twin.sample`.

    Args:
        robot: simulated robot with ideal drives, with its payload and gravity.
        constraint: `ToolOn`, `joint_relation` or `JointFunction` of `twin.dynamics`, or an object with their
            methods.
        time_step: integration step, in [s].

    Attributes:
        force: (m,) multipliers at the start of the last step; 0 before the first one.
        tau: (n,) torques of the motors in the last step, in [N m] at the joints.

    Raises:
        RobotError: the drives of the robot are not ideal.

    Example:
        >>> import numpy as np
        >>> import twin
        >>> from twin.physics.dynamics import Plane, ToolOn
        >>> wall = ToolOn(Plane(point=[1, 0, 0], normal=[1, 0, 0]))
        >>> plant = twin.ConstrainedPlant(twin.load("two_link").mounted("wall"), wall)
        >>> plant.reset([0, np.pi / 2])
        >>> plant.step([0, 0])
        >>> plant.force.round(3).tolist()
        [14.715]
    """

    def __init__(self, robot: Robot, constraint: PositionConstraint, time_step: float = 1e-3) -> None:
        if not (hasattr(constraint, "violation") and hasattr(constraint, "at")):
            raise ValueError(
                "expected a constraint, as twin.dynamics.ToolOn(Plane(...)), joint_relation(A, c) or "
                f"JointFunction(phi), got {constraint!r}"
            )
        if robot.active_drives is not None:
            raise RobotError(
                f"a constrained plant has no rotors and no friction, and robot {robot.name!r} has "
                f"{robot.drive_mode} drives: expected ideal drives, as robot.with_drives('ideal')"
            )
        self.robot, self.constraint, self.time_step = robot, constraint, checked_time_step(time_step)
        self.loop_gap, self._state = 0.0, np.zeros((2, robot.n))

    @property
    def forces(self) -> Floats:
        """Multipliers (K, m) at the start of each of the K steps since the reset.

        For `ToolOn` they are the forces of the surfaces on the tool along their gradients, in [N]. With s
        steps in a control period, row `s k` belongs to sample k of the log. The last sample has no step.
        """
        return np.array(self._forces).reshape(len(self._forces), len(self._J))

    def reset(self, q: ArrayLike, qd: ArrayLike | None = None) -> None:
        """Set the position `q` (n,), in [rad], and the velocity `qd` (n,), in [rad/s], zero by default.

        Raises:
            ValueError: they are not on the constraint, or its Jacobian is wrong.
            SingularityError: the constraint is singular there.
        """
        q = joint_vector(self.robot, "q", q)
        qd = np.zeros_like(q) if qd is None else joint_vector(self.robot, "qd", qd)
        check_folding(self.robot, q)
        check_jacobian(self.robot, self.constraint, q)
        phi, self._J, _ = self.constraint.at(self.robot, q, qd)
        for values, what, remedy in (
            (phi, "start is", "twin.dynamics.onto_constraint(robot, constraint, q)"),
            (self._J @ qd, "speed of the start is", "a speed with J qd = 0, such as rest"),
        ):
            if not (worst := np.max(np.abs(values))) <= ON_IT:
                k = int(np.argmax(np.abs(values)))
                raise ValueError(
                    f"the {what} off the constraint by {worst:.3g} in component {k}: expected at most "
                    f"{ON_IT:g}, as of {remedy}"
                )
        self._forces, self.force, self.tau = [], np.zeros_like(phi), np.zeros(self.robot.n)
        self._project(q, qd)

    def state(self, out: np.ndarray | None = None) -> np.ndarray:
        """Return joint positions and velocities, a new array (2, n), in [rad] and [rad/s]."""
        return self._state.copy()

    def step(self, tau: ArrayLike) -> None:
        """Advance by one time step under the torques `tau` (n,), in [N m].

        Raises:
            SingularityError: the constraint becomes singular; the message has the time and the positions.
        """
        self.tau = joint_vector(self.robot, "tau", tau)
        h, start = self.time_step, self._state
        try:
            first, self.force = self._rate(start)
            second = self._rate(start + h / 2 * first)[0]
            third = self._rate(start + h / 2 * second)[0]
            fourth = self._rate(start + h * third)[0]
            self._project(*(start + h / 6 * (first + 2 * second + 2 * third + fourth)))
        except SingularityError as error:
            raise SingularityError(
                f"the constraint becomes singular at t = {len(self._forces) * h:.6g} s, "
                f"q = {start[0].round(4).tolist()}: {error}"
            ) from None
        self._forces.append(self.force)
        check_folding(self.robot, self._state[0])

    def _rate(self, state: Floats) -> tuple[Floats, Floats]:
        """Return the time derivative (2, n) of a state, and the multipliers (m,)."""
        if not np.all(np.isfinite(state)):
            raise SingularityError("the accelerations grow without bound")
        q, qd = state
        _, J, Jd = self.constraint.at(self.robot, q, qd)
        free = forward_dynamics(self.robot, q, qd, self.tau)
        change, force = least_change(self.robot, q, J, -(Jd @ qd) - J @ free)
        return np.array([qd, free + change]), force

    def _project(self, q: Floats, qd: Floats) -> None:
        """Set the state to the nearest one on the constraint.

        Raises:
            SingularityError: there is none, or the rows of J became dependent on the way.
        """
        q = onto_constraint(self.robot, self.constraint, q)
        phi, J, _ = self.constraint.at(self.robot, q, qd)
        changes, _ = least_change(self.robot, q, J, np.concatenate([np.eye(len(J)), [-(J @ qd)]]))
        # The product is the identity for the present J, and nearly so for the one before.
        if not (np.max(np.abs(phi)) <= KEPT and np.linalg.det(changes[:-1] @ self._J.T) > 0.0):
            raise SingularityError("no position nearby is on it, or its directions become dependent")
        self._state, self._J = np.array([q, qd + changes[-1]]), J

"""Plants of closed loops, free or with a constraint `phi(q) = 0`, and the measurement of their motors."""

from typing import Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, checked_time_step
from twin.base.errors import RobotError, SingularityError
from twin.physics.control.signals import Q_MOTOR, Q_SEEN, QD, QD_MOTOR, TAU_JOINT, RunningSensors
from twin.physics.dynamics.constrained import least_change
from twin.physics.dynamics.equation_of_motion import forward_dynamics, inverse_dynamics
from twin.physics.dynamics.flexible_joint import warn_of_unresolved_springs
from twin.physics.dynamics.holonomic import PositionConstraint, check_jacobian, onto_constraint
from twin.physics.robot.drives.drive_step import DriveTrain
from twin.physics.robot.drives.sensors import Sensors
from twin.physics.robot.evaluation import joint_vector
from twin.physics.robot.limits import check_folding
from twin.physics.robot.robot import Payload, Robot


class Plant(Protocol):
    """Plant that `run_closed_loop` drives, such as `twin.Simulation` or `twin.AnalyticPlant`.

    A robot whose drives are not ideal requires a `DrivenPlant`.  `state` may fill `out` (2, n) or return
    another array.  `tau` is the same array at every sample, with new values: a plant that stores it must copy
    it.
    """

    robot: Robot
    time_step: float
    loop_gap: float

    def reset(self, q: ArrayLike, qd: ArrayLike | None = None) -> None: ...  # noqa: D102
    def state(self, out: np.ndarray | None = None) -> np.ndarray: ...  # noqa: D102
    def step(self, tau: np.ndarray) -> None: ...  # noqa: D102


class DrivenPlant(Plant, Protocol):
    """Plant with drives that are not ideal.

    `tau_joint` (n,) is the torque that the drives applied to the arm in the last step, in [N m].
    `motor_state` (2, n) holds positions and speeds of the motors in joint units.
    """

    @property
    def tau_joint(self) -> np.ndarray: ...  # noqa: D102
    def motor_state(self) -> np.ndarray: ...  # noqa: D102


class MotorSide:
    """Motors of a plant and their measurement, as rows of the signals of a closed loop.

    Attributes:
        measured: (2, n) rows of the signals: positions and speeds that the controller receives.

    Args:
        plant: plant with the motors.
        sensors: sensors between the motors and the controller; `None` for exact values. `RunningSensors`
            continue from their present state.
        signals: (rows, n) signals with all rows of `twin.control.signals`.
        samples: number of samples of the run.
        period: sampling period, in [s].

    Raises:
        ValueError: the drives of the plant's robot are not ideal, but the plant has no drives.
        RobotError: the sensors are encoders, and those of the robot are unknown.
    """

    def __init__(
        self,
        plant: Plant,
        sensors: Sensors | RunningSensors | None,
        signals: np.ndarray,
        samples: int,
        period: float,
    ) -> None:
        robot = plant.robot
        self._driven, self._elastic = robot.active_drives is not None, robot.drive_mode == "elastic"
        if self._driven and not all(hasattr(plant, name) for name in ("motor_state", "tau_joint")):
            raise ValueError(
                f"the drives of robot {robot.name!r} are {robot.drive_mode}, and this plant has none: "
                f"expected motor_state and tau_joint, or ideal drives, got a {type(plant).__name__}"
            )
        self._plant = cast("DrivenPlant", plant)
        self._state, self._motors = signals[: QD + 1], signals[Q_MOTOR : QD_MOTOR + 1]
        self._tau_joint, self.measured = signals[TAU_JOINT], self._motors
        self._sensors = RunningSensors(sensors, robot.n, samples) if isinstance(sensors, Sensors) else sensors
        if self._sensors is not None:
            self.measured = signals[Q_SEEN:]
            self._sensors.begin(samples, robot.drives, period)

    def measure(self, k: int) -> None:
        """Fill the rows of the motors and of the measured values; call it once at every sample k."""
        self._motors[:] = self._plant.motor_state() if self._elastic else self._state
        if self._sensors is not None:
            self._sensors.measure(k, self._motors, self.measured)

    def read_joint_torque(self) -> None:
        """Fill the row of the torque that the drives apply to the arm, after a step or a reset."""
        if self._driven:
            self._tau_joint[:] = self._plant.tau_joint


class AnalyticPlant:
    """Plant of the analytic model, with the interface of `twin.engine.simulation.Simulation` but no window.

    One step is `qd+ = qd + dt qdd`, then `q+ = q + dt qd+`.  Both are rounded as in the engine, so that the
    two plants differ only by the rounding of `qdd`.  Kinematic loops are closed by construction: `loop_gap`
    is 0.

    Args:
        robot: simulated robot, with its payload, gravity and drives.
        time_step: integration step, in [s]. A warning is issued if it is too long for elastic drives.

    Example:
        >>> import twin
        >>> plant = twin.AnalyticPlant(twin.load("two_link"))
        >>> plant.reset([0.0, 0.0], [1.0, 0.0])
        >>> plant.step([0.0, 0.0])
        >>> plant.state().tolist()
        [[0.001, 0.0], [1.0, 0.0]]
    """

    bench = None
    """Window: it has none."""

    def __init__(self, robot: Robot, time_step: float = 1e-3) -> None:
        self.robot = robot
        self.time_step = checked_time_step(time_step)
        warn_of_unresolved_springs(robot, self.time_step)
        self.loop_gap = 0.0
        self._state = np.zeros((2, robot.n))
        self._q, self._qd = self._state
        self._qdd, self._tau = np.zeros((2, robot.n))
        self._M = np.empty((robot.n, robot.n))
        drives = robot.active_drives
        self._drives = DriveTrain(drives, robot.drive_mode, self.time_step) if drives is not None else None
        if self._drives is not None:
            self._drives.reset(self._q, self._qd, self._bias())

    def reset(self, q: ArrayLike, qd: ArrayLike | None = None) -> None:
        """Set the position `q` (n,), in [rad], and the velocity `qd` (n,), in [rad/s], zero by default.

        The springs of elastic drives are deflected so that they balance the arm.
        """
        q = joint_vector(self.robot, "q", q)
        qd = np.zeros_like(q) if qd is None else joint_vector(self.robot, "qd", qd)
        check_folding(self.robot, q)
        self._state[:] = q, qd
        self._tau[:] = 0.0
        if self._drives is not None:
            self._drives.reset(self._q, self._qd, self._bias())

    def change_payload(self, payload: Payload | None) -> None:
        """Continue with another payload; see `twin.engine.simulation.Simulation.change_payload`."""
        self.robot = self.robot.with_payload(payload)

    def state(self, out: np.ndarray | None = None) -> np.ndarray:
        """Return joint positions and velocities, (2, n); see `twin.engine.simulation.Simulation.state`."""
        if out is None:
            return self._state.copy()
        if out.shape != self._state.shape or out.dtype != np.float64:
            raise ValueError(
                f"expected out of shape {self._state.shape} and float64, got {out.shape} and {out.dtype}"
            )
        out[:] = self._state
        return out

    def motor_state(self) -> np.ndarray:
        """Return motor positions and velocities (2, n) in joint units; rigid motors move as the joints."""
        return self.state() if self._drives is None else self._drives.motor_state(self._state)

    @property
    def tau(self) -> np.ndarray:
        """Torques of the motors in the last step (n,), in [N m] at the joints."""
        return self._tau.copy()

    @property
    def tau_joint(self) -> np.ndarray:
        """Torque that the drives applied to the arm in the last step (n,), in [N m]."""
        return (self._tau if self._drives is None else self._drives.tau_joint).copy()

    def step(
        self, tau: np.ndarray, wrench: ArrayLike | None = None, T_flange_tool: ArrayLike | None = None
    ) -> None:
        """Advance by one time step under the torques `tau` (n,); see `Simulation.step`."""
        tau = np.ascontiguousarray(tau, dtype=np.float64)
        if tau.shape != (self.robot.n,):
            raise ValueError(f"expected tau of shape ({self.robot.n},), got {tau.shape}")
        self._tau[:] = tau
        if self._drives is not None:
            self.robot.kernels.mass_matrix(self._q, self.robot.single_sample.inertias, self._M)
            self._drives.step(self._M, self._bias(wrench, T_flange_tool), tau, self._q, self._qd)
            self._qd[:] = self._drives.next_qd
        else:
            if wrench is None:
                one = self.robot.single_sample
                kernel = self.robot.kernels.forward_dynamics
                kernel(self._q, self._qd, tau, one.inertias, one.gravity, self._qdd)
            else:
                self._qdd = forward_dynamics(self.robot, self._q, self._qd, tau, wrench, T_flange_tool)
            self._qd += self._qdd * self.time_step
        self._q += self._qd * self.time_step
        if self.robot.passive:
            check_folding(self.robot, self._q)

    def close(self) -> None:
        """Do nothing: there is no world and no window to close."""

    def _bias(self, wrench: ArrayLike | None = None, T_flange_tool: ArrayLike | None = None) -> np.ndarray:
        """Return the Coriolis and gravity torque (n,), minus the joint torque of a wrench at the tool."""
        if wrench is not None:
            rest = np.zeros(self.robot.n)
            return inverse_dynamics(self.robot.arm, self._q, self._qd, rest, wrench, T_flange_tool)
        one, h = self.robot.single_sample, np.empty(self.robot.n)
        self.robot.kernels.bias(self._q, self._qd, one.inertias, one.gravity, h)
        return h


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

"""Plants of closed loops, and the measurement of their motors through sensors."""

from typing import Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import checked_time_step
from twin.physics.control.signals import Q_MOTOR, Q_SEEN, QD, QD_MOTOR, TAU_JOINT, RunningSensors
from twin.physics.dynamics.environment import checked_wrench, joint_torque
from twin.physics.dynamics.flexible_joint import warn_of_unresolved_springs
from twin.physics.kinematics.forward import LastTool
from twin.physics.robot.drives.drive_step import DriveTrain
from twin.physics.robot.drives.motors import Sensors
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

    def measured_wrench(self, F: np.ndarray, T_base_tool: np.ndarray) -> np.ndarray:
        """Return the measurement of a wrench F (6,) on the tool, base axes; call it once at every sample."""
        if self._sensors is None:
            return F
        return self._sensors.measured_wrench(F, T_base_tool, self._plant.robot.gravity)

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
        self._M, self._tool = np.empty((robot.n, robot.n)), LastTool()
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
        pushed = 0.0 if wrench is None else self._pushed(wrench, T_flange_tool)
        self._tau[:] = tau
        kernels, one = self.robot.kernels, self.robot.single_sample
        if self._drives is not None:
            kernels.mass_matrix(self._q, one.inertias, self._M)
            self._drives.step(self._M, self._bias() - pushed, tau, self._q, self._qd)
            self._qd[:] = self._drives.next_qd
        else:
            total = tau if wrench is None else tau + pushed
            kernels.forward_dynamics(self._q, self._qd, total, one.inertias, one.gravity, self._qdd)
            self._qd += self._qdd * self.time_step
        self._q += self._qd * self.time_step
        if self.robot.passive:
            check_folding(self.robot, self._q)

    def close(self) -> None:
        """Do nothing: there is no world and no window to close."""

    def _pushed(self, wrench: ArrayLike, T_flange_tool: ArrayLike | None) -> np.ndarray:
        """Return the joint torque (n,) of a wrench at the tool."""
        F, J, found = checked_wrench(wrench), np.empty((6, self.robot.n)), np.empty(self.robot.n)
        self.robot.kernels.jacobian(self._q, self._tool(T_flange_tool), J)
        joint_torque(J, F, found)
        return found

    def _bias(self) -> np.ndarray:
        """Return the Coriolis and gravity torque (n,)."""
        one, h = self.robot.single_sample, np.empty(self.robot.n)
        self.robot.kernels.bias(self._q, self._qd, one.inertias, one.gravity, h)
        return h

"""Simulated arm of an EGM robot: PyBullet, drives, sensors and a controller, advanced cycle by cycle.

Without PyBullet the analytic model is the arm; `GuidedArm.plant` says so.
Between two instructions `RobotMotion` holds the arm, or moves it to the start of the next instruction.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from twin.abb.egm.guidance.run import torque_utilization
from twin.base.arrays import Floats
from twin.base.errors import DivergenceError
from twin.data.logs.annotations import LoadChange, Payloads
from twin.data.logs.closed_loop import run_closed_loop
from twin.data.logs.log import Log, RunningLog
from twin.physics.control.control_law import ControlLaw
from twin.physics.control.plant import AnalyticPlant
from twin.physics.control.signals import RunningSensors
from twin.physics.dynamics.environment import Environment
from twin.physics.dynamics.operational_space import check_contact
from twin.physics.engine.client import engine_installed
from twin.physics.engine.simulation import Simulation
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.robot.drives.motors import MotorLimits, Sensors
from twin.physics.robot.robot import Payload, Robot
from twin.physics.trajectories.joint_trajectories import Trajectory, quintic
from twin.physics.trajectories.sampling import Samples, sample_semi_implicit

Controller = Callable[[Any, Any], np.ndarray]
"""`(state, reference) -> tau`, see `twin.logs.closed_loop.run_closed_loop`."""


def standing_samples(q: Floats, count: int) -> Samples:
    """Return `count` samples at rest in q (n,), in [rad]."""
    rest = np.zeros((count, len(q)))
    return Samples(np.zeros(count), rest + q, rest, rest)


class GuidedArm:
    """Arm in the engine under a controller that follows samples block by block.

    Attributes:
        robot: model of the plant.
        period: control period, in [s].
        simulation: simulation of the engine, or the analytic model if PyBullet is not installed.
        q: (n,) measured joint angles, in [rad]: motor positions in joint units.  With elastic drives they
            differ from the joint angles.  With sensors they are the last values that the controller received,
            one control period ago.
        tau: (n,) mean motor torques at the joints in the last cycle, in [N m].  A single sample would not
            represent the steps in which references arrive.
        utilization: utilization of the motor torques in the last samples, in [%], see `torque_utilization`.
        last: log of the last samples.

    Args:
        robot: plant with drives and payload.
        controller: controller of this arm; it must not be shared.
        start: (n,) initial joint position, at rest, in [rad].
        sensors: sensors between motors and controller.
        time_step: time step of the engine, in [s].
        steps_per_period: engine steps per control period.
        gui: whether to show the arm in a window; the caller sets the pace.
        keep: duration of the log, which contains the end of the run, in [s].
        environment: pushes on the tool, in the time since the start, and surfaces.
    """

    def __init__(
        self, robot: Robot, controller: Controller, start: Floats, *, sensors: Sensors | None = None,
        time_step: float = 1e-3, steps_per_period: int = 1, gui: bool = False, keep: float = 120.0,
        environment: Environment | None = None,
    ) -> None:  # fmt: skip
        self.robot, self._controller, self._steps = robot, controller, steps_per_period
        self.period = time_step * steps_per_period
        self._sensors = None if sensors is None else RunningSensors(sensors, robot.n)
        self._motors = MotorLimits.of(robot.active_drives, robot.tau_max)
        self._capacity = max(1, round(keep / self.period))
        self._log = RunningLog(self._capacity)
        self._k, self._environment, self._wrench = 0, environment, np.zeros(6)
        self._loads = [LoadChange(0, robot.payload, None)]
        if environment is not None:
            check_contact(robot, environment, [start], time_step, known=False)
        self.simulation: Simulation | AnalyticPlant
        if gui or engine_installed():
            self.simulation = Simulation(robot, time_step=time_step, gui=gui, real_time=False)
        else:
            self.simulation = AnalyticPlant(robot, time_step)
        try:
            self.put(start)
            self.move(standing_samples(start, 2))  # compile and load everything before the run
            self._log.restart()
            self._k = 0
            self.put(start)
        except BaseException:
            self.close()
            raise

    @property
    def t(self) -> float:
        """Time since the start, in [s]."""
        return self._k * self.period

    @property
    def plant(self) -> str:
        """Simulator of the arm: PyBullet, or the analytic model."""
        return "PyBullet" if isinstance(self.simulation, Simulation) else "analytic model"

    @property
    def lost(self) -> bool:
        """Whether the window of the simulation was closed."""
        return self.simulation.bench is not None and self.simulation.bench.lost

    @property
    def model(self) -> Robot:
        """The controller's model; the arm itself if the controller names none."""
        return getattr(self._controller, "robot", self.robot)

    def change_load(self, payload: Payload | None, controller: Controller) -> None:
        """Continue with another payload, and with the controller for it, which inherits a memory."""
        if not same_payload(payload, self.robot.payload):
            self.simulation.change_payload(payload)
        self.robot = self.simulation.robot
        if isinstance(self._controller, ControlLaw) and isinstance(controller, ControlLaw):
            controller.memory[:] = self._controller.memory
        self._controller = controller
        first = self._k - self._capacity  # of the log
        self._loads = [*self._loads_since(first), LoadChange(self._k, payload, None)]

    def put(self, q: Floats) -> None:
        """Place the arm at rest in q (n,), in [rad], and reset controller and sensors."""
        self.simulation.reset(q)
        if callable(reset := getattr(self._controller, "reset", None)):
            reset()
        if self._sensors is not None:
            self._sensors.restart()
        self.q = self.simulation.motor_state()[0].copy()  # differs from q by the deflection of elastic drives
        self.tau, self.utilization = np.zeros(self.robot.n), 0.0

    def move(self, samples: Samples) -> None:
        """Follow samples one control period apart; their times are ignored.

        Raises:
            DivergenceError: the motion diverged, or the controller demanded a torque that is not finite.
            TwinError: the window was closed.
        """
        count = len(samples.q)
        t = np.arange(self._k, self._k + count, dtype=np.float64) * self.period
        try:
            log = run_closed_loop(
                self.simulation, self._controller, samples._replace(t=t),
                steps_per_period=self._steps, part=True, sensors=self._sensors,
                environment=self._environment,
            )  # fmt: skip
        except DivergenceError as error:
            if error.log is not None and len(error.log.t):
                self._add(error.log)
            raise
        self._add(log)
        self.last, self.tau = log, np.mean(log.tau, axis=0)
        self.utilization = torque_utilization(self._motors, log.tau_demand, log.qd_motor)
        self.q = self.simulation.motor_state()[0].copy() if self._sensors is None else log.q_seen[-1]

    def _add(self, log: Log) -> None:
        self._log.add(log)
        self._k, self._wrench = self._k + len(log.t), log.wrench[-1]

    def poses(self, q: Floats, T_flange_tool: Floats) -> Floats:
        """Return the tool poses (..., 4, 4) `T_base_tool` at joint angles (..., n), in [rad]."""
        return forward_kinematics(self.robot, q) @ T_flange_tool  # the tool was checked before the run

    def push(self) -> Floats:
        """Return the wrench (6,) `[f; mu]` of the user in the window and of the environment, base axes."""
        bench = self.simulation.bench
        force = None if bench is None else bench.push
        return self._wrench if force is None else self._wrench + np.concatenate((force, np.zeros(3)))

    def show_tool(self, T_flange_tool: Floats) -> None:
        """Show the tool with pose (4, 4) on the flange in the window, if any."""
        if self.simulation.bench is not None:
            self.simulation.bench.T_flange_tool = T_flange_tool

    def show_message(self, sentence: str) -> None:
        """Show a sentence in the window, if any."""
        if self.simulation.bench is not None and not self.lost:
            self.simulation.bench.write_line("egm", sentence)

    def log(self, T_flange_tool: Floats, arrays: dict[str, np.ndarray]) -> Log | None:
        """Return the log of the end of the run with additional arrays; `None` before the first sample."""
        log = self._log.log(T_flange_tool, arrays)
        if log is None or len(self._loads) == 1:
            return log
        first = round(log.t[0] / self.period)
        since = self._loads_since(first)
        changes = [change._replace(sample=max(change.sample - first, 0)) for change in since]
        robot = log.robot.with_payload(changes[0].payload)
        return replace(log, robot=robot, payloads=Payloads.of(changes, len(log.t)))

    def _loads_since(self, sample: int) -> list[LoadChange]:
        """Return the changes of the load from a sample on, and the one that is effective there."""
        before = [change for change in self._loads if change.sample <= sample][-1:]
        return [*before, *(change for change in self._loads if change.sample > sample)]

    def close(self) -> None:
        """End the simulation and close its window."""
        self.simulation.close()


def same_payload(one: Payload | None, other: Payload | None) -> bool:
    """Return whether two payloads are equal."""
    if one is None or other is None:
        return one is other
    pairs = ((one.com, other.com), (one.inertia, other.inertia))
    return one.mass == other.mass and all(np.array_equal(a, b) for a, b in pairs)


SPEED_SHARE = 0.25
"""Share of the joint speed limits that motions between instructions use (ours)."""

MIN_DURATION = 0.5
"""Shortest duration of a motion between instructions, in [s]."""

POSITION_TOLERANCE = 1e-9
"""Largest distance, in [rad], at which a joint position counts as reached."""


class RobotMotion:
    """Reference motion of the robot between instructions.

    Attributes:
        q: (n,) present reference, in [rad].

    Args:
        robot: robot whose speed limits bound the motion.
        q: (n,) initial position, at rest, in [rad].
        period: sampling period, in [s].
    """

    def __init__(self, robot: Robot, q: Floats, period: float) -> None:
        self._period = period
        self._speed = SPEED_SHARE * np.where(np.isfinite(robot.qd_max), robot.qd_max, 4.0)
        self.rest(q)

    def rest(self, q: Floats) -> None:
        """Rest at q (n,), in [rad]."""
        self.q = np.array(q, dtype=np.float64)
        self._path: Samples | None = None
        self._k = 0

    @property
    def rests(self) -> bool:
        """Whether the reference is at rest."""
        return self._path is None

    def is_at(self, q: Floats) -> bool:
        """Return whether the reference is at q (n,), in [rad], or moves there."""
        end = self.q if self._path is None else self._path.q[-1]
        return bool(np.all(np.abs(end - q) <= POSITION_TOLERANCE))

    def follow(self, motion: Trajectory) -> None:
        """Follow a motion that begins here and ends at rest."""
        self._path, self._k = sample_semi_implicit(motion, self._period), 0

    def go_to(self, q: Floats) -> None:
        """Move to q (n,), in [rad], and rest there."""
        # The peak speed of a quintic is 1.875 times its mean speed.
        shortest = 1.875 * np.max(np.abs(q - self.q) / self._speed)
        move = quintic(self.q, q, duration=max(MIN_DURATION, float(shortest)))
        self.follow(move)

    def samples(self, count: int) -> Samples:
        """Return the next `count` samples; their times are undefined."""
        if self._path is None:
            return standing_samples(self.q, count)
        path = Samples(*(series[self._k : self._k + count] for series in self._path))
        self._k += count
        missing = count - len(path.q)
        if self._k < len(self._path.q):
            self.q = self._path.q[self._k]
            return path
        self.rest(self._path.q[-1])
        return Samples(
            *(np.concatenate(pair) for pair in zip(path, standing_samples(self.q, missing), strict=True))
        )

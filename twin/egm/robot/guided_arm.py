"""The arm behind a robot on the wire: PyBullet, drives, sensors and a control law, moved cycle by cycle.

Between two instructions the arm stands, or goes to where the next one has to begin: `RobotMotion`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from twin.arrays import Floats
from twin.control.closed_loop import run_closed_loop
from twin.control.signals import RunningSensors
from twin.egm.guidance.limits import torque_utilization
from twin.engine.simulation import Simulation
from twin.errors import DivergenceError
from twin.kinematics.forward import forward_kinematics
from twin.logs.log import Log, RunningLog
from twin.robot.drives.motors import MotorLimits
from twin.robot.drives.sensors import Sensors
from twin.robot.robot import Robot
from twin.trajectories.joint_trajectories import quintic
from twin.trajectories.sampling import Samples, sample_semi_implicit

Controller = Callable[[Any, Any], np.ndarray]
"""`(state, reference) -> tau`, see `twin.control.closed_loop.run_closed_loop`."""


def standing(q: Floats, count: int) -> Samples:
    """So many samples of standing in q (n,), in [rad]."""
    rest = np.zeros((count, len(q)))
    return Samples(np.zeros(count), rest + q, rest, rest)


class GuidedArm:
    """An arm in the engine under a control law, which follows samples as they are made.

    Attributes:
        robot: the plant's.
        period: of the control law, in [s].
        simulation: the engine's.
        q: (n,) what the robot measures: the motors' positions in joint units, which are the joints' but for
            elastic drives, in [rad].  Where there are sensors it is what they told the control law last, one
            control period ago.
        tau: (n,) torques that the motors brought to the joints in the last cycle, their mean, in [N m]: one
            that is picked out of a cycle tells nothing of the steps in which references come.
        utilization: of the motors' torque in the last samples, in [%], see `torque_utilization`.

    Args:
        robot: the plant, with its drives and its payload.
        controller: of this arm alone.
        start: (n,) where it begins, at rest, in [rad].
        sensors: between motors and control law.
        time_step: of the engine, in [s].
        steps_per_period: steps in a period of the control law.
        gui: show it in a window; the pace is the caller's.
        keep: how much of the end of the run the log has, in [s].
    """

    def __init__(
        self, robot: Robot, controller: Controller, start: Floats, *, sensors: Sensors | None = None,
        time_step: float = 1e-3, steps_per_period: int = 1, gui: bool = False, keep: float = 120.0,
    ) -> None:  # fmt: skip
        self.robot, self._controller, self._steps = robot, controller, steps_per_period
        self.period = time_step * steps_per_period
        self._sensors = None if sensors is None else RunningSensors(sensors, robot.n)
        self._motors = MotorLimits.of(robot.active_drives, robot.tau_max)
        self._log = RunningLog(max(1, round(keep / self.period)))
        self._k = 0
        self.simulation = Simulation(robot, time_step=time_step, gui=gui, real_time=False)
        try:
            self.put(start)
            self.move(standing(start, 2))  # what is compiled or loaded at first use is that before the run
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
    def lost(self) -> bool:
        """Whether there was a window, and it was closed."""
        return self.simulation.bench is not None and self.simulation.bench.lost

    def put(self, q: Floats) -> None:
        """Put the arm to q (n,), at rest, in [rad]; control law and sensors begin anew."""
        self.simulation.reset(q)
        if callable(reset := getattr(self._controller, "reset", None)):
            reset()
        if self._sensors is not None:
            self._sensors.restart()
        self.q = self.simulation.motor_state()[0].copy()  # springs that carry the arm are bent
        self.tau, self.utilization = np.zeros(self.robot.n), 0.0

    def move(self, samples: Samples) -> None:
        """Follow samples, a control period apart; their times are not looked at.

        Raises:
            DivergenceError: the motion ran away, or the law demands a torque that is not finite.
            TwinError: the window was closed.
        """
        count = len(samples.q)
        t = np.arange(self._k, self._k + count, dtype=np.float64) * self.period
        try:
            log = run_closed_loop(
                self.simulation, self._controller, samples._replace(t=t),
                steps_per_period=self._steps, part=True, sensors=self._sensors,
            )  # fmt: skip
        except DivergenceError as error:
            if error.log is not None and len(error.log.t):
                self._add(error.log)
            raise
        self._add(log)
        self.tau = np.mean(log.tau, axis=0)
        self.utilization = torque_utilization(self._motors, log.tau_demand, log.qd_motor)
        self.q = self.simulation.motor_state()[0].copy() if self._sensors is None else log.q_seen[-1]

    def _add(self, log: Log) -> None:
        self._log.add(log)
        self._k += len(log.t)

    def poses(self, q: Floats, T_flange_tool: Floats) -> Floats:
        """Poses (..., 4, 4) `T_base_tool` of joint angles (..., n), in [rad]."""
        return forward_kinematics(self.robot, q) @ T_flange_tool  # which was looked at before the run

    def push(self) -> Floats:
        """The wrench (6,) `[f; mu]` on the tool, base axes, in [N, N m]: what a person does at the window."""
        bench = self.simulation.bench
        force = None if bench is None else bench.push
        return np.zeros(6) if force is None else np.concatenate((force, np.zeros(3)))

    def show_tool(self, T_flange_tool: Floats) -> None:
        """Show the tool (4, 4) in the window, if there is one."""
        if self.simulation.bench is not None:
            self.simulation.bench.T_flange_tool = T_flange_tool

    def say(self, sentence: str) -> None:
        """Write it in the window, if there is one."""
        if self.simulation.bench is not None and not self.lost:
            self.simulation.bench.say("egm", sentence)

    def log(self, T_flange_tool: Floats, arrays: dict[str, np.ndarray]) -> Log | None:
        """The end of the run, with arrays of its own; `None` before the first sample."""
        return self._log.log(T_flange_tool, arrays)

    def close(self) -> None:
        """End the simulation, and close its window."""
        self.simulation.close()


SHARE_OF_SPEED = 0.25
"""The share of the joints' largest speeds that is used on the way (ours)."""

SHORTEST = 0.5
"""[s], of the way."""

THERE = 1e-9
"""[rad]."""


class RobotMotion:
    """A reference that rests, and is told where to go meanwhile.

    Attributes:
        q: (n,) where it is, in [rad].

    Args:
        robot: its speed limits bound the way.
        q: (n,) where it begins, at rest, in [rad].
        period: of the samples, in [s].
    """

    def __init__(self, robot: Robot, q: Floats, period: float) -> None:
        self._period = period
        self._speed = SHARE_OF_SPEED * np.where(np.isfinite(robot.qd_max), robot.qd_max, 4.0)
        self.rest(q)

    def rest(self, q: Floats) -> None:
        """Be at q (n,), in [rad], at rest."""
        self.q = np.array(q, dtype=np.float64)
        self._way: Samples | None = None
        self._k = 0

    @property
    def rests(self) -> bool:
        """Whether it is not on its way."""
        return self._way is None

    def is_at(self, q: Floats) -> bool:
        """Whether it is at q (n,), or on its way there."""
        end = self.q if self._way is None else self._way.q[-1]
        return bool(np.all(np.abs(end - q) <= THERE))

    def go_to(self, q: Floats) -> None:
        """Go to q (n,), in [rad], and rest there."""
        highest = 1.875 * np.max(np.abs(q - self.q) / self._speed)  # of a quintic, times its mean speed
        move = quintic(self.q, q, duration=max(SHORTEST, float(highest)))
        self._way, self._k = sample_semi_implicit(move, self._period), 0

    def samples(self, count: int) -> Samples:
        """The next so many samples; their times are none."""
        if self._way is None:
            return standing(self.q, count)
        way = Samples(*(series[self._k : self._k + count] for series in self._way))
        self._k += count
        missing = count - len(way.q)
        if self._k < len(self._way.q):
            self.q = self._way.q[self._k]
            return way
        self.rest(self._way.q[-1])
        return Samples(*(np.concatenate(pair) for pair in zip(way, standing(self.q, missing), strict=True)))

"""The robot as its own model has it: forward dynamics under the engine's recursion, without the engine."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import time_step_of
from twin.drives.drive_train import DriveTrain
from twin.dynamics.equation_of_motion import forward_dynamics, inverse_dynamics
from twin.dynamics.spring_vibration import warn_of_unresolved_springs
from twin.robot.evaluation import joint_vector
from twin.robot.limits import check_folding
from twin.robot.robot import Robot


class AnalyticPlant:
    """Stands in for `twin.engine.simulation.Simulation` wherever no picture is wanted.

    One step is `qd+ = qd + dt qdd`, then `q+ = q + dt qd+`, each rounded as the engine rounds it, so that the
    two differ by the rounding of `qdd` alone.  Closed loops are closed by construction: `loop_gap` is 0.

    Args:
        robot: what is simulated, with its payload, gravity and drives.
        time_step: of the integration, in [s]; there is a warning where it is too long for elastic drives.
    """

    def __init__(self, robot: Robot, time_step: float = 1e-3) -> None:
        self.robot = robot
        self.time_step = time_step_of(time_step)
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
        """Put the robot at `q` (n,), in [rad], at the velocity `qd` (n,), in [rad/s], at rest by default.

        The springs of elastic drives carry the arm there.
        """
        q = joint_vector(self.robot, "q", q)
        qd = np.zeros_like(q) if qd is None else joint_vector(self.robot, "qd", qd)
        check_folding(self.robot, q)
        self._state[:] = q, qd
        if self._drives is not None:
            self._drives.reset(self._q, self._qd, self._bias())

    def state(self, out: np.ndarray | None = None) -> np.ndarray:
        """Joint positions and velocities, (2, n); see `twin.engine.simulation.Simulation.state`."""
        if out is None:
            return self._state.copy()
        if out.shape != self._state.shape or out.dtype != np.float64:
            raise ValueError(
                f"expected out of shape {self._state.shape} and float64, got {out.shape} and {out.dtype}"
            )
        out[:] = self._state
        return out

    def motor_state(self) -> np.ndarray:
        """Positions and velocities (2, n) of the motors in joint units: the joints' own if they are rigid."""
        return self.state() if self._drives is None else self._drives.motor_state(self._state)

    @property
    def tau_joint(self) -> np.ndarray:
        """What the arm got from its drives in the last step (n,), in [N m]."""
        return (self._tau if self._drives is None else self._drives.tau_joint).copy()

    def step(
        self, tau: np.ndarray, wrench: ArrayLike | None = None, T_flange_tool: ArrayLike | None = None
    ) -> None:
        """Advance by one time step under the torques `tau` (n,); see `Simulation.step`."""
        tau = np.ascontiguousarray(tau, dtype=np.float64)
        if tau.shape != (self.robot.n,):
            raise ValueError(f"expected tau of shape ({self.robot.n},), got {tau.shape}")
        if self._drives is not None:
            self.robot.kernels.mass_matrix(self._q, self.robot.single_sample.inertias, self._M)
            self._drives.step(self._M, self._bias(wrench, T_flange_tool), tau, self._q, self._qd)
            self._qd[:] = self._drives.next_qd
        else:
            self._tau[:] = tau
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

    def _bias(self, wrench: ArrayLike | None = None, T_flange_tool: ArrayLike | None = None) -> np.ndarray:
        """Coriolis and gravity torque (n,), less what a wrench at the tool gives."""
        if wrench is not None:
            rest = np.zeros(self.robot.n)
            return inverse_dynamics(self.robot, self._q, self._qd, rest, wrench, T_flange_tool)
        one, h = self.robot.single_sample, np.empty(self.robot.n)
        self.robot.kernels.bias(self._q, self._qd, one.inertias, one.gravity, h)
        return h

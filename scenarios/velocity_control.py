"""Scenario `velocity_control`: a constant velocity of the tool through the inverse Jacobian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scenarios.inverse_jacobian import InverseJacobian
from scenarios.options import option, positive
from scenarios.setup import Sampling
from twin.physics.robot.robot import Robot

if TYPE_CHECKING:
    from twin.physics.trajectories.tool_paths import ToolMotion


@dataclass(frozen=True, eq=False)
class ConstantVelocity:
    """Path of a tool with constant velocity (3,), in [m/s], and constant orientation from a pose (4, 4)."""

    start: NDArray
    velocity: NDArray
    duration: float

    def __call__(self, t: ArrayLike, /) -> ToolMotion:
        """Return poses, twists and twist rates at the times t (...), in [s]."""
        from twin.physics.trajectories.tool_paths import ToolMotion

        t = np.asarray(t, dtype=float)
        T, twist = np.tile(self.start, (*t.shape, 1, 1)), np.zeros((*t.shape, 6))
        T[..., :3, 3] += t[..., None] * self.velocity
        twist[..., :3] = self.velocity
        return ToolMotion(T, twist, np.zeros_like(twist))


class VelocityControl(InverseJacobian):
    """Move the tool at a constant velocity through the inverse Jacobian, without feedback.

    What it shows: the scheme of Figure 2.2 of the Ljubljana manual. A constant velocity of the tool, there
    -0.01 m/s along x of the base, is multiplied by the inverse Jacobian at the present joint angles,
    `qd = J^-1 v` (eq. 2.20), and integrated in Euler steps of the control period. The manual's period is 5 ms
    (`--steps-per-period 5`). Five joints get the pseudo-inverse, as on the manual's youBot
    (`--robot youbot`). A controller makes the arm follow these angles. The run begins in motion, because no
    drive can produce a step of speed.

    What must hold: the tool leaves its straight way only by the error of the steps, which nothing corrects:
    it stays below `t T max|J_A_dot qd| / 2` after the time t. The scenario `laboratory` adds the feedback
    that holds this error. The controller follows the joint angles within the bound of
    `scenarios.judging.bounds`, computed torque to 1e-10 rad, and the engine agrees with the model.
    (`--reference continuous` integrates by Runge-Kutta instead of Euler.)
    """

    velocity_x: float = option(-0.01, "velocity of the tool along x of the base, in m/s")
    velocity_y: float = option(0.0, "velocity of the tool along y of the base, in m/s")
    velocity_z: float = option(0.0, "velocity of the tool along z of the base, in m/s")
    duration: float = option(2.0, "length of the run, in s")
    variants = ({"reference": "continuous"},)

    def __post_init__(self) -> None:
        positive(self.duration, "duration", "s")
        if not np.all(np.isfinite(self.velocity)):
            raise ValueError(f"expected a finite velocity in m/s, got {self.velocity.tolist()}")

    @property
    def velocity(self) -> NDArray:
        """Velocity (3,) of the tool in the base frame, in [m/s]."""
        return np.array([self.velocity_x, self.velocity_y, self.velocity_z])

    @property
    def feedback_gain(self) -> None:
        """No feedback."""
        return None

    def path(self, robot: Robot, q_start: NDArray, sampling: Sampling) -> ConstantVelocity:
        """Return the path of the tool of an arm at q_start (n,), in [rad]."""
        from twin.physics.kinematics.forward import forward_kinematics

        start = forward_kinematics(robot, q_start, sampling.T_flange_tool)
        return ConstantVelocity(start, self.velocity, self.duration)


if __name__ == "__main__":
    from scenarios.shell.process import run_script

    raise SystemExit(run_script(__file__))

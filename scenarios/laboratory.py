"""Scenario `laboratory`: the scheme of the robotics laboratory in Ljubljana."""

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
    from twin.physics.trajectories.tool_paths import ToolMotion, ToolPath

ALONG = np.array([0.0, -1.0, -1.0])
BESIDE = np.array([1.0, 0.0, 0.0])


@dataclass(frozen=True)
class Saturated:
    """Path of a tool with constant orientation, its speed along each axis limited, in [m/s]."""

    line: ToolPath
    limit: float

    @property
    def duration(self) -> float:
        """Time from start to end, in [s]."""
        return self.line.duration

    def __call__(self, t: ArrayLike, /) -> ToolMotion:
        """Return poses and limited speeds of the motion at the times t (...), in [s]."""
        desired = self.line(t)
        within = np.abs(desired.twist) <= self.limit
        return desired._replace(
            twist=np.clip(desired.twist, -self.limit, self.limit),
            twist_rate=np.where(within, desired.twist_rate, 0.0),
        )


class Laboratory(InverseJacobian):
    """Run the Ljubljana scheme: a line, inverse kinematics by feedback, PD and the arm.

    What it shows: the last exercise of the robotics laboratory in Ljubljana (manual, section 6, Figure 6.4),
    on its youBot (`--robot youbot`, five joints) or on an ABB arm. The tool moves along a straight line
    between two axes of the base frame, to the right and down, with trapezoidal speed. The joint angles come
    from the inverse analytic Jacobian with feedback of the error, `qd = J_A^-1 (xd + K e)`, in Euler steps of
    the control period (eq. 3.41, 3.45). This needs no inverse kinematics in closed form, and the line may
    begin beside the tool. PD, or another controller, makes the arm follow these angles. The run begins in
    motion, at the speed that the feedback demands, because no drive can produce a step of speed.

    Five joints get the six coordinates by `(J_A^T J_A)^-1 J_A^T`, as in the manual's ijacZYXeul. They can
    hold an orientation along any line on which the tool points straight down: the youBot starts in such a
    pose.

    The manual limits a signal to +-0.5 in the scheme of Figure 3.5, which belongs to that of Figure 6.4. Our
    copy contains neither figure, only a list of blocks: derivative, saturation, gain, function, product,
    integrator. We interpret the list as their order: the derivative of the desired coordinates, in m/s,
    passes the saturation, then K e is added. At the default speed the saturation has no effect; above it the
    tool lags.

    What must hold: the initial error e decays as `(1 - K T)^k`, the manual's `exp(-K t)` in steps of T, and
    the additional error stays below the bound of `twin.trajectories.closed_loop_inverse`. The controller
    follows the joint angles within the bound of `scenarios.judging.bounds`, computed torque to 1e-10 rad, and
    the engine agrees with the model. (`--reference continuous` integrates by Runge-Kutta instead of Euler, so
    that the joint angles follow the continuous law itself.)
    """

    defaults = {"controller": "pd"}
    gain: float = option(10.0, "K of the inverse kinematics, in 1/s")
    speed: float = option(0.25, "cruising speed of the tool along each of the two axes, in m/s")
    acceleration: float = option(0.5, "acceleration of the tool along each of the two axes, in m/s^2")
    saturation: float = option(0.5, "largest desired speed of the tool along each axis, in m/s")
    distance: float = option(0.2, "distance of the tool to the right and, equally, down, in m")
    start_error: float = option(0.005, "distance from the tool forward to the start of the line, in m")
    variants = (
        {"controller": "computed_torque", "reference": "continuous"},
        {"controller": "computed_torque", "steps_per_period": 2},
        {"controller": "computed_torque", "gain": 50.0, "start_error": 0.002},
    )

    def __post_init__(self) -> None:
        positive(self.gain, "gain", "1/s")
        positive(self.speed, "tool speed", "m/s")
        positive(self.acceleration, "tool acceleration", "m/s^2")
        positive(self.distance, "distance", "m")
        if not self.saturation > 0:
            raise ValueError(f"expected a saturation above 0 m/s, got {self.saturation}")
        if not 0 <= self.start_error < float("inf"):
            raise ValueError(f"expected a start error of at least 0 m, got {self.start_error}")

    @property
    def feedback_gain(self) -> float:
        """Gain K of the error, in [1/s]."""
        return self.gain

    def path(self, robot: Robot, q_start: NDArray, sampling: Sampling) -> ToolPath:
        """Return the line, which begins beside the tool of an arm at q_start (n,), in [rad]."""
        from twin.physics.kinematics.forward import forward_kinematics
        from twin.physics.trajectories.tool_paths import straight_line

        T = np.tile(forward_kinematics(robot, q_start, sampling.T_flange_tool), (2, 1, 1))
        T[:, :3, 3] += self.start_error * BESIDE
        T[1, :3, 3] += self.distance * ALONG
        return straight_line(T[0], T[1], speed=self.speed, acceleration=self.acceleration)

    def followed_path(self, path: ToolPath) -> ToolPath:
        """Return the line with its saturated speed."""
        return Saturated(path, self.saturation)


if __name__ == "__main__":
    from scenarios.shell.process import run_script

    raise SystemExit(run_script(__file__))

"""Run the Ljubljana scheme: a line, inverse kinematics by feedback, PD and the arm.

What it shows: the last exercise of the robotics laboratory in Ljubljana (manual, section 6, Figure 6.4), on
its youBot (`--robot youbot`, five joints) or on an ABB arm. The tool moves along a straight line between two
axes of the base frame, to the right and down, with trapezoidal speed. The joint angles come from the inverse
analytic Jacobian with feedback of the error, `qd = J_A^-1 (xd + K e)`, in Euler steps of the control period
(eq. 3.41, 3.45). This needs no inverse kinematics in closed form, and the line may begin beside the tool. PD,
or another controller, makes the arm follow these angles. The run begins in motion, at the speed that the
feedback demands, because no drive can produce a step of speed.

Five joints get the six coordinates by `(J_A^T J_A)^-1 J_A^T`, as in the manual's ijacZYXeul. They can hold an
orientation along any line on which the tool points straight down: the youBot starts in such a pose.

The manual limits a signal to +-0.5 in the scheme of Figure 3.5, which belongs to that of Figure 6.4. Our copy
contains neither figure, only a list of blocks: derivative, saturation, gain, function, product, integrator.
We interpret the list as their order: the derivative of the desired coordinates, in m/s, passes the
saturation, then K e is added. At the default speed the saturation has no effect; above it the tool lags.

What must hold: the initial error e decays as `(1 - K T)^k`, the manual's `exp(-K t)` in steps of T, and the
additional error stays below the bound of `twin.trajectories.closed_loop_inverse`. The controller follows the
joint angles within the bound of `scenarios.checks.bounds`, computed torque to 1e-10 rad, and the engine
agrees with the model. (`--reference continuous` integrates by Runge-Kutta instead of Euler, so that the joint
angles follow the continuous law itself.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

import controllers
from scenarios import base
from scenarios.base import Metric, option, positive
from scenarios.checks.closed_loop import carrying
from scenarios.checks.tracking import follow, tracking_metrics, with_arrays
from scenarios.gravity_hold import held_pose
from twin.errors import RobotError, UnreachableError
from twin.robot.robot import Robot

if TYPE_CHECKING:
    from twin.logs.log import Log
    from twin.trajectories.closed_loop_inverse import FeedbackLaw, Integration, TrackedPath
    from twin.trajectories.sampling import Samples
    from twin.trajectories.tool_paths import StraightLine, ToolMotion


@dataclass(frozen=True)
class Config(base.Config):
    """Settings of the line and of the inverse kinematics."""

    controller: str = option("pd", "controller", controllers.NAMES)
    gain: float = option(10.0, "K of the inverse kinematics, in 1/s")
    speed: float = option(0.25, "cruising speed of the tool along each of the two axes, in m/s")
    acceleration: float = option(0.5, "acceleration of the tool along each of the two axes, in m/s^2")
    saturation: float = option(0.5, "largest desired speed of the tool along each axis, in m/s")
    distance: float = option(0.2, "distance of the tool to the right and, equally, down, in m")
    start_error: float = option(0.005, "distance from the tool forward to the start of the line, in m")
    pose: str | None = option(
        None,
        "named pose at the start (default tool_down for five joints, else test_3; for a robot without this "
        "pose, a bent one)",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self.gain, "gain", "1/s")
        positive(self.speed, "tool speed", "m/s")
        positive(self.acceleration, "tool acceleration", "m/s^2")
        positive(self.distance, "distance", "m")
        if not self.saturation > 0:
            raise ValueError(f"expected a saturation above 0 m/s, got {self.saturation}")
        if not 0 <= self.start_error < float("inf"):
            raise ValueError(f"expected a start error of at least 0 m, got {self.start_error}")

    @property
    def integration(self) -> Integration:
        """Integration method of the inverse kinematics."""
        return "euler" if self.reference == "consistent" else "runge-kutta"


VARIANTS = (
    Config(controller="computed_torque", reference="continuous"),
    Config(controller="computed_torque", steps_per_period=2),
    Config(controller="computed_torque", gain=50.0, start_error=0.002),
)

ALONG = np.array([0.0, -1.0, -1.0])
BESIDE = np.array([1.0, 0.0, 0.0])
ROUNDING = 1e-12  # m and rad: rounding of the error of a pose
TOOL_DOWN = "tool_down"
"""Pose of a robot with five joints in which its tool points straight down."""
DECAYED = 1e-3
"""Share of the initial error below which the remaining error counts as drift."""


def suits(robot: Robot) -> bool:
    """Return whether the robot has masses, and six joints or five joints and the pose `TOOL_DOWN`."""
    return robot.has_inertia and (robot.n == 6 or (robot.n == 5 and TOOL_DOWN in robot.poses))


@dataclass(frozen=True)
class Saturated:
    """Straight line of a tool with constant orientation, its speed along each axis limited, in [m/s]."""

    line: StraightLine
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


def start_pose(robot: Robot, name: str | None) -> NDArray:
    """Return the joint angles (n,) at the start, in [rad]; with five joints by default `TOOL_DOWN`."""
    return held_pose(robot, TOOL_DOWN if name is None and robot.n == 5 else name)


def tool_path(robot: Robot, q_start: NDArray, config: Config) -> StraightLine:
    """Return the line, which begins beside the tool of an arm at q_start (n,), in [rad]."""
    from twin.kinematics.forward import forward_kinematics
    from twin.trajectories.tool_paths import straight_line

    T = np.tile(forward_kinematics(robot, q_start, config.T_flange_tool), (2, 1, 1))
    T[:, :3, 3] += config.start_error * BESIDE
    T[1, :3, 3] += config.distance * ALONG
    return straight_line(T[0], T[1], speed=config.speed, acceleration=config.acceleration)


def controlled(tracked: TrackedPath, config: Config) -> Samples:
    """Return the joint motion as reference of the controller, sampled as the settings require."""
    from twin.trajectories.sampling import semi_implicit_from_positions

    samples, T = tracked.samples, config.period
    if config.reference == "continuous":
        return samples
    before, after = samples.q[0] - T * samples.qd[0], samples.q[-1] + T * samples.qd[-1]
    return semi_implicit_from_positions(samples.q, T, before=before, after=after)


def tracked_line(robot: Robot, law: FeedbackLaw, config: Config) -> tuple[StraightLine, TrackedPath]:
    """Return the line from the pose of the settings, and the joint motion along it.

    If the settings have no pose and the line from the default pose is out of reach, the line starts at the
    first pose of the robot's tour.

    Raises:
        UnreachableError: the line is out of reach.
    """
    from twin.trajectories.closed_loop_inverse import track

    def along(pose: str | None) -> tuple[StraightLine, TrackedPath]:
        q = start_pose(robot, pose)
        path = tool_path(robot, q, config)
        limited = Saturated(path, config.saturation)
        return path, track(law, limited, q, config.period, integration=config.integration)

    try:
        return along(config.pose)
    except UnreachableError:
        if config.pose is not None or not robot.tour:
            raise
        return along(robot.tour[0])


class Followed(NamedTuple):
    """Inverse kinematics along the line.

    Attributes:
        law: feedback law of the inverse kinematics.
        path: line of the tool.
        tracked: joint motion along the line.
        samples: reference of the controller.
    """

    law: FeedbackLaw
    path: StraightLine
    tracked: TrackedPath
    samples: Samples


def followed(robot: Robot, config: Config) -> Followed:
    """Return the inverse kinematics of the settings.

    Raises:
        RobotError: the robot lacks masses, joints or the pose `TOOL_DOWN`.
        UnreachableError: the line is out of reach.
        LimitError: the line requires too much speed of a joint.
    """
    from twin.trajectories.closed_loop_inverse import FeedbackLaw
    from twin.trajectories.sampling import check_limits

    if not suits(robot):
        raise RobotError(
            f"robot {robot.name!r} has {robot.n} joints{'' if robot.has_inertia else ' and no masses'}: the "
            f"line needs six joints, or five and a pose {TOOL_DOWN!r}; the dynamics need masses"
        )
    law = FeedbackLaw(robot, config.gain, T_flange_tool=config.T_flange_tool)
    path, tracked = tracked_line(robot, law, config)
    samples = controlled(tracked, config)
    check_limits(robot, samples)
    return Followed(law, path, tracked, samples)


def reference(robot: Robot, config: Config) -> Samples:
    """Return the reference of the controller."""
    return followed(robot, config).samples


def run(config: Config) -> Log:
    """Follow the line."""
    from twin.trajectories.closed_loop_inverse import decayed_error, drift_bound

    robot = config.bare_robot()
    law, path, tracked, samples = followed(robot, config)
    desired, T, integration = path(tracked.samples.t), config.period, config.integration
    return with_arrays(
        follow(config, samples, *carrying(robot, config)),
        line_error=tracked.error,
        decayed_error=decayed_error(law, tracked.error[0], len(samples.t), T, integration),
        drift_bound=drift_bound(law, tracked.samples, desired, T, integration),
        left_over=law.remainder(tracked.samples.q, tracked.samples.qd, desired),
    )


def metrics(log: Log) -> tuple[Metric, ...]:
    """Return the metrics of the inverse kinematics along the line, then those of the arm's tracking."""
    return (*inverse_metrics(log), *tracking_metrics(log))


def inverse_metrics(log: Log) -> tuple[Metric, ...]:
    """Return the decay and the drift of the inverse kinematics' error, and the total error of the tool."""
    error, decayed, bound = (log.arrays[name] for name in ("line_error", "decayed_error", "drift_bound"))
    left = "(1 - K T)^k" if log.arrays["consistent"] else "exp(-K t)"
    added = Metric(
        "inverse kinematics: error off its decay / bound",
        float(np.max(np.abs(error - decayed) / (bound + ROUNDING))),
        "",
        1.0,
        f"{left} of the first error remains; the steps add up to T max|xdd - J_A_dot qd| / (2 K), and the "
        "speed r left over adds up to max|r| / K",
    )
    left_over = Metric(
        "inverse kinematics: largest speed left over",
        float(np.max(np.abs(log.arrays["left_over"]))),
        "m/s, rad/s",
        None,
        "r, the part of xd + K e that the saturation removes or that fewer than six joints cannot produce",
    )
    whole = Metric(
        "largest distance of the tool from its place on the line",
        float(np.max(np.linalg.norm(log.pose_ref[:, :3] + error[:, :3] - log.pose[:, :3], axis=1))),
        "m",
        None,
        "of the tool's origin: the errors of the inverse kinematics and of the controller together",
    )
    start = np.linalg.norm(decayed[0, :3])
    late = np.linalg.norm(decayed[:, :3], axis=1) <= DECAYED * start
    if not late.any():
        return (added, left_over, whole)
    drift = Metric(
        "inverse kinematics: largest drift from the line",
        float(np.max(np.linalg.norm(error[late, :3], axis=1))),
        "m",
        float(np.linalg.norm(bound[:3]) + DECAYED * start),
        f"the bound of the drift, plus {DECAYED:g} of the first error",
    )
    return (added, left_over, drift, whole)


if __name__ == "__main__":
    from scenarios.cli.process import run_script

    raise SystemExit(run_script(__file__))

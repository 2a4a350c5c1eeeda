"""The Ljubljana scheme: a line, inverse kinematics by feedback, PD and the arm's dynamics.

What it shows: the last exercise of the robotics laboratory in Ljubljana (manual, section 6, Figure 6.4), on
its youBot (`--robot youbot`, five joints) or on an ABB arm. The tool is to go along a straight line between
two axes of the base frame, to the right and down, with trapezoidal speed. The joint angles come from the
inverse analytic Jacobian with feedback of the error, `qd = J_A^-1 (xd + K e)`, in Euler steps of the control
period (eq. 3.41, 3.45): no inverse kinematics in closed form is needed, and the line may begin beside the
tool. PD, or another law, makes the arm's dynamics follow these angles. The run begins in motion, at the speed
that the feedback asks for: a step of speed is more than any drive gives.

Five joints have the six coordinates by `(J_A^T J_A)^-1 J_A^T`, as in the manual's ijacZYXeul. They keep an
orientation along any line where the tool points straight down: there the youBot starts, and does all of it.

The manual limits something to +-0.5 in the scheme of Figure 3.5, which belongs to that of Figure 6.4. Neither
figure survived in our copy, only a list of blocks: derivative, saturation, gain, function, product,
integrator. We read it as their order: the derivative of the wanted coordinates, in m/s, passes the
saturation, then K e is added. At the default speed this takes nothing away; above it the tool lags.

What must hold: the error e at the start dies away as `(1 - K T)^k`, the manual's `exp(-K t)` in steps of T,
and what is added to it stays under the bound of `twin.trajectories.closed_loop_inverse`. The controller
follows the joint angles within the bound of `scenarios.checks.bounds`, computed torque to 1e-10 rad, and the
engine does what the model predicts. (`--reference continuous` integrates by Runge-Kutta instead of Euler, so
that the joint angles follow the continuous law itself.)
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

    controller: str = option("pd", "control law", controllers.NAMES)
    gain: float = option(10.0, "K of the inverse kinematics, in 1/s")
    speed: float = option(0.25, "cruising speed of the tool along each of the two axes, in m/s")
    acceleration: float = option(0.5, "acceleration of the tool along each of the two axes, in m/s^2")
    saturation: float = option(0.5, "largest wanted speed of the tool along each axis, in m/s")
    distance: float = option(0.2, "how far the tool goes to the right, and as far down, in m")
    start_error: float = option(0.005, "how far in front of the tool the line begins, in m")
    pose: str | None = option(
        None,
        "named pose that the arm starts in (default tool_down for five joints, else test_3; where the robot "
        "names none, a bent one)",
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
        """How the inverse kinematics is integrated."""
        return "euler" if self.reference == "consistent" else "runge-kutta"


VARIANTS = (
    Config(controller="computed_torque", reference="continuous"),
    Config(controller="computed_torque", steps_per_period=2),
    Config(controller="computed_torque", gain=50.0, start_error=0.002),
)

ALONG = np.array([0.0, -1.0, -1.0])
BESIDE = np.array([1.0, 0.0, 0.0])
ROUNDING = 1e-12  # m and rad, of the error of a pose
TOOL_DOWN = "tool_down"
"""The pose of a robot with five joints in which its tool points straight down."""
DECAYED = 1e-3
"""Of the error at the start: when no more than this is left, it is the drift that is looked at."""


def suits(robot: Robot) -> bool:
    """Whether the robot has masses, and the joints that the tool needs: six, or five and a pose."""
    return robot.has_inertia and (robot.n == 6 or (robot.n == 5 and TOOL_DOWN in robot.poses))


@dataclass(frozen=True)
class Saturated:
    """A line of a tool that does not turn, its speed along each axis cut off at a limit in [m/s]."""

    line: StraightLine
    limit: float

    @property
    def duration(self) -> float:
        """The time from start to end, in [s]."""
        return self.line.duration

    def __call__(self, t: ArrayLike, /) -> ToolMotion:
        """The motion at the times t (...), in [s]: its places, and the speed."""
        wanted = self.line(t)
        within = np.abs(wanted.twist) <= self.limit
        return wanted._replace(
            twist=np.clip(wanted.twist, -self.limit, self.limit),
            twist_rate=np.where(within, wanted.twist_rate, 0.0),
        )


def start_pose(robot: Robot, name: str | None) -> NDArray:
    """The joint angles (n,) to start with, in [rad]: a named pose, or of five joints `TOOL_DOWN`."""
    return held_pose(robot, TOOL_DOWN if name is None and robot.n == 5 else name)


def tool_path(robot: Robot, q_start: NDArray, config: Config) -> StraightLine:
    """The line, which begins beside the tool of an arm at q_start (n,), in [rad]."""
    from twin.kinematics.forward import forward_kinematics
    from twin.trajectories.tool_paths import straight_line

    T = np.tile(forward_kinematics(robot, q_start, config.T_flange_tool), (2, 1, 1))
    T[:, :3, 3] += config.start_error * BESIDE
    T[1, :3, 3] += config.distance * ALONG
    return straight_line(T[0], T[1], speed=config.speed, acceleration=config.acceleration)


def controlled(tracked: TrackedPath, config: Config) -> Samples:
    """The joint motion for the controller, in the form that the settings ask for."""
    from twin.trajectories.sampling import semi_implicit_from_positions

    samples, T = tracked.samples, config.period
    if config.reference == "continuous":
        return samples
    before, after = samples.q[0] - T * samples.qd[0], samples.q[-1] + T * samples.qd[-1]
    return semi_implicit_from_positions(samples.q, T, before=before, after=after)


def tracked_line(robot: Robot, law: FeedbackLaw, config: Config) -> tuple[StraightLine, TrackedPath]:
    """The line from the pose of the settings, and the joints along it.

    Where no pose was asked for and there is no room for the line, it starts where the robot's tour does.

    Raises:
        UnreachableError: there is no room for the line.
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
    """The inverse kinematics along the line: its law, the line, the joints, and what the controller gets."""

    law: FeedbackLaw
    path: StraightLine
    tracked: TrackedPath
    samples: Samples


def followed(robot: Robot, config: Config) -> Followed:
    """The inverse kinematics of the settings.

    Raises:
        RobotError: the robot has not the joints that it takes.
        UnreachableError, LimitError: there is no room for the line, or it takes too much speed.
    """
    from twin.trajectories.closed_loop_inverse import FeedbackLaw
    from twin.trajectories.sampling import check_limits

    if not suits(robot):
        raise RobotError(
            f"robot {robot.name!r} has {robot.n} joints{'' if robot.has_inertia else ' and no masses'}: the "
            f"line with an orientation takes six, or five and a pose {TOOL_DOWN!r}, the dynamics take masses"
        )
    law = FeedbackLaw(robot, config.gain, T_flange_tool=config.T_flange_tool)
    path, tracked = tracked_line(robot, law, config)
    samples = controlled(tracked, config)
    check_limits(robot, samples)
    return Followed(law, path, tracked, samples)


def reference(robot: Robot, config: Config) -> Samples:
    """What the controller gets."""
    return followed(robot, config).samples


def run(config: Config) -> Log:
    """Follow the line."""
    from twin.trajectories.closed_loop_inverse import decayed_error, drift_bound

    robot = config.bare_robot()
    law, path, tracked, samples = followed(robot, config)
    wanted, T, integration = path(tracked.samples.t), config.period, config.integration
    return with_arrays(
        follow(config, samples, *carrying(robot, config)),
        line_error=tracked.error,
        decayed_error=decayed_error(law, tracked.error[0], len(samples.t), T, integration),
        drift_bound=drift_bound(law, tracked.samples, wanted, T, integration),
        left_over=law.left_over(tracked.samples.q, tracked.samples.qd, wanted),
    )


def metrics(log: Log) -> tuple[Metric, ...]:
    """How the inverse kinematics kept to the line, then how the arm kept to the inverse kinematics."""
    return (*inverse_metrics(log), *tracking_metrics(log))


def inverse_metrics(log: Log) -> tuple[Metric, ...]:
    """The error of the inverse kinematics against its decay and its drift, and the tool's whole error."""
    error, decayed, bound = (log.arrays[name] for name in ("line_error", "decayed_error", "drift_bound"))
    left = "(1 - K T)^k" if log.arrays["consistent"] else "exp(-K t)"
    added = Metric(
        "inverse kinematics: error off its decay / bound",
        float(np.max(np.abs(error - decayed) / (bound + ROUNDING))),
        "",
        1.0,
        f"{left} of the first error is left, and the steps add up to T max|xdd - J_A_dot qd| / (2 K), "
        "what is left over max|r| / K",
    )
    left_over = Metric(
        "inverse kinematics: largest speed left over",
        float(np.max(np.abs(log.arrays["left_over"]))),
        "m/s, rad/s",
        None,
        "r, of xd + K e: what the saturation takes away and what fewer than six joints cannot do",
    )
    whole = Metric(
        "largest distance of the tool from its place on the line",
        float(np.max(np.linalg.norm(log.pose_ref[:, :3] + error[:, :3] - log.pose[:, :3], axis=1))),
        "m",
        None,
        "of the tool's origin: what the inverse kinematics and what the controller leave",
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
        f"that bound, and the {DECAYED:g} of the first error that may be left by then",
    )
    return (added, left_over, drift, whole)

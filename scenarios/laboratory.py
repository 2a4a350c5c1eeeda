"""Scenario `laboratory`: the scheme of the robotics laboratory in Ljubljana."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scenarios.gravity_hold import held_pose
from scenarios.judging.run import TrackingRun
from scenarios.judging.tracking import tracking_metrics
from scenarios.metric import Metric
from scenarios.option import option, positive
from scenarios.scenario import TrackingScenario
from scenarios.setup import Sampling, Setup
from twin.errors import RobotError, UnreachableError
from twin.robot.robot import Robot

if TYPE_CHECKING:
    from twin.trajectories.closed_loop_inverse import FeedbackLaw, Integration, TrackedPath
    from twin.trajectories.sampling import Samples
    from twin.trajectories.tool_paths import StraightLine, ToolMotion

ALONG = np.array([0.0, -1.0, -1.0])
BESIDE = np.array([1.0, 0.0, 0.0])
ROUNDING = 1e-12  # m and rad: rounding of the error of a pose
TOOL_DOWN = "tool_down"
"""Pose of a robot with five joints in which its tool points straight down."""
DECAYED = 1e-3
"""Share of the initial error below which the remaining error counts as drift."""


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


class Followed(NamedTuple):
    """Inverse kinematics along the line: its feedback law, the line of the tool, and the joint motion."""

    law: FeedbackLaw
    path: StraightLine
    tracked: TrackedPath


@dataclass(frozen=True, eq=False, kw_only=True)
class LineRun(TrackingRun):
    """Run along the line, with what its inverse kinematics left.

    Attributes:
        line_error: (N, 6) error of the inverse kinematics, in [m] and [rad].
        decayed_error: (N, 6) part of it that remains of the initial error.
        drift_bound: (6,) bound of the other part.
        left_over: (N, 6) speed that the joints do not produce, in [m/s] and [rad/s].
        integration: integration method of the inverse kinematics.
    """

    line_error: NDArray
    decayed_error: NDArray
    drift_bound: NDArray
    left_over: NDArray
    integration: Integration


def integration_of(sampling: Sampling) -> Integration:
    """Return the integration method of the inverse kinematics."""
    return "euler" if sampling.reference == "consistent" else "runge-kutta"


class Laboratory(TrackingScenario):
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
    pose: str | None = option(
        None,
        "named pose at the start (default tool_down for five joints, else test_3; for a robot without this "
        "pose, a bent one)",
    )
    variants = (
        {"controller": "computed_torque", "reference": "continuous"},
        {"controller": "computed_torque", "steps_per_period": 2},
        {"controller": "computed_torque", "gain": 50.0, "start_error": 0.002},
    )
    needs = ("tool",)

    def __post_init__(self) -> None:
        positive(self.gain, "gain", "1/s")
        positive(self.speed, "tool speed", "m/s")
        positive(self.acceleration, "tool acceleration", "m/s^2")
        positive(self.distance, "distance", "m")
        if not self.saturation > 0:
            raise ValueError(f"expected a saturation above 0 m/s, got {self.saturation}")
        if not 0 <= self.start_error < float("inf"):
            raise ValueError(f"expected a start error of at least 0 m, got {self.start_error}")

    def suits(self, robot: Robot) -> bool:
        """Return whether the robot has masses, and six joints or five joints and the pose `TOOL_DOWN`."""
        return robot.has_inertia and (robot.n == 6 or (robot.n == 5 and TOOL_DOWN in robot.poses))

    def line(self, robot: Robot, q_start: NDArray, sampling: Sampling) -> StraightLine:
        """Return the line, which begins beside the tool of an arm at q_start (n,), in [rad]."""
        from twin.kinematics.forward import forward_kinematics
        from twin.trajectories.tool_paths import straight_line

        T = np.tile(forward_kinematics(robot, q_start, sampling.T_flange_tool), (2, 1, 1))
        T[:, :3, 3] += self.start_error * BESIDE
        T[1, :3, 3] += self.distance * ALONG
        return straight_line(T[0], T[1], speed=self.speed, acceleration=self.acceleration)

    def followed(self, robot: Robot, sampling: Sampling) -> Followed:
        """Return the inverse kinematics along the line.

        If no pose was chosen and the line from the default pose is out of reach, the line starts at the first
        pose of the robot's tour.

        Raises:
            RobotError: the robot lacks masses, joints or the pose `TOOL_DOWN`.
            UnreachableError: the line is out of reach.
        """
        from twin.trajectories.closed_loop_inverse import FeedbackLaw, track

        if not self.suits(robot):
            raise RobotError(
                f"robot {robot.name!r} has {robot.n} joints{'' if robot.has_inertia else ' and no masses'}: "
                f"the line needs six joints, or five and a pose {TOOL_DOWN!r}; the dynamics need masses"
            )
        law = FeedbackLaw(robot, self.gain, T_flange_tool=sampling.T_flange_tool)

        def along(pose: str | None) -> Followed:
            q = start_pose(robot, pose)
            path = self.line(robot, q, sampling)
            limited = Saturated(path, self.saturation)
            found = track(law, limited, q, sampling.period, integration=integration_of(sampling))
            return Followed(law, path, found)

        try:
            return along(self.pose)
        except UnreachableError:
            if self.pose is not None or not robot.tour:
                raise
            return along(robot.tour[0])

    def reference(self, robot: Robot, sampling: Sampling) -> Samples:
        """Return the reference of the controller.

        Raises:
            LimitError: the line requires too much speed of a joint.
        """
        return controlled(robot, self.followed(robot, sampling), sampling)

    def run(self, setup: Setup | None = None) -> LineRun:
        """Follow the line."""
        from scenarios.judging.following import follow
        from twin.trajectories.closed_loop_inverse import decayed_error, drift_bound

        setup = self.checked(setup)
        robot, sampling = setup.nominal_robot(), setup.sampling(self.needs)
        law, path, tracked = found = self.followed(robot, sampling)
        samples = controlled(robot, found, sampling)
        run = follow(setup, samples, self.arms(robot, setup.plant_payload))
        desired, T, integration = path(tracked.samples.t), sampling.period, integration_of(sampling)
        return LineRun(
            **vars(run),
            line_error=tracked.error,
            decayed_error=decayed_error(law, tracked.error[0], len(samples.t), T, integration),
            drift_bound=drift_bound(law, tracked.samples, desired, T, integration),
            left_over=law.remainder(tracked.samples.q, tracked.samples.qd, desired),
            integration=integration,
        )

    def metrics(self, run: LineRun) -> tuple[Metric, ...]:
        """Return the metrics of the inverse kinematics along the line, then those of the arm's tracking."""
        return (*inverse_metrics(run), *tracking_metrics(run))


def controlled(robot: Robot, found: Followed, sampling: Sampling) -> Samples:
    """Return the joint motion as reference of the controller.

    Raises:
        LimitError: the line requires too much speed of a joint.
    """
    from twin.trajectories.sampling import check_limits, semi_implicit_from_positions

    samples, T = found.tracked.samples, sampling.period
    if sampling.reference == "consistent":
        before, after = samples.q[0] - T * samples.qd[0], samples.q[-1] + T * samples.qd[-1]
        samples = semi_implicit_from_positions(samples.q, T, before=before, after=after)
    check_limits(robot, samples)
    return samples


def inverse_metrics(run: LineRun) -> tuple[Metric, ...]:
    """Return the decay and the drift of the inverse kinematics' error, and the total error of the tool."""
    log, error, decayed, bound = run.log, run.line_error, run.decayed_error, run.drift_bound
    left = "(1 - K T)^k" if run.integration == "euler" else "exp(-K t)"
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
        float(np.max(np.abs(run.left_over))),
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
    from scenarios.shell.process import run_script

    raise SystemExit(run_script(__file__))

"""Base of the scenarios whose joint angles come from the inverse Jacobian, and their run and metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenarios.gravity_hold import held_pose
from scenarios.judging.run import TrackingRun
from scenarios.judging.tracking import tracking_metrics
from scenarios.metric import Metric
from scenarios.options import option
from scenarios.scenario import TrackingScenario
from scenarios.setup import Sampling, Setup
from twin.base.errors import RobotError, UnreachableError
from twin.physics.robot.robot import Robot

if TYPE_CHECKING:
    from twin.physics.trajectories.closed_loop_inverse import FeedbackLaw, Integration, TrackedPath
    from twin.physics.trajectories.sampling import Samples
    from twin.physics.trajectories.tool_paths import ToolPath

ROUNDING = 1e-12  # m and rad: rounding of the error of a pose
TOOL_DOWN = "tool_down"
"""Pose of a robot with five joints in which its tool points straight down."""
DECAYED = 1e-3
"""Share of the initial error below which the remaining error counts as drift."""


def start_pose(robot: Robot, name: str | None) -> NDArray:
    """Return the joint angles (n,) at the start, in [rad]; with five joints by default `TOOL_DOWN`."""
    return held_pose(robot, TOOL_DOWN if name is None and robot.n == 5 else name)


class Followed(NamedTuple):
    """Inverse kinematics along a path: its law, the path of the tool, and the joint motion."""

    law: FeedbackLaw
    path: ToolPath
    tracked: TrackedPath


@dataclass(frozen=True, eq=False, kw_only=True)
class LineRun(TrackingRun):
    """Run along a path, with what its inverse kinematics left.

    Attributes:
        line_error: (N, 6) error of the inverse kinematics, in [m] and [rad].
        decayed_error: (N, 6) part of it that remains of the initial error.
        drift_bound: (6,) bound of the other part.
        left_over: (N, 6) speed that the joints do not produce, in [m/s] and [rad/s].
        integration: integration method of the inverse kinematics.
        feedback: whether the inverse kinematics has feedback of the error.
    """

    line_error: NDArray
    decayed_error: NDArray
    drift_bound: NDArray
    left_over: NDArray
    integration: Integration
    feedback: bool


def integration_of(sampling: Sampling) -> Integration:
    """Return the integration method of the inverse kinematics."""
    return "euler" if sampling.reference == "consistent" else "runge-kutta"


class InverseJacobian(TrackingScenario):
    """Scenario whose tool follows a path by the inverse Jacobian; it defines `path` and `feedback_gain`."""

    pose: str | None = option(
        None,
        "named pose at the start (default tool_down for five joints, else test_3; for a robot without this "
        "pose, a bent one)",
    )
    needs = ("tool",)

    @property
    def feedback_gain(self) -> float | None:
        """Gain K of the error, in [1/s]; `None` for no feedback."""
        raise NotImplementedError(f"{type(self).__name__} defines no feedback_gain")

    def path(self, robot: Robot, q_start: NDArray, sampling: Sampling) -> ToolPath:
        """Return the path of the tool of an arm at q_start (n,), in [rad]."""
        raise NotImplementedError(f"{type(self).__name__} defines no path(self, robot, q_start, sampling)")

    def followed_path(self, path: ToolPath) -> ToolPath:
        """Return the motion that the inverse kinematics gets."""
        return path

    def suits(self, robot: Robot) -> bool:
        """Return whether the robot has masses, and six joints or five joints and the pose `TOOL_DOWN`."""
        return robot.has_inertia and (robot.n == 6 or (robot.n == 5 and TOOL_DOWN in robot.poses))

    def followed(self, robot: Robot, sampling: Sampling) -> Followed:
        """Return the inverse kinematics along the line.

        If no pose was chosen and the line from the default pose is out of reach, the line starts at the first
        pose of the robot's tour.

        Raises:
            RobotError: the robot lacks masses, joints or the pose `TOOL_DOWN`.
            UnreachableError: the line is out of reach.
        """
        from twin.physics.trajectories.closed_loop_inverse import FeedbackLaw, track

        if not self.suits(robot):
            raise RobotError(
                f"robot {robot.name!r} has {robot.n} joints{'' if robot.has_inertia else ' and no masses'}: "
                f"the line needs six joints, or five and a pose {TOOL_DOWN!r}; the dynamics need masses"
            )
        law = FeedbackLaw(robot, self.feedback_gain, T_flange_tool=sampling.T_flange_tool)

        def along(pose: str | None) -> Followed:
            q = start_pose(robot, pose)
            path = self.path(robot, q, sampling)
            followed = self.followed_path(path)
            found = track(law, followed, q, sampling.period, integration=integration_of(sampling))
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
        from twin.physics.trajectories.closed_loop_inverse import decayed_error, drift_bound

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
            feedback=self.feedback_gain is not None,
        )

    def metrics(self, run: LineRun) -> tuple[Metric, ...]:
        """Return the metrics of the inverse kinematics along the line, then those of the arm's tracking."""
        return (*inverse_metrics(run), *tracking_metrics(run))


def controlled(robot: Robot, found: Followed, sampling: Sampling) -> Samples:
    """Return the joint motion as reference of the controller.

    Raises:
        LimitError: the line requires too much speed of a joint.
    """
    from twin.physics.trajectories.sampling import check_limits, semi_implicit_from_positions

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
        f"inverse kinematics: error{' off its decay' if run.feedback else ''} / bound",
        float(np.max(np.abs(error - decayed) / (bound + ROUNDING))),
        "",
        1.0,
        f"{left} of the first error remains; the steps add up to T max|xdd - J_A_dot qd| / (2 K), and the "
        "speed r left over adds up to max|r| / K"
        if run.feedback
        else "in the time t the steps add up to t T max|xdd - J_A_dot qd| / 2, and the speed r left over to "
        "t max|r|",
    )
    left_over = Metric(
        "inverse kinematics: largest speed left over",
        float(np.max(np.abs(run.left_over))),
        "m/s, rad/s",
        None,
        "r, the part of the desired rates that a saturation removes or that fewer than six joints cannot "
        "produce",
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

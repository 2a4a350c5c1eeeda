"""From a recording to a motion of the joints: through recorded positions, or along a recorded tool path."""

from dataclasses import dataclass

from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from twin.arrays import Floats
from twin.errors import RecordingError
from twin.recordings.recording import JointRecording, Recording, ToolRecording
from twin.robot.robot import Robot
from twin.trajectories.joint_paths import JointPath, joint_path
from twin.trajectories.limits import check_limits
from twin.trajectories.sampling import sample
from twin.trajectories.tool_paths import eased_time, easing, through_recording


@dataclass(frozen=True, eq=False)
class RecordedJoints:
    """A spline through recorded joint positions; make it with `through_joint_recording`.

    Attributes:
        position: spline over the eased time u, see `twin.trajectories.tool_paths.eased_time`.
        duration: in [s].
        ease_in, ease_out: how long the eased time takes to get going and to stop, in [s].
    """

    position: CubicSpline
    duration: float
    ease_in: float
    ease_out: float

    def __call__(self, t: ArrayLike, /) -> tuple[Floats, Floats, Floats]:
        """Return (q, qd, qdd), each (..., n), at the times t (...), by the chain rule through u(t)."""
        u, du, ddu = eased_time(t, self.duration, self.ease_in, self.ease_out)
        rate, du, ddu = self.position(u, 1), du[..., None], ddu[..., None]
        return self.position(u), rate * du, self.position(u, 2) * du**2 + rate * ddu


def through_joint_recording(recorded: JointRecording) -> RecordedJoints:
    """Return the motion through all samples of a recording of joints, each at its own time, the first at 0.

    A cubic spline over an eased time, as `through_recording` has it for tools: the samples are met at the
    recorded times, accelerations are continuous, and speed and acceleration are zero at both ends.

    Args:
        recorded: from `joint_recording` or `read_recording`.
    """
    t = recorded.t - recorded.t[0]
    times = easing(t)
    return RecordedJoints(CubicSpline(eased_time(t, *times)[0], recorded.q), *times)


def recorded_motion(
    robot: Robot,
    recorded: Recording,
    *,
    near: ArrayLike | None = None,
    T_flange_tool: ArrayLike | None = None,
    period: float = 1e-3,
) -> JointPath | RecordedJoints:
    """Return the motion of a robot's joints along a recording, of either kind, checked all the way.

    Args:
        robot: for a recording of the tool, an arm with a spherical wrist.
        recorded: from `read_recording`, `tool_recording` or `joint_recording`.
        near: (n,) joint angles in [rad]: a recorded tool path begins in the solution next to them. None for
            zeros.
        T_flange_tool: (4, 4) pose of the recorded tool in the flange frame; None for the flange itself.
            Recorded joint positions are what they are with any tool.
        period: spacing of the samples that are checked, in [s].

    Raises:
        RecordingError: the recording has another number of joints, or the tool's turns are too far apart.
        LimitError: a joint's position or speed beyond its limit.
        UnreachableError, BranchError, SingularityError: of a recorded tool path, see `joint_path`.
    """
    if isinstance(recorded, ToolRecording):
        return joint_path(
            robot, through_recording(recorded), near=near, T_flange_tool=T_flange_tool, period=period
        )
    n = recorded.q.shape[1]
    if n != robot.n:
        raise RecordingError(f"the recording has {n} joints, robot {robot.name!r} has {robot.n}")
    motion = through_joint_recording(recorded)
    check_limits(robot, sample(motion, period))
    return motion

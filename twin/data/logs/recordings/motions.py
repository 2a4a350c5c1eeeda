"""Motions along recordings: of the tool or of the joints, through all samples at their times.

Both kinds are splines over an eased time, so that the motion begins and ends at rest.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation, RotationSpline

from twin.base.arrays import Floats, real_array
from twin.base.errors import RecordingError
from twin.base.formatting import short_repr
from twin.data.logs.recordings.recording import JointRecording, Recording, ToolRecording
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.joint_paths import JointPath, joint_path
from twin.physics.trajectories.sampling import check_limits, sample
from twin.physics.trajectories.tool_paths import ToolMotion, eased_time, easing

CONTINUOUS = 1e-6
"""How much the angular acceleration may jump at a sample, relative to its largest value."""


@dataclass(frozen=True, eq=False)
class RecordedPath:
    """Splines through a timed recording; make it with `through_recording`.

    Attributes:
        position, rotation: splines over the eased time u of `eased_time`.
        duration: in [s].
        ease_in, ease_out: how long the eased time takes to get going and to stop, in [s].
    """

    position: CubicSpline
    rotation: RotationSpline
    duration: float
    ease_in: float
    ease_out: float

    __repr__ = short_repr

    def __call__(self, t: ArrayLike, /) -> ToolMotion:
        """Return the tool's motion at the times t (...), in [s], by the chain rule through u(t)."""
        t = real_array(t, "t")
        u, du, ddu = (part.reshape(-1) for part in eased_time(t, self.duration, self.ease_in, self.ease_out))
        R = self.rotation(u).as_matrix()
        # scipy gives the rotation spline's rates in tool axes.
        rate = np.column_stack([self.position(u, 1), (R @ self.rotation(u, 1)[..., None])[..., 0]])
        rate_rate = np.column_stack([self.position(u, 2), (R @ self.rotation(u, 2)[..., None])[..., 0]])

        pose = np.zeros((t.size, 4, 4))
        pose[:, :3, :3], pose[:, :3, 3], pose[:, 3, 3] = R, self.position(u), 1.0
        twist = rate * du[:, None]
        twist_rate = rate_rate * (du**2)[:, None] + rate * ddu[:, None]
        return ToolMotion(
            pose.reshape(*t.shape, 4, 4), twist.reshape(*t.shape, 6), twist_rate.reshape(*t.shape, 6)
        )


def through_recording(recorded: ToolRecording) -> RecordedPath:
    """Return the path through all samples of a recording, each at its own time (the first at t = 0).

    Position: a cubic spline; orientation: scipy's rotation spline, the same thing for rotations. Both have
    continuous acceleration, but neither would be at rest at its ends (the rotation spline's end rates cannot
    be set at all). So both run over an eased time u(t) that starts and stops within the first and the last
    interval: the knots lie at the u of the recorded times, hence the samples are met at the recorded times,
    accelerations stay continuous, and speed and acceleration are zero at both ends. A recording that starts
    or ends in full motion asks for a sharp start or stop within that interval.

    Args:
        recorded: from `tool_recording` or `read_recording`.

    Raises:
        RecordingError: the turns between samples are so large, or the steps so uneven, that scipy's
            iteration for the rotation spline does not reach a continuous acceleration.

    Example:
        >>> import twin
        >>> from twin.logs import through_recording
        >>> poses = [[0.5, y, 0.7, 1, 0, 0, 0] for y in (0.0, 0.1, 0.3)]
        >>> path = through_recording(twin.logs.tool_recording([0, 0.5, 1.0], poses))
        >>> path(0.5).T_base_tool[:3, 3].round(4).tolist()
        [0.5, 0.1, 0.7]
    """
    t = recorded.t - recorded.t[0]
    duration, ease_in, ease_out = easing(t)
    u = eased_time(t, duration, ease_in, ease_out)[0]
    rotation = _rotation_spline(u, Rotation.from_quat(recorded.poses[:, [4, 5, 6, 3]]))
    return RecordedPath(CubicSpline(u, recorded.poses[:, :3]), rotation, duration, ease_in, ease_out)


def _rotation_spline(u: Floats, rotations: Rotation) -> RotationSpline:
    """Return scipy's rotation spline, if its iteration has reached a continuous acceleration."""
    try:
        with np.errstate(all="ignore"):  # where it runs away, it overflows on the way
            spline = RotationSpline(u, rotations)
            jump = np.abs(spline(u[1:-1], 2) - spline(np.nextafter(u[1:-1], -np.inf), 2)).max(initial=0.0)
            if jump <= CONTINUOUS * np.abs(spline(u, 2)).max():
                return spline
    except ValueError:  # it ran away to infinity
        pass
    turns = (rotations[:-1].inv() * rotations[1:]).magnitude()
    k = int(np.argmax(turns))
    raise RecordingError(
        f"the recording, sample {k + 1}: the tool turns by {np.rad2deg(turns[k]):.4g} deg from the sample "
        "before, too much beside the other turns and steps for a spline with continuous acceleration: "
        "record more densely"
    )


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

    __repr__ = short_repr

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

    Example:
        >>> import twin
        >>> q = [[0, 0, 0, 0, 0, 0], [0.1, 0, 0, 0, 0.1, 0], [0.2, 0, 0, 0, 0.2, 0]]
        >>> recorded = twin.logs.joint_recording([0, 0.5, 1.0], q)
        >>> motion = twin.trajectories.recorded_motion(twin.load("irb140"), recorded)
        >>> twin.sample(motion, period=0.5).q[1, [0, 4]].round(4).tolist()
        [0.1, 0.1]
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

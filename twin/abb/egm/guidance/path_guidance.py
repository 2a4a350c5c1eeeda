"""Path correction (`EGMMoveL`): the robot moves along a programmed path, and messages correct its position.

The path is a recording of the tool or of the joints.  The path frame is defined as in the manual: x along the
tangent, `y = x cross tool z`, `z = x cross y`.  A correction (0, y, z) is the offset from the path in this
frame.  It is absolute, not relative to the previous correction; its x and its age are ignored.  While the
path stands still, the frame keeps its last axes; before the first motion it has the first defined axes.

The manual does not state how the robot approaches a correction.  The law of the other guidance modes, applied
in the path frame, is ours.  With the commanded tool at p, the path at s and its axes A, the offset of the
tool is `d = A^T (p - s)`, and

    u = k ((0, y, z) - d),    v+ = v + (1 - exp(-2 pi f dt)) (u - v),    d+ = d + dt v+
    p+ = s+ + A+ d+

so that the offset follows the normal plane of a curved path without lag.  If the axes turn by more than
`CORNER` in one period, A+ is A for that period, and the tool rounds the corner by the control law.  The
orientation is that of the path; the same law reduces an orientation error.

`programmed` is the motion with constant d.  Ramps and limits therefore act on the correction alone.
"""

from pathlib import Path

import numpy as np

from twin.abb.egm.guidance.guidance import Fault, Guidance, GuidanceStop, filter_coefficient
from twin.abb.egm.guidance.settings import AXES, GuidanceSettings
from twin.abb.egm.guidance.tool_steps import ToolSteps, completed_fraction, displaced_pose, pose_displacement
from twin.abb.egm.wire.messages import SensorMessage
from twin.base.arrays import Floats
from twin.base.errors import EgmError
from twin.data.logs.recordings.reading import read_recording
from twin.data.logs.recordings.recording import Recording
from twin.physics.kinematics.forward import forward_kinematics, jacobian
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.joint_paths import recorded_motion
from twin.physics.trajectories.joint_trajectories import Trajectory
from twin.physics.trajectories.sampling import sample_times

MIN_SPEED = 1e-4
"""Smallest tool speed with a defined path tangent, in [m/s] (ours)."""

MIN_SINE = 1e-3
"""Smallest sine of the angle between tangent and tool z; below it y is undefined, and the last axes hold."""

CORNER = 0.05
"""Largest turn of the path frame in one period, in [rad], that is not a corner."""

START_TOLERANCE = 1e-6
"""Largest distance of the joints from the first sample at the start of a path, in [rad]."""


class PathGuidance(Guidance):
    """Path guidance: motion along a recorded path with corrections.

    Attributes:
        start: (n,) joint angles of the first sample of the path, in [rad]; each run must start there.
        duration: duration of the path, in [s].

    Args:
        robot: arm with six joints or more.
        settings: gain, filter and convergence window.
        path: recording, or the path of its file, or a motion of the joints.
        T_flange_tool: (4, 4) pose of the tool on the flange, in [m]; the flange itself by default.
        near: (n,) joint angles, in [rad]; a recorded tool path starts in the inverse kinematics solution
            nearest to them.

    Raises:
        EgmError: the arm has fewer than six joints, or the tool stands still on the path.
        RecordingError, LimitError, UnreachableError, BranchError, SingularityError: see `recorded_motion`.
    """

    guiding_parts = ("path_correction",)
    refusal = "path guidance received a message without a path correction: expected a path correction"

    def __init__(
        self,
        robot: Robot,
        settings: GuidanceSettings,
        path: str | Path | Recording | Trajectory,
        T_flange_tool: Floats | None = None,
        near: Floats | None = None,
    ) -> None:
        self.robot, self.settings = robot, settings
        self.tool = ToolSteps(robot, T_flange_tool)
        chosen = settings.axis_names or AXES["path"]
        self.guided = np.array([float(axis in chosen) for axis in ("x", "y", "z")])
        if isinstance(path, (str, Path)):
            path = read_recording(path, robot)
        if isinstance(path, Recording):
            path = recorded_motion(robot, path, near=near, T_flange_tool=self.tool.T_flange_tool)
        self._motion = path
        self.start: Floats = np.array(self._motion(0.0)[0])
        self.duration = self._motion.duration
        self._sample(1e-3)  # `begin` samples again if the run has another period

    def begin(self, q: Floats, period: float) -> None:
        """Start at rest in q (n,), in [rad], the first sample of the path, with a sampling period in [s].

        Raises:
            EgmError: q is not the first sample of the path.
        """
        off = np.abs(q - self.start)
        if not np.max(off) <= START_TOLERANCE:
            worst = int(np.argmax(off))
            raise EgmError(
                f"expected a start at the first sample of the path: {self.robot.joint_names[worst]} is at "
                f"{np.rad2deg(q[worst]):.6g} deg, the path starts at {np.rad2deg(self.start[worst]):.6g} deg"
            )
        if period != self.period:
            self._sample(period)
        self.share = filter_coefficient(self.settings.bandwidth, period)
        self._k, self._over, self._correction = 0, False, np.zeros(3)
        self._V, self._programmed, self._asked = np.zeros(6), np.zeros_like(q), np.zeros_like(q)

    def take(self, message: SensorMessage, q: Floats) -> None:
        """Set y and z of the correction in a message.

        Raises:
            GuidanceStop: the message only has joint or tool references, or its correction is not 3 finite
                numbers.
        """
        if not self.has_guiding_part(message):
            return
        correction = message.path_correction
        assert correction is not None, "a guiding message has a path correction"
        if correction.shape != (3,) or not np.isfinite(correction).all():
            sentence = "path guidance expected a correction of 3 finite lengths, got other values"
            raise GuidanceStop(Fault(0, "invalid message", sentence))
        self._correction = correction * self.guided

    def speed(self, q: Floats) -> Floats:
        """Return the joint speeds (n,) of the next period along the corrected path, in [rad/s]."""
        here, there = self._k, min(self._k + 1, len(self._T) - 1)
        T, inverse = self.tool.pose(q), self.tool.inverse(q)
        axes, axes_next = self._axes[here], self._axes[there]
        if np.max(np.abs(axes_next - axes)) > CORNER:
            axes_next = axes
        off, displacement, T_beside, T_next = np.empty(6), np.empty(6), np.empty((4, 4)), np.empty((4, 4))
        pose_displacement(self._T[here], T, off)
        d, turned = axes.T @ off[:3], axes.T @ off[3:]
        desired = self.settings.gain * np.concatenate([self._correction - d, -turned])
        self._V = self._V + self.share * (desired - self._V)
        # The programmed motion: a step along the path at the present offset.
        pose_displacement(self._T[here], self._T[there], displacement)
        displacement[:3] += axes_next @ d - off[:3]
        displaced_pose(T, displacement, T_beside)
        q_beside = self._reached(q, T_beside, inverse)
        self._programmed = (q_beside - q) / self.period
        # The correction is added to the programmed motion.
        step = self.period * np.concatenate([axes_next @ self._V[:3], axes_next @ self._V[3:]])
        displaced_pose(T_beside, step, T_next)
        self._k, self._over = there, here == there
        self._asked = (self._reached(q_beside, T_next, inverse) - q) / self.period
        return self._asked

    def programmed(self) -> Floats:
        """Return the share (n,) of the path at constant offset in the last `speed`, in [rad/s]."""
        return self._programmed

    def ended(self) -> bool:
        """Return whether the path is complete and has stood still for a period."""
        return self._over

    def converged(self, q: Floats) -> bool:
        """Return whether y and z of the tool at q (n,), in [rad], are within the window of the correction."""
        T, axes = self.tool.pose(q), self._axes[self._k]
        distance = axes.T @ (T[:3, 3] - self._T[self._k][:3, 3])
        off = np.abs(distance - self._correction)[1:]
        return bool(np.all(off <= 1e-3 * self.settings.cond_window_mm))

    def follow(self, qd: Floats) -> None:
        """Continue filtering from the limited speed (n,), in [rad/s]."""
        self._V = completed_fraction(qd - self._programmed, self._asked - self._programmed) * self._V

    def _reached(self, q: Floats, T: Floats, inverse: Floats) -> Floats:
        """Return joint angles (n,) at a nearby pose of the tool."""
        q_next = self.tool.reach(q, T, inverse)
        if q_next is None:  # the step is too large for the iteration: use the Jacobian alone
            displacement = np.empty(6)
            pose_displacement(self.tool.pose(q), T, displacement)
            return q + inverse @ displacement
        return q_next

    def _sample(self, period: float) -> None:
        """Sample poses and axes of the path with a period, in [s]."""
        self.period = period
        q, qd, _ = self._motion(sample_times(self.duration, period))
        tool = self.tool.T_flange_tool
        self._T = forward_kinematics(self.robot, q, tool)
        v = np.einsum("kij,kj->ki", jacobian(self.robot, q, tool)[:, :3], qd)
        self._axes = path_axes(v, self._T[:, :3, 2])


def path_axes(v: Floats, tool_z: Floats) -> Floats:
    """Return the path frames (N, 3, 3): columns x the tangent, `y = x cross tool z`, `z = x cross y`.

    Where the path stands still or runs along tool z, the last axes hold; before these, the first ones.

    Args:
        v: (N, 3) velocity of the tool, base axes, in [m/s].
        tool_z: (N, 3) z axis of the tool, base axes.

    Raises:
        EgmError: the axes are undefined on the whole path.

    Example:
        >>> import numpy as np
        >>> from twin.abb.egm.guidance.path_guidance import path_axes
        >>> v, tool_z = np.array([[0.0, 0.1, 0.0]]), np.array([[0.0, 0.0, -1.0]])
        >>> (path_axes(v, tool_z)[0] + 0.0).tolist()
        [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]

    Source: ABB 3HAC073318-001 Rev K, path correction.
    """
    speed = np.linalg.norm(v, axis=1)
    x = v / np.where(speed > 0.0, speed, 1.0)[:, None]
    y = np.cross(x, tool_z)
    sine = np.linalg.norm(y, axis=1)
    known = (speed > MIN_SPEED) & (sine > MIN_SINE)
    if not known.any():
        motion = "moves along its z axis only" if (speed > MIN_SPEED).any() else "stands still"
        raise EgmError(
            "expected a path whose tangent is not parallel to the z axis of the tool: on this path the tool "
            f"{motion}"
        )
    y /= np.where(sine > 0.0, sine, 1.0)[:, None]
    axes = np.stack([x, y, np.cross(x, y)], axis=2)
    last = np.maximum.accumulate(np.where(known, np.arange(len(v)), -1))
    return np.ascontiguousarray(axes[np.where(last >= 0, last, int(np.argmax(known)))])

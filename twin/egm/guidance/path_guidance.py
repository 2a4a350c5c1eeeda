"""Path correction (`EGMMoveL`): the robot moves along a path of its own, and is told how far beside it to go.

The path comes from a recording, of the tool or of the joints.  Its axes at a time are the manual's: x along
its tangent, `y = x cross tool z`, `z = x cross y`.  A correction (0, y, z) is the distance from the path in
these axes, absolute and not from the last one; its x is ignored, and so is its age.  Where the path stands
still it keeps its last axes, and before it sets out it has its first.

The manual does not tell how a correction is reached; ours is the law of the other guidances, in these axes.
With the commanded tool at p, the path at s and its axes A, `d = A^T (p - s)` is where the tool is beside it:

    u = k ((0, y, z) - d),    v+ = v + (1 - exp(-2 pi f dt)) (u - v),    d+ = d + dt v+
    p+ = s+ + A+ d+

so that the tool stays at right angles to a path that bends, without any lag.  Where the axes turn by more
than `CORNER` in one period, A+ is A for that period, and the tool goes round by the law.  The orientation is
the path's; what is missing of it is taken away by the same law.

`programmed` is the motion with d as it is, so that ramps and limits act on the correction alone.
"""

from pathlib import Path

import numpy as np

from twin.arrays import Floats
from twin.egm.guidance.guidance import Fault, Guidance, GuidanceStop, filter_share
from twin.egm.guidance.settings import AXES, GuidanceSettings
from twin.egm.guidance.tool_steps import ToolSteps, moved_by, pose_displacement, share_of
from twin.egm.wire.messages import SensorMessage
from twin.errors import EgmError
from twin.kinematics.forward import forward_kinematics, jacobian
from twin.logs.recordings.reading import read_recording
from twin.logs.recordings.recording import Recording
from twin.robot.robot import Robot
from twin.trajectories.joint_paths import recorded_motion
from twin.trajectories.sampling import sample_times

STANDS_STILL = 1e-4
"""In [m/s]: of a slower tool the direction is not asked for, ours."""

ALONG_TOOL = 1e-3
"""Sine of the angle between tangent and tool z: below it the manual's y is none, and the axes stay."""

CORNER = 0.05
"""In [rad] a period, of the path's axes."""

BESIDE_START = 1e-6
"""In [rad], how far from its first sample a path may be begun."""


class PathGuidance(Guidance):
    """Moves along a path, and corrects it.

    Attributes:
        start: (n,) joint angles of the path's first sample, in [rad], where a run has to begin.
        duration: of the path, in [s].

    Args:
        robot: an arm of six joints or more.
        settings: gain, filter and window.
        path: a recording, or its file.
        T_flange_tool: (4, 4) pose of the tool on the flange, in [m]; the flange itself by default.
        near: (n,) joint angles in [rad]: a recorded tool path begins in the solution next to them.

    Raises:
        EgmError: the arm has fewer joints, or the tool stands still on the path.
        RecordingError, LimitError, UnreachableError, BranchError, SingularityError: see `recorded_motion`.
    """

    own_parts = ("path_correction",)
    refusal = "path guidance got a message without a correction of the path"

    def __init__(
        self,
        robot: Robot,
        settings: GuidanceSettings,
        path: str | Path | Recording,
        T_flange_tool: Floats | None = None,
        near: Floats | None = None,
    ) -> None:
        self.robot, self.settings = robot, settings
        self.tool = ToolSteps(robot, T_flange_tool)
        chosen = settings.axis_names or AXES["path"]
        self.guided = np.array([float(axis in chosen) for axis in ("x", "y", "z")])
        recorded = read_recording(path, robot) if isinstance(path, (str, Path)) else path
        self._motion = recorded_motion(robot, recorded, near=near, T_flange_tool=self.tool.T_flange_tool)
        self.start: Floats = np.array(self._motion(0.0)[0])
        self.duration = self._motion.duration
        self._sample(1e-3)  # and again if a run has another period

    def begin(self, q: Floats, period: float) -> None:
        """Begin at rest in q (n,), the path's first sample; `speed` is then asked for once a period, in [s].

        Raises:
            EgmError: the arm is elsewhere.
        """
        off = np.abs(q - self.start)
        if not np.max(off) <= BESIDE_START:
            worst = int(np.argmax(off))
            raise EgmError(
                f"a path is begun at its first sample: {self.robot.joint_names[worst]} is at "
                f"{np.rad2deg(q[worst]):.6g} deg, the path begins at {np.rad2deg(self.start[worst]):.6g} deg"
            )
        if period != self.period:
            self._sample(period)
        self.share = filter_share(self.settings.bandwidth, period)
        self._k, self._over, self._correction = 0, False, np.zeros(3)
        self._V, self._programmed, self._asked = np.zeros(6), np.zeros_like(q), np.zeros_like(q)

    def take(self, message: SensorMessage, q: Floats) -> None:
        """Take over a correction, its y and z; a message that tells nothing changes nothing.

        Raises:
            GuidanceStop: it tells of joints or of the tool alone; its correction is not 3 finite numbers.
        """
        if not self.concerns(message):
            return
        correction = message.path_correction
        assert correction is not None, "a message that concerns it has one"
        if correction.shape != (3,) or not np.isfinite(correction).all():
            sentence = "path guidance expected a correction of 3 finite lengths"
            raise GuidanceStop(Fault(0, "invalid message", sentence))
        self._correction = correction * self.guided

    def speed(self, q: Floats) -> Floats:
        """Joint speeds (n,) of the next period, in [rad/s]: along the path, and towards the correction."""
        here, there = self._k, min(self._k + 1, len(self._T) - 1)
        T, inverse = self.tool.pose(q), self.tool.inverse(q)
        axes, axes_next = self._axes[here], self._axes[there]
        if np.max(np.abs(axes_next - axes)) > CORNER:
            axes_next = axes
        off, way, T_beside, T_next = np.empty(6), np.empty(6), np.empty((4, 4)), np.empty((4, 4))
        pose_displacement(self._T[here], T, off)
        d, turned = axes.T @ off[:3], axes.T @ off[3:]
        wanted = self.settings.gain * np.concatenate([self._correction - d, -turned])
        self._V = self._V + self.share * (wanted - self._V)
        # The robot's own motion, beside the path.
        pose_displacement(self._T[here], self._T[there], way)
        way[:3] += axes_next @ d - off[:3]
        moved_by(T, way, T_beside)
        q_beside = self._reached(q, T_beside, inverse)
        self._programmed = (q_beside - q) / self.period
        # The correction on top of it.
        step = self.period * np.concatenate([axes_next @ self._V[:3], axes_next @ self._V[3:]])
        moved_by(T_beside, step, T_next)
        self._k, self._over = there, here == there
        self._asked = (self._reached(q_beside, T_next, inverse) - q) / self.period
        return self._asked

    def programmed(self) -> Floats:
        """The part (n,) of the last `speed` that is the path's, beside it where the tool is, in [rad/s]."""
        return self._programmed

    def ended(self) -> bool:
        """Whether the path is over, and has stood still for a period."""
        return self._over

    def converged(self, q: Floats) -> bool:
        """Whether at q (n,), in [rad], y and z of the tool are within the window of the correction."""
        T, axes = self.tool.pose(q), self._axes[self._k]
        distance = axes.T @ (T[:3, 3] - self._T[self._k][:3, 3])
        off = np.abs(distance - self._correction)[1:]
        return bool(np.all(off <= 1e-3 * self.settings.cond_window_mm))

    def follow(self, qd: Floats) -> None:
        """Go on filtering from the speed (n,) that the limits left, in [rad/s]."""
        self._V = share_of(qd - self._programmed, self._asked - self._programmed) * self._V

    def _reached(self, q: Floats, T: Floats, inverse: Floats) -> Floats:
        q_next = self.tool.reach(q, T, inverse)
        if q_next is None:  # a step too large for the iteration: as far as the Jacobian tells
            way = np.empty(6)
            pose_displacement(self.tool.pose(q), T, way)
            return q + inverse @ way
        return q_next

    def _sample(self, period: float) -> None:
        """Sample poses and axes of the path."""
        self.period = period
        q, qd, _ = self._motion(sample_times(self.duration, period))
        tool = self.tool.T_flange_tool
        self._T = forward_kinematics(self.robot, q, tool)
        v = np.einsum("kij,kj->ki", jacobian(self.robot, q, tool)[:, :3], qd)
        self._axes = path_axes(v, self._T[:, :3, 2])


def path_axes(v: Floats, tool_z: Floats) -> Floats:
    """The axes (N, 3, 3) of a path, in columns: x its tangent, `y = x cross tool z`, `z = x cross y`.

    Where the path stands still, or runs along the tool's z, the last axes hold; before any, the first.

    Args:
        v: (N, 3) velocity of the tool, base axes, in [m/s].
        tool_z: (N, 3) z axis of the tool, base axes.

    Raises:
        EgmError: there are none on the whole path.

    Source: ABB 3HAC073318-001 Rev K, path correction.
    """
    speed = np.linalg.norm(v, axis=1)
    x = v / np.where(speed > 0.0, speed, 1.0)[:, None]
    y = np.cross(x, tool_z)
    sine = np.linalg.norm(y, axis=1)
    known = (speed > STANDS_STILL) & (sine > ALONG_TOOL)
    if not known.any():
        does = "moves along its z axis alone" if (speed > STANDS_STILL).any() else "stands still"
        raise EgmError(
            "a path to be corrected needs a tangent, and one that is not along the tool's z axis: on this "
            f"one the tool {does}"
        )
    y /= np.where(sine > 0.0, sine, 1.0)[:, None]
    axes = np.stack([x, y, np.cross(x, y)], axis=2)
    last = np.maximum.accumulate(np.where(known, np.arange(len(v)), -1))
    return np.ascontiguousarray(axes[np.where(last >= 0, last, int(np.argmax(known)))])

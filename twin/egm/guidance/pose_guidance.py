"""Pose guidance (`EGMRunPose`): references are poses of the tool, its speeds, or both, in stated frames.

    T_base_wobj      the work object, told in the base frame
    T_base_corr      CorrFrame: along and about its axes the tool is guided, or stays
    T_base_sensor    SensorFrame: what poses and speeds of a message are told in

CorrFrame and SensorFrame are told relative to one of four: `base`; `wobj`, the work object; `world`; and
`tool`, the frame tool0 of the flange where it was when the instruction began, and fixed from then on (that it
does not move along is ours, the manual does not tell).  The manual's fifth, `EGM_FRAME_JOINT`, there is not.

A pose T of a message is `T_base_wanted = T_base_sensor T`; its speed is resolved along the axes of the
sensor's frame.  The guided axes of the correction frame are taken of it; along and about the others the tool
keeps the value that it had at the start.  Without a pose in a message the last one stays valid, at first that
of the start; without a speed it is 0:

    p_ref = p_start + A m A^T (p_wanted - p_start)
    R_ref = exp(A m A^T r) R_start          exp(r) R_start = R_wanted

with A the axes of the correction frame and m 1 for axes that are guided, 0 for others.  With e the way from
the commanded pose to that one, position and rotation vector of `R_ref R^T`, the law is that of the joints,

    u = k e + V_ref,    V+ = V + (1 - exp(-2 pi f dt)) (u - V),    p+ = p + dt v+,    R+ = exp(dt omega+) R

and the joints are solved for that bring the tool there, so that it holds to round-off wherever no limit or
ramp acts on the speed, see `twin.egm.guidance.tool_steps`.  Equal gains of all axes make a straight line from
start to reference, and a turn about a fixed axis.  What a limit leaves of the speed is taken in the same
direction.

The manual tells neither in what axes a tool's speed is told nor what is close to a singularity; ours.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from twin.arrays import Floats
from twin.egm.guidance.guidance import Fault, Guidance, GuidanceStop, filter_share
from twin.egm.guidance.settings import AXES, GuidanceSettings
from twin.egm.guidance.tool_steps import ToolSteps, moved_by, pose_displacement, share_of
from twin.egm.wire.messages import SensorMessage
from twin.errors import EgmError, RobotError
from twin.kinematics.inverse import inverse_kinematics
from twin.robot.flange_load import numbers, unit_pose
from twin.robot.robot import Robot
from twin.rotations.rotations import rigid_poses

FARTHEST = 20.0
"""In [m]: nothing that an arm works on is farther from it, so larger numbers are millimetres."""


class Frames(NamedTuple):
    """The frames of one instruction.

    Attributes:
        T_base_wobj: (4, 4) the work object in the base frame, in [m], as are the others.
        T_base_corr: (4, 4) CorrFrame.
        T_base_sensor: (4, 4) SensorFrame.
    """

    T_base_wobj: Floats
    T_base_corr: Floats
    T_base_sensor: Floats


def frame_of(text: str | None, setting: str) -> Floats:
    """The pose (4, 4) of a frame that a text tells, in [m]; `None` tells the one that it is relative to.

    Args:
        text: `x,y,z` or `x,y,z,a,b,c,d`: metres, and a unit quaternion, scalar first.
        setting: its name, for the message.

    Raises:
        EgmError: it is not that.
    """
    if text is None:
        return np.eye(4)
    told = "a frame as x,y,z or as x,y,z,a,b,c,d in m and a unit quaternion, scalar first"
    try:
        values = numbers(text, told, (3, 7))
        farthest = max(map(abs, values[:3]))
        if farthest > FARTHEST:
            raise ValueError(
                f"expected {told}, at most {FARTHEST:g} m away, got {farthest:g}: are these millimetres?"
            )
        return unit_pose(values, told)
    except ValueError as error:
        raise EgmError(f"{setting}: {error}") from None


def base_in_world(gravity: Floats) -> Floats:
    """The turn (4, 4) `T_world_base` of a mounting: the least one that makes up of the base upwards in z.

    For an arm that hangs, any half turn about a horizontal axis is as small: that about x is taken, ours.

    Args:
        gravity: (3,) acceleration of gravity in the base frame, in [m/s^2]; none at all turns nothing.
    """
    T = np.eye(4)
    length = float(np.linalg.norm(gravity))
    if length > 0.0:
        x, y, z = -np.asarray(gravity) / length
        sine = math.hypot(x, y)  # the axis is up x (0, 0, 1) = (y, -x, 0)
        axis = np.array([y, -x, 0.0]) / sine if sine > 0.0 else np.array([1.0, 0.0, 0.0])
        T[:3, :3] = Rotation.from_rotvec(math.atan2(sine, z) * axis).as_matrix()
    return T


def work_object(settings: GuidanceSettings) -> Floats:
    """The pose (4, 4) `T_base_wobj` of the work object, in [m].

    Raises:
        EgmError: its text tells no frame.
    """
    return frame_of(settings.wobj, "wobj")


def frames_of(robot: Robot, settings: GuidanceSettings, T_base_tool0: Floats) -> Frames:
    """The frames of an instruction that begins now.

    Args:
        robot: its mounting tells the world.
        settings: what the frames are, and what they are told in.
        T_base_tool0: (4, 4) the flange where it begins, in [m].

    Raises:
        EgmError: a text that tells no frame.
    """
    T_base_wobj = work_object(settings)
    known = {
        "base": np.eye(4),
        "world": base_in_world(robot.gravity).T,  # the inverse of a turn
        "wobj": T_base_wobj,
        "tool": np.asarray(T_base_tool0, dtype=np.float64),
    }
    corr, sensor = settings.corr_frame, settings.sensor_frame
    corr_type = settings.corr_frame_type
    sensor_type = corr_type if settings.sensor_frame_type is None else settings.sensor_frame_type
    T_base_corr = known[corr_type] @ frame_of(corr, "corr_frame")
    T_base_sensor = known[sensor_type] @ (
        frame_of(corr, "corr_frame") if sensor is None else frame_of(sensor, "sensor_frame")
    )
    return Frames(T_base_wobj, T_base_corr, T_base_sensor)


FASTEST = 1e6
"""The largest speed of the tool, in [m/s] and [rad/s]; more is no speed, and its square overflows."""

LEAST_SHARE = 1e-3
"""The share of a step below which the Jacobian alone tells the joint speeds."""


class PoseGuidance(Guidance):
    """Guides the pose of the tool of an arm of six joints or more.

    Args:
        robot: the arm.
        settings: gain, filter, windows, frames, and which axes are guided.
        T_flange_tool: (4, 4) pose of the tool on the flange, in [m]; the flange itself by default.

    Raises:
        EgmError: the arm has fewer joints, or a text of the settings tells no frame.
    """

    own_parts = ("T", "twist")
    refusal = "pose guidance got a message without the tool, valid are its pose or its speed"

    def __init__(self, robot: Robot, settings: GuidanceSettings, T_flange_tool: Floats | None = None) -> None:
        self.robot, self.settings = robot, settings
        self.tool = ToolSteps(robot, T_flange_tool)
        chosen = settings.axis_names or AXES["pose"]
        self.guided = np.array([float(axis in chosen) for axis in AXES["pose"]])
        self.window = np.array([1e-3 * settings.cond_window_mm] * 3 + [settings.window(1)[0]] * 3)
        frames_of(robot, settings, np.eye(4))  # what is wrong with them is told before a run begins

    def begin(self, q: Floats, period: float) -> None:
        """Begin at rest in q (n,), in [rad]; `speed` is then asked for once a period, in [s]."""
        self.period, self.share = period, filter_share(self.settings.bandwidth, period)
        self.T_start = self.tool.pose(q)
        T_base_tool0 = self.T_start @ np.linalg.inv(self.tool.T_flange_tool)
        self.frames = frames_of(self.robot, self.settings, T_base_tool0)
        axes = self.frames.T_base_corr[:3, :3]
        self._to_corr = _both(axes.T)
        self._taken = _both(axes) @ np.diag(self.guided) @ self._to_corr
        self.T_ref, self.V_ref, self.V = self.T_start, np.zeros(6), np.zeros(6)
        self._q, self._asked, self._left = q.copy(), np.zeros_like(q), 1.0

    def take(self, message: SensorMessage, q: Floats) -> None:
        """Take over the pose and the speed of a message; one that tells nothing changes nothing.

        Raises:
            GuidanceStop: it tells of joints or of a path alone; it is no pose, or none that can be reached.
        """
        if not self.concerns(message):
            return
        T_ref = self.T_ref
        if message.T is not None:
            try:
                T_sensor_tool = rigid_poses(message.T, "the pose of the tool")
            except ValueError as error:
                raise GuidanceStop(Fault(0, "invalid message", f"pose guidance {error}")) from None
            T_ref = self._reference(self.frames.T_base_sensor @ T_sensor_tool)
        twist = np.zeros(6) if message.twist is None else message.twist
        if twist.shape != (6,) or not np.all(np.abs(twist) < FASTEST):
            sentence = f"pose guidance expected 6 speeds of the tool below {FASTEST:g} m/s and rad/s"
            raise GuidanceStop(Fault(0, "invalid message", sentence))
        self.T_ref = T_ref
        self.V_ref = self._taken @ _both(self.frames.T_base_sensor[:3, :3]) @ twist

    def speed(self, q: Floats) -> Floats:
        """Joint speeds (n,) of the next period, in [rad/s]."""
        T, e, T_next = self.tool.pose(q), np.empty(6), np.empty((4, 4))
        inverse = self.tool.inverse(q)
        pose_displacement(T, self.T_ref, e)
        wanted = self.settings.gain * e + self.V_ref
        self.V = self.V + self.share * (wanted - self.V)
        # Ramps and limits leave a share of it, foreseen from the last two: that step is solved for.
        last, self._left = self._left, share_of((q - self._q) / self.period, self._asked)
        left = min(1.0, 2.0 * self._left - last)
        self._q, self._asked = q.copy(), inverse @ self.V
        if left > LEAST_SHARE:
            moved_by(T, left * self.period * self.V, T_next)
            q_next = self.tool.reach(q, T_next, inverse)
            if q_next is not None:
                self._asked = (q_next - q) / (left * self.period)
        return self._asked

    def converged(self, q: Floats) -> bool:
        """Whether at q (n,), in [rad], the tool is within the windows of the guided axes of the reference."""
        e = np.empty(6)
        pose_displacement(self.tool.pose(q), self.T_ref, e)
        return bool(np.all(np.abs(self.guided * (self._to_corr @ e)) <= self.window))

    def follow(self, qd: Floats) -> None:
        """Go on filtering from the speed (n,) that the limits left, in [rad/s]."""
        if not np.array_equal(qd, self._asked):
            share = share_of(qd, self._asked)
            self.V = share * self.V + self.tool.jacobian(self._q) @ (qd - share * self._asked)

    def _reference(self, T_wanted: Floats) -> Floats:
        """The pose (4, 4) to go to: of what is wanted, the guided axes.

        Raises:
            GuidanceStop: 50050, no joint angles reach it.
        """
        way, T = np.empty(6), np.empty((4, 4))
        pose_displacement(self.T_start, T_wanted, way)
        moved_by(self.T_start, self._taken @ way, T)
        try:
            T_base_flange = T @ np.linalg.inv(self.tool.T_flange_tool)
            solutions = inverse_kinematics(self.robot, T_base_flange, limits=False)
        except RobotError:  # none in closed form: the arm goes as far as it gets
            return T
        if np.all(np.any(np.isnan(solutions), axis=1)):
            x, y, z = 1e3 * T[:3, 3]
            raise GuidanceStop(
                Fault(
                    50050,
                    "Position outside reach",
                    f"no joint angles reach the tool pose at x = {x:.6g}, y = {y:.6g}, z = {z:.6g} mm "
                    "of the base frame",
                )
            )
        return T


def _both(R: Floats) -> Floats:
    """The matrix (6, 6) that turns position and rotation vector alike."""
    both = np.zeros((6, 6))
    both[:3, :3] = both[3:, 3:] = R
    return both

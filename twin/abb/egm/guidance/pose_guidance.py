"""Pose guidance (`EGMRunPose`): references are poses of the tool, its speeds, or both, in configured frames.

    T_base_wobj      pose of the work object in the base frame
    T_base_corr      CorrFrame: the tool is guided, or held, along and about its axes
    T_base_sensor    SensorFrame: frame of the poses and speeds in messages

CorrFrame and SensorFrame are defined relative to one of four frames: `base`; `wobj`, the work object;
`world`; and `tool`, the flange frame tool0 at the beginning of the instruction.  The frame `tool` stays fixed
during the instruction; this is ours, because the manual does not state whether it moves.  The fifth frame of
the manual, `EGM_FRAME_JOINT`, is not supported.

A pose T of a message defines `T_base_desired = T_base_sensor T`; its speed is given in the axes of the sensor
frame.  Only the guided axes of the correction frame are used.  Along and about the other axes the tool keeps
its value from the start.  A message without a pose leaves the last pose valid, initially that of the start.
A message without a speed sets it to 0:

    p_ref = p_start + A m A^T (p_desired - p_start)
    R_ref = exp(A m A^T r) R_start          exp(r) R_start = R_desired

with A the axes of the correction frame and m 1 for guided axes, 0 for others.  Let e be the displacement from
the commanded pose to the reference: the position difference and the rotation vector of `R_ref R^T`.  The
control law is that of joint guidance,

    u = k e + V_ref,    V+ = V + (1 - exp(-2 pi f dt)) (u - V),    p+ = p + dt v+,    R+ = exp(dt omega+) R

The joint angles are solved for the resulting pose of the tool.  The law therefore holds up to round-off
wherever no limit or ramp reduces the speed, see `twin.egm.guidance.tool_steps`.  Equal gains of all axes
result in a straight line from start to reference and a rotation about a fixed axis.  Limits reduce the speed
without a change of direction.

The manual defines neither the axes of a tool speed nor the distance that is close to a singularity; both
definitions are ours.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from twin.abb.egm.guidance.guidance import Fault, Guidance, GuidanceStop, filter_coefficient
from twin.abb.egm.guidance.settings import AXES, GuidanceSettings
from twin.abb.egm.guidance.tool_steps import ToolSteps, completed_fraction, displaced_pose, pose_displacement
from twin.abb.egm.wire.messages import SensorMessage
from twin.base.arrays import Floats
from twin.base.errors import EgmError, RobotError
from twin.physics.kinematics.inverse import inverse_kinematics
from twin.physics.robot.flange_load import numbers, unit_pose
from twin.physics.robot.robot import Robot
from twin.physics.rotations.rotations import rigid_poses

FARTHEST = 20.0
"""Largest plausible distance of a frame, in [m]; larger values are probably millimetres."""


class Frames(NamedTuple):
    """Frames of one instruction.

    Attributes:
        T_base_wobj: (4, 4) pose of the work object in the base frame, in [m].
        T_base_corr: (4, 4) pose of CorrFrame in the base frame, in [m].
        T_base_sensor: (4, 4) pose of SensorFrame in the base frame, in [m].
    """

    T_base_wobj: Floats
    T_base_corr: Floats
    T_base_sensor: Floats


def parse_frame(text: str | None, setting: str) -> Floats:
    """Parse the pose (4, 4) of a frame, in [m].

    Args:
        text: `x,y,z` or `x,y,z,a,b,c,d`, in metres and as a unit quaternion, scalar first; `None` is the
            identity.
        setting: name of the setting for error messages.

    Raises:
        EgmError: the text has another form or implausible values.

    Example:
        >>> from twin.abb.egm.guidance.pose_guidance import parse_frame
        >>> parse_frame("0.5,0,0.2", "wobj")[:3, 3].tolist()
        [0.5, 0.0, 0.2]
    """
    if text is None:
        return np.eye(4)
    expected = "a frame as x,y,z or as x,y,z,a,b,c,d in m and a unit quaternion, scalar first"
    try:
        values = numbers(text, expected, (3, 7))
        farthest = max(map(abs, values[:3]))
        if farthest > FARTHEST:
            raise ValueError(
                f"expected {expected}, at most {FARTHEST:g} m away, got {farthest:g}: are these millimetres?"
            )
        return unit_pose(values, expected)
    except ValueError as error:
        raise EgmError(f"{setting}: {error}") from None


def base_in_world(gravity: Floats) -> Floats:
    """Return the orientation (4, 4) `T_world_base` of a mounted base: the smallest rotation to world z up.

    For an inverted arm the axis of this half turn is ambiguous; the x axis is chosen (ours).

    Args:
        gravity: (3,) gravitational acceleration in the base frame, in [m/s^2]; 0 yields the identity.

    Example:
        >>> import twin
        >>> from twin.abb.egm.guidance.pose_guidance import base_in_world
        >>> T = base_in_world(twin.load("irb140").mounted("inverted").gravity)
        >>> T.diagonal().tolist()
        [1.0, -1.0, -1.0, 1.0]
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
    """Return the pose (4, 4) `T_base_wobj` of the work object, in [m].

    Raises:
        EgmError: the setting is not a frame.
    """
    return parse_frame(settings.wobj, "wobj")


def guidance_frames(robot: Robot, settings: GuidanceSettings, T_base_tool0: Floats) -> Frames:
    """Return the frames of an instruction that starts now.

    Args:
        robot: robot whose mounting defines the world frame.
        settings: frames and their reference frames.
        T_base_tool0: (4, 4) pose of the flange at the start, in [m].

    Raises:
        EgmError: a setting is not a frame.

    Example:
        >>> import twin
        >>> from twin.abb.egm import GuidanceSettings
        >>> from twin.abb.egm.guidance.pose_guidance import guidance_frames
        >>> arm, settings = twin.load("irb140"), GuidanceSettings(mode="pose", wobj="0.5,0,0")
        >>> guidance_frames(arm, settings, twin.forward_kinematics(arm, [0] * 6)).T_base_wobj[:3, 3].tolist()
        [0.5, 0.0, 0.0]
    """
    T_base_wobj = work_object(settings)
    known = {
        "base": np.eye(4),
        "world": base_in_world(robot.gravity).T,  # the transpose inverts a rotation
        "wobj": T_base_wobj,
        "tool": np.asarray(T_base_tool0, dtype=np.float64),
    }
    corr, sensor = settings.corr_frame, settings.sensor_frame
    corr_type = settings.corr_frame_type
    sensor_type = corr_type if settings.sensor_frame_type is None else settings.sensor_frame_type
    T_base_corr = known[corr_type] @ parse_frame(corr, "corr_frame")
    T_base_sensor = known[sensor_type] @ (
        parse_frame(corr, "corr_frame") if sensor is None else parse_frame(sensor, "sensor_frame")
    )
    return Frames(T_base_wobj, T_base_corr, T_base_sensor)


FASTEST = 1e6
"""Largest accepted speed of the tool, in [m/s] and [rad/s]; the square of very large values overflows."""

LEAST_SHARE = 1e-3
"""Share of a step below which the Jacobian alone determines the joint speeds."""


class PoseGuidance(Guidance):
    """Guidance of the tool pose of an arm with six joints or more.

    Args:
        robot: arm that moves the tool.
        settings: gain, filter, convergence windows, frames, and guided axes.
        T_flange_tool: (4, 4) pose of the tool on the flange, in [m]; the flange itself by default.

    Raises:
        EgmError: the arm has fewer than six joints, or a frame setting is invalid.
    """

    guiding_parts = ("T", "twist")
    refusal = (
        "pose guidance received a message without tool references: expected a pose or a speed of the tool"
    )

    def __init__(self, robot: Robot, settings: GuidanceSettings, T_flange_tool: Floats | None = None) -> None:
        self.robot, self.settings = robot, settings
        self.tool = ToolSteps(robot, T_flange_tool)
        chosen = settings.axis_names or AXES["pose"]
        self.guided = np.array([float(axis in chosen) for axis in AXES["pose"]])
        self.window = np.array([1e-3 * settings.cond_window_mm] * 3 + [settings.window(1)[0]] * 3)
        guidance_frames(robot, settings, np.eye(4))  # reports invalid frames before a run begins

    def begin(self, q: Floats, period: float) -> None:
        """Start at rest in q (n,), in [rad], with a sampling period in [s]."""
        self.period, self.share = period, filter_coefficient(self.settings.bandwidth, period)
        self.T_start = self.tool.pose(q)
        T_base_tool0 = self.T_start @ np.linalg.inv(self.tool.T_flange_tool)
        self.frames = guidance_frames(self.robot, self.settings, T_base_tool0)
        axes = self.frames.T_base_corr[:3, :3]
        self._to_corr = _block_diagonal(axes.T)
        self._selection = _block_diagonal(axes) @ np.diag(self.guided) @ self._to_corr
        self.T_ref, self.V_ref, self.V = self.T_start, np.zeros(6), np.zeros(6)
        self._q, self._asked, self._left = q.copy(), np.zeros_like(q), 1.0

    def take(self, message: SensorMessage, q: Floats) -> None:
        """Set the pose and the speed of a message as references.

        Raises:
            GuidanceStop: the message only has joint or path references, or its pose is invalid or out of
                reach.
        """
        if not self.has_guiding_part(message):
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
            sentence = f"pose guidance expected 6 finite speeds of the tool below {FASTEST:g} m/s and rad/s"
            raise GuidanceStop(Fault(0, "invalid message", sentence))
        self.T_ref = T_ref
        self.V_ref = self._selection @ _block_diagonal(self.frames.T_base_sensor[:3, :3]) @ twist

    def speed(self, q: Floats) -> Floats:
        """Return the joint speeds (n,) of the next period, in [rad/s]."""
        T, e, T_next = self.tool.pose(q), np.empty(6), np.empty((4, 4))
        inverse = self.tool.inverse(q)
        pose_displacement(T, self.T_ref, e)
        desired = self.settings.gain * e + self.V_ref
        self.V = self.V + self.share * (desired - self.V)
        # Ramps and limits will reduce the step.  The remaining share is extrapolated from the last two
        # periods, and the joint angles are solved for the step of this share.
        last, self._left = self._left, completed_fraction((q - self._q) / self.period, self._asked)
        left = min(1.0, 2.0 * self._left - last)
        self._q, self._asked = q.copy(), inverse @ self.V
        if left > LEAST_SHARE:
            displaced_pose(T, left * self.period * self.V, T_next)
            q_next = self.tool.reach(q, T_next, inverse)
            if q_next is not None:
                self._asked = (q_next - q) / (left * self.period)
        return self._asked

    def converged(self, q: Floats) -> bool:
        """Return whether the tool at q (n,), in [rad], is within the windows of the guided axes."""
        e = np.empty(6)
        pose_displacement(self.tool.pose(q), self.T_ref, e)
        return bool(np.all(np.abs(self.guided * (self._to_corr @ e)) <= self.window))

    def follow(self, qd: Floats) -> None:
        """Continue filtering from the limited speed (n,), in [rad/s]."""
        if not np.array_equal(qd, self._asked):
            share = completed_fraction(qd, self._asked)
            self.V = share * self.V + self.tool.jacobian(self._q) @ (qd - share * self._asked)

    def _reference(self, T_desired: Floats) -> Floats:
        """Return the reference pose (4, 4): the guided axes of the desired pose, the others from the start.

        Raises:
            GuidanceStop: no joint angles reach the pose (event 50050).
        """
        displacement, T = np.empty(6), np.empty((4, 4))
        pose_displacement(self.T_start, T_desired, displacement)
        displaced_pose(self.T_start, self._selection @ displacement, T)
        try:
            T_base_flange = T @ np.linalg.inv(self.tool.T_flange_tool)
            solutions = inverse_kinematics(self.robot, T_base_flange, limits=False)
        except RobotError:  # no closed-form solution: the arm moves as far as possible
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


def _block_diagonal(R: Floats) -> Floats:
    """Return the matrix (6, 6) that applies R (3, 3) to position and rotation vector."""
    both = np.zeros((6, 6))
    both[:3, :3] = both[3:, 3:] = R
    return both

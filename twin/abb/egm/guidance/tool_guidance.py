"""Guidance of the tool: to poses (`EGMRunPose`), and along a programmed path with corrections (`EGMMoveL`).

Joint speeds `J^-1 V`, held for a period dt, move the tool to the desired pose except for terms of order dt^2.
This module solves for the joint angles of the desired pose itself, by a Newton iteration with the Jacobian at
the start.  The tool then obeys its control law up to round-off.  The iteration starts at the present joint
angles and the steps are small, so the arm never switches to another inverse kinematics solution.

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
wherever no limit or ramp reduces the speed, see `twin.egm.guidance.tool_guidance`.  Equal gains of all axes
result in a straight line from start to reference and a rotation about a fixed axis.  Limits reduce the speed
without a change of direction.

The manual defines neither the axes of a tool speed nor the distance that is close to a singularity; both
definitions are ours.

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

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from twin.abb.egm.guidance.guidance import Fault, Guidance, GuidanceStop, filter_coefficient
from twin.abb.egm.guidance.settings import AXES, GuidanceSettings
from twin.abb.egm.wire.messages import SensorMessage
from twin.base.arrays import Floats
from twin.base.errors import EgmError, RobotError
from twin.base.jit import compiled
from twin.data.logs.recordings.motions import recorded_motion
from twin.data.logs.recordings.recording import Recording, read_recording
from twin.physics.kinematics.forward import forward_kinematics, jacobian, tool_pose
from twin.physics.kinematics.inverse import arm_length, inverse_kinematics
from twin.physics.robot.evaluation import copied
from twin.physics.robot.flange_load import numbers, unit_pose
from twin.physics.robot.robot import Robot
from twin.physics.rotations.rotations import rigid_poses
from twin.physics.trajectories.joint_paths import nearest_singularity
from twin.physics.trajectories.joint_trajectories import Trajectory
from twin.physics.trajectories.sampling import sample_times

LEAST_SINGULAR_VALUE = 0.01
"""Smallest allowed singular value of the Jacobian, with lengths in arm lengths.

Below it, a tool motion needs joint speeds more than 100 times as large.  The IRB 140 reaches it with axis 5
at 2 degrees.  The manual states no value; this one is ours."""

ITERATIONS = 12
ROUND_OFF = 1e-14
"""Round-off of a pose, with lengths in arm lengths."""

LEAST_SPEED = 1e-9
"""Smallest norm of joint speeds, in [rad/s], whose completed fraction exceeds round-off."""


class ToolSteps:
    """Tool kinematics of an arm with six joints or more.

    Attributes:
        robot: arm that moves the tool.
        T_flange_tool: (4, 4) pose of the tool on the flange, in [m].
        length: length of the arm with its tool, in [m].

    Raises:
        EgmError: the arm has fewer than six joints.
    """

    def __init__(self, robot: Robot, T_flange_tool: Floats | None = None) -> None:
        if robot.n < 6:
            raise EgmError(
                f"guiding a tool requires six joints or more, robot {robot.name!r} has {robot.n}: "
                "use mode joint instead"
            )
        self.robot, self.T_flange_tool = robot, copied(tool_pose(T_flange_tool))
        self.length = arm_length(robot, self.T_flange_tool)
        self._units = np.array([1.0 / self.length] * 3 + [1.0] * 3)

    def pose(self, q: Floats) -> Floats:
        """Return the pose (4, 4) of the tool in the base frame, in [m], at joint angles q (n,), in [rad]."""
        T = np.empty((4, 4))
        self.robot.kernels.tool_pose(q, self.T_flange_tool, T)
        return T

    def jacobian(self, q: Floats) -> Floats:
        """Return the Jacobian (6, n) of the tool, `[v; omega] = J qd`, base axes."""
        J = np.empty((6, self.robot.n))
        self.robot.kernels.jacobian(q, self.T_flange_tool, J)
        return J

    def inverse(self, q: Floats) -> Floats:
        """Return the inverse (n, 6) of the Jacobian; the minimum-norm inverse for more than six joints.

        Raises:
            GuidanceStop: the arm is close to a singularity (event 50026).
        """
        U, values, V_transposed = np.linalg.svd(self.jacobian(q) * self._units[:, None], full_matrices=False)
        if not values[-1] >= LEAST_SINGULAR_VALUE:
            raise GuidanceStop(self._singular(q, float(values[-1])))
        return (V_transposed.T / values) @ (U.T * self._units)

    def reach(self, q: Floats, T: Floats, inverse: Floats) -> Floats | None:
        """Return joint angles (n,) that bring the tool to a nearby pose; `None` if the iteration diverges.

        Args:
            q: (n,) present joint angles, in [rad].
            T: (4, 4) desired pose of the tool, in [m].
            inverse: (n, 6) inverse of the Jacobian at q.
        """
        q, last, displacement = q.copy(), math.inf, np.empty(6)
        for _ in range(ITERATIONS):
            pose_displacement(self.pose(q), T, displacement)
            error = displacement_size(displacement, self.length)
            if error >= 0.5 * last:  # no further progress: round-off is reached, or the iteration diverges
                break
            q += inverse @ displacement
            last = error
            if error < ROUND_OFF:
                break
        return q if last < 100.0 * ROUND_OFF else None

    def _singular(self, q: Floats, value: float) -> Fault:
        """Return the fault of a Jacobian with this smallest singular value."""
        singularity = nearest_singularity(self.robot, q)
        return Fault(
            50026,
            "Close to singularity",
            f"close to a singularity{singularity}: the motion of the tool needs joint speeds "
            f"{1.0 / max(value, 1e-9):.3g} times as large, at most {1.0 / LEAST_SINGULAR_VALUE:g} times are "
            "allowed; guide the tool around the singularity, or use mode joint",
        )


def completed_fraction(done: Floats, asked: Floats) -> float:
    """Return the completed fraction, 0 to 1, of requested joint speeds (n,); 1 for a request of 0."""
    size = float(asked @ asked)
    return min(1.0, max(0.0, float(done @ asked) / size)) if size > LEAST_SPEED**2 else 1.0


@compiled
def pose_displacement(T_from, T_to, out):
    """Fill out (6,) with `p_to - p_from` and the rotation vector of `R_to R_from^T`, base axes.

    The result is exact to round-off at any angle.  At half a turn one of the two directions is chosen.
    """
    w, x, y, z = 0.0, 0.0, 0.0, 0.0
    R = np.zeros((3, 3))
    for i in range(3):
        out[i] = T_to[i, 3] - T_from[i, 3]
        for j in range(3):
            for k in range(3):
                R[i, j] += T_to[i, k] * T_from[j, k]
    # The largest component of the quaternion comes first, which avoids cancellation.
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    if trace >= R[0, 0] and trace >= R[1, 1] and trace >= R[2, 2]:
        w, x, y, z = 1.0 + trace, R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    elif R[0, 0] >= R[1, 1] and R[0, 0] >= R[2, 2]:
        w, x, y, z = R[2, 1] - R[1, 2], 1.0 + 2.0 * R[0, 0] - trace, R[0, 1] + R[1, 0], R[0, 2] + R[2, 0]
    elif R[1, 1] >= R[2, 2]:
        w, x, y, z = R[0, 2] - R[2, 0], R[0, 1] + R[1, 0], 1.0 + 2.0 * R[1, 1] - trace, R[1, 2] + R[2, 1]
    else:
        w, x, y, z = R[1, 0] - R[0, 1], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], 1.0 + 2.0 * R[2, 2] - trace
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    sine = math.sqrt(x * x + y * y + z * z)
    factor = 2.0 * math.atan2(sine, w) / sine if sine > 0.0 else 0.0
    out[3], out[4], out[5] = factor * x, factor * y, factor * z


@compiled
def displacement_size(displacement, length):
    """Return the largest absolute component of a displacement (6,), with lengths in arm lengths."""
    place = max(abs(displacement[0]), abs(displacement[1]), abs(displacement[2]))
    return max(place / length, abs(displacement[3]), abs(displacement[4]), abs(displacement[5]))


@compiled
def displaced_pose(T, displacement, out):
    """Fill out (4, 4) with the pose T displaced by d (6,): `p + d[:3]`, `exp(d[3:]) R`, base axes."""
    x, y, z = displacement[3], displacement[4], displacement[5]
    angle = math.sqrt(x * x + y * y + z * z)
    a = math.sin(angle) / angle if angle > 0.0 else 1.0
    half = math.sin(0.5 * angle) / angle if angle > 0.0 else 0.5
    b = 2.0 * half * half  # (1 - cos) / angle^2
    for j in range(3):
        u, v, w = T[0, j], T[1, j], T[2, j]
        cx, cy, cz = y * w - z * v, z * u - x * w, x * v - y * u  # displacement x column
        out[0, j] = u + a * cx + b * (y * cz - z * cy)
        out[1, j] = v + a * cy + b * (z * cx - x * cz)
        out[2, j] = w + a * cz + b * (x * cy - y * cx)
    for i in range(3):
        out[i, 3] = T[i, 3] + displacement[i]
        out[3, i] = 0.0
    out[3, 3] = 1.0


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
        >>> from twin.abb.egm.guidance.tool_guidance import parse_frame
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
        >>> from twin.abb.egm.guidance.tool_guidance import base_in_world
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
        >>> from twin.abb.egm.guidance.tool_guidance import guidance_frames
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
        >>> from twin.abb.egm.guidance.tool_guidance import path_axes
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

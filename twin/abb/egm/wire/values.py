"""Conversion of the values in EGM messages: joints, poses, speeds, orientations.

Received values are checked: message size, number of values, finite numbers, near-unit quaternions.

Orientations of single messages are plain Python numbers here.  The array functions of `twin.rotations` take a
hundred times as long for one orientation, and a robot writes two orientations in every message, some 4 ms
apart.  The manual does not define the rotation order of `EgmEuler`.  As in ABB's C++ client it is
`R = Rz(z) Ry(y) Rx(x)`.
"""

from collections.abc import Sequence
from math import degrees, hypot, isfinite, radians, sqrt
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from twin.abb.egm.wire.channel import MAX_BYTES
from twin.base.arrays import Floats, real_array
from twin.base.errors import EgmError
from twin.physics.robot.robot import Robot
from twin.physics.rotations.euler_angles import euler_from_matrix, matrix_from_euler

JOINTS = 6
"""Largest number of values in `joints`; further joints are in `externalJoints`."""

NEAR_UNIT = 0.01
"""Tolerance for the norm of a quaternion, sufficient for two decimals (ours: the manual states none)."""

Rows = Sequence[Sequence[float]]
"""Rows of a rotation matrix."""

MM = 1000.0
"""Millimetres in a metre."""


def parse_message(kind: Any, data: bytes) -> Any:
    """Parse bytes as a message of the class `kind` of `twin.egm.wire.schema`.

    Raises:
        EgmError: the bytes are no such message.
    """
    if not 0 < len(data) <= MAX_BYTES:
        raise EgmError(f"expected a message of 1 to {MAX_BYTES} bytes, got {len(data)}")
    try:
        return kind.FromString(bytes(data))
    except DecodeError:
        raise EgmError(f"expected an EGM message, got {len(data)} bytes that cannot be decoded") from None


def require_finite(values: Sequence[float], what: str) -> Sequence[float]:
    """Return the values unchanged.

    Raises:
        EgmError: a value is NaN or infinite.
    """
    for value in values:
        if not isfinite(value):
            raise EgmError(f"expected {what} to be finite, got {value}")
    return values


def all_joints(holder: Any) -> list[float]:
    """Return joints and external joints of a message in one list."""
    return [*holder.joints.joints, *holder.externalJoints.joints]


def require_turning_joints(robot: Robot) -> None:
    """Raise `EgmError` for a robot with a prismatic joint: EGM messages contain joint angles only."""
    if "prismatic" in robot.joint_kinds:
        joint = robot.joint_names[robot.joint_kinds.index("prismatic")]
        raise EgmError(
            f"robot {robot.name!r} cannot use EGM: joint {joint} is prismatic, and EGM messages contain only "
            "joint angles in degrees; expected revolute joints only"
        )


def require_joints(robot: Robot, count: int) -> None:
    """Raise `EgmError` if the robot that sends has another number of joints than its model."""
    if count != robot.n:
        raise EgmError(
            f"the sending robot has {count} joints, the model {robot.name!r} has {robot.n}: "
            "choose the model of the sending robot"
        )


def read_joints(holder: Any, n: int, what: str) -> Floats | None:
    """Return the values of n joints in a message, converted from degrees to radians; `None` if it has none.

    Raises:
        EgmError: the number of values is not n, or a value is not finite.
    """
    given = len(holder.joints.joints), len(holder.externalJoints.joints)
    if not any(given):
        return None
    expected = min(n, JOINTS), max(n - JOINTS, 0)
    if given != expected:
        raise EgmError(
            f"expected {what} of {expected[0]} joints and {expected[1]} external ones, "
            f"got {given[0]} and {given[1]}"
        )
    return np.radians(require_finite(all_joints(holder), what))


def write_joints(holder: Any, values: Floats) -> None:
    """Write n joint values, in [rad], as degrees to the joints and external joints of a message."""
    in_degrees = np.degrees(values).tolist()
    holder.joints.joints.extend(in_degrees[:JOINTS])
    if len(in_degrees) > JOINTS:
        holder.externalJoints.joints.extend(in_degrees[JOINTS:])


def read_pose(message: Any) -> Floats | None:
    """Return the pose (4, 4) of an `EgmPose`, in [m]; `None` if it is empty.

    Euler angles take precedence over the quaternion, as in the manual.

    Raises:
        EgmError: position or orientation is missing or invalid.
    """
    given = [name for name in ("pos", "orient", "euler") if message.HasField(name)]
    if not given:
        return None
    if "pos" not in given or len(given) == 1:
        raise EgmError(f"expected a pose of pos and orient or euler, got {given[0]} alone")
    if not message.IsInitialized():
        missing = ", ".join(message.FindInitializationErrors())
        raise EgmError(f"expected a complete pose, it has no {missing}")
    at = message.pos
    x, y, z = require_finite((at.x, at.y, at.z), "a position")
    if "euler" in given:
        turn = message.euler
        angles = require_finite((turn.z, turn.y, turn.x), "Euler angles")
        rows = matrix_from_euler(np.radians(angles), "zyx")
    else:
        turn = message.orient
        rows = _rotation((turn.u0, turn.u1, turn.u2, turn.u3))
    a, b, c = rows
    return np.array([(*a, x / MM), (*b, y / MM), (*c, z / MM), (0.0, 0.0, 0.0, 1.0)])


def _rotation(quaternion: Sequence[float]) -> Rows:
    """Return the rotation matrix of a near-unit quaternion."""
    norm = hypot(*require_finite(quaternion, "a quaternion"))
    if not abs(norm - 1.0) <= NEAR_UNIT:
        raise EgmError(f"expected a unit quaternion (norm 1 within {NEAR_UNIT:g}), got norm {norm:.6g}")
    u0, u1, u2, u3 = quaternion
    return rows_from_quaternion(u0 / norm, u1 / norm, u2 / norm, u3 / norm)


def write_pose(message: Any, T: Floats, *, euler: bool) -> None:
    """Write a pose (4, 4), in [m], as position and quaternion, and optionally as Euler angles."""
    rows = T.tolist()
    at, turn, R = message.pos, message.orient, [row[:3] for row in rows[:3]]
    at.x, at.y, at.z = rows[0][3] * MM, rows[1][3] * MM, rows[2][3] * MM
    turn.u0, turn.u1, turn.u2, turn.u3 = quaternion_from_rows(R)
    if euler:
        angles = message.euler
        angles.z, angles.y, angles.x = np.degrees(euler_from_matrix(T[:3, :3], "zyx")).tolist()


def read_twist(values: Sequence[float]) -> Floats | None:
    """Return the tool speed (6,) `[v; omega]` of an `EgmCartesianSpeed`, in [m/s, rad/s].

    Three values are a linear speed; omega is then 0.  The result is `None` without values.

    Raises:
        EgmError: the number of values is neither 3 nor 6, or a value is not finite.
    """
    if not values:
        return None
    if len(values) not in (3, 6):
        raise EgmError(f"expected a Cartesian speed of 3 or 6 values, got {len(values)}")
    v = [value / MM for value in require_finite(values, "a Cartesian speed")]
    return np.array([*v[:3], *(map(radians, values[3:]) if len(v) == 6 else (0.0, 0.0, 0.0))])


def wire_twist(value: Floats) -> list[float]:
    """Convert a tool speed `[v; omega]` from [m/s, rad/s] to the mm/s and deg/s of messages."""
    rows = value.tolist()
    return [*(v * MM for v in rows[:3]), *map(degrees, rows[3:])]


def checked_array(values: Any, name: str, shape: tuple[int, ...]) -> Floats:
    """Return the values as an array.

    Raises:
        ValueError: the array has the wrong shape or is not finite.
    """
    array = real_array(values, name)
    if array.shape != shape:
        raise ValueError(f"expected {name} of shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"expected {name} to be finite, got {array.tolist()}")
    return array


def quaternion_from_rows(R: Rows) -> tuple[float, float, float, float]:
    """Return the unit quaternion of a rotation matrix, scalar first and non-negative.

    The diagonal yields the largest component.  Sums and differences of the other elements, divided by four
    times the largest component, yield the other components.  This order avoids cancellation.
    """
    (r11, r12, r13), (r21, r22, r23), (r31, r32, r33) = R
    trace = r11 + r22 + r33
    if trace >= max(r11, r22, r33):
        a = (1.0 + trace, r32 - r23, r13 - r31, r21 - r12)
        largest = a[0]
    elif r11 >= r22 and r11 >= r33:
        a = (r32 - r23, 1.0 + r11 - r22 - r33, r12 + r21, r13 + r31)
        largest = a[1]
    elif r22 >= r33:
        a = (r13 - r31, r12 + r21, 1.0 - r11 + r22 - r33, r23 + r32)
        largest = a[2]
    else:
        a = (r21 - r12, r13 + r31, r23 + r32, 1.0 - r11 - r22 + r33)
        largest = a[3]
    scale = 0.5 / sqrt(largest)
    if a[0] < 0.0:
        scale = -scale
    return a[0] * scale, a[1] * scale, a[2] * scale, a[3] * scale


def rows_from_quaternion(u0: float, u1: float, u2: float, u3: float) -> Rows:
    """Return the rotation matrix of a unit quaternion, scalar first."""
    return (
        (1.0 - 2.0 * (u2 * u2 + u3 * u3), 2.0 * (u1 * u2 - u0 * u3), 2.0 * (u1 * u3 + u0 * u2)),
        (2.0 * (u1 * u2 + u0 * u3), 1.0 - 2.0 * (u1 * u1 + u3 * u3), 2.0 * (u2 * u3 - u0 * u1)),
        (2.0 * (u1 * u3 - u0 * u2), 2.0 * (u2 * u3 + u0 * u1), 1.0 - 2.0 * (u1 * u1 + u2 * u2)),
    )

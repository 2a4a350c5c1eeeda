"""The values that messages share, read and written: joints, poses, speeds, orientations.

What comes by wire is read within bounds: size, counts, finite numbers, quaternions that are near unit length.

Orientations of single messages are plain numbers here.  `twin.rotations` has the same for arrays, at a
hundred times the cost of one: a robot writes two orientations in every message, some 4 ms apart.  The manual
does not say in which order the angles of `EgmEuler` turn; as in ABB's own C++ client it is
`R = Rz(z) Ry(y) Rx(x)`.
"""

from collections.abc import Sequence
from math import degrees, hypot, isfinite, radians, sqrt
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from twin.arrays import Floats, real_array
from twin.egm.wire.channel import MOST_BYTES
from twin.errors import EgmError
from twin.robot.robot import Robot
from twin.rotations.euler_angles import euler_from_matrix, matrix_from_euler

JOINTS = 6
"""So many joints at most are among `joints`; further ones are among `externalJoints`."""

NEAR_UNIT = 0.01
"""How far the norm of a quaternion may be from 1, which two decimals are (ours: the manual does not tell)."""

Rows = Sequence[Sequence[float]]
"""The rows of a rotation matrix."""

MM = 1000.0
"""Millimetres in a metre."""


def parsed(kind: Any, data: bytes) -> Any:
    """Return the message of a class of `twin.egm.wire.schema` that these bytes are.

    Raises:
        EgmError: they are none.
    """
    if not 0 < len(data) <= MOST_BYTES:
        raise EgmError(f"expected a message of 1 to {MOST_BYTES} bytes, got {len(data)}")
    try:
        return kind.FromString(bytes(data))
    except DecodeError:
        raise EgmError(f"{len(data)} bytes that are no message of EGM") from None


def finite(values: Sequence[float], what: str) -> Sequence[float]:
    """Return the values.

    Raises:
        EgmError: one is NaN or infinite.
    """
    for value in values:
        if not isfinite(value):
            raise EgmError(f"expected {what} to be finite, got {value} among them")
    return values


def joints_of(holder: Any) -> list[float]:
    """The joints and the external joints of a message that has both, in one list."""
    return [*holder.joints.joints, *holder.externalJoints.joints]


def require_turning_joints(robot: Robot) -> None:
    """Raise `EgmError` for a robot with a sliding joint, whose metres no angle in degrees stands for."""
    if "prismatic" in robot.joint_kinds:
        joint = robot.joint_names[robot.joint_kinds.index("prismatic")]
        raise EgmError(
            f"robot {robot.name!r} cannot speak EGM: its joint {joint} slides, and the joints of a message "
            "are angles in degrees; expected a robot whose joints all turn"
        )


def joint_values(holder: Any, n: int, what: str) -> Floats | None:
    """Return what a message has of n joints, in degrees there and in radians here; `None` if it has nothing.

    Raises:
        EgmError: it is of another number of joints, or not finite.
    """
    own, more = len(holder.joints.joints), len(holder.externalJoints.joints)
    if not own and not more:
        return None
    wanted = min(n, JOINTS), max(n - JOINTS, 0)
    if (own, more) != wanted:
        raise EgmError(
            f"expected {what} of {wanted[0]} joints and {wanted[1]} external ones, got {own} and {more}"
        )
    return np.radians(finite(joints_of(holder), what))


def put_joints(holder: Any, values: Floats) -> None:
    """Write n joint values, in [rad], as degrees to a message that has joints and external joints."""
    inside = np.degrees(values).tolist()
    holder.joints.joints.extend(inside[:JOINTS])
    if len(inside) > JOINTS:
        holder.externalJoints.joints.extend(inside[JOINTS:])


def pose(message: Any) -> Floats | None:
    """Return the pose (4, 4) of an `EgmPose`, in [m]; `None` if it has nothing.

    Where both are given Euler angles count, as the manual says.

    Raises:
        EgmError: it has no position or no orientation, or one that is none.
    """
    given = [name for name in ("pos", "orient", "euler") if message.HasField(name)]
    if not given:
        return None
    if "pos" not in given or len(given) == 1:
        raise EgmError(f"expected a pose of pos and orient or euler, got {given[0]} alone")
    if not message.IsInitialized():
        missing = ", ".join(message.FindInitializationErrors())
        raise EgmError(f"a pose that is not complete: it has no {missing}")
    at = message.pos
    x, y, z = finite((at.x, at.y, at.z), "a position")
    if "euler" in given:
        turn = message.euler
        angles = finite((turn.z, turn.y, turn.x), "Euler angles")
        rows = matrix_from_euler(np.radians(angles), "zyx")
    else:
        turn = message.orient
        rows = _rotation((turn.u0, turn.u1, turn.u2, turn.u3))
    a, b, c = rows
    return np.array([(*a, x / MM), (*b, y / MM), (*c, z / MM), (0.0, 0.0, 0.0, 1.0)])


def _rotation(quaternion: Sequence[float]) -> Rows:
    """The rotation matrix of a quaternion that is near unit length."""
    norm = hypot(*finite(quaternion, "a quaternion"))
    if not abs(norm - 1.0) <= NEAR_UNIT:
        raise EgmError(f"expected a unit quaternion (norm 1 within {NEAR_UNIT:g}), got norm {norm:.6g}")
    u0, u1, u2, u3 = quaternion
    return rows_of_quaternion(u0 / norm, u1 / norm, u2 / norm, u3 / norm)


def put_pose(message: Any, T: Floats, *, euler: bool) -> None:
    """Write a pose (4, 4), in [m], as position and quaternion, if asked for as Euler angles, too."""
    rows = T.tolist()
    at, turn, R = message.pos, message.orient, [row[:3] for row in rows[:3]]
    at.x, at.y, at.z = rows[0][3] * MM, rows[1][3] * MM, rows[2][3] * MM
    turn.u0, turn.u1, turn.u2, turn.u3 = quaternion_of(R)
    if euler:
        angles = message.euler
        angles.z, angles.y, angles.x = np.degrees(euler_from_matrix(T[:3, :3], "zyx")).tolist()


def twist(values: Sequence[float]) -> Floats | None:
    """Return the speed of a tool (6,) `[v; omega]`, in [m/s, rad/s], of an `EgmCartesianSpeed`.

    Three values are those of the position alone.  `None` if it has none.

    Raises:
        EgmError: it has neither three nor six values, or they are not finite.
    """
    if not values:
        return None
    if len(values) not in (3, 6):
        raise EgmError(f"expected a Cartesian speed of 3 or 6 values, got {len(values)}")
    v = [value / MM for value in finite(values, "a Cartesian speed")]
    return np.array([*v[:3], *(map(radians, values[3:]) if len(v) == 6 else (0.0, 0.0, 0.0))])


def twist_values(value: Floats) -> list[float]:
    """Return a speed `[v; omega]`, in [m/s, rad/s], in mm/s and deg/s."""
    rows = value.tolist()
    return [*(v * MM for v in rows[:3]), *map(degrees, rows[3:])]


def sound(values: Any, name: str, shape: tuple[int, ...]) -> Floats:
    """Return an array that is to be written.

    Raises:
        ValueError: it has another shape, or is not finite.
    """
    array = real_array(values, name)
    if array.shape != shape:
        raise ValueError(f"expected {name} of shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"expected {name} to be finite, got {array.tolist()}")
    return array


def quaternion_of(R: Rows) -> tuple[float, float, float, float]:
    """Return the unit quaternion, scalar first and not negative, of the rows of a rotation matrix.

    The largest component is taken from the diagonal, the others from sums and differences beside it, over
    four times the largest: nothing cancels.
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


def rows_of_quaternion(u0: float, u1: float, u2: float, u3: float) -> Rows:
    """Return the rows of the rotation matrix of a unit quaternion, scalar first."""
    return (
        (1.0 - 2.0 * (u2 * u2 + u3 * u3), 2.0 * (u1 * u2 - u0 * u3), 2.0 * (u1 * u3 + u0 * u2)),
        (2.0 * (u1 * u2 + u0 * u3), 1.0 - 2.0 * (u1 * u1 + u3 * u3), 2.0 * (u2 * u3 - u0 * u1)),
        (2.0 * (u1 * u3 - u0 * u2), 2.0 * (u2 * u3 + u0 * u1), 1.0 - 2.0 * (u1 * u1 + u2 * u2)),
    )

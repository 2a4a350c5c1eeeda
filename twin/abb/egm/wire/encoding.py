"""Encoding and decoding of the two EGM messages, and conversion of their values to SI units.

Received values are checked: message size, number of values, finite numbers, near-unit quaternions.

Orientations of single messages are plain Python numbers here.  The array functions of `twin.rotations` take a
hundred times as long for one orientation, and a robot writes two orientations in every message, some 4 ms
apart.  The manual does not define the rotation order of `EgmEuler`.  As in ABB's C++ client it is
`R = Rz(z) Ry(y) Rx(x)`.

The encoded messages use degrees and millimetres; `RobotMessage` and `SensorMessage` use SI units.

ABB's C++ client rejects robot messages without seqno, tm, mtype, the states, or the joints, poses and times
of `feedBack` and `planned`.  Encoded robot messages therefore always contain these fields.

A robot receives two types of answers without a type tag: `EgmSensor` with joints or a pose, and
`EgmSensorPathCorr`.  Senders may omit `mtype` from the header, so the second field decides.  In a path
correction it contains an `age`, an integer.  In a planned motion all its fields are messages.  Neither type
can therefore be decoded as the other.
"""

from collections.abc import Sequence
from math import degrees, hypot, isfinite, radians, sqrt
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from twin.abb.egm.wire import schema
from twin.abb.egm.wire.channel import MAX_BYTES
from twin.abb.egm.wire.messages import MODULUS, MotionState, RobotMessage, SensorMessage
from twin.base.arrays import Floats, real_array
from twin.base.errors import EgmError, EgmModeError
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


DATA = schema.ENUMS["MessageType"].index("DATA")
ON, OFF = (schema.ENUMS["MotorsAre"].index(word) for word in ("ON", "OFF"))
RUNS, STOPPED = (schema.ENUMS["ProgramIs"].index(word) for word in ("RUNNING", "STOPPED"))


def encode_robot(message: RobotMessage, *, euler: bool = False) -> bytes:
    """Encode a message of a robot.

    Args:
        message: message with poses and a time; seqno and tm are taken modulo 2^32.
        euler: whether to write orientations also as Euler angles.

    Raises:
        ValueError: a pose or the time is missing, or an array has the wrong shape or is not finite.

    Example:
        >>> import numpy as np
        >>> from twin.abb.egm import RobotMessage, encode_robot
        >>> q, T = np.zeros(6), np.eye(4)
        >>> data = encode_robot(RobotMessage(seqno=7, tm=28, q=q, q_planned=q, T=T, T_planned=T, time=0.028))
        >>> data[:4].hex()  # header of 6 bytes, which begins with the sequence number
        '0a060807'
    """
    if message.T is None or message.T_planned is None or message.time is None:
        raise ValueError("expected T, T_planned and time in a robot message: clients require them")
    robot = schema.Robot()
    header = robot.header
    header.seqno, header.tm, header.mtype = message.seqno % MODULUS, message.tm % MODULUS, DATA
    seconds, micro = divmod(round(message.time * 1e6), 1_000_000)
    n = len(message.q)
    for part, q, T in (
        (robot.feedBack, message.q, message.T),
        (robot.planned, message.q_planned, message.T_planned),
    ):
        write_joints(part, checked_array(q, "joint angles", (n,)))
        write_pose(part.cartesian, checked_array(T, "a pose", (4, 4)), euler=euler)
        part.time.sec, part.time.usec = seconds, micro
    robot.motorState.state = ON if message.motors_on else OFF
    robot.mciState.state = int(message.state)
    robot.mciConvergenceMet = bool(message.converged)
    robot.rapidExecState.state = RUNS if message.program_runs else STOPPED
    if message.utilization is not None:
        robot.utilizationRate = message.utilization
    if message.tau is not None:
        robot.torqueRef.joints.extend(checked_array(message.tau, "torques", (n,)).tolist())
    if message.wrench is not None:
        robot.measuredForce.fcActive = True
        robot.measuredForce.force.extend(checked_array(message.wrench, "a wrench", (6,)).tolist())
    return robot.SerializeToString()


def decode_robot(data: bytes, n: int | None = None) -> RobotMessage:
    """Decode a message of a robot.

    Args:
        data: bytes of a datagram.
        n: number of joints of the robot; further external joints, such as those of a track, are ignored.  By
            default all joints of the message are returned.

    Raises:
        EgmError: the bytes are no robot message, or its number of joints differs.

    Example:
        >>> import numpy as np
        >>> from twin.abb.egm import RobotMessage, decode_robot, encode_robot
        >>> q, T = np.full(6, 0.1), np.eye(4)
        >>> data = encode_robot(RobotMessage(seqno=7, tm=28, q=q, q_planned=q, T=T, T_planned=T, time=0.028))
        >>> decode_robot(data, n=6).q.round(6).tolist()
        [0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
    """
    robot = parse_message(schema.Robot, data)
    header = robot.header
    if not (header.HasField("seqno") and header.HasField("tm")):
        raise EgmError("expected a robot message with seqno and tm in its header, at least one is missing")
    q = _joint_angles(robot.feedBack, n, "measured joint angles")
    q_planned = _joint_angles(robot.planned, len(q), "planned joint angles")
    at = robot.feedBack.time
    return RobotMessage(
        seqno=header.seqno,
        tm=header.tm,
        q=q,
        q_planned=q_planned,
        T=read_pose(robot.feedBack.cartesian),
        T_planned=read_pose(robot.planned.cartesian),
        time=at.sec + 1e-6 * at.usec if robot.feedBack.HasField("time") else None,
        motors_on=robot.motorState.state == ON,
        state=MotionState(robot.mciState.state),
        program_runs=robot.rapidExecState.state == RUNS,
        converged=robot.mciConvergenceMet,
        utilization=_finite_or_none(robot, "utilizationRate"),
        tau=_optional(robot.torqueRef.joints, len(q), "torques"),
        wrench=_optional(robot.measuredForce.force, 6, "a wrench"),
    )


def _joint_angles(part: Any, n: int | None, what: str) -> Floats:
    """Return the joint angles (n,) of `feedBack` or `planned`, in [rad]."""
    arm, values = len(part.joints.joints), all_joints(part)
    if not 0 < arm <= JOINTS or (n is not None and (arm != min(n, JOINTS) or len(values) < n)):
        expected = f"{n} joints" if n is not None else f"1 to {JOINTS} joints and external ones"
        raise EgmError(
            f"expected {what} of {expected}, got {arm} joints and {len(values) - arm} external ones"
        )
    return np.radians(require_finite(values[:n], what))


def _finite_or_none(robot: Any, name: str) -> float | None:
    """Return the finite number in an optional field; `None` if the field is missing."""
    return require_finite((getattr(robot, name),), name)[0] if robot.HasField(name) else None


def _optional(values: Any, count: int, what: str) -> Floats | None:
    """Return the first `count` values; `None` if the field is empty."""
    if not values:
        return None
    if len(values) < count:
        raise EgmError(f"expected {what} of {count} values, got {len(values)}")
    return np.array(require_finite(values[:count], what))


CORRECTION, PATH_CORRECTION = map(schema.ENUMS["MessageType"].index, ("CORRECTION", "PATH_CORRECTION"))
MS = 1000.0
"""Milliseconds in a second."""


def decode_sensor(data: bytes, n: int, mode: str) -> SensorMessage:
    """Decode an answer to a robot.

    An answer may contain both joint and tool references, as those of ABB's C++ client do.  Only the
    references of the robot's guidance mode are returned.

    Args:
        data: bytes of a datagram.
        n: number of joints of the robot.
        mode: guidance mode of the robot: "joint", "pose" or "path".

    Raises:
        EgmModeError: the answer contains only references of another mode.
        EgmError: the bytes are no answer, or do not suit this robot.

    Example:
        >>> import numpy as np
        >>> from twin.abb.egm import SensorMessage, decode_sensor, encode_sensor
        >>> data = encode_sensor(SensorMessage(seqno=7, tm=28, q=np.full(6, 0.1)))
        >>> decode_sensor(data, n=6, mode="joint").q.round(6).tolist()
        [0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
    """
    correction = parse_message(schema.SensorPathCorr, data)
    if correction.pathCorr.HasField("age"):
        if mode != "path":
            raise EgmModeError(f"received a path correction in {mode} mode: valid only in path mode")
        return _path_correction(correction)
    sensor = parse_message(schema.Sensor, data)
    header, planned, speed = sensor.header, sensor.planned, sensor.speedRef
    if header.mtype == PATH_CORRECTION and sensor.HasField("planned"):
        raise EgmError("expected an age in a path correction, it is missing")
    parts = {
        "joint": (planned.joints, planned.externalJoints, speed.joints, speed.externalJoints),
        "pose": (planned.cartesian, speed.cartesians),
        "path": (),
    }
    given = [name for name, values in parts.items() if any(value.ListFields() for value in values)]
    if not given and not sensor.HasField("header"):
        raise EgmError(f"expected an answer with a header or references, got {len(data)} bytes with neither")
    if given and mode not in given:
        raise EgmModeError(f"received a message of {given[0]} mode: the robot is guided in {mode} mode")
    seqno, tm = _numbers(header)
    if mode == "joint":
        q, qd = read_joints(planned, n, "joint angles"), read_joints(speed, n, "joint speeds")
        return SensorMessage(seqno, tm, q=q, qd=qd)
    if mode == "pose":
        return SensorMessage(
            seqno, tm, T=read_pose(planned.cartesian), twist=read_twist(speed.cartesians.value)
        )
    return SensorMessage(seqno, tm)


def encode_sensor(message: SensorMessage, *, euler: bool = False) -> bytes:
    """Encode an answer to a robot: an `EgmSensorPathCorr` if it has a path correction, else an `EgmSensor`.

    Args:
        message: answer; fields that are `None` are omitted; seqno and tm are below 2^32.
        euler: whether to write the orientation also as Euler angles.

    Raises:
        ValueError: an array has the wrong shape or is not finite, or a path correction is combined with other
            references.

    Example:
        >>> import numpy as np
        >>> from twin.abb.egm import SensorMessage, encode_sensor
        >>> data = encode_sensor(SensorMessage(seqno=7, tm=28, q=np.full(6, 0.1)))
        >>> data[:4].hex()  # header of 6 bytes, which begins with the sequence number
        '0a060807'
    """
    if message.path_correction is not None:
        if any(part is not None for part in (message.q, message.qd, message.T, message.twist)):
            raise ValueError("expected a path correction alone, got joint or tool references in addition")
        correction = schema.SensorPathCorr()
        _put_header(correction.header, message, PATH_CORRECTION)
        at = correction.pathCorr.pos
        x, y, z = checked_array(message.path_correction, "path_correction", (3,)).tolist()
        at.x, at.y, at.z = x * MM, y * MM, z * MM
        if not 0.0 <= message.age * MS < 1 << 32:
            raise ValueError(f"expected an age of 0 s or more, got {message.age} s")
        correction.pathCorr.age = round(message.age * MS)
        return correction.SerializeToString()
    sensor = schema.Sensor()
    _put_header(sensor.header, message, CORRECTION)
    if message.q is not None:
        write_joints(sensor.planned, checked_array(message.q, "q", (len(message.q),)))
    if message.T is not None:
        write_pose(sensor.planned.cartesian, checked_array(message.T, "T", (4, 4)), euler=euler)
    if message.qd is not None:
        write_joints(sensor.speedRef, checked_array(message.qd, "qd", (len(message.qd),)))
    if message.twist is not None:
        sensor.speedRef.cartesians.value.extend(wire_twist(checked_array(message.twist, "twist", (6,))))
    return sensor.SerializeToString()


def _path_correction(message: Any) -> SensorMessage:
    """Convert an `EgmSensorPathCorr` to an answer."""
    if not message.IsInitialized():
        missing = ", ".join(message.FindInitializationErrors())
        raise EgmError(f"expected a complete path correction, it has no {missing}")
    at = message.pathCorr.pos
    seqno, tm = _numbers(message.header)
    return SensorMessage(
        seqno,
        tm,
        path_correction=np.array(require_finite((at.x, at.y, at.z), "a path correction")) / MM,
        age=message.pathCorr.age / MS,
    )


def _numbers(header: Any) -> tuple[int | None, int | None]:
    """Return seqno and tm of a header, `None` for those that are missing."""
    return (
        header.seqno if header.HasField("seqno") else None,
        header.tm if header.HasField("tm") else None,
    )


def _put_header(header: Any, message: SensorMessage, kind: int) -> None:
    """Write the header of an answer; omit seqno and tm if they are `None`."""
    header.mtype = kind
    for name in ("seqno", "tm"):
        if (value := getattr(message, name)) is not None:
            setattr(header, name, value)

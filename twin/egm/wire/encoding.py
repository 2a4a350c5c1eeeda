"""The two messages in bytes and back: degrees and millimetres there, SI units here.

ABB's own C++ client refuses a robot's messages without seqno, tm and mtype, without joints, pose and time of
both what is measured and what is planned, and without all of the states, so those are always written.

Two messages come to a robot in the same way, and nothing before them says which: `EgmSensor` with joints or a
pose, and `EgmSensorPathCorr`.  Their headers may tell (`mtype`), which senders are free to leave out.  What
does tell is their second part: a path correction has an `age`, a whole number, where a planned motion has
messages alone, so that neither can be read as the other.
"""

from typing import Any

import numpy as np

from twin.arrays import Floats
from twin.egm.wire import schema
from twin.egm.wire.messages import COUNT, MotionState, RobotMessage, SensorMessage
from twin.egm.wire.values import (
    JOINTS,
    MM,
    finite,
    joint_values,
    joints_of,
    parsed,
    pose,
    put_joints,
    put_pose,
    sound,
    twist,
    twist_values,
)
from twin.errors import EgmError, EgmModeError

DATA = schema.ENUMS["MessageType"].index("DATA")
ON, OFF = (schema.ENUMS["MotorsAre"].index(word) for word in ("ON", "OFF"))
RUNS, STOPPED = (schema.ENUMS["ProgramIs"].index(word) for word in ("RUNNING", "STOPPED"))


def encode_robot(message: RobotMessage, *, euler: bool = False) -> bytes:
    """Return the bytes of what a robot tells.

    Args:
        message: with poses and a time; seqno and tm are taken modulo 2^32.
        euler: write orientations as Euler angles, too.

    Raises:
        ValueError: it has no pose or no time, or arrays of other shapes, or not finite.
    """
    if message.T is None or message.T_planned is None or message.time is None:
        raise ValueError("expected T, T_planned and time of a robot's message, which clients insist on")
    robot = schema.Robot()
    header = robot.header
    header.seqno, header.tm, header.mtype = message.seqno % COUNT, message.tm % COUNT, DATA
    seconds, micro = divmod(round(message.time * 1e6), 1_000_000)
    n = len(message.q)
    for part, q, T in (
        (robot.feedBack, message.q, message.T),
        (robot.planned, message.q_planned, message.T_planned),
    ):
        put_joints(part, sound(q, "joint angles", (n,)))
        put_pose(part.cartesian, sound(T, "a pose", (4, 4)), euler=euler)
        part.time.sec, part.time.usec = seconds, micro
    robot.motorState.state = ON if message.motors_on else OFF
    robot.mciState.state = int(message.state)
    robot.mciConvergenceMet = bool(message.converged)
    robot.rapidExecState.state = RUNS if message.program_runs else STOPPED
    if message.utilization is not None:
        robot.utilizationRate = message.utilization
    if message.tau is not None:
        robot.torqueRef.joints.extend(sound(message.tau, "torques", (n,)).tolist())
    if message.wrench is not None:
        robot.measuredForce.fcActive = True
        robot.measuredForce.force.extend(sound(message.wrench, "a wrench", (6,)).tolist())
    return robot.SerializeToString()


def decode_robot(data: bytes, n: int | None = None) -> RobotMessage:
    """Return what a robot tells, of the bytes that came.

    Args:
        data: a datagram.
        n: number of joints of the robot; external joints beyond them, say of a track, are left out.  By
            default all that it tells of.

    Raises:
        EgmError: the bytes are none of a robot's, or of another number of joints; one sentence says what
            was wrong and what is valid.
    """
    robot = parsed(schema.Robot, data)
    header = robot.header
    if not (header.HasField("seqno") and header.HasField("tm")):
        raise EgmError("expected a robot's message with a number and a time (seqno, tm), got one without")
    q = _told(robot.feedBack, n, "measured joint angles")
    q_planned = _told(robot.planned, len(q), "planned joint angles")
    at = robot.feedBack.time
    return RobotMessage(
        seqno=header.seqno,
        tm=header.tm,
        q=q,
        q_planned=q_planned,
        T=pose(robot.feedBack.cartesian),
        T_planned=pose(robot.planned.cartesian),
        time=at.sec + 1e-6 * at.usec if robot.feedBack.HasField("time") else None,
        motors_on=robot.motorState.state == ON,
        state=MotionState(robot.mciState.state),
        program_runs=robot.rapidExecState.state == RUNS,
        converged=robot.mciConvergenceMet,
        utilization=_finite_or_none(robot, "utilizationRate"),
        tau=_optional(robot.torqueRef.joints, len(q), "torques"),
        wrench=_optional(robot.measuredForce.force, 6, "a wrench"),
    )


def _told(part: Any, n: int | None, what: str) -> Floats:
    """The joint angles (n,) of a part of the message, in [rad]."""
    own, values = len(part.joints.joints), joints_of(part)
    if not 0 < own <= JOINTS or (n is not None and (own != min(n, JOINTS) or len(values) < n)):
        wanted = f"{n} joints" if n is not None else f"1 to {JOINTS} joints and external ones"
        raise EgmError(f"expected {what} of {wanted}, got {own} joints and {len(values) - own} external ones")
    return np.radians(finite(values[:n], what))


def _finite_or_none(robot: Any, name: str) -> float | None:
    """A number that may be missing."""
    return finite((getattr(robot, name),), name)[0] if robot.HasField(name) else None


def _optional(values: Any, count: int, what: str) -> Floats | None:
    """So many numbers, or none."""
    if not values:
        return None
    if len(values) < count:
        raise EgmError(f"expected {what} of {count} values, got {len(values)}")
    return np.array(finite(values[:count], what))


CORRECTION, PATH_CORRECTION = map(schema.ENUMS["MessageType"].index, ("CORRECTION", "PATH_CORRECTION"))
MS = 1000.0
"""Milliseconds in a second."""


def decode_sensor(data: bytes, n: int, mode: str) -> SensorMessage:
    """Return the answer that a robot got, of the bytes that came.

    A message may say where the joints go and where the tool goes: ABB's own C++ client does.  The part that
    the robot is guided by counts, and the other is left out.

    Args:
        data: a datagram.
        n: number of joints of the robot.
        mode: "joint", "pose" or "path": how it is guided.

    Raises:
        EgmModeError: it guides, and not by what this robot is guided by.
        EgmError: it is no answer, or not for such a robot; one sentence says what was wrong and what is
            valid.
    """
    correction = parsed(schema.SensorPathCorr, data)
    if correction.pathCorr.HasField("age"):
        if mode != "path":
            raise EgmModeError(f"a path correction came to a robot that is guided in {mode} mode")
        return _path_correction(correction)
    sensor = parsed(schema.Sensor, data)
    header, planned, speed = sensor.header, sensor.planned, sensor.speedRef
    if header.mtype == PATH_CORRECTION and sensor.HasField("planned"):
        raise EgmError("a path correction without its age")
    parts = {
        "joint": (planned.joints, planned.externalJoints, speed.joints, speed.externalJoints),
        "pose": (planned.cartesian, speed.cartesians),
        "path": (),
    }
    given = [name for name, values in parts.items() if any(value.ListFields() for value in values)]
    if not given and not sensor.HasField("header"):
        raise EgmError(f"{len(data)} bytes that hold no answer to a robot")
    if given and mode not in given:
        raise EgmModeError(f"a message of {given[0]} mode came to a robot that is guided in {mode} mode")
    seqno, tm = _numbers(header)
    if mode == "joint":
        q, qd = joint_values(planned, n, "joint angles"), joint_values(speed, n, "joint speeds")
        return SensorMessage(seqno, tm, q=q, qd=qd)
    if mode == "pose":
        return SensorMessage(seqno, tm, T=pose(planned.cartesian), twist=twist(speed.cartesians.value))
    return SensorMessage(seqno, tm)


def encode_sensor(message: SensorMessage, *, euler: bool = False) -> bytes:
    """Return the bytes of an answer, an `EgmSensorPathCorr` where it has a path correction.

    Args:
        message: what it has of joints, pose and speeds is written; seqno and tm are below 2^32.
        euler: write the orientation as Euler angles, too.

    Raises:
        ValueError: arrays of other shapes or not finite, or a path correction beside anything else.
    """
    if message.path_correction is not None:
        if any(part is not None for part in (message.q, message.qd, message.T, message.twist)):
            raise ValueError("expected a path correction alone, got joints or a pose beside it")
        correction = schema.SensorPathCorr()
        _put_header(correction.header, message, PATH_CORRECTION)
        at = correction.pathCorr.pos
        x, y, z = sound(message.path_correction, "path_correction", (3,)).tolist()
        at.x, at.y, at.z = x * MM, y * MM, z * MM
        if not 0.0 <= message.age * MS < 1 << 32:
            raise ValueError(f"expected an age of 0 s or more, got {message.age} s")
        correction.pathCorr.age = round(message.age * MS)
        return correction.SerializeToString()
    sensor = schema.Sensor()
    _put_header(sensor.header, message, CORRECTION)
    if message.q is not None:
        put_joints(sensor.planned, sound(message.q, "q", (len(message.q),)))
    if message.T is not None:
        put_pose(sensor.planned.cartesian, sound(message.T, "T", (4, 4)), euler=euler)
    if message.qd is not None:
        put_joints(sensor.speedRef, sound(message.qd, "qd", (len(message.qd),)))
    if message.twist is not None:
        sensor.speedRef.cartesians.value.extend(twist_values(sound(message.twist, "twist", (6,))))
    return sensor.SerializeToString()


def _path_correction(message: Any) -> SensorMessage:
    """The answer that a whole `EgmSensorPathCorr` is."""
    if not message.IsInitialized():
        missing = ", ".join(message.FindInitializationErrors())
        raise EgmError(f"a path correction that is not complete: it has no {missing}")
    at = message.pathCorr.pos
    seqno, tm = _numbers(message.header)
    return SensorMessage(
        seqno,
        tm,
        path_correction=np.array(finite((at.x, at.y, at.z), "a path correction")) / MM,
        age=message.pathCorr.age / MS,
    )


def _numbers(header: Any) -> tuple[int | None, int | None]:
    """The seqno and the tm of a header, which may be missing."""
    return (
        header.seqno if header.HasField("seqno") else None,
        header.tm if header.HasField("tm") else None,
    )


def _put_header(header: Any, message: SensorMessage, kind: int) -> None:
    """Write a header; of an answer numbers may be missing."""
    header.mtype = kind
    for name in ("seqno", "tm"):
        if (value := getattr(message, name)) is not None:
            setattr(header, name, value)

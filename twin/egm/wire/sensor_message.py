"""What a robot is answered, in bytes and back: degrees and millimetres there, SI units here.

Two messages come to a robot in the same way, and nothing before them says which: `EgmSensor` with joints or a
pose, and `EgmSensorPathCorr`.  Their headers may tell (`mtype`), which senders are free to leave out.  What
does tell is their second part: a path correction has an `age`, a whole number, where a planned motion has
messages alone, so that neither can be read as the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from twin.egm.wire import schema
from twin.egm.wire.messages import SensorMessage
from twin.egm.wire.parts import (
    MM,
    finite,
    joint_values,
    parsed,
    pose,
    put_joints,
    put_pose,
    sound,
    twist,
    twist_values,
)
from twin.errors import EgmError, EgmModeError

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

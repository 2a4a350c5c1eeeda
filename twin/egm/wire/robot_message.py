"""What a robot tells, in bytes and back: degrees and millimetres there, SI units here.

ABB's own C++ client refuses messages without seqno, tm and mtype, without joints, pose and time of both what
is measured and what is planned, and without all of the states, so those are always written.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from twin.arrays import Floats
from twin.egm.wire import schema
from twin.egm.wire.messages import MotionState, RobotMessage
from twin.egm.wire.parts import JOINTS, finite, joints_of, parsed, pose, put_joints, put_pose, sound
from twin.errors import EgmError

DATA = schema.ENUMS["MessageType"].index("DATA")
ON, OFF = (schema.ENUMS["MotorsAre"].index(word) for word in ("ON", "OFF"))
RUNS, STOPPED = (schema.ENUMS["ProgramIs"].index(word) for word in ("RUNNING", "STOPPED"))
COUNT = 1 << 32
"""Numbers of messages, and times in ms, begin anew after so many."""


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
    return RobotMessage(
        seqno=header.seqno,
        tm=header.tm,
        q=q,
        q_planned=q_planned,
        T=pose(robot.feedBack.cartesian),
        T_planned=pose(robot.planned.cartesian),
        time=_time(robot.feedBack),
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


def _time(part: Any) -> float | None:
    """The time of a part of the message, in [s]."""
    return part.time.sec + 1e-6 * part.time.usec if part.HasField("time") else None


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

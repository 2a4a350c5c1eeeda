"""Poses of RAPID: records to frames and back, and the predefined functions of positions and orientations."""

from __future__ import annotations

import math

import numpy as np

from twin.abb.rapid.values import Record, rounded, text_of
from twin.base.errors import RapidError
from twin.physics.rotations.rotations import matrix_from_quaternion, quaternion_from_matrix

Floats = np.ndarray
NORM_TOLERANCE = 0.1
"""Largest deviation of a quaternion's length from 1; a smaller one is removed, as a controller does."""

NORM_REMARK = 1e-3
"""Deviation from which on that is noted: the figures of a pendant deviate less."""


def quaternion(orient: Record) -> Floats:
    """Return an orientation as a unit quaternion (4,), scalar first.

    Raises:
        RapidError: its length is not 1.
    """
    q = np.array(orient.values, dtype=float)
    length = np.linalg.norm(q)
    if not abs(length - 1.0) <= NORM_TOLERANCE:
        raise RapidError(
            f"the quaternion {text_of(orient)} has length {length:.6g}, expected 1 within {NORM_TOLERANCE:g}",
            "target",
        )
    return q / length


def matrix(trans: Record, rot: Record) -> Floats:
    """Return a pose (4, 4) from a position in mm and an orientation; lengths in [m]."""
    T = np.eye(4)
    T[:3, :3] = matrix_from_quaternion(quaternion(rot))
    T[:3, 3] = 1e-3 * np.array(trans.values)
    return T


def pose_record(T: Floats) -> Record:
    """Return a pose (4, 4) as a pose in mm."""
    trans = Record("pos", (1e3 * T[:3, 3]).tolist())
    return Record("pose", [trans, Record("orient", quaternion_from_matrix(T[:3, :3]).tolist())])


def frame_of(pose: Record) -> Floats:
    """Return the pose (4, 4) of a pose or a robtarget; lengths in [m]."""
    return matrix(pose["trans"], pose["rot"])


def norm_remark(target: Record) -> str:
    """Return a remark on a target whose quaternion is not of length 1, "" for none."""
    length = float(np.linalg.norm(target["rot"].values))
    if abs(length - 1.0) <= NORM_REMARK:
        return ""
    return f"the quaternion has length {length:.4g}, and is normalised"


# ------------------------------------------------------------------------------------ predefined functions


def turn(axis: int, angle: float) -> Floats:
    """Return a turn about an axis as a pose (4, 4); the angle in [deg]."""
    q = np.zeros(4)
    q[0], q[axis + 1] = math.cos(math.radians(angle) / 2), math.sin(math.radians(angle) / 2)
    T = np.eye(4)
    T[:3, :3] = matrix_from_quaternion(q)
    return T


def offs(target: Record, x: float, y: float, z: float) -> Record:
    """Return a robtarget that is displaced along the axes of its work object, in mm."""
    values = zip(target["trans"].values, (x, y, z), strict=True)
    moved = [rounded(value + by) if by else value for value, by in values]
    return target.changed(trans=Record("pos", moved))


def rel_tool(target: Record, x: float, y: float, z: float, rx=0.0, ry=0.0, rz=0.0) -> Record:
    """Return a robtarget that is displaced in mm, and turned in degrees, along the axes of its tool."""
    T = np.eye(4)
    T[:3, 3] = 1e-3 * np.array([x, y, z])
    for axis, angle in enumerate((rx, ry, rz)):
        T = T @ turn(axis, angle)
    pose = pose_record(frame_of(target) @ T)
    return target.changed(trans=pose["trans"], rot=pose["rot"])


def euler_zyx(rot: Record, x: bool = False, y: bool = False, z: bool = False) -> float:
    """Return an Euler angle of an orientation, in [deg]; about x unless y or z is chosen."""
    R = matrix_from_quaternion(quaternion(rot))
    if z:
        return math.degrees(math.atan2(R[1, 0], R[0, 0]))
    if y:
        return math.degrees(math.atan2(-R[2, 0], math.hypot(R[0, 0], R[1, 0])))
    return math.degrees(math.atan2(R[2, 1], R[2, 2]))


def orient_zyx(z: float, y: float, x: float) -> Record:
    """Return the orientation of Euler angles about z, y, x, in [deg]."""
    return pose_record(turn(2, z) @ turn(1, y) @ turn(0, x))["rot"]


def normalised(rot: Record) -> Record:
    """Return an orientation as a unit quaternion."""
    q = np.array(rot.values)
    return Record("orient", (q / np.linalg.norm(q)).tolist())


def pose_mult(first: Record, second: Record) -> Record:
    """Return the product of two poses."""
    return pose_record(frame_of(first) @ frame_of(second))


def pose_inv(pose: Record) -> Record:
    """Return the inverse of a pose."""
    return pose_record(np.linalg.inv(frame_of(pose)))


def pose_vect(pose: Record, place: Record) -> Record:
    """Return a position in the frame in which a pose is given."""
    T = frame_of(pose)
    return Record("pos", (T[:3, :3] @ np.array(place.values) + 1e3 * T[:3, 3]).tolist())


def def_frame(first: Record, second: Record, third: Record, origin: float = 1.0) -> Record:
    """Return the frame through three robtargets: x from the first to the second, the third towards y.

    Args:
        first: first robtarget.
        second: second robtarget.
        third: third robtarget, to which the y axis points.
        origin: 1 for the origin at the first, 2 at the second, 3 where the third projects on the line.

    Raises:
        ValueError: the three are on a line.
    """
    a, b, c = (np.array(one["trans"].values) for one in (first, second, third))
    x = (b - a) / max(np.linalg.norm(b - a), 1e-12)
    z = np.cross(x, c - a)
    if not np.linalg.norm(z) > 1e-9:
        raise ValueError
    z /= np.linalg.norm(z)
    T = np.eye(4)
    T[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1)
    T[:3, 3] = 1e-3 * {2.0: b, 3.0: a + x * float(x @ (c - a))}.get(origin, a)
    return pose_record(T)

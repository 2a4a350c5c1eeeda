"""Payload and tool on the flange, read from text such as `6,0,0,0.08`."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from twin.physics.robot.robot import Payload
from twin.physics.robot.units import within_reach
from twin.physics.rotations.rotations import pose_matrix


def numbers(text: str, what: str, counts: tuple[int, ...]) -> tuple[float, ...]:
    """Return the finite numbers in a text with commas.

    Args:
        text: text such as `6,0,0,0.08`.
        what: description of the numbers for the message.
        counts: valid numbers of numbers.

    Raises:
        ValueError: the text contains something else, or an invalid number of numbers.
    """
    try:
        values = tuple(float(word) for word in text.split(","))
    except ValueError:
        values = ()
    if len(values) not in counts or not np.all(np.isfinite(values)):
        raise ValueError(f"expected {what}, got {text!r}")
    return values


PAYLOAD = "mass,x,y,z,Ixx,Iyy,Izz,Ixy,Ixz,Iyz"
TOOL = "x,y,z,a,b,c,d"
UNIT_TOLERANCE = 1e-3
"""Tolerance of the norm of a tool's quaternion, due to rounding to three decimals."""


@lru_cache  # settings are read repeatedly
def payload_of(text: str) -> Payload:
    """Return the payload that a text describes.

    Args:
        text: all numbers of `PAYLOAD`, the first four, or the first: the mass in [kg], the centre of mass in
            the flange frame in [m], the inertia about it in [kg m^2].

    Raises:
        ValueError: the text is invalid, or no body has such an inertia.
    """
    expected = f"a payload as mass, or as mass,x,y,z, or as {PAYLOAD} in kg, m and kg m^2"
    mass, *rest = numbers(text, expected, (1, 4, 10))
    if len(rest) < 9:
        return Payload(mass, rest or (0.0, 0.0, 0.0))
    xx, yy, zz, xy, xz, yz = rest[3:]
    return Payload(mass, rest[:3], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def tool_of(text: str) -> NDArray:
    """Return the pose (4, 4) `T_flange_tool` that a text describes.

    Args:
        text: all numbers of `TOOL`, the first three, or only the length along z (L_h of Aliaga 2019, Table
            3-1): position in [m], and a unit quaternion, scalar first.

    Raises:
        ValueError: the text is invalid.
    """
    expected = f"a tool as its length, or as x,y,z, or as {TOOL} in m and a unit quaternion, scalar first"
    values = numbers(text, expected, (1, 3, 7))
    x, y, z = (0.0, 0.0, values[0]) if len(values) == 1 else values[:3]
    within_reach((x, y, z), "a tool")
    return unit_pose((x, y, z, *values[3:]), expected)


def unit_pose(values: tuple[float, ...], what: str) -> NDArray:
    """Return the pose (4, 4) of a position and, if given, a quaternion.

    Args:
        values: (3,) or (7,), position in [m] and quaternion, scalar first; the norm of the quaternion may
            differ from 1 by `UNIT_TOLERANCE`.
        what: description of the values for the message.

    Raises:
        ValueError: the norm differs by more.
    """
    quaternion = np.array(values[3:] or (1.0, 0.0, 0.0, 0.0))
    norm = float(np.linalg.norm(quaternion))
    if not abs(norm - 1) <= UNIT_TOLERANCE:
        raise ValueError(f"expected {what}, got a quaternion of norm {norm:.6g}")
    return pose_matrix([*values[:3], *(quaternion / norm)])

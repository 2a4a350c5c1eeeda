"""What hangs on the flange, as a line of text tells it: a payload, a tool."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from twin.robot.robot import Payload
from twin.rotations.rotations import pose_matrix


def numbers(text: str, what: str, counts: tuple[int, ...]) -> tuple[float, ...]:
    """The finite numbers in a text, between commas.

    Args:
        text: as `6,0,0,0.08`.
        what: they are, with their names, for the message.
        counts: how many there may be.

    Raises:
        ValueError: there are others, or as many as may not be.
    """
    try:
        values = tuple(float(word) for word in text.split(","))
    except ValueError:
        values = ()
    if len(values) not in counts or not np.all(np.isfinite(values)):
        raise ValueError(f"expected {what}, got {text!r}")
    return values


def within_reach(place: tuple[float, ...], what: str) -> None:
    """Check coordinates (3,) in [m]: nothing that hangs on an arm is as far from its flange as `FARTHEST`.

    Raises:
        ValueError: one is larger, as millimetres are.
    """
    farthest = max(map(abs, place))
    if farthest > FARTHEST:
        raise ValueError(
            f"expected {what} in metres, at most {FARTHEST:g} m from the flange, got {farthest:g}: "
            "are these millimetres?"
        )


FARTHEST = 5.0
"""In [m]."""
PAYLOAD = "mass,x,y,z,Ixx,Iyy,Izz,Ixy,Ixz,Iyz"
TOOL = "x,y,z,a,b,c,d"
UNIT_TOLERANCE = 1e-3
"""How far the norm of a tool's quaternion may be from 1: what rounding to three decimals does."""


@lru_cache  # settings ask for theirs again and again
def payload_of(text: str) -> Payload:
    """The payload that a text tells.

    Args:
        text: `PAYLOAD`, or its first number or its first four: the mass in [kg], the centre of mass in the
            flange frame in [m], the inertia about it in [kg m^2].

    Raises:
        ValueError: it is not that, or no body has such an inertia.
    """
    told = f"a payload as mass, or as mass,x,y,z, or as {PAYLOAD} in kg, m and kg m^2"
    mass, *rest = numbers(text, told, (1, 4, 10))
    within_reach((0.0, *rest[:3]), "the payload's centre of mass")
    if len(rest) < 9:
        return Payload(mass, rest or (0.0, 0.0, 0.0))
    xx, yy, zz, xy, xz, yz = rest[3:]
    return Payload(mass, rest[:3], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def tool_of(text: str) -> NDArray:
    """The pose (4, 4) `T_flange_tool` that a text tells.

    Args:
        text: `TOOL`, its first three numbers, or its length along z alone (L_h of Aliaga 2019, Table 3-1): in
            [m], and a unit quaternion, scalar first.

    Raises:
        ValueError: it is not that.
    """
    told = f"a tool as its length, or as x,y,z, or as {TOOL} in m and a unit quaternion, scalar first"
    values = numbers(text, told, (1, 3, 7))
    x, y, z = (0.0, 0.0, values[0]) if len(values) == 1 else values[:3]
    within_reach((x, y, z), "a tool")
    return unit_pose((x, y, z, *values[3:]), told)


def unit_pose(values: tuple[float, ...], what: str) -> NDArray:
    """The pose (4, 4) of a place and, if there is one, a quaternion.

    Args:
        values: (3,) or (7,), in [m], the scalar first; the norm of the quaternion may be as far from 1 as
            `UNIT_TOLERANCE`.
        what: they are, with their names, for the message.

    Raises:
        ValueError: it is farther.
    """
    quaternion = np.array(values[3:] or (1.0, 0.0, 0.0, 0.0))
    norm = float(np.linalg.norm(quaternion))
    if not abs(norm - 1) <= UNIT_TOLERANCE:
        raise ValueError(f"expected {what}, got a quaternion of norm {norm:.6g}")
    return pose_matrix([*values[:3], *(quaternion / norm)])

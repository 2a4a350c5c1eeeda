"""Orientations of single messages, in plain numbers: quaternions, and Euler angles in degrees.

`twin.spatial` has the same for arrays, at a hundred times the cost of one: a robot writes two orientations
in every message, some 4 ms apart.

The manual does not tell in which order the angles of `EgmEuler` turn; as in ABB's own C++ client it is
`R = Rz(z) Ry(y) Rx(x)` here.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import atan2, cos, degrees, hypot, radians, sin, sqrt

Rows = Sequence[Sequence[float]]


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


def euler_of(R: Rows) -> tuple[float, float, float]:
    """Return x, y, z in [deg], y in [-90, 90], of the rows of a rotation matrix.

    Near y of 90 or -90 degrees z is whatever round-off makes of it, and x makes up for it.
    """
    (r11, r12, r13), (r21, r22, r23), (r31, _, _) = R
    z = atan2(r21, r11)
    cz, sz = cos(z), sin(z)
    x = atan2(sz * r13 - cz * r23, cz * r22 - sz * r12)  # what is left once z is turned back
    return degrees(x), degrees(atan2(-r31, hypot(r11, r21))), degrees(z)


def rows_of_euler(x: float, y: float, z: float) -> Rows:
    """Return the rows of the rotation matrix of x, y, z, in [deg]."""
    x, y, z = radians(x), radians(y), radians(z)
    cx, sx, cy, sy, cz, sz = cos(x), sin(x), cos(y), sin(y), cos(z), sin(z)
    return (
        (cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx),
        (sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx),
        (-sy, cy * sx, cy * cx),
    )

"""Orientation by three angles, their rates, and by an axis and an angle.

Two sequences of Euler angles `(phi, theta, psi)`, each turn about an axis of the frame as it stands by then:

- `"zyx"`, roll, pitch, yaw: `R = Rz(phi) Ry(theta) Rx(psi)`, Ljubljana lab manual, eq. (3.21); Kawasaki (6)
- `"zyz"`: `R = Rz(phi) Ry(theta) Rz(psi)`, Kawasaki (4)

They share all but the last axis.  With `u` the column of R that belongs to it (the first for zyx, the third
for zyz), `u = (a cos(phi), a sin(phi), b)`, where a, b are `cos(theta), -sin(theta)` or `sin(theta),
cos(theta)`.  Where `a = 0` the first axis and the last are parallel: only the sum or the difference of phi
and psi is determined, and no rates of the angles turn the tool about the axis at right angles to both axes.
"""

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from twin.base.arrays import Floats, real_array
from twin.base.errors import SingularityError
from twin.physics.rotations.rotations import (
    UNIT_TOLERANCE,
    float_array,
    quaternion_from_matrix,
    rotation_matrices,
)

Sequence: TypeAlias = Literal["zyx", "zyz"]

FREE_ANGLE = 1e-13
"""Where `|a|` is below this, some hundred roundings of R, phi is chosen by rule."""

SINGULAR_RATE = 1e-12
"""Where `|a|` is below this the inverse of the rate matrix, its relative error 1e-16 / |a|, is refused."""


def matrix_from_euler(angles: ArrayLike, sequence: Sequence) -> Floats:
    """Return the rotation matrix of Euler angles.

    Args:
        angles: (..., 3) `phi, theta, psi`, in [rad].
        sequence: "zyx" or "zyz".

    Returns:
        (..., 3, 3) rotation matrices.

    Example:
        >>> import numpy as np
        >>> from twin.physics.rotations import matrix_from_euler
        >>> R = matrix_from_euler(np.radians([30, 0, 0]), "zyx")  # 30 degrees about z
        >>> R[:, 0].round(4).tolist()
        [0.866, 0.5, 0.0]
    """
    angles = float_array(angles, "angles", (3,))
    _require(sequence)
    flat = Rotation.from_euler(sequence.upper(), angles.reshape(-1, 3))  # capitals: about the moving axes
    return flat.as_matrix().reshape(*angles.shape, 3)


def euler_from_matrix(R: ArrayLike, sequence: Sequence, *, lower: bool = False) -> Floats:
    """Return the Euler angles of a rotation matrix, accurate to round-off for every rotation.

    Every rotation has two triplets, `(phi, theta, psi)` and, with both other angles half a turn on,
    `theta -> pi - theta` (zyx) or `-theta` (zyz).  The upper signs of the printed equations give the one with
    theta in [-pi/2, pi/2] (zyx) or [0, pi] (zyz); phi and psi lie in [-pi, pi].

    Where phi is not determined (`|a| < 1e-13`) it is 0, and psi takes all of the turn; both triplets are then
    the same.  psi is what remains of the rotation after phi and theta, which makes up for a phi that is
    ill-defined nearby.  (scipy's `as_euler` gives up 2e-7 there, with a warning.)

    Args:
        R: (..., 3, 3) rotation matrices.  NaN gives NaN.
        sequence: "zyx" or "zyz".
        lower: the triplet of the lower signs.

    Returns:
        (..., 3) `phi, theta, psi`, in [rad].

    Raises:
        ValueError: R is no rotation within 1e-9, or the sequence is unknown.

    Example:
        >>> import numpy as np
        >>> from twin.physics.rotations import euler_from_matrix, matrix_from_euler
        >>> R = matrix_from_euler(np.radians([30, 40, 50]), "zyx")
        >>> np.degrees(euler_from_matrix(R, "zyx")).round(4).tolist()
        [30.0, 40.0, 50.0]

    Source: Kawasaki, eq. (5), both signs; Ljubljana lab manual, eq. (3.22)-(3.25), whose range (0, pi) of
    theta should read (-pi/2, pi/2), and whose condition that r11 and r21 differ from 0 should be that not
    both of them are 0.
    """
    R = rotation_matrices(R, nan=True)
    _require(sequence)
    u = R[..., :, 0 if sequence == "zyx" else 2]
    sign = -1.0 if lower else 1.0
    determined = ~(np.hypot(u[..., 0], u[..., 1]) < FREE_ANGLE)
    phi = np.where(determined, np.arctan2(sign * u[..., 1], sign * u[..., 0]), 0.0)
    c, s = np.cos(phi), np.sin(phi)
    a = c * u[..., 0] + s * u[..., 1]
    # The axis of theta, in the frame that psi leads to.
    x, y, z = (c * R[..., 1, i] - s * R[..., 0, i] for i in range(3))
    if sequence == "zyx":
        theta, psi = np.arctan2(-u[..., 2], a), np.arctan2(-z, y)
    else:
        theta, psi = np.arctan2(sign * a, u[..., 2]), np.arctan2(x, y)
        theta = sign * np.where(theta < -np.pi / 2, theta + 2 * np.pi, theta)  # a may round to below 0
    return np.stack([phi, theta, psi], axis=-1)


def euler_rate_matrix(angles: ArrayLike, sequence: Sequence) -> Floats:
    """Return the matrix T of `omega = T(angles) d(angles)/dt`, omega in the base frame.

    Its columns are the axes of the three turns; its determinant is -a, so it is singular where phi is not
    determined.

    Args:
        angles: (..., 3) `phi, theta, psi`, in [rad].
        sequence: "zyx" or "zyz".

    Returns:
        (..., 3, 3), without unit.

    Example:
        >>> import numpy as np
        >>> from twin.physics.rotations import euler_rate_matrix
        >>> T = euler_rate_matrix(np.radians([90, 0, 0]), "zyx")
        >>> (T @ [0, 1, 0]).round(4).tolist()  # theta turns about y after the turn by phi
        [-1.0, 0.0, 0.0]

    Source: Ljubljana lab manual, eq. (3.31)-(3.33), for zyx; the same for zyz.
    """
    c, s, a, b = _parts(angles, sequence)
    zero, one = np.zeros_like(a), np.ones_like(a)
    return _matrix([[zero, -s, c * a], [zero, c, s * a], [one, zero, b]])


def euler_rate_matrix_dot(angles: ArrayLike, rates: ArrayLike, sequence: Sequence) -> Floats:
    """Return the time derivative of `euler_rate_matrix`.

    Args:
        angles: (..., 3) `phi, theta, psi`, in [rad].
        rates: (..., 3) their time derivatives, in [rad/s].
        sequence: "zyx" or "zyz".

    Returns:
        (..., 3, 3), in [1/s].
    """
    rates = float_array(rates, "rates", (3,))
    c, s, a, b = _parts(angles, sequence)
    phi_dot, theta_dot = rates[..., 0], rates[..., 1]
    a_dot, b_dot = b * theta_dot, -a * theta_dot  # of both sequences
    zero = np.zeros_like(a * phi_dot)
    x_dot, y_dot = c * a_dot - s * a * phi_dot, s * a_dot + c * a * phi_dot
    return _matrix([[zero, -c * phi_dot, x_dot], [zero, -s * phi_dot, y_dot], [zero, zero, b_dot]])


def euler_rate_inverse(angles: ArrayLike, sequence: Sequence) -> Floats:
    """Return the inverse of `euler_rate_matrix`, to a relative error of `1e-16 / |a|`.

    Args:
        angles: (..., 3) `phi, theta, psi`, in [rad].
        sequence: "zyx" or "zyz".

    Returns:
        (..., 3, 3), without unit.

    Raises:
        SingularityError: `|a| < 1e-12`: theta is +-90 degrees (zyx), 0 or 180 degrees (zyz).

    Example:
        >>> import numpy as np
        >>> from twin.physics.rotations import euler_rate_inverse
        >>> T_inverse = euler_rate_inverse(np.radians([0, 60, 0]), "zyx")
        >>> (T_inverse @ [1, 0, 0]).round(4).tolist()  # a turn about x of the base
        [1.7321, 0.0, 2.0]
    """
    c, s, a, b = _parts(angles, sequence)
    singular = ~(np.abs(a) > SINGULAR_RATE)
    if np.any(singular):
        theta = np.rad2deg(float_array(angles, "angles", (3,))[..., 1][singular][0])
        where = "+-90" if sequence == "zyx" else "0 and 180"
        raise SingularityError(
            f"the rates of {sequence} angles are not determined at theta = {theta:.9g} deg, for they are "
            f"singular at {where} deg: describe the orientation otherwise, by a quaternion for instance"
        )
    zero, one = np.zeros_like(a), np.ones_like(a)
    return _matrix([[-b * c / a, -b * s / a, one], [-s, c, zero], [c / a, s / a, zero]])


def matrix_from_axis_angle(axis: ArrayLike, angle: ArrayLike) -> Floats:
    """Return the rotation matrix of a turn about an axis.

    Args:
        axis: (..., 3) unit vectors; they are made so to round-off.
        angle: (...,) angles, in [rad].

    Returns:
        (..., 3, 3) rotation matrices.

    Raises:
        ValueError: an axis whose length differs from 1 by more than 1e-6, or NaN.

    Example:
        >>> import numpy as np
        >>> from twin.physics.rotations import matrix_from_axis_angle
        >>> R = matrix_from_axis_angle([0, 0, 1], np.radians(30))
        >>> R[:, 0].round(4).tolist()
        [0.866, 0.5, 0.0]
    """
    axis = float_array(axis, "axis", (3,))
    length = np.linalg.norm(axis, axis=-1, keepdims=True)
    wrong = ~(np.abs(length - 1.0) <= UNIT_TOLERANCE)
    if np.any(wrong):
        raise ValueError(
            f"expected unit axes (length 1 within {UNIT_TOLERANCE:g}), got {length[wrong][0]:.9g}"
        )
    vectors = axis / length * real_array(angle, "angle")[..., None]
    return Rotation.from_rotvec(vectors.reshape(-1, 3)).as_matrix().reshape(*vectors.shape, 3)


def axis_angle_from_matrix(R: ArrayLike) -> tuple[Floats, Floats]:
    """Return the axis and the angle of a rotation, accurate to round-off for every rotation.

    At a half turn both directions of the axis are right; that of `quaternion_from_matrix` is taken, whose
    largest component, the first of equals, is positive.  Without any turn the axis is `(0, 0, 1)`.

    Args:
        R: (..., 3, 3) rotation matrices.  NaN gives NaN.

    Returns:
        Two arrays.

        - axis: (..., 3) unit vectors.
        - angle: (...,) angles in [0, pi], in [rad].

    Raises:
        ValueError: R is no rotation within 1e-9.

    Example:
        >>> import numpy as np
        >>> from twin.physics.rotations import axis_angle_from_matrix
        >>> axis, angle = axis_angle_from_matrix([[0, 0, 1], [1, 0, 0], [0, 1, 0]])
        >>> axis.round(4).tolist(), round(float(np.degrees(angle)), 4)
        ([0.5774, 0.5774, 0.5774], 120.0)
    """
    quat = quaternion_from_matrix(R)
    sine = np.linalg.norm(quat[..., 1:], axis=-1)
    turned = sine[..., None] != 0.0
    axis = np.where(turned, quat[..., 1:] / np.where(turned, sine[..., None], 1.0), (0.0, 0.0, 1.0))
    return axis, 2.0 * np.arctan2(sine, quat[..., 0])


def _parts(angles: ArrayLike, sequence: Sequence) -> tuple[Floats, Floats, Floats, Floats]:
    """Return cos(phi), sin(phi), a and b of the axis of the last turn."""
    angles = float_array(angles, "angles", (3,))
    _require(sequence)
    c, s = np.cos(angles[..., 0]), np.sin(angles[..., 0])
    cosine, sine = np.cos(angles[..., 1]), np.sin(angles[..., 1])
    return (c, s, cosine, -sine) if sequence == "zyx" else (c, s, sine, cosine)


def _matrix(rows: list[list[Floats]]) -> Floats:
    """Return (..., 3, 3) from the nine entries, each of shape (...,)."""
    return np.stack([np.stack(np.broadcast_arrays(*row), axis=-1) for row in rows], axis=-2)


def _require(sequence: str) -> None:
    """Raise `ValueError` for a sequence that is none of the two."""
    if sequence not in ("zyx", "zyz"):
        raise ValueError(f"unknown sequence of Euler angles {sequence!r}: known are 'zyx' and 'zyz'")

"""The algebra of quaternions, scalar first: conjugate, norm, inverse, polar form, rotation of a vector.

A quaternion is `[s, v]` with a scalar s and a vector v, and need not be of unit length here.  The product,
the rate and the conversions from and to matrices are in `rotations.py`; here is a second conversion from a
matrix, which Norrlöf's report derives.

Source: Norrlöf 1999, eq. (2.3)-(2.22), of which (2.9), (2.10), (2.19) and (2.22) are corrected, as their
functions say.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, real_array
from twin.physics.rotations.rotations import (
    float_array,
    quaternion_product,
    rotation_matrices,
    unit_quaternion,
)


class PolarForm(NamedTuple):
    """A quaternion as `r (cos(phi) + k sin(phi)) = r exp(k phi)`.

    Attributes:
        r: (...,) norm.
        k: (..., 3) unit vector; of a real number, which has none, (0, 0, 1).
        phi: (...,) angle in [0, pi], in [rad]; a unit quaternion turns by 2 phi about k.
    """

    r: Floats
    k: Floats
    phi: Floats


def quaternion_conjugate(q: ArrayLike) -> Floats:
    """Return the conjugate `[s, -v]` of quaternions (..., 4); Norrlöf 1999, eq. (2.7).

    Example:
        >>> from twin.physics.rotations import quaternion_conjugate
        >>> quaternion_conjugate([1, 2, 3, 4]).tolist()
        [1.0, -2.0, -3.0, -4.0]
    """
    return float_array(q, "q", (4,)) * (1.0, -1.0, -1.0, -1.0)


def quaternion_norm(q: ArrayLike) -> Floats:
    """Return the norm (...,) of quaternions (..., 4): `sqrt(q * conjugate)`; Norrlöf 1999, eq. (2.8).

    Example:
        >>> from twin.physics.rotations import quaternion_norm
        >>> float(quaternion_norm([1, 1, 1, 1]))
        2.0
    """
    return np.linalg.norm(float_array(q, "q", (4,)), axis=-1)


def quaternion_inverse(q: ArrayLike) -> Floats:
    """Return the inverse of quaternions, `q * inverse = inverse * q = 1`.

    Args:
        q: (..., 4) quaternions, scalar first.

    Returns:
        (..., 4) the conjugate over the square of the norm.

    Raises:
        ValueError: a quaternion of norm 0, or NaN.

    Example:
        >>> from twin.physics.rotations import quaternion_inverse
        >>> quaternion_inverse([2, 2, 2, 2]).tolist()
        [0.125, -0.125, -0.125, -0.125]

    Source: Norrlöf 1999, eq. (2.9), which divides by the norm: right for unit quaternions only.
    """
    norm = quaternion_norm(q)[..., None]
    if np.any(~(norm > 0.0)):
        raise ValueError("expected quaternions that have an inverse, got one of norm 0 or not a number")
    return quaternion_conjugate(q) / norm / norm


def quaternion_polar(q: ArrayLike) -> PolarForm:
    """Return the polar form of quaternions.

    Args:
        q: (..., 4) quaternions, scalar first.  NaN gives NaN.

    Example:
        >>> from twin.physics.rotations import quaternion_polar
        >>> polar = quaternion_polar([0, 0, 2, 0])
        >>> float(polar.r), polar.k.tolist(), round(float(polar.phi), 4)
        (2.0, [0.0, 1.0, 0.0], 1.5708)

    Source: Norrlöf 1999, eq. (2.10), whose `arctan(|v| / s)` has to be `atan2(|v|, s)`: where s < 0 the
    printed form leads to -q.
    """
    q = float_array(q, "q", (4,))
    length = np.linalg.norm(q[..., 1:], axis=-1)
    turned = length[..., None] != 0.0
    k = np.where(turned, q[..., 1:] / np.where(turned, length[..., None], 1.0), (0.0, 0.0, 1.0))
    return PolarForm(quaternion_norm(q), k, np.arctan2(length, q[..., 0]))


def quaternion_from_polar(r: ArrayLike, k: ArrayLike, phi: ArrayLike) -> Floats:
    """Return the quaternion of a polar form.

    Args:
        r: (...,) norm.
        k: (..., 3) unit vector.
        phi: (...,) angle, in [rad]; half the angle by which a unit quaternion turns.

    Returns:
        (..., 4) quaternions, scalar first; the leading shapes broadcast.

    Example:
        >>> import numpy as np
        >>> from twin.physics.rotations import quaternion_from_polar
        >>> quaternion_from_polar(1.0, [0, 0, 1], np.pi / 4).round(4).tolist()
        [0.7071, 0.0, 0.0, 0.7071]

    Source: Norrlöf 1999, eq. (2.11), (2.12).
    """
    k = float_array(k, "k", (3,))
    r, phi = real_array(r, "r"), real_array(phi, "phi")
    scalar, vector = (r * np.cos(phi))[..., None], (r * np.sin(phi))[..., None] * k
    return np.concatenate([np.broadcast_to(scalar, (*vector.shape[:-1], 1)), vector], axis=-1)


def rotated_vector(quat: ArrayLike, vector: ArrayLike) -> Floats:
    """Return vectors turned by unit quaternions, `b = q * a * conjugate`.

    Args:
        quat: (..., 4) unit quaternions, of either sign; made unit to round-off.
        vector: (..., 3) vectors in any unit.

    Returns:
        (..., 3) the turned vectors; the leading shapes broadcast.

    Raises:
        ValueError: a norm differs from 1 by more than 1e-6, or is NaN.

    Example:
        >>> from twin.physics.rotations import rotated_vector
        >>> rotated_vector([0.6, 0, 0, 0.8], [1, 0, 0]).round(4).tolist()
        [-0.28, 0.96, 0.0]

    Source: Norrlöf 1999, eq. (2.13), (2.14).
    """
    quat, vector = unit_quaternion(quat), float_array(vector, "vector", (3,))
    a = np.concatenate([np.zeros_like(vector[..., :1]), vector], axis=-1)
    return quaternion_product(quaternion_product(quat, a), quaternion_conjugate(quat))[..., 1:]


def quaternion_by_largest_axis(R: ArrayLike) -> Floats:
    """Return the unit quaternion of a rotation matrix, by the method of Norrlöf's report.

    The largest component `k_a` of the axis belongs to the largest diagonal element of R.  Two vectors along
    the axis, `k' = 4 s k` from the skew part of R (2.17) and `k'' = 4 k_a k` from its symmetric part (2.19),
    are added up with equal directions (2.20); sign(0) has to be +1 there, or a half turn has no axis.

    As printed, with `s = sqrt(tr R + 1) / 2` (2.16) and a k of length `sqrt(1 - s^2)` (2.22), half of the
    digits are lost near a half turn and near none at all.  The same sum for the scalar, `1 + tr R + |k'_a|`,
    makes all four components those of `4 (s + |k_a|) [s, k]`; made unit, they are accurate to round-off.

    Args:
        R: (..., 3, 3) rotation matrices.  NaN gives NaN.

    Returns:
        (..., 4) unit quaternions, scalar first, `s >= 0`; as `quaternion_from_matrix`.

    Source: Norrlöf 1999, eq. (2.16)-(2.22), where (2.19) prints `k''_z = r23 + r13` for `r31 + r13`, and
    (2.22) prints k'' for k''', which loses the sign of k.
    """
    R = rotation_matrices(R, nan=True)
    diagonal = np.stack([R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]], axis=-1)
    trace = np.sum(diagonal, axis=-1)
    skew = np.stack(
        [R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]], axis=-1
    )
    # The rows 4 k_i k of the symmetric part: 4 x^2 = r11 - r22 - r33 + 1 (2.18), 4 x y = r12 + r21, ...
    products = R + np.swapaxes(R, -1, -2) + (1.0 - trace)[..., None, None] * np.eye(3)

    largest = np.argmax(diagonal, axis=-1)[..., None]
    symmetric = np.take_along_axis(products, largest[..., None], axis=-2)[..., 0, :]
    along = np.take_along_axis(skew, largest, axis=-1)
    k = skew + np.where(along < 0.0, -1.0, 1.0) * symmetric
    quat = np.concatenate([np.maximum(1.0 + trace, 0.0)[..., None] + np.abs(along), k], axis=-1)
    return quat / np.linalg.norm(quat, axis=-1, keepdims=True)

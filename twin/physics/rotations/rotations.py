"""Rotation matrices, unit quaternions and the seven-number pose vector of ABB.

Quaternions are scalar first, `(a, b, c, d)` as in the thesis and `(q1, q2, q3, q4)` in RAPID. The same
rotation has two of them, `quat` and `-quat`; a single conversion returns the one with `a >= 0`, a time
series is made continuous instead (`continuous_quaternions`), because a jump of sign has no rate.

In their algebra (conjugate, norm, inverse, polar form) a quaternion is `[s, v]` with a scalar s and a vector
v, and need not be of unit length.  `quaternion_by_largest_axis` is a second conversion from a matrix, which
Norrlöf's report derives.

Source: Norrlöf 1999, eq. (2.3)-(2.22), of which (2.9), (2.10), (2.19) and (2.22) are corrected, as their
functions say.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from twin.base.arrays import Floats, float_array, real_array

UNIT_TOLERANCE = 1e-6
"""How far the norm of a quaternion may be from 1: RobotStudio prints nine digits, RAPID code often seven."""

RIGID_TOLERANCE = 1e-9
"""How far a pose may be from rigid: nine decimals, and more than what hundreds of products leave."""


def quaternion_from_matrix(R: ArrayLike) -> NDArray[np.float64]:
    """Return the unit quaternion of a rotation matrix, by the method of Sarabandi and Thomas.

    The magnitudes are Aliaga 2019, eqs. (2.8)-(2.11), with the threshold eta = 0: of the two forms of each
    component the one that does not cancel is taken, so every component is accurate to round-off for every
    rotation. The thesis prints square roots only, hence no signs. Here they come from the products that R
    holds, `4ab = R32 - R23`, `4ac = R13 - R31`, `4ad = R21 - R12`, `4bc = R12 + R21`, `4bd = R13 + R31`,
    `4cd = R23 + R32`: signs are taken relative to the largest component, whose products are the ones
    that round-off cannot turn round, and then the whole quaternion is given `a >= 0`.

    At a half turn (`a = 0` exactly) both signs are right; the largest of b, c, d, the first of equals, is
    then positive.

    Args:
        R: (..., 3, 3) rotation matrices. NaN gives NaN.

    Returns:
        (..., 4) unit quaternions, scalar first, `a >= 0`.

    Raises:
        ValueError: R is not of shape (..., 3, 3), or no rotation within 1e-9 (`rotation_matrices`).

    Example:
        >>> from twin.physics.rotations import quaternion_from_matrix
        >>> R = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]  # a quarter turn about z
        >>> quaternion_from_matrix(R).round(4).tolist()
        [0.7071, 0.0, 0.0, 0.7071]
    """
    R = rotation_matrices(R, nan=True)
    return _quaternion(R)


def _quaternion(R: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the quaternions of rotation matrices that have been checked."""
    r11, r22, r33 = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    ab, ac, ad = R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]
    bc, bd, cd = R[..., 0, 1] + R[..., 1, 0], R[..., 0, 2] + R[..., 2, 0], R[..., 1, 2] + R[..., 2, 1]

    a = _component(r11 + r22 + r33, ab, ac, ad)
    b = _component(r11 - r22 - r33, ab, bc, bd)
    c = _component(-r11 + r22 - r33, ac, bc, cd)
    d = _component(-r11 - r22 + r33, ad, bd, cd)
    magnitudes = np.stack([a, b, c, d], axis=-1)

    positive = np.ones_like(ab)
    products = np.stack(
        [
            np.stack([positive, ab, ac, ad], axis=-1),
            np.stack([ab, positive, bc, bd], axis=-1),
            np.stack([ac, bc, positive, cd], axis=-1),
            np.stack([ad, bd, cd, positive], axis=-1),
        ],
        axis=-2,
    )
    largest = np.argmax(magnitudes, axis=-1)[..., None, None]
    signs = np.where(np.take_along_axis(products, largest, axis=-2)[..., 0, :] < 0, -1.0, 1.0)
    return magnitudes * signs * signs[..., :1]


def _component(
    trace: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64], z: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the magnitude of one quaternion component: eqs. (2.8)-(2.11) share this form, with eta = 0."""
    plain = np.maximum(1.0 + trace, 0.0)
    # Where the ratio is used its denominator is at least 3; elsewhere 2 keeps it from 0 / 0.
    ratio = (x * x + y * y + z * z) / np.maximum(3.0 - trace, 2.0)
    return 0.5 * np.sqrt(np.where(trace > 0.0, plain, ratio))


def matrix_from_quaternion(quat: ArrayLike) -> NDArray[np.float64]:
    """Return the rotation matrix of a unit quaternion.

    The quaternion is normalised first, so that one read from a file with nine digits gives a matrix that
    is orthogonal to round-off.

    Args:
        quat: (..., 4) quaternions, scalar first, either sign.

    Returns:
        (..., 3, 3) rotation matrices.

    Raises:
        ValueError: quat is not of shape (..., 4), or a norm differs from 1 by more than 1e-6, or is NaN.

    Example:
        >>> from twin.physics.rotations import matrix_from_quaternion
        >>> R = matrix_from_quaternion([0.6, 0, 0, 0.8])
        >>> R.round(4).tolist()
        [[-0.28, -0.96, 0.0], [0.96, -0.28, 0.0], [0.0, 0.0, 1.0]]
    """
    quat = unit_quaternion(quat)
    flat = quat.reshape(-1, 4)
    return Rotation.from_quat(flat[:, [1, 2, 3, 0]]).as_matrix().reshape(*quat.shape[:-1], 3, 3)


def unit_quaternion(quat: ArrayLike) -> NDArray[np.float64]:
    """Return quaternions that are nearly of unit length as such to round-off.

    Args:
        quat: (..., 4) quaternions.

    Returns:
        (..., 4) the same over their norms.

    Raises:
        ValueError: quat is not of shape (..., 4), or a norm differs from 1 by more than 1e-6, or is NaN.
    """
    quat = float_array(quat, "quat", (4,))
    norm = np.linalg.norm(quat, axis=-1)
    wrong = ~(np.abs(norm - 1.0) <= UNIT_TOLERANCE)
    if np.any(wrong):
        raise ValueError(
            f"expected unit quaternions (norm 1 within {UNIT_TOLERANCE:g}), got norm {norm[wrong][0]:.9g}"
        )
    return quat / norm[..., None]


def continuous_quaternions(quats: ArrayLike) -> NDArray[np.float64]:
    """Return a time series of quaternions with the signs chosen so that no sample jumps to the other sheet.

    The first sample keeps its sign; each later one takes the sign nearer to its predecessor.

    Args:
        quats: (N, 4) quaternions in order of time, scalar first.

    Returns:
        (N, 4) the same rotations, `quats[k] @ quats[k - 1] >= 0` for every k.

    Raises:
        ValueError: quats is not of shape (N, 4).
    """
    quats = float_array(quats, "quats", (4,))
    if quats.ndim != 2:
        raise ValueError(f"expected quats of shape (N, 4), got {quats.shape}")
    turned = np.sum(quats[1:] * quats[:-1], axis=-1) < 0.0
    signs = np.ones(len(quats))
    signs[1:] = np.cumprod(np.where(turned, -1.0, 1.0))
    return quats * signs[:, None]


def quaternion_product(p: ArrayLike, q: ArrayLike) -> NDArray[np.float64]:
    """Return the Hamilton product `p * q`; of rotations: first q, then p, both about the axes of the base.

    Written out because scipy composes rotations, which must be unit: a rate, or `(0, omega)`, is not.

    Args:
        p: (..., 4) quaternions, scalar first.
        q: (..., 4) quaternions, scalar first.

    Returns:
        (..., 4) products; the leading shapes broadcast.

    Raises:
        ValueError: p or q is not of shape (..., 4).

    Example:
        >>> from twin.physics.rotations import quaternion_product
        >>> i, j = [0, 1, 0, 0], [0, 0, 1, 0]
        >>> quaternion_product(i, j).tolist()
        [0.0, 0.0, 0.0, 1.0]
    """
    p, q = np.broadcast_arrays(float_array(p, "p", (4,)), float_array(q, "q", (4,)))
    pa, pv, qa, qv = p[..., :1], p[..., 1:], q[..., :1], q[..., 1:]
    scalar = pa * qa - np.sum(pv * qv, axis=-1, keepdims=True)
    return np.concatenate([scalar, pa * qv + qa * pv + np.cross(pv, qv)], axis=-1)


def quaternion_rate(quat: ArrayLike, omega: ArrayLike) -> NDArray[np.float64]:
    """Return the time derivative of a unit quaternion, `quat_dot = 1/2 (0, omega) * quat`.

    Args:
        quat: (..., 4) unit quaternions of the body in the base frame, scalar first.
        omega: (..., 3) angular velocities of the body, in the base frame, in [rad/s].

    Returns:
        (..., 4) rates in [1/s], linear in omega; the leading shapes broadcast.

    Raises:
        ValueError: quat is not of shape (..., 4) or omega not of shape (..., 3).

    Example:
        >>> from twin.physics.rotations import quaternion_rate
        >>> quaternion_rate([1, 0, 0, 0], omega=[0, 0, 2.0]).tolist()
        [0.0, 0.0, 0.0, 1.0]
    """
    omega = float_array(omega, "omega", (3,))
    spin = np.concatenate([np.zeros_like(omega[..., :1]), omega], axis=-1)
    return 0.5 * quaternion_product(spin, float_array(quat, "quat", (4,)))


def pose_vector(T: ArrayLike) -> NDArray[np.float64]:
    """Return poses as `[x y z a b c d]`, position and quaternion (Aliaga 2019, eq. 2.12).

    Args:
        T: (..., 4, 4) poses, positions in [m]. NaN gives NaN.

    Returns:
        (..., 7) pose vectors, `a >= 0` (see `quaternion_from_matrix`).

    Raises:
        ValueError: T is not of shape (..., 4, 4), or no pose within 1e-9 (`rigid_poses`).

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> T = twin.forward_kinematics(robot, robot.poses["zero"])
        >>> twin.pose_vector(T).round(4).tolist()
        [0.515, 0.0, 0.712, 0.7071, 0.0, 0.7071, 0.0]
    """
    T = rigid_poses(T, "T", nan=True)
    return np.concatenate([T[..., :3, 3], _quaternion(T[..., :3, :3])], axis=-1)


def pose_matrix(pose: ArrayLike) -> NDArray[np.float64]:
    """Return poses as homogeneous matrices.

    Args:
        pose: (..., 7) pose vectors `[x y z a b c d]`, positions in [m], quaternions of either sign.

    Returns:
        (..., 4, 4) poses.

    Raises:
        ValueError: pose is not of shape (..., 7), or its quaternion is not unit (`matrix_from_quaternion`).

    Example:
        >>> import twin
        >>> T = twin.pose_matrix([0.515, 0, 0.712, 0.6, 0, 0, 0.8])
        >>> T[0].round(4).tolist()
        [-0.28, -0.96, 0.0, 0.515]
    """
    pose = float_array(pose, "pose", (7,))
    T = np.zeros((*pose.shape[:-1], 4, 4))
    T[..., :3, :3] = matrix_from_quaternion(pose[..., 3:])
    T[..., :3, 3] = pose[..., :3]
    T[..., 3, 3] = 1.0
    return T


def rigid_poses(
    T: ArrayLike, name: str, *, nan: bool = False, within: float = RIGID_TOLERANCE
) -> NDArray[np.float64]:
    """Return T as an array of poses (..., 4, 4).

    Args:
        T: (..., 4, 4) poses.
        name: what the message calls the array.
        nan: whether poses that hold NaN are left as they are, as in recordings with gaps.
        within: by how much a pose may deviate; more than by default only where it is then made rigid.

    Raises:
        ValueError: it has another shape, or a pose is not finite, or not rigid; the message tells which pose
            it is and by how much.
    """
    T = float_array(T, name, (4, 4))
    return _rigid(T, T, name, "a right-handed rotation, last row 0 0 0 1", nan, within)


def rotation_matrices(R: ArrayLike, name: str = "R", *, nan: bool = False) -> NDArray[np.float64]:
    """Return R as an array of rotation matrices (..., 3, 3); the rest is as in `rigid_poses`."""
    R = float_array(R, name, (3, 3))
    T = np.zeros((*R.shape[:-2], 4, 4))
    T[..., :3, :3], T[..., 3, 3] = R, 1.0
    return _rigid(R, T, name, "a right-handed rotation", nan, RIGID_TOLERANCE)


def _rigid(
    given: NDArray[np.float64], T: NDArray[np.float64], name: str, wanted: str, nan: bool, within: float
) -> NDArray[np.float64]:
    """Return what was given if the poses T that it stands for are rigid."""
    missing = np.isnan(given)
    infinite = np.isinf(given) if nan else ~np.isfinite(given)
    if np.any(infinite):
        where = np.argwhere(infinite)[0]
        raise ValueError(f"expected {name} to be finite, got {given[tuple(where)]} at {where.tolist()}")
    with np.errstate(over="ignore", invalid="ignore"):  # of absurd numbers
        error = rigidity_error(np.moveaxis(T, (-2, -1), (0, 1)))
        wrong = np.argwhere(~((error <= within) | np.any(missing, axis=(-2, -1))))
        if not len(wrong):
            return given
        where = wrong[0].tolist()
        mirrored = np.linalg.det(T[tuple(where)][:3, :3]) < 0.0
    raise ValueError(
        f"expected {name}{where or ''} to be rigid within {within:g} ({wanted}), "
        f"got a deviation of {error[tuple(where)]:.3g}"
        + (": its rotation is not right-handed" if mirrored else "")
        + ("; twin.rotations.nearest_rotation removes rounding" if error[tuple(where)] <= 1e-3 else "")
    )


def nearest_rotation(A: ArrayLike, tolerance: float = 1e-3) -> NDArray[np.float64]:
    """Return the rotation matrix nearest to a matrix that was typed or rounded, in the Frobenius norm.

    Args:
        A: (..., 3, 3) matrices that deviate from rotations by rounding.
        tolerance: largest accepted deviation of an element.

    Returns:
        (..., 3, 3) rotation matrices.

    Raises:
        ValueError: A has another shape, is not finite, or is further than `tolerance` from a rotation.

    Example:
        >>> from twin.physics.rotations import nearest_rotation
        >>> R = nearest_rotation([[0.866, -0.5, 0], [0.5, 0.866, 0], [0, 0, 1]])
        >>> R[:2, :2].round(6).tolist()
        [[0.866019, -0.500011], [0.500011, 0.866019]]

    Source: Higham 1989, "Matrix nearness problems and applications": U V^T of its singular value
    decomposition.
    """
    A = float_array(A, "A", (3, 3))
    if not np.all(np.isfinite(A)):
        raise ValueError("expected A to be finite")
    U, _, V_T = np.linalg.svd(A)
    R = U @ V_T
    deviation = float(np.max(np.abs(R - A), initial=0.0))
    if np.any(np.linalg.det(R) < 0.0):
        raise ValueError(
            "expected A near a rotation: its determinant is negative, so its axes are not right-handed"
        )
    if not deviation <= tolerance:
        raise ValueError(
            f"expected A within {tolerance:g} of a rotation, got a deviation of {deviation:.3g}: "
            "check the numbers, or pass a larger tolerance"
        )
    return R


def rigidity_error(T):
    """Return how far poses are from rigid, 0 at best.

    It is the largest component of `(R R^T - I) / 2`, to first order the stretch by which R differs from the
    nearest rotation, or of the last row's deviation; and 2 more for a left-handed R. The same lines serve
    arrays of poses and, compiled, a single one.

    Args:
        T: (4, 4, ...) poses, rows and columns first.

    Returns:
        (...) deviations; NaN or infinite where a pose is not finite.
    """
    error = abs(T[3, 3] - 1.0) + 0.0 * (T[0, 3] + T[1, 3] + T[2, 3])
    for i in range(3):
        error = np.maximum(error, abs(T[3, i]))
        for j in range(i + 1):
            dot = T[i, 0] * T[j, 0] + T[i, 1] * T[j, 1] + T[i, 2] * T[j, 2]
            error = np.maximum(error, 0.5 * abs(dot - (i == j)))
    determinant = (
        T[0, 0] * (T[1, 1] * T[2, 2] - T[1, 2] * T[2, 1])
        + T[0, 1] * (T[1, 2] * T[2, 0] - T[1, 0] * T[2, 2])
        + T[0, 2] * (T[1, 0] * T[2, 1] - T[1, 1] * T[2, 0])
    )
    return error + 2.0 * (determinant < 0.0)


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

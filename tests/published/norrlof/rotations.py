"""Rotations and quaternions of Norrlöf's report: section 2.1."""

import numpy as np
from numpy.typing import NDArray

from tests.published.items import SAMPLES, Finding, Item, computes, largest, rng
from tests.published.norrlof.kinematics import matrix, rotations
from twin.physics.rotations.euler_angles import matrix_from_axis_angle, matrix_from_euler
from twin.physics.rotations.rotations import (
    matrix_from_quaternion,
    quaternion_by_largest_axis,
    quaternion_conjugate,
    quaternion_from_polar,
    quaternion_inverse,
    quaternion_norm,
    quaternion_polar,
    quaternion_product,
    rotated_vector,
)

Floats = NDArray[np.float64]
ONE, *UNITS = np.eye(4)


def quaternions(item: Item) -> Floats:
    """Return random quaternions of any norm, after that of the item."""
    return np.concatenate([[item.inputs["q"]], rng().normal(size=(SAMPLES, 4))])


def matrices() -> Floats:
    """Return the matrices (N, 3, 3) of `rotations`."""
    return matrix_from_quaternion(rotations())


def printed_matrix(quat: Floats) -> Floats:
    """Return the matrix (2.15) as printed."""
    s, x, y, z = np.moveaxis(quat, -1, 0)
    return matrix(
        [
            [1 - 2 * y**2 - 2 * z**2, 2 * x * y - 2 * s * z, 2 * x * z + 2 * s * y],
            [2 * x * y + 2 * s * z, 1 - 2 * x**2 - 2 * z**2, 2 * y * z - 2 * s * x],
            [2 * x * z - 2 * s * y, 2 * y * z + 2 * s * x, 1 - 2 * x**2 - 2 * y**2],
        ]
    )


def skew_part(R: Floats) -> Floats:
    """Return the vector k' of (2.17)."""
    return np.stack(
        [R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]], axis=-1
    )


def symmetric_part(R: Floats) -> Floats:
    """Return the corrected vector k'' of (2.18) and (2.19), for any of x, y, z as largest component."""
    diagonal = np.diagonal(R, axis1=-2, axis2=-1)
    products = R + np.swapaxes(R, -1, -2) + (1 - np.sum(diagonal, axis=-1))[..., None, None] * np.eye(3)
    return np.take_along_axis(products, np.argmax(diagonal, axis=-1)[..., None, None], axis=-2)[..., 0, :]


@computes("N-2.4")
def products_of_units(item: Item) -> Finding:
    """Compare the bilinear product (2.3) of the unit products with the library's product."""
    i, j, k = UNITS
    table = np.array([[ONE, i, j, k], [i, -ONE, k, -j], [j, -k, -ONE, i], [k, j, -i, -ONE]])  # (2.4)
    p, q = rng().normal(size=(2, SAMPLES, 4))
    distributed = np.einsum("na,nb,abc->nc", p, q, table)
    units = quaternion_product(np.eye(4)[:, None], np.eye(4)) - table
    residual = largest(quaternion_product(p, q) - distributed, units)
    return Finding(f"{SAMPLES} products and those of the units", residual)


@computes("N-2.8")
def norm(item: Item) -> Finding:
    """Compare the roots of q times its conjugate and of the sum of squares with the library's norm."""
    q = quaternions(item)
    square = quaternion_product(q, quaternion_conjugate(q))
    by_parts = np.sqrt(q[:, 0] ** 2 + np.sum(q[:, 1:] ** 2, axis=1))
    found = quaternion_norm(q)
    return Finding(found[0], largest(found - np.sqrt(square[:, 0]), found - by_parts, square[:, 1:]))


@computes("N-2.9")
def inverse(item: Item) -> Finding:
    """Multiply q by the right inverse from both sides, and by the printed one."""
    q = quaternions(item)
    printed = quaternion_conjugate(q) / quaternion_norm(q)[:, None]
    right = quaternion_inverse(q)
    residual = largest(quaternion_product(q, right) - ONE, quaternion_product(right, q) - ONE)
    return Finding(right[0], residual, largest(quaternion_product(q, printed) - ONE))


@computes("N-2.10")
def polar_form(item: Item) -> Finding:
    """Convert to the polar form and back."""
    q = np.concatenate([quaternions(item), rotations(), -rotations()])
    r, k, phi = quaternion_polar(q)
    with np.errstate(divide="ignore"):
        printed = np.arctan(np.linalg.norm(q[:, 1:], axis=1) / q[:, 0])
    errors = (largest(quaternion_from_polar(r, k, angle) - q) for angle in (phi, printed))
    return Finding(phi[0], *errors)


@computes("N-2.14")
def rotation_by_quaternion(item: Item) -> Finding:
    """Compare three methods to rotate a vector, and the matrix (2.15) with the library's."""
    quat = rotations()
    _, k, half = quaternion_polar(quat)
    a = rng().normal(size=(len(quat), 3))
    b = rotated_vector(quat, a)
    by_axis = np.einsum("nij,nj->ni", matrix_from_axis_angle(k, 2 * half), a)
    by_matrix = np.einsum("nij,nj->ni", printed_matrix(quat), a)
    residual = largest(b - by_axis, b - by_matrix, matrix_from_quaternion(quat) - printed_matrix(quat))
    return Finding(f"{len(quat)} rotations", residual)


@computes("N-2.15x")
def rotation_about_x(item: Item) -> Finding:
    """Compare the library's matrix of a rotation about x with both printed matrices."""
    theta = np.concatenate([rng().uniform(-np.pi, np.pi, SAMPLES), [0, 1e-8, np.pi - 1e-8, np.pi, -np.pi]])
    c, s, zero = np.cos(theta / 2), np.sin(theta / 2), np.zeros_like(theta)
    R = matrix_from_quaternion(np.stack([c, s, zero, zero], axis=1))
    by_half, by_whole = (
        matrix([[1, 0, 0], [0, cosine, -sine], [0, sine, cosine]])
        for cosine, sine in ((1 - 2 * s**2, 2 * c * s), (np.cos(theta), np.sin(theta)))
    )
    return Finding(f"{len(theta)} angles", largest(R - by_half, R - by_whole))


@computes("N-2.16", "N-2.17", "N-2.18", "N-2.21")
def parts_of_the_quaternion(item: Item) -> Finding:
    """Insert the library's quaternion into (2.16) squared, (2.17), (2.18) with its companions, or (2.21)."""
    R = matrices()
    trace = np.trace(R, axis1=1, axis2=2)
    diagonal = np.diagonal(R, axis1=1, axis2=2)
    quat = quaternion_by_largest_axis(R)
    s, k = quat[:, 0], quat[:, 1:]
    difference = {
        "N-2.16": trace + 1 - 4 * s**2,
        "N-2.17": skew_part(R) - 4 * s[:, None] * k,
        "N-2.18": 2 * diagonal - trace[:, None] + 1 - 4 * k**2,
        "N-2.21": np.sum(k**2, axis=1) - (1 - s**2),
    }
    return Finding(f"{len(R)} rotations", largest(difference[item.id]))


@computes("N-2.19")
def axis_from_symmetric_part(item: Item) -> Finding:
    """Insert the library's quaternion into the last line of (2.19)."""
    R = matrix_from_quaternion(np.concatenate([[item.inputs["q"]], rotations()]))
    x, _, z = quaternion_by_largest_axis(R)[:, 1:].T
    right, printed = R[:, 2, 0] + R[:, 0, 2], R[:, 1, 2] + R[:, 0, 2]
    return Finding(right[0], largest(right - 4 * x * z), largest(printed - 4 * x * z))


@computes("N-2.20")
def sum_of_both(item: Item) -> Finding:
    """Check rotations by 180 degrees, for which k' is 0; with sign(0) = 0, k''' vanishes too."""
    n = rotations()[:, 1:]
    n = n[np.linalg.norm(n, axis=1) > 0.1]
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    R = 2 * n[:, :, None] * n[:, None, :] - np.eye(3)  # rotations by 180 degrees, exactly symmetric
    a = np.argmax(np.diagonal(R, axis1=1, axis2=2), axis=1)[:, None]
    skew = skew_part(R)
    without_zero = skew + np.sign(np.take_along_axis(skew, a, axis=1)) * symmetric_part(R)
    right = quaternion_by_largest_axis(R)
    ratio = np.linalg.norm(without_zero, axis=1) / np.linalg.norm(symmetric_part(R), axis=1)
    return Finding(f"{len(R)} half turns", largest(matrix_from_quaternion(right) - R), largest(ratio - 1))


@computes("N-2.22")
def quaternion_of_matrix(item: Item) -> Finding:
    """Convert matrices to quaternions and back, by the library and by (2.22)."""
    R = np.concatenate([[item.inputs["R"]], matrices()])
    right = quaternion_by_largest_axis(R)
    some = R[: SAMPLES + 1]  # without the special cases: for the identity k'' has no direction
    s = np.sqrt(np.trace(some, axis1=1, axis2=2) + 1) / 2
    k = symmetric_part(some)
    k *= (np.sqrt(1 - s**2) / np.linalg.norm(k, axis=1))[:, None]
    printed = matrix_from_quaternion(np.column_stack([s, k]))
    return Finding(right[0], largest(matrix_from_quaternion(right) - R), largest(printed - some))


@computes("N-euler")
def order_of_euler_angles(item: Item) -> Finding:
    """Compare the rotations in the order of the text with ZYZ angles in both orders."""
    alpha, beta, gamma = rng().uniform(-np.pi, np.pi, (3, SAMPLES))
    alpha[:6] = [0, 1e-8, np.pi, np.pi - 1e-8, -np.pi, np.pi / 2]
    frame = np.tile(np.eye(3), (SAMPLES, 1, 1))
    for axis, angle in ((2, beta), (1, alpha), (2, gamma)):  # about the axes of the rotated frame
        frame = matrix_from_axis_angle(frame[:, :, axis], angle) @ frame
    read = matrix_from_euler(np.column_stack([beta, alpha, gamma]), "zyz")
    named = matrix_from_euler(np.column_stack([alpha, beta, gamma]), "zyz")
    return Finding(f"{SAMPLES} triplets", largest(read - frame), largest(named - frame))


@computes("N-R01")
def meaning_of_columns(item: Item) -> Finding:
    """Compare the axes of each frame in the other, rotated by quaternions, with the columns of R."""
    quat = rotations()
    R, d = matrix_from_quaternion(quat), rng().normal(size=(len(quat), 1, 3))
    p_0 = R @ np.eye(3) + d.swapaxes(1, 2)  # (2.1) of the points one unit along the axes of frame 1
    axes_of_1_in_0 = rotated_vector(quat[:, None], np.eye(3)).swapaxes(1, 2)
    axes_of_0_in_1 = rotated_vector(quaternion_conjugate(quat)[:, None], np.eye(3)).swapaxes(1, 2)
    found = p_0 - d.swapaxes(1, 2)
    stretch = np.array(item.inputs["M"])
    determinants = np.linalg.det([*R, stretch]) - 1  # zero for both, but only the rotations are orthogonal
    right = largest(found - axes_of_1_in_0, R.swapaxes(1, 2) @ R - np.eye(3), determinants)
    wrong = min(largest(found - axes_of_0_in_1), largest(stretch.T @ stretch - np.eye(3)))
    return Finding("columns of R: axes of frame 1 in frame 0", right, wrong)

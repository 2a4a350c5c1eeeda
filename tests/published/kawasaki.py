"""Kawasaki: mobility, direction cosines, and Euler angles."""

import numpy as np

from tests.published.items import SAMPLES, Finding, Item, against_printed, computes, largest, rng
from tests.published.norrlof.kinematics import matrix, modulo_turn
from twin.physics.kinematics.differential import mobility
from twin.physics.rotations import (
    matrix_from_axis_angle,
    matrix_from_quaternion,
    quaternion_conjugate,
    quaternion_product,
    rotated_vector,
)
from twin.physics.rotations.euler_angles import (
    Sequence,
    euler_from_matrix,
    euler_rate_matrix,
    matrix_from_euler,
)

NEAR = np.array([0.0, 1e-8, -1e-8, 1e-4])


@computes("K-1")
def stewart_platform(item: Item) -> Finding:
    """Compute M of the example, and the sum of the joints' degrees of freedom."""
    freedoms = [l for count, l in item.inputs["joints"] for _ in range(count)]  # noqa: E741
    return against_printed(item, [mobility(item.inputs["L"], freedoms), sum(freedoms)])


@computes("K-3")
def direction_cosines(item: Item) -> Finding:
    """Compare (3) for two frames known in a third with the rotation between them; then check (2)."""
    quats = rng().normal(size=(2, SAMPLES, 4))
    quats /= np.linalg.norm(quats, axis=-1, keepdims=True)
    quats[1, :20] = quats[0, :20]  # frames that are the same
    quats[1, 20:40] = quaternion_product(quats[0, 20:40], [0.0, 0.6, 0.0, 0.8])  # rotated by 180 degrees
    axes_0, axes_A = np.swapaxes(matrix_from_quaternion(quats), -1, -2)  # the unit vectors in rows
    printed = np.einsum("nik,njk->nij", axes_0, axes_A)

    turn = quaternion_product(quaternion_conjugate(quats[0]), quats[1])
    p = rng().normal(size=(SAMPLES, 3))
    residual = largest(
        printed - matrix_from_quaternion(turn),
        np.einsum("nij,nj->ni", printed, p) - rotated_vector(turn, p),
        np.linalg.inv(printed) - np.einsum("nik,njk->nij", axes_A, axes_0),  # the inverse has 0 and A changed
        printed @ np.swapaxes(printed, -1, -2) - np.eye(3),
    )
    return Finding(f"{SAMPLES} pairs of frames", residual)


def angles() -> np.ndarray:
    """Return Euler angles (N, 3): random triplets, and all triplets at or near multiples of 90 degrees."""
    quarters = (np.arange(-2, 3)[:, None] * np.pi / 2 + NEAR).ravel()
    special = np.stack(np.meshgrid(quarters, quarters, quarters), axis=-1).reshape(-1, 3)
    return np.concatenate([rng().uniform(-np.pi, np.pi, (SAMPLES, 3)), special])


def printed_matrix(triplets: np.ndarray) -> np.ndarray:
    """Return the matrices (N, 3, 3) of Z-Y-X angles, complex ones too, as (6) and the manual's (3.21) do."""
    (cf, ct, cp), (sf, st, sp) = np.cos(triplets).T, np.sin(triplets).T
    return matrix(
        [
            [cf * ct, cf * st * sp - sf * cp, cf * st * cp + sf * sp],
            [sf * ct, sf * st * sp + cf * cp, sf * st * cp - cf * sp],
            [-st, ct * sp, ct * cp],
        ]
    )


@computes("K-4", "K-6")
def euler_matrix(item: Item) -> Finding:
    """Compare the matrix of three angles with the printed entries."""
    sequence: Sequence = "zyz" if item.id == "K-4" else "zyx"
    triplets = angles()
    (cf, ct, cp), (sf, st, sp) = np.cos(triplets).T, np.sin(triplets).T  # of phi, theta and the last angle
    zyz = matrix(
        [
            [cf * ct * cp - sf * sp, -cf * ct * sp - sf * cp, cf * st],
            [sf * ct * cp + cf * sp, -sf * ct * sp + cf * cp, sf * st],
            [-st * cp, st * sp, ct],
        ]
    )
    printed = zyz if sequence == "zyz" else printed_matrix(triplets)
    difference = matrix_from_euler(triplets, sequence) - printed
    return Finding(f"{len(triplets)} triplets", largest(difference))


@computes("K-4p")
def successive_rotations(item: Item) -> Finding:
    """Multiply the three rotations, each in the frame before it, and as printed, each in frame 0."""
    triplets = angles()
    z, y = np.eye(3)[[2, 1]]
    first, second, third = (
        matrix_from_axis_angle(axis, angle) for axis, angle in zip((z, y, z), triplets.T, strict=True)
    )
    R = matrix_from_euler(triplets, "zyz")
    right, printed = first @ second @ third, first @ (first @ second) @ R
    return Finding(f"{len(triplets)} triplets", largest(right - R), largest(printed - R))


@computes("K-5")
def euler_inverse(item: Item) -> Finding:
    """Compare both triplets of (5) with those of the library, which must reproduce the matrix.

    Near sin(theta) = 0 the angles phi and psi are ill-conditioned, so differences are weighted by sin(theta).
    """
    R = matrix_from_euler(angles(), "zyz")
    sine = np.hypot(R[:, 0, 2], R[:, 1, 2])
    regular = sine > 1e-9
    differences = []
    for sign, lower in ((1.0, False), (-1.0, True)):
        found = euler_from_matrix(R, "zyz", lower=lower)
        theta = np.arctan2(sign * sine, R[:, 2, 2])
        phi = np.arctan2(sign * R[:, 1, 2], sign * R[:, 0, 2])
        psi = np.arctan2(sign * R[:, 2, 1], -sign * R[:, 2, 0])
        error = modulo_turn(found - np.stack([phi, theta, psi], axis=-1))
        differences += [error[:, 1], (sine[:, None] * error)[regular], matrix_from_euler(found, "zyz") - R]
    return Finding(f"{len(R)} rotations", largest(*differences))


@computes("K-5s")
def euler_singularity(item: Item) -> Finding:
    """Check that the matrix depends only on phi + psi at theta = 0, and only on phi - psi at theta = pi.

    The library then returns phi = 0 and the whole rotation in psi; its rate matrix has rank 2.
    """
    phi, psi, shift = rng().uniform(-np.pi, np.pi, (3, SAMPLES))
    differences = []
    for theta, sign in ((0.0, 1.0), (np.pi, -1.0)):
        one, other = (
            matrix_from_euler(np.stack([f, np.full(SAMPLES, theta), p], axis=-1), "zyz")
            for f, p in ((phi, psi), (phi + shift, psi - sign * shift))
        )
        found = euler_from_matrix(one, "zyz")
        expected = np.stack([0 * phi, np.full(SAMPLES, theta), psi + sign * phi], axis=-1)
        least = np.linalg.svd(euler_rate_matrix(found, "zyz"), compute_uv=False)[:, 2]
        differences += [other - one, modulo_turn(found - expected), least]
    return Finding(f"{2 * SAMPLES} rotations", largest(*differences))

"""Linear maps that may lose directions: rank, pseudo-inverse, and whether an equation has a solution.

Jacobians are the maps meant, `J` of shape (..., m, n).  A singular value below 1e-12 of the largest counts
as 0: a configuration is singular when it is so to round-off, not when it is merely close.  Close to one the
results are right to about 1e-16 times the condition number, the largest singular value over the least.
"""

from typing import NamedTuple

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import SingularityError

RANK_TOLERANCE = 1e-12
"""Singular values below this, relative to the largest, are 0 but for rounding."""

RANGE_TOLERANCE = 1e-10
"""A right-hand side that a map misses by no more than this, relative to its size, is one that it reaches."""


class SingularValues(NamedTuple):
    """A map `J` (..., m, n) as `outputs @ diag(values) @ inputs^T`, k = min(m, n).

    Attributes:
        outputs: (..., m, m) orthonormal columns; column i is what the map makes of column i of inputs.
        values: (..., k) from the largest to the least.
        inputs: (..., n, n) orthonormal columns.
        rank: (...,) number of values that are not 0; the columns from `rank` on are the outputs that the map
            never gives, and the inputs of which it makes nothing.
    """

    outputs: Floats
    values: Floats
    inputs: Floats
    rank: np.ndarray


def singular_values(J: Floats) -> SingularValues:
    """Return the singular value decomposition of maps (..., m, n), and their rank."""
    U, values, V_transposed = np.linalg.svd(J)
    rank = np.sum(values > RANK_TOLERANCE * values[..., :1], axis=-1)
    return SingularValues(U, values, np.swapaxes(V_transposed, -1, -2), rank)


def full_rank_inverse(J: Floats, what: str, full: int = 6) -> Floats:
    """Return the inverse of maps of full rank, or what takes its place where they are not square.

    Tall ones (m > n) have `(J^T J)^-1 J^T`, the solution of least squares, wide ones `J^T (J J^T)^-1`, that
    of least norm.

    Args:
        J: (..., m, n) maps.
        what: their name, for the message.
        full: the rank that they should have, at most min(m, n): a tool has 6 motions, even of 7 coordinates.

    Returns:
        (..., n, m) the pseudo-inverses.

    Raises:
        SingularityError: the rank of one is less.
    """
    found = singular_values(J)
    full = min(*J.shape[-2:], full)
    if np.any(found.rank < full):
        worst = tuple(map(int, np.argwhere(found.rank < full)[0]))
        raise SingularityError(
            f"{what}{_at(worst)} has rank {found.rank[worst]}, not {full}: singular value {full} is "
            f"{found.values[worst][full - 1]:.3g} beside a largest of {found.values[worst][0]:.3g}"
        )
    scaled = found.inputs[..., :full] / found.values[..., None, :full]
    return scaled @ np.swapaxes(found.outputs[..., :full], -1, -2)


def pseudo_inverse_dot(A: Floats, inverse: Floats, A_dot: Floats) -> Floats:
    """Return the time derivative of the pseudo-inverses (..., n, m) of maps A (..., m, n) of constant rank.

    Source: Golub and Pereyra 1973, "The differentiation of pseudo-inverses and nonlinear least squares
    problems whose variables separate".
    """
    m, n = A.shape[-2:]
    inverse_T, A_dot_T = np.swapaxes(inverse, -1, -2), np.swapaxes(A_dot, -1, -2)
    missed, idle = np.eye(m) - A @ inverse, np.eye(n) - inverse @ A
    of_missed, of_idle = inverse @ inverse_T @ A_dot_T @ missed, idle @ A_dot_T @ inverse_T @ inverse
    return of_missed + of_idle - inverse @ A_dot @ inverse


def solution_in_range(
    J: Floats, b: Floats, what: str, *, size: Floats | None = None, least_squares: bool = False
) -> Floats:
    """Return the solution x of `J x = b` of least norm, if there is one.

    There is one if b lies in the range of J, `rank J = rank [J b]`, singular or not.

    Args:
        J: (..., m, n) maps.
        b: (..., m) right-hand sides; the leading shapes broadcast.
        what: name of b, for the message.
        size: (...,) what a miss is measured against; the norm of b by default, which says little of a b that
            is a small difference of large numbers.
        least_squares: where there is no solution take what comes nearest.

    Returns:
        (..., n) solutions.

    Raises:
        SingularityError: b is not in the range of J by more than 1e-10 of its size; the part that J
            misses is named.

    Source: Norrlöf 1999, section 2.3.4, the rank test below (2.68).
    """
    U, values, V, rank = singular_values(J)
    k = values.shape[-1]
    kept = np.arange(k) < rank[..., None]
    parts = np.einsum("...ji,...j->...i", U[..., :k], b)
    x = np.einsum("...ij,...j->...i", V[..., :k], np.where(kept, parts, 0.0) / np.where(kept, values, 1.0))
    missed = b - np.einsum("...ij,...j->...i", J, x)
    allowed = RANGE_TOLERANCE * (np.linalg.norm(b, axis=-1) if size is None else size)
    beyond = ~(np.linalg.norm(missed, axis=-1) <= allowed)
    if np.any(beyond) and not least_squares:
        at = tuple(np.argwhere(beyond)[0])
        part, rank_there = ", ".join(f"{x:.3g}" for x in missed[at]), np.broadcast_to(rank, beyond.shape)[at]
        raise SingularityError(
            f"{what}{_at(at)} is not possible: the Jacobian, of rank {rank_there}, misses ({part}) of it; "
            "ask for what is possible, or with least_squares=True for the nearest"
        )
    return x


def _at(index: tuple) -> str:
    """Return where in a batch, nothing for a single sample."""
    return f" of sample {list(map(int, index))}" if index else ""

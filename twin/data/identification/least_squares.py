"""Weighted least squares for many equations, joint by joint, with little memory.

The equations of a joint are processed in blocks and reduced to a triangular factor by QR decomposition:

    [Y_j  tau_j] = Q_j R_j,      |Y_j beta - tau_j| = |R_j [beta; -1]|.

The n triangles of r + 1 columns determine the fit under any weights of the joints, their residuals, and the
rank. Each joint is weighted by the deviation of its residuals in the previous fit; after a few iterations the
weights converge.

Source: A. Björck, "Numerical Methods for Least Squares Problems" (1996), section 6.2 (sequential QR).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twin.base.arrays import Floats
from twin.data.identification.measurements import Measurements, equations
from twin.data.identification.torque_model import TorqueModel

MAX_ITERATIONS = 20
"""Largest number of iterations of the weights; measured data take four."""

LEAST_FREE = 0.5
"""Smallest number of equations of a joint, less the parameters that they determine."""

CONVERGED = 1e-3
"""Relative change of a weight below which it has converged."""

SINGULAR = 1e-9
"""Singular value of the scaled columns, relative to the largest, below which they are dependent:
dependent columns have 1e-12 or less, those of a good motion 1e-2.
"""


class Triangles(NamedTuple):
    """Reduced equations of some measurements.

    Attributes:
        R: (n, r + 1, r + 1) triangular factors, with the torque in the last column.
        counts: (n,) number of equations of each joint.
        oversampling: number of equations per independent one.
    """

    R: Floats
    counts: NDArray[np.int64]
    oversampling: float

    @property
    def torque_norms(self) -> Floats:
        """Norms (n,) of the torques of each joint."""
        return np.linalg.norm(self.R[:, :, -1], axis=1)

    def residual_norms(self, beta: Floats) -> Floats:
        """Return the norms (n,) of the residuals of each joint for base parameters beta (r,)."""
        return np.linalg.norm(self.R @ np.append(beta, -1.0), axis=1)


@dataclass(frozen=True, eq=False)
class JointResiduals:
    """Residuals of a model, joint by joint.

    Attributes:
        rms: (n,) root mean square of measured less predicted torque, in [N m].
        percent: (n,) norm of the residuals over that of the torques, in percent.
        torque_rms: (n,) root mean square of the torques, in [N m].
        count: number of equations of all joints.
    """

    rms: Floats
    percent: Floats
    torque_rms: Floats
    count: int


class Fit(NamedTuple):
    """Fitted base parameters.

    Attributes:
        beta: (r,) base parameters.
        covariance: (r, r) their covariance.
        rank: rank of the columns.
        singular_values: (r,) singular values of the columns, weighted and scaled to norm 1, descending.
        directions: (r, r) rows: right singular vectors in terms of the scaled parameters.
        condition: ratio of the largest to the smallest singular value.
        weights: (n,) one over the deviation of each joint's residuals.
        spread: (r, r) matrix S of the inverse normal matrix of the weighted equations, `S S^T`.
    """

    beta: Floats
    covariance: Floats
    rank: int
    singular_values: Floats
    directions: Floats
    condition: float
    weights: Floats
    spread: Floats


def triangles(
    model: TorqueModel,
    measured: Iterable[Measurements],
    progress: Callable[[float], None] | None = None,
) -> Triangles:
    """Reduce the equations of measurements to triangles.

    Args:
        model: model to fit.
        measured: recordings, which are fitted together.
        progress: callback that receives the fraction done.
    """
    measured = list(measured)
    n, width = model.robot.n, len(model.base.columns) + 1
    R, counts = np.zeros((n, width, width)), np.zeros(n, dtype=np.int64)
    total, done = sum(len(one.t) for one in measured), 0
    for one in measured:
        for block in equations(model, one):
            for joint in range(n):
                rows = block.rows[block.used[:, joint], joint]
                counts[joint] += len(rows)
                R[joint] = triangle(np.concatenate([R[joint], rows]), width)
            if progress is not None:
                progress((done + int(block.indices[-1])) / total)
        done += len(one.t)
    return Triangles(R, counts, max(one.oversampling for one in measured))


def triangle(rows: Floats, width: int) -> Floats:
    """Return the triangular factor of rows, padded with zeros if there are few rows."""
    R: Any = np.linalg.qr(rows, mode="r")
    return R if len(R) == width else np.concatenate([R, np.zeros((width - len(R), width))])


def solved(reduced: Triangles, weights: Floats) -> Fit:
    """Solve for the base parameters with weights (n,) of the joints; the minimum-norm solution if singular.

    The covariance is that of independent equations whose deviations are one over the weights, scaled by the
    variance of the weighted residuals and by the oversampling.
    """
    columns, torque, scale = _weighted(reduced, weights)
    U, values, directions = np.linalg.svd(columns, full_matrices=False)
    determined = values > SINGULAR * values[0]
    inverse = np.where(determined, 1.0 / np.where(determined, values, 1.0), 0.0)
    beta = (directions.T @ (inverse * (U.T @ torque))) / scale
    rank = int(np.sum(determined))
    count = int(np.sum(reduced.counts))
    norms = np.sum((weights * reduced.residual_norms(beta)) ** 2)
    variance = norms / max(count - rank, 1) * reduced.oversampling
    spread = directions.T * inverse / scale[:, None]
    covariance = variance * spread @ spread.T
    condition = float(values[0] / values[-1]) if values[-1] > 0 else np.inf
    return Fit(beta, covariance, rank, values, directions, condition, weights, spread)


def _weighted(reduced: Triangles, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Return triangle of the scaled columns, transformed torque, and scale (r,) of all joints together."""
    width = reduced.R.shape[-1]
    R = triangle((reduced.R * weights[:, None, None]).reshape(-1, width), width)
    scale = np.linalg.norm(R[:, :-1], axis=0)
    scale[scale == 0] = 1.0
    return R[:, :-1] / scale, R[:, -1], scale


def fitted(reduced: Triangles) -> Fit:
    """Fit the base parameters, with each joint weighted by the deviation of its residuals.

    The deviation of joint j is `|e_j| / sqrt(N_j - h_j)`, where h_j is the part of the parameters that its
    N_j equations determine: the sum of their leverages.  Without it, few equations of a joint would be fitted
    exactly, with a weight beyond all bounds.

    Source: W. Förstner, "Ein Verfahren zur Schätzung von Varianz- und Kovarianzkomponenten", Allgemeine
    Vermessungs-Nachrichten 86 (1979).
    """
    fit = solved(reduced, np.ones(len(reduced.counts)))
    if fit.rank < len(fit.beta):
        return fit
    beta, spread, weights = fit.beta, fit.spread, fit.weights
    for _ in range(MAX_ITERATIONS):
        norms = reduced.residual_norms(beta)
        floor = 1e-15 * reduced.torque_norms + np.finfo(float).tiny  # where there is no noise
        leverage = weights**2 * np.sum((reduced.R[:, :, :-1] @ spread) ** 2, axis=(1, 2))
        free = np.maximum(reduced.counts - leverage, LEAST_FREE)
        before, weights = weights, np.sqrt(free) / np.maximum(norms, floor)
        if np.all(np.abs(weights - before) <= CONVERGED * weights):
            break
        columns, torque, scale = _weighted(reduced, weights)
        inverse = np.linalg.inv(columns[:-1])
        beta, spread = inverse @ torque[:-1] / scale, inverse / scale[:, None]
    return solved(reduced, weights)


def joint_residuals(reduced: Triangles, beta: Floats) -> JointResiduals:
    """Return the residuals of each joint for base parameters beta (r,)."""
    norms, whole = reduced.residual_norms(beta), reduced.torque_norms
    count = np.maximum(reduced.counts, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        percent = 100.0 * norms / whole
    return JointResiduals(
        norms / np.sqrt(count), percent, whole / np.sqrt(count), int(np.sum(reduced.counts))
    )

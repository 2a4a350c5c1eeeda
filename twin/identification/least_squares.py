"""Weighted least squares of many equations, joint by joint, in little memory.

The equations of a joint come in blocks and leave a triangle behind, by QR decomposition:

    [Y_j  tau_j] = Q_j R_j,      |Y_j beta - tau_j| = |R_j [beta; -1]|,

so that everything is told by n triangles of r + 1 columns: the fit under any weights of the joints, their
residuals, the rank.  Each joint is weighted by the deviation of its own residuals, which the fit before
tells; after a few rounds these stay.

Source: A. Björck, "Numerical Methods for Least Squares Problems" (1996), section 6.2 (sequential QR).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twin.arrays import Floats
from twin.identification.measurements import Measurements, equations
from twin.identification.torque_model import TorqueModel

ROUNDS = 20
"""At most, until weights stay; measured data take four."""

SETTLED = 1e-3
"""How much a weight may still change, relative."""

SINGULAR = 1e-9
"""A singular value of the scaled columns, relative to the largest, below which they are dependent: of columns
that are, it is 1e-12 or less, of those of a good motion 1e-2."""


class Triangles(NamedTuple):
    """The equations of some measurements.

    Attributes:
        R: (n, r + 1, r + 1) triangular factors, the torque in the last column.
        counts: (n,) equations of each joint.
        oversampling: how many equations say what one would.
    """

    R: Floats
    counts: NDArray[np.int64]
    oversampling: float

    @property
    def torque_norms(self) -> Floats:
        """Norms (n,) of the torques of each joint."""
        return np.linalg.norm(self.R[:, :, -1], axis=1)

    def residual_norms(self, beta: Floats) -> Floats:
        """Norms (n,) of the residuals of each joint under base parameters beta (r,)."""
        return np.linalg.norm(self.R @ np.append(beta, -1.0), axis=1)


@dataclass(frozen=True, eq=False)
class JointResiduals:
    """How well a model explains torques, joint by joint.

    Attributes:
        rms: (n,) root mean square of measured less predicted torque, in [N m].
        percent: (n,) norm of the residuals over that of the torques, in percent.
        torque_rms: (n,) of the torques, in [N m].
        count: equations, of all joints.
    """

    rms: Floats
    percent: Floats
    torque_rms: Floats
    count: int


class Fit(NamedTuple):
    """Base parameters, fitted.

    Attributes:
        beta: (r,).
        covariance: (r, r).
        rank: of the columns.
        singular_values: (r,) of the columns, weighted and scaled to norm 1, falling.
        directions: (r, r) rows: of the scaled parameters, one a singular value.
        condition: the largest singular value over the smallest.
        weights: (n,) one over each joint's residual deviation.
    """

    beta: Floats
    covariance: Floats
    rank: int
    singular_values: Floats
    directions: Floats
    condition: float
    weights: Floats


def triangles(
    model: TorqueModel,
    measured: Iterable[Measurements],
    progress: Callable[[float], None] | None = None,
) -> Triangles:
    """Reduce the equations of measurements to triangles.

    Args:
        model: what is fitted.
        measured: several recordings count together.
        progress: called with the fraction done, now and then.
    """
    measured = list(measured)
    n, width = model.robot.n, len(model.base.columns) + 1
    R, counts = np.zeros((n, width, width)), np.zeros(n, dtype=np.int64)
    total, done = sum(len(one.t) for one in measured), 0
    for one in measured:
        for places, rows, used in equations(model, one):
            for joint in range(n):
                block = rows[used[:, joint], joint]
                counts[joint] += len(block)
                R[joint] = _triangle(np.concatenate([R[joint], block]), width)
            if progress is not None:
                progress((done + int(places[-1])) / total)
        done += len(one.t)
    return Triangles(R, counts, max(one.oversampling for one in measured))


def _triangle(rows: Floats, width: int) -> Floats:
    """The triangular factor of rows, with rows of 0 where there are few."""
    R: Any = np.linalg.qr(rows, mode="r")
    return R if len(R) == width else np.concatenate([R, np.zeros((width - len(R), width))])


def solved(reduced: Triangles, weights: Floats) -> Fit:
    """The base parameters under weights (n,) of the joints; of directions that are open, the least.

    The covariance is that of independent equations whose deviations are one over the weights, times what the
    residuals say that it is more; where rows are told several times, so many times more.
    """
    columns, torque, scale = _weighted(reduced, weights)
    U, values, directions = np.linalg.svd(columns, full_matrices=False)
    told = values > SINGULAR * values[0]
    inverse = np.where(told, 1.0 / np.where(told, values, 1.0), 0.0)
    beta = (directions.T @ (inverse * (U.T @ torque))) / scale
    rank = int(np.sum(told))
    count = int(np.sum(reduced.counts))
    left = np.sum((weights * reduced.residual_norms(beta)) ** 2)
    variance = left / max(count - rank, 1) * reduced.oversampling
    spread = directions.T * inverse / scale[:, None]
    covariance = variance * spread @ spread.T
    condition = float(values[0] / values[-1]) if values[-1] > 0 else np.inf
    return Fit(beta, covariance, rank, values, directions, condition, weights)


def _weighted(reduced: Triangles, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Of all joints together: the triangle of the scaled columns, that of the torque, and the scale (r,)."""
    width = reduced.R.shape[-1]
    R = _triangle((reduced.R * weights[:, None, None]).reshape(-1, width), width)
    scale = np.linalg.norm(R[:, :-1], axis=0)
    scale[scale == 0] = 1.0
    return R[:, :-1] / scale, R[:, -1], scale


def fitted(reduced: Triangles) -> Fit:
    """The base parameters, each joint weighted by the deviation of its own residuals."""
    fit = solved(reduced, np.ones(len(reduced.counts)))
    if fit.rank < len(fit.beta):
        return fit
    beta, weights = fit.beta, fit.weights
    for _ in range(ROUNDS):
        left = reduced.residual_norms(beta)
        floor = 1e-15 * reduced.torque_norms + np.finfo(float).tiny  # where there is no noise
        before, weights = weights, np.sqrt(np.maximum(reduced.counts, 1)) / np.maximum(left, floor)
        if np.all(np.abs(weights - before) <= SETTLED * weights):
            break
        columns, torque, scale = _weighted(reduced, weights)
        beta = np.linalg.solve(columns[:-1], torque[:-1]) / scale
    return solved(reduced, weights)


def joint_residuals(reduced: Triangles, beta: Floats) -> JointResiduals:
    """What is left of the torques of each joint under base parameters beta (r,)."""
    left, whole = reduced.residual_norms(beta), reduced.torque_norms
    count = np.maximum(reduced.counts, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        percent = 100.0 * left / whole
    return JointResiduals(left / np.sqrt(count), percent, whole / np.sqrt(count), int(np.sum(reduced.counts)))

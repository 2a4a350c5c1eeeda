"""Weighted least squares for many equations, joint by joint, with little memory.

The equations of a joint are processed in blocks and reduced to a triangular factor by QR decomposition:

    [Y_j  tau_j] = Q_j R_j,      |Y_j beta - tau_j| = |R_j [beta; -1]|.

The n triangles of r + 1 columns determine the fit under any weights of the joints, their residuals, and the
rank. Each joint is weighted by the deviation of its residuals in the previous fit; after a few iterations the
weights converge.

Source: A. Björck, "Numerical Methods for Least Squares Problems" (1996), section 6.2 (sequential QR).
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twin.arrays import Floats
from twin.errors import IdentificationError, IdentificationWarning
from twin.identification.measurements import Measurements, equations, motion_at
from twin.identification.torque_model import TorqueModel
from twin.robot.loading.loading import robot_facts
from twin.robot.robot import Robot

MAX_ITERATIONS = 20
"""Largest number of iterations of the weights; measured data take four."""

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
    """Fit the base parameters, with each joint weighted by the deviation of its residuals."""
    fit = solved(reduced, np.ones(len(reduced.counts)))
    if fit.rank < len(fit.beta):
        return fit
    beta, weights = fit.beta, fit.weights
    for _ in range(MAX_ITERATIONS):
        norms = reduced.residual_norms(beta)
        floor = 1e-15 * reduced.torque_norms + np.finfo(float).tiny  # where there is no noise
        before, weights = weights, np.sqrt(np.maximum(reduced.counts, 1)) / np.maximum(norms, floor)
        if np.all(np.abs(weights - before) <= CONVERGED * weights):
            break
        columns, torque, scale = _weighted(reduced, weights)
        beta = np.linalg.solve(columns[:-1], torque[:-1]) / scale
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


STANDS_STILL = 0.01
"""Smallest range of motion of a joint, in [rad] or [m], that determines its inertia and friction."""

BEYOND_RANGE = 2.0
"""Multiple of a joint's range beyond which positions are implausible."""

INVOLVED = 0.2
"""Smallest share of a parameter in an undetermined direction for which the message names it."""

UNLIKE = 5.0
"""Ratio of measured to predicted torques beyond which a wrong unit or side of the gear is suspected."""

ALIKE = 2.5
"""Largest factor between the observed ratio and one that a unit or a gear explains."""

SOME_SAMPLES = 2000
"""Number of samples that are compared with the model of the given robot."""


def require_motion(robot: Robot, measured: Sequence[Measurements]) -> None:
    """Raise `IdentificationError` if a joint stands still, or its positions are implausible."""
    for one in measured:
        reached = np.max(np.abs(one.q), axis=0)
        limit = BEYOND_RANGE * np.maximum(np.abs(robot.q_min), np.abs(robot.q_max))
        if not np.all(reached <= limit):
            joint = int(np.argmin(reached <= limit))
            gear = "" if robot.drives is None else "of the motors (motor_side), "
            raise IdentificationError(
                f"{one.name}: joint {joint + 1} reaches {reached[joint]:.4g} rad, but its range is "
                f"{robot.q_min[joint]:.4g} to {robot.q_max[joint]:.4g} rad: are these positions {gear}or in "
                "another unit (angle_unit)?"
            )
    moved = np.max([_span(one) for one in measured], axis=0)
    if not np.all(moved >= STANDS_STILL):
        still = ", ".join(str(joint + 1) for joint in np.flatnonzero(~(moved >= STANDS_STILL)))
        raise IdentificationError(
            f"joint {still} stands still: it moves over {np.min(moved):.2g} rad, which does not determine "
            f"its inertia and friction; expected it to turn by {STANDS_STILL:g} rad or more, back and forth"
        )


def _span(one: Measurements) -> Floats:
    """Return the range of motion (n,) of each joint in the samples that are used."""
    q = one.q[np.any(one.used, axis=1)]
    return np.ptp(q, axis=0) if len(q) else np.zeros(q.shape[1])


def require_units(model: TorqueModel, measured: Sequence[Measurements]) -> None:
    """Raise `IdentificationError` if torques deviate by a factor that a unit or a gear explains."""
    robot = model.robot
    drives = robot.active_drives
    assert drives is not None
    for one in measured:
        places = np.flatnonzero(np.any(one.used, axis=1))
        places = places[:: max(1, len(places) // SOME_SAMPLES)]
        if not places.size:
            continue
        Y = model.regressor(*motion_at(one, places))
        predicted, tau = Y @ model.parameters.values, one.tau[places]
        sizes = [np.sqrt(np.mean(torque**2, axis=0)) for torque in (tau, predicted)]
        if not all(np.all(size > 0) for size in sizes):
            continue
        factor = sizes[0] / sizes[1]
        ratio = np.abs(np.diagonal(drives.motor_matrix))
        if _median_factor(factor, np.ones_like(ratio)) < UNLIKE:
            continue
        for explained, cause in (
            (1.0 / ratio, "one over its gear ratio: are these torques of the motors (motor_side)"),
            (ratio, "its gear ratio: are these torques of the joints, not of the motors (motor_side)"),
            (np.full_like(ratio, 1e3), "the factor of the unit: are these torques in mN m (torque_unit)"),
        ):
            if np.ptp(explained) + np.abs(explained[0] - 1) > 0 and _median_factor(factor, explained) < ALIKE:
                worst = int(np.argmax(np.abs(np.log(factor))))
                raise IdentificationError(
                    f"{one.name}: torques differ from those of {robot.name!r}, that of joint {worst + 1} "
                    f"is {factor[worst]:.3g} times as large, and {explained[worst]:.3g} is {cause}?"
                )


def _median_factor(factor: Floats, explained: Floats) -> float:
    """Return the median factor by which observed factors differ from explained ones."""
    return float(np.exp(np.median(np.abs(np.log(factor / explained)))))


def warn_of_masses(model: TorqueModel, beta: Floats, reduced: Triangles) -> None:
    """Warn if identified links are `UNLIKE` times heavier or lighter than those of the robot.

    Args:
        model: robot and fitted model.
        beta: (r,) identified base parameters.
        reduced: reduced equations of the recordings.
    """
    robot, base = model.robot, model.base
    links = base.columns < 10 * robot.tree.n
    R = reduced.R[:, :, :-1][:, :, links]
    of_robot = base.K @ model.parameters.values
    found, known = R @ beta[links], R @ of_robot[links]
    sizes = np.sum(known * known, axis=1)
    if not np.all(sizes > 0):
        return
    factor = float(np.median(np.sum(found * known, axis=1) / sizes))  # unbiased by noise
    mass, data_sheet, file = float(np.sum(robot.tree.inertias[:, 0])), "", robot.file
    off = [factor]
    if (
        file is not None
        and file.suffix == ".toml"
        and file.exists()
        and "mass" in (facts := robot_facts(file))
    ):
        off.append(factor * mass / facts["mass"])
        data_sheet = f"; by the data sheet the arm weighs {facts['mass']:.4g} kg with its base"
    if not all(1.0 / UNLIKE < part < UNLIKE for part in off):
        warnings.warn(
            f"the identified links are {factor:.3g} times as heavy as those of {robot.name!r}, "
            f"{factor * mass:.3g} kg instead of {mass:.3g} kg{data_sheet}: are the torques those of the "
            "motors (motor_side), or in another unit (torque_unit)?",
            IdentificationWarning,
            stacklevel=3,
        )


def require_rank(model: TorqueModel, fit: Fit, measured: Sequence[Measurements]) -> None:
    """Raise `IdentificationError` if the motion leaves parameters open that another would determine."""
    r = len(fit.beta)
    if fit.rank == r:
        return
    symbols = model.base.symbols
    open_ones = fit.directions[fit.singular_values <= SINGULAR * fit.singular_values[0]]
    share = np.linalg.norm(open_ones, axis=0)
    # Rounded, so that parameters with equal shares keep the order of the model.
    order = np.argsort(-np.round(share, 9), kind="stable")
    named = [symbols[k] for k in order if share[k] > INVOLVED]
    names = ", ".join(named[:8]) + (f" and {len(named) - 8} more" if len(named) > 8 else "")
    raise IdentificationError(
        f"the motion determines {fit.rank} of {r} base parameters: {names} cannot be distinguished; "
        f"{_advice(measured)}"
    )


def _advice(measured: Sequence[Measurements]) -> str:
    """Return advice on a motion that determines more parameters."""
    qd = np.concatenate([one.qd[np.any(one.used, axis=1)] for one in measured])
    one_direction = np.flatnonzero(~((np.min(qd, axis=0) < 0) & (np.max(qd, axis=0) > 0)))
    if one_direction.size:
        joints = ", ".join(str(joint + 1) for joint in one_direction)
        return f"let joint {joints} turn back and forth"
    return (
        "let all joints turn at once by different amounts, over more of their ranges and at different speeds"
    )

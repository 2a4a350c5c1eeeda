"""Weighted least squares for many equations, joint by joint, and the equations that it leaves out.

The equations of a joint are processed in blocks and reduced to a triangular factor by QR decomposition:

    [Y_j  tau_j] = Q_j R_j,      |Y_j beta - tau_j| = |R_j [beta; -1]|.

The n triangles of r + 1 columns determine the fit under any weights of the joints, their residuals, and the
rank. Each joint is weighted by the deviation of its residuals in the previous fit; after a few iterations the
weights converge.

Source: A. Björck, "Numerical Methods for Least Squares Problems" (1996), section 6.2 (sequential QR).

The fit minimises the sum of `(w (tau - Y beta))^2` over all samples and joints.  Both sides of an equation
are multiplied by its weight w after they were filtered.  For noise of deviation sigma, `w = 1 / sigma` gives
the least variance.

Source: C. Gauss, "Theoria combinationis observationum" (1821), on weighted least squares.

Near rest a shaft sticks, creeps or has a higher friction, and the sign of a measured speed is that of its
noise.  Equations with Coulomb and viscous friction hold above some speed only.  Each equation `tau = Y pi` is
therefore multiplied by a weight that rises from 0 at that speed to 1 at twice that speed, and is filtered
only then: a filter of the equations without weights would spread the samples near rest over all others.

The speed is found by cross-validation.  For each candidate, the recordings are divided into `FOLDS` parts,
and the torques of each are predicted by a fit to the others.  The predictions are compared with the weights
of the highest candidate, which are the same for all.  The lowest speed wins whose error is within `AS_GOOD`
of the smallest.

The residuals of all samples, unfiltered, are compared with the fit.  Their size is measured by the median,
which spikes do not change: `1.4826 median |e|` is the deviation of normal noise.  Samples beyond `SPIKE`
deviations that are far from the median of their neighbours, too, which a step of the friction is not, get
the weight 0 before the filter, so that they do not spread to their neighbours, and the fit is repeated.  A
hard limit is the extreme of the robust weights of P. Huber, "Robust Statistics" (1981): it leaves noise
alone, so that a recording without spikes has the same fit as without this step.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.base.arrays import Floats, real_array
from twin.data.identification.measurements import (
    BLOCK,
    Measurements,
    equations,
    filtered_block,
    motion_at,
    unfiltered,
)
from twin.data.identification.torque_model import TorqueModel, shaft_speeds
from twin.data.logs.recordings.finding import Finding, joint_names
from twin.physics.robot.robot import Robot

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


def with_weights(
    measured: Sequence[Measurements], weights: ArrayLike | Sequence[ArrayLike]
) -> list[Measurements]:
    """Return measurements with weights of their equations.

    Args:
        measured: measurements of the same robot.
        weights: (n,) for all of them; or (N, n) for each, where a log may have a row for its last sample.

    Raises:
        ValueError: the shapes do not fit, or a weight is negative or not finite; the message says which.
    """
    count = len(measured)
    given: Any = weights if isinstance(weights, np.ndarray | Sequence) else [weights]
    if all(np.ndim(one) == 0 for one in given):
        arrays: list[Any] = [weights] * count
    elif count == 1 and np.ndim(given[0]) == 1:
        arrays = [weights]
    elif len(given) == count:
        arrays = list(given)
    else:
        raise ValueError(f"expected weights for each of the {count} recordings, got {len(given)} arrays")
    return [
        replace(one, row_weights=_checked(array, one), how=f"{one.how}; equations weighted as given")
        for one, array in zip(measured, arrays, strict=True)
    ]


def _checked(weights: ArrayLike, measured: Measurements) -> Floats:
    """Return the weights (N, n) of the samples, one for each equation."""
    array, (N, n) = real_array(weights, "weights"), measured.q.shape
    rows = (N, N + 1) if measured.low_pass is None else (N,)  # exact equations of a log lack its last sample
    if array.shape != (n,) and not (array.ndim == 2 and len(array) in rows and array.shape[1] == n):
        raise ValueError(
            f"{measured.name}: expected weights of shape ({n},), one per joint, or (N, {n}), one per sample "
            f"and joint, with N = {' or '.join(map(str, rows))}, got {array.shape}"
        )
    if not np.all(valid := (array >= 0) & (array < np.inf)):
        place = tuple(np.argwhere(~valid)[0].tolist())
        sample = "" if array.ndim == 1 else f" at sample {place[0] + 1}"
        raise ValueError(
            f"{measured.name}: the weight of joint {place[-1] + 1}{sample} is {array[place]:g}; expected a "
            "finite number of at least 0"
        )
    return np.broadcast_to(array if array.ndim == 1 else array[:N], (N, n))


def used_equally(measured: Measurements) -> Measurements:
    """Return measurements whose weights are 1 where they are above 0."""
    weights = measured.row_weights
    return replace(measured, row_weights=None if weights is None else (weights > 0).astype(np.float64))


HIGHEST = 0.05
"""Highest candidate, as a share of the top speed of the slowest shaft."""

CANDIDATES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Candidates for the lowest speed that is used, in [rad/s]."""

FOLDS = 4
"""Number of parts of the cross-validation."""

PIECES = 20
"""Number of pieces of the recordings, which belong to the parts in turn, so that each has all motions."""

HARDLY = 0.001
"""Relative growth of the prediction error, as a mean over the joints, without a useless kind of friction."""

AS_GOOD = 0.03
"""Relative difference of two prediction errors, as a mean over the joints, that does not matter."""


def without_rest(measured: Measurements, robot: Robot, speed: float) -> Measurements:
    """Return measurements without the samples of shafts that turn more slowly than `speed`, in [rad/s]."""
    if not speed > 0:
        return measured
    weights = speed_weights(measured, robot, speed)
    share = 1.0 - np.sum(weights * measured.used) / max(np.sum(measured.used), 1)
    how = f"{measured.how}; excluded below {speed:g} rad/s: {100 * share:.3g} % of the samples"
    return replace(measured, weights=weights, how=how)


def speed_weights(measured: Measurements, robot: Robot, speed: float) -> Floats:
    """Return the weights (N, n) of samples: 0 where a shaft with friction turns more slowly than `speed`."""
    drives = robot.active_drives
    assert drives is not None
    motor = measured if measured.motor is None else measured.motor
    speeds = shaft_speeds(drives, measured.qd_friction, motor.qd_friction)
    x = np.clip(np.abs(speeds) / speed - 1.0, 0.0, 1.0)
    of_shafts = x * x * (3.0 - 2.0 * x)
    return np.prod(np.where(drives.friction_matrix != 0, of_shafts[:, :, None], 1.0), axis=1)


def chosen_min_speed(model: TorqueModel, recordings: Sequence[Measurements]) -> float:
    """Choose the speed below which samples of filtered recordings are excluded, in [rad/s].

    Logs with exact speeds are not considered: `measurements_of_log` excludes what does not hold there.
    """
    filtered = [one for one in recordings if one.low_pass is not None and np.any(one.used)]
    drives = model.robot.active_drives
    if not filtered or drives is None:
        return 0.0
    speeds = np.concatenate([np.abs(one.qd_friction @ drives.friction_matrix.T) for one in filtered])
    top = HIGHEST * float(np.min(np.percentile(speeds, 99.0, axis=0)))
    candidates = [speed for speed in CANDIDATES if speed <= top]
    parts = []
    for one in filtered:
        weighted = [without_rest(one, model.robot, speed) for speed in candidates]
        every = max(1, round(one.oversampling))
        for samples in unfiltered(model, one, every):
            blocks = [filtered_block(samples, other) for other in weighted]
            parts.append([(block.rows[::every], block.used[::every]) for block in blocks])
    rows, used = (
        [np.concatenate([part[k][item] for part in parts]) for k in range(len(candidates))] for item in (0, 1)
    )
    errors = np.array([_prediction_error(*pair, rows[-1], used[-1]) for pair in zip(rows, used, strict=True)])
    if not np.any(np.isfinite(errors)):
        return 0.0
    return candidates[int(np.argmax(errors <= np.min(errors) + AS_GOOD))]


def useless_friction(model: TorqueModel, recordings: Sequence[Measurements]) -> list[str]:
    """Return the kinds of further friction without which filtered recordings are predicted as accurately.

    The kinds are left out one after the other, the most useless first, as long as the error of the
    cross-validation does not grow by more than `HARDLY`.
    """
    filtered = [one for one in recordings if one.low_pass is not None and np.any(one.used)]
    kinds = list(dict.fromkeys(kind for kind, _ in model.friction))
    parts = []
    for one in filtered:
        every = max(1, round(one.oversampling))
        for samples in unfiltered(model, one, every):
            block = filtered_block(samples, one)
            parts.append((block.rows[::every], block.used[::every]))
    if not parts or not kinds:
        return []
    rows, used = (np.concatenate(some) for some in zip(*parts, strict=True))
    first = model.sections.friction.start
    of_kind = {kind: {first + k for k, one in enumerate(model.friction) if one[0] == kind} for kind in kinds}

    def error(left_out: Sequence[str]) -> float:
        gone = set().union(*(of_kind[kind] for kind in left_out))
        keep = [k for k, column in enumerate(model.base.columns.tolist()) if column not in gone]
        some = rows[..., [*keep, rows.shape[-1] - 1]]
        return _prediction_error(some, used, some, used)

    useless: list[str] = []
    least = error(useless)
    while len(useless) < len(kinds):
        errors = {kind: error([*useless, kind]) for kind in kinds if kind not in useless}
        kind = min(errors, key=lambda one: errors[one])
        if not errors[kind] <= least + HARDLY:
            break
        useless.append(kind)
        least = min(least, errors[kind])
    return useless


def _prediction_error(
    rows: Floats, used: NDArray[np.bool_], judged: Floats, judged_used: NDArray[np.bool_]
) -> float:
    """Return the mean over the joints of the logarithm of the cross-validated error.

    Args:
        rows: (N, n, r + 1) equations, torque last.
        used: (N, n) equations of the fit.
        judged: (N, n, r + 1) equations on which predictions are compared.
        judged_used: (N, n) true for those of them that are used.

    Returns:
        The mean; infinite if a part of the recordings does not determine the parameters.
    """
    fold, width = np.arange(len(rows)) * PIECES // len(rows) % FOLDS, rows.shape[2]
    R = [
        [triangle(rows[used[:, joint] & (fold == k), joint], width) for joint in range(rows.shape[1])]
        for k in range(FOLDS)
    ]
    squares = np.zeros(rows.shape[1])
    for k in range(FOLDS):
        others = [np.concatenate(part) for part in zip(*(R[:k] + R[k + 1 :]), strict=True)]
        counts = np.sum(used & (fold != k)[:, None], axis=0)
        fit = fitted(Triangles(np.array([triangle(part, width) for part in others]), counts, 1.0))
        if fit.rank < width - 1 or np.sum(counts) < 2 * (width - 1):
            return np.inf
        rest = judged[fold == k, :, -1] - judged[fold == k, :, :-1] @ fit.beta
        squares += np.sum((rest * judged_used[fold == k]) ** 2, axis=0)
    return float(np.mean(np.log(np.maximum(squares, np.finfo(float).tiny)))) / 2.0


SPIKE = 8.0
"""Residual of a spike, in deviations of the noise."""

MATTERS = 0.5
"""Smallest residual of a spike, as a share of the torque's root mean square."""

MOST = 0.05
"""Largest share of samples that are spikes; more are errors of the model."""

LONGEST = 0.01
"""Longest spike, in [s], or `FEWEST` samples; longer ones are errors of the model."""

FEWEST = 3


def sample_residuals(model: TorqueModel, beta: Floats, measured: Measurements) -> Floats:
    """Return measured less predicted torques (N, n) of all samples, unfiltered, in [N m]."""
    rest = np.empty_like(measured.tau)
    for start in range(0, len(rest), BLOCK):
        part = np.arange(start, min(start + BLOCK, len(rest)))
        Y = model.regressor(*motion_at(measured, part))[..., model.base.columns]
        rest[part] = measured.tau[part] - Y @ beta
    return rest


def torque_spikes(measured: Measurements, rest: Floats) -> NDArray[np.bool_]:
    """Return the samples (N, n) that are spikes, given the residuals of all samples."""
    from scipy.ndimage import median_filter

    seen = measured.used if measured.weights is None else measured.used & (measured.weights > 0.5)
    longest = max(FEWEST, round(LONGEST / (measured.t[1] - measured.t[0])))
    spikes = np.zeros(rest.shape, dtype=np.bool_)
    impulse = np.abs(measured.tau - median_filter(measured.tau, size=(2 * longest + 1, 1), mode="nearest"))
    for joint in range(rest.shape[1]):
        e = rest[seen[:, joint], joint]
        if not e.size:
            continue
        deviation = 1.4826 * float(np.median(np.abs(e - np.median(e))))
        size = float(np.sqrt(np.mean(measured.tau[:, joint] ** 2)))
        off = np.abs(rest[:, joint] - np.median(e))
        far = (off > max(SPIKE * deviation, MATTERS * size)) & (impulse[:, joint] > 0.5 * off)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], far, [False]]).astype(np.int8)))
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            far[start:end] = end - start <= longest
        if np.sum(far) <= MOST * len(far):
            spikes[:, joint] = far
    return spikes


def without_spikes(
    model: TorqueModel, beta: Floats, measured: Sequence[Measurements]
) -> tuple[list[Measurements], int]:
    """Return measurements in which spikes of the torque have the weight 0, and the number of new spikes."""
    result, count = [], 0
    for one in measured:
        if one.low_pass is None:
            result.append(one)
            continue
        weights = np.ones(one.tau.shape) if one.weights is None else one.weights
        rest = sample_residuals(model, beta, one)
        spikes = torque_spikes(one, rest) & (weights > 0)
        count += int(np.sum(spikes & one.used))
        if np.any(spikes):  # predicted torques, so that no filter spreads a spike
            one = replace(
                one, weights=np.where(spikes, 0.0, weights), tau=one.tau - np.where(spikes, rest, 0.0)
            )
        result.append(one)
    return result, count


def spike_findings(before: Sequence[Measurements], after: Sequence[Measurements]) -> list[Finding]:
    """Return a finding for the samples whose weight became 0."""
    counts = 0
    for one, other in zip(before, after, strict=True):
        if other is not one and other.weights is not None:
            weights = np.ones_like(other.weights) if one.weights is None else one.weights
            counts = counts + np.sum((weights > 0) & (other.weights == 0) & one.used, axis=0)
    if not np.any(counts):
        return []
    joints = (np.flatnonzero(counts) + 1).tolist()
    text = f"{int(np.sum(counts))} spikes in the torques of {joint_names(joints)}: left out"
    return [Finding("spikes", tuple(joints), text, stops=False)]

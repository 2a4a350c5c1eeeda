"""Exclusion of samples near rest, where friction is not that of a moving joint.

Near rest a shaft sticks, creeps or has a higher friction, and the sign of a measured speed is that of its
noise.  Equations with Coulomb and viscous friction hold above some speed only.  Each equation `tau = Y pi` is
therefore multiplied by a weight that rises from 0 at that speed to 1 at twice that speed, and is filtered
only then: a filter of the equations without weights would spread the samples near rest over all others.

The speed is found by cross-validation.  For each candidate, the recordings are divided into `FOLDS` parts,
and the torques of each are predicted by a fit to the others.  The predictions are compared with the weights
of the highest candidate, which are the same for all.  The lowest speed wins whose error is within `AS_GOOD`
of the smallest.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from twin.base.arrays import Floats
from twin.data.identification.least_squares import Triangles, fitted, triangle
from twin.data.identification.measurements import Measurements, filtered_block, unfiltered
from twin.data.identification.torque_model import TorqueModel, shaft_speeds
from twin.physics.robot.robot import Robot

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

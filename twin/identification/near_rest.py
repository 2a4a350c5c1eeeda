"""Exclusion of samples near rest, where friction is not that of a moving joint.

Near rest a shaft sticks, creeps or has a higher friction, and the sign of a measured speed is that of its
noise.  Equations with Coulomb and viscous friction hold above some speed only.  A filter spreads such a
sample over its neighbours, so an equation is excluded if samples near rest have more than `MOST_SLOW` of its
weight.

The speed is found by cross-validation.  For each candidate, the recordings are cut into `FOLDS` parts, and
the torques of each are predicted by a fit to the others.  The predictions are compared where all shafts are
fast, which is the same for all candidates.  The lowest speed wins whose error is within `AS_GOOD` of the
smallest.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from twin.arrays import Floats
from twin.identification.least_squares import Triangles, fitted, triangle
from twin.identification.measurements import Measurements, equations
from twin.identification.torque_model import TorqueModel
from twin.robot.robot import Robot

MOST_SLOW = 0.1
"""Largest weight of samples near rest in an equation that is used."""

HIGHEST = 0.05
"""Highest candidate, as a share of the top speed of the slowest shaft."""

CANDIDATES = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Candidates for the lowest speed that is used, in [rad/s]."""

FOLDS = 4
"""Number of parts of the cross-validation."""

AS_GOOD = 0.03
"""Relative difference of two prediction errors, as a mean over the joints, that does not matter."""


def without_rest(measured: Measurements, robot: Robot, speed: float) -> Measurements:
    """Return measurements without the equations of shafts that turn more slowly than `speed`, in [rad/s]."""
    if not speed > 0:
        return measured
    used = measured.used & ~near_rest(measured, robot, speed)
    share = 1.0 - np.sum(used) / max(np.sum(measured.used), 1)
    how = f"{measured.how}; excluded below {speed:g} rad/s: {100 * share:.3g} % of the equations"
    return replace(measured, used=used, how=how)


def near_rest(measured: Measurements, robot: Robot, speed: float) -> NDArray[np.bool_]:
    """Return the equations (N, n) in which a shaft with friction turns more slowly than `speed`."""
    drives = robot.active_drives
    assert drives is not None
    R = drives.friction_matrix
    slow = (np.abs(measured.qd_friction @ R.T) < speed).astype(float)
    if measured.low_pass is not None:
        slow = measured.low_pass.filtered(slow)
    return (slow > MOST_SLOW) @ (R != 0)


def chosen_min_speed(model: TorqueModel, recordings: Sequence[Measurements]) -> float:
    """Choose the speed below which equations of filtered recordings are excluded, in [rad/s].

    Logs with exact speeds are not considered: `measurements_of_log` excludes what does not hold there.
    """
    filtered = [one for one in recordings if one.low_pass is not None and np.any(one.used)]
    drives = model.robot.active_drives
    if not filtered or drives is None:
        return 0.0
    speeds = np.concatenate([np.abs(one.qd_friction @ drives.friction_matrix.T) for one in filtered])
    top = HIGHEST * float(np.min(np.percentile(speeds, 99.0, axis=0)))
    candidates = [speed for speed in CANDIDATES if speed <= top]
    parts, masks = [], []
    for one in filtered:
        blocks, every = list(equations(model, one)), max(1, round(one.oversampling))
        indices, rows, used = (np.concatenate(part)[::every] for part in zip(*blocks, strict=True))
        parts.append(rows)
        masks.append([used & ~near_rest(one, model.robot, speed)[indices] for speed in candidates])
    rows = np.concatenate(parts)
    kept = [np.concatenate(part) for part in zip(*masks, strict=True)]
    errors = np.array([_prediction_error(rows, mask, kept[-1]) for mask in kept])
    if not np.isfinite(errors[0]):
        return 0.0
    return candidates[int(np.argmax(errors <= np.min(errors) + AS_GOOD))]


def _prediction_error(rows: Floats, used: NDArray[np.bool_], judged: NDArray[np.bool_]) -> float:
    """Return the mean over the joints of the logarithm of the cross-validated error.

    Args:
        rows: (N, n, r + 1) equations, torque last.
        used: (N, n) equations of the fit.
        judged: (N, n) equations on which predictions are compared.

    Returns:
        The mean; infinite if a part of the recordings does not determine the parameters.
    """
    fold, width = np.arange(len(rows)) * FOLDS // len(rows), rows.shape[2]
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
        rest = rows[fold == k, :, -1] - rows[fold == k, :, :-1] @ fit.beta
        squares += np.sum((rest * judged[fold == k]) ** 2, axis=0)
    return float(np.mean(np.log(np.maximum(squares, np.finfo(float).tiny)))) / 2.0

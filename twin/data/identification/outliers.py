"""Torque samples that no noise explains: spikes, which are left out.

The residuals of all samples, unfiltered, are compared with the fit.  Their size is measured by the median,
which spikes do not change: `1.4826 median |e|` is the deviation of normal noise.  Samples beyond `SPIKE`
deviations that are far from the median of their neighbours, too, which a step of the friction is not, get
the weight 0 before the filter, so that they do not spread to their neighbours, and the fit is repeated.  A
hard limit is the extreme of the robust weights of P. Huber, "Robust Statistics" (1981): it leaves noise
alone, so that a recording without spikes has the same fit as without this step.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from twin.base.arrays import Floats
from twin.data.identification.measurements import BLOCK, Measurements, motion_at
from twin.data.identification.torque_model import TorqueModel
from twin.data.logs.recordings.finding import Finding, joint_names

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

"""Faults of a recording that a fitted model shows: lack of fit, change with time, saturation, and rest.

A model that lacks something leaves more than the noise of the torques, which a smoother shows without any
model.  Arms have backlash, ripple and further friction, so that this alone is a note.  It stops a result
where an alternative leaves much less (`twin.identification.explanations`), or where `MOST` is left.

A recording that changes with time, by a gain, a zero, a clock or a friction, has parameters that hold for
each half and none that hold for both: its residuals exceed those of fits to its halves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from twin.base.arrays import Floats
from twin.data.identification.explanations import explanation, lacks
from twin.data.identification.least_squares import JointResiduals, fitted, triangles
from twin.data.identification.outliers import sample_residuals
from twin.data.logs.recordings.finding import Finding, joint_names

if TYPE_CHECKING:
    from twin.data.identification.result import Identification

MOST = 50.0
"""Largest residuals in percent of the torque; measured arms have up to 36."""

MATTERS = 1.0
"""Residuals in percent of the torque above which a lack of fit, or a change with time, matters."""

CHANGES = 2.0
"""Largest ratio of the residuals to those of fits to halves; a measured TX40 has 1.15, clean ones 1.17."""

NOT_WORSE = 1.05
"""Largest ratio of the residuals on validation recordings to those of the given robot."""

VAGUE = 0.25
"""Deviation of the inertia about a joint, relative to it, from which it is not determined."""

CERTAIN = 3.0
"""Deviations by which a torque exceeds one at which it saturates."""

STILL = 0.06
"""Range of motion, in [rad] or [m], below which a joint hardly moves."""

PLATEAU = 0.003
"""Share of the samples at the extreme of a torque that is clipped."""


def model_findings(found: Identification, wrong: bool = False) -> list[Finding]:
    """Return what the fit shows of faults of its recordings; of exact logs only what a validation shows.

    Args:
        found: the fit.
        wrong: whether the recordings are known to be wrong, so that nothing else explains them.
    """
    worse = [] if found.validation is None else list(worse_findings(found, found.validation, MATTERS))
    if found.noise is None:
        return worse
    clipped = list(clipped_findings(found))
    of_fit = [] if clipped or wrong else list(fit_findings(found))
    vague = [] if any(one.stops for one in of_fit) else list(vague_findings(found))
    return [*clipped, *vague, *of_fit, *worse]


def fit_findings(found: Identification) -> Iterator[Finding]:
    """Yield findings where the model leaves more than the noise of the torques, or explains only halves."""
    assert found.noise is not None
    assert found.unfiltered is not None
    reason = explanation(found)
    if reason is not None:
        yield reason
        return
    percent, rest, lacking = found.residuals.percent, found.unfiltered, np.flatnonzero(lacks(found))
    growth = np.where(percent > MATTERS, 0.0 if found.growth is None else found.growth, 0.0)
    if np.max(growth) > CHANGES:
        joint = int(np.argmax(growth)) + 1
        yield Finding(
            "changes", (joint,),
            f"the recording changes with time: the residuals of joint {joint} are {np.max(growth):.3g} "
            "times those of fits to its halves",
        )  # fmt: skip
    if lacking.size and np.max(percent[lacking]) > MATTERS:
        worst = lacking[np.argmax(percent[lacking])]
        yield Finding(
            "lack", tuple((lacking + 1).tolist()),
            f"the model does not explain the torque of {joint_names(lacking + 1)}: at joint {worst + 1} the "
            f"residual is {rest.percent[worst]:.3g} % of it, its noise "
            f"{100.0 * found.noise[worst] / rest.torque_rms[worst]:.2g} %",
            stops=bool(percent[worst] > MOST),
        )  # fmt: skip


def worse_findings(found: Identification, after: JointResiduals, least: float) -> Iterator[Finding]:
    """Yield a finding if parameters predict the validation recordings worse than those of the given robot.

    Residuals up to `least`, in percent of the torques, do not matter.
    """
    before = found.validation_before
    if before is None or found.mass_factor is None:
        return
    worse = np.exp(np.mean(np.log(np.maximum(after.rms, 1e-300) / np.maximum(before.rms, 1e-300))))
    if worse > NOT_WORSE and np.max(after.percent) > least:
        yield Finding(
            "worse", (),
            f"on the validation recordings, residuals are {worse:.3g} times those of the given robot, "
            f"{found.model.robot.name!r}: the others are too short, too noisy, or of another arm",
        )  # fmt: skip


def vague_findings(found: Identification) -> Iterator[Finding]:
    """Yield a finding for joints that hardly move, and one for those whose inertia is not determined."""
    model, n = found.model, found.model.robot.n
    used = [one.q[np.any(one.used, axis=1)] for one in found.measured if np.any(one.used)]
    spans = np.max([np.ptp(q, axis=0) for q in used], axis=0)
    q, zero = np.tile(np.median(np.concatenate(used), axis=0), (n, 1)), np.zeros((n, n))
    turning = model.regressor(q, zero, np.eye(n), zero) - model.regressor(q, zero, zero, zero)
    rows = turning[np.arange(n), np.arange(n)][:, model.base.columns]
    inertia, deviation = rows @ found.beta, np.sqrt(np.einsum("ji,ik,jk->j", rows, found.covariance, rows))
    vague, still = deviation > VAGUE * np.abs(inertia), spans < STILL
    for joint in np.flatnonzero(still).tolist():
        its = [one for one in found.values if one.symbol.endswith(str(joint + 1))]
        vague[joint] |= any(not one.deviation < 0.5 * abs(one.value) for one in its)
    for name, joints, advice in (
        (
            "still",
            vague & still,
            "let it turn back and forth by 0.5 rad or more, at several speeds",
        ),
        ("undetermined", vague & ~still, "record faster motions, or keep the rotors of the file"),
    ):
        if np.any(joints):
            numbers = np.flatnonzero(joints) + 1
            values = ", ".join(f"{inertia[j - 1]:.2g} +- {deviation[j - 1]:.2g}" for j in numbers)
            text = f"the inertia about {joint_names(numbers)} is {values} kg m^2, and not determined by this "
            text += f"recording; {advice}"
            yield Finding(name, tuple(numbers.tolist()), text, stops=name == "still")


def plateau(tau: Floats) -> NDArray[np.bool_]:
    """Return the samples of a torque (N,) that are exactly at its largest or smallest value, if many are."""
    at = np.zeros(len(tau), dtype=np.bool_)
    inside = tau[(tau > np.min(tau)) & (tau < np.max(tau))]
    for extreme in (np.max(tau), np.min(tau)):
        here = tau == extreme
        pairs = int(np.sum(here[1:] & here[:-1]))
        if extreme == 0 or not inside.size:
            continue
        most = np.max(np.unique(inside, return_counts=True)[1])
        if np.sum(here) >= max(5, PLATEAU * len(tau), 3 * most) and pairs >= 3:
            at |= here
    return at


def clipped_findings(found: Identification) -> Iterator[Finding]:
    """Yield a finding for torques at their extreme, beyond which the fitted model predicts more."""
    for one in found.measured:
        flat = np.stack([plateau(column) for column in one.tau.T], axis=1)
        joints = np.flatnonzero(np.any(flat, axis=0)).tolist()
        if not joints:
            continue
        weights = np.where(flat, 0.0, 1.0 if one.weights is None else one.weights)
        fit = fitted(triangles(found.model, [replace(one, weights=weights)]))
        rest = sample_residuals(found.model, fit.beta, one)
        for joint in joints:
            beyond = -rest[flat[:, joint], joint] * np.sign(one.tau[flat[:, joint], joint])
            noise = 1.4826 * np.median(np.abs(rest[~flat[:, joint], joint]))
            if np.median(beyond) > max(CERTAIN * noise, 0.01 * np.max(np.abs(one.tau[:, joint]))):
                count, value = int(np.sum(flat[:, joint])), np.max(np.abs(one.tau[flat[:, joint], joint]))
                yield Finding(
                    "clipped", (joint + 1,),
                    f"{count} torques of joint {joint + 1} are exactly {value:.4g}, where the model needs "
                    f"{np.median(beyond):.3g} more: the recording saturates",
                )  # fmt: skip

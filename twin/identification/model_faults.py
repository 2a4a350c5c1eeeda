"""Faults of a recording that a fitted model shows: signs, units, swapped columns, saturation, delay, rest.

No fault is stated for one sign alone.  A wrong torque leaves large residuals, and another sign, scale or
order of the columns must leave small ones (`twin.identification.alternatives`).  The friction of a joint
takes power; where the sign of its torque is wrong, it seems to give power, beyond its deviation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twin.arrays import Floats
from twin.identification.alternatives import Alternatives, alternatives, mean_logarithm, moved, thinned
from twin.identification.least_squares import Fit, fitted, triangles
from twin.identification.measurements import Measurements
from twin.identification.outliers import sample_residuals
from twin.identification.torque_model import TorqueModel, shaft_speeds
from twin.logs.recordings.finding import Finding, joint_names

if TYPE_CHECKING:
    from twin.identification.result import Identification

SUSPECT = 3.0
"""Residuals in percent of the torque from which alternatives are tried."""

BETTER = 0.7
"""Sum over the joints by which the logarithms of residuals must fall."""

HALF = 0.5
"""Ratio to which the largest residual of a joint must fall."""

MUCH = 30.0
"""Residuals in percent of the torque from which other orders of the positions are tried, too."""

AS_GOOD = 0.05
"""Increase of that sum that does not contradict an alternative."""

CERTAIN = 3.0
"""Deviations by which the power of friction must differ from 0."""

OTHER = 2.5
"""Smallest factor between units that the torques of other joints tell."""

UNNAMED = "is it a current, or that of the motor?"
"""Question about a torque whose factor is that of no unit and no gear."""

FAR = 6.0
"""Smallest factor between units that only the given robot tells."""

ALIKE = 0.5
"""Difference of that sum between factors that are equally likely."""

FACTORS = np.geomspace(1.0 / 4096.0, 4096.0, 13)
"""Factors of a torque that are tried; at the ends a joint has no part in the fit."""

STILL = 0.06
"""Range of motion, in [rad] or [m], below which a joint hardly moves."""

PLATEAU = 0.003
"""Share of the samples at the extreme of a torque that is clipped."""


class Change(NamedTuple):
    """An alternative to the recording.

    Attributes:
        name: name of the finding.
        joints: joints that are concerned, from 1.
        reason: what it means.
        gain: sum over the joints by which the logarithms of residuals fall.
        residuals: (n,) residuals of the torques, in percent.
    """

    name: str
    joints: tuple[int, ...]
    reason: str
    gain: float
    residuals: Floats


def model_findings(found: Identification) -> list[Finding]:
    """Return what the fit shows of faults of its recordings; nothing for exact logs."""
    filtered = [one for one in found.measured if one.low_pass is not None]
    if not filtered or len(filtered) < len(found.measured):
        return []
    clipped = list(clipped_findings(found))
    return [*clipped, *still_findings(found), *([] if clipped else column_findings(found))]


def friction_power(model: TorqueModel, measured: Sequence[Measurements]) -> Floats:
    """Return rows (n, r) that give the mean power of each shaft's friction, in [W], for base parameters."""
    drives = model.robot.active_drives
    symbols = {symbol: k for k, symbol in enumerate(model.base.symbols)}
    rows = np.zeros((model.robot.n, len(symbols)))
    if drives is None:
        return rows
    speeds = np.concatenate(
        [shaft_speeds(drives, one.qd_friction, one.qd_friction)[np.any(one.used, axis=1)] for one in measured]
    )
    for shaft in range(model.robot.n):
        w = np.abs(speeds[:, shaft])
        for symbol, mean in ((f"Fc{shaft + 1}", np.mean(w)), (f"Fv{shaft + 1}", np.mean(w * w))):
            if symbol in symbols:
                rows[shaft, symbols[symbol]] = mean
    return rows


def in_deviations(rows: Floats, beta: Floats, covariance: Floats) -> Floats:
    """Return linear combinations (n, r) of parameters in their deviations; 0 for rows of zeros."""
    deviation = np.sqrt(np.einsum("ni,ij,nj->n", rows, covariance, rows))
    return np.divide(rows @ beta, deviation, out=np.zeros(len(rows)), where=deviation > 0)


def column_findings(found: Identification) -> Iterator[Finding]:
    """Yield a finding for signs, units or orders of columns that explain the torques much better."""
    model, measured = found.model, [thinned(one) for one in found.measured]
    power = in_deviations(friction_power(model, measured), found.beta, found.covariance)
    gives = power < -CERTAIN
    percent = found.residuals.percent
    if _all_negated(found, power):
        yield Finding(
            "sign", (),
            f"all torques seem to have the other sign: the friction of "
            f"{joint_names(np.flatnonzero(gives) + 1)} would drive the arm, not brake it",
        )  # fmt: skip
        return
    if not (np.any(gives) or np.any(percent > SUSPECT)):
        return
    other = alternatives(model, measured)
    _, L = other.fit()
    changes = [*_signs(other, found, L, power), *_orders(other, found, L)]
    if not any(np.max(change.residuals) < SUSPECT for change in changes):
        changes += _scales(other, found, L)
        if np.any(percent > MUCH):
            changes += _moves(found, measured, L)
    best = max(changes, key=lambda change: change.gain, default=None)
    if best is not None:
        before, after = np.max(percent), np.max(best.residuals)
        fall = f": residuals would fall from {before:.3g} to {after:.3g} % of the torque"
        yield Finding(best.name, best.joints, best.reason + (fall if after < before else ""))
    elif (unit := _unit_of_a_joint(found, other, L)) is not None:
        yield unit


def _all_negated(found: Identification, power: Floats) -> bool:
    """Return whether friction gives power in most joints, and links weigh less than nothing."""
    if np.sum(power < -CERTAIN) < max(1, np.sum(np.abs(power) > CERTAIN)) or not np.any(power < -CERTAIN):
        return False
    factor = found.mass_factor
    return factor < 0 if factor is not None else int(np.sum(power < -CERTAIN)) >= min(2, len(power))


def _signs(other: Alternatives, found: Identification, L: float, power: Floats) -> Iterator[Change]:
    """Yield signs of torques: greedily those whose change lowers the residuals, or rights the friction."""
    n = len(other.R)
    rows = friction_power(found.model, found.measured)
    signs, joints, gain = np.ones(n), [], 0.0
    for _ in range(n // 2):
        tries = []
        for joint in set(range(n)) - set(joints):
            changed = signs * np.where(np.arange(n) == joint, -1.0, 1.0)
            fit, other_L = other.fit(factors=changed)
            after = in_deviations(rows, fit.beta, fit.covariance)
            falls = n * (L - other_L)
            rights = power[joint] < -CERTAIN and after[joint] > CERTAIN
            certain = falls > gain + BETTER and after[joint] > -CERTAIN and power[joint] < CERTAIN
            if certain or (rights and falls > gain - AS_GOOD):
                tries.append((falls, joint, fit))
        if not tries:
            break
        gain, joint, fit = max(tries, key=lambda one: one[0])
        signs[joint] = -1.0
        joints.append(joint)
    if joints:
        numbers = tuple(joint + 1 for joint in sorted(joints))
        percent = 100.0 * _rest(other, fit, signs)
        yield Change(
            "sign", numbers,
            f"the torque of {joint_names(numbers)} seems to have the other sign, with which friction brakes",
            gain + 1e-9, percent,
        )  # fmt: skip


def _rest(other: Alternatives, fit: Fit, factors: Floats, order: Sequence[int] | None = None) -> Floats:
    """Return the residuals (n,) of changed torques, relative to them."""
    n = len(other.R)
    columns = list(range(n)) if order is None else list(order)
    tau = np.stack([other.R[j, :, other.r + k] * factors[j] for j, k in enumerate(columns)])
    rest = np.linalg.norm(other.R[:, :, : other.r] @ fit.beta - tau, axis=1)
    return rest / np.maximum(np.linalg.norm(tau, axis=1), 1e-300)


def _scales(other: Alternatives, found: Identification, L: float) -> Iterator[Change]:
    """Yield units of the torque of one joint."""
    n, percent, known = len(other.R), found.residuals.percent, _file_factors(found)
    for joint in range(n):
        results = []
        for factors in (FACTORS, (0.5, 2.0)):  # coarse factors, then those beside the best
            best = max(results, key=lambda one: one[0])[1] if results else 1.0
            for factor in best * np.asarray(factors):
                fit, other_L = other.fit(factors=np.where(np.arange(n) == joint, factor, 1.0))
                results.append((n * (L - other_L), factor, fit))
        most = max(gain for gain, _, _ in results)
        alike = [one for one in results if one[0] > most - ALIKE] if known is not None else []
        expected = 0.0 if known is None else -np.log(known[joint])
        gain, factor, fit = (
            min(alike, key=lambda one: abs(np.log(one[1]) - expected)) if alike else
            max(results, key=lambda one: one[0])
        )  # fmt: skip
        if factor in (FACTORS[0], FACTORS[-1]) or not abs(np.log(factor)) > np.log(OTHER):
            continue
        rest = 100.0 * _rest(other, fit, np.where(np.arange(n) == joint, factor, 1.0))
        likely = known is None or abs(np.log(factor) - expected) < np.log(FAR)
        if likely and gain > BETTER and np.max(rest) < HALF * np.max(percent):
            yield Change("unit", (joint + 1,), _unit(found, joint, factor), gain, rest)


def _unit_of_a_joint(found: Identification, other: Alternatives, L: float) -> Finding | None:
    """Return a finding for a joint whose torques alone differ from those of the given robot by a factor.

    Friction and inertia of the last joints have no part in other torques, so that only the robot's file tells
    their unit.  The factor must be far from those of the other joints, and no torque may contradict it.
    """
    n, drives, factor = found.model.robot.n, found.model.robot.active_drives, _file_factors(found)
    if factor is None or drives is None:
        return None
    joint = int(np.argmax(np.abs(np.log(factor))))
    if not abs(np.log(factor[joint])) > np.log(FAR) or not (drives.coulomb + drives.viscous)[joint] > 0:
        return None
    _, other_L = other.fit(factors=np.where(np.arange(n) == joint, 1.0 / factor[joint], 1.0))
    if n * (L - other_L) < -AS_GOOD:
        return None
    reason = _unit(found, joint, 1.0 / float(factor[joint]))
    if UNNAMED in reason:  # friction may be far from that of a file, by any factor
        return None
    return Finding(
        "unit", (joint + 1,), f"{reason} The factor is that between it and the given robot's file."
    )


def _file_factors(found: Identification) -> Floats | None:
    """Return the ratios (n,) of torques to those of the given robot, over their median, if it has masses."""
    if found.mass_factor is None:
        return None
    reduced, known = found.reduced, found.model.base.K @ found.model.parameters.values
    predicted = np.linalg.norm(reduced.R[:, :, :-1] @ known, axis=1)
    factor = reduced.torque_norms / np.maximum(predicted, 1e-300)
    return factor / np.median(factor)


def _unit(found: Identification, joint: int, factor: float) -> str:
    """Name the likely reason of a torque that must be multiplied by a factor."""
    drives = found.model.robot.active_drives
    assert drives is not None
    ratio = float(np.abs(np.diag(drives.motor_matrix))[joint])
    text = (
        f"the torque of joint {joint + 1} seems to be in another unit than others, by about {1 / factor:.2g}"
    )
    for value, cause in ((ratio, "is it that of the motor, before the gear"), (1e-3, "is it in mN m")):
        if 0.5 < factor / value < 2.0 and not 0.5 < value < 2.0:
            return f"{text}; {cause}?"
    return f"{text}; {UNNAMED}"


def _orders(other: Alternatives, found: Identification, L: float) -> Iterator[Change]:
    """Yield pairs of torques that were swapped."""
    n = len(other.R)
    for a, b in _pairs(n):
        order = list(range(n))
        order[a], order[b] = b, a
        fit, other_L = other.fit(order)
        rest = 100.0 * _rest(other, fit, np.ones(n), order)
        gain = n * (L - other_L)
        if gain > BETTER and np.max(rest) < HALF * np.max(found.residuals.percent):
            text = f"the torques of joints {a + 1} and {b + 1} seem to be swapped"
            yield Change("swapped", (a + 1, b + 1), text, gain, rest)


def _pairs(n: int) -> list[tuple[int, int]]:
    """Return all pairs of n joints, neighbours first."""
    return sorted(((a, b) for a in range(n) for b in range(a + 1, n)), key=lambda pair: pair[1] - pair[0])


def _moves(found: Identification, measured: Sequence[Measurements], L: float) -> Iterator[Change]:
    """Yield positions that were swapped, or have another sign."""
    n, percent = found.model.robot.n, found.residuals.percent
    tries: list[tuple[str, tuple[int, ...], list[int], Floats, str]] = []
    for a, b in _pairs(n):
        order = list(range(n))
        order[a], order[b] = b, a
        reason = f"the positions of joints {a + 1} and {b + 1} seem to be swapped"
        tries.append(("swapped", (a + 1, b + 1), order, np.ones(n), reason))
    for joint in range(n):
        signs = np.where(np.arange(n) == joint, -1.0, 1.0)
        reason = f"the position of joint {joint + 1} seems to have the other sign"
        tries.append(("sign", (joint + 1,), list(range(n)), signs, reason))
    for name, joints, order, signs, reason in tries:
        reduced = triangles(found.model, [moved(one, order, signs) for one in measured])
        fit = fitted(reduced)
        gain = n * (L - mean_logarithm(reduced, fit))
        rest = 100.0 * reduced.residual_norms(fit.beta) / reduced.torque_norms
        if gain > BETTER and np.max(rest) < HALF * np.max(percent):
            yield Change(name, joints, reason, gain, rest)


def still_findings(found: Identification) -> Iterator[Finding]:
    """Yield a finding for joints that hardly move, and whose friction is therefore not determined."""
    spans = np.max(
        [np.ptp(one.q[np.any(one.used, axis=1)], axis=0) for one in found.measured if np.any(one.used)],
        axis=0,
    )
    symbols = {one.symbol: one for one in found.values}
    for joint in np.flatnonzero(spans < STILL).tolist():
        own = [symbols[s] for s in symbols if s[-len(str(joint + 1)) :] == str(joint + 1)]
        vague = [one.symbol for one in own if not one.deviation < 0.5 * abs(one.value)]
        if vague:
            yield Finding(
                "still", (joint + 1,),
                f"joint {joint + 1} turns by {spans[joint]:.2g} rad only: {', '.join(vague)} are not "
                "determined by this recording; let it turn back and forth by 0.5 rad or more, at several "
                "speeds",
            )  # fmt: skip


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

"""Requirements of a fit, and the faults of a recording that it shows; messages say what is valid.

A model that lacks something leaves more than the noise of the torques, which a smoother shows without any
model.  Arms have backlash, ripple and further friction, so that this alone is a note.  It stops a result
where an alternative leaves much less (`alternatives.py`), or where `MOST` is left.

A recording that changes with time, by a gain, a zero, a clock or a friction, has parameters that hold for
each half and none that hold for both: its residuals exceed those of fits to its halves.

A spring over an axis, a balancer and the weight of a link are alike over a small range of a joint.  A
recording there determines their sum and not the parts, which differ elsewhere.  The deviation of the torque
at rest, `sqrt(y C y^T)` for a row y of the regressor and the covariance C of the base parameters, shows both.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from twin.base.arrays import Floats
from twin.base.errors import IdentificationError, IdentificationWarning
from twin.data.identification.alternatives import explanation, lacks
from twin.data.identification.least_squares import (
    SINGULAR,
    Fit,
    JointResiduals,
    Triangles,
    fitted,
    sample_residuals,
    triangles,
)
from twin.data.identification.measurements import Measurements, motion_at
from twin.data.identification.torque_model import TorqueModel
from twin.data.logs.recordings.finding import Finding, joint_names
from twin.physics.robot.loading import robot_facts
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import joint_unit

if TYPE_CHECKING:
    from twin.data.identification.result import Identification

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


class Undetermined(IdentificationError):
    """Recordings that determine too little with these filters."""


def require_motion(robot: Robot, measured: Sequence[Measurements]) -> None:
    """Raise `IdentificationError` if a joint stands still, or its positions are implausible."""
    for one in measured:
        reached = np.max(np.abs(one.q), axis=0)
        limit = BEYOND_RANGE * np.maximum(np.abs(robot.q_min), np.abs(robot.q_max))
        if not np.all(reached <= limit):
            joint = int(np.argmin(reached <= limit))
            gear = "" if robot.drives is None else "of the motors (--motor-side), "
            raise IdentificationError(
                f"{one.name}: joint {joint + 1} reaches {reached[joint]:.4g} rad, but its range is "
                f"{robot.q_min[joint]:.4g} to {robot.q_max[joint]:.4g} rad: are these positions {gear}or in "
                f"another unit (--angle-unit){_other_joint(reached, limit, joint)}?"
            )
    moved = np.max([_span(one) for one in measured], axis=0)
    if not np.all(moved >= STANDS_STILL):
        still = ", ".join(str(joint + 1) for joint in np.flatnonzero(~(moved >= STANDS_STILL)))
        raise IdentificationError(
            f"joint {still} stands still: it moves over {np.min(moved):.2g} rad, which does not determine "
            f"its inertia and friction; expected it to turn by {STANDS_STILL:g} rad or more, back and forth"
        )


def _other_joint(reached: Floats, limit: Floats, joint: int) -> str:
    """Ask whether positions beyond the limit of a joint are those of another, whose place they could take."""
    others = np.flatnonzero((reached[joint] <= limit) & (reached <= limit[joint])) + 1
    return f", or swapped with those of joint {' or '.join(map(str, others.tolist()))}" if others.size else ""


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
            (1.0 / ratio, "one over its gear ratio: are these torques of the motors (--motor-side)"),
            (ratio, "its gear ratio: are these torques of the joints, not of the motors (--motor-side)"),
            (np.full_like(ratio, 1e3), "the factor of the unit: are these torques in mN m (--torque-unit)"),
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


def mass_factor(model: TorqueModel, beta: Floats, reduced: Triangles) -> float | None:
    """Return by how much identified links are heavier than those of the robot; `None` if it has no masses.

    Args:
        model: robot and fitted model.
        beta: (r,) identified base parameters.
        reduced: reduced equations of the recordings.
    """
    base = model.base
    links = base.columns < 10 * model.robot.tree.n
    R = reduced.R[:, :, :-1][:, :, links]
    found, known = R @ beta[links], R @ (base.K @ model.parameters.values)[links]
    sizes = np.sum(known * known, axis=1)
    if not np.all(sizes > 0):
        return None
    return float(np.median(np.sum(found * known, axis=1) / sizes))  # unbiased by noise


def warn_of_masses(model: TorqueModel, factor: float | None, beta: Floats, deviations: Floats) -> None:
    """Warn if identified links are `UNLIKE` times heavier or lighter than those of the robot.

    Args:
        model: robot and fitted model.
        factor: result of `mass_factor`.
        beta: (r,) identified base parameters.
        deviations: (r,) their standard deviations.
    """
    robot, data_sheet = model.robot, ""
    mass, file = float(np.sum(robot.tree.inertias[:, 0])), robot.file
    if factor is None:
        return
    off = [factor]
    if (
        file is not None
        and file.suffix == ".toml"
        and file.exists()
        and "mass" in (facts := robot_facts(file))
    ):
        off.append(factor * mass / facts["mass"])
        data_sheet = f"; by the data sheet the arm weighs {facts['mass']:.4g} kg with its base"
    if all(1.0 / UNLIKE < part < UNLIKE for part in off):
        return
    links = model.base.columns < 10 * robot.tree.n
    vague = [model.base.symbols[k] for k in np.flatnonzero(links & (deviations > np.abs(beta))).tolist()]
    poorly = ""
    if len(vague) > np.sum(links) / 2:
        poorly = f", poorly determined: {', '.join(vague[:6])} have deviations above 100 %"
        poorly += f", and {len(vague) - 6} more" if len(vague) > 6 else ""
    warnings.warn(
        f"the identified links are {factor:.3g} times as heavy as those of {robot.name!r}, "
        f"{factor * mass:.3g} kg instead of {mass:.3g} kg{data_sheet}{poorly}{_factor_reason(robot, factor)}",
        IdentificationWarning,
        stacklevel=3,
    )


def _factor_reason(robot: Robot, factor: float) -> str:
    """Return the question whether a factor of all torques is that of gears or of a unit, if it is near."""
    drives = robot.active_drives
    ratio = 1.0 if drives is None else float(np.median(np.abs(np.diagonal(drives.motor_matrix))))
    for value, cause in (
        (1.0 / ratio, "are the torques those of the motors (--motor-side)?"),
        (ratio, "are the torques those of the joints, not of the motors (--motor-side)?"),
        (1e3, "are the torques in mN m (--torque-unit)?"),
    ):
        if abs(np.log(value)) > np.log(UNLIKE) and factor > 0 and abs(np.log(factor / value)) < np.log(ALIKE):
            return f": {cause}"
    return ""


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
    cutoffs = sorted({one.low_pass.cutoff for one in measured if one.low_pass is not None})
    at = f" at a cut-off of {', '.join(f'{cutoff:g}' for cutoff in cutoffs)} Hz" if cutoffs else ""
    raise Undetermined(
        f"the motion determines {fit.rank} of {r} base parameters: {names} cannot be distinguished{at}; "
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


WORSE = 3.0
"""Ratio of the deviations outside and inside the recorded range above which a warning is given."""

WORTH_WARNING = 0.1
"""Smallest deviation that matters, as a share of the torque's root mean square."""

POINTS = 25
"""Number of positions in a range."""


def rest_deviations(
    model: TorqueModel, covariance: Floats, q: Floats, joint: int, positions: Floats
) -> Floats:
    """Return the deviations (m,) of a joint's torque at rest at some of its positions, in [N m].

    Args:
        model: identified model.
        covariance: (r, r) covariance of its base parameters.
        q: (n,) positions of the other joints.
        joint: index of the joint.
        positions: (m,) its positions, in [rad] or [m].
    """
    rows = np.tile(q, (len(positions), 1))
    rows[:, joint] = positions
    zero = np.zeros_like(rows)
    y = model.regressor(rows, zero, zero, zero)[:, joint, model.base.columns]
    return np.sqrt(np.einsum("mi,ij,mj->m", y, covariance, y))


def warn_of_extrapolation(
    model: TorqueModel, covariance: Floats, measured: Sequence[Measurements], torque_rms: Floats
) -> None:
    """Warn of joints whose torque at rest is uncertain at positions that were not recorded.

    Args:
        model: identified model.
        covariance: (r, r) covariance of its base parameters.
        measured: recordings of the fit.
        torque_rms: (n,) root mean square of the torques, in [N m].
    """
    robot = model.robot
    q = np.concatenate([one.q[np.any(one.used, axis=1)] for one in measured])
    middle = np.median(q, axis=0)
    for joint, kind in enumerate(robot.joint_kinds):
        low, high = float(np.min(q[:, joint])), float(np.max(q[:, joint]))
        ends = np.clip([robot.q_min[joint], robot.q_max[joint]], min(low, -np.pi), max(high, np.pi))
        positions = np.linspace(ends[0], ends[1], POINTS)
        inside, outside = (
            rest_deviations(model, covariance, middle, joint, places)
            for places in (np.linspace(low, high, POINTS), positions)
        )
        limit = max(WORSE * float(np.max(inside)), WORTH_WARNING * float(torque_rms[joint]))
        uncertain = positions[outside > limit]
        if uncertain.size:
            scale, unit = (1.0, "m") if kind == "prismatic" else (180.0 / np.pi, "deg")
            torque, worst = joint_unit(kind, "torque"), int(np.argmax(outside))
            below, above = uncertain[uncertain < low], uncertain[uncertain > high]
            sides = [f"from {scale * below[-1]:.3g} {unit} down"] if below.size else []
            sides += [f"from {scale * above[0]:.3g} {unit} up"] if above.size else []
            warnings.warn(
                f"joint {joint + 1} was recorded from {scale * low:.3g} to {scale * high:.3g} {unit}; "
                f"{' and '.join(sides)}, its torque at rest has a deviation above {limit:.2g} {torque}, "
                f"{outside[worst]:.2g} {torque} at {scale * positions[worst]:.3g} {unit}: record it over "
                "more of its range, or do not use the result there",
                IdentificationWarning,
                stacklevel=3,
            )

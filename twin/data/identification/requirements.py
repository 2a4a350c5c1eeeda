"""Requirements of a fit: motion, units, rank and plausible masses; messages say what is valid."""

import warnings
from collections.abc import Sequence

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import IdentificationError, IdentificationWarning
from twin.data.identification.least_squares import SINGULAR, Fit, Triangles
from twin.data.identification.measurements import Measurements, motion_at
from twin.data.identification.torque_model import TorqueModel
from twin.physics.robot.loading import robot_facts
from twin.physics.robot.robot import Robot

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

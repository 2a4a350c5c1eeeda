"""Deviations of identified parameters that hold for coloured noise, and a check for bias.

Least squares states deviations for independent residuals.  Those of real arms are not: friction, gears and
elasticity leave torques that last for tenths of a second, in several joints at once.  The bootstrap keeps
that structure.  It cuts the residuals into blocks of `BLOCK` seconds, all joints together, and puts blocks
drawn at random, with random signs, in place of the noise.  With the weighted rows A of the equations and the
residuals e, the parameters of one such draw differ by

    d = P sum over blocks b of s_b A_b^T e_c(b),     P = (A^T A)^-1,  s_b = +-1, c(b) drawn at random.

Their covariance needs no draws: it is `P [sum over b, c of (A_b^T e_c)(A_b^T e_c)^T / B] P` for B blocks.
The fit absorbs a share of the noise, so that its residuals are smaller than it, in a short recording by half.
Each e is therefore the error of a fit without its own equation, `e / (1 - h)` with the leverage
`h = a P a^T` of its row a.

Errors that last longer than a block, such as friction that drifts with the temperature, are seen by a fit to
each half of the recordings.  `half_factors` gives the ratio of the differences of both fits to their
deviations, a root mean square over parameters of one kind.

Nothing of this sees an error that repeats with the motion, such as a ripple of a gear.  `repetition` finds
it: residuals at neighbouring positions, recorded at different times, are then alike.

Sources: H. Künsch, "The jackknife and the bootstrap for general stationary observations", Annals of
Statistics 17 (1989), on blocks; J. MacKinnon, H. White, "Some heteroskedasticity-consistent covariance matrix
estimators with improved finite sample properties", Journal of Econometrics 29 (1985), on the leverage;
J. von Neumann, "Distribution of the ratio of the mean square successive
difference to the variance", Annals of Mathematical Statistics 12 (1941), on the correlation of neighbours.

Noise of measured positions enters the regressor through speeds and accelerations, and pulls parameters of
least squares towards 0, rotors first.  Instrumental variables are free of that:

    beta = (Z^T W Y)^-1 Z^T W tau,

with the weights W of the fit and a regressor Z without noise.  Z is the regressor of the simulated motion.
With an exact model, a controller makes the simulated arm follow its reference, so Z is that of the
reference.  It is as good as the arm follows its reference; the deviations of beta contain that.

Source: A. Janot, P.-O. Vandanjon, M. Gautier, "A generic instrumental variable approach for industrial robot
identification", IEEE Trans. on Control Systems Technology 22 (2014).
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import IdentificationError, IdentificationWarning
from twin.data.identification.least_squares import Fit, Triangles, solved, triangles
from twin.data.identification.measurements import Measurements, equations
from twin.data.identification.result import Identification
from twin.data.identification.torque_model import TorqueModel

KINDS = ("blocks", "white")
"""Kinds of deviations: of the block bootstrap, or for independent equations."""

BLOCK = 0.5
"""Length of a block, in [s]."""

FEWEST_PER_PARAMETER = 4
"""Smallest number of equations per parameter in each half of the recordings."""

FEWEST_BLOCKS = 8
"""Smallest number of blocks of a recording; in shorter recordings blocks are shorter."""

MOST_LEVERAGE = 0.9
"""Largest leverage: an equation that alone determines a parameter has 1, and no residual."""

REPEATS = 0.3
"""Correlation of residuals at neighbouring positions above which a warning is given."""

ROUNDING = 1e-6
"""Residuals in percent of the torque below which they are rounding."""

CERTAIN = 5.0
"""Number of deviations by which the correlation must exceed 0, too."""


class Part(NamedTuple):
    """Recordings of a fit, and how the unknowns (m,) enter their base parameters.

    Attributes:
        measured: the recordings.
        columns: (r, m) base parameters per unknown; or (n, r, m), where they differ between the joints.
        known: (r,) base parameters for unknowns of 0.
        weight: factor of the rows in the fit.
    """

    measured: Sequence[Measurements]
    columns: Floats
    known: Floats
    weight: float = 1.0


class Residuals(NamedTuple):
    """Residuals of one recording at the rows of the fit.

    Attributes:
        part: the part that has the recording.
        measured: the recording.
        indices: (N,) indices of the samples.
        weighted: (N, n) errors over their deviations, of fits without the equation; 0 for equations that are
            not used.
        shares: (N, n) weights of the samples in the equations; 0 for the equations that are not used.
    """

    part: Part
    measured: Measurements
    indices: np.ndarray
    weighted: Floats
    shares: Floats


def weighted_residuals(model: TorqueModel, fit: Fit, parts: Sequence[Part]) -> list[Residuals]:
    """Return the residuals of each recording of a fit to all parts together."""
    result = []
    pairs = [(part, one) for part in parts for one in part.measured]
    for part, one in pairs:
        beta, blocks = part.columns @ fit.beta + part.known, []  # (r,) or (n, r)
        for block in equations(model, one):
            weights = block.used * fit.weights * part.weight
            rest = weights * (block.rows[..., -1] - np.sum(block.rows[..., :-1] * beta, axis=-1))
            leverage = np.sum(_whitened(block.rows, fit, part, weights) ** 2, axis=-1)
            rest /= 1.0 - np.minimum(leverage, MOST_LEVERAGE)
            blocks.append((block.indices, rest, block.shares))
        if blocks:
            result.append(Residuals(part, one, *(np.concatenate(rows) for rows in zip(*blocks, strict=True))))
    return result


def _whitened(rows: Floats, fit: Fit, part: Part, weights: Floats) -> Floats:
    """Return weighted rows (N, n, m) in coordinates in which all rows of the fit have the unit matrix."""
    of_joints = np.swapaxes(rows[..., :-1], 0, 1) @ (part.columns @ fit.spread)
    return np.swapaxes(of_joints, 0, 1) * weights[..., None]


def block_covariance(model: TorqueModel, fit: Fit, residuals: Sequence[Residuals]) -> tuple[Floats, int]:
    """Return the covariance (m, m) of fitted unknowns by the block bootstrap, and the number of blocks."""
    m, n = len(fit.beta), model.robot.n
    middle, count = np.zeros((m, m)), 0
    for rest in residuals:
        N, one, part = len(rest.weighted), rest.measured, rest.part
        length = max(1, min(round(BLOCK * one.row_rate), N // FEWEST_BLOCKS))
        whole = N // length
        shares = np.maximum(np.mean(rest.shares**2, axis=0), 1.0 / N)  # gaps do not make the noise smaller
        e = (rest.weighted / np.sqrt(shares))[: whole * length].reshape(whole, length * n)
        for block in equations(model, one, length):
            rows = _whitened(block.rows, fit, part, block.used * fit.weights * part.weight)
            padding = np.zeros((-len(rows) % length, n, m))
            rows = np.concatenate([rows, padding]).reshape(-1, length * n, m)
            products = (e @ rows).reshape(-1, m)  # of every block of rows with every block of residuals
            middle += products.T @ products / whole
        count += whole
    return fit.spread @ middle @ fit.spread.T, count


def half_fits(
    model: TorqueModel, fit: Fit, measured: Sequence[Measurements]
) -> list[tuple[Fit, Triangles]] | None:
    """Return fits to both halves of the recordings, weighted alike; `None` if one determines too little."""
    halves: tuple[list[Measurements], list[Measurements]] = ([], [])
    for one in measured:
        t = one.t[np.any(one.used, axis=1)]
        if not len(t):
            continue
        middle = 0.5 * float(t[0] + t[-1])
        halves[0].append(one.between(None, middle))
        halves[1].append(one.between(middle, None))
    fits = []
    for half in halves:
        reduced = triangles(model, half) if half else None
        if reduced is None or np.sum(reduced.counts) < FEWEST_PER_PARAMETER * len(fit.beta):
            return None
        fits.append((solved(reduced, fit.weights), reduced))
        if fits[-1][0].rank < len(fit.beta):
            return None
    return fits


def half_factors(model: TorqueModel, fit: Fit, covariance: Floats, halves: Sequence[Fit]) -> Floats:
    """Return factors (r,) of at least 1 of the deviations, alike for parameters of one kind.

    Args:
        model: fitted model.
        fit: fit to all of the recordings.
        covariance: (r, r) covariance that is stated.
        halves: fits to both halves of the recordings.
    """
    white = np.sqrt(np.diag(fit.covariance))
    larger = np.divide(np.sqrt(np.diag(covariance)), white, out=np.ones_like(white), where=white > 0)
    spread = larger * np.sqrt(sum(np.diag(half.covariance) for half in halves))
    off = (halves[0].beta - halves[1].beta) / np.where(spread > 0, spread, np.inf)
    kinds = np.array([symbol.rstrip("0123456789") for symbol in model.base.symbols])
    kinds = np.where(np.char.startswith(kinds, "F") | (kinds == "J"), kinds, "link")
    factors = np.ones(len(off))
    for kind in set(kinds.tolist()):
        factors[kinds == kind] = max(1.0, float(np.sqrt(np.mean(off[kinds == kind] ** 2))))
    return factors


def growth_over_halves(fit: Fit, reduced: Triangles, halves: Sequence[tuple[Fit, Triangles]]) -> Floats:
    """Return the ratios (n,) of the residuals of a fit to those of fits to both halves of the recordings.

    Squares are divided by the numbers of equations less those of the parameters that they determine.
    """

    def squares(fit: Fit, reduced: Triangles) -> np.ndarray:
        leverage = fit.weights**2 * np.sum((reduced.R[:, :, :-1] @ fit.spread) ** 2, axis=(1, 2))
        return np.array([reduced.residual_norms(fit.beta) ** 2, np.maximum(reduced.counts - leverage, 1.0)])

    whole, free = squares(fit, reduced)
    parts, free_parts = np.sum([squares(*half) for half in halves], axis=0)
    return np.sqrt(whole / free / np.maximum(parts / free_parts, np.finfo(float).tiny))


def warn_of_repetition(residuals: Sequence[Residuals], percent: Floats) -> None:
    """Warn if the residuals of a joint repeat with its position, which no deviation contains.

    Args:
        residuals: residuals of all recordings.
        percent: (n,) size of the residuals of each joint, in percent of its torques.
    """
    found: dict[int, float] = {}
    for rest in residuals:
        for joint in np.flatnonzero(percent > ROUNDING).tolist():
            correlation, pairs = repetition(rest, joint)
            if correlation > max(REPEATS, CERTAIN / np.sqrt(max(pairs, 1))):
                found[joint + 1] = max(correlation, found.get(joint + 1, 0.0))
    if found:
        warnings.warn(
            f"the residuals of joint {', '.join(map(str, sorted(found)))} repeat with the position "
            f"(correlation up to {max(found.values()):.2f}): the model lacks a torque that depends on the "
            "motion, such as a gear's ripple, and the deviations do not contain its effect",
            IdentificationWarning,
            stacklevel=3,
        )


def repetition(rest: Residuals, joint: int) -> tuple[float, int]:
    """Return the correlation of a joint's residuals at neighbouring positions, and the number of pairs.

    The rows are sorted by direction and position; pairs less than `BLOCK` apart in time are omitted.
    """
    measured, rows = rest.measured, np.flatnonzero(rest.shares[:, joint])
    places = rest.indices[rows]
    order = np.lexsort((measured.q[places, joint], np.sign(measured.qd[places, joint])))
    e, t = rest.weighted[rows[order], joint], measured.t[places[order]]
    apart = np.abs(np.diff(t)) > BLOCK
    a, b = e[:-1][apart], e[1:][apart]
    size = float(np.sqrt((a @ a) * (b @ b)))
    return (float(a @ b) / size if size > 0 else 0.0), len(a)


FAR = 3.0
"""Number of deviations by which both estimates differ where least squares is biased."""


class BiasCheck(NamedTuple):
    """Parameters by instrumental variables, beside those of least squares.

    Attributes:
        beta: (r,) base parameters.
        deviations: (r,) their standard deviations, of the kind of the identification.
        differs: (r,) true where both estimates differ by more than `FAR` of these deviations.
    """

    beta: Floats
    deviations: Floats
    differs: np.ndarray


def check_bias(found: Identification) -> BiasCheck:
    """Estimate the base parameters by instrumental variables, and compare them with those of a fit.

    Args:
        found: result of `identify`, from recordings with measured positions and a reference.

    Raises:
        IdentificationError: a recording has no reference, or its reference does not move all joints.

    Example:
        >>> import twin
        >>> from scenarios.joint_tracking import JointTracking
        >>> from scenarios.setup import Setup
        >>> log = JointTracking(duration=4.0).run(Setup(robot="two_link", noise=1e-4)).log
        >>> twin.identification.check_bias(twin.identify(log.robot, log)).differs.any().item()
        False
    """
    r, weights_of_joints = len(found.beta), found.fit.weights
    ZY, ZZ, Ztau = np.zeros((r, r)), np.zeros((r, r)), np.zeros(r)
    scale = 1.0 / np.linalg.norm(found.weighted.R[:, :, :-1] * weights_of_joints[:, None, None], axis=(0, 1))
    for one in found.measured:
        if one.reference is None:
            raise IdentificationError(
                f"{one.name}: a check for bias needs the commanded motion: expected a log of a run with "
                "sensors, or a table with the columns qref1, qref2, ..."
            )
        reference = replace(one.reference, used=one.used, weights=one.weights, row_weights=one.row_weights)
        blocks = zip(equations(found.model, one), equations(found.model, reference), strict=True)
        for block, of_reference in blocks:
            weights = (block.used * weights_of_joints)[..., None]
            Y = (block.rows[..., :-1] * weights * scale).reshape(-1, r)
            Z = (of_reference.rows[..., :-1] * weights * scale).reshape(-1, r)
            ZY += Z.T @ Y
            ZZ += Z.T @ Z
            Ztau += Z.T @ (block.rows[..., -1:] * weights).ravel()
    if not np.linalg.cond(ZY) < 1e10:
        raise IdentificationError(
            "the reference does not determine the parameters: the arm hardly follows it"
        )
    inverse = np.linalg.inv(ZY)
    beta = scale * (inverse @ Ztau)
    spread = np.sqrt(np.diag(inverse @ ZZ @ inverse.T)) * scale
    deviations = spread / np.linalg.norm(found.fit.spread, axis=1) * found.deviations
    return BiasCheck(beta, deviations, np.abs(beta - found.beta) > FAR * deviations)

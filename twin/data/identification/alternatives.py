"""Alternatives to a recording as it is: delays, other signs, units, orders, mountings and arms.

Rows of the equations are reduced once, joint by joint, with K more columns:

    [Y_j  c_1 ... c_K] = Q_j R_j.

Any sum of these columns as the torque, and any of them as a further unknown, is then another fit, which costs
milliseconds: torques of another joint, of another sign or size, or of another time; a gain or an offset.  The
torques are low-pass filtered, so that a delay between two columns is a sum of them, by cubic interpolation.

Torques that are recorded late leave residuals with the accelerations and speeds of the motion.  The fit is
repeated with torques that are read later; the delay has the smallest residuals.  Around it they grow with the
square of the difference, and their curvature gives the deviation of the delay.

No fault is stated for one sign alone.  A wrong torque leaves large residuals, and an alternative must leave
small ones.  The friction of a joint takes power; where its torque has the wrong sign, it seems to give it,
beyond its deviation.  Alternatives are compared by the sum over the joints of the logarithms of residuals,
relative to the torques.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from twin.base.arrays import Floats
from twin.data.identification.least_squares import (
    Fit,
    Triangles,
    fitted,
    joint_residuals,
    triangle,
    triangles,
)
from twin.data.identification.measurements import (
    LowPass,
    Measurements,
    Samples,
    filtered_block,
    motion_at,
    sample_blocks,
)
from twin.data.identification.result import Delay, Identification
from twin.data.identification.torque_model import TorqueModel, friction_of, identifiable, shaft_speeds
from twin.data.logs.recordings.finding import Finding, joint_names
from twin.physics.robot.loading import load, robot_names

Columns: TypeAlias = Callable[[Measurements, NDArray[np.intp], Floats], Floats]
"""Columns (M, n, K) at samples (M,) of measurements, where Y (M, n, r) are the base columns."""

THINNED = 40.0
"""Samples that remain per period of the cut-off; friction changes its sign at once, so that fewer fold its
higher frequencies into those of the fit.
"""


def thinned(measured: Measurements) -> Measurements:
    """Return filtered measurements with fewer samples, which represent the same filtered equations."""
    assert measured.low_pass is not None
    low_pass = measured.low_pass
    every = int(1.0 / (THINNED * low_pass.cutoff * low_pass.period))
    if every < 2:
        return measured
    period = every * low_pass.period
    smooth = LowPass(0.4 * THINNED * low_pass.cutoff, low_pass.period).filtered
    rate = min(measured.row_rate, 1.0 / period)
    return replace(
        measured, t=measured.t[::every], q=measured.q[::every], qd=measured.qd[::every],
        qdd=measured.qdd[::every], qd_friction=measured.qd_friction[::every],
        tau=smooth(measured.tau)[::every], used=measured.used[::every],
        low_pass=LowPass(low_pass.cutoff, period), row_rate=rate, reference=None, row_weights=None,
        load=None if measured.load is None else measured.load[::every],
        weights=None if measured.weights is None else measured.weights[::every],
        motor=None if measured.motor is None else measured.motor.at(np.arange(0, len(measured.t), every)),
    )  # fmt: skip


class Alternatives(NamedTuple):
    """Reduced equations with more columns.

    Attributes:
        R: (n, k, r + K) triangular factors: base columns, and more columns.
        counts: (n,) number of equations of each joint.
        r: number of base parameters.
        oversampling: number of equations per independent one.
    """

    R: Floats
    counts: NDArray[np.int64]
    r: int
    oversampling: float

    def fit(self, torque: Floats, unknown: Sequence[int] = ()) -> tuple[Fit, Triangles]:
        """Fit a torque that is a sum of columns, with some columns as further unknowns.

        Args:
            torque: (K,) weights of the columns, or (n, K) for each joint.
            unknown: indices of columns.

        Returns:
            The fit, and its equations.
        """
        K = self.R.shape[2] - self.r
        tau = np.einsum("jik,jk->ji", self.R[:, :, self.r :], np.broadcast_to(torque, (len(self.R), K)))
        columns = [*range(self.r), *(self.r + k for k in unknown)]
        R = np.concatenate([self.R[:, :, columns], tau[..., None]], axis=2)
        reduced = Triangles(R, self.counts, self.oversampling)
        return fitted(reduced), reduced


def percent_of(fit: Fit, reduced: Triangles) -> Floats:
    """Return the residuals (n,) of a fit in percent of the torques; infinite if it is not determined."""
    return (
        joint_residuals(reduced, fit.beta).percent
        if fit.rank == len(fit.beta)
        else np.full(len(reduced.R), np.inf)
    )


def mean_logarithm(fit: Fit, reduced: Triangles) -> float:
    """Return the mean logarithm L of the residuals of a fit, for parameters that are unknown as well.

    It is the restricted likelihood of H. Patterson and R. Thompson, Biometrika 58 (1971): with the weights w
    and the normal matrix H, `(log det H / 2 - sum N_j log w_j) / sum N_j`.
    """
    if fit.rank < len(fit.beta):
        return np.inf
    _, log_det = np.linalg.slogdet(fit.spread)
    return float((-log_det - np.sum(reduced.counts * np.log(fit.weights))) / np.sum(reduced.counts))


def alternatives(model: TorqueModel, measured: Sequence[Measurements], more: Columns) -> Alternatives:
    """Reduce the equations of thinned measurements, see `thinned`, with more columns."""
    n, r = model.robot.n, len(model.base.columns)
    R: list[Floats | None] = [None] * n
    counts = np.zeros(n, dtype=np.int64)
    for one in measured:
        for part, samples in sample_blocks(one):
            Y = model.regressor(*motion_at(one, samples))[..., model.base.columns]
            block = filtered_block(
                Samples(part, samples, np.concatenate([Y, more(one, samples, Y)], axis=-1)), one
            )
            for joint, before in enumerate(R):
                rows = block.rows[block.used[:, joint], joint]
                counts[joint] += len(rows)
                rows = rows if before is None else np.concatenate([before, rows])
                R[joint] = triangle(rows, rows.shape[1]) if len(rows) > rows.shape[1] else rows
    whole = [rows for rows in R if rows is not None]
    most = max(map(len, whole))
    padded = [np.pad(rows, ((0, most - len(rows)), (0, 0))) for rows in whole]
    return Alternatives(np.array(padded), counts, r, max(one.oversampling for one in measured))


def delayed_torques(measured: Measurements, delay: float) -> Floats:
    """Return the torques (N, n) that were recorded later by a delay, in [s]; the ends are repeated."""
    from scipy.interpolate import CubicSpline

    t = measured.t
    return CubicSpline(t, measured.tau)(np.clip(t + delay, t[0], t[-1]))


LATE = 0.02
"""Smallest error of the torques by a delay, relative to them, that stops a result."""

NEAR = 1e-5
"""Precision of a delay, in [s]."""

PARABOLA = 0.2
"""Increase of the mean logarithm up to which it is a parabola."""

FALLS = 0.1
"""Logarithm by which residuals must fall, as a mean over the joints."""


SHIFTS_PER_PERIOD = 8.0
"""Delays that are tried first, per period of the cut-off."""

FINER = 8
"""Number of delays that are tried between two of these, around the best."""

LONGEST = 0.1
"""Longest delay that is looked for, in [s]."""

MOST_SHIFTS = 20
"""Largest number of delays of either sign."""


def found_delay(model: TorqueModel, measured: Sequence[Measurements]) -> Delay | None:
    """Find the delay of filtered measurements; `None` if they are not filtered."""
    filtered = [thinned(one) for one in measured if one.low_pass is not None]
    if not filtered:
        return None
    step: Any = 1.0 / (SHIFTS_PER_PERIOD * max(o.low_pass.cutoff for o in filtered if o.low_pass is not None))
    K = min(int(np.ceil(LONGEST / step)) + 1, MOST_SHIFTS)
    coarse = Scan(model, filtered, step * np.arange(-K, K + 1))
    costs = np.array([coarse.cost(float(d)) for d in coarse.shifts])
    best = float(coarse.shifts[np.argmin(costs)])
    other = Scan(model, filtered, best + step / FINER * np.arange(-FINER, FINER + 1))
    finer = np.array([other.cost(float(d)) for d in other.shifts])
    value, curvature = _refined(other, float(other.shifts[np.argmin(finer)]), step / FINER)
    shifts = np.concatenate([coarse.shifts, other.shifts])
    order = np.argsort(shifts)
    shifts, costs = shifts[order], np.concatenate([costs, finer])[order]
    falls = coarse.cost(0.0) - other.cost(value)
    count = float(np.sum(other.equations.counts)) / other.equations.oversampling
    deviation = 1.0 / np.sqrt(count * curvature) if curvature > 0 else np.inf
    return Delay(value, float(deviation), falls, coarse.error(value), shifts, costs)


class Scan:
    """Fits with torques that are read later by some time.

    Args:
        model: model that is fitted.
        measured: thinned measurements.
        shifts: (K,) times by which torques are read later, in [s], at equal intervals.
    """

    def __init__(self, model: TorqueModel, measured: Sequence[Measurements], shifts: Floats) -> None:
        from scipy.interpolate import CubicSpline

        self.shifts = shifts
        self._spline: Any = CubicSpline(shifts, np.eye(len(shifts)))
        torques = {id(one): [delayed_torques(one, float(d)) for d in shifts] for one in measured}
        self.equations: Alternatives = alternatives(
            model, measured, lambda one, at, _: np.stack([tau[at] for tau in torques[id(one)]], axis=-1)
        )

    def cost(self, delay: float) -> float:
        """Return the mean logarithm of the residuals with torques that are read later by a delay, in [s]."""
        return mean_logarithm(*self.equations.fit(self._spline(delay)))

    def error(self, delay: float) -> float:
        """Return the largest change of a joint's torques by a delay, relative to them."""
        late, now = self.equations.R[:, :, self.equations.r :], self._spline(0.0)
        change = np.linalg.norm(late @ (self._spline(delay) - now), axis=1)
        return float(np.max(change / np.maximum(np.linalg.norm(late @ now, axis=1), np.finfo(float).tiny)))


def _refined(scan: Scan, best: float, step: float) -> tuple[float, float]:
    """Return the delay with the smallest residuals near one, in [s], and the curvature of L there."""
    from scipy.optimize import minimize_scalar

    low, high = max(best - step, scan.shifts[0]), min(best + step, scan.shifts[-1])
    found: Any = minimize_scalar(scan.cost, bounds=(low, high), method="bounded", options={"xatol": NEAR})
    value, least, h = float(found.x), float(found.fun), 0.1 * step
    while True:  # L is a parabola only where it is within a fraction of its minimum
        L = [scan.cost(value + k * h) for k in (-1, 1)]
        if max(L) - least < PARABOLA or h < NEAR:
            return value, max((L[0] - 2.0 * least + L[1]) / h**2, 0.0)
        h *= 0.5


def without_delay(measured: Measurements, delay: float) -> Measurements:
    """Return measurements with torques that are read later by a delay, in [s]."""
    if delay == 0.0:
        return measured
    how = f"{measured.how}; torques {1e3 * delay:.3g} ms earlier"
    return replace(measured, tau=delayed_torques(measured, delay), how=how)


def delay_finding(delay: Delay | None, period: float) -> list[Finding]:
    """Return a finding for a delay that is certain.

    Args:
        delay: the delay.
        period: time between two samples, in [s].  Half a period is the difference between torques that act
            before and after a position; it stops no result.
    """
    if delay is None or not delay.certain:
        return []
    stops = abs(delay.value) > 0.75 * period and delay.error > LATE and delay.falls > FALLS
    if not stops and not (delay.error > LATE / 2 and delay.falls > FALLS / 2):
        return []
    text = (
        f"torques are recorded {1e3 * abs(delay.value):.3g} +- {1e3 * delay.deviation:.2g} ms "
        f"{'after' if delay.value > 0 else 'before'} the positions: --delay auto corrects it"
    )
    return [Finding("late", (), text, stops)]


LACKS = 2.0
"""Ratio of residuals to the noise of the torques above which a model lacks something."""

MUCH = 12.0
"""Residuals in percent of the torque from which other positions, mountings and arms are tried, too."""

BETTER = 0.7
"""Sum over the joints by which the logarithms of residuals must fall."""

REMAINS = 0.6
"""Ratio to which the largest residual of a joint must fall."""

AS_GOOD = 0.05
"""Increase of that sum that does not contradict an alternative."""

CERTAIN = 3.0
"""Deviations by which the power of friction must differ from 0."""

OTHER = 2.5
"""Smallest factor between units that the torques of other joints tell."""

MOUNTINGS = {"floor": 0.0, "wall": -90.0, "inverted": 180.0, "90": 90.0}
"""Mountings that are tried, with the angles in degrees by which they turn the base."""

CUTS = tuple(np.arange(1, 6) / 6.0)
"""Shares of a recording after which a change is tried."""

LARGEST = float(np.log(4096.0))
"""Logarithm of the largest factor of a torque that is tried; there a joint has no part in the fit."""

RATES = (0.5, 0.71, 1.4, 2.0)
"""Rates of a clock that are tried where they are far from 1; others are a column of their own."""

STEP = 1e-4
"""Step of differences by positions, in [rad], and by the logarithm of time."""


class Change(NamedTuple):
    """An alternative to the recording.

    Attributes:
        name: name of the finding.
        joints: joints that are concerned, from 1.
        reason: what it means.
        percent: (n,) residuals of the torques, in percent.
        certain: whether friction alone shows it, with residuals that do not grow.
    """

    name: str
    joints: tuple[int, ...]
    reason: str
    percent: Floats
    certain: bool = False

    def gain(self, before: Floats) -> float:
        """Return the sum over the joints by which the logarithms of residuals (n,) fall."""
        return float(np.sum(np.log(np.maximum(before, 1e-9)) - np.log(np.clip(self.percent, 1e-9, 1e9))))


def explanation(found: Identification) -> Finding | None:
    """Return a finding for the alternative that explains the torques much better, if there is one."""
    model, measured = found.model, [thinned(one) for one in found.measured]
    rows = friction_power(model, measured)
    power = in_deviations(rows, found.beta, found.covariance)
    if not (np.any(power < -CERTAIN) or np.any(lacks(found))):
        return None
    other = alternatives(model, measured, lambda one, at, Y: _torques(one.tau[at]))
    before = percent_of(*other.fit(np.eye(len(power))))
    tried = [*_signs(other, found, power, rows), *_orders(other, found), *_units(other, found)]
    tried += _later(found, measured)
    if np.any(before > MUCH):
        tried += [*_moves(found, measured), *_robots(found, measured)]
    explains = [
        one for one in tried
        if (one.certain and one.gain(before) > -AS_GOOD)
        or (one.gain(before) > BETTER and np.max(one.percent) < REMAINS * np.max(before))
    ]  # fmt: skip
    best = min(explains, key=lambda change: np.max(change.percent), default=None)
    if best is None:
        return None
    worst, after = np.max(before), np.max(best.percent)
    fall = f": residuals would fall from {worst:.3g} to {after:.3g} % of the torque" if after < worst else ""
    return Finding(best.name, best.joints, best.reason + fall)


def lacks(found: Identification) -> NDArray[np.bool_]:
    """Return the joints (n,) with residuals beyond the noise of their torques."""
    if found.unfiltered is None or found.noise is None:
        return np.zeros(found.model.robot.n, dtype=np.bool_)
    return found.unfiltered.rms > LACKS * found.noise


def _torques(tau: Floats) -> Floats:
    """Return the torques (M, n) of all joints as columns (M, n, n) of the equations of each."""
    return np.broadcast_to(tau[:, None, :], (len(tau), tau.shape[1], tau.shape[1]))


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


def _signs(other: Alternatives, found: Identification, power: Floats, rows: Floats) -> Iterator[Change]:
    """Yield the other sign of the torques whose friction would drive the arm, if it brakes then."""
    gives, n = power < -CERTAIN, len(power)
    for joints in {
        tuple(np.flatnonzero(gives).tolist()),
        *((joint,) for joint in np.flatnonzero(gives).tolist()),
    }:
        fit, reduced = other.fit(np.diag(np.where(np.isin(np.arange(n), joints), -1.0, 1.0)))
        after = in_deviations(rows, fit.beta, fit.covariance)
        if joints and np.all(after >= -CERTAIN) and np.all(after[list(joints)] > CERTAIN):
            every = n > 1 and np.all(gives | (np.abs(power) <= CERTAIN))
            numbers = () if every else tuple(joint + 1 for joint in joints)
            text = "all torques seem" if every else f"the torque of {joint_names(numbers)} seems"
            text += " to have the other sign, with which friction brakes"
            yield Change("sign", numbers, text, percent_of(fit, reduced), certain=True)


def _orders(other: Alternatives, found: Identification) -> Iterator[Change]:
    """Yield pairs of torques that were swapped, and torques in percent of their largest."""
    limits = found.model.robot.tau_max
    if np.all(np.isfinite(limits)):
        text = "the torques seem to be in percent of those of the robot's limits"
        yield Change("unit", (), text, percent_of(*other.fit(np.diag(limits / np.mean(limits)))))
    for numbers, order in _pairs(len(other.R)):
        text = f"the torques of joints {numbers[0]} and {numbers[1]} seem to be swapped"
        yield Change("swapped", numbers, text, percent_of(*other.fit(np.eye(len(order))[order])))


def _pairs(n: int) -> Iterator[tuple[tuple[int, int], list[int]]]:
    """Yield all pairs of n joints, from 1, and the order of the joints with which they are exchanged."""
    for a, b in combinations(range(n), 2):
        order = list(range(n))
        order[a], order[b] = b, a
        yield (a + 1, b + 1), order


def _units(other: Alternatives, found: Identification) -> Iterator[Change]:
    """Yield the other sign, and another unit, of the torque of one joint."""
    from scipy.optimize import minimize_scalar

    n, drives = len(other.R), found.model.robot.active_drives
    assert drives is not None
    for joint in range(n):

        def percent(factor: float, joint: int = joint) -> Floats:
            return percent_of(*other.fit(np.diag(np.where(np.arange(n) == joint, factor, 1.0))))

        text = f"the torque of joint {joint + 1} seems to have the other sign, with which friction brakes"
        yield Change("sign", (joint + 1,), text, percent(-1.0))
        best: Any = minimize_scalar(
            lambda x, of=percent: np.sum(np.log(of(np.exp(x)))),
            bounds=(-LARGEST, LARGEST), method="bounded", options={"xatol": 0.1},
        )  # fmt: skip
        factor = float(np.exp(best.x))
        if np.log(OTHER) < abs(best.x) < 0.95 * LARGEST:
            causes = {
                "is it that of the motor, before the gear": abs(drives.motor_matrix[joint, joint]),
                "is it in mN m": 1e-3,
            }
            near = [cause for cause, value in causes.items() if abs(np.log(factor / value)) < np.log(2.0)]
            text = (
                f"the torque of joint {joint + 1} seems to be in another unit than others, by about "
                f"{1 / factor:.2g}; {[*near, 'is it a current, or that of the motor'][0]}?"
            )
            yield Change("unit", (joint + 1,), text, percent(factor))


def _moves(found: Identification, measured: Sequence[Measurements]) -> Iterator[Change]:
    """Yield positions that were swapped, without and with their torques, or have another sign."""
    n = found.model.robot.n
    for numbers, order in _pairs(n):
        for both in (False, True):
            what = "positions and the torques" if both else "positions"
            text = f"the {what} of joints {numbers[0]} and {numbers[1]} seem to be swapped"
            changed = [_moved(one, order, np.ones(n), both) for one in measured]
            yield Change("swapped", numbers, text, _percent(found.model, changed))
    for cut, factor in product(CUTS, RATES):
        text = f"the clock seems to change, after {100.0 * cut:.0f} % of the recording, by about {factor:.2g}"
        yield Change(
            "changes", (), text, _percent(found.model, [_slower(one, cut, factor) for one in measured])
        )
    for joint in range(n):
        signs = np.where(np.arange(n) == joint, -1.0, 1.0)
        text = f"the position of joint {joint + 1} seems to have the other sign"
        changed = [_moved(one, range(n), signs) for one in measured]
        yield Change("sign", (joint + 1,), text, _percent(found.model, changed))


def _moved(measured: Measurements, order: Sequence[int], signs: Floats, both: bool = False) -> Measurements:
    """Return measurements in which positions, or all, belong to other joints, or have another sign."""
    arrays = {name: getattr(measured, name)[:, order] * signs for name in ("q", "qd", "qdd", "qd_friction")}
    if both:
        arrays["tau"] = measured.tau[:, order]
    weights = None if measured.weights is None else measured.weights[:, order]
    return replace(measured, **arrays, weights=weights, motor=None, reference=None)


def _slower(measured: Measurements, cut: float, factor: float) -> Measurements:
    """Return measurements that are faster by a factor after a share of their time."""
    used = measured.t[np.any(measured.used, axis=1)][[0, -1]]
    rate = np.where(measured.t > used[0] + cut * (used[1] - used[0]), factor, 1.0)[:, None]
    rates = {
        "qd": measured.qd * rate,
        "qdd": measured.qdd * rate**2,
        "qd_friction": measured.qd_friction * rate,
    }
    return replace(measured, **rates, motor=None, reference=None)


def _robots(found: Identification, measured: Sequence[Measurements]) -> Iterator[Change]:
    """Yield other mountings of the robot, and other built-in arms."""
    model, robot = found.model, found.model.robot
    for how, angle in MOUNTINGS.items():
        text = f"gravity acts as on an arm with another mounting (--mounting {how})"
        turned = robot.mounted(angle)
        if not np.allclose(turned.gravity, robot.gravity):
            yield Change("mounting", (), text, _percent(replace(model, robot=turned), measured))
    for name in robot_names():
        arm = identifiable(load(name))
        if arm.n == robot.n and arm.name != robot.name:
            text = f"the recording seems to be of another arm (--robot {name})"
            kinds = () if model.torque_sensors else friction_of(arm)
            its = TorqueModel(
                arm.with_gravity(robot.gravity), friction=kinds, torque_sensors=model.torque_sensors
            )
            yield Change("arm", (), text, _percent(its.without_load, measured))


def _percent(model: TorqueModel, measured: Sequence[Measurements]) -> Floats:
    """Return the residuals (n,) of a model that is fitted to measurements, in percent of the torques."""
    reduced = triangles(model, measured)
    return percent_of(fitted(reduced), reduced)


def _later(found: Identification, measured: Sequence[Measurements]) -> Iterator[Change]:
    """Yield gains, zeros, frictions and clocks that changed at some time, or ever since the start."""
    model, n = found.model, found.model.robot.n
    kinds = ("gain of the torque", "zero of the torque", "friction", "zero of the position")
    joints = np.vstack([np.eye(n), np.ones(n)]).T  # each, and all together
    slides = np.array([[one.startswith(("Fc", "Fv")) * one.endswith(str(j + 1)) for j in range(n)]
                       for one in model.base.symbols], dtype=np.float64)  # fmt: skip

    def more(one: Measurements, at: NDArray[np.intp], Y: Floats) -> Floats:
        """Return columns by which torques change, at each time, and the torques."""
        q, qd, qdd, qd_friction, load, motor = motion_at(one, at)
        shifted = [model.regressor(q + STEP * e, qd, qdd, qd_friction, load, motor) for e in joints.T]
        rates = (1 + STEP) * qd, (1 + STEP) ** 2 * qdd, (1 + STEP) * qd_friction
        shifted.append(model.regressor(q, *rates, load, motor))
        slopes = [(Z[..., model.base.columns] - Y) @ found.beta / STEP for Z in shifted]
        rubs, tau = Y @ (found.beta[:, None] * slides) @ joints, one.tau[at][..., None]
        parts = [tau * joints, np.broadcast_to(joints, rubs.shape), rubs, np.stack(slopes, axis=-1)]
        used = one.t[np.any(one.used, axis=1)][[0, -1]]
        share = ((one.t[at] - used[0]) / (used[1] - used[0]))[:, None, None]
        whole = np.concatenate(parts, axis=-1)
        return np.concatenate([*(whole * (share > cut) for cut in CUTS), whole * share, tau], axis=-1)

    other, K = alternatives(model, measured, more), len(kinds) * (n + 1) + 1
    torque = np.append(np.zeros((len(CUTS) + 1) * K), 1.0)
    for column in range(len(torque) - 1):
        when, (kind, joint) = column // K, divmod(column % K, n + 1)
        of = f"joint {joint + 1}" if joint < n else "all joints"
        what = f"{kinds[kind]} of {of}" if kind < len(kinds) else "clock"
        how = f"after {100.0 * CUTS[when]:.0f} % of the recording" if when < len(CUTS) else "all the time"
        numbers = (joint + 1,) if kind < len(kinds) and joint < n else ()
        yield Change(
            "changes", numbers, f"the {what} seems to change, {how}", percent_of(*other.fit(torque, [column]))
        )

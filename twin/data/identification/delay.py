"""Delay between positions and torques of a recording, and its cure.

Torques that are recorded late leave residuals with the accelerations and speeds of the motion.  The fit is
repeated with torques that are read later; the delay has the smallest residuals.  Around it they grow with the
square of the difference, and their curvature gives the deviation of the delay.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from twin.base.arrays import Floats
from twin.data.identification.alternatives import (
    Alternatives,
    alternatives,
    delayed_torques,
    mean_logarithm,
    thinned,
)
from twin.data.identification.measurements import Measurements
from twin.data.identification.torque_model import TorqueModel
from twin.data.logs.recordings.finding import Finding

CERTAIN = 5.0
"""Deviations by which a delay must differ from 0."""

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


class Delay(NamedTuple):
    """Delay of the torques.

    Attributes:
        value: time by which torques are recorded later than positions, in [s].
        deviation: its standard deviation, in [s].
        falls: logarithm by which residuals fall without the delay, as a mean over the joints.
        error: error of the torques by the delay, relative to them.
        shifts: (K,) delays that were tried, in [s].
        costs: (K,) mean logarithm of the residuals with each.
    """

    value: float
    deviation: float
    falls: float
    error: float
    shifts: Floats
    costs: Floats

    @property
    def certain(self) -> bool:
        """Whether the delay differs from 0 by more than `CERTAIN` deviations."""
        return abs(self.value) > CERTAIN * self.deviation


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

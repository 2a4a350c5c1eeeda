"""Alternatives to a recording as it is: other signs, scales, orders and delays of its torques.

Rows of the equations are reduced once, joint by joint, with many torques in the last columns:

    [Y_j  tau_1 ... tau_n  tau_j(t + d_1) ... tau_j(t + d_K)] = Q_j R_j.

Any choice of columns, and any sum of them, is then another fit, which costs milliseconds: torques of another
joint, of another sign or size, or of another time.  The torques are low-pass filtered, so that a delay
between two d_k is a sum of columns, by cubic interpolation.

Fits are compared by the mean logarithm L of the joints' residuals, see `mean_logarithm`.
It is the logarithm of the likelihood for noise of unknown size in each joint, up to a factor, and a fit whose
joints are weighted by their noise minimises it.  A torque that is multiplied by s has residuals that are s
times as large without being worse: `(N_j - h_j) log s` is subtracted, for the h_j parameters of the joint
become s times as large, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twin.arrays import Floats
from twin.identification.filters import LowPass
from twin.identification.least_squares import Fit, Triangles, fitted, triangle
from twin.identification.measurements import Measurements, Samples, filtered_block, motion_at, sample_blocks
from twin.identification.torque_model import TorqueModel

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


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Reduced equations with many torques.

    Attributes:
        R: (n, k, r + n + K) triangular factors: base columns, torques of all joints, own torque delayed.
        counts: (n,) number of equations of each joint.
        r: number of base parameters.
        shifts: (K,) times d by which torques are read later, in [s].
        oversampling: number of equations per independent one.
    """

    R: Floats
    counts: NDArray[np.int64]
    r: int
    shifts: Floats
    oversampling: float

    def fit(self, torques: Sequence[int] | None = None, factors: Floats | None = None) -> tuple[Fit, float]:
        """Fit with the torques of other joints (n,), or multiplied by factors (n,); return it and its L."""
        n = len(self.R)
        order = range(n) if torques is None else torques
        scale = np.ones(n) if factors is None else factors
        tau = np.stack([self.R[j, :, self.r + k] * scale[j] for j, k in enumerate(order)])
        fit, L = self._fit(tau)
        leverage = fit.weights**2 * np.sum((self.R[:, :, : self.r] @ fit.spread) ** 2, axis=(1, 2))
        free = np.maximum(self.counts - leverage, 0.0)
        return fit, L - float(np.sum(free * np.log(np.abs(scale))) / np.sum(self.counts))

    def fit_delayed(self, delay: float) -> tuple[Fit, float]:
        """Fit with torques that are read later by a delay, in [s]; return the fit and its L."""
        return self._fit(self.R[:, :, self.r + len(self.R) :] @ self.weights_at(delay))

    def weights_at(self, delay: float) -> Floats:
        """Return the weights (K,) of the delayed torques whose sum has this delay, in [s]."""
        return self._spline(delay)

    def _fit(self, tau: Floats) -> tuple[Fit, float]:
        reduced = Triangles(
            np.concatenate([self.R[:, :, : self.r], tau[..., None]], axis=2), self.counts, self.oversampling
        )
        fit = fitted(reduced)
        return fit, mean_logarithm(reduced, fit)

    @cached_property
    def _spline(self) -> Any:
        """Cubic spline of the weights of the delayed torques."""
        from scipy.interpolate import CubicSpline

        return CubicSpline(self.shifts, np.eye(len(self.shifts)))


def mean_logarithm(reduced: Triangles, fit: Fit) -> float:
    """Return the mean logarithm L of the residuals of a fit, for parameters that are unknown as well.

    It is the restricted likelihood of H. Patterson and R. Thompson, Biometrika 58 (1971): with the weights w
    and the normal matrix H, `(log det H / 2 - sum N_j log w_j) / sum N_j`.
    """
    if fit.rank < len(fit.beta):
        return np.inf
    _, log_det = np.linalg.slogdet(fit.spread)
    return float((-log_det - np.sum(reduced.counts * np.log(fit.weights))) / np.sum(reduced.counts))


def alternatives(
    model: TorqueModel, measured: Sequence[Measurements], shifts: Floats | None = None
) -> Alternatives:
    """Reduce the equations of thinned measurements with many torques.

    Args:
        model: model that is fitted.
        measured: filtered measurements, see `thinned`.
        shifts: (K,) times by which torques are read later, in [s], at equal intervals; none by default.
    """
    n, r = model.robot.n, len(model.base.columns)
    shifts = np.zeros(0) if shifts is None else shifts
    width = r + n + len(shifts)
    R, counts = np.zeros((n, width, width)), np.zeros(n, dtype=np.int64)
    for one in measured:
        delayed = [delayed_torques(one, float(d)) for d in shifts]
        for part, samples in sample_blocks(one):
            Y = model.regressor(*motion_at(one, samples))[..., model.base.columns]
            tau = one.tau[samples]
            columns = [Y, np.broadcast_to(tau[:, None, :], (len(tau), n, n))]
            columns += [torques[samples][..., None] for torques in delayed]
            block = filtered_block(Samples(part, samples, np.concatenate(columns, axis=-1)), one)
            for joint in range(n):
                rows = block.rows[block.used[:, joint], joint]
                counts[joint] += len(rows)
                R[joint] = triangle(np.concatenate([R[joint], rows]), width)
    return Alternatives(R, counts, r, shifts, max(one.oversampling for one in measured))


def delayed_torques(measured: Measurements, delay: float) -> Floats:
    """Return the torques (N, n) that were recorded later by a delay, in [s]; the ends are repeated."""
    from scipy.interpolate import CubicSpline

    t = measured.t
    return CubicSpline(t, measured.tau)(np.clip(t + delay, t[0], t[-1]))


def moved(measured: Measurements, order: Sequence[int], signs: Floats) -> Measurements:
    """Return measurements in which positions belong to other joints, or have another sign.

    Args:
        measured: filtered measurements.
        order: (n,) index of the column of each joint.
        signs: (n,) factors of the joints, 1 or -1.
    """
    arrays = {name: getattr(measured, name)[:, order] * signs for name in ("q", "qd", "qdd", "qd_friction")}
    weights = None if measured.weights is None else measured.weights[:, order]
    return replace(measured, **arrays, weights=weights, motor=None, reference=None)

"""Alternatives to a recording as it is: other torques, and further unknowns, in the same equations.

Rows of the equations are reduced once, joint by joint, with K more columns:

    [Y_j  c_1 ... c_K] = Q_j R_j.

Any sum of these columns as the torque, and any of them as a further unknown, is then another fit, which costs
milliseconds: torques of another joint, of another sign or size, or of another time; a gain or an offset.  The
torques are low-pass filtered, so that a delay between two columns is a sum of them, by cubic interpolation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from twin.base.arrays import Floats
from twin.data.identification.filters import LowPass
from twin.data.identification.least_squares import Fit, Triangles, fitted, joint_residuals, triangle
from twin.data.identification.measurements import (
    Measurements,
    Samples,
    filtered_block,
    motion_at,
    sample_blocks,
)
from twin.data.identification.torque_model import TorqueModel

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

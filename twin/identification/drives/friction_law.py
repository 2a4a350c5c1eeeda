"""The friction law of the drives, fitted to a curve of friction over speed.

    F(v) = [Fc + (Fs - Fc) exp(-(v / vs)^2)] sgn(v) + Fv v + F0

All but the Stribeck speed vs enters linearly.  So the fit starts from the best of many vs, with the others by
linear least squares, none below 0, and goes on with all together.  F0, an offset, is 0 unless asked for: the
law of the drives has none, measured torques do.

Source of the law: see `twin/drives/friction.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import real_array
from twin.errors import IdentificationError

TRIED = 30
"""Stribeck speeds that are tried."""

SLOWER = 3.0
"""The slowest of them is so much slower than the slowest run: what is below cannot be seen."""


@dataclass(frozen=True, eq=False)
class FrictionFit:
    """The law of a drive with standard deviations, in joint units as `twin.Drives` takes them.

    Attributes:
        coulomb, static, stribeck_speed, viscous: see `twin.drives.drives.Drives`, in [N m], [N m], [rad/s]
            and [N m s/rad]. Without the Stribeck effect `static` is `coulomb`, and `stribeck_speed` 0.
        offset: torque that does not change with direction, in [N m].
        deviations: (5,) of these five, in their order; 0 of what was not fitted.
        noise: standard deviation of what the law leaves, in [N m]; over the points' own, if they were given.
    """

    coulomb: float
    static: float
    stribeck_speed: float
    viscous: float
    offset: float
    deviations: np.ndarray
    noise: float

    def torque(self, speed: ArrayLike) -> np.ndarray:
        """Friction (...,) at speeds (...,), in [rad/s], in [N m]; the offset at rest."""
        v = real_array(speed, "speed")
        given = np.array([self.coulomb, self.static - self.coulomb, self.viscous, self.offset])
        return _columns(v.ravel(), self.stribeck_speed).dot(given).reshape(v.shape)


def fit_friction(
    speed: ArrayLike,
    torque: ArrayLike,
    deviation: ArrayLike | None = None,
    *,
    stribeck: bool = True,
    offset: bool = False,
) -> FrictionFit:
    """Fit the friction law of the drives.

    Args:
        speed: (m,) constant speeds, in [rad/s]; those at rest tell nothing and are left out.
        torque: (m,) friction at them, in [N m].
        deviation: (m,) standard deviations of the torques, by which points are weighted; only their ratios
            count, for what the law leaves tells their size.
        stribeck: fit static friction and Stribeck speed, too, which takes runs slower than that speed.
        offset: fit a constant torque, too, which takes runs in both directions.

    Raises:
        IdentificationError: there are too few points, or they do not tell some parameter.
        ValueError: a shape is another, or a value not finite, or a deviation not above 0.
    """
    v, F = real_array(speed, "speed"), real_array(torque, "torque")
    s = np.ones_like(v) if deviation is None else real_array(deviation, "deviation")
    if v.ndim != 1 or not v.shape == F.shape == s.shape:
        raise ValueError(f"expected speed and torque of one shape (m,), got {v.shape} and {F.shape}")
    if not (np.all(np.isfinite(v)) and np.all(np.isfinite(F)) and np.all((s > 0) & (s < np.inf))):
        raise ValueError("expected finite speeds and torques, and deviations above 0")
    moves = v != 0.0
    v, F, s = v[moves], F[moves], s[moves]
    free = np.array([True, stribeck, True, offset, stribeck])  # Fc, Fs - Fc, Fv, F0 and vs
    if not len(v) > np.count_nonzero(free):
        raise IdentificationError(
            f"{len(v)} points do not tell {np.count_nonzero(free)} parameters of friction: take more speeds"
        )
    if offset and (np.all(v > 0) or np.all(v < 0)):
        raise IdentificationError("an offset is told from Coulomb friction by runs in both directions alone")
    found, triangle, cost = _fit(v, F, s, free)
    root = _inverse(triangle, free, v)
    noise = float(np.sqrt(cost / (len(v) - np.count_nonzero(free))))
    spread = np.zeros((5, 5))
    spread[np.ix_(free, free)] = noise**2 * root @ root.T
    Fc, excess, Fv, F0, vs = found.tolist()
    static = np.array([1.0, 1.0, 0, 0, 0])
    deviations = np.sqrt(
        np.array([spread[0, 0], static @ spread @ static, spread[4, 4], spread[2, 2], spread[3, 3]])
    )
    if stribeck and not (np.sqrt(spread[1, 1]) < excess and deviations[2] < vs):
        raise _no_stribeck(v)
    return FrictionFit(Fc, Fc + excess, vs, Fv, F0, deviations, noise)


def _columns(v: np.ndarray, vs: float) -> np.ndarray:
    """What Fc, Fs - Fc, Fv and F0 are multiplied with (m, 4) at speeds (m,)."""
    falling = np.exp(-((v / vs) ** 2)) if vs > 0 else np.zeros_like(v)
    return np.column_stack([np.sign(v), np.sign(v) * falling, v, np.ones_like(v)])


def _fit(
    v: np.ndarray, F: np.ndarray, s: np.ndarray, free: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Parameters (5,), the triangle R of the derivatives of those that are free, and the sum of squares."""
    from scipy.optimize import least_squares, nnls

    linear, slowest = free[:4], np.min(np.abs(v))

    def linear_fit(vs: float) -> tuple[np.ndarray, float]:
        """The linear parameters (4,) for a Stribeck speed, and the norm of what they leave."""
        columns = (_columns(v, vs) / s[:, None])[:, linear]
        scale = np.linalg.norm(columns, axis=0) + (np.linalg.norm(columns, axis=0) == 0)
        signed = (
            np.column_stack([columns / scale, -columns[:, -1:] / scale[-1]]) if free[3] else columns / scale
        )
        weights, left = nnls(signed, F / s)
        if free[3]:
            weights = np.concatenate([weights[:-2], [weights[-2] - weights[-1]]])
        given = np.zeros(4)
        given[linear] = weights / scale
        return given, left

    tried = np.geomspace(slowest / SLOWER, np.max(np.abs(v)), TRIED) if free[4] else np.zeros(1)
    starts = [linear_fit(vs) for vs in tried]
    best = int(np.argmin([left for _, left in starts]))
    whole = np.append(starts[best][0], tried[best])

    def completed(x: np.ndarray) -> np.ndarray:
        given = whole.copy()
        given[free] = x
        return given

    def residual(x: np.ndarray) -> np.ndarray:
        given = completed(x)
        return (_columns(v, given[4]) @ given[:4] - F) / s

    def jacobian(x: np.ndarray) -> np.ndarray:
        given = completed(x)
        columns = _columns(v, given[4])
        by_vs = 2 * given[1] * columns[:, 1] * v**2 / given[4] ** 3 if free[4] else np.zeros_like(v)
        return (np.column_stack([columns, by_vs]) / s[:, None])[:, free]

    derivatives: Any = jacobian  # scipy's own types know of its names alone
    low = np.array([0.0, 0.0, 0.0, -np.inf, slowest / SLOWER / 2])[free]
    high = np.array([np.inf, np.inf, np.inf, np.inf, 2 * np.max(np.abs(v))])[free]
    end = least_squares(
        residual, np.clip(whole[free], low, high), jac=derivatives, bounds=(low, high), x_scale="jac",
        xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=200,
    )  # fmt: skip
    return completed(end.x), np.asarray(np.linalg.qr(jacobian(end.x), mode="r")), 2 * float(end.cost)


def _inverse(triangle: np.ndarray, free: np.ndarray, v: np.ndarray) -> np.ndarray:
    """R^-1, of which `R^-1 R^-T` is the covariance."""
    scale = np.linalg.norm(triangle, axis=0)
    if not (np.all(scale > 0) and np.linalg.cond(triangle / scale) < 1e12):
        if free[4]:
            raise _no_stribeck(v)
        raise IdentificationError(
            "the speeds do not tell the parameters of friction apart: several different ones are needed"
        )
    return np.linalg.inv(triangle)


def _no_stribeck(v: np.ndarray) -> IdentificationError:
    return IdentificationError(
        "the points do not tell static friction and Stribeck speed: the slowest is at "
        f"{np.min(np.abs(v)):.3g} rad/s; add slower runs, or fit without them (stribeck=False)"
    )

"""Joint motions that are finite Fourier series, and begin and end at rest.

Of joint j, with the base frequency `w = 2 pi / period`,

    qd_j(t) = sum_k a_jk cos(k w t) + b_jk sin(k w t),        k = 1 ... K,

and its position begins at `start_j`.  It begins, and ends after every period, at that position without speed
and acceleration, for `sum_k a_jk = 0` and `sum_k k b_jk = 0`: two linear conditions on a joint's 2 K numbers.

Source: J. Swevers, C. Ganseman, D. B. Tükel, J. De Schutter, H. Van Brussel, "Optimal robot excitation and
identification", IEEE Transactions on Robotics and Automation 13 (1997), whose series need not be at rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats, real_array

AT_REST = 1e-9
"""How much of its largest coefficient a joint's speed may be at the start, and its acceleration over `w`."""


class FourierBasis(NamedTuple):
    """Position less start, speed and acceleration (N, 2 K) at N times, of 1 in each of a joint's `(a, b)`."""

    q: Floats
    qd: Floats
    qdd: Floats


def fourier_basis(t: ArrayLike, period: float, harmonics: int) -> FourierBasis:
    """The basis of K = `harmonics` at the times t (N,), in [s]."""
    rates = 2 * np.pi / period * np.arange(1.0, harmonics + 1)
    angle = real_array(t, "t")[:, None] * rates
    sine, cosine = np.sin(angle), np.cos(angle)
    return FourierBasis(
        np.hstack([sine / rates, (1 - cosine) / rates]),
        np.hstack([cosine, sine]),
        np.hstack([-rates * sine, rates * cosine]),
    )


def at_rest_basis(harmonics: int) -> Floats:
    """Orthonormal directions (2 K, 2 K - 2) of the coefficients `(a, b)` that begin at rest."""
    order = np.arange(1.0, harmonics + 1)
    none = np.zeros(harmonics)
    conditions = np.array([[*np.ones(harmonics), *none], [*none, *order]])
    return np.linalg.svd(conditions)[2][2:].T


@dataclass(frozen=True, eq=False)
class FourierMotion:
    """A motion of n joints by K harmonics, see the module; a `Trajectory`, which holds before and after.

    Attributes:
        start: (n,) where it begins and ends, in [rad].
        a, b: (n, K) coefficients of the cosines and sines of the speeds, in [rad/s].
        period: in [s].
        periods: how often it is made.

    Raises:
        ValueError: shapes do not fit, a number is not finite, or it does not begin at rest.
    """

    start: Floats
    a: Floats
    b: Floats
    period: float
    periods: int = 1

    def __post_init__(self) -> None:
        for name in ("start", "a", "b"):
            array = np.array(real_array(getattr(self, name), name))
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        n, K = self.a.shape if self.a.ndim == 2 else (0, 0)
        if self.start.shape != (n,) or self.b.shape != (n, K) or not n * K:
            raise ValueError(
                f"expected start (n,) and a, b (n, K), got {self.start.shape}, {self.a.shape}, {self.b.shape}"
            )
        if not all(np.all(np.isfinite(array)) for array in (self.start, self.a, self.b)):
            raise ValueError("expected finite start, a and b")
        if not 0 < self.period < np.inf or not self.periods >= 1:
            raise ValueError(f"expected a period above 0 s, once or more, got {self.period}, {self.periods}")
        most = np.max(np.abs([self.a, self.b]), axis=(0, 2))
        for what, at_start in (
            ("speed", self.a.sum(axis=1)),
            ("acceleration", self.b @ np.arange(1, K + 1)),
        ):
            moving = ~(np.abs(at_start) <= AT_REST * K**2 * most)
            if moving.any():
                raise ValueError(
                    f"joint {int(np.argmax(moving)) + 1} does not begin at rest, but with some {what}"
                )

    @property
    def duration(self) -> float:
        """Of all periods, in [s]."""
        return self.period * self.periods

    def __call__(self, t: ArrayLike, /) -> tuple[Floats, Floats, Floats]:
        """Return (q, qd, qdd), each (..., n), at the times t (...), in [rad], [rad/s], [rad/s^2]."""
        t = real_array(t, "t")
        basis = fourier_basis(t.ravel(), self.period, self.a.shape[1])
        coefficients = np.hstack([self.a, self.b]).T
        q, qd, qdd = (part @ coefficients for part in basis)
        at_rest = ((t <= 0.0) | (t >= self.duration)).ravel()
        for part in (q, qd, qdd):
            part[at_rest] = 0.0
        shape = (*t.shape, len(self.start))
        return (self.start + q).reshape(shape), qd.reshape(shape), qdd.reshape(shape)

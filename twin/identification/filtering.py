"""Filters without delay, for recordings: of positions, and of both sides of `tau = Y pi`.

Recorded positions are rounded and noisy, and their second differences much more so.  What is above the
frequencies of the motion is filtered out of the positions first, and then, once torques are computed from
them, out of both sides of the equation alike: a linear filter changes neither the parameters nor that the
equation holds, whatever it does to the signals.  Then as few rows are kept as tell all there is left.

The filter is a Butterworth filter of order 4, forward and backward, so that phases stay.

Source: A. Janot, M. Gautier et al., "decimate and parallel filtering"; M. Gautier, P. Poignet, Control
Engineering Practice 9 (2001).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from twin.arrays import Floats
from twin.errors import IdentificationError

ORDER = 4

NOISE_BANDWIDTH = np.pi / 8 / np.sin(np.pi / 8) * 7 / 8
"""Of white noise the filter leaves as much as one of this width over its cut-off does that cuts off sharply:
the integral of `(1 + x^8)^-2`, for it is applied twice."""

POSITION_FACTOR = 5.0
"""The cut-off of the positions over that of the torques: what passes the second hardly feels the first."""

SPEED_FACTOR = 3.0
"""The cut-off of the torques over the frequency below which the joints' speeds have `SPEED_SHARE` of their
power: gravity, centrifugal torques and friction have multiples of it."""

SPEED_SHARE = 0.99

FASTEST = 100.0
"""In [Hz]: no arm moves faster; what is there is noise."""

ABOVE_NOISE = 20.0
"""How far a line of a spectrum is above the noise to be motion."""

NEGLIGIBLE = 1e-10
"""What is left of the filter's response to an impulse, relative to its peak, where it is cut off."""


def chosen_cutoff(q: Floats, period: float) -> float:
    """The cut-off for the torques of a motion, in [Hz].

    Args:
        q: (N, n) positions.
        period: between two of them, in [s].
    """
    from scipy.signal import periodogram

    f, power = periodogram(q - np.mean(q, axis=0), 1.0 / period, window="blackman", axis=0)
    noise = np.median(power[f >= 0.25 / period], axis=0)
    motion = np.where((power > ABOVE_NOISE * noise) & (f <= FASTEST)[:, None], power, 0.0)
    speed = np.cumsum(motion * f[:, None] ** 2, axis=0)
    if not np.all(speed[-1] > 0):
        joint = int(np.argmin(speed[-1] > 0)) + 1
        raise IdentificationError(f"joint {joint} moves no more than its noise: give a cut-off, in Hz")
    highest = np.max([f[np.searchsorted(s, SPEED_SHARE * s[-1])] for s in speed.T])
    digits = 1 - int(np.floor(np.log10(SPEED_FACTOR * highest)))
    return float(np.round(SPEED_FACTOR * highest, digits))


@dataclass(frozen=True)
class LowPass:
    """The filter.

    Attributes:
        cutoff: at which half of a signal is left, after forward and backward, in [Hz].
        period: between two samples, in [s].
    """

    cutoff: float
    period: float

    def __post_init__(self) -> None:
        if not 0 < self.cutoff < 0.5 / self.period:
            raise IdentificationError(
                f"a cut-off of {self.cutoff:g} Hz cannot be, with a sample every {self.period:g} s: expected "
                f"one above 0 and below {0.5 / self.period:g} Hz"
            )

    @cached_property
    def sections(self) -> Floats:
        """The filter as `scipy.signal.sosfiltfilt` takes it."""
        from scipy.signal import butter

        sections: Any = butter(ORDER, self.cutoff, fs=1.0 / self.period, output="sos")
        return sections

    def filtered(self, values: Floats) -> Floats:
        """Signals (N, ...), filtered along the first axis."""
        from scipy.signal import sosfiltfilt

        return sosfiltfilt(self.sections, values, axis=0)

    @cached_property
    def response(self) -> Floats:
        """Its response (2 L + 1,) to an impulse in the middle, cut off where it is negligible."""
        from scipy.signal import sosfiltfilt

        half = int(np.ceil(12.0 / (self.cutoff * self.period)))
        impulse = np.zeros(2 * half + 1)
        impulse[half] = 1.0
        response = sosfiltfilt(self.sections, impulse, padlen=0)
        reach = int(np.max(np.abs(np.flatnonzero(np.abs(response) > NEGLIGIBLE * response[half]) - half)))
        return response[half - reach : half + reach + 1]

    def rows(self, places: np.ndarray, first: int, values: Floats) -> Floats:
        """Filtered signals at some samples alone.

        Args:
            places: (m,) the samples.
            first: number of the first of the samples given.
            values: (M, ...) all samples that the response reaches from there.

        Returns:
            (m, ...) what `filtered` gives at those places, where its ends are far.
        """
        reach = len(self.response) // 2
        weights = np.zeros((len(places), len(values)))
        for row, place in zip(weights, places, strict=True):
            start = place - reach - first
            row[start : start + len(self.response)] = self.response
        return (weights @ values.reshape(len(values), -1)).reshape(len(places), *values.shape[1:])


def differences(q: Floats, period: float) -> tuple[Floats, Floats]:
    """Speeds and accelerations (N, n) by central differences; those at both ends are their neighbours'."""
    forward = np.diff(q, axis=0) / period
    qd, qdd = np.empty_like(q), np.empty_like(q)
    qd[1:-1] = (forward[1:] + forward[:-1]) / 2.0
    qdd[1:-1] = (forward[1:] - forward[:-1]) / period
    for rates in (qd, qdd):
        rates[0], rates[-1] = rates[1], rates[-2]
    return qd, qdd

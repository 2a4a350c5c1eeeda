"""The filters of the mirror: symmetric, short, and the same on both sides of `tau = Y pi`.

A bell is a Hann window of a stated width, with the sum 1.  Positions go through `2 b - b * b`, `b` the bell
of `POSITIONS`, which leaves motions as they are to the fourth order in time; speeds and accelerations are
central differences behind it.  What the model makes of them, and the payload's columns, go through the bell
of `TORQUES`.  Reported torques go through both, one after the other, and so does friction, which is a torque
that jumps where joints turn back: so on both sides all was filtered alike.

A reported torque may be older than the angles beside it.  A mean over the cycle before is so by half a
cycle: it is taken between two messages, see `aligned`.

The filters look both ways in time, and so what they tell is `lag` old.  Those of
`twin/identification/filtering.py` are sharper and several times as long.

Source: J. Kaiser, R. Hamming, "Sharpening the response of a symmetric nonrecursive filter by multiple use of
the same filter", IEEE Trans. on Acoustics, Speech and Signal Processing 25 (1977).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from twin.arrays import Floats
from twin.errors import EgmError

POSITIONS = 0.06
TORQUES = 0.16
"""Widths of the bells, in [s]; the second halves what has a frequency of 6 Hz."""

HALF_A_CYCLE = 0.5
"""The age of a mean over the cycle before.  The engine's torques are those of the beginnings of its steps: of
means over N of them it is `(N + 1) / (2 N)`, 0.625 of `twin.egm.EgmRobot` with 4 steps in a cycle."""

ROWS = 50.0
"""Rows that are told in a second, about, in [Hz]."""


def age(cycles: float) -> float:
    """The age of torques, in cycles.

    Raises:
        EgmError: it is not from 0 to 1.
    """
    if not 0 <= cycles <= 1:
        raise EgmError(f"expected reported torques to be 0 to 1 cycles older than the angles, got {cycles:g}")
    return float(cycles)


def bell(width: float, period: float) -> Floats:
    """A Hann window of a width in [s], for samples that are a period apart; at least three weights."""
    half = max(1, round(0.5 * width / period))
    weights = 1.0 + np.cos(np.pi * np.arange(-half, half + 1) / (half + 1))
    return weights / np.sum(weights)


def sharpened(weights: Floats) -> Floats:
    """`2 b - b * b`, of twice the reach."""
    twice = -np.convolve(weights, weights)
    reach = len(weights) // 2
    twice[reach : reach + len(weights)] += 2.0 * weights
    return twice


@dataclass(frozen=True)
class Smoothing:
    """The filters of a stream.

    Attributes:
        period: between two samples, in [s].
        torque_age: of reported torques beside the angles, in cycles, 0 to 1.
    """

    period: float
    torque_age: float = HALF_A_CYCLE

    @cached_property
    def positions(self) -> Floats:
        """The filter of positions."""
        return sharpened(bell(POSITIONS, self.period))

    @cached_property
    def motion(self) -> Floats:
        """(2 l + 1, 3) weights of a position, and of its differences over one and over two samples."""
        weights = np.pad(self.positions, 1)
        after, before = np.roll(weights, 1), np.roll(weights, -1)
        return np.stack([weights, 0.5 * (after - before), after - 2.0 * weights + before], axis=1)

    @cached_property
    def model(self) -> Floats:
        """The filter of what the model makes of filtered positions."""
        return bell(TORQUES, self.period)

    @cached_property
    def torques(self) -> Floats:
        """The filter of friction, and of torques that were reported, once they are aligned."""
        return np.convolve(self.positions, self.model)

    @cached_property
    def aligned(self) -> Floats:
        """The filter of torques as they were reported: from its middle on it reaches one sample further."""
        return np.convolve(self.torques, [1.0 - self.torque_age, self.torque_age])

    @property
    def lag(self) -> float:
        """How old what is told is, in [s]."""
        return (len(self.torques) // 2 + len(self.motion) // 2) * self.period

    @property
    def step(self) -> int:
        """Samples from one row to the next."""
        return max(1, round(1.0 / (ROWS * self.period)))

    @property
    def oversampling(self) -> float:
        """How many rows say what one would, for the filter leaves neighbours alike."""
        return max(1.0, 1.0 / float(np.sum(self.model**2)) / self.step)

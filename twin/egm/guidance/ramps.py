"""Ramps of an instruction: linear ones of the speed, in and out, and the way back to where it began.

The manual tells neither the shape of its ramps nor that of the way back; these are ours.
"""

from __future__ import annotations

import math

import numpy as np

from twin.arrays import Floats


def periods(duration: float, period: float) -> int:
    """How many periods a duration, in [s], has: at least one."""
    return max(1, round(duration / period))


class WayBack:
    """The straight line of the joints from where they stand to where they began.

    Its law of time is the polynomial `s = 10 x^3 - 15 x^4 + 6 x^5`, which begins and ends without speed and
    acceleration.  Ranges are convex, also those between joints: a line between two points in them is in them.

    Attributes:
        count: periods that it takes.

    Args:
        q, start: (n,) where the joints stand, and where they go, in [rad].
        duration: the least, in [s].
        speed, acceleration: (n,) the largest, in [rad/s] and [rad/s^2].
        period: in [s].
    """

    PEAK_SPEED = 1.875  # of s, in distances by duration
    PEAK_ACCELERATION = 10.0 / math.sqrt(3.0)  # in distances by duration^2

    def __init__(
        self, q: Floats, start: Floats, duration: float, speed: Floats, acceleration: Floats, period: float
    ) -> None:
        self.q, self.start = q, start
        way = np.abs(start - q)
        needed = max(
            duration,
            float(np.max(self.PEAK_SPEED * way / speed)),
            math.sqrt(float(np.max(self.PEAK_ACCELERATION * way / acceleration))),
        )
        self.count = max(1, math.ceil(needed / period * (1.0 - 1e-12)))

    def __call__(self, k: int) -> Floats:
        """Where the joints are after k periods: (n,) in [rad]."""
        if k >= self.count:
            return self.start
        x = k / self.count
        return self.q + x**3 * (10.0 - 15.0 * x + 6.0 * x * x) * (self.start - self.q)

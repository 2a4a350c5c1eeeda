"""Fastest time law along a joint path: x = s'^2 as large as speeds and torques allow.

Between two stops `s` is the path's parameter, `x = s'^2` and `u = s''`. A torque is `a u + b x + c`, with
coefficients of the path, so every limit is linear in `(u, x)`. A backward pass finds at every point the
largest x from which the rest of the path can be completed, and a forward pass takes the largest u.

Source: Pham and Pham 2018, "A new approach to time-optimal path parameterization based on reachability
analysis", IEEE Transactions on Robotics 34(3), with the limits held at both ends of every interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats
from twin.base.formatting import short_repr
from twin.base.jit import compiled

PRECISION = 1e-15
"""Precision of the largest x, as a share of it."""


@compiled
def _range_of_u(x, width, a, b, low, high, a_next, b_next, low_next, high_next, x_next):
    """Return the smallest and the largest u that keep all limits at both ends of an interval.

    Args:
        x: square of the path's speed at the beginning of the interval.
        width: length of the interval.
        a: (n,) torque per u at the beginning.
        b: (n,) torque per x at the beginning.
        low: (n,) smallest a u + b x at the beginning.
        high: (n,) largest a u + b x at the beginning.
        a_next: (n,) torque per u at the end.
        b_next: (n,) torque per x at the end.
        low_next: (n,) smallest a u + b x at the end.
        high_next: (n,) largest a u + b x at the end.
        x_next: largest x at the end.
    """
    smallest, largest = -x / (2.0 * width), (x_next - x) / (2.0 * width)
    for i in range(2 * len(a)):
        j = i % len(a)
        if i < len(a):
            slope, rest, floor, top = a[j], b[j] * x, low[j], high[j]
        else:
            slope, rest = a_next[j] + 2.0 * width * b_next[j], b_next[j] * x
            floor, top = low_next[j], high_next[j]
        if slope > 0.0:
            smallest = max(smallest, (floor - rest) / slope)
            largest = min(largest, (top - rest) / slope)
        elif slope < 0.0:
            smallest = max(smallest, (top - rest) / slope)
            largest = min(largest, (floor - rest) / slope)
        elif rest < floor or rest > top:
            return 1.0, 0.0
    return smallest, largest


@compiled
def fastest(width, a, b, low, high, x_max, x, x_begin=0.0):
    """Fill in the largest x at the points of a path that ends at rest.

    Args:
        width: (N,) lengths of the intervals.
        a: (N, 2, n) torque per u at both ends of each interval.
        b: (N, 2, n) torque per x.
        low: (N, 2, n) smallest a u + b x.
        high: (N, 2, n) largest a u + b x.
        x_max: (N + 1,) largest x by speeds.
        x: (N + 1,) the result.
        x_begin: x at the beginning, 0 at rest; it becomes smaller where the path could not end from there.

    Returns:
        -1, or the interval in which the limits cannot be kept even at rest.
    """
    N = len(width)
    reach = np.zeros(N + 1)
    for k in range(N - 1, -1, -1):
        slow, fast = 0.0, x_max[k]
        smallest, largest = _range_of_u(slow, width[k], a[k, 0], b[k, 0], low[k, 0], high[k, 0],
                                        a[k, 1], b[k, 1], low[k, 1], high[k, 1], reach[k + 1])  # fmt: skip
        if smallest > largest:
            return k
        middle = fast
        while True:
            smallest, largest = _range_of_u(
                middle, width[k], a[k, 0], b[k, 0], low[k, 0], high[k, 0],
                a[k, 1], b[k, 1], low[k, 1], high[k, 1], reach[k + 1],
            )  # fmt: skip
            if smallest <= largest:
                slow = middle
            else:
                fast = middle
            middle = 0.5 * (slow + fast)
            if fast - slow <= PRECISION * fast:
                break
        reach[k] = slow
    x[0] = min(x_begin, reach[0])
    for k in range(N):
        _, largest = _range_of_u(x[k], width[k], a[k, 0], b[k, 0], low[k, 0], high[k, 0], a[k, 1],
                                 b[k, 1], low[k, 1], high[k, 1], reach[k + 1])  # fmt: skip
        x[k + 1] = min(max(x[k] + 2.0 * width[k] * largest, 0.0), reach[k + 1])
    return -1


def interval_times(width: Floats, x: Floats) -> Floats:
    """Return the duration of each interval (N,), in [s], from its length and x at its ends."""
    speeds = np.sqrt(x)
    return 2.0 * width / (speeds[:-1] + speeds[1:])


@dataclass(frozen=True, eq=False)
class PathMotion:
    """Motion along a path, a `Trajectory`: x changes evenly along each interval, and q is cubic there.

    Attributes:
        width: (N,) lengths of the intervals.
        x: (N + 1,) square of the path's speed at its points, in [1/s^2].
        q: (N + 1, n) joint angles at the points, in [rad].
        dq: (N + 1, n) their derivatives by the path's parameter.
    """

    width: Floats
    x: Floats
    q: Floats
    dq: Floats

    __repr__ = short_repr

    @cached_property
    def times(self) -> Floats:
        """Times of the points (N + 1,), in [s]."""
        return np.concatenate([[0.0], np.cumsum(interval_times(self.width, self.x))])

    @property
    def duration(self) -> float:
        """Time from start to end, in [s]."""
        return float(self.times[-1])

    @cached_property
    def places(self) -> Floats:
        """Parameters of the points (N + 1,), from 0 on."""
        return np.concatenate([[0.0], np.cumsum(self.width)])

    def place(self, t: float) -> float:
        """Return the parameter of the path at a time in [s]."""
        k = int(np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.width) - 1))
        after = min(t, self.duration) - self.times[k]
        u = (self.x[k + 1] - self.x[k]) / (2.0 * self.width[k])
        return float(self.places[k] + (np.sqrt(self.x[k]) + 0.5 * u * after) * after)

    def speed_and_time(self, place: float) -> tuple[float, float]:
        """Return the speed of the parameter at a place, and the time in [s]."""
        k = int(np.clip(np.searchsorted(self.places, place, side="right") - 1, 0, len(self.width) - 1))
        beyond = place - self.places[k]
        speed = float(np.sqrt(max(self.x[k] + (self.x[k + 1] - self.x[k]) * beyond / self.width[k], 0.0)))
        mean = 0.5 * (float(np.sqrt(self.x[k])) + speed)
        return speed, float(self.times[k] + (beyond / mean if beyond > 0.0 else 0.0))

    def __call__(self, t: ArrayLike, /) -> tuple[Floats, Floats, Floats]:
        """Return (q, qd, qdd) at the times t, see `Trajectory`; before and after the motion the arm rests."""
        t = np.asarray(t, dtype=float)
        within = np.clip(t, 0.0, self.duration)
        k = np.clip(np.searchsorted(self.times, within, side="right") - 1, 0, len(self.width) - 1)
        width, after = self.width[k], within - self.times[k]
        u = (self.x[k + 1] - self.x[k]) / (2.0 * width)
        speed = np.sqrt(self.x[k]) + u * after
        w = np.clip((np.sqrt(self.x[k]) + 0.5 * u * after) * after / width, 0.0, 1.0)[..., None]
        width, u, speed = width[..., None], u[..., None], speed[..., None]
        # The cubic with the angles and derivatives at both ends of the interval.
        first, last = self.dq[k], self.dq[k + 1]
        chord = (self.q[k + 1] - self.q[k]) / width
        square, cube = 3.0 * chord - 2.0 * first - last, first + last - 2.0 * chord
        q = self.q[k] + width * w * (first + w * (square + w * cube))
        dq = first + w * (2.0 * square + 3.0 * w * cube)
        ddq = (2.0 * square + 6.0 * w * cube) / width
        moves = ((t >= 0.0) & (t <= self.duration))[..., None]
        return q, np.where(moves, dq * speed, 0.0), np.where(moves, ddq * speed**2 + dq * u, 0.0)

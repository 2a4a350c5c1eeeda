"""Limits of motions: what a trajectory or its samples ask of the joints, against what these allow."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, real_array
from twin.base.errors import LimitError
from twin.base.formatting import short_repr
from twin.physics.robot.limits import ROUND_OFF


def check_peak(
    peak: Floats, limit: Floats, unit: str, time: Callable[[int], float], shortest: float | None = None
) -> None:
    """Check the peak speeds or accelerations of the joints, known in closed form, against their limits.

    Args:
        peak: (n,) magnitudes.
        limit: (n,) limits, positive.
        unit: "rad/s" or "rad/s^2".
        time: gives the time of a joint's peak, in [s].
        shortest: the least duration of this motion within the limits, in [s], for the message.

    Raises:
        LimitError: names the joint that is furthest above its limit, with value, limit and time.

    Example:
        >>> import numpy as np
        >>> from twin.physics.trajectories.limits import check_peak
        >>> peak, limit = np.array([1.0, 3.0]), np.array([2.0, 2.0])
        >>> check_peak(peak, limit, "rad/s", time=lambda joint: 0.5)
        Traceback (most recent call last):
            ...
        twin.base.errors.LimitError: joint 2 would reach a speed of 3 rad/s at t = 0.5 s, its limit is 2 rad/s
    """
    joint = int(np.argmax(peak / limit))
    if not peak[joint] <= limit[joint] * (1.0 + ROUND_OFF):
        what = "speed" if unit == "rad/s" else "acceleration"
        cure = "" if shortest is None else f"; the move takes at least {shortest:.6g} s"
        raise LimitError(
            f"joint {joint + 1} would reach a {what} of {peak[joint]:.6g} {unit} at t = {time(joint):.6g} s, "
            f"its limit is {limit[joint]:.6g} {unit}{cure}"
        )


def quintic_law(x: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the rest-to-rest time law `s = 10 x^3 - 15 x^4 + 6 x^5` and its first two derivatives in x.

    Speed and acceleration are zero at both ends; the speed peaks at x = 1/2 with ds/dx = 15/8.

    Args:
        x: (...) fraction of the duration; held at its ends outside [0, 1].
    """
    x = np.clip(x, 0.0, 1.0)
    y = 1.0 - x
    z = np.minimum(x, y)  # the law is point-symmetric, and cancels less in its first half
    half = z * z * z * (10.0 - z * (15.0 - 6.0 * z))
    return np.where(x <= y, half, 1.0 - half), 30.0 * (x * y) ** 2, 60.0 * x * y * (y - x)


@dataclass(frozen=True, eq=False)
class Quintic:
    """A move from rest to rest with continuous acceleration; make it with `quintic`."""

    q0: Floats
    q1: Floats
    duration: float

    __repr__ = short_repr

    def __call__(self, t: ArrayLike, /) -> tuple[Floats, Floats, Floats]:
        """Return (q, qd, qdd) at the times t."""
        T = self.duration if self.duration > 0.0 else 1.0  # no time: a move to where it is
        s, ds, dds = quintic_law(real_array(t, "t")[..., None] / T)
        dq = self.q1 - self.q0
        return self.q0 + dq * s, dq / T * ds, dq / T * (dds / T)


def quintic(
    q0: ArrayLike, q1: ArrayLike, duration: float | None = None, *, qd_max: ArrayLike | None = None
) -> Quintic:
    """Return a quintic move, of the given duration or as short as the speed limits allow.

    Every joint's speed peaks at half time with `15/8 |q1 - q0| / duration`.

    Args:
        q0: (n,) start, in [rad].
        q1: (n,) end, in [rad].
        duration: in [s]; None for the shortest.
        qd_max: (n,) or one for all, in [rad/s]; None (with a duration only) for no check.

    Raises:
        LimitError: the given duration needs more than qd_max.
        ValueError: arrays of different lengths or not finite, neither duration nor qd_max, or a move that
            is to take no time.

    Example:
        >>> import twin
        >>> move = twin.quintic([0, 0], [1.0, 0.5], duration=2.0)
        >>> samples = twin.sample(move, period=0.5)
        >>> samples.qd[2].round(5).tolist()  # 15/8 |q1 - q0| / duration at half time
        [0.9375, 0.46875]
    """
    q0, q1 = both_ends(q0, q1)
    return Quintic(q0, q1, _move_duration(q1 - q0, duration, qd_max, speed=15.0 / 8.0))


def _move_duration(
    dq: Floats,
    duration: float | None,
    qd_max: ArrayLike | None,
    speed: float,
    qdd_max: ArrayLike | None = None,
    acceleration: float = 0.0,
) -> float:
    """Return the duration of a move by dq (n,), by default the shortest, after a check of its limits.

    The speed peaks at half time with `speed |dq| / duration`, the acceleration at the start with
    `acceleration |dq| / duration^2`.
    """
    peaks, shortest = [], [0.0]
    for limits, name, unit, factor, power, time in (
        (qd_max, "qd_max", "rad/s", speed, 1, 0.5),
        (qdd_max, "qdd_max", "rad/s^2", acceleration, 2, 0.0),
    ):
        if limits is not None:
            peak, limit = factor * np.abs(dq), limit_vector(limits, name, len(dq))
            peaks.append((peak, limit, unit, power, time))
            shortest.append(float(np.max(peak / limit)) ** (1.0 / power))
    if duration is None:
        if not peaks:
            raise ValueError("expected a duration or a limit, as qd_max, for the shortest move, got neither")
        return max(shortest)
    duration = duration_of(duration, moving=bool(np.any(dq != 0.0)))
    for peak, limit, unit, power, time in peaks if duration > 0.0 else ():
        at = time * duration
        check_peak(peak / duration**power, limit, unit, lambda _, at=at: at, max(shortest))
    return duration


@dataclass(frozen=True, eq=False)
class Cubic:
    """A move from rest to rest whose acceleration falls linearly; make it with `cubic`.

    At its ends the acceleration jumps; the value to the right is given.
    """

    q0: Floats
    q1: Floats
    duration: float

    __repr__ = short_repr

    def __call__(self, t: ArrayLike, /) -> tuple[Floats, Floats, Floats]:
        """Return (q, qd, qdd) at the times t."""
        T = self.duration if self.duration > 0.0 else 1.0  # no time: a move to where it is
        fraction = real_array(t, "t")[..., None] / T
        x = np.clip(fraction, 0.0, 1.0)
        y = 1.0 - x
        z = np.minimum(x, y)  # as in `quintic_law`
        half = z * z * (3.0 - 2.0 * z)
        moving = (fraction >= 0.0) & (fraction < 1.0)
        dq = self.q1 - self.q0
        q = self.q0 + dq * np.where(x <= y, half, 1.0 - half)
        return q, dq / T * (6.0 * x * y), dq / T * (np.where(moving, 6.0 * (y - x), 0.0) / T)


def cubic(
    q0: ArrayLike,
    q1: ArrayLike,
    duration: float | None = None,
    *,
    qd_max: ArrayLike | None = None,
    qdd_max: ArrayLike | None = None,
) -> Cubic:
    """Return a cubic move from rest to rest, of the given duration or as short as the limits allow.

    It is `q0 + (q1 - q0) (3 x^2 - 2 x^3)` with `x = t / duration`. Every joint's speed peaks at half time
    with `3/2 |q1 - q0| / duration`, and its acceleration at both ends with `6 |q1 - q0| / duration^2`,
    where it jumps. That of `quintic` does not.

    Args:
        q0: (n,) start, in [rad].
        q1: (n,) end, in [rad].
        duration: in [s]; None for the shortest.
        qd_max: (n,) or one for all, in [rad/s]; None for no check.
        qdd_max: (n,) or one for all, in [rad/s^2]; None for no check.

    Raises:
        LimitError: the given duration needs more than qd_max or qdd_max.
        ValueError: arrays of different lengths or not finite, neither duration nor a limit, or a move that
            is to take no time.

    Example:
        >>> import twin
        >>> samples = twin.sample(twin.cubic([0, 0], [1.0, 0.5], duration=2.0), period=0.5)
        >>> samples.q[1].tolist(), samples.qd[2].tolist(), samples.qdd[0].tolist()
        ([0.15625, 0.078125], [0.75, 0.375], [1.5, 0.75])

    Source: Ljubljana lab manual, chapter 5, names polynomials of degree 3 and 5 without their formulas.
    """
    q0, q1 = both_ends(q0, q1)
    return Cubic(q0, q1, _move_duration(q1 - q0, duration, qd_max, 3.0 / 2.0, qdd_max, 6.0))


def both_ends(q0: ArrayLike, q1: ArrayLike) -> tuple[Floats, Floats]:
    """Return both ends of a move as vectors of one length."""
    q0 = finite_vector(q0, "q0")
    q1 = finite_vector(q1, "q1")
    if q0.shape != q1.shape:
        raise ValueError(f"expected q1 of shape {q0.shape}, got {q1.shape}")
    return q0, q1


def finite_vector(value: ArrayLike, name: str, n: int | None = None) -> Floats:
    """Return a read-only copy of shape (n,); a number stands for all joints where n is known."""
    array = np.array(real_array(value, name))
    if n is not None and array.ndim == 0:
        array = np.full(n, array)
    if array.ndim != 1 or array.size == 0 or (n is not None and len(array) != n):
        raise ValueError(f"expected {name} of shape ({'n' if n is None else n},), got {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"expected finite {name}, got {array}")
    array.flags.writeable = False
    return array


def limit_vector(value: ArrayLike, name: str, n: int) -> Floats:
    """Return limits as a vector of shape (n,), all positive."""
    array = finite_vector(value, name, n)
    if not np.all(array > 0.0):
        raise ValueError(f"expected positive {name}, got {array}")
    return array


def duration_of(value: float, *, moving: bool) -> float:
    """Return a duration in [s]; only a motion that goes nowhere may take no time."""
    if not (np.isfinite(value) and value >= 0.0) or (moving and not value > 0.0):
        raise ValueError(f"expected a positive, finite duration in s, got {value}")
    return float(value)

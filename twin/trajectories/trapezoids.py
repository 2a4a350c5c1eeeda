"""Trapezoidal moves: constant acceleration, cruise at constant speed, braking as strong as the start.

With the distance p_f - p_i, the duration t_f, the time t_c of speeding up (and of braking), the
acceleration a_c and the cruising speed v_c,

    v_c = a_c t_c,    p_f - p_i = v_c (t_f - t_c)           Ljubljana lab manual, eq. (5.72), (5.77)

so two of t_f, v_c and a_c make the third. Of several axes the one that has the farthest to go takes these,
and the others follow the same law s(t) from 0 to 1, slower in proportion: the move is a straight line. Three
ways to ask for one: within limits (`trapezoid`), in a given time (`timed_trapezoid`), at a given speed
(`cruising_trapezoid`). The axes may be joints or the coordinates of a point; `unit` is theirs, for messages.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats, real_array
from twin.errors import LimitError
from twin.robot.limits import ROUND_OFF
from twin.trajectories.limits import both_ends, check_peak, duration_of, finite_vector, limit_vector


@dataclass(frozen=True, eq=False)
class Trapezoid:
    """A move from rest to rest with constant acceleration, cruise and braking.

    At the corners, where the acceleration jumps, the value to the right of the corner is given.
    """

    q0: Floats
    q1: Floats
    duration: float
    acceleration_time: float

    def __call__(self, t: ArrayLike, /) -> tuple[Floats, Floats, Floats]:
        """Return (q, qd, qdd) at the times t."""
        t = real_array(t, "t")[..., None]
        T, ramp = self.duration, self.acceleration_time
        dq = self.q1 - self.q0
        if not T > 0.0:
            still = np.zeros_like(dq * t)
            return self.q1 + still, still, still.copy()
        cruise = 1.0 / (T - ramp)
        acceleration = cruise / ramp
        before, after = np.clip(t, 0.0, T), np.clip(T - t, 0.0, T)
        phases = [t < ramp, t < T - ramp]
        s = np.select(
            phases,
            [0.5 * acceleration * before**2, cruise * (before - 0.5 * ramp)],
            1.0 - 0.5 * acceleration * after**2,
        )
        ds = np.select(phases, [acceleration * before, np.full_like(t, cruise)], acceleration * after)
        moving = (t >= 0.0) & (t < T)
        dds = np.where(moving, np.select(phases, [acceleration, 0.0], -acceleration), 0.0)
        return self.q0 + dq * s, dq * ds, dq * dds


def trapezoid(
    q0: ArrayLike, q1: ArrayLike, qd_max: ArrayLike, qdd_max: ArrayLike, duration: float | None = None
) -> Trapezoid:
    """Return a trapezoidal move, as short as the limits allow or slower, cruising at a lower speed.

    With v and a the speed and acceleration limits of the law s(t), the least of `limit / |q1 - q0|` over
    the joints, it takes `1/v + v/a`; a move too short to reach v accelerates half of its time, `2/sqrt(a)`
    in all.

    Args:
        q0: (n,) start, in [rad].
        q1: (n,) end, in [rad].
        qd_max: (n,) or one for all, in [rad/s].
        qdd_max: (n,) or one for all, in [rad/s^2]; also the acceleration when a duration is given.
        duration: in [s]; None for the shortest.

    Raises:
        LimitError: the given duration needs more than qd_max or qdd_max.
        ValueError: arrays of different lengths or not finite, or a move that is to take no time.
    """
    q0, q1 = both_ends(q0, q1)
    qd_limit, qdd_limit = limit_vector(qd_max, "qd_max", len(q0)), limit_vector(qdd_max, "qdd_max", len(q0))
    distance = np.abs(q1 - q0)
    if not np.any(distance > 0.0):
        duration = 0.0 if duration is None else duration_of(duration, moving=False)
        return Trapezoid(q0, q1, duration, 0.5 * duration)
    a = 1.0 / float(np.max(distance / qdd_limit))
    v = min(1.0 / float(np.max(distance / qd_limit)), float(np.sqrt(a)))
    shortest = 1.0 / v + v / a
    if duration is None:
        return Trapezoid(q0, q1, shortest, v / a)
    duration = duration_of(duration, moving=True)
    check_peak(4.0 * distance / duration**2, qdd_limit, "rad/s^2", lambda _: 0.0, shortest)
    ramp = _ramp(1.0, duration, a)
    check_peak(distance / (duration - ramp), qd_limit, "rad/s", lambda _: ramp, shortest)
    return Trapezoid(q0, q1, duration, ramp)


def timed_trapezoid(
    q0: ArrayLike, q1: ArrayLike, duration: float, acceleration: float, *, unit: str = "rad"
) -> Trapezoid:
    """Return a trapezoidal move in a given time, whose farthest-going axis has a given acceleration.

    Args:
        q0: (n,) start.
        q1: (n,) end.
        duration: t_f in [s].
        acceleration: a_c of the axis that goes farthest, in unit/s^2.
        unit: of the positions.

    Raises:
        LimitError: the acceleration is too low for the time, see `acceleration_time`.
        ValueError: arrays of different lengths or not finite, a duration or acceleration not positive.

    Source: Ljubljana lab manual, eq. (5.78)-(5.82).
    """
    q0, q1 = both_ends(q0, q1)
    distance = float(np.max(np.abs(q1 - q0)))
    ramp = acceleration_time(distance, duration, acceleration, unit=unit)
    return Trapezoid(q0, q1, float(duration), ramp if distance > 0.0 else 0.5 * duration)


def cruising_trapezoid(
    q0: ArrayLike, q1: ArrayLike, speed: float, acceleration: float, *, unit: str = "rad"
) -> Trapezoid:
    """Return a trapezoidal move whose farthest-going axis has a given cruising speed and acceleration.

    It takes `p / v_c + v_c / a_c` with the longest distance p; `p - v_c^2 / a_c` of it goes at
    constant speed.

    Args:
        q0: (n,) start.
        q1: (n,) end.
        speed: v_c of the axis that goes farthest, in unit/s.
        acceleration: a_c of the axis that goes farthest, in unit/s^2.
        unit: of the positions.

    Raises:
        LimitError: the way is too short to reach the speed: nothing would be left to go at it.
        ValueError: arrays of different lengths or not finite, a speed or acceleration not positive.

    Source: Ljubljana lab manual, template trajectory.m, which calls the acceleration too high where the
    linear phase would have a negative length; it is too low, or the speed too high.
    """
    q0, q1 = both_ends(q0, q1)
    v, a = _positive(speed, "speed"), _positive(acceleration, "acceleration")
    distance = float(np.max(np.abs(q1 - q0)))
    if not distance > 0.0:
        return Trapezoid(q0, q1, 0.0, 0.0)
    if not v * v / a <= distance * (1.0 + ROUND_OFF):
        raise LimitError(
            f"a distance of {distance:.6g} {unit} is too short for {v:.6g} {unit}/s at {a:.6g} {unit}/s^2, "
            f"speeding up and braking alone take {v * v / a:.6g} {unit}; valid are a speed of at most "
            f"{_at_most(np.sqrt(a * distance))} {unit}/s or an acceleration of at least "
            f"{_at_least(v * v / distance)} {unit}/s^2"
        )
    duration = distance / v + v / a
    return Trapezoid(q0, q1, duration, min(v / a, 0.5 * duration))


def acceleration_time(distance: float, duration: float, acceleration: float, *, unit: str = "rad") -> float:
    """Return the time t_c that a trapezoidal move speeds up, in [s].

    `t_c = t_f / 2 - sqrt((t_f^2 a_c - 4 (p_f - p_i)) / a_c) / 2`, in a form that does not cancel.

    Args:
        distance: p_f - p_i, its magnitude counts.
        duration: t_f in [s].
        acceleration: a_c in unit/s^2.
        unit: of the distance.

    Raises:
        LimitError: `a_c < 4 |p_f - p_i| / t_f^2`: not even half of the time speeding up and half braking do.
        ValueError: a duration or acceleration that is not positive and finite, or a distance not finite.

    Source: Ljubljana lab manual, eq. (5.78).
    """
    duration, a = duration_of(duration, moving=True), _positive(acceleration, "acceleration")
    distance = abs(float(finite_vector(distance, "distance", 1)[0]))
    least = 4.0 * distance / duration**2
    if not least <= a * (1.0 + ROUND_OFF):
        raise LimitError(
            f"an acceleration of {a:.6g} {unit}/s^2 is too low for a distance of {distance:.6g} {unit} in "
            f"{duration:.6g} s; valid are an acceleration of at least {_at_least(least)} {unit}/s^2 or a "
            f"duration of at least {_at_least(2.0 * np.sqrt(distance / a))} s"
        )
    return _ramp(distance, duration, a)


def _ramp(distance: float, duration: float, a: float) -> float:
    """Return the lesser root of `a t (duration - t) = distance`, half of the duration where it has none."""
    root = np.sqrt(max(duration**2 - 4.0 * distance / a, 0.0))
    return min(2.0 * distance / a / (duration + float(root)), 0.5 * duration)


def _at_least(value: float) -> str:
    """Write a positive number with six digits, rounded up: whoever takes it at its word is not refused."""
    digit = 10.0 ** (np.floor(np.log10(value)) - 5)
    return f"{np.ceil(value / digit * (1.0 - 1e-12)) * digit:.6g}"


def _at_most(value: float) -> str:
    """Write a positive number with six digits, rounded down."""
    digit = 10.0 ** (np.floor(np.log10(value)) - 5)
    return f"{np.floor(value / digit * (1.0 + 1e-12)) * digit:.6g}"


def _positive(value: float, name: str) -> float:
    """Return a number that must be positive and finite."""
    return float(limit_vector(value, name, 1)[0])

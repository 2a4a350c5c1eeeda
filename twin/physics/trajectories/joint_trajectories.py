"""Joint trajectories: callables that give position, speed and acceleration at any time.

A trajectory has a `duration` in [s] and is called with a time: `q, qd, qdd = trajectory(t)`, where t is a
number or an array of any shape and each result has one more dimension, the joints. Before 0 and after its
duration a move holds its end; sines go on.

What a motion asks of the joints is checked against what these allow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, TypeAlias

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
        >>> from twin.physics.trajectories.joint_trajectories import check_peak
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


@dataclass(frozen=True, eq=False)
class Trapezoid:
    """A move from rest to rest with constant acceleration, cruise and braking.

    At the corners, where the acceleration jumps, the value to the right of the corner is given.
    """

    q0: Floats
    q1: Floats
    duration: float
    acceleration_time: float

    __repr__ = short_repr

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

    Example:
        >>> from twin.physics.trajectories.joint_trajectories import trapezoid
        >>> move = trapezoid([0, 0], [1.0, 0.5], qd_max=0.5, qdd_max=1.0)
        >>> round(move.duration, 4)  # 1 / 0.5 + 0.5 / 1, in s
        2.5
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

    Example:
        >>> import twin
        >>> from twin.physics.trajectories.joint_trajectories import timed_trapezoid
        >>> move = timed_trapezoid([0, 0], [1.0, 0.5], duration=2.5, acceleration=1.0)
        >>> twin.sample(move, period=0.5).qd[2].round(4).tolist()  # cruising speeds
        [0.5, 0.25]

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

    Example:
        >>> from twin.physics.trajectories.joint_trajectories import cruising_trapezoid
        >>> move = cruising_trapezoid([0, 0], [1.0, 0.5], speed=0.5, acceleration=1.0)
        >>> round(move.duration, 4)  # 1 / 0.5 + 0.5 / 1, in s
        2.5

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

    Example:
        >>> from twin.physics.trajectories.joint_trajectories import acceleration_time
        >>> round(float(acceleration_time(distance=1.0, duration=2.5, acceleration=1.0)), 4)
        0.5

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


__all__ = [
    "Trajectory",
    "cruising_trapezoid",
    "cubic",
    "hold",
    "quintic",
    "sequence",
    "sines",
    "timed_trapezoid",
    "trapezoid",
]

Motion: TypeAlias = tuple[Floats, Floats, Floats]


class Trajectory(Protocol):
    """Interface of a trajectory."""

    @property
    def duration(self) -> float:
        """The time from start to end, in [s]."""
        ...

    def __call__(self, t: ArrayLike, /) -> Motion:
        """Return (q, qd, qdd), each (..., n), at the times t (...), in [rad], [rad/s], [rad/s^2]."""
        ...


@dataclass(frozen=True, eq=False)
class Sines:
    """One sine per joint, going on for ever in both directions of time; make it with `sines`."""

    center: Floats
    amplitude: Floats
    frequency: Floats
    phase: Floats
    duration: float

    __repr__ = short_repr

    def __call__(self, t: ArrayLike, /) -> Motion:
        """Return (q, qd, qdd) at the times t, see `Trajectory`."""
        omega = 2.0 * np.pi * self.frequency
        angle = omega * real_array(t, "t")[..., None] + self.phase
        sine, cosine = self.amplitude * np.sin(angle), self.amplitude * np.cos(angle)
        return self.center + sine, omega * cosine, -(omega**2) * sine


@dataclass(frozen=True, eq=False)
class Sequence:
    """Trajectories one after the other; make it with `sequence`."""

    parts: tuple[Trajectory, ...]

    __repr__ = short_repr

    @property
    def duration(self) -> float:
        """The sum of the durations, in [s]."""
        return float(sum(part.duration for part in self.parts))

    def __call__(self, t: ArrayLike, /) -> Motion:
        """Return (q, qd, qdd) at the times t, see `Trajectory`; at a join, of the part that begins."""
        t = real_array(t, "t")
        starts = np.cumsum([0.0, *(part.duration for part in self.parts[:-1])])
        active = np.searchsorted(starts[1:], t, side="right")
        n = self.parts[0](0.0)[0].shape[-1]
        q, qd, qdd = (np.empty((*t.shape, n)) for _ in range(3))
        for k, part in enumerate(self.parts):
            mine = active == k
            q[mine], qd[mine], qdd[mine] = part(t[mine] - starts[k])
        return q, qd, qdd


def sines(
    center: ArrayLike,
    amplitude: ArrayLike,
    frequency: ArrayLike,
    duration: float,
    *,
    phase: ArrayLike = 0.0,
    qd_max: ArrayLike | None = None,
) -> Sines:
    """Return `q = center + amplitude sin(2 pi frequency t + phase)`, joint by joint.

    It starts with speed unless the phase is +-pi/2 (`center = q0 + amplitude, phase = -pi/2` starts at rest
    in q0).

    Args:
        center: (n,) in [rad].
        amplitude: (n,) or one for all, in [rad].
        frequency: (n,) or one for all, in [Hz].
        duration: in [s].
        phase: (n,) or one for all, in [rad].
        qd_max: (n,) or one for all, in [rad/s]; None for no check.

    Raises:
        LimitError: a joint's peak speed `2 pi frequency amplitude` is above qd_max.
        ValueError: arrays of different lengths or not finite, or a duration that is not positive.

    Example:
        >>> import twin
        >>> motion = twin.sines(center=[0.2, 0], amplitude=[0.3, 0.1], frequency=0.5, duration=2.0)
        >>> twin.sample(motion, period=0.5).q[1].round(4).tolist()  # center + amplitude
        [0.5, 0.1]
    """
    center = finite_vector(center, "center")
    n = len(center)
    amplitude, frequency = finite_vector(amplitude, "amplitude", n), finite_vector(frequency, "frequency", n)
    phase = finite_vector(phase, "phase", n)
    omega = 2.0 * np.pi * frequency
    if qd_max is not None:

        def first_peak(joint: int) -> float:
            """The first time at which the cosine is +-1."""
            rate = omega[joint]
            return float(np.mod(-np.sign(rate) * phase[joint], np.pi) / abs(rate))

        check_peak(np.abs(omega * amplitude), limit_vector(qd_max, "qd_max", n), "rad/s", first_peak)
    return Sines(center, amplitude, frequency, phase, duration_of(duration, moving=True))


def hold(q: ArrayLike, duration: float) -> Quintic:
    """Return the trajectory that stays at q, (n,) in [rad], for a duration in [s].

    Example:
        >>> import twin
        >>> samples = twin.sample(twin.hold([0.1, 0.2], duration=1.0), period=0.5)
        >>> samples.q.tolist()
        [[0.1, 0.2], [0.1, 0.2], [0.1, 0.2]]
    """
    q = finite_vector(q, "q")
    return Quintic(q, q, duration_of(duration, moving=False))


def sequence(*trajectories: Trajectory) -> Sequence:
    """Return trajectories one after the other.

    Raises:
        ValueError: none given, different numbers of joints, or a jump of position or speed at a join: no
            arm can follow one.

    Example:
        >>> import twin
        >>> there, back = twin.quintic([0], [1], duration=1.0), twin.quintic([1], [0], duration=1.0)
        >>> motion = twin.sequence(there, twin.hold([1], duration=0.5), back)
        >>> motion.duration
        2.5
    """
    if not trajectories:
        raise ValueError("expected at least one trajectory, got none")
    end = 0.0
    for k, (before, after) in enumerate(pairwise(trajectories)):
        end += before.duration
        old, new = before(before.duration), after(0.0)
        if old[0].shape != new[0].shape:
            raise ValueError(
                f"expected trajectories of one number of joints, got {old[0].size} and {new[0].size}"
            )
        for a, b, what, unit in zip(old, new, ("position", "speed"), ("rad", "rad/s"), strict=False):
            joint = int(np.argmax(np.abs(b - a)))
            if not np.abs(b - a)[joint] <= ROUND_OFF:
                raise ValueError(
                    f"the {what} of joint {joint + 1} jumps from {a[joint]:.9g} to {b[joint]:.9g} {unit} "
                    f"between trajectories {k + 1} and {k + 2} at t = {end:.6g} s"
                )
    return Sequence(tuple(trajectories))

"""Joint trajectories: callables that give position, speed and acceleration at any time.

A trajectory has a `duration` in [s] and is called with a time: `q, qd, qdd = trajectory(t)`, where t is a
number or an array of any shape and each result has one more dimension, the joints. Before 0 and after its
duration a move holds its end; sines go on.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats, real_array
from twin.robot.limits import ROUND_OFF
from twin.trajectories.limits import Quintic, check_peak, duration_of, finite_vector, limit_vector, quintic
from twin.trajectories.trapezoids import cruising_trapezoid, timed_trapezoid, trapezoid

__all__ = [
    "Trajectory",
    "cruising_trapezoid",
    "hold",
    "quintic",
    "sequence",
    "sines",
    "timed_trapezoid",
    "trapezoid",
]

Motion: TypeAlias = tuple[Floats, Floats, Floats]


class Trajectory(Protocol):
    """What sampling asks of a trajectory."""

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
    """Return the trajectory that stays at q, (n,) in [rad], for a duration in [s]."""
    q = finite_vector(q, "q")
    return Quintic(q, q, duration_of(duration, moving=False))


def sequence(*trajectories: Trajectory) -> Sequence:
    """Return trajectories one after the other.

    Raises:
        ValueError: none given, different numbers of joints, or a jump of position or speed at a join: no
            arm can follow one.
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

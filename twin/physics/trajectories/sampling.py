"""A trajectory as a controller sees it: samples at a fixed period.

Two forms. `sample` takes position, speed and acceleration from the trajectory at each instant. A controller
that holds its torque for a period cannot follow those exactly: the engine integrates in steps (semi-implicit
Euler), and its steps are not the trajectory's. `sample_semi_implicit` keeps the positions and derives the
speeds and accelerations that lead from one to the next *in the engine's own steps*,

    qd[k+1] = qd[k] + dt qdd[k],        q[k+1] = q[k] + dt qd[k+1],

so that a perfect model tracks it to round-off when the control period is the engine's step.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, real_array
from twin.base.errors import LimitError
from twin.base.formatting import short_repr
from twin.base.jit import compiled
from twin.physics.robot.limits import ROUND_OFF, check_position, far_outside, folded
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import position_text
from twin.physics.trajectories.joint_trajectories import Trajectory


@compiled
def follow_positions(target, first, last, dt, position, speed, acceleration):
    """Fill the motion that reaches each target from the state that rounding left, in the engine's order.

    Args:
        target: (N, n) positions.
        first: (n,) position one step before them.
        last: (n,) position one step after them.
        dt: of a step.
        position: (N, n) filled, as are the next two.
        speed: at the positions.
        acceleration: from each position to the next.
    """
    N, n = target.shape
    for i in range(n):
        q = target[0, i]
        qd = (q - first[i]) / dt
        for k in range(N):
            ahead = target[k + 1, i] if k + 1 < N else last[i]
            qdd = ((ahead - q) / dt - qd) / dt
            position[k, i], speed[k, i], acceleration[k, i] = q, qd, qdd
            qd = qd + dt * qdd
            q = q + dt * qd


MOST_SAMPLES = 10_000_000
"""Nearly three hours at 1 kHz; more is a mistaken unit, and would fill the memory."""


class Samples(NamedTuple):
    """A motion at N instants: t (N,) in [s]; q, qd, qdd (N, n) in [rad], [rad/s], [rad/s^2]."""

    t: Floats
    q: Floats
    qd: Floats
    qdd: Floats

    __repr__ = short_repr


class Reference(NamedTuple):
    """Desired state at one instant: q, qd, qdd (n,) in [rad], [rad/s], [rad/s^2]."""

    q: Floats
    qd: Floats
    qdd: Floats


UNKNOWN, NO_TABLE = np.zeros(0), np.zeros((0, 0))
UNKNOWN.setflags(write=False)
NO_TABLE.setflags(write=False)


class State(NamedTuple):
    """State at one instant, as a controller receives it.

    Attributes:
        t: time, in [s].
        q, qd: (n,) measured positions and speeds, in [rad], [rad/s].
        tau: (n,) torques that the motors gave since the sample before, referred to the joints, in [N m]: the
            demand within the limits of the motors.  0 at the first sample; empty if the caller has none.
        table: (rows, n) what the controller's `prepare` computed for this instant; empty without that.
        wrench: (6,) wrench `[f; mu]` of the environment on the tool, base axes, in [N, N m], as measured by a
            `twin.robot.drives.motors.ForceSensor`; exact without one; empty if the caller has none.
    """

    t: float
    q: Floats
    qd: Floats
    tau: Floats = UNKNOWN
    table: Floats = NO_TABLE
    wrench: Floats = UNKNOWN


def sample_times(duration: float, period: float) -> Floats:
    """Return 0, period, 2 period, ... up to the duration, rounded up to a whole period; (N,) in [s].

    Raises:
        ValueError: a period that is not positive, or more than `MOST_SAMPLES` samples.

    Example:
        >>> from twin.physics.trajectories.sampling import sample_times
        >>> sample_times(duration=0.9, period=0.25).tolist()
        [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if not (period > 0.0 and np.isfinite(period)):
        raise ValueError(f"expected a positive period in s, got {period}")
    periods = np.ceil(duration / period * (1.0 - 1e-12))
    if not periods < MOST_SAMPLES:
        raise ValueError(
            f"a duration of {duration:g} s at a period of {period:g} s makes {periods:g} samples, "
            f"at most {MOST_SAMPLES} are taken: are both in seconds?"
        )
    return np.arange(int(periods) + 1, dtype=np.float64) * period


def sample(trajectory: Trajectory, period: float) -> Samples:
    """Return a trajectory at t = 0, period, ... to its end, rounded up to a whole period.

    Args:
        trajectory: called once with all times.
        period: in [s].

    Raises:
        ValueError: see `sample_times`.

    Example:
        >>> import twin
        >>> move = twin.quintic([0.0], [1.0], duration=1.0)
        >>> samples = twin.sample(move, period=0.25)
        >>> samples.t.tolist(), samples.q[:, 0].round(4).tolist()
        ([0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 0.1035, 0.5, 0.8965, 1.0])
    """
    t = sample_times(trajectory.duration, period)
    return Samples(t, *trajectory(t))


def sample_semi_implicit(trajectory: Trajectory, period: float) -> Samples:
    """Return a trajectory's positions with the speeds and accelerations that obey the engine's recursion.

    The samples before the first and after the last are the trajectory's own: a move holds there, sines go
    on, so that `qd[0]` is the mean speed over the period before t = 0.

    Args:
        trajectory: only its positions are used.
        period: control period and engine step, in [s].

    Raises:
        ValueError: see `sample_times`.

    Example:
        >>> import twin
        >>> move = twin.quintic([0.0], [1.0], duration=1.0)
        >>> t, q, qd, qdd = twin.sample_semi_implicit(move, period=0.01)
        >>> bool(abs(q[1:] - q[:-1] - 0.01 * qd[1:]).max() < 1e-12)  # the step of semi-implicit Euler
        True
    """
    t = sample_times(trajectory.duration, period)
    q = trajectory(np.arange(-1, len(t) + 1, dtype=np.float64) * period)[0]
    return semi_implicit_from_positions(q[1:-1], period, before=q[0], after=q[-1])


def semi_implicit_from_positions(
    q: ArrayLike, period: float, *, before: ArrayLike | None = None, after: ArrayLike | None = None
) -> Samples:
    """Return sampled positions with the speeds and accelerations that obey the engine's recursion.

    In exact arithmetic `qd[k] = (q[k] - q[k-1]) / dt` and `qdd[k] = (qd[k+1] - qd[k]) / dt`. Rounded and
    integrated again that holds to the last bit while the steps are small, but where a speed is rounded
    otherwise than the step that it came from, the rest stays in the speed and the position runs off (by
    2e-13 rad over 20 s of a random walk). So each acceleration is taken from the integrated state, as the
    one that reaches the next given position, and the state is integrated in floating point in the engine's
    order: an error of rounding is gone after one step and none builds up. The recursion holds to the last
    bit, and the positions are the given ones, smooth or not, to an ulp or two.

    The rounding of the positions themselves shows in the accelerations, as about `1e-16 |q| / dt^2` (of the
    order of 1e-10 rad/s^2 at 1 kHz), which an arm follows like any other acceleration.

    Args:
        q: (N, n) positions in [rad], one period apart.
        period: control period and engine step, in [s].
        before: (n,) position one period before the first; None if the arm rests in `q[0]`.
        after: (n,) position one period after the last; None if the arm rests in `q[-1]`.

    Raises:
        ValueError: q is not of shape (N, n) with N >= 1 or not finite, `before` or `after` do not fit it, or
            the period is not positive.
    """
    target = np.array(real_array(q, "q"), order="C")
    if target.ndim != 2 or len(target) == 0:
        raise ValueError(f"expected q of shape (N, n), got {target.shape}")
    if not np.all(np.isfinite(target)):
        raise ValueError("expected finite q")
    if not (period > 0.0 and np.isfinite(period)):
        raise ValueError(f"expected a positive period in s, got {period}")
    first = np.array(target[0] if before is None else real_array(before, "before"))
    last = np.array(target[-1] if after is None else real_array(after, "after"))
    for name, given in (("before", first), ("after", last)):
        if given.shape != target.shape[1:] or not np.all(np.isfinite(given)):
            raise ValueError(f"expected {name} of shape {target.shape[1:]} and finite, got {given.tolist()}")

    dt, N = float(period), len(target)
    position, speed, acceleration = (np.empty_like(target) for _ in range(3))
    follow_positions(target, first, last, dt, position, speed, acceleration)
    return Samples(np.arange(N, dtype=np.float64) * dt, position, speed, acceleration)


def check_limits(robot: "Robot", samples: "Samples") -> None:
    """Check a sampled motion against the joint ranges and speeds of a robot, passive joints included.

    Args:
        robot: gives `q_min, q_max, passive_min, passive_max` in [rad] and `qd_max` in [rad/s].
        samples: N samples of n joints.

    Raises:
        LimitError: of the earliest sample outside, the joint, the time, the value and the limit. The first
            position beyond twice a joint's range comes before all others: it is likely to be in degrees.
        ValueError: samples of another number of joints.

    Example:
        >>> import twin
        >>> from twin.physics.trajectories.sampling import check_limits
        >>> still = twin.hold([0, 0, 0, 0, 0, 7.0], duration=0.1)
        >>> check_limits(twin.load("irb140"), twin.sample(still, period=0.01))
        Traceback (most recent call last):
            ...
        twin.base.errors.LimitError: joint_6 would be at 401.07 deg (7 rad) at t = 0 s (sample 0), its range
        is -400 deg (-6.98132 rad) to 400 deg (6.98132 rad)
    """
    q, qd = samples.q, samples.qd
    if q.ndim != 2 or q.shape[1] != robot.n:
        raise ValueError(f"expected samples.q of shape (N, {robot.n}), got {q.shape}")
    outside = ~((q >= robot.q_min - ROUND_OFF) & (q <= robot.q_max + ROUND_OFF))
    fast = ~(np.abs(qd) <= robot.qd_max * (1.0 + ROUND_OFF))
    beyond = folded(robot, q)
    bad = outside.any(axis=1) | beyond.any(axis=1) | fast.any(axis=1)
    if not bad.any():
        return
    far = far_outside(robot, q).any(axis=-1)  # tells more than the speed that it leads to before
    k = int(np.argmax(far if far.any() else bad))
    where = f" at t = {samples.t[k]:.6g} s (sample {k})"
    check_position(robot, q[k], where)
    joint = int(np.argmax(fast[k]))
    kind = robot.joint_kinds[joint]
    raise LimitError(
        f"{robot.joint_names[joint]} would move at {position_text(qd[k, joint], kind, '/s')}{where}, "
        f"its limit is {position_text(robot.qd_max[joint], kind, '/s')}"
    )


def check_radians(robot: "Robot", samples: "Samples") -> None:
    """Check that a motion is not in degrees: no position may lie beyond twice its joint's range.

    Raises:
        LimitError: as `check_limits`.

    Example:
        >>> import twin
        >>> from twin.physics.trajectories.sampling import check_radians
        >>> still = twin.hold([30, 0, 0, 0, 0, 0], duration=0.1)
        >>> check_radians(twin.load("irb140"), twin.sample(still, period=0.01))
        Traceback (most recent call last):
            ...
        twin.base.errors.LimitError: joint_1 would be at 1718.87 deg (30 rad) at t = 0 s (sample 0), its range
        is -180 deg (-3.14159 rad) to 180 deg (3.14159 rad); angles are in radians, are these degrees?
    """
    if far_outside(robot, samples.q).any():
        check_limits(robot, samples)

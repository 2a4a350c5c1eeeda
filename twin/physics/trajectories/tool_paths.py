"""Tool paths: callables that give the tool's pose, its twist and the twist's derivative at any time.

A tool path has a `duration` in [s] and is called with a time, a number or an array of any shape:
`T_base_tool, twist, twist_rate = path(t)`. It is at rest at both ends, without acceleration there, and holds
its ends outside. `through_poses` makes one through a few poses with a stop in each, `straight_line` one whose
acceleration jumps; `twin.logs.through_recording` makes one of a timed recording.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from twin.base.arrays import Floats, real_array
from twin.base.formatting import short_repr
from twin.physics.rotations.rotations import UNIT_TOLERANCE, pose_matrix, rigid_poses
from twin.physics.trajectories.joint_trajectories import Trapezoid, cruising_trapezoid, quintic_law

SPEED = 0.5
"""The tool's default peak speed, in [m/s]: twice what ABB's manual mode allows, and with `ANGULAR_SPEED`
about half of what the IRB 140's axes can do on the thesis' poses."""

ANGULAR_SPEED = 1.5
"""The tool's default peak angular speed, in [rad/s]."""


class ToolMotion(NamedTuple):
    """The motion of the tool at some times.

    Attributes:
        T_base_tool: (..., 4, 4) pose of the tool in the base frame, positions in [m].
        twist: (..., 6) `[v; omega]` of the tool origin and the tool, base frame, in [m/s] and [rad/s].
        twist_rate: (..., 6) its time derivative, in [m/s^2] and [rad/s^2].
    """

    T_base_tool: Floats
    twist: Floats
    twist_rate: Floats


class ToolPath(Protocol):
    """Interface of a tool path."""

    @property
    def duration(self) -> float:
        """The time from start to end, in [s]."""
        ...

    def __call__(self, t: ArrayLike, /) -> ToolMotion:
        """Return the tool's motion at the times t (...), in [s]."""
        ...


@dataclass(frozen=True, eq=False)
class PosePath:
    """Straight lines and slerps from pose to pose, at rest in each; make it with `through_poses`.

    Attributes:
        T: (K, 4, 4) the poses.
        turns: (K-1, 3) rotation vectors from pose to pose, in base axes, in [rad].
        times: (K,) when each pose is reached, in [s], from 0.
    """

    T: Floats
    turns: Floats
    times: Floats

    __repr__ = short_repr

    @property
    def duration(self) -> float:
        """The time from the first to the last pose, in [s]."""
        return float(self.times[-1])

    def __call__(self, t: ArrayLike, /) -> ToolMotion:
        """Return the tool's motion at the times t (...), in [s], by the quintic time law in each segment."""
        t = real_array(t, "t")
        k = np.searchsorted(self.times[1:-1], t, side="right")
        duration = np.diff(self.times)[k]
        T = np.where(duration > 0.0, duration, 1.0)  # no time: a segment that goes nowhere
        s, ds, dds = quintic_law((t - self.times[k]) / T)
        way = np.concatenate([np.diff(self.T[:, :3, 3], axis=0), self.turns], axis=1)[k]
        return line_motion(self.T[k], way, s, ds / T, dds / T**2)


def line_motion(T_start: Floats, way: Floats, s: Floats, ds: Floats, dds: Floats) -> ToolMotion:
    """Return the motion along a straight line with a turn about a fixed axis, both by one time law s(t).

    With `p = p0 + d s` and `R = exp(turn s) R0` the axis is constant, so that `omega = turn ds/dt` and its
    derivative needs no other term.

    Args:
        T_start: (..., 4, 4) pose at s = 0.
        way: (..., 6) displacement d in [m] and rotation vector `turn` in [rad] to s = 1, in base axes.
        s: (...) the time law.
        ds: (...) its time derivative, in [1/s].
        dds: (...) its second time derivative, in [1/s^2].
    """
    turned = Rotation.from_rotvec((way[..., 3:] * s[..., None]).reshape(-1, 3)).as_matrix()
    pose = np.array(np.broadcast_to(T_start, (*s.shape, 4, 4)))
    pose[..., :3, :3] = turned.reshape(*s.shape, 3, 3) @ T_start[..., :3, :3]
    pose[..., :3, 3] += way[..., :3] * s[..., None]
    return ToolMotion(pose, way * ds[..., None], way * dds[..., None])


def easing(t: Floats) -> tuple[float, float, float]:
    """Return duration, ease_in and ease_out of a recording, for `eased_time`: its first and last interval.

    Args:
        t: (N,) rising times in [s], the first 0, N >= 2.
    """
    duration = float(t[-1])
    return duration, float(min(t[1], 0.5 * duration)), float(min(duration - t[-2], 0.5 * duration))


def eased_time(
    t: ArrayLike, duration: float, ease_in: float, ease_out: float
) -> tuple[Floats, Floats, Floats]:
    """Return a time u(t) that starts and stops smoothly, with its first two derivatives.

    Its rate is `3 x^2 - 2 x^3` with `x = t / ease_in` at the start, 1 in the middle, the mirror image at the
    end: rate and second derivative are zero at both ends and continuous throughout. A path p(u) with any
    speed at its ends is therefore at rest, without acceleration, as p(u(t)).

    Args:
        t: (...) in [s], held at its ends outside [0, duration].
        duration: in [s], at least ease_in + ease_out.
        ease_in: in [s], positive.
        ease_out: in [s], positive.
    """
    t = np.clip(real_array(t, "t"), 0.0, duration)
    x, y = np.minimum(t / ease_in, 1.0), np.minimum((duration - t) / ease_out, 1.0)
    lead, lag = ease_in * _lag(x), ease_out * (0.5 - _lag(y))
    rate = (x * x * (3.0 - 2.0 * x)) * (y * y * (3.0 - 2.0 * y))
    return t - lead - lag, rate, 6.0 * x * (1.0 - x) / ease_in - 6.0 * y * (1.0 - y) / ease_out


def _lag(x: Floats) -> Floats:
    """Return the lag of u behind t: the integral of `1 - (3 x^2 - 2 x^3)` from 0, 1/2 at x = 1."""
    return x - x**3 + 0.5 * x**4


def through_poses(
    poses: ArrayLike,
    *,
    durations: ArrayLike | None = None,
    speed: float = SPEED,
    angular_speed: float = ANGULAR_SPEED,
) -> PosePath:
    """Return the path through a few tool poses, each segment from rest to rest.

    One quintic time law drives the straight line and the slerp of a segment, so that both end together. The
    tool turns in the shorter direction; at exactly half a turn both are equal, and one is chosen.

    Args:
        poses: (K, 4, 4) matrices or (K, 7) pose vectors `[x y z a b c d]`, K >= 2, in the base frame, [m].
        durations: (K-1,) of the segments, or one for all, in [s]; None for the shortest within the speeds.
        speed: largest speed of the tool's origin, in [m/s].
        angular_speed: largest angular speed of the tool, in [rad/s].

    Raises:
        ValueError: poses of wrong shape or not rigid, or a duration or a speed that is not positive.

    Example:
        >>> import twin
        >>> from twin.physics.trajectories.tool_paths import through_poses
        >>> poses = [[0.5, 0, 0.7, 1, 0, 0, 0], [0.5, 0.2, 0.7, 1, 0, 0, 0]]
        >>> path = through_poses(poses, durations=2.0)
        >>> path(1.0).T_base_tool[:3, 3].round(4).tolist()
        [0.5, 0.1, 0.7]
    """
    T = path_poses(poses)
    if len(T) < 2:
        raise ValueError(f"expected at least 2 poses, got {len(T)}")
    R = Rotation.from_matrix(T[:, :3, :3])
    turns = (R[1:] * R[:-1].inv()).as_rotvec()
    distance = np.linalg.norm(np.diff(T[:, :3, 3], axis=0), axis=1)
    angle = np.linalg.norm(turns, axis=1)
    if durations is None:
        if not (speed > 0.0 and angular_speed > 0.0):
            raise ValueError(f"expected positive speeds, got {speed} m/s and {angular_speed} rad/s")
        lengths = 15.0 / 8.0 * np.maximum(distance / speed, angle / angular_speed)
    else:
        lengths = np.broadcast_to(real_array(durations, "durations"), (len(T) - 1,))
        still = (distance == 0.0) & (angle == 0.0)
        if not np.all(np.isfinite(lengths) & ((lengths > 0.0) | (still & (lengths == 0.0)))):
            raise ValueError(f"expected positive, finite durations in s, got {lengths}")
    return PosePath(T, turns, np.concatenate([[0.0], np.cumsum(lengths)]))


def path_poses(poses: ArrayLike) -> Floats:
    """Return (K, 4, 4) poses from matrices or pose vectors, orthogonal to round-off; six decimals will do.

    Example:
        >>> from twin.physics.trajectories.tool_paths import path_poses
        >>> T = path_poses([[0.5, 0, 0.7, 1, 0, 0, 0], [0.5, 0.2, 0.7, 0.6, 0, 0, 0.8]])
        >>> T.shape, T[1, 0].round(4).tolist()
        ((2, 4, 4), [-0.28, -0.96, 0.0, 0.5])
    """
    poses = np.array(real_array(poses, "poses"))
    if poses.ndim == 2 and poses.shape[1] == 7:
        if not np.all(np.isfinite(poses)):
            raise ValueError("expected finite poses")
        return pose_matrix(poses)
    if poses.ndim != 3 or poses.shape[1:] != (4, 4):
        raise ValueError(f"expected poses of shape (K, 4, 4) or (K, 7), got {poses.shape}")
    poses = rigid_poses(poses, "poses", within=UNIT_TOLERANCE)
    poses[:, :3, :3] = Rotation.from_matrix(poses[:, :3, :3]).as_matrix()
    poses[:, 3] = 0.0, 0.0, 0.0, 1.0
    return poses


@dataclass(frozen=True, eq=False)
class StraightLine:
    """A straight line and a slerp under one trapezoidal time law; make it with `straight_line`.

    Attributes:
        T_start: (4, 4) pose at the start.
        way: (6,) displacement in [m] and rotation vector in [rad] to the end, in base axes.
        law: the time law, one coordinate from 0 to 1.
    """

    T_start: Floats
    way: Floats
    law: Trapezoid

    __repr__ = short_repr

    @property
    def duration(self) -> float:
        """The time from start to end, in [s]."""
        return self.law.duration

    def __call__(self, t: ArrayLike, /) -> ToolMotion:
        """Return the tool's motion at the times t (...), in [s]."""
        s, ds, dds = (part[..., 0] for part in self.law(t))
        return line_motion(self.T_start, self.way, s, ds, dds)


def straight_line(T_start: ArrayLike, T_end: ArrayLike, *, speed: float, acceleration: float) -> StraightLine:
    """Return the path from pose to pose along a straight line, from rest to rest.

    Speed and acceleration are those along the axis of the base frame on which the tool origin goes furthest,
    as in the manual; the other axes and the turn, if there is one, follow in proportion. The tool turns the
    shorter direction; at exactly half a turn both are equal, and one is chosen.

    Args:
        T_start: (4, 4) pose of the tool in the base frame.
        T_end: (4, 4) pose to reach.
        speed: v_c in [m/s].
        acceleration: a_c in [m/s^2].

    Raises:
        LimitError: the line is too short to reach the speed with this acceleration.
        ValueError: poses that are not rigid or in one place, or a speed or acceleration not positive.

    Example:
        >>> import twin
        >>> from twin.physics.trajectories.tool_paths import straight_line
        >>> start, end = twin.pose_matrix([[0.5, 0, 0.7, 1, 0, 0, 0], [0.5, 0.3, 0.7, 1, 0, 0, 0]])
        >>> line = straight_line(start, end, speed=0.2, acceleration=1.0)
        >>> round(line.duration, 4)  # 0.3 / 0.2 + 0.2 / 1, in s
        1.7

    Source: Ljubljana lab manual, eq. (5.70)-(5.82) and its template trajectory.m.
    """
    T = path_poses(np.stack([real_array(T_start, "T_start"), real_array(T_end, "T_end")]))
    if not np.any(T[0, :3, 3] != T[1, :3, 3]):
        raise ValueError("expected a line of some length, got a start and an end in one place")
    timing = cruising_trapezoid(T[0, :3, 3], T[1, :3, 3], speed, acceleration, unit="m")
    turn = Rotation.from_matrix(T[1, :3, :3] @ T[0, :3, :3].T).as_rotvec()
    way = np.concatenate([T[1, :3, 3] - T[0, :3, 3], turn])
    law = Trapezoid(np.zeros(1), np.ones(1), timing.duration, timing.acceleration_time)
    return StraightLine(T[0], way, law)

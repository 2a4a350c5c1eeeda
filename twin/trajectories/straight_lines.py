"""A tool path along one straight line with the trapezoidal speed of the laboratory.

A tool path like those of `twin.trajectories.tool_paths`, but its acceleration jumps: at both ends and at both
ends of the cruise, where the value to the right is given.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from twin.arrays import Floats, real_array
from twin.trajectories.tool_paths import ToolMotion, line_motion, path_poses
from twin.trajectories.trapezoids import Trapezoid, cruising_trapezoid


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
    shorter way; at exactly half a turn both ways are as short, and one is taken.

    Args:
        T_start: (4, 4) pose of the tool in the base frame.
        T_end: (4, 4) pose to reach.
        speed: v_c in [m/s].
        acceleration: a_c in [m/s^2].

    Raises:
        LimitError: the line is too short to reach the speed with this acceleration.
        ValueError: poses that are not rigid or in one place, or a speed or acceleration not positive.

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

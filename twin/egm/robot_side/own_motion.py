"""What a robot does between two instructions: it stands, or goes to where the next one has to begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from twin.arrays import Floats
from twin.egm.robot_side.guided_arm import standing
from twin.trajectories.joint_trajectories import quintic
from twin.trajectories.sampling import Samples, recursion_consistent

if TYPE_CHECKING:
    from twin.robot.robot import Robot

SHARE_OF_SPEED = 0.25
"""Of the joints' largest speeds, on the way (ours)."""

SHORTEST = 0.5
"""[s], of the way."""

THERE = 1e-9
"""[rad]."""


class OwnMotion:
    """A reference that rests, and is told where to go meanwhile.

    Attributes:
        q: (n,) where it is, in [rad].

    Args:
        robot: its speed limits bound the way.
        q: (n,) where it begins, at rest, in [rad].
        period: of the samples, in [s].
    """

    def __init__(self, robot: Robot, q: Floats, period: float) -> None:
        self._period = period
        self._speed = SHARE_OF_SPEED * np.where(np.isfinite(robot.qd_max), robot.qd_max, 4.0)
        self.rest(q)

    def rest(self, q: Floats) -> None:
        """Be at q (n,), in [rad], at rest."""
        self.q = np.array(q, dtype=np.float64)
        self._way: Samples | None = None
        self._k = 0

    @property
    def rests(self) -> bool:
        """Whether it is not on its way."""
        return self._way is None

    def is_at(self, q: Floats) -> bool:
        """Whether it is at q (n,), or on its way there."""
        end = self.q if self._way is None else self._way.q[-1]
        return bool(np.all(np.abs(end - q) <= THERE))

    def go_to(self, q: Floats) -> None:
        """Go to q (n,), in [rad], and rest there."""
        highest = 1.875 * np.max(np.abs(q - self.q) / self._speed)  # of a quintic, times its mean speed
        move = quintic(self.q, q, duration=max(SHORTEST, float(highest)))
        self._way, self._k = recursion_consistent(move, self._period), 0

    def samples(self, count: int) -> Samples:
        """The next so many samples; their times are none."""
        if self._way is None:
            return standing(self.q, count)
        way = Samples(*(series[self._k : self._k + count] for series in self._way))
        self._k += count
        missing = count - len(way.q)
        if self._k < len(self._way.q):
            self.q = self._way.q[self._k]
            return way
        self.rest(self._way.q[-1])
        return Samples(*(np.concatenate(pair) for pair in zip(way, standing(self.q, missing), strict=True)))

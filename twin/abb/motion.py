"""Motion of the arm along planned paths, with a clock on the path that stops, continues and slows down."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from twin.arrays import Floats
from twin.rapid.planning import Plan
from twin.rapid.recorder import Move
from twin.rapid.targets import payload_of
from twin.robot.robot import Payload
from twin.trajectories.joint_trajectories import Trajectory
from twin.trajectories.sampling import Samples, semi_implicit_from_positions

RAMP = 0.2
"""Time in which the clock on the path goes from full speed to a stop, in [s] (ours)."""

NEAR_PATH = np.radians(0.1)
"""Largest distance of a joint from a stored path from which it may continue, in [rad] (ours)."""


@dataclass(eq=False)
class Path:
    """Planned path from rest to rest.

    Attributes:
        motion: joint angles over time.
        starts: times at which its moves begin, in [s].
        moves: the moves.
        begun: number of moves that have begun.
    """

    motion: Trajectory
    starts: tuple[float, ...]
    moves: tuple[Move, ...]
    begun: int = 0

    @staticmethod
    def of(plan: Plan) -> Path:
        """Return the path of a plan."""
        return Path(plan.motion, plan.starts, tuple(one.move for one in plan.moves))

    def payload(self, k: int) -> Payload | None:
        """Return the payload of a move."""
        return payload_of(self.moves[k].tool, self.moves[k].settings.load)


class Motion:
    """Motion of the arm: paths one after the other, and the clock on them.

    Attributes:
        q: (n,) reference of the next sample, in [rad].
        paths: paths that are not completed; the first one is executed.
        t: time on the first path, in [s].
        rate: present speed of the clock on the path, 0 to 1; it changes by 1 in `RAMP`.
        goal: rate that is wanted.

    Args:
        q: (n,) joint angles at the beginning, at rest, in [rad].
        period: sampling period, in [s].
    """

    def __init__(self, q: Floats, period: float) -> None:
        self.q, self._before, self._period = q.copy(), q.copy(), period
        self.paths: deque[Path] = deque()
        self._stored: list[tuple[deque[Path], float, Floats]] = []
        self.t, self.rate, self.goal = 0.0, 1.0, 1.0

    @property
    def rests(self) -> bool:
        """Whether the arm has no path, or is stopped on it."""
        return not self.paths or self.rate == 0.0

    def begun(self) -> Iterator[tuple[Path, int]]:
        """Yield the moves of the present path that have begun since the last call, with their path."""
        if self.paths:
            path = self.paths[0]
            while path.begun < len(path.moves) and path.starts[path.begun] <= self.t + 1e-9:
                path.begun += 1
                yield path, path.begun - 1

    def clear(self) -> None:
        """Forget all paths; the arm must be at rest."""
        self.paths.clear()
        self.t = 0.0

    def store(self) -> None:
        """Put the paths aside; the arm must be at rest."""
        self._stored.append((self.paths, self.t, self.q.copy()))
        self.paths, self.t = deque(), 0.0

    def restore(self) -> float:
        """Take the paths back that were stored last; return the distance of the arm from there, in [rad].

        Beyond `NEAR_PATH` they stay aside.
        """
        paths, t, q = self._stored[-1]
        off = float(np.max(np.abs(self.q - q)))
        if off <= NEAR_PATH:
            self._stored.pop()
            self.paths, self.t = paths, t
        return off

    @property
    def is_stored(self) -> bool:
        """Whether a path is stored."""
        return bool(self._stored)

    def samples(self, count: int) -> Samples:
        """Return the next `count` samples; their times are undefined."""
        targets = np.empty((count + 1, len(self.q)))
        targets[0], k = self.q, 1
        while k <= count and self.paths:
            path, times = self.paths[0], []
            while k + len(times) <= count and self.paths:
                self._change_rate()
                self.t += self.rate * self._period
                times.append(self.t)
                if self.t >= path.motion.duration * (1.0 - 1e-12):
                    self.paths.popleft()
                    self.t = 0.0
                    break
            targets[k : k + len(times)] = path.motion(np.minimum(times, path.motion.duration))[0]
            k += len(times)
        if not self.paths:
            self.rate = self.goal  # nothing moves that would need a ramp
        targets[k:] = targets[k - 1]
        before, self._before, self.q = self._before, targets[-2].copy(), targets[-1].copy()
        return semi_implicit_from_positions(targets[:-1], self._period, before=before, after=targets[-1])

    def _change_rate(self) -> None:
        step = self._period / RAMP
        self.rate += min(max(self.goal - self.rate, -step), step)

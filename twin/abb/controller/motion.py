"""Motion of the arm along planned paths with triggers, by a clock that stops, continues and slows down."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from twin.abb.controller.jogging import Jog
from twin.abb.rapid.arguments import Arguments
from twin.abb.rapid.frames import frame_of
from twin.abb.rapid.planning import REST, Begin, Limits, plan_chain, stops
from twin.abb.rapid.targets import Segment
from twin.base.arrays import Floats
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.fastest_motion import PathMotion
from twin.physics.trajectories.sampling import Samples, semi_implicit_from_positions

RAMP = 0.2
"""Time in which the clock on the path goes from full speed to a stop, in [s] (ours)."""

SAME_SPEED = 1e-3
"""Largest relative difference of the speeds on a path and its extension where the arm changes over (ours)."""

NEAR_PATH = np.radians(0.1)
"""Largest distance of a joint from a stored path from which it may continue, in [rad] (ours)."""

REDUCED = 0.25
"""Largest speed of the tool in manual mode with reduced speed, in [m/s] (ISO 10218-1)."""

BACK, BACK_TIME = 3e-3, 0.2  # way of the tool back after a contact, in [m], and time for it, in [s] (ours)

STEP = 2e-3
"""Time between the places of the tool of which the length of the way is made, in [s]."""

OPTIONS = "t2", "t3", "t4", "t5", "t6", "t7", "t8"
"""Optional arguments of moves that are triggers."""


@dataclass(frozen=True, eq=False)
class Trigger:
    """Trigger of a move.

    Attributes:
        act: function that is called.
        before: way of the tool in [m], or time in [s], before the end of the move, or behind its beginning.
        from_start: whether the beginning counts.
        by_time: whether `before` is a time.
        lead: time by which it comes earlier, in [s].
    """

    act: Callable[[], object]
    before: float = 0.0
    from_start: bool = False
    by_time: bool = False
    lead: float = 0.0


class Timed(NamedTuple):
    """Trigger with its time on a path, in [s], and the index of its move."""

    t: float
    k: int
    trigger: Trigger


def timed(
    robot: Robot, segments: Sequence[Segment], motion: PathMotion, starts: Sequence[float]
) -> tuple[list[Timed], float]:
    """Return the triggers of the moves of a path with their times, and the largest speed of a tool in [m/s].

    Args:
        robot: the arm.
        segments: the moves.
        motion: joint angles over time.
        starts: times at which the moves begin, in [s].
    """
    found, top_speed = [], 0.0
    ends = (*starts[1:], motion.duration)
    for k, (segment, start, end) in enumerate(zip(segments, starts, ends, strict=True)):
        t = np.linspace(start, end, max(2, int(np.ceil((end - start) / STEP)) + 1))
        places = forward_kinematics(robot, motion(t)[0], frame_of(segment.move.tool["tframe"]))[:, :3, 3]
        lengths = np.linalg.norm(np.diff(places, axis=0), axis=1)
        if end > start:
            top_speed = max(top_speed, float(lengths.max() / (t[1] - t[0])))
        way = np.concatenate([[0.0], np.cumsum(lengths)])
        for one in segment.move.triggers:
            if one.by_time:
                at = start + one.before if one.from_start else end - one.before
            else:
                at = np.interp(one.before if one.from_start else way[-1] - one.before, way, t)
            found.append(Timed(float(np.clip(at - one.lead, start, end)), k, one))
    return found, top_speed


def triggers_of(given: Arguments, place: Mapping[str, int]) -> tuple[Trigger, ...]:
    """Return the triggers among the arguments of a move."""
    found = [given.opaque(place["Trigg_1"], Trigger, None)] if "Trigg_1" in place else []
    found += [given.interpreter.evaluate(given.named[one].value) for one in OPTIONS if one in given]
    return tuple(one for one in found if isinstance(one, Trigger))


@dataclass(eq=False)
class Path:
    """Planned path that ends at rest.

    Attributes:
        segments: its moves, with their joint angles.
        motion: joint angles over time.
        starts: times at which its moves begin, in [s].
        duration: its duration with the rest at its end, in [s].
        straight: index of a move, place on its segment in [m], and interval of the motion, where the moves
            begin behind their corners.
        open: whether the last move does not stop by itself, so that further moves may follow.
        top_speed: largest speed of the tools of its moves, in [m/s].
        begun: number of moves that have begun.
        waiting: what happens on the way and has not happened yet.
    """

    segments: list[Segment]
    motion: PathMotion
    starts: tuple[float, ...]
    duration: float
    straight: list[tuple[int, float, int]]
    open: bool
    top_speed: float
    begun: int = 0
    waiting: list[Timed] = field(default_factory=list)

    @staticmethod
    def planned(robot: Robot, segments: list[Segment], limits: Limits, begin: Begin = REST) -> Path | None:
        """Return the path of moves; None if they go nowhere.

        Raises:
            RapidError: a move cannot keep the limits.
        """
        chain = plan_chain(robot, segments, limits, begin)
        if chain.motion is None:
            return None
        straight = [(k, at, i) for (k, i), at in zip(chain.straight, chain.at, strict=True)]
        duration = chain.motion.duration + limits.settling
        is_open = not stops(segments[-1])
        starts = tuple(chain.starts.tolist())
        waiting, speed = timed(robot, segments, chain.motion, starts)
        return Path(segments, chain.motion, starts, duration, straight, is_open, speed, waiting=waiting)

    def rest(self, t: float) -> Rest:
        """Return the path from the last place, before a time in [s], where a move begins behind a corner."""
        now = self.motion.place(t)
        k, at, i = [one for one in self.straight if self.motion.places[one[2]] <= now + 1e-12][-1]
        first = self.segments[k]
        if first.move.duration is not None:  # what is left of a programmed time
            end = self.starts[k + 1] if k + 1 < len(self.starts) else self.motion.duration
            left = max(end - float(self.motion.times[i]), 1e-3)
            first = first._replace(move=replace(first.move, duration=left))
        rest = [first, *self.segments[k + 1 :]]
        return Rest(k, float(self.motion.places[i]), rest, Begin(at, float(self.motion.x[i])))


class Rest(NamedTuple):
    """Rest of a path: index of its first move, place of its beginning, segments, and beginning in motion."""

    first: int
    place: float
    segments: list[Segment]
    begin: Begin


class Motion:
    """Motion of the arm: paths one after the other, and the clock on them.

    Attributes:
        q: (n,) reference of the next sample, in [rad].
        paths: paths that are not completed; the first one is executed.
        t: time on the first path, in [s].
        rate: present speed of the clock on the path, 0 to 1; it changes by 1 in `RAMP`.
        goal: rate that is wanted.
        top_speed: largest speed of the tool, in [m/s].
        completed: number of paths that were completed.
        jog: jogging, None while nobody jogs the arm.
        due: what is to happen now.

    Args:
        q: (n,) joint angles at the beginning, at rest, in [rad].
        period: sampling period, in [s].
    """

    def __init__(self, q: Floats, period: float) -> None:
        self.q, self._before, self._period = q.copy(), q.copy(), period
        self.paths: deque[Path] = deque()
        self._stored: list[tuple[deque[Path], float, Floats]] = []
        self._back: list[float] = []  # times on the path, while the arm goes back
        self.t, self.rate, self.goal, self.top_speed = 0.0, 1.0, 1.0, math.inf
        self.completed = 0
        self.jog: Jog | None = None
        self.due: list[Trigger] = []

    @property
    def rests(self) -> bool:
        """Whether the arm has no path, or is stopped on it, and nobody jogs it."""
        return self.jog is None and not self._back and (not self.paths or self.rate == 0.0)

    def begun(self) -> Iterator[tuple[Path, int]]:
        """Yield the moves of the present path that have begun since the last call, with their path."""
        if self.paths:
            path = self.paths[0]
            while path.begun < len(path.segments) and path.starts[path.begun] <= self.t + 1e-9:
                path.begun += 1
                yield path, path.begun - 1

    @property
    def ahead(self) -> int:
        """Number of moves that are planned and have not begun."""
        return sum(len(path.segments) - path.begun for path in self.paths)

    def extend(self, rest: Rest, path: Path, new: Path) -> bool:
        """Replace the rest of the last path by a longer one; return whether it was not too late.

        It is too late where the arm brakes for the end of the path already.
        """
        if not self.paths or self.paths[-1] is not path:
            return False
        if path is self.paths[0]:
            place = path.motion.place(self.t)
            after = [i for k, _, i in new.straight if k >= len(rest.segments)]  # behind the former last move
            before, _ = path.motion.speed_and_time(place)
            speed, t = new.motion.speed_and_time(place - rest.place)
            limit = new.motion.places[after[0]] if after else 0.0
            if place - rest.place > limit or not abs(speed - before) <= SAME_SPEED * before:
                return False
            self.t = t
            # What counts from the beginning of a move is due where it was; what counts from its end moves.
            kept = [
                one._replace(t=new.motion.speed_and_time(path.motion.place(one.t) - rest.place)[1])
                for one in path.waiting
                if one.trigger.from_start
            ]
            added = [
                one for one in new.waiting
                if one.k >= len(rest.segments) or (not one.trigger.from_start and one.t > t)
            ]  # fmt: skip
            new.waiting = kept + added
        new.begun = max(path.begun - rest.first, 0)
        self.paths[-1] = new
        return True

    @property
    def is_braking_time(self) -> bool:
        """Whether the arm would stop just behind the end of its move if its clock stopped now.

        At the end of a path it stops by itself.
        """
        if not self.paths or not 0 < (path := self.paths[0]).begun < len(path.starts):
            return False
        return path.starts[path.begun] - self.t <= 0.5 * self.rate**2 * RAMP - self._period

    @property
    def off_path(self) -> float:
        """Largest distance of a joint from the place where the arm was stopped on its path, in [rad]."""
        if not self.paths:
            return 0.0
        motion = self.paths[0].motion
        return float(np.max(np.abs(self.q - motion(np.array([min(self.t, motion.duration)]))[0][0])))

    def rest(self, q: Floats) -> None:
        """Rest at q (n,), in [rad], where something else moved the arm."""
        self.q, self._before = q.copy(), q.copy()

    def clear(self) -> None:
        """Forget all paths; the arm must be at rest."""
        self.paths.clear()
        self.t = 0.0

    def back_off(self, robot: Robot) -> None:
        """Let an arm that rests on its path go back, until its tool is `BACK` away, by 5 s at most."""
        if self.rate == 0.0 and self.paths and self.jog is None and self.off_path <= NEAR_PATH:
            path, t = self.paths[0], np.arange(self.t, max(self.t - 5.0, 0.0) - STEP, -STEP).clip(0.0)
            q = path.motion(np.minimum(t, path.motion.duration))[0]
            tool = frame_of(path.segments[path.begun - 1].move.tool["tframe"])
            p = forward_kinematics(robot, q, tool)[:, :3, 3]
            k = np.argmax([*(np.linalg.norm(p - p[0], axis=1) >= BACK)[:-1], True])
            x, step = np.linspace(0.0, 1.0, round(BACK_TIME / self._period) + 1)[1:], t[k] - self.t
            self._back = (self.t + step * x**3 * (10.0 - 15.0 * x + 6.0 * x**2)).tolist()

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
            self.paths, self.t, self.rate = paths, t, 0.0  # it was stopped in motion
        return off

    @property
    def is_stored(self) -> bool:
        """Whether a path is stored."""
        return bool(self._stored)

    def samples(self, count: int) -> Samples:
        """Return the next `count` samples; their times are undefined."""
        targets = np.empty((count + 1, len(self.q)))
        targets[0], k = self.q, 1
        if self.jog is not None:
            targets[1:], k = self.jog.positions(count), count + 1
            if self.jog.at_rest:
                self.jog = None
        if self._back:
            times, self._back = self._back[:count], self._back[count:]
            motion, k, self.t = self.paths[0].motion, 1 + len(times), times[-1]
            targets[1:k] = motion(np.minimum(times, motion.duration))[0]
        stands = self.rate == self.goal == 0.0  # perhaps off its path, by jogging
        while k <= count and self.paths and not stands:
            path, times = self.paths[0], []
            while k + len(times) <= count and self.paths:
                self._change_rate()
                self.t += self.rate * self._period
                times.append(self.t)
                if self.t >= path.duration * (1.0 - 1e-12):
                    self._pass(path, math.inf)
                    self.paths.popleft()
                    self.t = 0.0
                    self.completed += 1
                    break
            else:
                self._pass(path, self.t)
            targets[k : k + len(times)] = path.motion(np.minimum(times, path.motion.duration))[0]
            k += len(times)
        if not self.paths:
            self.rate = self.goal  # nothing moves that would need a ramp
        targets[k:] = targets[k - 1]
        before, self._before, self.q = self._before, targets[-2].copy(), targets[-1].copy()
        return semi_implicit_from_positions(targets[:-1], self._period, before=before, after=targets[-1])

    def _pass(self, path: Path, t: float) -> None:
        """Take note of what happens until a time on a path."""
        if path.waiting:
            self.due += [one.trigger for one in path.waiting if one.t <= t]
            path.waiting = [one for one in path.waiting if one.t > t]

    def _most(self) -> float:
        """Return the rate at which the tool has its largest speed on the present path."""
        fastest = self.paths[0].top_speed if self.paths else 0.0
        return self.top_speed / fastest if fastest > self.top_speed else 1.0

    def _change_rate(self) -> None:
        step, most = self._period / RAMP, self._most()
        if self.t == 0.0:  # a path begins at rest
            self.rate = min(self.rate, most, math.ceil(self.goal))
        self.rate += min(max(min(self.goal, most) - self.rate, -step), step)


class Step:
    """Step of the execution: it stops where the present move ends, or the next one if the arm rests."""

    def __init__(self, motion: Motion) -> None:
        self._motion, self._completed, self.brakes = motion, motion.completed, False

    def is_over(self) -> bool:
        """Return whether the arm has made the move; called once a cycle."""
        motion = self._motion
        if self.brakes:
            return motion.rests
        self.brakes = motion.is_braking_time
        return motion.completed != self._completed

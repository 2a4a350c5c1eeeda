"""Logs shown over time: which sample of which log is seen when, in a film as in a window."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from twin.errors import TwinError
from twin.logs.figures import tool_distance
from twin.logs.log import Log
from twin.robot.limits import folded

MOST_LOGS = 6
"""What can be told apart by colour."""


class Track:
    """What can be shown of a log: its samples with an arm that stands somewhere.

    A run that diverged may end in samples that are not finite; they are left out.

    Args:
        log: of at least one sample.
        name: to tell it from the others.

    Attributes:
        log, name: the same.
        samples: (M,) the samples that can be shown.
        t: (M,) their times, in [s].

    Raises:
        TwinError: there is no such sample.
    """

    def __init__(self, log: Log, name: str) -> None:
        self.log, self.name = log, name
        finite = np.nonzero(np.isfinite(log.q).all(axis=1))[0]
        self.samples = finite[~folded(log.robot, log.q[finite]).any(axis=1)]
        if len(self.samples) == 0:
            raise TwinError(f"nothing of {name} can be shown: no sample of its joints' positions is finite")
        self.t = log.t[self.samples]
        self._halfway = 0.5 * (self.t[1:] + self.t[:-1])

    def sample(self, time: float) -> int:
        """The sample nearest to a time, in [s]; before and after its own time a log stands still."""
        return int(self.samples[np.searchsorted(self._halfway, time)])

    @property
    def note(self) -> str:
        """What of the log is not shown, in a sentence; empty where all of it is."""
        count = len(self.log.t)
        if len(self.samples) == count:
            return ""
        left = f"{count - len(self.samples)} of {count} samples are not shown, being not finite or folded"
        return f"{self.name}: {left}; the last one shown is at {self.t[-1]:.6g} s"

    @property
    def tool(self) -> np.ndarray:
        """Where the tool was (N, 3), in [m]; NaN where that is not known."""
        return self.log.pose[:, :3]

    @property
    def tool_wanted(self) -> np.ndarray:
        """Where it should have been (N, 3), in [m]."""
        return self.log.pose_ref[:, :3]

    @cached_property
    def tool_distance(self) -> np.ndarray:
        """Distance (N,) of the one from the other at the same time, in [m]."""
        return tool_distance(self.log)


def paths_wanted(tracks: Sequence[Track]) -> list[np.ndarray]:
    """The paths (N, 3) that the tools should take, in [m]: once where several logs have the same."""
    paths: list[np.ndarray] = []
    for track in tracks:
        path = track.tool_wanted[np.isfinite(track.tool_wanted).all(axis=1)]
        if not any(path.shape == other.shape and np.allclose(path, other, atol=1e-6) for other in paths):
            paths.append(path)
    return paths


def tracks(logs: Log | Iterable[Log], names: Sequence[str] | None = None) -> tuple[Track, ...]:
    """The tracks of one log or several, by default with the names of `names_of`.

    Raises:
        ValueError: there is no log, more than `MOST_LOGS`, or not one name for each.
        TwinError: nothing of one of them can be shown.
    """
    logs = [logs] if isinstance(logs, Log) else list(logs)
    names = names_of(logs) if names is None else list(names)
    check_count(len(logs))
    if len(names) != len(logs):
        raise ValueError(f"expected a name for each of {len(logs)} logs, got {len(names)}")
    return tuple(Track(log, name) for log, name in zip(logs, names, strict=True))


def check_count(count: int) -> None:
    """Check that so many logs can be shown over each other.

    Raises:
        ValueError: they cannot.
    """
    if not 1 <= count <= MOST_LOGS:
        raise ValueError(f"expected 1 to {MOST_LOGS} logs, which can be told apart, got {count}")


def names_of(logs: Sequence[Log], files: Sequence[str | Path] = ()) -> list[str]:
    """What tells logs apart: their controllers if these do, else with the robots, else their files."""
    tries = (
        [log.controller for log in logs],
        [f"{log.controller}, {log.robot.name}" for log in logs],
        [Path(file).stem for file in files],
        [str(file) for file in files],
    )
    for names in tries:
        if len(names) == len(set(names)) == len(logs):
            return names
    return [f"{log.controller} {place}" for place, log in enumerate(logs, start=1)]


class Playback:
    """Where a replay is: its time, which runs, stands, jumps and begins anew; nothing is drawn here.

    Args:
        tracks: what is shown.
        speed: times real time.
        loop: whether to begin anew at the end; else it stands there.

    Attributes:
        tracks, speed, loop: the same; speed and loop may be changed at any time.
        time: shown now, in [s].
        start, end: of the earliest and the latest sample, in [s].
        playing: whether time runs.
    """

    def __init__(self, tracks: Sequence[Track], *, speed: float = 1.0, loop: bool = False) -> None:
        self.tracks = tuple(tracks)
        self.speed = checked_speed(speed)
        self.loop = loop
        self.start = min(float(track.t[0]) for track in self.tracks)
        self.end = max(float(track.t[-1]) for track in self.tracks)
        self.time = self.start
        self.playing = True

    @property
    def samples(self) -> tuple[int, ...]:
        """The sample of each log that is shown now."""
        return tuple(track.sample(self.time) for track in self.tracks)

    @property
    def at_end(self) -> bool:
        """Whether nothing comes after what is shown."""
        return self.time >= self.end

    def advance(self, elapsed: float) -> None:
        """Let so much time of the clock pass, in [s]."""
        if not self.playing:
            return
        time = self.time + elapsed * self.speed
        if time >= self.end and self.loop and self.end > self.start:
            time = self.start + (time - self.start) % (self.end - self.start)
        self.seek(time)
        self.playing = self.loop or not self.at_end

    def seek(self, time: float) -> None:
        """Show another time, in [s], or the nearest that there is."""
        self.time = min(max(float(time), self.start), self.end)

    def play_or_pause(self) -> None:
        """Stand still, or go on; from the end, begin anew."""
        if not self.playing and self.at_end:
            self.time = self.start
        self.playing = not self.playing

    def step(self, count: int = 1) -> None:
        """Stand still so many samples later, or earlier where negative, of the log that ends last."""
        track = max(self.tracks, key=lambda track: track.t[-1])
        place = int(np.searchsorted(track.t, track.log.t[track.sample(self.time)])) + count
        self.playing = False
        self.seek(track.t[min(max(place, 0), len(track.t) - 1)])


def checked_speed(speed: float) -> float:
    """A speed of replay, times real time, checked to be one."""
    if not 0 < speed < np.inf:
        raise ValueError(f"expected a speed above 0 (1 is real time, 0.5 half of it), got {speed:g}")
    return float(speed)

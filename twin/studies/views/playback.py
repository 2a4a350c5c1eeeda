"""Playback of logs over time: the samples to show at each moment, in a film or in a window."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from twin.base.errors import TwinError
from twin.data.logs.figures import tool_distance
from twin.data.logs.log import Log
from twin.physics.robot.limits import folded

MOST_LOGS = 6
"""Largest number of logs whose colours can be distinguished."""


class Track:
    """Samples of a log that can be shown.

    Samples that are not finite, as a run that diverged may have, are omitted.  So are those in which a
    passive joint
    is beyond its range.

    Args:
        log: log with at least one sample.
        name: name that distinguishes it from the others.

    Attributes:
        log, name: the arguments.
        samples: (M,) indices of the samples that can be shown.
        t: (M,) their times, in [s].

    Raises:
        TwinError: no sample can be shown.
    """

    def __init__(self, log: Log, name: str) -> None:
        self.log, self.name = log, name
        finite = np.nonzero(np.isfinite(log.q).all(axis=1))[0]
        self.samples = finite[~folded(log.robot, log.q[finite]).any(axis=1)]
        if len(self.samples) == 0:
            raise TwinError(f"{name} cannot be shown: no sample has finite joint positions")
        self.t = log.t[self.samples]
        self._halfway = 0.5 * (self.t[1:] + self.t[:-1])

    def sample(self, time: float) -> int:
        """Return the index of the sample nearest to a time, in [s]; outside its time a log stands still."""
        return int(self.samples[np.searchsorted(self._halfway, time)])

    @property
    def note(self) -> str:
        """Sentence on the samples that are not shown; empty if all are."""
        count = len(self.log.t)
        if len(self.samples) == count:
            return ""
        omitted = f"{count - len(self.samples)} of {count} samples are not shown (not finite or folded)"
        return f"{self.name}: {omitted}; the last one shown is at {self.t[-1]:.6g} s"

    @property
    def tool(self) -> np.ndarray:
        """Positions of the tool (N, 3), in [m]; NaN where unknown."""
        return self.log.pose[:, :3]

    @property
    def tool_reference(self) -> np.ndarray:
        """Reference positions of the tool (N, 3), in [m]."""
        return self.log.pose_ref[:, :3]

    @cached_property
    def tool_distance(self) -> np.ndarray:
        """Distances (N,) between tool and reference, in [m]."""
        return tool_distance(self.log)


def reference_paths(tracks: Sequence[Track]) -> list[np.ndarray]:
    """Return the reference paths (N, 3) of the tools, in [m]; identical paths are returned once."""
    paths: list[np.ndarray] = []
    for track in tracks:
        path = track.tool_reference[np.isfinite(track.tool_reference).all(axis=1)]
        if not any(path.shape == other.shape and np.allclose(path, other, atol=1e-6) for other in paths):
            paths.append(path)
    return paths


def tracks(logs: Log | Iterable[Log], names: Sequence[str] | None = None) -> tuple[Track, ...]:
    """Return the tracks of one log or several, by default with the names of `names_of`.

    Raises:
        ValueError: there is no log, there are more than `MOST_LOGS`, or the number of names differs.
        TwinError: a log has no sample that can be shown.
    """
    logs = [logs] if isinstance(logs, Log) else list(logs)
    names = names_of(logs) if names is None else list(names)
    check_count(len(logs))
    if len(names) != len(logs):
        raise ValueError(f"expected a name for each of {len(logs)} logs, got {len(names)}")
    return tuple(Track(log, name) for log, name in zip(logs, names, strict=True))


def check_count(count: int) -> None:
    """Check that this number of logs can be shown overlaid.

    Raises:
        ValueError: the count is not 1 to `MOST_LOGS`.
    """
    if not 1 <= count <= MOST_LOGS:
        raise ValueError(f"expected 1 to {MOST_LOGS} logs, one per colour, got {count}")


def names_of(logs: Sequence[Log], files: Sequence[str | Path] = ()) -> list[str]:
    """Return distinct names of logs: their controllers, else with the robots, else their files."""
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
    """State of a replay: its time advances, pauses, jumps and repeats; nothing is drawn here.

    Args:
        tracks: tracks to show.
        speed: playback speed, as a multiple of real time.
        loop: whether to repeat from the end; otherwise the replay stops there.

    Attributes:
        tracks, speed, loop: the arguments; speed and loop may be changed at any time.
        time: current time in the logs, in [s].
        start, end: times of the earliest and the latest sample, in [s].
        playing: whether time advances.
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
        """Index of the current sample of each log."""
        return tuple(track.sample(self.time) for track in self.tracks)

    @property
    def at_end(self) -> bool:
        """Whether the end has been reached."""
        return self.time >= self.end

    def advance(self, elapsed: float) -> None:
        """Advance by `elapsed` seconds of the clock."""
        if not self.playing:
            return
        time = self.time + elapsed * self.speed
        if time >= self.end and self.loop and self.end > self.start:
            time = self.start + (time - self.start) % (self.end - self.start)
        self.seek(time)
        self.playing = self.loop or not self.at_end

    def seek(self, time: float) -> None:
        """Jump to a time, in [s], clipped to the duration of the logs."""
        self.time = min(max(float(time), self.start), self.end)

    def play_or_pause(self) -> None:
        """Toggle between playing and pausing; at the end, restart."""
        if not self.playing and self.at_end:
            self.time = self.start
        self.playing = not self.playing

    def step(self, count: int = 1) -> None:
        """Pause and move by `count` samples (backwards if negative) of the log that ends last."""
        track = max(self.tracks, key=lambda track: track.t[-1])
        place = int(np.searchsorted(track.t, track.log.t[track.sample(self.time)])) + count
        self.playing = False
        self.seek(track.t[min(max(place, 0), len(track.t) - 1)])


def checked_speed(speed: float) -> float:
    """Return a playback speed, as a multiple of real time, after checking it.

    Raises:
        ValueError: the speed is not a finite number above 0.
    """
    if not 0 < speed < np.inf:
        raise ValueError(f"expected a speed above 0 (1 is real time, 0.5 half of it), got {speed:g}")
    return float(speed)

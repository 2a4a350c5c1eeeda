"""Logs shown again in PyBullet's window, where a person plays, stops, and goes back and forth."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from twin.engine.simulation import Simulation
from twin.logs.film_scene import FIRST, GHOSTS, GREY
from twin.logs.playback import Playback, Track

COLORS = tuple(tuple(value / 255 for value in color) for color in (FIRST, *GHOSTS))
SPEEDS = 0.1, 4.0
"""Times real time, the slowest and the fastest of the slider."""

LONGEST = 0.25
"""Time that may pass from one picture to the next, in [s]: a window that stood still does not jump."""

HELP = "space: play or pause   left, right: a sample   up, down: 50 samples   home: from the start   l: loop"
LEAP = 50  # samples


def replay(shown: Sequence[Track], *, speed: float = 1.0, loop: bool = False) -> None:
    """Show logs until the window is closed.

    Args:
        shown: the first is the arm in its colours, the others are ghosts.
        speed: times real time.
        loop: begin anew at the end.

    Raises:
        TwinError: there is no display, or a window is open already.
    """
    playback = Playback(shown, speed=speed, loop=loop)
    robot = shown[0].log.robot.with_drives("ideal").with_payload(None)
    with Simulation(robot, gui=True, real_time=False) as simulation:
        window = ReplayWindow(simulation, playback)
        simulation.bench.on_picture(window.picture)
        simulation.bench.wait_until(lambda: False)


class ReplayWindow:
    """The controls of a replay, and what it draws.

    Args:
        simulation: with a window; its arm is that of the first log.
        playback: what is shown.
    """

    def __init__(self, simulation: Simulation, playback: Playback) -> None:
        self.playback, self.simulation, self.bench = playback, simulation, simulation.bench
        bench, panel = self.bench, self.bench.panel
        self.ghosts = [
            bench.ghost(track.name, track.log.robot, color)
            for track, color in zip(playback.tracks[1:], COLORS[1:], strict=False)
        ]
        for track, color in zip(playback.tracks, COLORS, strict=False):
            bench.path(f"{track.name}, wanted", _finite(track.tool_wanted), tuple(v / 255 for v in GREY))
            bench.path(f"{track.name}, followed", _finite(track.tool), color)
        low, high = min(SPEEDS[0], playback.speed), max(SPEEDS[1], playback.speed)
        end = max(playback.end, playback.start + 1e-3)  # a slider has two ends
        self.time = panel.slider("time [s]", playback.start, end, playback.start)
        self.speed = panel.slider("speed [times real time]", low, high, playback.speed)
        self.buttons = {
            name: panel.button(name)
            for name in ("play / pause", "sample back", "sample on", "from the start", "loop")
        }
        self._before = time.perf_counter()
        self._known = self.time.value, self.speed.value

    def picture(self) -> None:
        """Answer what was pressed, let time pass, and show what is then to be seen."""
        now = time.perf_counter()
        elapsed, self._before = min(now - self._before, LONGEST), now
        was_playing = self.playback.playing
        if self._answered():
            elapsed = 0.0
        self.playback.advance(elapsed)
        if was_playing and not self.playback.playing:
            self.time.set(self.playback.time)  # a slider that moves would have to be made anew each time
            self._known = self.time.value, self.speed.value
        self._show()

    def _answered(self) -> bool:
        """Do what was asked for; whether the time was changed by it."""
        playback, key = self.playback, self.bench.panel.key
        pressed = {name: button.pressed() for name, button in self.buttons.items()}
        (at, pace), self._known = self._known, (self.time.value, self.speed.value)
        if self.speed.value != pace:
            playback.speed = self.speed.value
        if pressed["play / pause"] or key("space"):
            playback.play_or_pause()
        if pressed["loop"] or key("l"):
            playback.loop = not playback.loop
        if self.time.value != at:
            playback.playing = False
            playback.seek(self.time.value)
            return True
        if pressed["from the start"] or key("home"):
            playback.seek(playback.start)
            return True
        for step, asked in (
            (1, pressed["sample on"] or key("right")),
            (-1, pressed["sample back"] or key("left")),
            (LEAP, key("up")),
            (-LEAP, key("down")),
        ):
            if asked:
                playback.step(step)
                return True
        return False

    def _show(self) -> None:
        playback, bench = self.playback, self.bench
        samples = playback.samples
        logs = [track.log for track in playback.tracks]
        self.simulation.reset(logs[0].q[samples[0]])
        for ghost, log, sample in zip(self.ghosts, logs[1:], samples[1:], strict=True):
            ghost.place(log.q[sample])
        state = "playing" if playback.playing else "at the end" if playback.at_end else "paused"
        bench.say(
            "time",
            f"{playback.time:.3f} s of {playback.end:.3f} s    {playback.speed:.3g} x    {state}"
            + "    loop" * playback.loop,
        )
        for track, sample, color in zip(playback.tracks, samples, COLORS, strict=False):
            bench.say(track.name, f"{track.name}: {told(track, sample)}", color)


def told(track: Track, sample: int) -> str:
    """How far a log's run was off at a sample, how near a torque to its limit, and what was saturated."""
    log, names = track.log, track.log.robot.joint_names
    error = np.abs(log.q_ref[sample] - log.q[sample])
    joint = _largest(error)
    unit = "m" if log.robot.joint_kinds[joint] == "prismatic" else "rad"
    parts = [f"{names[joint]} {error[joint]:.3g} {unit} off"]
    parts.append(f"tool {1e3 * track.tool_distance[sample]:.3g} mm off")
    limit = log.robot.drive_torque_max
    if np.isfinite(limit).any():
        load = np.abs(log.tau[sample]) / limit
        joint = _largest(load)
        parts.append(f"torque {100 * load[joint]:.0f} % of its limit in {names[joint]}")
    saturated = [name for name, full in zip(names, log.saturated[sample], strict=True) if full]
    if saturated:
        parts.append(f"saturated: {', '.join(saturated)}")
    return ", ".join(parts)


def _largest(values: np.ndarray) -> int:
    """The place of the largest value; what is not a number is larger than any."""
    return int(np.argmax(np.where(np.isnan(values), np.inf, values)))


def _finite(points: np.ndarray) -> np.ndarray:
    return points[np.isfinite(points).all(axis=1)]

"""Replay of logs in PyBullet's window, with controls to play, pause and seek."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from twin.physics.engine.client import open_bench
from twin.physics.engine.window.bench import Bench
from twin.physics.engine.window.overlays import Ghost
from twin.physics.robot.robot import Payload
from twin.physics.robot.units import joint_unit
from twin.studies.views.film import FIRST, GHOSTS, GREY, Playback, Track, reference_paths

DESIRED_PATH, *COLORS = (tuple(value / 255 for value in color) for color in (GREY, FIRST, *GHOSTS))
SPEEDS = 0.1, 4.0
"""Ends of the speed slider, over real time."""

LONGEST = 1.0
"""[s]: largest advance from one picture to the next, so that the replay does not jump after a delay."""

OPACITY = 0.4
LEAP = 50  # samples
HELP = (
    "space: play or pause   r: restart   l: loop",
    "left right: 1 sample   down up: 50 samples",
    "1 2 3 4: camera   Esc: close   ?: these keys   i: text   h: panels",
)


def replay(shown: Sequence[Track], *, speed: float = 1.0, loop: bool = False) -> None:
    """Show logs until the window is closed.

    Args:
        shown: logs; the first is the arm in its colours, the others are ghosts.
        speed: speed of the replay over real time.
        loop: whether to start again at the end.

    Raises:
        NoDisplayError: there is no display.
        TwinError: a window is already open.
    """
    playback = Playback(shown, speed=speed, loop=loop)
    bench = open_bench(
        ReplayedArm(playback), np.inf, lambda bench, client: ReplayControls(bench, client, playback)
    )
    try:
        bench.bring_into_view(np.concatenate(reference_paths(shown)))
        bench.wait_until(lambda: False)
    finally:
        bench.close()


class ReplayedArm:
    """Arm of the first log in the window, without physics.

    Args:
        playback: state of the replay.
    """

    def __init__(self, playback: Playback) -> None:
        self._playback = playback
        self._log = playback.tracks[0].log
        self.robot, self.time_step = self._log.robot, self._log.time_step

    @property
    def tau(self) -> np.ndarray:
        """Torques (n,) of the motors at the current sample, in [N m]."""
        return self._log.tau[self._playback.samples[0]]

    @property
    def tau_joint(self) -> np.ndarray:
        """Torques (n,) of the drives on the arm at the current sample, in [N m]."""
        return self._log.tau_joint[self._playback.samples[0]]

    def state(self) -> np.ndarray:
        """Return positions and velocities (2, n) at the current sample, in [rad] and [rad/s]."""
        sample = self._playback.samples[0]
        return np.stack([self._log.q[sample], self._log.qd[sample]])

    def change_payload(self, payload: Payload | None) -> None:
        """Do nothing: a log cannot change."""


class ReplayControls:
    """Keys, buttons and sliders of a replay, with its ghosts, paths and texts.

    Args:
        bench: bench of the window.
        client: PyBullet client of the window.
        playback: state of the replay.
    """

    help = HELP

    def __init__(self, bench: Bench, client: Any, playback: Playback) -> None:
        self.playback, self.bench, panel = playback, bench, bench.panel
        tracks = playback.tracks
        # Not made by the bench, which would add a line of text without figures for each ghost.
        self.ghosts = [
            Ghost(client, track.log.robot, color, OPACITY)
            for track, color in zip(tracks[1:], COLORS[1:], strict=False)
        ]
        for ghost in self.ghosts:
            ghost.write()  # before the replay starts, because the first drawing of a ghost is slow
        for number, path in enumerate(reference_paths(tracks)):
            bench.path(f"desired {number}", path, DESIRED_PATH)
        for track, color in zip(tracks, COLORS, strict=False):
            bench.path(f"followed, {track.name}", track.tool[track.samples], color)
        end = max(playback.end, playback.start + 1e-3)  # the ends of a slider must differ
        self.time = panel.slider("time [s]", playback.start, end, playback.start)
        low, high = min(SPEEDS[0], playback.speed), max(SPEEDS[1], playback.speed)
        self.speed = panel.slider("speed [real times]", low, high, playback.speed)
        self.play = panel.button("play / pause (space)")
        self.back, self.on = panel.button("previous sample (left)"), panel.button("next sample (right)")
        self.start, self.loop = panel.button("restart (r)"), panel.button("loop (l)")
        self._last_read = self.time.value, self.speed.value
        self._before = time.perf_counter()

    def read(self) -> None:
        """Process the user's input and advance the playback."""
        now, playback = time.perf_counter(), self.playback
        elapsed, self._before = min(now - self._before, LONGEST), now
        was_playing = playback.playing
        if not self._seek():
            playback.advance(elapsed)
        if was_playing and not playback.playing:
            self.time.set(playback.time)  # only when the playback stops, because setting a slider is slow
        self._last_read = self.time.value, self.speed.value

    def show(self) -> None:
        """Place the ghosts and write the text."""
        playback, bench = self.playback, self.bench
        samples = playback.samples
        for ghost, track, sample in zip(self.ghosts, playback.tracks[1:], samples[1:], strict=True):
            ghost.place(track.log.q[sample])
            ghost.write()
        state = "playing" if playback.playing else "at the end" if playback.at_end else "paused"
        pace = f"{playback.speed:.3g} x real time"
        bench.write_line(
            "time",
            f"{playback.time:8.3f} s of {playback.end:.3f} s    {pace}    {state}"
            + "    loop" * playback.loop,
        )
        for track, sample, color in zip(playback.tracks, samples, COLORS, strict=False):
            bench.write_line(track.name, f"{track.name}: {describe_sample(track, sample)}", color)

    def note_lasting_actions(self) -> None:
        """Do nothing: a log has no pushes and no new payload."""

    def _seek(self) -> bool:
        """Process the user's input; return whether it changed the time."""
        playback, key = self.playback, self.bench.panel.key
        if self.speed.value != self._last_read[1]:
            playback.speed = self.speed.value
        if self.play.pressed() or key("space"):
            playback.play_or_pause()
        if self.loop.pressed() or key("l"):
            playback.loop = not playback.loop
        if self.time.value != self._last_read[0]:
            playback.playing = False
            playback.seek(self.time.value)
            return True
        if self.start.pressed() or key("r"):
            playback.seek(playback.start)
            return True
        for count, requested in (
            (1, self.on.pressed() or key("right")),
            (-1, self.back.pressed() or key("left")),
            (LEAP, key("up")),
            (-LEAP, key("down")),
        ):
            if requested:
                playback.step(count)
                return True
        return False


def describe_sample(track: Track, sample: int) -> str:
    """Return the errors, the largest torque over its limit and the saturated joints at a sample, as text."""
    log, names = track.log, track.log.robot.joint_names
    error = np.abs(log.q_ref[sample] - log.q[sample])
    joint = _largest(error)
    unit = joint_unit(log.robot.joint_kinds[joint])
    parts = [
        f"error {_short(error[joint])} {unit} in {names[joint]}",
        f"tool {_short(1e3 * track.tool_distance[sample])} mm",
    ]
    limit = log.robot.drive_torque_max
    if np.isfinite(limit).any():
        load = np.abs(log.tau[sample]) / limit
        joint = _largest(load)
        parts.append(f"torque {100 * load[joint]:.0f} % in {names[joint]}")
    saturated = [name for name, full in zip(names, log.saturated[sample], strict=True) if full]
    if saturated:
        parts.append(f"saturated {', '.join(saturated)}")
    if log.program and (line := log.program.text(sample)):
        parts.append(line)
    return "; ".join(parts)


def _short(value: float) -> str:
    """Return a value with three digits; round-off as `< 1e-9`."""
    return "< 1e-9" if 0 < value < 1e-9 else f"{value:.3g}"


def _largest(values: np.ndarray) -> int:
    """Return the index of the largest value; NaN counts as the largest."""
    return int(np.argmax(np.where(np.isnan(values), np.inf, values)))

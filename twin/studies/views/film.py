"""Films of logs, an animated GIF or an MP4 drawn without a window, and their playback over time.

A film preserves time: where a log is longer than `MOST_FRAMES` can show at the requested rate, the film has
fewer frames per second, and `Film.notes` reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageOps
from scipy.spatial import ConvexHull

from twin.base.atomic_file import atomic_write
from twin.base.errors import TwinError
from twin.data.logs.figures import tool_distance
from twin.data.logs.log import Log
from twin.physics.engine.client import require_engine
from twin.physics.engine.simulation import Simulation
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.robot.limits import folded
from twin.studies.views.touch import arrows, surface_meshes

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont


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


SUFFIXES = (".gif", ".mp4")
MOST_FRAMES = 1200  # a minute at 20 frames per second
SMALLEST, LARGEST = 200, 1920  # pixels of a side
HUNDREDTHS = 100  # a GIF measures durations in hundredths of a second
FASTEST = {".gif": 50.0, ".mp4": 120.0}  # frames per second; viewers show a faster GIF slower
LAST_SHOWN = 1.0  # duration of the last frame of a GIF before it repeats, in s
COLOURS = 128  # number of colours of a GIF
NEAR = 8  # of 255: a shade this near to a flat colour is replaced by that colour
MP4_MISSING = "an MP4 requires imageio-ffmpeg: pip install 'irb-twin[film]', or write a .gif"


@dataclass(frozen=True)
class Film:
    """Properties of a film that was written.

    Attributes:
        frames: number of frames.
        fps: frames per second, at most the requested rate.
        seconds: duration from the first frame to the last, when it is played.
        notes: sentences on what the film omits.
    """

    frames: int
    fps: float
    seconds: float
    notes: tuple[str, ...]


def film(
    logs: Log | Iterable[Log],
    path: str | Path,
    *,
    names: Sequence[str] | None = None,
    fps: float = 20.0,
    size: tuple[int, int] = (640, 480),
    speed: float = 1.0,
    yaw_deg: float = 50.0,
    pitch_deg: float = -20.0,
    progress: Callable[[float], object] | None = None,
) -> Film:
    """Draw one log, or several overlaid, into a film.

    The first log is drawn as the arm in its colours, the others as ghosts in one colour each.  The reference
    path of
    the tool is grey, the actual paths are coloured.  Logs are aligned in time; a shorter log stops at its
    end.

    Args:
        logs: logs to show.
        path: path of the film, `.gif`, or `.mp4` if imageio-ffmpeg is installed; it is written atomically.
        names: names of the logs; by default those of their controllers.
        fps: frames per second, at most 50 in a GIF.
        size: width and height, in pixels; even numbers for an MP4.
        speed: playback speed, as a multiple of real time.
        yaw_deg: direction of the camera about the vertical, in [degrees].
        pitch_deg: elevation of the camera's view, negative downwards, in [degrees].
        progress: callback that receives the fraction done.

    Returns:
        The properties of the film, with notes on what it omits.

    Raises:
        ValueError: an invalid setting, see `check_settings`.
        TwinError: a log has no sample that can be shown, or imageio-ffmpeg is missing.
        OSError: the file cannot be written.

    Example:
        >>> import twin
        >>> from scenarios.gravity_hold import GravityHold
        >>> log = GravityHold(duration=0.1).run().log
        >>> twin.film(log, "hold.gif", size=(240, 200), fps=20).frames
        3
    """
    path = Path(path)
    check_settings(path, fps=fps, size=size, speed=speed, yaw_deg=yaw_deg, pitch_deg=pitch_deg)
    shown = tracks(logs, names)
    times, fps, note = frame_times(shown, fps, speed)
    notes = tuple(text for text in (*(track.note for track in shown), note) if text)
    frames = _frames(shown, times, size, speed, {"yaw_deg": yaw_deg, "pitch_deg": pitch_deg})
    with closing(frames), atomic_write(path) as draft:
        write = _write_mp4 if path.suffix.lower() == ".mp4" else _write_gif
        write(draft, _report_progress(frames, len(times), progress), len(times), fps)
    return Film(len(times), fps, (len(times) - 1) / fps, notes)


def check_settings(
    path: Path,
    *,
    fps: float = 20.0,
    size: tuple[int, int] = (640, 480),
    speed: float = 1.0,
    yaw_deg: float = 50.0,
    pitch_deg: float = -20.0,
) -> None:
    """Check the arguments of `film` before anything is drawn.

    Raises:
        ValueError: a setting is invalid; the message contains its value and what is valid.
        TwinError: PyBullet or imageio-ffmpeg is missing.
    """
    require_engine()
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{path}: expected a film's name to end in {' or '.join(SUFFIXES)}")
    checked_speed(speed)
    if not 0 < fps <= FASTEST[suffix]:
        raise ValueError(f"expected 0 to {FASTEST[suffix]:g} frames per second for a {suffix}, got {fps:g}")
    label = "x".join(str(side) for side in size)
    if len(size) != 2 or not all(
        isinstance(side, int | np.integer) and SMALLEST <= side <= LARGEST for side in size
    ):
        raise ValueError(
            f"expected a width and a height of {SMALLEST} to {LARGEST} pixels, as 640x480, got {label}"
        )
    if not (np.isfinite(yaw_deg) and -90 <= pitch_deg <= 90):
        raise ValueError(
            f"expected a finite yaw and a pitch of -90 to 90 degrees, got {yaw_deg:g} and {pitch_deg:g}"
        )
    if suffix == ".mp4":
        if any(side % 2 for side in size):
            raise ValueError(f"expected an even width and height for an .mp4, got {label}")
        _ffmpeg()


def frame_times(shown: Sequence[Track], fps: float, speed: float) -> tuple[np.ndarray, float, str]:
    """Return the log times of the frames, in [s], their rate per second, and a note if it was reduced."""
    start = min(float(track.t[0]) for track in shown)
    end = max(float(track.t[-1]) for track in shown)
    seconds = (end - start) / speed
    note = ""
    if seconds * fps > MOST_FRAMES - 1:
        requested, fps = fps, (MOST_FRAMES - 1) / seconds
        note = (
            f"{seconds:.6g} s at {requested:g} frames per second are more than {MOST_FRAMES} frames: "
            f"the film has {fps:.3g} per second; a higher speed makes it smoother"
        )
    count = int(np.ceil(seconds * fps - 1e-6)) + 1
    return np.minimum(start + np.arange(count) * (speed / fps), end), fps, note


def _frames(
    shown: Sequence[Track], times: np.ndarray, size: tuple[int, int], speed: float, camera: dict[str, float]
) -> Generator[Image.Image, None, None]:

    robots = list(dict.fromkeys(track.log.robot.name for track in shown))
    pace = "" if speed == 1 else f"{speed:g} x  "
    with closing(Scene(shown, size, title=", ".join(robots), **camera)) as scene:
        for time in times.tolist():
            samples = [track.sample(time) for track in shown]
            yield scene.picture(samples, time, f"{pace}{time:.2f} s of {times[-1]:.2f} s")


def _report_progress(
    frames: Iterable[Image.Image], count: int, progress: Callable[[float], object] | None
) -> Iterator[Image.Image]:
    for done, frame in enumerate(frames, start=1):
        yield frame
        if progress is not None:
            progress(done / count)


def _write_gif(path: Path, frames: Iterator[Image.Image], count: int, fps: float) -> None:
    """Write a GIF with one palette for all frames, without dithering.

    A static background then has the same pixels in all frames, which the format stores only once.
    """
    ends = np.rint(np.arange(count + 1) * HUNDREDTHS / fps)
    lasting = [int(10 * (end - start)) for start, end in pairwise(ends)]
    lasting[-1] += int(1000 * LAST_SHOWN)
    first = next(frames)
    found = first.quantize(COLOURS - len(FLAT), Image.Quantize.MEDIANCUT).getpalette() or []
    shades = np.reshape(found, (-1, 3))
    apart = np.abs(shades[:, None] - np.array(FLAT)).max(axis=2).min(axis=1)
    palette = Image.new("P", (1, 1))
    palette.putpalette([*chain(*FLAT), *shades[apart > NEAR].ravel().tolist()])
    reduced = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in chain([first], frames))
    with open(path, "wb") as file:
        next(reduced).save(
            file, format="GIF", save_all=True, append_images=reduced, duration=lasting, loop=0, optimize=False
        )


def _write_mp4(path: Path, frames: Iterator[Image.Image], count: int, fps: float) -> None:
    """Write an MP4 in H.264, which browsers and presentation programs play."""
    first = next(frames)
    writer = _ffmpeg().write_frames(
        str(path), first.size, fps=fps, codec="libx264", quality=7, macro_block_size=2,
        ffmpeg_log_level="error",
    )  # fmt: skip
    with closing(writer):
        writer.send(None)
        for frame in chain([first], frames):
            writer.send(frame.tobytes())
    written, _ = _ffmpeg().count_frames_and_secs(
        str(path)
    )  # ffmpeg reports a full disk only by missing frames
    if written != count:
        raise OSError(f"ffmpeg wrote {written} of {count} frames")


def _ffmpeg() -> Any:
    try:
        import imageio_ffmpeg
    except ImportError:
        raise TwinError(MP4_MISSING) from None
    return imageio_ffmpeg


FIRST = (213, 94, 0)
GHOSTS = ((0, 114, 178), (0, 158, 115), (204, 121, 167), (86, 180, 233), (230, 159, 0))
"""Colours of Okabe and Ito, for colour-blind readers: `FIRST` of the first log, `GHOSTS` of the others."""

FINER = 1.5  # scale at which frames are drawn and then reduced, for smooth edges
INK, GREY, PALE, WHITE = (35, 38, 43), (135, 140, 148), (226, 229, 233), (255, 255, 255)
FLAT = (WHITE, INK, GREY, PALE, FIRST, *GHOSTS)
"""Colours that are drawn without shades."""
ROW, STRIP = 19, 34  # heights of a line of the legend and of the time bar, in pixels
EDGE = 0.93  # largest share of the area between legend and time bar that the arm fills
MOMENTS = 8  # samples of a log for which the camera is placed
HEAD = 16.0  # length of the head of an arrow, in pixels
COARSE = 200  # width of the images that locate the arm, in pixels
POINTS = 800  # largest number of points of a path
GROUND = 0.25  # distance between lines on the ground, in m
HALF_VIEW = np.tan(np.deg2rad(20.0))  # half the vertical field of view of `Simulation.picture`


class Scene:
    """Drawing of the logs of some tracks at given samples; call `close` after use.

    Args:
        tracks: tracks to draw; the first is the arm, the others are ghosts.
        size: width and height, in pixels.
        yaw_deg: direction of the camera about the vertical, in [degrees].
        pitch_deg: elevation of the camera's view, negative downwards, in [degrees].
        title: text above the names.
    """

    def __init__(
        self,
        tracks: Sequence[Track],
        size: tuple[int, int],
        *,
        yaw_deg: float,
        pitch_deg: float,
        title: str = "",
    ) -> None:
        self.tracks, self.size, self.title = tuple(tracks), size, title
        self.fine = (round(FINER * size[0]), round(FINER * size[1]))
        self.coarse = (COARSE, max(COARSE * size[1] // size[0], 1))
        self.colors = (FIRST, *GHOSTS)[: len(tracks)]
        self.top = ROW * (len(tracks) + bool(title)) + 14
        self.arms: list[Simulation] = []
        try:
            for track in tracks:  # only drawn: neither drives nor payload matter
                self.arms.append(Simulation(track.log.robot.with_drives("ideal").with_payload(None)))
            self.arrows = [arrows(track.log) for track in tracks]
            self.camera: dict = {"yaw_deg": yaw_deg, "pitch_deg": pitch_deg}
            self.camera |= self._in_view()
            self.paths = [self._pixels(track.tool[track.samples]) for track in tracks]
            self.flanges = [self._flanges(track) for track in tracks]
            self.forces = [self._pixels(one.reshape(-1, 3)) if len(one) else None for one in self.arrows]
            self.background = self._background()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the simulations that draw the arms."""
        for arm in self.arms:
            arm.close()

    def picture(self, samples: Sequence[int], time: float, label: str) -> Image.Image:
        """Draw the arms at the given samples, one per track.

        Args:
            samples: index of the sample of each log.
            time: time in the logs, in [s], which the progress bar shows.
            label: text that shows the time.
        """
        canvas = self.background.copy()
        outlines = []
        for arm, track, sample, color in self._from_behind(samples):
            arm.reset(track.log.q[sample])
            drawn = arm.picture(*self.fine, **self.camera)
            image, mask = Image.fromarray(drawn), _black_and_white((drawn < 255).any(axis=2))
            if arm is self.arms[0]:
                canvas.paste(image, mask=mask)
            else:
                canvas.paste(_tinted(image, color), mask=mask.point(lambda value: value * 0.5))
                outlines.append((color, _outline(mask)))
        for color, outline in outlines:
            canvas.paste(color, mask=outline)
        draw = ImageDraw.Draw(canvas)
        for k, (track, sample, color) in enumerate(zip(self.tracks, samples, self.colors, strict=True)):
            done = self.paths[k][: np.searchsorted(track.samples, sample, "right")]
            _line(draw, np.stack([self.flanges[k][len(done) - 1], done[-1]]), INK, 4)
            _line(draw, done, color, 3)
            _dot(draw, done[-1], color, 5)
            if (force := self.forces[k]) is not None:
                _arrow(draw, force[2 * sample], force[2 * sample + 1], color if k else INK)
        canvas = canvas.resize(self.size, Image.Resampling.BOX, reducing_gap=None)
        self._write(ImageDraw.Draw(canvas), samples, time, label)
        return canvas

    def _from_behind(self, samples: Sequence[int]) -> list:
        return list(zip(self.arms, self.tracks, samples, self.colors, strict=True))[::-1]

    def _pixels(self, points: np.ndarray) -> np.ndarray:
        return self.arms[0].pixels(points, *self.fine, **self.camera)

    def _flanges(self, track: Track) -> np.ndarray:
        """Return the flange positions, in pixels, from which the tool is drawn as a line."""
        flange = forward_kinematics(track.log.robot, track.log.q[track.samples])
        return self._pixels(flange[:, :3, 3])

    def _background(self) -> Image.Image:
        """Draw the ground and the reference paths."""
        canvas = Image.new("RGB", self.fine, WHITE)
        draw = ImageDraw.Draw(canvas)
        reach = max(np.max(np.abs(track.tool[track.samples, :2])) for track in self.tracks)
        count = int(np.ceil(1.25 * min(reach, 5.0) / GROUND))
        for k in range(-count, count + 1):
            for ends in ([[k, -count], [k, count]], [[-count, k], [count, k]]):
                line = np.insert(GROUND * np.array(ends, dtype=float), 2, 0.0, axis=1)
                _line(draw, self._pixels(line), PALE, 2 if k else 3)
        for vertices, _ in surface_meshes(self.tracks[0].log):
            seen = self._pixels(vertices)
            draw.polygon([tuple(seen[k]) for k in ConvexHull(seen).vertices], PALE, GREY)
        for path in reference_paths(self.tracks):
            _line(draw, self._pixels(path), GREY, 5)
        return canvas

    def _in_view(self) -> dict:
        """Return target and distance of the camera for which arms and paths fill the picture."""
        points = np.concatenate(
            [
                [[0.0, 0.0, 0.0]],
                *(points for track in self.tracks for points in (track.tool, track.tool_reference)),
                *(one[:, 1] for one in self.arrows),
            ]
        )
        points = points[np.isfinite(points).all(axis=1)]
        points = points[:: 1 + len(points) // POINTS]
        low, high = points.min(axis=0), points.max(axis=0)
        camera = {"target": (low + high) / 2, "distance": 1.5 + 2.0 * float(np.linalg.norm(high - low))}
        yaw, pitch = np.deg2rad([self.camera["yaw_deg"], self.camera["pitch_deg"]])
        right = np.array([np.cos(yaw), np.sin(yaw), 0.0])
        ahead = np.array([-np.sin(yaw) * np.cos(pitch), np.cos(yaw) * np.cos(pitch), np.sin(pitch)])
        axes = np.stack([right, np.cross(right, ahead)])
        area = np.array([[-1.0, -1.0 + 2 * STRIP / self.size[1]], [1.0, 1.0 - 2 * self.top / self.size[1]]])
        aspect = self.size[0] / self.size[1]
        for _ in range(3):  # iterated, since the perspective depends on the distance
            low, high = self._extent(points, {**self.camera, **camera})
            scale = float(np.max((high - low) / (EDGE * (area[1] - area[0]))))
            camera["distance"] = min(camera["distance"] * scale, 50.0)
            shift = ((low + high) / (2 * scale) - area.mean(axis=0)) * [aspect, 1.0]
            camera["target"] = camera["target"] + HALF_VIEW * camera["distance"] * shift @ axes
        return camera

    def _extent(self, points: np.ndarray, camera: dict) -> tuple[np.ndarray, np.ndarray]:
        """Return the lowest and highest coordinates (2,) of arms and points, -1 (left, bottom) to 1."""
        seen = [self.arms[0].pixels(points, *self.coarse, **camera)]
        for arm, track in zip(self.arms, self.tracks, strict=True):
            for place in np.linspace(0, len(track.samples) - 1, MOMENTS, dtype=int):
                arm.reset(track.log.q[track.samples[place]])
                image = arm.picture(*self.coarse, **camera)
                seen.append(np.argwhere((image < 255).any(axis=2))[:, ::-1] + 0.5)
        found = np.concatenate(seen) / self.coarse * [2.0, -2.0] + [-1.0, 1.0]
        return found.min(axis=0), found.max(axis=0)

    def _write(self, draw: ImageDraw.ImageDraw, samples: Sequence[int], time: float, label: str) -> None:
        """Draw names and errors at the top, and the time at the bottom."""
        width, height = self.size
        y = 9
        if self.title:
            draw.text((12, y), self.title, INK, _font(13, bold=True))
            draw.text((width - 12, y), "reference path", INK, _font(13), anchor="ra")
            left = width - 20 - draw.textlength("reference path", _font(13))
            draw.line((left - 22, y + 8, left, y + 8), GREY, 3)
            y += ROW
        for k, (track, sample, color) in enumerate(zip(self.tracks, samples, self.colors, strict=True)):
            draw.rounded_rectangle((12, y + 2, 25, y + 13), 3, color)
            draw.text((33, y), track.name, INK, _font(13))
            distance = f"tool error {_millimetres(track.tool_distance[sample])}"
            if self.forces[k] is not None:
                distance = f"{np.linalg.norm(track.log.wrench[sample, :3]):.1f} N, {distance}"
            draw.text((width - 12, y), distance, INK, _font(13), anchor="ra")
            y += ROW
            if track.log.program and (line := track.log.program.text(sample)):
                draw.text((33, y), line[:80], GREY, _font(13))
                y += ROW
        start = min(track.t[0] for track in self.tracks)
        end = max(track.t[-1] for track in self.tracks)
        done = (time - start) / (end - start) if end > start else 1.0
        y = height - 13
        right = width - max(140, 26 + round(draw.textlength(label, _font(13))))
        draw.rounded_rectangle((12, y, right, y + 3), 2, PALE)
        draw.rounded_rectangle((12, y, 12 + (right - 12) * done, y + 3), 2, INK)
        draw.text((width - 12, y + 2), label, INK, _font(13), anchor="rm")


def _black_and_white(mask: np.ndarray) -> Image.Image:
    return Image.fromarray(np.where(mask, np.uint8(255), np.uint8(0)))


def _tinted(image: Image.Image, color: tuple[int, int, int]) -> Image.Image:
    """Return the picture of an arm in shades of one colour."""
    dark = tuple(value // 3 for value in color)
    light = tuple(255 - (255 - value) // 3 for value in color)
    return ImageOps.colorize(image.convert("L"), dark, light, color)  # pyright: ignore[reportArgumentType]


def _outline(mask: Image.Image) -> Image.Image:
    """Return the pixels at the edge of a mask."""
    inside = np.array(mask) > 0
    deep = np.zeros_like(inside)
    deep[1:-1, 1:-1] = inside[2:, 1:-1] & inside[:-2, 1:-1] & inside[1:-1, 2:] & inside[1:-1, :-2]
    return _black_and_white(inside & ~deep)


def _line(draw: ImageDraw.ImageDraw, points: np.ndarray, color: tuple[int, int, int], width: int) -> None:
    """Draw a line through points (N, 2)."""
    points = points[:: 1 + len(points) // POINTS]
    if len(points) > 1:
        draw.line([tuple(point) for point in points.tolist()], color, width, joint="curve")


def _arrow(
    draw: ImageDraw.ImageDraw, tail: np.ndarray, head: np.ndarray, color: tuple[int, int, int]
) -> None:
    """Draw an arrow; one of a few pixels has no head."""
    along = head - tail
    _line(draw, np.stack([tail, head]), color, 6)
    if (length := float(np.linalg.norm(along))) > 2 * HEAD:
        back, aside = HEAD * along / length, HEAD / 2 * np.array([-along[1], along[0]]) / length
        draw.polygon([tuple(head + back / 2), tuple(head - back + aside), tuple(head - back - aside)], color)


def _dot(draw: ImageDraw.ImageDraw, point: np.ndarray, color: tuple[int, int, int], radius: int) -> None:
    draw.ellipse([*(point - radius), *(point + radius)], color, WHITE, 2)


def _millimetres(distance: float) -> str:
    """Format a length in [m], as 12.3 mm."""
    if not np.isfinite(distance):
        return "?"
    return f"{1e3 * distance:.2f} mm" if distance >= 1e-5 else "< 0.01 mm"


@cache
def _font(size: int, *, bold: bool = False) -> FreeTypeFont:
    """Return the font that matplotlib includes; it has glyphs for every letter of a name."""
    import matplotlib

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    return ImageFont.truetype(folder / ("DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"), size)

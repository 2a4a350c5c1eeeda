"""A film of logs: an animated GIF or an MP4, drawn without a window.

A film tells the time as it was: where a log is longer than `MOST_FRAMES` can show at the asked rate, there
are fewer frames a second, and `Film.note` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageOps

from twin.atomic_file import atomic_write
from twin.engine.simulation import Simulation
from twin.errors import TwinError
from twin.kinematics.forward import forward_kinematics
from twin.logs.log import Log
from twin.logs.views.playback import Track, checked_speed, paths_wanted, tracks

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont


SUFFIXES = (".gif", ".mp4")
MOST_FRAMES = 1200  # a minute at 20 a second
SMALLEST, LARGEST = 200, 1920  # pixels of a side
HUNDREDTHS = 100  # of a second, in which a GIF counts
FASTEST = {".gif": 50.0, ".mp4": 120.0}  # frames a second; readers of a GIF show faster ones slower
LAST_SHOWN = 1.0  # s, for which the last frame of a GIF stands before it begins anew
COLOURS = 128  # of a GIF
NEAR = 8  # of 255: a shade so near to a flat colour would be taken for it
MP4_MISSING = "an MP4 needs imageio-ffmpeg: pip install 'irb-twin[film]', or write a .gif"


@dataclass(frozen=True)
class Film:
    """What was written.

    Attributes:
        frames: their number.
        fps: how many a second, at most as many as asked for.
        seconds: from the first frame to the last, as it is seen.
        notes: sentences on what is not shown.
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
    """Draw one log, or several over each other, into a film.

    The first log is the arm in its colours, the others are ghosts in a colour each; grey is the path that the
    tool should take, in colours what it took.  By time: a shorter log stands at its end.

    Args:
        logs: what is shown.
        path: where to: `.gif`, or `.mp4` where imageio-ffmpeg is installed; written whole or not at all.
        names: of the logs; by default those of their controllers.
        fps: frames a second, at most 50 in a GIF.
        size: width and height, in pixels; even numbers for an MP4.
        speed: times real time.
        yaw_deg: where the camera stands, around the vertical, in [degrees].
        pitch_deg: negative looks down, in [degrees].
        progress: called with the fraction done.

    Returns:
        What the film has and what it leaves out.

    Raises:
        ValueError: a setting that cannot be, as `check_settings` says it.
        TwinError: nothing of a log can be shown, or imageio-ffmpeg is missing.
        OSError: the file cannot be written.
    """
    path = Path(path)
    check_settings(path, fps=fps, size=size, speed=speed, yaw_deg=yaw_deg, pitch_deg=pitch_deg)
    shown = tracks(logs, names)
    times, fps, note = frame_times(shown, fps, speed)
    notes = tuple(text for text in (*(track.note for track in shown), note) if text)
    frames = _frames(shown, times, size, speed, {"yaw_deg": yaw_deg, "pitch_deg": pitch_deg})
    with closing(frames), atomic_write(path) as draft:
        write = _write_mp4 if path.suffix.lower() == ".mp4" else _write_gif
        write(draft, _told(frames, len(times), progress), len(times), fps)
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
    """Check what `film` is given, before anything is drawn.

    Raises:
        ValueError: naming the setting, its value and what is valid.
        TwinError: imageio-ffmpeg is missing.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{path}: expected a film's name to end in {' or '.join(SUFFIXES)}")
    checked_speed(speed)
    if not 0 < fps <= FASTEST[suffix]:
        raise ValueError(f"expected 0 to {FASTEST[suffix]:g} frames a second of a {suffix}, got {fps:g}")
    told = "x".join(str(side) for side in size)
    if len(size) != 2 or not all(
        isinstance(side, int | np.integer) and SMALLEST <= side <= LARGEST for side in size
    ):
        raise ValueError(
            f"expected a size of {SMALLEST} to {LARGEST} pixels each way, as 640x480, got {told}"
        )
    if not (np.isfinite(yaw_deg) and -90 <= pitch_deg <= 90):
        raise ValueError(
            f"expected a camera's yaw and a pitch of -90 to 90 degrees, got {yaw_deg:g} and {pitch_deg:g}"
        )
    if suffix == ".mp4":
        if any(side % 2 for side in size):
            raise ValueError(f"expected even numbers of pixels for an .mp4, got {told}")
        _ffmpeg()


def frame_times(shown: Sequence[Track], fps: float, speed: float) -> tuple[np.ndarray, float, str]:
    """When the frames are, in [s] of the logs; frames a second; and what is to be said, if they are fewer."""
    start = min(float(track.t[0]) for track in shown)
    end = max(float(track.t[-1]) for track in shown)
    seconds = (end - start) / speed
    note = ""
    if seconds * fps > MOST_FRAMES - 1:
        asked, fps = fps, (MOST_FRAMES - 1) / seconds
        note = (
            f"{seconds:.6g} s at {asked:g} frames a second are more than {MOST_FRAMES} frames: "
            f"there are {fps:.3g} a second; a higher speed shows it smoothly"
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


def _told(
    frames: Iterable[Image.Image], count: int, progress: Callable[[float], object] | None
) -> Iterator[Image.Image]:
    for done, frame in enumerate(frames, start=1):
        yield frame
        if progress is not None:
            progress(done / count)


def _write_gif(path: Path, frames: Iterator[Image.Image], count: int, fps: float) -> None:
    """One palette for all frames, without dithering: what stands still stays the same, and costs nothing."""
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
    """H.264, as browsers and slides show it."""
    first = next(frames)
    writer = _ffmpeg().write_frames(
        str(path), first.size, fps=fps, codec="libx264", quality=7, macro_block_size=2,
        ffmpeg_log_level="error",
    )  # fmt: skip
    with closing(writer):
        writer.send(None)
        for frame in chain([first], frames):
            writer.send(frame.tobytes())
    there, _ = _ffmpeg().count_frames_and_secs(str(path))  # its end is all that ffmpeg says of a full disk
    if there != count:
        raise OSError(f"ffmpeg wrote {there} of {count} frames")


def _ffmpeg() -> Any:
    try:
        import imageio_ffmpeg
    except ImportError:
        raise TwinError(MP4_MISSING) from None
    return imageio_ffmpeg


FIRST = (213, 94, 0)
GHOSTS = ((0, 114, 178), (0, 158, 115), (204, 121, 167), (86, 180, 233), (230, 159, 0))
"""Colours of Okabe and Ito, told apart by all: of the first log, near the arms' orange, and of the ghosts."""

FINER = 1.5  # times the size of the film, at which it is drawn: edges become smooth
INK, GREY, PALE, WHITE = (35, 38, 43), (135, 140, 148), (226, 229, 233), (255, 255, 255)
FLAT = (WHITE, INK, GREY, PALE, FIRST, *GHOSTS)
"""The colours that are drawn without shades."""
ROW, STRIP = 19, 34  # pixels: of a line of the legend, and below the picture for the time
EDGE = 0.93  # of the room between legend and time that the arm takes at most
MOMENTS = 8  # of a log, which the camera is placed for
COARSE = 200  # pixels across, of looks at where the arm is
POINTS = 800  # of a path, at most
GROUND = 0.25  # m between two lines on the ground
HALF_VIEW = np.tan(np.deg2rad(20.0))  # of the camera of `Simulation.picture`, upwards


class Scene:
    """Draws the logs of some tracks as they are at given samples; to be closed.

    Args:
        tracks: the first is drawn as the arm, the others as ghosts.
        size: width and height, in pixels.
        yaw_deg: where the camera stands, around the vertical, in [degrees].
        pitch_deg: negative looks down, in [degrees].
        title: stands above the names.
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
            for track in tracks:  # drawn, not moved: neither drives nor payload matter
                self.arms.append(Simulation(track.log.robot.with_drives("ideal").with_payload(None)))
            self.camera: dict = {"yaw_deg": yaw_deg, "pitch_deg": pitch_deg}
            self.camera |= self._in_view()
            self.paths = [self._pixels(track.tool[track.samples]) for track in tracks]
            self.flanges = [self._flanges(track) for track in tracks]
            self.background = self._background()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the worlds that the arms are drawn in."""
        for arm in self.arms:
            arm.close()

    def picture(self, samples: Sequence[int], time: float, told: str) -> Image.Image:
        """The arms at these samples, one a track.

        Args:
            samples: of the tracks' logs.
            time: in [s], up to which the paths were followed.
            told: the time, in words.
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
        canvas = canvas.resize(self.size, Image.Resampling.BOX, reducing_gap=None)
        self._write(ImageDraw.Draw(canvas), samples, time, told)
        return canvas

    def _from_behind(self, samples: Sequence[int]) -> list:
        return list(zip(self.arms, self.tracks, samples, self.colors, strict=True))[::-1]

    def _pixels(self, points: np.ndarray) -> np.ndarray:
        return self.arms[0].pixels(points, *self.fine, **self.camera)

    def _flanges(self, track: Track) -> np.ndarray:
        """Where the flange is at each of the track's samples; the tool is drawn as a stick from there."""
        flange = forward_kinematics(track.log.robot, track.log.q[track.samples])
        return self._pixels(flange[:, :3, 3])

    def _background(self) -> Image.Image:
        """The ground, and the path that was wanted."""
        canvas = Image.new("RGB", self.fine, WHITE)
        draw = ImageDraw.Draw(canvas)
        reach = max(np.max(np.abs(track.tool[track.samples, :2])) for track in self.tracks)
        count = int(np.ceil(1.25 * min(reach, 5.0) / GROUND))
        for k in range(-count, count + 1):
            for ends in ([[k, -count], [k, count]], [[-count, k], [count, k]]):
                line = np.insert(GROUND * np.array(ends, dtype=float), 2, 0.0, axis=1)
                _line(draw, self._pixels(line), PALE, 2 if k else 3)
        for path in paths_wanted(self.tracks):
            _line(draw, self._pixels(path), GREY, 5)
        return canvas

    def _in_view(self) -> dict:
        """Where the camera has to look at, and from how far, for arms and paths to fill the picture."""
        points = np.concatenate(
            [
                [[0.0, 0.0, 0.0]],
                *(points for track in self.tracks for points in (track.tool, track.tool_wanted)),
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
        room = np.array([[-1.0, -1.0 + 2 * STRIP / self.size[1]], [1.0, 1.0 - 2 * self.top / self.size[1]]])
        aspect = self.size[0] / self.size[1]
        for _ in range(3):  # the nearer the camera the stronger the perspective
            low, high = self._extent(points, {**self.camera, **camera})
            scale = float(np.max((high - low) / (EDGE * (room[1] - room[0]))))
            camera["distance"] = min(camera["distance"] * scale, 50.0)
            shift = ((low + high) / (2 * scale) - room.mean(axis=0)) * [aspect, 1.0]
            camera["target"] = camera["target"] + HALF_VIEW * camera["distance"] * shift @ axes
        return camera

    def _extent(self, points: np.ndarray, camera: dict) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest (2,) of what is to be seen, from -1 at the left and the bottom to 1."""
        seen = [self.arms[0].pixels(points, *self.coarse, **camera)]
        for arm, track in zip(self.arms, self.tracks, strict=True):
            for place in np.linspace(0, len(track.samples) - 1, MOMENTS, dtype=int):
                arm.reset(track.log.q[track.samples[place]])
                image = arm.picture(*self.coarse, **camera)
                seen.append(np.argwhere((image < 255).any(axis=2))[:, ::-1] + 0.5)
        found = np.concatenate(seen) / self.coarse * [2.0, -2.0] + [-1.0, 1.0]
        return found.min(axis=0), found.max(axis=0)

    def _write(self, draw: ImageDraw.ImageDraw, samples: Sequence[int], time: float, told: str) -> None:
        """Names and errors above, the time below."""
        width, height = self.size
        y = 9
        if self.title:
            draw.text((12, y), self.title, INK, _font(13, bold=True))
            draw.text((width - 12, y), "path wanted", INK, _font(13), anchor="ra")
            left = width - 20 - draw.textlength("path wanted", _font(13))
            draw.line((left - 22, y + 8, left, y + 8), GREY, 3)
            y += ROW
        for track, sample, color in zip(self.tracks, samples, self.colors, strict=True):
            draw.rounded_rectangle((12, y + 2, 25, y + 13), 3, color)
            draw.text((33, y), track.name, INK, _font(13))
            distance = f"tool {_millimetres(track.tool_distance[sample])} off"
            draw.text((width - 12, y), distance, INK, _font(13), anchor="ra")
            y += ROW
        start = min(track.t[0] for track in self.tracks)
        end = max(track.t[-1] for track in self.tracks)
        done = (time - start) / (end - start) if end > start else 1.0
        y = height - 13
        right = width - max(140, 26 + round(draw.textlength(told, _font(13))))
        draw.rounded_rectangle((12, y, right, y + 3), 2, PALE)
        draw.rounded_rectangle((12, y, 12 + (right - 12) * done, y + 3), 2, INK)
        draw.text((width - 12, y + 2), told, INK, _font(13), anchor="rm")


def _black_and_white(mask: np.ndarray) -> Image.Image:
    return Image.fromarray(np.where(mask, np.uint8(255), np.uint8(0)))


def _tinted(image: Image.Image, color: tuple[int, int, int]) -> Image.Image:
    """The picture of an arm in the shades of one colour."""
    dark = tuple(value // 3 for value in color)
    light = tuple(255 - (255 - value) // 3 for value in color)
    return ImageOps.colorize(image.convert("L"), dark, light, color)  # pyright: ignore[reportArgumentType]


def _outline(mask: Image.Image) -> Image.Image:
    """The pixels of a mask at its edge."""
    inside = np.array(mask) > 0
    deep = np.zeros_like(inside)
    deep[1:-1, 1:-1] = inside[2:, 1:-1] & inside[:-2, 1:-1] & inside[1:-1, 2:] & inside[1:-1, :-2]
    return _black_and_white(inside & ~deep)


def _line(draw: ImageDraw.ImageDraw, points: np.ndarray, color: tuple[int, int, int], width: int) -> None:
    """A line through points (N, 2)."""
    points = points[:: 1 + len(points) // POINTS]
    if len(points) > 1:
        draw.line([tuple(point) for point in points.tolist()], color, width, joint="curve")


def _dot(draw: ImageDraw.ImageDraw, point: np.ndarray, color: tuple[int, int, int], radius: int) -> None:
    draw.ellipse([*(point - radius), *(point + radius)], color, WHITE, 2)


def _millimetres(distance: float) -> str:
    """A length in [m], as 12.3 mm."""
    if not np.isfinite(distance):
        return "?"
    return f"{1e3 * distance:.2f} mm" if distance >= 1e-5 else "< 0.01 mm"


@cache
def _font(size: int, *, bold: bool = False) -> FreeTypeFont:
    """The font that matplotlib brings along: it has every letter that a name may have."""
    import matplotlib

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    return ImageFont.truetype(folder / ("DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"), size)

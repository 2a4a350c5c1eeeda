"""A film of logs: an animated GIF or an MP4, drawn without a window.

A film tells the time as it was: where a log is longer than `MOST_FRAMES` can show at the asked rate, there
are fewer frames a second, and `Film.note` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twin.atomic_file import drafted
from twin.errors import TwinError
from twin.logs.log import Log
from twin.views.playback import Track, checked_speed, tracks

if TYPE_CHECKING:
    from PIL.Image import Image

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
    with closing(frames), drafted(path) as draft:
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
) -> Generator[Image, None, None]:
    from twin.views.film_scene import Scene

    robots = list(dict.fromkeys(track.log.robot.name for track in shown))
    pace = "" if speed == 1 else f"{speed:g} x  "
    with closing(Scene(shown, size, title=", ".join(robots), **camera)) as scene:
        for time in times.tolist():
            samples = [track.sample(time) for track in shown]
            yield scene.picture(samples, time, f"{pace}{time:.2f} s of {times[-1]:.2f} s")


def _told(frames: Iterable[Image], count: int, progress: Callable[[float], object] | None) -> Iterator[Image]:
    for done, frame in enumerate(frames, start=1):
        yield frame
        if progress is not None:
            progress(done / count)


def _write_gif(path: Path, frames: Iterator[Image], count: int, fps: float) -> None:
    """One palette for all frames, without dithering: what stands still stays the same, and costs nothing."""
    from PIL import Image as images

    from twin.views.film_scene import FLAT

    ends = np.rint(np.arange(count + 1) * HUNDREDTHS / fps)
    lasting = [int(10 * (end - start)) for start, end in pairwise(ends)]
    lasting[-1] += int(1000 * LAST_SHOWN)
    first = next(frames)
    found = first.quantize(COLOURS - len(FLAT), images.Quantize.MEDIANCUT).getpalette() or []
    shades = np.reshape(found, (-1, 3))
    apart = np.abs(shades[:, None] - np.array(FLAT)).max(axis=2).min(axis=1)
    palette = images.new("P", (1, 1))
    palette.putpalette([*chain(*FLAT), *shades[apart > NEAR].ravel().tolist()])
    reduced = (frame.quantize(palette=palette, dither=images.Dither.NONE) for frame in chain([first], frames))
    with open(path, "wb") as file:
        next(reduced).save(
            file, format="GIF", save_all=True, append_images=reduced, duration=lasting, loop=0, optimize=False
        )


def _write_mp4(path: Path, frames: Iterator[Image], count: int, fps: float) -> None:
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

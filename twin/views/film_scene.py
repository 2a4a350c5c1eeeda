"""How a picture of a film looks: the arm, ghosts of other runs, the tool's path, names and the time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageOps

from twin.engine.simulation import Simulation
from twin.kinematics.forward import forward_kinematics
from twin.views.playback import Track, paths_wanted

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

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

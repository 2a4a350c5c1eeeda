"""Drawings in the window: lines, frames and crosses in the world, and lines of text at its edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import real_array

MOST_SEGMENTS = 128
"""Largest number of segments of a path; each is a call to PyBullet's drawing thread."""

PATH_WIDTH, LINE_WIDTH = 2, 3  # pixels
HEAD = 0.2
"""Length of an arrow's head, as a share of the arrow's length."""

AXIS_COLORS = ((0.9, 0.1, 0.1), (0.1, 0.65, 0.1), (0.15, 0.25, 0.95))


def add_item(client: Any, add: Callable[..., int], *what: Any, replaced: int = -1) -> int:
    """Create an item of the window, a line, a text or a slider, or replace one by its number.

    If its threads collide, once in some thousand calls on a busy computer, PyBullet creates the item but
    returns -1 instead of its number.  The number is then derived from the next one, as they are consecutive.

    Args:
        client: PyBullet's client of the window.
        add: its `addUserDebugLine`, `addUserDebugText` or `addUserDebugParameter`.
        what: arguments of `add`.
        replaced: number of the item to replace.

    Returns:
        The item's number.
    """
    if replaced >= 0:
        add(*what, replaceItemUniqueId=replaced)
        return replaced
    number = add(*what)
    if number < 0:
        number = add_item(client, add, *what)
        client.removeUserDebugItem(number - 1)
    return number


def path_points(points: ArrayLike) -> np.ndarray:
    """Return the points of a path as an array; raise `ValueError` unless they are (N, 3)."""
    path = real_array(points, "points")
    if path.ndim != 2 or path.shape[1] != 3:
        raise ValueError(f"expected points of shape (N, 3), got {path.shape}")
    return path


class Drawing:
    """Drawings made of lines, which appear at the next picture; positions are in the base frame, in [m].

    PyBullet's `addUserDebugPoints` would be simpler, but it removes the letters of sliders and buttons.

    Args:
        client: PyBullet's client of the window.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._wanted: dict[str, list[tuple]] = {}
        self._items: dict[str, list[tuple[int, tuple]]] = {}

    def path(self, name: str, points: ArrayLike, color: Sequence[float]) -> None:
        """Draw a line through at most `MOST_SEGMENTS + 1` of the points (N, 3); one point draws none."""
        path = path_points(points)
        every = 1
        while (len(path) - 1) / every > MOST_SEGMENTS:  # doubling: a growing path keeps most of its lines
            every *= 2
        shown = path[::every]
        if (len(path) - 1) % every:
            shown = np.vstack((shown, path[-1:]))
        self._lines(name, list(pairwise(shown)), [color] * (len(shown) - 1), PATH_WIDTH)

    def crosses(self, name: str, points: ArrayLike, color: Sequence[float], length: float) -> None:
        """Draw a cross along the base axes at each of points (N, 3)."""
        arms = 0.5 * length * np.eye(3)
        lines = [(point - arm, point + arm) for point in path_points(points) for arm in arms]
        self._lines(name, lines, [color] * len(lines), LINE_WIDTH)

    def arrow(self, name: str, start: ArrayLike, vector: ArrayLike, color: Sequence[float]) -> None:
        """Draw an arrow from `start` (3,) along `vector` (3,); a zero vector draws none."""
        start, vector = real_array(start, "start"), real_array(vector, "vector")
        length = float(np.linalg.norm(vector))
        if not length > 0:
            self.remove(name)
            return
        end, along = start + vector, vector / length
        aside = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
        aside *= 0.35 / np.linalg.norm(aside)
        upwards = np.cross(along, aside)
        back = HEAD * length
        corners = [end + back * (side - along) for side in (aside, upwards, -aside, -upwards)]
        self._lines(name, [(start, end), *((end, corner) for corner in corners)], [color] * 5, LINE_WIDTH)

    def frame(self, name: str, T: ArrayLike, length: float) -> None:
        """Draw the axes of a pose (4, 4), x red, y green, z blue."""
        T = real_array(T, "T")
        origin, axes = T[:3, 3], T[:3, :3].T
        self._lines(name, [(origin, origin + length * axis) for axis in axes], AXIS_COLORS, LINE_WIDTH)

    def remove(self, name: str) -> None:
        """Remove the drawing of this name, if there is one."""
        self._wanted.pop(name, None)

    def write(self) -> None:
        """Update the window; only lines that changed are drawn again."""
        client, add = self._client, self._client.addUserDebugLine
        for name in [*self._items]:
            items, lines = self._items[name], self._wanted.get(name, [])
            while len(items) > len(lines):
                client.removeUserDebugItem(items.pop()[0])
            if not items:
                del self._items[name]
        for name, lines in self._wanted.items():
            items = self._items.setdefault(name, [])
            for index, line in enumerate(lines):
                if index == len(items):
                    items.append((add_item(client, add, *line), line))
                elif items[index][1] != line:
                    items[index] = (add_item(client, add, *line, replaced=items[index][0]), line)

    def _lines(
        self, name: str, lines: Sequence[tuple], colors: Sequence[Sequence[float]], width: int
    ) -> None:
        """Store lines `(start, end)` in place of those of the same name."""
        self._wanted[name] = [
            (start.tolist(), end.tolist(), list(color), width)
            for (start, end), color in zip(lines, colors, strict=True)
        ]


PANELS = 250, 122  # pixels: width of the panels at each side, and height of the panel at the bottom
LEFT, TOP, BOTTOM, LEADING = (
    PANELS[0] + 12,
    38,
    PANELS[1] + 12,
    17,
)  # pixels: left, top and bottom margin beside the window's panels, and distance of lines
NARROW = 12  # pixels: left, top and bottom margin without panels
SIZE = 1.0
DEPTH = 0.03  # m from the camera: nothing is nearer
INK = (0.08, 0.1, 0.16)


class _Line(NamedTuple):
    text: str
    color: tuple[float, ...]


class LiveText:
    """Lines of text at the top left, and others at the bottom, the first one lowest.

    Args:
        client: PyBullet's client of the window.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lines: dict[str, _Line] = {}
        self._foot: dict[str, _Line] = {}
        self._shown: dict[tuple[bool, str], tuple[int, Any]] = {}
        self.visible = self.keys_visible = True

    def write_line(self, name: str, text: str, color: Sequence[float] = INK, *, foot: bool = False) -> None:
        """Add or replace a line; an empty text removes it, and the lines below move up."""
        lines = self._foot if foot else self._lines
        if text:
            lines[name] = _Line(text, tuple(color))
        else:
            lines.pop(name, None)

    def write(self, camera: Sequence[Any], beside_panels: bool) -> None:
        """Update the window's text for the state of its camera (`getDebugVisualizerCamera`)."""
        width, height, view, projection, *_ = camera
        axes = np.reshape(view, (4, 4))[:3, :3]  # columns: right, up, backwards
        eye = -axes @ np.reshape(view, (4, 4))[3, :3]
        left, top, bottom = (LEFT, TOP, BOTTOM) if beside_panels else (NARROW, 2 * NARROW, NARROW)
        wanted = {}
        lines = self._lines.items() if self.visible else ()
        for row, (name, line) in enumerate(lines):
            wanted[False, name] = (line, top + row * LEADING)
        foot = self._foot.items() if self.keys_visible else ()
        for row, (name, line) in enumerate(foot):
            wanted[True, name] = (line, height - bottom - row * LEADING)
        for key in [key for key in self._shown if key not in wanted]:
            self._client.removeUserDebugItem(self._shown.pop(key)[0])
        for key, (line, down) in wanted.items():
            x = (2.0 * left / width - 1.0) / projection[0]
            y = (1.0 - 2.0 * down / height) / projection[5]
            place = (eye + DEPTH * (axes @ (x, y, -1.0))).tolist()
            number, before = self._shown.get(key, (-1, None))
            if before == (line, place):
                continue
            add, what = self._client.addUserDebugText, (line.text, place, line.color, SIZE)
            number = add_item(self._client, add, *what, replaced=number)
            self._shown[key] = number, (line, place)

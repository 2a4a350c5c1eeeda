"""Drawings in the window: lines, frames and crosses in the world, lines of text at its edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import real_array

MOST_SEGMENTS = 128
"""Of a path: each is a call to PyBullet's drawing thread and a line that it draws."""

PATH_WIDTH, LINE_WIDTH = 2, 3  # pixels
HEAD = 0.2
"""Of an arrow, as a part of its length."""

AXIS_COLORS = ((0.9, 0.1, 0.1), (0.1, 0.65, 0.1), (0.15, 0.25, 0.95))


def add_item(client: Any, add: Callable[..., int], *what: Any, replaced: int = -1) -> int:
    """Make an item of the window, a line, a text or a slider, in the place of another if its number is given.

    Where its threads run into each other, once in some thousand times on a busy computer, PyBullet makes an
    item and says -1 in the place of its number.  Numbers are given out one after the other.

    Args:
        client: PyBullet's, of the window.
        add: its `addUserDebugLine`, `addUserDebugText` or `addUserDebugParameter`.
        what: its arguments.
        replaced: the number of the item in whose place it comes.

    Returns:
        Its number.
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
    """The points of a path, checked to be (N, 3)."""
    path = real_array(points, "points")
    if path.ndim != 2 or path.shape[1] != 3:
        raise ValueError(f"expected points of shape (N, 3), got {path.shape}")
    return path


class Drawing:
    """What is drawn, out of lines, with the next picture; places are in the base frame, in [m].

    PyBullet's `addUserDebugPoints` would be handier, but takes the letters off the sliders and buttons.

    Args:
        client: PyBullet's, of the window.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._wanted: dict[str, list[tuple]] = {}
        self._items: dict[str, list[tuple[int, tuple]]] = {}

    def path(self, name: str, points: ArrayLike, color: Sequence[float]) -> None:
        """A line through points (N, 3), a hundred of them or so and the last; none of fewer than two."""
        path = path_points(points)
        every = 1
        while (len(path) - 1) / every > MOST_SEGMENTS:  # doubled: a path that grows keeps its lines
            every *= 2
        shown = path[::every]
        if (len(path) - 1) % every:
            shown = np.vstack((shown, path[-1:]))
        self._lines(name, list(pairwise(shown)), [color] * (len(shown) - 1), PATH_WIDTH)

    def crosses(self, name: str, points: ArrayLike, color: Sequence[float], length: float) -> None:
        """A cross along the axes of the base at each of points (N, 3)."""
        arms = 0.5 * length * np.eye(3)
        lines = [(point - arm, point + arm) for point in path_points(points) for arm in arms]
        self._lines(name, lines, [color] * len(lines), LINE_WIDTH)

    def arrow(self, name: str, start: ArrayLike, vector: ArrayLike, color: Sequence[float]) -> None:
        """An arrow from `start` (3,) along `vector` (3,); none where that has no length."""
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
        """The axes of a pose (4, 4), x red, y green, z blue."""
        T = real_array(T, "T")
        origin, axes = T[:3, 3], T[:3, :3].T
        self._lines(name, [(origin, origin + length * axis) for axis in axes], AXIS_COLORS, LINE_WIDTH)

    def remove(self, name: str) -> None:
        """Take away what has that name, if anything has."""
        self._wanted.pop(name, None)

    def write(self) -> None:
        """Bring the window up to date; only lines that changed are drawn anew."""
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
        """Lines `(start, end)` in the place of those of the same name."""
        self._wanted[name] = [
            (start.tolist(), end.tolist(), list(color), width)
            for (start, end), color in zip(lines, colors, strict=True)
        ]


PANELS = 250, 122  # pixels: what they take from each side, and from below
LEFT, TOP, BOTTOM, LEADING = (
    PANELS[0] + 12,
    38,
    PANELS[1] + 12,
    17,
)  # pixels: beside the window's own panels; from line to line
NARROW = 12  # pixels from the left, the top and the bottom without them
SIZE = 1.0
DEPTH = 0.03  # m before the eye: nothing is nearer
INK = (0.08, 0.1, 0.16)


class _Line(NamedTuple):
    text: str
    color: tuple[float, ...]


class LiveText:
    """Lines one below the other at the top left, and others at the bottom.

    Args:
        client: PyBullet's, of the window.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lines: dict[str, _Line] = {}
        self._foot: dict[str, _Line] = {}
        self._shown: dict[tuple[bool, str], tuple[int, Any]] = {}
        self.visible = True

    def say(self, name: str, text: str, color: Sequence[float] = INK, *, foot: bool = False) -> None:
        """Write a line, or another in its place; an empty text takes it away, and those below move up."""
        lines = self._foot if foot else self._lines
        if text:
            lines[name] = _Line(text, tuple(color))
        else:
            lines.pop(name, None)

    def write(self, camera: Sequence[Any], beside_panels: bool) -> None:
        """Bring the window's text up to date, as its camera stands (`getDebugVisualizerCamera`)."""
        width, height, view, projection, *_ = camera
        axes = np.reshape(view, (4, 4))[:3, :3]  # columns: right, up, backwards
        eye = -axes @ np.reshape(view, (4, 4))[3, :3]
        left, top, bottom = (LEFT, TOP, BOTTOM) if beside_panels else (NARROW, 2 * NARROW, NARROW)
        wanted = {}
        if self.visible:
            for row, (name, line) in enumerate(self._lines.items()):
                wanted[False, name] = (line, top + row * LEADING)
        for row, (name, line) in enumerate(reversed(self._foot.items())):
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

"""Paths, arrows and frames in the window, each with a name, by which it is replaced or taken away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

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

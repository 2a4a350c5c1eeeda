"""Paths, arrows and frames in the window, each with a name, by which it is replaced or taken away.

All of them are lines: points (`addUserDebugPoints`) would take the letters off the buttons and sliders.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import real_array

MOST_PARTS = 400  # of a path
HEAD = 0.2
"""Of an arrow, as a part of its length."""

AXIS_COLORS = ((0.9, 0.1, 0.1), (0.1, 0.65, 0.1), (0.15, 0.25, 0.95))


def path_points(points: ArrayLike) -> np.ndarray:
    """The points of a path, checked to be (N, 3)."""
    path = real_array(points, "points")
    if path.ndim != 2 or path.shape[1] != 3:
        raise ValueError(f"expected points of shape (N, 3), got {path.shape}")
    return path


class Drawing:
    """What is drawn; places are in the base frame, in [m].

    Args:
        client: PyBullet's, of the window.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._items: dict[str, list[int]] = {}
        self._ends: dict[str, np.ndarray] = {}

    def path(self, name: str, points: ArrayLike, color: Sequence[float]) -> None:
        """A line through points (N, 3), of some hundred parts at most."""
        path = path_points(points)
        shown = (
            path[np.unique(np.linspace(0, len(path) - 1, MOST_PARTS + 1).astype(int))] if len(path) else path
        )
        self._lines(name, list(pairwise(shown)), [color] * max(len(shown) - 1, 0), 2)

    def trail(self, name: str, point: ArrayLike, color: Sequence[float]) -> None:
        """Go on with a line to a point (3,); of a long one the oldest part is taken away."""
        end = real_array(point, "point")
        start, self._ends[name] = self._ends.get(name, end), end
        numbers = self._items.setdefault(name, [])
        numbers.append(self._line(start, end, color, 2, numbers.pop(0) if len(numbers) == MOST_PARTS else -1))

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
        self._lines(name, [(start, end), *((end, corner) for corner in corners)], [color] * 5)

    def frame(self, name: str, T: ArrayLike, length: float) -> None:
        """The axes of a pose (4, 4), x red, y green, z blue."""
        T = real_array(T, "T")
        origin, axes = T[:3, 3], T[:3, :3].T
        self._lines(name, [(origin, origin + length * axis) for axis in axes], AXIS_COLORS)

    def remove(self, name: str) -> None:
        """Take away what has that name, if anything has."""
        self._ends.pop(name, None)
        for number in self._items.pop(name, ()):
            self._client.removeUserDebugItem(number)

    def _lines(
        self, name: str, lines: Sequence[tuple], colors: Sequence[Sequence[float]], width: float = 3
    ) -> None:
        """Lines in the place of those of the same name."""
        numbers = self._items.get(name, [])
        if len(numbers) != len(lines):
            self.remove(name)
            numbers = [-1] * len(lines)
        self._items[name] = [
            self._line(start, end, color, width, number)
            for number, (start, end), color in zip(numbers, lines, colors, strict=True)
        ]

    def _line(
        self, start: np.ndarray, end: np.ndarray, color: Sequence[float], width: float, number: int
    ) -> int:
        """A line, in the place of another of that number if there is one; its number."""
        replaced = {} if number < 0 else {"replaceItemUniqueId": number}
        return self._client.addUserDebugLine(start.tolist(), end.tolist(), list(color), width, **replaced)

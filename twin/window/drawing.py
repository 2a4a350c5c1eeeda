"""Paths, arrows and frames in the window, each with a name, by which it is replaced or taken away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import real_array

MOST_POINTS = 1000
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
        self._drawn: dict[str, Any] = {}

    def path(self, name: str, points: ArrayLike, color: Sequence[float], size: float = 2) -> None:
        """Points (N, 3), some thousand of them at most."""
        path = path_points(points)
        shown = path[:: 1 + len(path) // MOST_POINTS].tolist()
        if not shown:
            self.remove(name)
            return
        [number] = self._items.get(name) or [-1]
        replaced = {} if number < 0 else {"replaceItemUniqueId": number}
        self._items[name] = [
            self._client.addUserDebugPoints(shown, [list(color)] * len(shown), pointSize=size, **replaced)
        ]

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
        for number in self._items.pop(name, ()):
            self._client.removeUserDebugItem(number)

    def _lines(self, name: str, lines: Sequence[tuple], colors: Sequence[Sequence[float]]) -> None:
        """Lines in the place of those of the same name."""
        numbers = self._items.get(name, [])
        if len(numbers) != len(lines):
            self.remove(name)
            numbers = [-1] * len(lines)
        self._items[name] = [
            self._client.addUserDebugLine(
                start.tolist(),
                end.tolist(),
                list(color),
                3,
                **({} if number < 0 else {"replaceItemUniqueId": number}),
            )
            for number, (start, end), color in zip(numbers, lines, colors, strict=True)
        ]

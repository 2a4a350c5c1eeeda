"""Lines of text that stay where they are in the window, however the camera turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from twin.window.drawing import add_item

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

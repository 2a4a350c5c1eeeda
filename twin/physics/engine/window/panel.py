"""Sliders, buttons and keys of PyBullet's window.

They are read once per picture, all at the same time.  PyBullet cannot set a slider's value, rename a button
or remove either.  The whole panel is therefore created again at the next picture.
"""

from __future__ import annotations

from typing import Any

from twin.physics.engine.window.overlays import add_item

SPECIAL_KEYS = {
    "space": "B3G_SPACE",
    "return": "B3G_RETURN",
    "left": "B3G_LEFT_ARROW",
    "right": "B3G_RIGHT_ARROW",
    "up": "B3G_UP_ARROW",
    "down": "B3G_DOWN_ARROW",
    "home": "B3G_HOME",
    "end": "B3G_END",
    "shift": "B3G_SHIFT",
    "control": "B3G_CONTROL",
    "f1": "B3G_F1",
}


MOUSE_AT_REST = 3
"""Number of pictures without mouse events after which no slider moves any more."""


class Slider:
    """Slider of a panel; created by `Panel.slider`.

    Attributes:
        name: label, with the unit.
        low, high: end values.
        value: present value; exactly the value that was set, until the user moves the slider.
    """

    def __init__(self, panel: Panel, name: str, low: float, high: float, start: float) -> None:
        if not low < high:
            raise ValueError(f"expected a slider {name!r} from a low to a higher value, got {low} to {high}")
        if not low <= start <= high:
            raise ValueError(f"expected slider {name!r} to start from {low} to {high}, got {start}")
        self.name, self.low, self.high, self.value = name, float(low), float(high), float(start)
        self.number, self.shown, self.first = -1, 0.0, False
        self._panel = panel

    def set(self, value: float) -> None:
        """Set the value, limited to the ends."""
        self.value = min(max(float(value), self.low), self.high)
        self._panel.rebuild()

    def remove(self) -> None:
        """Remove the slider."""
        self._panel.remove(self)


class Button:
    """Button of a panel; created by `Panel.button`."""

    def __init__(self, panel: Panel, name: str) -> None:
        self.name = name
        self.number, self.shown, self.first, self.presses = -1, 0.0, False, 0
        self._panel = panel

    def pressed(self) -> bool:
        """Return whether the button was pressed, once for each press."""
        if self.presses == 0:
            return False
        self.presses -= 1
        return True

    def rename(self, name: str) -> None:
        """Change the label."""
        if name != self.name:
            self.name = name
            self._panel.rebuild()

    def remove(self) -> None:
        """Remove the button."""
        self._panel.remove(self)


class Panel:
    """Sliders and buttons at the right of the window, and the keys.

    The sliders that come first are on top; otherwise the order is that of creation.

    Args:
        client: PyBullet's client of the window.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._parts: list[Slider | Button] = []
        self._outdated = False
        self._keys: dict[int, int] = {}
        self._down_before: set[int] = set()
        self._since_mouse = 0  # number of pictures

    def slider(self, name: str, low: float, high: float, start: float, first: bool = False) -> Slider:
        """Add a slider, whose name should contain the unit, as in `"push [N]"`; `first` puts it on top."""
        slider = Slider(self, name, low, high, start)
        self._parts.append(slider)
        if first:
            slider.first = True
            self._parts.sort(key=lambda part: not part.first)
            self.rebuild()
        return slider

    def button(self, name: str) -> Button:
        """Add a button."""
        button = Button(self, name)
        self._parts.append(button)
        return button

    def key(self, name: str) -> bool:
        """Return whether a key went down since the last picture: a character, or one of `SPECIAL_KEYS`."""
        code = self._code(name)
        state = self._keys.get(code, 0)
        # For a key pressed and released between two pictures, the window reports only the release.
        short = state & self._client.KEY_WAS_RELEASED and code not in self._down_before
        return bool(state & self._client.KEY_WAS_TRIGGERED or short)

    def held(self, name: str) -> bool:
        """Return whether a key is down."""
        down = self._client.KEY_IS_DOWN | self._client.KEY_WAS_TRIGGERED
        return bool(self._keys.get(self._code(name), 0) & down)

    def read(self) -> None:
        """Read the user's input since the last picture."""
        down = self._client.KEY_IS_DOWN | self._client.KEY_WAS_TRIGGERED
        self._down_before = {code for code, state in self._keys.items() if state & down}
        self._keys = self._client.getKeyboardEvents()
        # Only the mouse moves a slider; reading all of them is slow on a busy computer.
        self._since_mouse = 0 if self._client.getMouseEvents() else self._since_mouse + 1
        if self._since_mouse > MOUSE_AT_REST:
            return
        for part in [part for part in self._parts if part.number >= 0]:
            now = self._client.readUserDebugParameter(part.number)
            if now == part.shown:
                continue
            if isinstance(part, Button):
                part.presses += round(now - part.shown)
            else:
                part.value = now
            part.shown = now

    def write(self) -> None:
        """Update the window's panel."""
        if self._outdated:
            self._outdated = False
            self._client.removeAllUserParameters()
            for part in self._parts:
                part.number = -1
        for part in self._parts:
            if part.number < 0:
                self._make(part)

    def rebuild(self) -> None:
        """Create the panel again at the next picture."""
        self._outdated = True

    def remove(self, part: Slider | Button) -> None:
        """Remove a slider or button; repeated calls have no effect."""
        if part in self._parts:
            self._parts.remove(part)
            self.rebuild()

    def _make(self, part: Slider | Button) -> None:
        low, high, start = (1, 0, 0) if isinstance(part, Button) else (part.low, part.high, part.value)
        # The window cuts off the first letter, so a space precedes it.
        add = self._client.addUserDebugParameter
        part.number = add_item(self._client, add, f" {part.name}", low, high, start)
        part.shown = self._client.readUserDebugParameter(part.number)

    def _code(self, name: str) -> int:
        if name in SPECIAL_KEYS:
            return getattr(self._client, SPECIAL_KEYS[name])
        if len(name) != 1:
            raise ValueError(f"expected a key of one character or of {', '.join(SPECIAL_KEYS)}, got {name!r}")
        return ord(name)

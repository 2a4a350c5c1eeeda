"""Sliders, buttons and keys of PyBullet's window.

They are read once a picture, all at the same time.  PyBullet cannot write a slider's value, rename a button
or remove either: the whole panel is made anew instead, with the next picture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from twin.engine.window.camera import PLACES
from twin.engine.window.overlays import RED, Overlays, StatusText, add_item
from twin.robot.robot import Payload

if TYPE_CHECKING:
    from twin.engine.window.bench import Bench


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
}


MOUSE_AT_REST = 3
"""Pictures without the mouse, after which nothing is moved by it any more."""


class Slider:
    """A slider; made by `Panel.slider`.

    Attributes:
        name: what stands on it, with the unit.
        low, high: its ends.
        value: where it stands; exactly where it was put, until a person moves it.
    """

    def __init__(self, panel: Panel, name: str, low: float, high: float, start: float) -> None:
        if not low < high:
            raise ValueError(f"expected a slider {name!r} from a low to a higher value, got {low} to {high}")
        if not low <= start <= high:
            raise ValueError(f"expected slider {name!r} to start from {low} to {high}, got {start}")
        self.name, self.low, self.high, self.value = name, float(low), float(high), float(start)
        self.number, self.shown = -1, 0.0
        self._panel = panel

    def set(self, value: float) -> None:
        """Put it at a value, at its end where that is beyond."""
        self.value = min(max(float(value), self.low), self.high)
        self._panel.make_anew()

    def remove(self) -> None:
        """Take it away."""
        self._panel.remove(self)


class Button:
    """A button; made by `Panel.button`."""

    def __init__(self, panel: Panel, name: str) -> None:
        self.name = name
        self.number, self.shown, self.presses = -1, 0.0, 0
        self._panel = panel

    def pressed(self) -> bool:
        """Whether it was pressed, once for each press."""
        if self.presses == 0:
            return False
        self.presses -= 1
        return True

    def rename(self, name: str) -> None:
        """Write something else on it."""
        if name != self.name:
            self.name = name
            self._panel.make_anew()

    def remove(self) -> None:
        """Take it away."""
        self._panel.remove(self)


class Panel:
    """The sliders and buttons at the right of the window, in the order in which they were made, and the keys.

    Args:
        client: PyBullet's, of the window.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._parts: list[Slider | Button] = []
        self._outdated = False
        self._keys: dict[int, int] = {}
        self._down_before: set[int] = set()
        self._since_mouse = 0  # pictures

    def slider(self, name: str, low: float, high: float, start: float) -> Slider:
        """A new slider; its name should tell the unit, as in `"push [N]"`."""
        slider = Slider(self, name, low, high, start)
        self._parts.append(slider)
        return slider

    def button(self, name: str) -> Button:
        """A new button."""
        button = Button(self, name)
        self._parts.append(button)
        return button

    def key(self, name: str) -> bool:
        """Whether a key went down since the last picture: a character, or one of `SPECIAL_KEYS`."""
        code = self._code(name)
        state = self._keys.get(code, 0)
        # Of a key that was pressed and let go between two pictures the window says the latter alone.
        short = state & self._client.KEY_WAS_RELEASED and code not in self._down_before
        return bool(state & self._client.KEY_WAS_TRIGGERED or short)

    def held(self, name: str) -> bool:
        """Whether a key is down."""
        down = self._client.KEY_IS_DOWN | self._client.KEY_WAS_TRIGGERED
        return bool(self._keys.get(self._code(name), 0) & down)

    def read(self) -> None:
        """Look what a person did since the last picture."""
        down = self._client.KEY_IS_DOWN | self._client.KEY_WAS_TRIGGERED
        self._down_before = {code for code, state in self._keys.items() if state & down}
        self._keys = self._client.getKeyboardEvents()
        # Only the mouse moves a part; to ask for each of them takes a while where other programs are busy.
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
        """Bring the window's panel up to date."""
        if self._outdated:
            self._outdated = False
            self._client.removeAllUserParameters()
            for part in self._parts:
                part.number = -1
        for part in self._parts:
            if part.number < 0:
                self._make(part)

    def make_anew(self) -> None:
        """Have it made anew with the next picture."""
        self._outdated = True

    def remove(self, part: Slider | Button) -> None:
        """Take a part away; a second time does nothing."""
        if part in self._parts:
            self._parts.remove(part)
            self.make_anew()

    def _make(self, part: Slider | Button) -> None:
        low, high, start = (1, 0, 0) if isinstance(part, Button) else (part.low, part.high, part.value)
        # The window cuts the first letter off: it gets a space.
        add = self._client.addUserDebugParameter
        part.number = add_item(self._client, add, f" {part.name}", low, high, start)
        part.shown = self._client.readUserDebugParameter(part.number)

    def _code(self, name: str) -> int:
        if name in SPECIAL_KEYS:
            return getattr(self._client, SPECIAL_KEYS[name])
        if len(name) != 1:
            raise ValueError(f"expected a key of one character or of {', '.join(SPECIAL_KEYS)}, got {name!r}")
        return ord(name)


HELP = (
    "space: pause   n: one step   + -: speed   f (held): push   p: payload",
    "t: frames   c: centres of mass   a: arrows   i: text   h: panels",
    "1 2 3 4: camera   Ctrl and mouse: turn it   wheel: nearer   Esc: close",
)
SPEEDS = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)
AXES = "xyz"
LOAD_COM = (0.0, 0.0, 0.05)  # m before the flange


class Controls:
    """The keys, buttons and sliders of every window.

    Args:
        bench: whose they are.
        client: PyBullet's, of the window.
    """

    help = HELP

    def __init__(self, bench: Bench, client: Any) -> None:
        self._bench = bench
        self._status, self._overlays = StatusText(bench), Overlays(bench, client)
        panel, rating = bench.panel, bench.arm.robot.rating
        load = 5.0 if rating is None else rating.payload
        self._force_range = 40.0 * load
        self._pause = panel.button("pause / go (space)")
        self._step = panel.button("one step (n)")
        self._slower, self._faster = panel.button("slower (-)"), panel.button("faster (+)")
        self._frames, self._coms = panel.button("frames (t)"), panel.button("centres of mass (c)")
        self._arrows = panel.button("arrows (a)")
        self._camera = panel.button("camera place (1 2 3 4)")
        self._force = panel.slider("push [N]", -self._force_range, self._force_range, self._force_range / 4)
        self._along = panel.button("push along x: change")
        self._push = panel.button("push: start / stop (f)")
        self._mass = panel.slider("payload [kg]", 0.1, 2.0 * load, load / 2)
        self._payload = panel.button("payload: attach / drop (p)")
        self._first_payload = bench.arm.robot.payload
        self._axis, self._pushing, self._place = 0, False, 0
        self._with_frames, self._with_coms, self._with_arrows = False, False, True

    def read(self) -> None:
        """Do what was asked for since the last picture."""
        bench, panel = self._bench, self._bench.panel
        if self._pause.pressed() or panel.key("space"):
            bench.paused = not bench.paused
        if self._step.pressed() or panel.key("n"):
            bench.step_once()
        if self._slower.pressed() or panel.key("-"):
            bench.speed = max((s for s in SPEEDS if s < bench.speed), default=SPEEDS[0])
        if self._faster.pressed() or panel.key("+") or panel.key("="):
            bench.speed = min((s for s in SPEEDS if s > bench.speed), default=max(bench.speed, SPEEDS[-1]))
        if self._frames.pressed() or panel.key("t"):
            self._with_frames = not self._with_frames
        if self._coms.pressed() or panel.key("c"):
            self._with_coms = not self._with_coms
        if self._arrows.pressed() or panel.key("a"):
            self._with_arrows = not self._with_arrows
        if panel.key("i"):
            bench.show_text(not bench.text_shown)
        if panel.key("h"):
            bench.show_panels(not bench.panels_shown)
        if self._camera.pressed():
            self._place = (self._place + 1) % len(PLACES)
            bench.look_from(self._place)
        for place in range(len(PLACES)):
            if panel.key(str(place + 1)):
                self._place = place
                bench.look_from(place)
        self._read_push()
        if self._payload.pressed() or panel.key("p"):
            self._change_payload()

    def _read_push(self) -> None:
        """The force of the person, from the key or the button."""
        bench = self._bench
        if self._along.pressed():
            self._axis = (self._axis + 1) % 3
            self._along.rename(f"push along {AXES[self._axis]}: change")
        if self._push.pressed():
            self._pushing = not self._pushing
        pushing = self._pushing or bench.panel.held("f")
        force = (self._force.value * pushing * np.eye(3)[self._axis]).tolist()
        if force == ([0.0] * 3 if bench.push is None else bench.push.tolist()):
            return
        bench.push = np.array(force) if any(force) else None
        if bench.push is None:
            bench.touch("push ended")
        else:
            self._tell_push()

    def _tell_push(self) -> None:
        self._bench.touch(f"pushed with {self._force.value:g} N along {AXES[self._axis]}")

    def _change_payload(self) -> None:
        """Drop what the arm carries, or attach a payload."""
        arm, before = self._bench.arm, self._bench.arm.robot.payload
        mass = float(f"{self._mass.value:.3g}")
        arm.change_payload(Payload(mass, LOAD_COM) if before is None else None)
        self._tell_payload(before)

    def _tell_payload(self, before: Payload | None) -> None:
        now = self._bench.arm.robot.payload
        dropped = "" if before is None else f"payload of {before.mass:g} kg dropped"
        self._bench.touch(dropped if now is None else f"payload of {now.mass:g} kg attached")

    def tell_what_lasts(self) -> None:
        """Note a push that lasts, and a payload that is not the one of the beginning."""
        if self._bench.push is not None:
            self._tell_push()
        if self._bench.arm.robot.payload is not self._first_payload:
            self._tell_payload(self._first_payload)

    def show(self) -> None:
        """Bring text and drawings up to date."""
        self._status.write()
        self._overlays.show(self._with_frames, self._with_coms)
        bench = self._bench
        if bench.push is not None and self._with_arrows:
            length = bench.reach / self._force_range
            bench.arrow("push", bench.tool_pose()[:3, 3], length * bench.push, RED)
        else:
            bench.remove("push")

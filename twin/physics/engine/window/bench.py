"""PyBullet's window as a bench: display of a running simulation, and the user's actions on it.

The window has a separate world in which nothing moves by itself.  Some twenty times a second the drawn arm is
placed where the simulated arm is, and the controls are read.  The simulation runs in a world without a
window.  Without user actions, a run therefore equals one without a window, to the bit.

Sliders, buttons and keys are read once per picture, all at the same time.  PyBullet cannot set a slider's
value, rename a button or remove either.  The whole panel is therefore created again at the next picture.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import real_array
from twin.physics.engine.window.camera import PLACES, Pictures, furnish_window, look, step_back
from twin.physics.engine.window.overlays import INK, PANELS, Drawing, Ghost, LiveText, add_item, path_points
from twin.physics.engine.window.x11_window import WindowWatch
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.robot.robot import Payload, Robot

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


class Watched(Protocol):
    """Simulation that a bench displays and controls, as `twin.Simulation`."""

    robot: Robot
    time_step: float

    @property
    def tau(self) -> np.ndarray: ...  # noqa: D102
    @property
    def tau_joint(self) -> np.ndarray: ...  # noqa: D102
    def state(self) -> np.ndarray: ...  # noqa: D102
    def change_payload(self, payload: Payload | None) -> None: ...  # noqa: D102


class Offered(Protocol):
    """Controls of a window, as `Controls`."""

    @property
    def help(self) -> Sequence[str]: ...  # noqa: D102
    def read(self) -> None: ...  # noqa: D102
    def show(self) -> None: ...  # noqa: D102
    def note_lasting_actions(self) -> None: ...  # noqa: D102


NOT_WORTH_SLEEPING = 0.004  # s
TOO_FAR_BEHIND = 1.0  # s: the loop catches up after a slow picture, but not after a breakpoint


class RealTimeClock:
    """Clock that slows a loop down to real time.

    Attributes:
        restarts: number of times that the clock was restarted because the loop was too far behind.
        restarted: whether the last `tick` restarted it.

    Args:
        period: period of the loop, in [s].
        too_far_behind: delay that the loop does not catch up with, in [s].
    """

    def __init__(self, period: float, too_far_behind: float = TOO_FAR_BEHIND) -> None:
        self.period, self.too_far_behind = period, too_far_behind
        self.restarts, self.restarted = 0, False
        self.restart()

    def restart(self) -> None:
        """Restart the clock now."""
        self._due = time.perf_counter()

    def ahead(self) -> float:
        """Return the time by which the loop is ahead of the clock, in [s]; negative if it is late."""
        return self._due - time.perf_counter()

    def tick(self) -> float:
        """End a period; return the time by which the loop is ahead of the clock, in [s].

        It is negative if the loop is late.  A loop that is too far behind does not catch up.
        """
        self._due += self.period
        ahead = self.ahead()
        self.restarted = ahead < -self.too_far_behind
        if self.restarted:
            self.restarts += 1
            self.restart()
        return ahead

    def after_step(self) -> None:
        """End a period: sleep until the clock catches up."""
        ahead = self.tick()
        if ahead > NOT_WORTH_SLEEPING:
            time.sleep(ahead)


class Bench:
    """Window of a simulation.

    Attributes:
        arm: the simulation.
        drawn_arm: the drawn copy of its arm.
        panel: sliders, buttons and keys.
        paused: whether the run is paused; `step_once` makes a single step.
        speed: speed of the run relative to real time; infinite for as fast as possible.
        touches: `(time, text)` of every user action that changes the motion.
        T_flange_tool: (4, 4) pose of the tool that is shown and pushed.
        push: (3,) force of the user on the tool, base axes, in [N]; `None` without a push.

    Args:
        client: PyBullet's client of the window.
        watch: watch over the connection of the window.
        arm: the simulation.
        speed: speed relative to real time.
        close: function that closes the simulation.
        controls: function that creates the controls of the window.
    """

    def __init__(
        self,
        client: Any,
        watch: WindowWatch,
        arm: Watched,
        speed: float,
        close: Callable[[], None],
        controls: Callable[[Bench, Any], Offered],
    ) -> None:
        self._client, self.arm, self._close = client, arm, close
        self.paused, self.speed = False, speed
        self.touches: list[tuple[float, str]] = []
        self.steps, self.steps_to_go = 0, 0
        rating = arm.robot.rating
        self.reach = 0.8 if rating is None else rating.reach  # m: scale of the drawings
        self.T_flange_tool: np.ndarray = np.eye(4)
        self.push: np.ndarray | None = None
        self._ghosts: dict[str, Ghost] = {}
        self._ghosts_drawn: list[Ghost] = []  # removed ghosts remain here until the next picture
        self._in_picture = False
        self._callbacks: list[Callable[[], None]] = []
        self._clock = RealTimeClock(arm.time_step)
        self._pictures = Pictures(client, watch)
        client.setPhysicsEngineParameter(enableFileCaching=0)
        furnish_window(client)
        self.drawn_arm = Ghost(client, arm.robot)
        self.drawn_arm.write()
        self.panels_shown = True
        self.look_from(0)
        self.panel, self._drawing, self._text = Panel(client), Drawing(client), LiveText(client)
        self._controls = controls(self, client)
        for line in reversed(self._controls.help):
            self.add_keys(line)
        self._pictures.start()
        self.write_line("starting", "starting: the first time for a robot takes some 15 s")
        for _ in range(2):  # the background has its colour from the second picture on
            with self._pictures.drawn_after():
                self._text.write(client.getDebugVisualizerCamera(), self.panels_shown)
        for _ in range(2):  # the window arranges its panels at the first picture
            self.picture()

    @property
    def lost(self) -> bool:
        """Whether the window was closed."""
        return self._pictures.lost

    @property
    def time(self) -> float:
        """Time of the simulation since its last reset, in [s]."""
        return self.steps * self.arm.time_step

    def on_picture(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback()` before each picture; return a function that ends this."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None

    def ghost(
        self, name: str, robot: Robot, color: Sequence[float] = (0.1, 0.4, 0.9), opacity: float = 0.4
    ) -> Ghost:
        """Draw an arm that is not simulated, and write its name in its colour.

        It replaces a ghost of the same name.
        """
        if (before := self._ghosts.get(name)) is not None:
            before.remove()
        self._ghosts[name] = ghost = Ghost(self._client, robot, color, opacity)
        self._ghosts_drawn.append(ghost)
        return ghost

    def path(self, name: str, points: ArrayLike, color: Sequence[float] = (0.0, 0.35, 0.9)) -> None:
        """Draw a line through points (N, 3), base frame, in [m]; it replaces a drawing of the same name."""
        self._drawing.path(name, points, color)

    def crosses(self, name: str, points: ArrayLike, color: Sequence[float], length: float = 0.03) -> None:
        """Draw a cross of `length`, in [m], at each of points (N, 3), base frame."""
        self._drawing.crosses(name, points, color, length)

    def arrow(self, name: str, start: ArrayLike, vector: ArrayLike, color: Sequence[float]) -> None:
        """Draw an arrow from `start` (3,) along `vector` (3,), base frame, in [m]."""
        self._drawing.arrow(name, start, vector, color)

    def frame(self, name: str, T: ArrayLike, length: float = 0.1) -> None:
        """Draw the axes of a pose (4, 4), base frame, of `length`, in [m]: x red, y green, z blue."""
        self._drawing.frame(name, T, length)

    def remove(self, name: str) -> None:
        """Remove a path, crosses, an arrow or a frame."""
        self._drawing.remove(name)

    def write_line(self, name: str, text: str, color: Sequence[float] | None = None) -> None:
        """Write a line of text at the top left, below the earlier ones; an empty text removes the line."""
        self._text.write_line(name, text, INK if color is None else color)

    def add_keys(self, line: str) -> None:
        """Add a line that explains keys, at the bottom left above the others; `?` hides and shows them."""
        self._text.write_line(line, line, foot=True)

    def bring_into_view(self, points: ArrayLike) -> None:
        """Move the camera back if points (N, 3) are outside the window, and draw."""
        panels, path = PANELS if self.panels_shown else (0, 0), path_points(points)
        with self._pictures.calls():
            step_back(self._client, self.drawn_arm.body, path, panels)
        self.picture()

    def look_from(self, place: int) -> None:
        """Move the camera to one of `twin.engine.window.camera.PLACES`, with the whole arm in view."""
        with self._pictures.calls():
            look(self._client, self.drawn_arm.body, PLACES[place])

    def show_panels(self, visible: bool) -> None:
        """Show or hide buttons and sliders; hiding them leaves more room for the arm."""
        self.panels_shown = visible
        with self._pictures.calls():
            self._client.configureDebugVisualizer(self._client.COV_ENABLE_GUI, int(visible))

    def tool_pose(self) -> np.ndarray:
        """Return the pose (4, 4) of the tool by the analytic kinematics."""
        return self.flange_pose() @ self.T_flange_tool

    def flange_pose(self) -> np.ndarray:
        """Return the pose (4, 4) of the flange by the analytic kinematics."""
        return forward_kinematics(self.arm.robot, self.arm.state()[0])

    def step_once(self) -> None:
        """Make a single step, and pause again."""
        self.paused = True
        self.steps_to_go += 1

    def touch(self, what: str) -> None:
        """Record a user action that changes the motion."""
        self.touches.append((self.time, what))

    def restart(self) -> None:
        """Restart time and list of actions after a reset of the simulation.

        Actions that still last, a push or another payload, are recorded again.
        """
        self.steps = 0
        self.touches.clear()
        self._controls.note_lasting_actions()
        self._clock.restart()

    def pushed(
        self, wrench: ArrayLike | None, T_flange_tool: ArrayLike | None
    ) -> tuple[ArrayLike | None, ArrayLike | None]:
        """Return the wrench of the next step, with the user's force, and the tool that it acts on."""
        if self.push is None:
            return wrench, T_flange_tool
        push = np.concatenate((self.push, np.zeros(3)))
        if wrench is None:
            return push, self.T_flange_tool if T_flange_tool is None else T_flange_tool
        return real_array(wrench, "wrench") + push, T_flange_tool

    def after_step(self) -> None:
        """Keep the pace or the pause of the run, and draw when a picture is due."""
        self.steps += 1
        if self.lost:
            return
        if self.steps == 1:
            self.write_line("starting", "")
        if time.perf_counter() >= self._pictures.due:
            self.picture()
        if self.paused:
            self._stand()
        elif self.speed < np.inf:
            self._clock.period = self.arm.time_step / self.speed
            self._wait(self._clock.tick())

    def picture(self) -> None:
        """Read the controls, and draw the present state."""
        if self._in_picture:  # a callback requested another picture
            return
        self._in_picture = True
        try:
            self._make_picture()
        finally:
            self._in_picture = False

    def _make_picture(self) -> None:
        with self._pictures.drawn_after():
            self.panel.read()
            self._read_view_keys()
            self._controls.read()
            for callback in tuple(self._callbacks):
                callback()
            self.drawn_arm.place(self.arm.state()[0])
            self._controls.show()
            self._write_ghosts()
            self._drawing.write()
            self.panel.write()
            self._text.write(self._client.getDebugVisualizerCamera(), self.panels_shown)

    def _read_view_keys(self) -> None:
        """Choose the camera; show or hide panels, text and the explanation of the keys."""
        key, text = self.panel.key, self._text
        if key("h"):
            self.show_panels(not self.panels_shown)
        if key("i"):
            text.visible = not text.visible
        for place in range(len(PLACES)):
            if key(str(place + 1)):
                self.look_from(place)
        if any([key("?"), key("/"), key("f1")]):  # PyBullet reports the key without shift, and no German ?
            text.keys_visible = not text.keys_visible

    def wait_until(self, done: Callable[[], bool]) -> None:
        """Keep the window alive without a step, until `done()` is true or the window is closed."""
        self.write_line("starting", "")
        while not (done() or self.lost):
            time.sleep(max(0.0, self._pictures.due - time.perf_counter()))
            self.picture()
        self._clock.restart()

    def linger(self, text: str = "the run is over") -> None:
        """Keep the window open until the user closes it or continues."""
        button = self.panel.button("go on (return)")
        self.picture()
        self.write_line("linger", f"{text}: press return or close the window", (0.75, 0.1, 0.1))
        self.wait_until(lambda: button.pressed() or self.panel.key("return"))
        self.write_line("linger", "")
        button.remove()

    def close(self) -> None:
        """Close the window; repeated calls have no effect."""
        self._pictures.close()
        self._close()
        self._close = lambda: None

    def _stand(self) -> None:
        """Wait until the user continues the run or makes a single step."""
        if not self.steps_to_go:
            self.picture()  # of the present state
        self.wait_until(lambda: not self.paused or self.steps_to_go > 0)
        self.steps_to_go = max(0, self.steps_to_go - 1) if self.paused else 0

    def _wait(self, ahead: float) -> None:
        """Sleep until the clock catches up, and draw meanwhile."""
        until = time.perf_counter() + ahead
        while (left := until - time.perf_counter()) > NOT_WORTH_SLEEPING and not (self.lost or self.paused):
            time.sleep(max(0.0, min(left, self._pictures.due - time.perf_counter())))
            if time.perf_counter() >= self._pictures.due:
                self.picture()

    def _write_ghosts(self) -> None:
        """Move the ghosts, and write a line of text for every visible ghost."""
        for name, ghost in tuple(self._ghosts.items()):
            seen = ghost.visible and not ghost.removed
            self.write_line(f"ghost {name}", f"ghost: {name}" if seen else "", ghost.color)
            if ghost.removed:
                del self._ghosts[name]
        for ghost in (self.drawn_arm, *self._ghosts_drawn):
            ghost.write()
        self._ghosts_drawn = [ghost for ghost in self._ghosts_drawn if not ghost.removed]

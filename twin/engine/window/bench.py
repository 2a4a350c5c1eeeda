"""A person at PyBullet's window: what they see of a running simulation, and what they do to it.

The window has a world of its own, in which nothing moves by itself: some twenty times a second the arm is
put there where the simulation has it, and what was pressed is read.  The simulation, in a world without a
window, never notices; a run that nobody touches is the run without a window, to the bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import real_array
from twin.engine.window.camera import PLACES, Pictures, furnish_window, look, step_back
from twin.engine.window.ghosts import Ghost
from twin.engine.window.overlays import INK, PANELS, Drawing, LiveText, path_points
from twin.engine.window.panel import Panel
from twin.engine.window.x11_window import WindowWatch
from twin.kinematics.forward import forward_kinematics
from twin.robot.robot import Payload, Robot


class Watched(Protocol):
    """What a bench shows and touches: `twin.Simulation`."""

    robot: Robot
    time_step: float

    @property
    def tau(self) -> np.ndarray: ...  # noqa: D102
    def state(self) -> np.ndarray: ...  # noqa: D102
    def change_payload(self, payload: Payload | None) -> None: ...  # noqa: D102


class Offered(Protocol):
    """What a window offers: `Controls`, or others in their place."""

    @property
    def help(self) -> Sequence[str]: ...  # noqa: D102
    def read(self) -> None: ...  # noqa: D102
    def show(self) -> None: ...  # noqa: D102
    def tell_what_lasts(self) -> None: ...  # noqa: D102


NOT_WORTH_SLEEPING = 0.004  # s
TOO_FAR_BEHIND = 1.0  # s: a slow picture is caught up with, a breakpoint is not


class RealTimeClock:
    """Holds a loop back to real time.

    Attributes:
        restarts: how often the loop fell so far behind that the clock was set anew.
        restarted: whether the last `tick` did that.

    Args:
        period: of the loop, in [s].
        too_far_behind: what is not caught up with, in [s].
    """

    def __init__(self, period: float, too_far_behind: float = TOO_FAR_BEHIND) -> None:
        self.period, self.too_far_behind = period, too_far_behind
        self.restarts, self.restarted = 0, False
        self.restart()

    def restart(self) -> None:
        """Count from now."""
        self._due = time.perf_counter()

    def ahead(self) -> float:
        """How far ahead of the clock the loop is, in [s]; below 0 it is late."""
        return self._due - time.perf_counter()

    def tick(self) -> float:
        """End a period: how far ahead of the clock the loop is, in [s].

        Below 0 it is late; one that fell far behind does not hurry.
        """
        self._due += self.period
        ahead = self.ahead()
        self.restarted = ahead < -self.too_far_behind
        if self.restarted:
            self.restarts += 1
            self.restart()
        return ahead

    def after_step(self) -> None:
        """End a period: sleep until the clock has caught up."""
        ahead = self.tick()
        if ahead > NOT_WORTH_SLEEPING:
            time.sleep(ahead)


class Bench:
    """The window of a simulation.

    Attributes:
        arm: what is shown.
        drawn_arm: as it is drawn.
        panel: sliders, buttons, keys.
        paused: whether the run stands; `step_once` lets it make one step.
        speed: of the run in real times; infinite: as fast as it goes.
        touches: `(time, what)` for all that a person did that changes the motion.
        T_flange_tool: (4, 4) the tool that is shown and pushed.
        push: (3,) force of the person on the tool, base axes, in [N]; `None` while there is none.

    Args:
        client: PyBullet's, of the window's world.
        watch: over the window.
        arm: what is shown.
        speed: in real times.
        close: closes it.
        controls: makes what the window offers.
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
        self.reach = 0.8 if rating is None else rating.reach  # m: the size of what is drawn
        self.T_flange_tool: np.ndarray = np.eye(4)
        self.push: np.ndarray | None = None
        self._ghosts: dict[str, Ghost] = {}
        self._ghosts_drawn: list[Ghost] = []  # those that are taken away, until they are
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
        for row, line in enumerate(self._controls.help):
            self._text.say(f"help {row}", line, foot=True)
        self._pictures.start()
        for _ in range(2):  # the window arranges its panels with the first
            self.picture()

    @property
    def lost(self) -> bool:
        """Whether the window was closed."""
        return self._pictures.lost

    @property
    def time(self) -> float:
        """Of the simulation since it was last reset, in [s]."""
        return self.steps * self.arm.time_step

    def on_picture(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have `callback()` called right before each picture; returns a function that ends that."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None

    def ghost(
        self, name: str, robot: Robot, color: Sequence[float] = (0.1, 0.4, 0.9), opacity: float = 0.4
    ) -> Ghost:
        """An arm that is drawn, not simulated; its name stands in the text, in its colour.

        One of the same name is taken away.
        """
        if (before := self._ghosts.get(name)) is not None:
            before.remove()
        self._ghosts[name] = ghost = Ghost(self._client, robot, color, opacity)
        self._ghosts_drawn.append(ghost)
        return ghost

    def path(self, name: str, points: ArrayLike, color: Sequence[float] = (0.0, 0.35, 0.9)) -> None:
        """Draw a line through points (N, 3), base frame, in [m], in the place of what had that name."""
        self._drawing.path(name, points, color)

    def crosses(self, name: str, points: ArrayLike, color: Sequence[float], length: float = 0.03) -> None:
        """Draw a cross at each of points (N, 3), base frame, `length` in [m]."""
        self._drawing.crosses(name, points, color, length)

    def arrow(self, name: str, start: ArrayLike, vector: ArrayLike, color: Sequence[float]) -> None:
        """Draw an arrow from `start` (3,) along `vector` (3,), base frame, in [m]."""
        self._drawing.arrow(name, start, vector, color)

    def frame(self, name: str, T: ArrayLike, length: float = 0.1) -> None:
        """Draw the axes of a pose (4, 4), base frame: x red, y green, z blue, `length` in [m]."""
        self._drawing.frame(name, T, length)

    def remove(self, name: str) -> None:
        """Take a path, an arrow or a frame away."""
        self._drawing.remove(name)

    def say(self, name: str, text: str, color: Sequence[float] | None = None) -> None:
        """Write a line of text at the top left, below those before it; an empty one is taken away."""
        self._text.say(name, text, INK if color is None else color)

    def bring_into_view(self, points: ArrayLike) -> None:
        """Step back with the camera where points (N, 3) are beyond the window, and make a picture."""
        panels, path = PANELS if self.panels_shown else (0, 0), path_points(points)
        with self._pictures.calls():
            step_back(self._client, self.drawn_arm.body, path, panels)
        self.picture()

    def look_from(self, place: int) -> None:
        """Put the camera to one of `twin.engine.window.camera.PLACES`, the whole arm in view."""
        with self._pictures.calls():
            look(self._client, self.drawn_arm.body, PLACES[place])

    def show_panels(self, visible: bool) -> None:
        """Show or hide buttons and sliders; without them there is more room for the arm."""
        self.panels_shown = visible
        with self._pictures.calls():
            self._client.configureDebugVisualizer(self._client.COV_ENABLE_GUI, int(visible))

    @property
    def text_shown(self) -> bool:
        """Whether the lines of text are shown."""
        return self._text.visible

    def show_text(self, visible: bool) -> None:
        """Show or hide the lines of text."""
        self._text.visible = visible

    def tool_pose(self) -> np.ndarray:
        """Pose (4, 4) of the tool, as our kinematics have it where the arm is."""
        return self.flange_pose() @ self.T_flange_tool

    def flange_pose(self) -> np.ndarray:
        """Pose (4, 4) of the flange, the same way."""
        return forward_kinematics(self.arm.robot, self.arm.state()[0])

    def step_once(self) -> None:
        """Make one step, or one more, and stand still again."""
        self.paused = True
        self.steps_to_go += 1

    def touch(self, what: str) -> None:
        """Note what a person did that changes the motion."""
        self.touches.append((self.time, what))

    def restart(self) -> None:
        """The simulation was put somewhere: time and touches start anew.

        What still lasts, a push or another payload, is among them.
        """
        self.steps = 0
        self.touches.clear()
        self._controls.tell_what_lasts()
        self._clock.restart()

    def pushed(
        self, wrench: ArrayLike | None, T_flange_tool: ArrayLike | None
    ) -> tuple[ArrayLike | None, ArrayLike | None]:
        """The wrench of the next step and the tool that it acts on, with the person's force."""
        if self.push is None:
            return wrench, T_flange_tool
        push = np.concatenate((self.push, np.zeros(3)))
        if wrench is None:
            return push, self.T_flange_tool if T_flange_tool is None else T_flange_tool
        return real_array(wrench, "wrench") + push, T_flange_tool

    def after_step(self) -> None:
        """Hold the run to its pace, or still; make the pictures that are due."""
        self.steps += 1
        if self.lost:
            return
        if time.perf_counter() >= self._pictures.due:
            self.picture()
        if self.paused:
            self._stand()
        elif self.speed < np.inf:
            self._clock.period = self.arm.time_step / self.speed
            self._wait(self._clock.tick())

    def picture(self) -> None:
        """Read what was pressed, and show how things stand, now."""
        if self._in_picture:  # one of its callbacks asks for another
            return
        self._in_picture = True
        try:
            self._make_picture()
        finally:
            self._in_picture = False

    def _make_picture(self) -> None:
        with self._pictures.drawn_after():
            self.panel.read()
            self._controls.read()
            for callback in tuple(self._callbacks):
                callback()
            self.drawn_arm.place(self.arm.state()[0])
            self._controls.show()
            self._write_ghosts()
            self._drawing.write()
            self.panel.write()
            self._text.write(self._client.getDebugVisualizerCamera(), self.panels_shown)

    def wait_until(self, done: Callable[[], bool]) -> None:
        """Keep the window alive without a step, until `done()` or until it is closed."""
        while not (done() or self.lost):
            time.sleep(max(0.0, self._pictures.due - time.perf_counter()))
            self.picture()
        self._clock.restart()

    def linger(self, text: str = "the run is over") -> None:
        """Keep the window open until it is closed or a person says that it may go on."""
        button = self.panel.button("go on (return)")
        self.picture()
        self.say("linger", f"{text}: press return or close the window", (0.75, 0.1, 0.1))
        self.wait_until(lambda: button.pressed() or self.panel.key("return"))
        self.say("linger", "")
        button.remove()

    def close(self) -> None:
        """Close the window; a second time does nothing."""
        self._pictures.close()
        self._close()
        self._close = lambda: None

    def _stand(self) -> None:
        """Stand still until a person lets the run go on, or make one step."""
        if not self.steps_to_go:
            self.picture()  # as things are now
        self.wait_until(lambda: not self.paused or self.steps_to_go > 0)
        self.steps_to_go = max(0, self.steps_to_go - 1) if self.paused else 0

    def _wait(self, ahead: float) -> None:
        """Sleep until the clock has caught up; pictures are made meanwhile."""
        until = time.perf_counter() + ahead
        while (left := until - time.perf_counter()) > NOT_WORTH_SLEEPING and not (self.lost or self.paused):
            time.sleep(max(0.0, min(left, self._pictures.due - time.perf_counter())))
            if time.perf_counter() >= self._pictures.due:
                self.picture()

    def _write_ghosts(self) -> None:
        """Put the arms where they should be, and a line of text for every ghost that is seen."""
        for name, ghost in tuple(self._ghosts.items()):
            seen = ghost.visible and not ghost.removed
            self.say(f"ghost {name}", f"ghost: {name}" if seen else "", ghost.color)
            if ghost.removed:
                del self._ghosts[name]
        for ghost in (self.drawn_arm, *self._ghosts_drawn):
            ghost.write()
        self._ghosts_drawn = [ghost for ghost in self._ghosts_drawn if not ghost.removed]

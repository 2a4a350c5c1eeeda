"""Jogging on the bench: a panel of the window, or a page in a browser, sets the target of a reference."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from twin.base.errors import DivergenceError
from twin.data.logs.closed_loop import run_closed_loop
from twin.physics.engine.simulation import Simulation
from twin.physics.robot.limits import joint_ranges
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import SHOWN, shown
from twin.physics.trajectories.jogging import AXES, Follower, ToolJog
from twin.studies.views.browser import View

if TYPE_CHECKING:
    from scenarios.setup import Setup
    from twin.physics.engine.window.bench import Bench

MODES = ("joints", "base", "tool")
TITLES = {"joints": "jog: joints", "base": "jog: tool, base axes", "tool": "jog: tool, its axes"}
TOOL_RANGE = np.array([0.5] * 3 + [np.pi / 2] * 3)
"""Largest displacement of the tool from the start of jogging, in [m] and [rad]."""
KEY_SPEED = 0.2
"""Speed of an axis while its key is held down: share of its range per second."""


class JogPanel:
    """Sliders and keys that set the target of a `Follower`.

    Attributes:
        mode: jogging mode, one of `MODES`.
        axis: index of the slider that the arrow keys move.

    Args:
        bench: bench of the window.
        robot: robot to jog.
        follower: reference to set the target of.
        T_flange_tool: (4, 4) pose of the tool on the flange.
    """

    def __init__(self, bench: Bench, robot: Robot, follower: Follower, T_flange_tool: NDArray) -> None:
        self._bench, self._robot, self._follower, self._T = bench, robot, follower, T_flange_tool
        self.mode, self.axis = "joints", 0
        bench.add_keys("up down: choose a joint   left right: move it   j: joints or tool   s: stop")
        self._hold = bench.panel.button("stop (s)")
        self._button = bench.panel.button("jog: joints / base / tool (j)")
        self._sliders: list = []
        self.rebuild()

    def rebuild(self) -> None:
        """Create the sliders again, for the mode and for the target of the reference."""
        for slider in self._sliders:
            slider.remove()
        follower = self._follower
        if self.mode == "joints":
            names, low, high = self._robot.joint_names, *joint_ranges(self._robot)
            start, kinds = follower.target, self._robot.joint_kinds
        else:
            self._tool = ToolJog.begin(self._robot, follower.target, self._T, self.mode == "tool")
            names, low, high, start = AXES, -TOOL_RANGE, TOOL_RANGE, np.zeros(6)
            kinds = ("prismatic",) * 3 + ("revolute",) * 3
        self._scale = np.array([SHOWN[kind][1] for kind in kinds])
        self._low, self._high, self._desired = low, high, np.array(start)
        units = [SHOWN[kind][0] for kind in kinds]
        self._sliders = [
            self._bench.panel.slider(f"{name} [{unit}]", *(scale * np.array([a, b, at])), first=True)
            for name, unit, scale, a, b, at in zip(
                names, units, self._scale, low, high, self._desired, strict=True
            )
        ]
        self._names, self._units = names, units
        self._read = [slider.value for slider in self._sliders]
        self._key_axis = -1  # axis of the arrow key that is held down, -1 for none
        self.axis = min(self.axis, len(self._sliders) - 1)

    def act(self, seconds: float) -> None:
        """Apply the user's input since the last picture.

        Args:
            seconds: time since the last picture, in [s].
        """
        panel = self._bench.panel
        if self._hold.pressed() or panel.key("s"):
            self._follower.stop()
            self.rebuild()
        if self._button.pressed() or panel.key("j"):
            self._follower.stop()
            self.mode = MODES[(MODES.index(self.mode) + 1) % len(MODES)]
            self.rebuild()
        self._take_sliders()
        self._take_keys(seconds)
        self._go(seconds)
        name, unit = self._names[self.axis], self._units[self.axis]
        at = self._scale[self.axis] * self._desired[self.axis]
        self._bench.write_line("jog", f"{TITLES[self.mode]}; arrow keys: {name} {at:.1f} {unit}")

    def _take_sliders(self) -> None:
        for axis, slider in enumerate(self._sliders):
            value = slider.value
            if value != self._read[axis]:
                self._read[axis] = value
                self._desired[axis] = value / self._scale[axis]

    def _take_keys(self, seconds: float) -> None:
        panel = self._bench.panel
        step = int(panel.key("down")) - int(panel.key("up"))
        self.axis = (self.axis + step) % len(self._sliders)
        sense = int(panel.held("right")) - int(panel.held("left"))
        axis = self.axis
        if sense:
            displacement = sense * KEY_SPEED * seconds * (self._high[axis] - self._low[axis])
            self._desired[axis] = np.clip(
                self._desired[axis] + displacement, self._low[axis], self._high[axis]
            )
            self._key_axis = axis
        elif self._key_axis >= 0:  # the key was released: move the slider to the position of the axis
            axis, self._key_axis = self._key_axis, -1
            self._sliders[axis].set(self._scale[axis] * self._desired[axis])
            self._read[axis] = self._sliders[axis].value

    def _go(self, seconds: float) -> None:
        """Set the target of the reference."""
        if self.mode == "joints":
            self._follower.target = self._desired.copy()
            return
        if np.array_equal(self._tool.desired, self._desired) and np.array_equal(
            self._tool.offset, self._desired
        ):
            return
        self._tool.desired = self._desired.copy()
        q = self._tool.advance(seconds, self._follower.target)
        if q is None:
            self._bench.write_line(
                "refused", "the tool cannot go there: out of reach, a joint limit, or a singularity"
            )
            self._desired = self._tool.desired.copy()
        else:
            self._bench.write_line("refused", "")
            self._follower.target = q


PART = 0.03  # s: simulated time between two pictures
LATEST = 0.2  # s: largest delay behind real time that is made up


def jog(setup: Setup, start: NDArray, duration: float, port: int, announce: Callable[[str], None]) -> NDArray:
    """Simulate the robot under its controller, led by the sliders of a page; return the last positions.

    Args:
        setup: robot, controller, drives, payload.
        start: (n,) initial joint positions, in [rad].
        duration: simulated time after which the session ends, in [s].
        port: port of the page; 0 for a free one.
        announce: callback that receives the address of the page.

    Raises:
        TwinError: the robot or controller does not exist, or a shape cannot be drawn.
    """
    robot = setup.load_robot()
    law = setup.control_law(setup.controller_model(robot))
    follower = Follower.of(robot, start, setup.period)
    count = max(1, round(PART / setup.period))
    view = View(robot, start, port=port, follow=False)
    restart = view.server.gui.add_button("restart")
    requested: list[bool] = []
    restart.on_click(lambda _: requested.append(True))
    try:
        with Simulation(robot, time_step=setup.time_step) as simulation:
            simulation.reset(start)
            announce(view.url)
            began = time.perf_counter()
            while follower.k * setup.period < duration:
                follower.target = view.target
                samples = follower.samples(count)
                try:
                    log = run_closed_loop(
                        simulation, law, samples, part=True, steps_per_period=setup.steps_per_period
                    )
                    error = log.q_ref[-1] - log.q[-1]
                    worst = int(np.argmax(np.abs(error)))
                    size = shown(error[worst], robot.joint_kinds[worst], 3)
                    text = f"error of {robot.joint_names[worst]}: {size}  \n{setup.controller}"
                except DivergenceError as failure:
                    text = f"{failure}: press restart"
                view.show(simulation.state()[0], text)
                if requested:
                    requested.clear()
                    simulation.reset(start)
                    law.reset()
                    follower.restart(start)
                ahead = began + follower.k * setup.period - time.perf_counter()
                began -= min(0.0, ahead + LATEST)  # after a long wait the arm does not race
                time.sleep(max(0.0, ahead))
            return simulation.state()[0]
    finally:
        view.close()

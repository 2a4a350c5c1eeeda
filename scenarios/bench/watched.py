"""Run of a scenario in the window; without user input it is identical to a run without a window.

The user can replace the controller, change its gains, push the tool, attach a payload, and restart the run.
The scenario's checks do not apply to a run that the user changed. Such a run ends with a `TouchedError`,
which has its log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from controllers import Controller
from scenarios.bench.chosen_law import ChosenLaw, LawPanel
from twin.base.errors import DivergenceError, TouchedError
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.robot.units import shown

if TYPE_CHECKING:
    from scenarios.setup import Setup
    from twin.data.logs.log import Log
    from twin.physics.engine.simulation import Simulation
    from twin.physics.engine.window.bench import Bench
    from twin.physics.engine.window.overlays import Ghost
    from twin.physics.robot.robot import Robot
    from twin.physics.trajectories.sampling import Samples


DESIRED = (0.45, 0.45, 0.5)
FOLLOWED = (0.85, 0.3, 0.1)
PLANNED = (0.0, 0.35, 0.9)
OTHERS = ((0.1, 0.45, 0.85), (0.1, 0.6, 0.3), (0.6, 0.2, 0.7), (0.75, 0.6, 0.0), (0.2, 0.6, 0.65))
"""Colours of the ghosts, one for each controller."""
KEYS = "l: next law   r: restart   g: ghosts   e: error arrow"
"""Keys of `LoopView`, of a `LawPanel` and of the restart."""
MAGNIFIED = 50.0
"""Length of the arrow of the tool's error over the error."""
CLOSE = 2e-3  # rad or m: a ghost is hidden if all its joints are closer to the arm's
SHORTEST = 4e-3  # m: shortest segment of the followed path


class LoopView:
    """Ghosts, paths, the arrow of the error and lines of live text.

    Args:
        simulation: simulation with a window.
        T_flange_tool: (4, 4) pose of the tool on the flange.
        others: logs of other controllers, by name, shown as ghosts.
    """

    def __init__(
        self, simulation: Simulation, T_flange_tool: NDArray, others: Mapping[str, Log] | None = None
    ) -> None:
        assert simulation.bench is not None
        self._simulation, self._T, self.bench = simulation, T_flange_tool, simulation.bench
        self._others = dict(others or {})
        robot = simulation.robot
        self._desired = self.bench.ghost("desired", robot, DESIRED, 0.25)
        self._ghosts = {
            name: self.bench.ghost(name, log.robot, color, 0.45)
            for (name, log), color in zip(self._others.items(), OTHERS * len(self._others), strict=False)
        }
        self._shown = {"ghosts": True, "error": False}
        self.restart()

    def restart(self) -> None:
        """Clear the followed path and the largest error."""
        self._followed: list[NDArray] = []
        self._largest, self._largest_text = 0.0, ""
        self.bench.remove("followed")

    def show(self, k: int, q_desired: NDArray) -> None:
        """Update the window; called before each of its pictures.

        Args:
            k: index of the sample of the other controllers' logs.
            q_desired: (n,) desired positions of the joints, in [rad].
        """
        self._toggle()
        robot = self._simulation.robot
        q = self._simulation.state()[0]
        tool, desired = (forward_kinematics(robot, angles, self._T)[:3, 3] for angles in (q, q_desired))
        self._place(self._desired, q_desired, q)
        for name, ghost in self._ghosts.items():
            series = self._others[name].q
            self._place(ghost, series[min(k, len(series) - 1)], q)
        if np.all(np.isfinite(tool)):
            self._follow(tool)
        if self._shown["error"]:
            self.bench.arrow("error", tool, MAGNIFIED * (desired - tool), FOLLOWED)
        self._show_error(q_desired - q, float(np.linalg.norm(desired - tool)))

    def _place(self, ghost: Ghost, q_ghost: NDArray, q: NDArray) -> None:
        """Place a ghost, or hide it near the arm, where it would only blur the arm's colours."""
        apart = bool(np.max(np.abs(q_ghost - q)) > CLOSE)
        ghost.show(apart and self._shown["ghosts"])
        if apart:
            ghost.place(q_ghost)

    def _toggle(self) -> None:
        for what in self._shown:
            if self.bench.panel.key(what[0]):
                self._shown[what] = not self._shown[what]
                self.bench.remove("error")

    def _follow(self, tool: NDArray) -> None:
        if not self._followed or np.linalg.norm(tool - self._followed[-1]) > SHORTEST:
            self._followed.append(tool)
            self.bench.path("followed", np.array(self._followed), FOLLOWED)

    def _show_error(self, error: NDArray, tool_error: float) -> None:
        robot = self._simulation.robot
        joint = int(np.argmax(np.abs(error)))
        text = f"{robot.joint_names[joint]} {shown(error[joint], robot.joint_kinds[joint], 3)}"
        if not abs(error[joint]) <= self._largest:
            self._largest, self._largest_text = abs(error[joint]), f"{text} at {self.bench.time:.2f} s"
        self.bench.write_line("error", f"error: {text}, tool {1e3 * tool_error:.3g} mm")
        self.bench.write_line("largest", f"largest: {self._largest_text}" if self._largest_text else "")


Loop = Callable[["ChosenLaw", Callable[[int], None]], "Log"]
"""Function that runs a closed loop with a controller; it calls its second argument at every sample."""


def touches_of(bench: Bench) -> str:
    """Return the user's actions as text, as `touched at the window: law pd at 0.400 s`; "" for none."""
    actions = ", ".join(f"{what} at {t:.3f} s" for t, what in bench.touches)
    return f"touched at the window: {actions}" if actions else ""


def signal_text(signals: Mapping[str, NDArray], robot: Robot) -> str:
    """Return a controller's signals as text: `disturbance: 12.3 at joint_2`, the largest of each."""
    found = []
    for name, values in signals.items():
        joint = int(np.argmax(np.abs(values)))
        payload = name == "payload"
        found.append(f"{name}: {values[0]:.3g} kg" if payload else
                     f"{name}: {values[joint]:.3g} at {robot.joint_names[joint]}")  # fmt: skip
    return ", ".join(found)


class _Restart(Exception):
    """Signal that the user requested a restart of the run."""


class Watched:
    """Run of a scenario in the window.

    Args:
        simulation: simulation of the plant, with a window.
        setup: setup of the run; its `beside` are the logs of other controllers, shown as ghosts.
        make: function that returns the controller of a setup.
        reference: reference of the run.
    """

    def __init__(
        self, simulation: Simulation, setup: Setup, make: Callable[[Setup], Controller], reference: Samples
    ) -> None:
        assert simulation.bench is not None
        self._bench, self._setup, self._reference = simulation.bench, setup, reference
        self._k, self._simulation = 0, simulation
        self._bench.T_flange_tool = setup.T_flange_tool
        self._payload = simulation.robot.payload
        self._law = ChosenLaw(setup, make)
        self._panel = LawPanel(self._bench, self._law, tuple(log.controller for _, log in setup.beside))
        self._bench.add_keys(KEYS)
        self._restart = self._bench.panel.button("restart (r)")
        self._view = LoopView(simulation, setup.T_flange_tool, dict(setup.beside))
        planned = forward_kinematics(simulation.robot, reference.q, setup.T_flange_tool)[:, :3, 3]
        self._bench.path("planned", planned, PLANNED)
        self._bench.bring_into_view(planned)
        self._bench.on_picture(self._picture)

    def run(self, loop: Loop, at_sample: Callable[[int], None] | None = None) -> Log:
        """Run the loop and return its log; the window stays open until the user closes it or presses return.

        Args:
            loop: function that runs the controller along the reference.
            at_sample: additional function called at every sample.

        Raises:
            TouchedError: the user changed the motion.
            DivergenceError: the simulation diverged.
        """

        def sample(k: int) -> None:
            self._k = k
            if at_sample is not None:
                at_sample(k)

        while True:
            try:
                return self._once(loop, sample)
            except _Restart:
                self._reset()

    def _once(self, loop: Loop, at_sample: Callable[[int], None]) -> Log:
        """Run the loop once, and then wait at the window unless `close_window` is set."""
        failure = None
        try:
            log = loop(self._law, at_sample)
        except DivergenceError as error:
            failure, log = error, error.log
        touched = touches_of(self._bench)
        if not self._setup.close_window:
            end = "the run is over" if failure is None else f"the run ended: {failure}"
            self._bench.linger(end + "; it was changed at the window: no check applies" * bool(touched))
        if touched:
            prefix = "" if failure is None else f"{failure}; "
            raise TouchedError(prefix + touched, log)
        if failure is not None:
            raise failure
        return log

    def _reset(self) -> None:
        """Restore the controller and the payload of the scenario."""
        self._law.choose(self._setup)
        self._panel.rebuild()
        if self._simulation.robot.payload is not self._payload:
            self._simulation.change_payload(self._payload)
        self._view.restart()

    def _picture(self) -> None:
        if self._restart.pressed() or self._bench.panel.key("r"):
            raise _Restart
        if done := self._panel.act():
            self._bench.touch(done)
        self._bench.write_line("law", self._law.description)
        self._bench.write_line("signals", signal_text(self._law.signals, self._simulation.robot))
        self._view.show(self._k, self._desired())

    def _desired(self) -> NDArray:
        """Return the desired positions (n,) at the current engine step, in [rad], constant after the last."""
        q, k = self._reference.q, self._k
        if k + 1 == len(q):
            return q[k]
        passed = (self._bench.time - self._reference.t[k]) / self._setup.period
        return q[k] + passed * (q[k + 1] - q[k]) if passed < 1.0 - 1e-9 else q[k + 1]

"""A scenario's run in the window: untouched it is the run without one, to the bit.

A person can exchange the law, turn its gains, push the tool, hang a payload on it, and have the run begin
anew.  A run that was touched so is no longer the one that the scenario makes claims about: it ends with a
`TouchedError`, which has its log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from controllers import Controller
from scenarios.bench.chosen_law import ChosenLaw, LawPanel
from twin.errors import DivergenceError, TouchedError
from twin.kinematics.forward import forward_kinematics
from twin.robot.limits import shown

if TYPE_CHECKING:
    from scenarios.base import Config
    from twin.engine.simulation import Simulation
    from twin.engine.window.bench import Bench
    from twin.engine.window.ghosts import Ghost
    from twin.logs.log import Log
    from twin.trajectories.sampling import Samples


WANTED = (0.45, 0.45, 0.5)
FOLLOWED = (0.85, 0.3, 0.1)
PLANNED = (0.0, 0.35, 0.9)
OTHERS = ((0.1, 0.45, 0.85), (0.1, 0.6, 0.3), (0.6, 0.2, 0.7), (0.75, 0.6, 0.0), (0.2, 0.6, 0.65))
"""Colours of ghosts: one a law."""
MAGNIFIED = 50.0
"""The arrow of the tool's error is so many times as long as the error."""
CLOSE = 2e-3  # rad or m, of every joint: a ghost is where the arm is
SHORTEST = 4e-3  # m, of a part of the followed path


class LoopView:
    """Ghosts, paths, the error's arrow and lines of live text.

    Args:
        simulation: with a window.
        T_flange_tool: (4, 4) pose of the tool on the flange.
        others: runs of other laws, by name, which move beside it.
    """

    def __init__(
        self, simulation: Simulation, T_flange_tool: NDArray, others: Mapping[str, Log] | None = None
    ) -> None:
        assert simulation.bench is not None
        self._simulation, self._T, self.bench = simulation, T_flange_tool, simulation.bench
        self._others = dict(others or {})
        robot = simulation.robot
        self._wanted = self.bench.ghost("wanted", robot, WANTED, 0.25)
        self._ghosts = {
            name: self.bench.ghost(name, log.robot, color, 0.45)
            for (name, log), color in zip(self._others.items(), OTHERS * len(self._others), strict=False)
        }
        self._shown = {"ghosts": True, "error": False}
        self._buttons = {
            "ghosts": (self.bench.panel.button("ghosts on/off (g)"), "g"),
            "error": (self.bench.panel.button(f"error arrow x{MAGNIFIED:g} (e)"), "e"),
        }
        self.restart()

    def restart(self) -> None:
        """Forget what was followed."""
        self._followed: list[NDArray] = []
        self._largest, self._largest_told = 0.0, ""
        self.bench.remove("followed")

    def show(self, k: int, q_wanted: NDArray) -> None:
        """Bring the window up to date; called before each of its pictures.

        Args:
            k: number of the sample, at which the runs of other laws are shown.
            q_wanted: (n,) where the joints should be, in [rad].
        """
        self._toggle()
        robot = self._simulation.robot
        q = self._simulation.state()[0]
        tool, wanted = (forward_kinematics(robot, angles, self._T)[:3, 3] for angles in (q, q_wanted))
        self._place(self._wanted, q_wanted, q)
        for name, ghost in self._ghosts.items():
            series = self._others[name].q
            self._place(ghost, series[min(k, len(series) - 1)], q)
        if np.all(np.isfinite(tool)):
            self._follow(tool)
        if self._shown["error"]:
            self.bench.arrow("error", tool, MAGNIFIED * (wanted - tool), FOLLOWED)
        self._tell(q_wanted - q, float(np.linalg.norm(wanted - tool)))

    def _place(self, ghost: Ghost, q_ghost: NDArray, q: NDArray) -> None:
        """Show a ghost where it can be told from the arm: in its place it would only spoil its colours."""
        apart = bool(np.max(np.abs(q_ghost - q)) > CLOSE)
        ghost.show(apart and self._shown["ghosts"])
        if apart:
            ghost.place(q_ghost)

    def _toggle(self) -> None:
        for what, (button, key) in self._buttons.items():
            if button.pressed() or self.bench.panel.key(key):
                self._shown[what] = not self._shown[what]
                self.bench.remove("error")

    def _follow(self, tool: NDArray) -> None:
        if not self._followed or np.linalg.norm(tool - self._followed[-1]) > SHORTEST:
            self._followed.append(tool)
            self.bench.path("followed", np.array(self._followed), FOLLOWED)

    def _tell(self, error: NDArray, tool_error: float) -> None:
        robot = self._simulation.robot
        joint = int(np.argmax(np.abs(error)))
        told = f"{robot.joint_names[joint]} {shown(error[joint], robot.joint_kinds[joint], 3)}"
        if not abs(error[joint]) <= self._largest:
            self._largest, self._largest_told = abs(error[joint]), f"{told} at {self.bench.time:.2f} s"
        self.bench.say("error", f"error: {told}, tool {1e3 * tool_error:.3g} mm")
        self.bench.say("largest", f"largest: {self._largest_told}" if self._largest_told else "")


Loop = Callable[["ChosenLaw", Callable[[int], None]], "Log"]
"""A closed loop of a law, which calls the function at every sample."""


def touches_of(bench: Bench) -> str:
    """What a person did to a run, in words: `touched at the window: law pd at 0.400 s`; else empty."""
    told = ", ".join(f"{what} at {t:.3f} s" for t, what in bench.touches)
    return f"touched at the window: {told}" if told else ""


class _Again(Exception):
    """The run is to begin anew."""


class Watched:
    """A run in the window.

    Args:
        simulation: of the plant, with its window.
        config: the scenario's settings; its `beside` are runs of other laws, which are shown beside it.
        make: the control law of settings.
        reference: what is followed.
    """

    def __init__(
        self, simulation: Simulation, config: Config, make: Callable[[Config], Controller], reference: Samples
    ) -> None:
        assert simulation.bench is not None
        self._bench, self._config, self._reference = simulation.bench, config, reference
        self._k, self._simulation = 0, simulation
        self._bench.T_flange_tool = config.T_flange_tool
        self._payload = simulation.robot.payload
        self._law = ChosenLaw(config, make)
        self._panel = LawPanel(self._bench, self._law, tuple(log.controller for _, log in config.beside))
        self._again = self._bench.panel.button("from the start (r)")
        self._view = LoopView(simulation, config.T_flange_tool, dict(config.beside))
        planned = forward_kinematics(simulation.robot, reference.q, config.T_flange_tool)[:, :3, 3]
        self._bench.path("planned", planned, PLANNED)
        self._bench.bring_into_view(planned)
        self._bench.on_picture(self._picture)

    def run(self, loop: Loop, at_sample: Callable[[int], None] | None = None) -> Log:
        """The log of the run; the window stays until it is closed, or told to go on.

        Args:
            loop: runs the law along the reference.
            at_sample: called at every sample, too.

        Raises:
            TouchedError: a person changed the motion.
            DivergenceError: the run ran away.
        """

        def sample(k: int) -> None:
            self._k = k
            if at_sample is not None:
                at_sample(k)

        while True:
            try:
                return self._once(loop, sample)
            except _Again:
                self._begin_anew()

    def _once(self, loop: Loop, at_sample: Callable[[int], None]) -> Log:
        """One run, and the time that the window stays after it."""
        failure = None
        try:
            log = loop(self._law, at_sample)
        except DivergenceError as error:
            failure, log = error, error.log
        touched = touches_of(self._bench)
        if not self._config.close_window:
            end = "the run is over" if failure is None else f"the run ended: {failure}"
            self._bench.linger(end + ", and was touched: nothing is claimed of it" * bool(touched))
        if touched:
            ran_away = "" if failure is None else f"{failure}; "
            raise TouchedError(ran_away + touched, log)
        if failure is not None:
            raise failure
        return log

    def _begin_anew(self) -> None:
        """The law, the arm and what hangs on it as the scenario has them."""
        self._law.choose(self._config)
        self._panel.rebuild()
        if self._simulation.robot.payload is not self._payload:
            self._simulation.change_payload(self._payload)
        self._view.restart()

    def _picture(self) -> None:
        if self._again.pressed() or self._bench.panel.key("r"):
            raise _Again
        if done := self._panel.act():
            self._bench.touch(done)
        self._bench.say("law", self._law.description)
        self._view.show(self._k, self._wanted())

    def _wanted(self) -> NDArray:
        """Where the joints (n,) should be at this step, in [rad]: the run stands after the last sample."""
        q, k = self._reference.q, self._k
        if k + 1 == len(q):
            return q[k]
        passed = (self._bench.time - self._reference.t[k]) / self._config.period
        return q[k] + passed * (q[k + 1] - q[k]) if passed < 1.0 - 1e-9 else q[k + 1]

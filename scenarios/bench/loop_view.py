"""What the window shows of a closed loop: where the arm should be, how far it is off, other laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from twin.kinematics.forward import forward_kinematics
from twin.robot.limits import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from twin.engine.simulation import Simulation
    from twin.logs.log import Log
    from twin.window.ghosts import Ghost

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

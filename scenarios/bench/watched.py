"""Run of a scenario in the window, whose controller the user can change; untouched it is as without one.

The user can replace the controller, change its gains, push the tool, attach a payload, and restart the run.
The scenario's checks do not apply to a run that the user changed. Such a run ends with a `TouchedError`,
which has its log.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import controllers
from controllers import Controller
from twin.base.errors import DivergenceError, TouchedError, TwinError, describe_error
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.robot.units import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scenarios.setup import Setup
    from twin.data.logs.log import Log
    from twin.physics.engine.simulation import Simulation
    from twin.physics.engine.window.bench import Bench
    from twin.physics.engine.window.overlays import Ghost
    from twin.physics.robot.robot import Robot
    from twin.physics.trajectories.sampling import Reference, Samples, State

MOST_BANDWIDTH = 200.0  # rad/s: end of the slider
DECADES = 2.0
"""Range of a gain's slider in powers of ten, up and down."""


class ChosenLaw:
    """Controller that another one can replace.

    Attributes:
        name: name of the first controller of the run, which is that of the log.
        setup: setup with the active controller.
        factors: factors of the active controller's gains, by name, over the gains of its settings.

    Args:
        setup: setup with the first controller.
        make: function that returns the controller of a setup.
    """

    def __init__(self, setup: Setup, make: Callable[[Setup], Controller]) -> None:
        self.setup, self._make = setup, make
        self._law = make(setup)
        self.name = self._law.name
        self.factors = dict.fromkeys(self.gains, 1.0)
        self._motion: Samples | None = None
        self._table: NDArray | None = None

    def prepare(self, reference: Samples) -> None:
        """Let the active controller prepare for the motion, and any controller that replaces it."""
        from twin.physics.control.signals import prepared_table

        self._motion, self._table = reference, prepared_table(self._law, reference)

    def __call__(self, state: State, reference: Reference) -> NDArray:
        """Return the demanded joint torques (n,), in [N m]."""
        if self._table is not None and self._motion is not None:
            k = int(np.searchsorted(self._motion.t, state.t))
            state = state._replace(table=self._table[k])
        return self._law(state, reference)

    def learn(self, log: Log) -> None:
        """Let the active controller learn from a run."""
        if callable(learn := getattr(self._law, "learn", None)):
            learn(log)

    @property
    def signals(self) -> dict[str, NDArray]:
        """Signals of the active controller."""
        return getattr(self._law, "signals", {})

    def reset(self) -> None:
        """Reset the memory of the active controller."""
        if callable(reset := getattr(self._law, "reset", None)):
            reset()

    @property
    def label(self) -> str:
        """Short name of the active controller."""
        return controllers.label(self.setup.controller)

    @property
    def description(self) -> str:
        """Active controller, its bandwidth and its changed gains, as `law: pd, 20 rad/s, Kd x10`."""
        changed = "".join(f", {name} x{factor:.3g}" for name, factor in self.factors.items() if factor != 1.0)
        return f"law: {self.label}, {self.setup.bandwidth:.3g} rad/s{changed}"

    @property
    def gains(self) -> dict[str, NDArray]:
        """Adjustable gains of the active controller by name; empty if it has none."""
        gains: Any = getattr(self._law, "gains", None)
        known = gains._asdict() if hasattr(gains, "_asdict") else {}
        settings = controllers.settings(self.setup.controller)
        return {name: value for name, value in known.items() if name in settings}

    def choose(self, setup: Setup) -> None:
        """Replace the active controller by that of other settings, with its initial memory and gains.

        Raises:
            TwinError, ValueError: the new controller cannot be made; the active one remains.
        """
        self._exchange(self._make(setup))
        self.setup, self.factors = setup, dict.fromkeys(self.gains, 1.0)

    def _exchange(self, law: Controller) -> None:
        """Activate a controller, which prepares for the motion if that is known."""
        self._law = law
        if self._motion is not None:
            self.prepare(self._motion)

    def scale_gains(self, factors: dict[str, float]) -> None:
        """Multiply the gains of the settings by factors; the controller's memory, if any, is preserved.

        Args:
            factors: factors by name of the gain.
        """
        made = self._make(self.setup)
        gains = made.gains._asdict()  # type: ignore[attr-defined]
        settings = {name: factor * np.asarray(gains[name]) for name, factor in factors.items()}
        changed = dict(self.setup.law_settings) | settings
        law = self._make(dataclasses.replace(self.setup, law_settings=tuple(changed.items())))
        before, after = (getattr(one, "memory", None) for one in (self._law, law))
        if before is not None and after is not None and np.shape(before) == np.shape(after):
            after[...] = before
        self._exchange(law)
        self.factors = dict(factors)


class LawPanel:
    """Button and sliders of a `ChosenLaw`.

    Args:
        bench: bench of the window.
        law: controller that the button and the sliders change.
        others: names of selectable controllers besides those of this project.
    """

    def __init__(self, bench: Bench, law: ChosenLaw, others: tuple[str, ...] = ()) -> None:
        self._bench, self._law = bench, law
        self.names = tuple(dict.fromkeys((law.setup.controller, *others, *controllers.NAMES)))
        self._widgets: list[Any] = []
        self.rebuild()

    def rebuild(self) -> None:
        """Create the button and the sliders again, for the active controller."""
        for widget in self._widgets:
            widget.remove()
        panel, law = self._bench.panel, self._law
        self._button = panel.button(f"law: {law.label} (next: l)")
        bandwidth = law.setup.bandwidth
        most = max(MOST_BANDWIDTH, bandwidth)
        self._bandwidth = panel.slider("bandwidth [rad/s]", 1.0, most, bandwidth)
        self._gains = {name: panel.slider(f"{name} x 10^", -DECADES, DECADES, 0.0) for name in law.gains}
        self._widgets = [self._button, self._bandwidth, *self._gains.values()]
        self._last_read = self._read()

    def _read(self) -> tuple[float, dict[str, float]]:
        return self._bandwidth.value, {name: 10.0**slider.value for name, slider in self._gains.items()}

    def act(self) -> str:
        """Apply the user's input since the last picture; return the changes as text, "" for none."""
        pressed = self._button.pressed()
        try:
            if pressed or self._bench.panel.key("l"):
                return self._next()
            return self._apply_sliders()
        except (TwinError, ValueError) as error:
            self._bench.write_line("refused", describe_error(error))
            return ""

    def _next(self) -> str:
        place = self.names.index(self._law.setup.controller)
        name = self.names[(place + 1) % len(self.names)]
        # Controller settings are valid only for the controller that they were given with.
        self._law.choose(dataclasses.replace(self._law.setup, controller=name, law_settings=()))
        self.rebuild()
        self._bench.write_line("refused", "")
        return f"law {self._law.label}"

    def _apply_sliders(self) -> str:
        bandwidth, factors = now = self._read()
        if now == self._last_read:
            return ""
        before, self._last_read = self._last_read, now
        if bandwidth != before[0]:
            self._law.choose(dataclasses.replace(self._law.setup, bandwidth=bandwidth))
        if factors:
            self._law.scale_gains(factors)
        self._bench.write_line("refused", "")
        changed = [f"{name} x {factor:.3g}" for name, factor in factors.items() if factor != before[1][name]]
        return ", ".join([f"bandwidth {bandwidth:.3g} rad/s"] * (bandwidth != before[0]) + changed)


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

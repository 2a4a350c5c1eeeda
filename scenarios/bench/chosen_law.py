"""Controller that the user can replace, and whose gains the user can change, during a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import controllers
from controllers import Controller
from twin.base.errors import TwinError, describe_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scenarios.setup import Setup
    from twin.data.logs.log import Log
    from twin.physics.engine.window.bench import Bench
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
        from twin.physics.control.closed_loop import prepared_table

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

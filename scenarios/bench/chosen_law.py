"""The control law that acts now, which a person may exchange, and whose gains they may turn, in mid-run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import controllers
from controllers import Controller
from twin.errors import TwinError, describe_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scenarios.base import Config
    from twin.engine.window.bench import Bench
    from twin.trajectories.sampling import Reference, State

MOST_BANDWIDTH = 200.0  # rad/s, of the slider
DECADES = 2.0
"""By which a gain can be turned up and down."""


class ChosenLaw:
    """A control law whose place another may take.

    Attributes:
        name: of the law that the run began with, as logs have it.
        config: the settings of the law that acts now.
        factors: of its gains, by name: how many times as large they are as the settings make them.

    Args:
        config: the settings to begin with.
        make: a control law from settings.
    """

    def __init__(self, config: Config, make: Callable[[Config], Controller]) -> None:
        self.config, self._make = config, make
        self._law = make(config)
        self.name = self._law.name
        self.factors = dict.fromkeys(self.gains, 1.0)

    def __call__(self, state: State, reference: Reference) -> NDArray:
        """Demanded joint torques (n,), in [N m]."""
        return self._law(state, reference)

    def reset(self) -> None:
        """Forget the past."""
        if callable(reset := getattr(self._law, "reset", None)):
            reset()

    @property
    def label(self) -> str:
        """The short name of the law that acts now."""
        return controllers.label(self.config.controller)

    @property
    def description(self) -> str:
        """The law, its bandwidth and what was turned, as `law: pd, 20 rad/s, Kd x10`."""
        turned = "".join(f", {name} x{factor:.3g}" for name, factor in self.factors.items() if factor != 1.0)
        return f"law: {self.label}, {self.config.bandwidth:.3g} rad/s{turned}"

    @property
    def gains(self) -> dict[str, NDArray]:
        """The gains that can be turned, by name, as the law has them now: none where it tells none."""
        gains: Any = getattr(self._law, "gains", None)
        known = gains._asdict() if hasattr(gains, "_asdict") else {}
        settings = controllers.settings(self.config.controller)
        return {name: value for name, value in known.items() if name in settings}

    def choose(self, config: Config) -> None:
        """Put the law of other settings in its place; its memory begins anew, its gains as they are made.

        Raises:
            TwinError, ValueError: there is no such law; the one that acts now goes on.
        """
        self._law, self.config = self._make(config), config
        self.factors = dict.fromkeys(self.gains, 1.0)

    def turn(self, factors: dict[str, float]) -> None:
        """Multiply the gains that the settings make; the memory of the law is kept where it has one.

        Args:
            factors: by name of the gain.
        """
        made = self._make(self.config)
        gains = made.gains._asdict()  # type: ignore[attr-defined]
        settings = {name: factor * np.asarray(gains[name]) for name, factor in factors.items()}
        changed = dict(self.config.law_settings) | settings
        law = self._make(dataclasses.replace(self.config, law_settings=tuple(changed.items())))
        before, after = (getattr(one, "memory", None) for one in (self._law, law))
        if before is not None and after is not None and np.shape(before) == np.shape(after):
            after[...] = before
        self._law, self.factors = law, dict(factors)


class LawPanel:
    """The button and the sliders of a `ChosenLaw`.

    Args:
        bench: of the window.
        law: what they act upon.
        others: names of laws to choose from besides ours.
    """

    def __init__(self, bench: Bench, law: ChosenLaw, others: tuple[str, ...] = ()) -> None:
        self._bench, self._law = bench, law
        self.names = tuple(dict.fromkeys((law.config.controller, *others, *controllers.NAMES)))
        self._widgets: list[Any] = []
        self.rebuild()

    def rebuild(self) -> None:
        """Make button and sliders anew, for the law that acts now."""
        for widget in self._widgets:
            widget.remove()
        panel, law = self._bench.panel, self._law
        self._button = panel.button(f"law: {law.label} (next: l)")
        bandwidth = law.config.bandwidth
        most = max(MOST_BANDWIDTH, bandwidth)
        self._bandwidth = panel.slider("bandwidth [rad/s]", 1.0, most, bandwidth)
        self._gains = {name: panel.slider(f"{name} x 10^", -DECADES, DECADES, 0.0) for name in law.gains}
        self._widgets = [self._button, self._bandwidth, *self._gains.values()]
        self._seen = self._read()

    def _read(self) -> tuple[float, dict[str, float]]:
        return self._bandwidth.value, {name: 10.0**slider.value for name, slider in self._gains.items()}

    def act(self) -> str:
        """Do what was asked for since the last picture: what was done, in words; empty for nothing."""
        pressed = self._button.pressed()
        try:
            if pressed or self._bench.panel.key("l"):
                return self._next()
            return self._turned()
        except (TwinError, ValueError) as error:
            self._bench.say("refused", describe_error(error))
            return ""

    def _next(self) -> str:
        place = self.names.index(self._law.config.controller)
        name = self.names[(place + 1) % len(self.names)]
        # The settings that were given are those of the law that was named with them.
        self._law.choose(dataclasses.replace(self._law.config, controller=name, law_settings=()))
        self.rebuild()
        self._bench.say("refused", "")
        return f"law {self._law.label}"

    def _turned(self) -> str:
        bandwidth, factors = now = self._read()
        if now == self._seen:
            return ""
        before, self._seen = self._seen, now
        if bandwidth != before[0]:
            self._law.choose(dataclasses.replace(self._law.config, bandwidth=bandwidth))
        if factors:
            self._law.turn(factors)
        self._bench.say("refused", "")
        changed = [f"{name} x {factor:.3g}" for name, factor in factors.items() if factor != before[1][name]]
        return ", ".join([f"bandwidth {bandwidth:.3g} rad/s"] * (bandwidth != before[0]) + changed)

"""Controller of an arm whose payload changes, and the gains of a controller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from controllers import Controller

if TYPE_CHECKING:
    from twin.physics.trajectories.sampling import Reference, Samples, State


class LawPerLoad:
    """Controller of an arm whose payload changes at known times: one controller for each payload.

    A `ControlLaw` inherits the memory of the one before it, so that an integral stays.

    Attributes:
        name: name of the controllers.

    Args:
        laws: controllers in their order.
        times: times at which each begins, the first one 0, in [s].
    """

    def __init__(self, laws: Sequence[Controller], times: Sequence[float]) -> None:
        self.laws, self._times, self._active = tuple(laws), tuple(times), 0
        self.name = self.laws[0].name

    @property
    def signals(self) -> dict[str, np.ndarray]:
        """Signals of the active controller."""
        return getattr(self.laws[self._active], "signals", {})

    def reset(self) -> None:
        """Return to the first controller, and reset all."""
        self._active = 0
        for law in self.laws:
            if callable(reset := getattr(law, "reset", None)):
                reset()

    def prepare(self, reference: Samples) -> np.ndarray:
        """Return the tables of the controllers, each from the time at which it begins."""
        from twin.physics.control.closed_loop import prepared_table

        tables = [prepared_table(law, reference) for law in self.laws]
        active = np.searchsorted(self._times, reference.t, side="right") - 1
        return np.stack(tables)[active, np.arange(len(active))]

    def __call__(self, state: State, reference: Reference) -> np.ndarray:
        """Return the torques (n,) of the controller for the payload at this time, in [N m]."""
        from twin.physics.control.control_law import ControlLaw

        while self._active + 1 < len(self.laws) and state.t >= self._times[self._active + 1]:
            before, self._active = self.laws[self._active], self._active + 1
            after = self.laws[self._active]
            if isinstance(before, ControlLaw) and isinstance(after, ControlLaw):
                after.memory[:] = before.memory
        return self.laws[self._active](state, reference)


def is_repeatable(law: Any) -> bool:
    """Return whether a controller is a `ControlLaw`, or consists of such."""
    from twin.physics.control.control_law import ControlLaw

    return all(isinstance(one, ControlLaw) for one in getattr(law, "laws", (law,)))


def gains(law: Any, n: int) -> dict[str, np.ndarray]:
    """Return the gains (n,) of a controller of n joints by name; empty if it has no known gains."""
    from twin.physics.control.control_law import (  # imported here because it compiles kernels
        PLAIN,
        ControlLaw,
    )

    found: dict[str, Any] = {}
    law = getattr(law, "laws", (law,))[0]  # gains may depend on the payload; those for the first are stored
    if isinstance(law, ControlLaw):
        found = law.rows
    elif hasattr(law, "__dict__"):
        found = {name: vars(law)[name] for name in PLAIN if name in vars(law)}
    return {name: row for name, value in found.items() if (row := _row(value, n)) is not None}


def _row(value: Any, n: int) -> np.ndarray | None:
    """Return a value as one number for every joint (n,); `None` if it has another shape or type."""
    try:
        array = np.asarray(value)
        return np.broadcast_to(array, (n,)).astype(np.float64) if array.dtype.kind in "fiu" else None
    except ValueError:
        return None

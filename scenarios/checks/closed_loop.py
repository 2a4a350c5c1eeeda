"""Closed loop of a scenario: its reference, its plant and its controller's model; gains for the log.

A scenario with a function `reference(robot, config)` can be swept, and run with changes of its robot, see
`scenarios.base`. This function, and `arms` if there is one, get the nominal robot without a payload.
Therefore neither a change nor the payload affects the reference, unless the function applies it itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from controllers import Controller

if TYPE_CHECKING:
    from scenarios.base import Config
    from twin.robot.robot import Robot
    from twin.trajectories.sampling import Reference, Samples, State


class Arms(NamedTuple):
    """Plant and controller's model of a closed loop, before the changes of the settings.

    Attributes:
        plant: robot with its drives and its payload.
        model: controller's model, before the settings modify it; `None` for the plant.
    """

    plant: Robot
    model: Robot | None = None


class ClosedLoop(NamedTuple):
    """Arguments of `scenarios.checks.tracking.follow` besides the settings."""

    reference: Samples
    plant: Robot
    model: Robot | None


MakeReference: TypeAlias = "Callable[[Robot, Any], Samples]"
MakeArms: TypeAlias = "Callable[[Robot, Any], Arms]"


def carrying(robot: Robot, config: Config) -> Arms:
    """Return the arms of a scenario without `arms`: the robot with its payload, as plant and as model."""
    return Arms(config.with_plant_payload(robot))


def closed_loop(config: Config, reference: MakeReference, arms: MakeArms = carrying) -> ClosedLoop:
    """Return the closed loop of these settings.

    Args:
        config: the settings.
        reference: function that returns the samples at the control period.
        arms: function that returns plant and model.

    Example:
        >>> from scenarios.checks.closed_loop import closed_loop
        >>> from scenarios.gravity_hold import Config, reference
        >>> loop = closed_loop(Config(duration=0.1, payload="6"), reference)
        >>> loop.reference.q.shape, loop.plant.payload.mass, loop.model is None
        ((101, 6), 6.0, True)
    """
    robot = config.bare_robot()
    plant, model = arms(robot, config)
    return ClosedLoop(reference(robot, config), plant, model)


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
        from twin.control.closed_loop import prepared_table

        tables = [prepared_table(law, reference) for law in self.laws]
        active = np.searchsorted(self._times, reference.t, side="right") - 1
        return np.stack(tables)[active, np.arange(len(active))]

    def __call__(self, state: State, reference: Reference) -> np.ndarray:
        """Return the torques (n,) of the controller for the payload at this time, in [N m]."""
        from twin.control.control_law import ControlLaw

        while self._active + 1 < len(self.laws) and state.t >= self._times[self._active + 1]:
            before, self._active = self.laws[self._active], self._active + 1
            after = self.laws[self._active]
            if isinstance(before, ControlLaw) and isinstance(after, ControlLaw):
                after.memory[:] = before.memory
        return self.laws[self._active](state, reference)


def is_repeatable(law: Any) -> bool:
    """Return whether a controller is a `ControlLaw`, or consists of such."""
    from twin.control.control_law import ControlLaw

    return all(isinstance(one, ControlLaw) for one in getattr(law, "laws", (law,)))


NAMES, VALUES = "gain_names", "gains"
"""Names of two arrays of a log: (k,) names of gains, and (k, n) their values for every joint."""


def gains(law: Any, n: int) -> dict[str, np.ndarray]:
    """Return the arrays `gain_names` (k,) and `gains` (k, n); empty if the controller has no known gains.

    Args:
        law: a controller.
        n: number of joints.
    """
    from twin.control.control_law import PLAIN, ControlLaw  # imported here because it compiles kernels

    found: dict[str, Any] = {}
    law = getattr(law, "laws", (law,))[0]  # gains may depend on the payload; those for the first are stored
    if isinstance(law, ControlLaw):
        found = law.rows
    elif hasattr(law, "__dict__"):
        found = {name: vars(law)[name] for name in PLAIN if name in vars(law)}
    rows_by_name = {name: row for name, value in found.items() if (row := _row(value, n)) is not None}
    if not rows_by_name:
        return {}
    return {NAMES: np.array(list(rows_by_name)), VALUES: np.array(list(rows_by_name.values()))}


def _row(value: Any, n: int) -> np.ndarray | None:
    """Return a value as one number for every joint (n,); `None` if it has another shape or type."""
    try:
        array = np.asarray(value)
        return np.broadcast_to(array, (n,)).astype(np.float64) if array.dtype.kind in "fiu" else None
    except ValueError:
        return None

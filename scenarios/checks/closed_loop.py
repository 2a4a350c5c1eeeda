"""The closed loop of a scenario: what is followed, by which arm, under a law that believes in which.

The numbers that a law has, for the log of its run, are found here, too.

A scenario that has a function `reference(robot, config)` can be swept, and run with changes of its robot, see
`scenarios.base`. Both this function and `arms`, if there is one, get the nominal robot, carrying nothing, so
that neither a change nor the payload finds its way into the reference unless the settings are asked for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from scenarios.base import Config
    from twin.robot.robot import Robot
    from twin.trajectories.sampling import Samples


class Arms(NamedTuple):
    """The two arms of a closed loop, before the changes that each alone has.

    Attributes:
        plant: with its drives and what it carries.
        model: what the controller believes in, but for what the settings say of that; `None` for the plant.
    """

    plant: Robot
    model: Robot | None = None


class ClosedLoop(NamedTuple):
    """What `scenarios.checks.tracking.follow` takes besides the settings; see there."""

    reference: Samples
    plant: Robot
    model: Robot | None


MakeReference: TypeAlias = "Callable[[Robot, Any], Samples]"
MakeArms: TypeAlias = "Callable[[Robot, Any], Arms]"


def carrying(robot: Robot, config: Config) -> Arms:
    """The arms of a scenario that has no other: the robot with its payload, which the controller knows."""
    return Arms(config.with_plant_payload(robot))


def closed_loop(config: Config, reference: MakeReference, arms: MakeArms = carrying) -> ClosedLoop:
    """The closed loop of these settings.

    Args:
        config: the settings.
        reference: makes the samples at the control period.
        arms: makes plant and model.
    """
    robot = config.bare_robot()
    plant, model = arms(robot, config)
    return ClosedLoop(reference(robot, config), plant, model)


NAMES, VALUES = "gain_names", "gains"
"""Arrays of a log: (k,) names, and (k, n) a number of each for every joint."""
PLAIN = ("Kp", "Ki", "Kd", "Kv", "Ti", "kp", "ki", "kd", "kv")
"""What gains are called; of a law that says no more, attributes of these names are taken for some."""


def gains(law: Any, n: int) -> dict[str, np.ndarray]:
    """The arrays `gain_names` (k,) and `gains` (k, n); empty where the law does not tell any.

    Args:
        law: a controller.
        n: number of joints.
    """
    from twin.control.control_law import ControlLaw  # compiles: not at the module's top

    found: dict[str, Any] = {}
    if isinstance(law, ControlLaw):
        rows = law.parameters
        named = tuple(name for name in PLAIN if isinstance(getattr(type(law), name, None), property))
        names = getattr(law, "parameter_names", getattr(getattr(law, "gains", None), "_fields", named))
        known = (*names, *(f"parameter {k + 1}" for k in range(len(names), len(rows))))
        found = dict(zip(known, rows, strict=False))
    elif hasattr(law, "__dict__"):
        found = {name: vars(law)[name] for name in PLAIN if name in vars(law)}
    told = {name: row for name, value in found.items() if (row := _row(value, n)) is not None}
    if not told:
        return {}
    return {NAMES: np.array(list(told)), VALUES: np.array(list(told.values()))}


def _row(value: Any, n: int) -> np.ndarray | None:
    """A number for every joint, if it is that."""
    try:
        array = np.asarray(value)
        return np.broadcast_to(array, (n,)).astype(np.float64) if array.dtype.kind in "fiu" else None
    except ValueError:
        return None

"""The closed loop of a scenario: what is followed, by which arm, under a law that believes in which.

A scenario that has a function `reference(robot, config)` can be swept, and run with changes of its robot, see
`scenarios.base`. Both this function and `arms`, if there is one, get the nominal robot, carrying nothing, so
that neither a change nor the payload finds its way into the reference unless the settings are asked for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

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
    return Arms(config.loaded(robot))


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

"""What `irb-twin validate` runs: every scenario that suits a robot, every controller, every variant."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import controllers
from scenarios.base import Config
from scenarios.running import registry
from twin.errors import OwnCodeError
from twin.faults import is_interrupt, told_with_place

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario
    from twin.robot.robot import Robot


def planned(robots: Sequence[str]) -> list[tuple[Scenario, Config]]:
    """The runs of a validation, robot by robot; a scenario that fails here already is a run that fails.

    Args:
        robots: names, or paths of files.

    Raises:
        TwinError: there is no such robot, its file is wrong, or its masses are not known.
    """
    import twin

    runs = []
    for name in robots:
        robot = twin.load(name)
        robot.require_inertia()
        for scenario in map(registry.find_regardless, registry.titles()):
            runs += _runs(scenario, robot, name)
    return runs


def _runs(scenario: Scenario, robot: Robot, name: str) -> list[tuple[Scenario, Config]]:
    """The runs of one scenario with one robot."""
    if scenario.fault is None:
        try:
            configs = _configs(scenario) if scenario.suits(robot) else ()
            return [(scenario, dataclasses.replace(config, robot=name)) for config in configs]
        except BaseException as error:
            if is_interrupt(error):
                raise
            fault = OwnCodeError(told_with_place(error, scenario.file))
            scenario = registry.failing(scenario, fault)
    return [(scenario, Config(robot=name))]


def _configs(scenario: Scenario) -> Iterator[Config]:
    yield from (scenario.Config(controller=law) for law in controllers.NAMES)
    yield from scenario.variants

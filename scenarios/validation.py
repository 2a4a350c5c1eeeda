"""What `irb-twin validate` runs: every scenario that suits a robot, every controller, every variant."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import controllers
from scenarios import registry

if TYPE_CHECKING:
    from scenarios.base import Config
    from scenarios.registry import Scenario


def planned(robots: Sequence[str]) -> list[tuple[Scenario, Config]]:
    """The runs of a validation, robot by robot.

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
        for scenario in map(registry.find, registry.titles()):
            if not scenario.suits(robot):
                continue
            configs = [scenario.Config(controller=law) for law in controllers.NAMES] + list(scenario.variants)
            runs += [(scenario, dataclasses.replace(config, robot=name)) for config in configs]
    return runs

"""What `irb-twin validate` runs: scenarios with robots and control laws, and the scenarios' variants."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import controllers
from scenarios.base import Config
from scenarios.cli.arguments import fields
from scenarios.running import registry
from scenarios.running.registry import Scenario
from twin.errors import PluginError, describe_error_with_location, is_interrupt
from twin.robot.robot import Robot


@dataclass(frozen=True)
class Plan:
    """What is to be run: `runs`, and in `unsuited` the scenario and robot of runs that can show nothing."""

    runs: tuple[tuple[Scenario, Config], ...]
    unsuited: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Asked:
    """What is asked for, besides scenarios and robots.

    Attributes:
        laws: control laws; none for all of this project and those that a scenario names.  A variant is run
            if its law is among them.
        settings: field -> value, for the scenarios that have such a field; a variant has it, too.
        law_settings: control law -> its own settings.
    """

    laws: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    law_settings: Mapping[str, tuple[tuple[str, Any], ...]] = field(default_factory=dict)


def planned(
    robots: Sequence[str] = (), scenarios: Sequence[Scenario] = (), asked: Asked | None = None
) -> Plan:
    """The runs of a validation, robot by robot; a scenario that fails here already is a run that fails.

    Args:
        robots: names, or paths of files; none for the arms of this project, or the robot that a scenario
            was made for, where its `Config` has another default than every scenario.
        scenarios: none for all of this project.
        asked: laws and settings.

    Raises:
        TwinError: there is no such robot or law, a robot's file is wrong, or its masses are not known.
        ValueError: a setting that cannot be.
    """
    import twin

    asked = asked or Asked()
    for law in asked.laws or controllers.NAMES:  # wrong use, if there is none of that name
        Config(**_own(Config, asked.settings), controller=law)
    for scenario in scenarios:
        if scenario.fault is None and asked.settings:
            scenario.Config(**_own(scenario.Config, asked.settings))
    chosen = list(scenarios) or [registry.find_regardless(name) for name in registry.titles()]
    loaded = {name: twin.load(name) for name in robots or twin.robot_names()}
    for robot in loaded.values():
        robot.require_inertia()
    made_for = {scenario.name: "" if robots else _made_for(scenario) for scenario in chosen}
    runs, unsuited = [], []
    for name in dict.fromkeys((*loaded, *filter(None, made_for.values()))):
        for scenario in chosen:
            if made_for[scenario.name] not in ("", name) or (
                name not in loaded and not made_for[scenario.name]
            ):
                continue
            found = _runs(scenario, name, loaded.get(name), asked)
            runs += found
            if not found:
                unsuited.append((scenario.name, name))
    return Plan(tuple(runs), tuple(unsuited))


def _made_for(scenario: Scenario) -> str:
    """The robot that a scenario was made for; empty if it was made for any."""
    robot = fields(scenario.Config)["robot"].default
    return "" if robot == fields(Config)["robot"].default else str(robot)


def _runs(scenario: Scenario, name: str, robot: Robot | None, asked: Asked) -> list[tuple[Scenario, Config]]:
    """The runs of one scenario with the robot of that name, which is loaded if it is not yet."""
    import twin

    if scenario.fault is None:
        try:
            configs = list(_configs(scenario, asked))
            if not scenario.suits(robot or twin.load(name)):
                return []
            return [(scenario, dataclasses.replace(config, robot=name)) for config in configs]
        except BaseException as error:
            if is_interrupt(error):
                raise
            fault = PluginError(describe_error_with_location(error, scenario.file))
            scenario = registry.failing(scenario, fault)
    return [(scenario, Config(robot=name))]


def _configs(scenario: Scenario, asked: Asked) -> Iterator[Config]:
    """The settings of a scenario's runs, each once."""
    own = _own(scenario.Config, asked.settings)
    usual = fields(scenario.Config)["controller"].default
    laws = asked.laws or dict.fromkeys((*controllers.NAMES, *scenario.side_by_side, usual))
    seen: list[Config] = []
    for config in (
        *(scenario.Config(**own, controller=law) for law in laws),
        *(
            dataclasses.replace(one, **own)
            for one in scenario.variants
            if not asked.laws or one.controller in asked.laws
        ),
    ):
        own_settings = asked.law_settings.get(config.controller, config.law_settings)
        config = dataclasses.replace(config, law_settings=own_settings)
        if config not in seen:
            seen.append(config)
            yield config


def _own(config: type[Config], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a `Config` has."""
    return {name: value for name, value in settings.items() if name in fields(config)}


def matches(name: str, texts: Sequence[str]) -> bool:
    """Whether one of the texts is in a name, in any case; with `*`, `?` or `[...]` it is a pattern."""
    plain = name.casefold()
    return any(
        fnmatchcase(plain, f"*{text}*") if set("*?[") & set(text) else text in plain
        for text in map(str.casefold, texts)
    )

"""Plan of `irb-twin validate`: scenarios with robots and controllers, and the scenarios' variants."""

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
    """Plan of a validation.

    Attributes:
        runs: scenario and settings of every run.
        unsuited: names of scenario and robot of the pairs that do not suit each other.
    """

    runs: tuple[tuple[Scenario, Config], ...]
    unsuited: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Selection:
    """Controllers and settings of a validation.

    Attributes:
        laws: names of controllers; if empty, all of this project and the default ones of each scenario. A
            variant is run if its controller is among them.
        settings: values of settings by name; a value applies to every scenario and variant that has the
            setting.
        law_settings: settings of controllers by the controller's name.
    """

    laws: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    law_settings: Mapping[str, tuple[tuple[str, Any], ...]] = field(default_factory=dict)


def planned(
    robots: Sequence[str] = (), scenarios: Sequence[Scenario] = (), selection: Selection | None = None
) -> Plan:
    """Return the runs of a validation, robot by robot; a scenario with a fault becomes a run that fails.

    Args:
        robots: names, or paths of files; if empty, the arms of this project, or the robot of the scenario if
            its `Config` has another default robot than `base.Config`.
        scenarios: scenarios to run; if empty, all of this project.
        selection: controllers and settings.

    Raises:
        TwinError: a robot or controller does not exist, a robot's file is invalid, or its masses are unknown.
        ValueError: a setting is invalid.
    """
    import twin

    selection = selection or Selection()
    # Making the settings raises the errors of unknown controllers and invalid values before any run.
    for law in selection.laws or controllers.NAMES:
        Config(**_applicable(Config, selection.settings), controller=law)
    for scenario in scenarios:
        if scenario.fault is None and selection.settings:
            scenario.Config(**_applicable(scenario.Config, selection.settings))
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
            found = _runs(scenario, name, loaded.get(name), selection)
            runs += found
            if not found:
                unsuited.append((scenario.name, name))
    return Plan(tuple(runs), tuple(unsuited))


def _made_for(scenario: Scenario) -> str:
    """Return the robot that a scenario is made for; "" if it is made for any."""
    robot = fields(scenario.Config)["robot"].default
    return "" if robot == fields(Config)["robot"].default else str(robot)


def _runs(
    scenario: Scenario, name: str, robot: Robot | None, selection: Selection
) -> list[tuple[Scenario, Config]]:
    """Return the runs of one scenario with the robot of that name; load the robot if it is None."""
    import twin

    if scenario.fault is None:
        try:
            configs = list(_configs(scenario, selection))
            if not scenario.suits(robot or twin.load(name)):
                return []
            return [(scenario, dataclasses.replace(config, robot=name)) for config in configs]
        except BaseException as error:
            if is_interrupt(error):
                raise
            fault = PluginError(describe_error_with_location(error, scenario.file))
            scenario = registry.failing(scenario, fault)
    return [(scenario, Config(robot=name))]


def _configs(scenario: Scenario, selection: Selection) -> Iterator[Config]:
    """Yield the settings of a scenario's runs without duplicates."""
    settings = _applicable(scenario.Config, selection.settings)
    default = fields(scenario.Config)["controller"].default
    laws = selection.laws or dict.fromkeys((*controllers.NAMES, *scenario.side_by_side, default))
    seen: list[Config] = []
    for config in (
        *(scenario.Config(**settings, controller=law) for law in laws),
        *(
            dataclasses.replace(variant, **settings)
            for variant in scenario.variants
            if not selection.laws or variant.controller in selection.laws
        ),
    ):
        law_settings = selection.law_settings.get(config.controller, config.law_settings)
        config = dataclasses.replace(config, law_settings=law_settings)
        if config not in seen:
            seen.append(config)
            yield config


def _applicable(config: type[Config], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are fields of a `Config`."""
    return {name: value for name, value in settings.items() if name in fields(config)}


def matches(name: str, texts: Sequence[str]) -> bool:
    """Return whether a name contains one of the texts, ignoring case; `*`, `?` and `[...]` are wildcards."""
    plain = name.casefold()
    return any(
        fnmatchcase(plain, f"*{text}*") if set("*?[") & set(text) else text in plain
        for text in map(str.casefold, texts)
    )

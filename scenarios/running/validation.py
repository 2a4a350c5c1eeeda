"""What `irb-twin validate` runs: scenarios with robots and control laws, and the scenarios' variants."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import controllers
from scenarios.base import Config
from scenarios.running import registry
from scenarios.running.options import fields
from twin.errors import OwnCodeError, TwinError
from twin.faults import is_interrupt, told_with_place

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario
    from twin.robot.robot import Robot


@dataclass(frozen=True)
class Plan:
    """What is to be run: `runs`, and in `unsuited` the scenario and robot of runs that can show nothing."""

    runs: tuple[tuple[Scenario, Config], ...]
    unsuited: tuple[tuple[str, str], ...]


def planned(
    robots: Sequence[str] = (),
    laws: Sequence[str] = (),
    scenarios: Sequence[Scenario] = (),
    settings: Mapping[str, Any] | None = None,
) -> Plan:
    """The runs of a validation, robot by robot; a scenario that fails here already is a run that fails.

    Args:
        robots: names, or paths of files; none for the arms of this project, or the robot that a scenario
            was made for, where its `Config` has another default than every scenario.
        laws: control laws; none for all of this project and those that a scenario names.  A variant is run
            if its law is among them.
        scenarios: none for all of this project.
        settings: field -> value, for the scenarios that have such a field; a variant has it, too.

    Raises:
        TwinError: there is no such robot or law, a robot's file is wrong, or its masses are not known.
        ValueError: a setting that cannot be.
    """
    import twin

    settings = dict(settings or {})
    for law in laws:  # wrong use, if there is none of that name
        Config(**_own(Config, settings), controller=law)
    chosen = list(scenarios) or [registry.find_regardless(name) for name in registry.titles()]
    loaded = {name: twin.load(name) for name in robots or twin.robot_names()}
    for robot in loaded.values():
        robot.require_inertia()
    made_for = {} if robots else {scenario.name: own for scenario in chosen if (own := _made_for(scenario))}
    runs, unsuited = [], []
    for name in dict.fromkeys((*loaded, *made_for.values())):
        for scenario in chosen:
            if name != made_for.get(scenario.name, name) or (
                name not in loaded and scenario.name not in made_for
            ):
                continue
            found = _runs(scenario, loaded.get(name), name, laws, settings, strict=bool(scenarios))
            runs += found
            if not found:
                unsuited.append((scenario.name, name))
    return Plan(tuple(runs), tuple(unsuited))


def _made_for(scenario: Scenario) -> str:
    """The robot that a scenario was made for; empty if it was made for any."""
    robot = fields(scenario.Config)["robot"].default
    return "" if robot == fields(Config)["robot"].default else robot


def _runs(
    scenario: Scenario,
    robot: Robot | None,
    name: str,
    laws: Sequence[str],
    settings: Mapping[str, Any],
    strict: bool,
) -> list[tuple[Scenario, Config]]:
    """The runs of one scenario with one robot.

    Args:
        scenario: the scenario.
        robot: the robot; `None` if it is to be loaded.
        name: the robot's name, or the path of its file.
        laws: as in `planned`.
        settings: as in `planned`.
        strict: whether a setting that the scenario refuses is wrong use.
    """
    import twin

    if scenario.fault is None:
        try:
            configs = list(_configs(scenario, laws, settings))
        except BaseException as error:
            if is_interrupt(error) or (strict and settings and isinstance(error, (TwinError, ValueError))):
                raise
            scenario = _failing(scenario, error)
    if scenario.fault is None:
        try:
            if not scenario.suits(robot or twin.load(name)):
                return []
            return [(scenario, dataclasses.replace(config, robot=name)) for config in configs]
        except BaseException as error:
            if is_interrupt(error):
                raise
            scenario = _failing(scenario, error)
    return [(scenario, Config(robot=name))]


def _failing(scenario: Scenario, error: BaseException) -> Scenario:
    return registry.failing(scenario, OwnCodeError(told_with_place(error, scenario.file)))


def _configs(scenario: Scenario, laws: Sequence[str], settings: Mapping[str, Any]) -> Iterator[Config]:
    """The settings of a scenario's runs, each once."""
    own = _own(scenario.Config, settings)
    named = fields(scenario.Config)["controller"].default
    wanted = laws or dict.fromkeys((*controllers.NAMES, *scenario.side_by_side, named))
    seen: list[Config] = []
    for config in (
        *(scenario.Config(**{**own, "controller": law}) for law in wanted),
        *(dataclasses.replace(one, **own) for one in scenario.variants if one.controller in wanted),
    ):
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

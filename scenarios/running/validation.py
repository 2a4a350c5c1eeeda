"""Plan of `irb-twin validate`: scenarios with robots and controllers, and the scenarios' variants."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import controllers
from scenarios.options import fields
from scenarios.running import registry
from scenarios.running.registry import Entry, Task
from scenarios.setup import Setup
from twin.base.errors import PluginError, describe_error_with_location, is_interrupt
from twin.physics.robot.robot import Robot

REPRESENTATIVE = ("irb140", "irb1400", "irb1600")
"""Arms that differ in kind: coupled motors of the wrist, a parallelogram, an open chain with turned gears.

All arms would take three times as long; their models differ from these in numbers alone, which tests check.
"""
ALL = "all"


@dataclass(frozen=True)
class ValidationPlan:
    """Plan of a validation.

    Attributes:
        tasks: scenario and setup of every run.
        unsuited: names of scenario and robot of the pairs that do not suit each other.
    """

    tasks: tuple[Task, ...]
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

    def setup(self, **given: Any) -> Setup:
        """Return a setup with the settings that are of the setup, and those given."""
        of_setup = {name: value for name, value in self.settings.items() if name in fields(Setup)}
        return Setup(**of_setup | given)


def planned(
    robots: Sequence[str] = (), scenarios: Sequence[Entry] = (), selection: Selection | None = None
) -> ValidationPlan:
    """Return the runs of a validation, robot by robot; a scenario with a fault becomes a run that fails.

    Args:
        robots: names, paths of files, or `ALL` for all arms of this project; if empty, `REPRESENTATIVE`, or
            the robot of the scenario's `defaults`.
        scenarios: scenarios to run; if empty, all of this project.
        selection: controllers and settings.

    Raises:
        TwinError: a robot or controller does not exist, a robot's file is invalid, or its masses are unknown.
        ValueError: a setting is invalid.
    """
    import twin

    selection = selection or Selection()
    # Making the setups raises the errors of unknown controllers and invalid values before any run.
    for law in selection.laws or controllers.NAMES:
        selection.setup(controller=law)
    for entry in scenarios:
        if entry.fault is None and selection.settings:
            entry.task(_applicable(entry, selection.settings))
    chosen = list(scenarios) or [registry.find_regardless(name) for name in registry.BUILT_IN]
    given = [one for name in robots for one in (twin.robot_names() if name == ALL else (name,))]
    loaded = {name: selection.setup(robot=name).bare_robot() for name in given or REPRESENTATIVE}
    for robot in loaded.values():
        robot.require_inertia()
    made_for = {entry.name: "" if robots else entry.kind.defaults.get("robot", "") for entry in chosen}
    tasks, unsuited = [], []
    for name in dict.fromkeys((*loaded, *filter(None, made_for.values()))):
        for entry in chosen:
            if made_for[entry.name] not in ("", name) or (name not in loaded and not made_for[entry.name]):
                continue
            found = _tasks(entry, name, loaded.get(name), selection)
            tasks += found
            if not found:
                unsuited.append((entry.name, name))
    return ValidationPlan(tuple(tasks), tuple(unsuited))


def _tasks(entry: Entry, name: str, robot: Robot | None, selection: Selection) -> list[Task]:
    """Return the runs of one scenario with the robot of that name; load the robot if it is None."""
    if entry.fault is not None:
        return [registry.failing(entry, entry.fault).with_setup(robot=name)]
    try:
        tasks = list(_variants(entry, selection))
        robot = robot or selection.setup(robot=name).bare_robot()
        suits = tasks[0].scenario.suits(robot) if tasks else True
        return [task.with_setup(robot=name) for task in tasks if suits]
    except BaseException as error:
        if is_interrupt(error):
            raise
        fault = PluginError(describe_error_with_location(error, entry.file))
        return [registry.failing(entry, fault).with_setup(robot=name)]


def _variants(entry: Entry, selection: Selection) -> Iterator[Task]:
    """Yield the runs of a scenario with every controller, then its variants, without duplicates."""
    settings = _applicable(entry, selection.settings)
    default = entry.kind.setup().controller
    laws = selection.laws or dict.fromkeys((*controllers.NAMES, *entry.kind.side_by_side, default))
    variants = ({**variant, **settings} for variant in entry.kind.variants)
    found: list[Task] = []
    for given in (
        *({**settings, "controller": law} for law in laws),
        *(one for one in variants if not selection.laws or one.get("controller", default) in selection.laws),
    ):
        task = entry.task(given)
        law_settings = selection.law_settings.get(task.setup.controller, task.setup.law_settings)
        task = task.with_setup(law_settings=law_settings)
        if task not in found:
            found.append(task)
            yield task


def _applicable(entry: Entry, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are options of the scenario or settings of the setup."""
    known = (*entry.options, *fields(Setup))
    return {name: value for name, value in settings.items() if name in known}


def matches(name: str, texts: Sequence[str]) -> bool:
    """Return whether a name contains one of the texts, ignoring case; `*`, `?` and `[...]` are wildcards."""
    plain = name.casefold()
    return any(
        fnmatchcase(plain, f"*{text}*") if set("*?[") & set(text) else text in plain
        for text in map(str.casefold, texts)
    )

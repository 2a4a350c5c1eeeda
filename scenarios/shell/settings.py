"""Read settings of scenarios and controllers from the command line, and make tasks of them.

Settings of controllers are `--set Kp=100 pd.Kd=1,2,3,4,5,6` and `--settings FILE.toml`.  A setting without
the name of a controller applies to every controller of the run that has it; at least one must have it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import controllers
from scenarios.options import fields, flag, kind_of, option
from scenarios.running.registry import Entry, Task
from scenarios.setup import Setup
from scenarios.shell.parser import Parser, add_option
from twin.base.errors import TwinError, WrongUse

TOPICS = {
    "the robot": (
        *("robot", "tool_frame", "lock", "unphysical", "package_path"),
        *("mounting", "tool", "payload", "push", "surface", "drives"),
    ),
    "the control loop": ("bandwidth", "time_step", "steps_per_period", "reference", "learned"),
    "the model in the controller": ("model_drives", "model_payload"),
    "the measurements of the controller": ("encoder", "noise", "speed_cutoff", "delay", "force_sensor"),
    "the run": ("seed", "gui", "close_window"),
}
"""Settings of every scenario in the order of the help; `--controller` is an option of each command."""


def add_settings(parser: Parser, entries: Sequence[Entry], besides: Sequence[str]) -> None:
    """Add an option for every setting and scenario's option; those not given are missing in the result.

    Args:
        parser: the parser to extend.
        entries: the scenarios that are to run.
        besides: settings of the setup for which the command has a different option, or none.

    Raises:
        WrongUse: an option exists already, or has different types in two scenarios.
    """
    places: list[tuple[str, str, type]] = [
        (topic, name, Setup) for topic, names in TOPICS.items() for name in names
    ]
    seen: dict[str, tuple[str, type]] = {}
    for entry in entries:
        for name in entry.options:
            kind = kind_of(entry.kind, name).type
            where, first = seen.setdefault(name, (entry.name, kind))
            if kind is not first:
                raise WrongUse(
                    f"{flag(name)} is {first.__name__} in {where} and {kind.__name__} in {entry.name}: run "
                    "them separately"
                )
            if where == entry.name:
                places.append((f"settings of {entry.name}", name, entry.kind))
    for title, name, kind in places:
        if name in besides and kind is Setup:
            continue
        group, item = parser.group(title), fields(kind)[name]
        text, switch = default(name, entries), argparse.BooleanOptionalAction
        try:
            add_option(group, kind, item, default=text, switch=switch)
        except argparse.ArgumentError as error:
            raise WrongUse(f"setting {name!r} makes an option that exists already ({error})") from error


def default(name: str, entries: Sequence[Entry]) -> str:
    """Return the default of a setting: once if all scenarios agree, otherwise scenario by scenario."""
    of_setup = fields(Setup)
    defaults: dict[str, Any] = {}
    for entry in entries:
        if name in of_setup:
            defaults[entry.name] = entry.kind.defaults.get(name, of_setup[name].default)
        elif name in entry.options:
            defaults[entry.name] = fields(entry.kind)[name].default
    defaults = defaults or {"": of_setup[name].default}
    if len(set(defaults.values())) == 1:
        return str(next(iter(defaults.values())))
    return ", ".join(f"{value} in {scenario}" for scenario, value in defaults.items())


def setup_of(given: Mapping[str, Any], law: str, law_settings: LawSettings) -> Setup:
    """Return the setup of a command without a scenario.

    Args:
        given: values of settings by name.
        law: name of the controller.
        law_settings: settings of the controller.
    """
    return Setup(**given, controller=law, law_settings=law_settings.chosen([law])[law])


def tasks_of(
    given: Mapping[str, Any],
    entry: Entry,
    laws: Sequence[str],
    law_settings: LawSettings,
    changes: Sequence[str] = (),
) -> list[Task]:
    """Return the runs of a scenario, one per controller.

    Args:
        given: values of options and settings by name; options of other scenarios are ignored.
        entry: the scenario.
        laws: names of the controllers; empty for the scenario's default.
        law_settings: settings of the controllers.
        changes: the arguments of `--with`.

    Raises:
        WrongUse: a change or a setting of a controller is malformed, or no controller has the setting.
    """
    known = {*fields(Setup), *entry.options} - {"controller"}
    values = {name: value for name, value in given.items() if name in known}
    tasks = [entry.task({**values, "controller": law}) for law in dict.fromkeys(laws)]
    tasks = tasks or [entry.task(values)]
    chosen, changed = law_settings.chosen([task.setup.controller for task in tasks]), changes_of(changes)
    return [task.with_setup(law_settings=chosen[task.setup.controller], changes=changed) for task in tasks]


changes_option = partial(
    option,
    (),
    "deviations of the arm from its nominal data, which the controller does not know: mass=1.1 (a factor), "
    "mass.link_3=12 (kg), drives.coulomb=1.3, drives.viscous.2=5, torque_limit=0.9; the prefix model. "
    "changes the controller's model only: model.mass=0.93",
    "NAME=VALUE",
    flag="--with",
)
"""Return the field of `--with`, which changes the plant or the controller's model, but not both."""


def changes_of(words: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Read the arguments of `--with` into the form of `Setup.changes`.

    Raises:
        WrongUse: an argument is not a name and a number.
    """
    found = []
    for word in words:
        name, _, text = word.partition("=")
        expected = "NAME=NUMBER, as mass=1.1 or model.drives.coulomb=0.7"
        found.append((name, _number(text if name else "", f"--with {word}: expected {expected}")))
    return tuple(found)


def _number(text: str, refusal: str) -> float:
    """Return the number that a text contains; raise `WrongUse` with the refusal if it contains none."""
    try:
        return float(text)
    except ValueError:
        raise WrongUse(refusal) from None


limit_option = partial(
    option,
    (),
    "a run passes only if it meets this limit, too: joint_error, rms_error [rad], tool_error [m], "
    "rms_torque, cubic_torque, base_force_xy, base_force_z, pin_force [N], base_moment_xy, base_moment_z "
    "[N m], beyond_range, speed_ratio, saturated",
    "QUANTITY=VALUE",
)
"""Return the field of `--limit`."""


def limits_of(words: Sequence[str], metrics: bool = False) -> dict[str, float]:
    """Read the arguments of `--limit`, such as `joint_error=0.01`.

    Args:
        words: the arguments.
        metrics: whether a name may also be that of a metric, which the caller checks.

    Raises:
        WrongUse: a quantity is unknown, or its limit is not a number.
    """
    from twin.studies.sweeps.trial import FIGURES

    found: dict[str, float] = {}
    for word in words:
        name, _, text = word.partition("=")
        if name not in FIGURES and not metrics:
            raise WrongUse(f"--limit {word}: unknown quantity {name!r}: known are {', '.join(FIGURES)}")
        found[name] = _number(text, f"--limit {word}: expected QUANTITY=NUMBER, as joint_error=0.01")
        if not found[name] >= 0:
            raise WrongUse(f"--limit {word}: expected a number of at least 0")
    return found


LAWS = "settings of the controllers"


@dataclass(frozen=True)
class LawSettings:
    """Settings of controllers from the command line."""

    words: tuple[str, ...] = option(
        (),
        "settings of controllers: Kp=100; one value per joint: Kp=9,9,9,4,4,4; for one controller: pd.Kp=100",
        "NAME=VALUE",
        flag="--set",
    )
    file: Path | None = option(
        None,
        "settings from a file, which may have one table per controller; --set takes precedence",
        "FILE.toml",
        flag="--settings",
    )

    def chosen(self, laws: Sequence[str]) -> dict[str, tuple[tuple[str, Any], ...]]:
        """Return the settings of each controller in the form of `Setup.law_settings`.

        Args:
            laws: names of the controllers that are to run.

        Raises:
            WrongUse: a setting is malformed, or no controller has it; the message names the valid settings.
        """
        settings = [*(() if self.file is None else of_file(self.file)), *map(of_word, self.words)]
        if not settings:
            return dict.fromkeys(laws, ())
        offered = {law: _offered(law) for law in laws}
        result: dict[str, dict[str, Any]] = {law: {} for law in laws}
        for setting in settings:
            meant = {law: offered[law] for law in laws if setting.law in ("", law, controllers.label(law))}
            fitting = [law for law, names in meant.items() if names is None or setting.name in names]
            if not meant:
                known = ", ".join(laws)
                raise WrongUse(f"{setting.origin}: this run has no controller {setting.law!r}, only {known}")
            if not fitting:
                there = (f"{law} has {', '.join(names or ()) or 'none'}" for law, names in meant.items())
                reason = f"there is no setting {setting.name!r}: {'; '.join(there)}"
                raise WrongUse(f"{setting.origin}: {reason}")
            for law in fitting:
                result[law][setting.name] = setting.value
        return {law: tuple(values.items()) for law, values in result.items()}


class Setting(NamedTuple):
    """One setting: the controller's name ("" for all that have it), its name, its value, and its origin."""

    law: str
    name: str
    value: Any
    origin: str


def of_word(word: str) -> Setting:
    """Read a setting from an argument of `--set`.

    Raises:
        WrongUse: the argument has no name or no value.
    """
    left, sign, value = word.partition("=")
    law, _, name = left.rpartition(".")
    if not (sign and name.isidentifier() and value):
        raise WrongUse(f"--set {word}: expected NAME=VALUE, as Kp=100 or pd.Kp=9,9,9,4,4,4")
    return Setting(law, name, _value(value), f"--set {word}")


def of_file(path: Path) -> list[Setting]:
    """Read the settings in a TOML file: top-level keys for all controllers, one table for each controller.

    Raises:
        WrongUse: the file cannot be read, or a value is not a number, text, Boolean or list of numbers.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"it is not valid TOML: {error}"
        raise WrongUse(f"--settings {path}: cannot be read: {reason}") from error
    settings = []
    for key, value in content.items():
        items = value.items() if isinstance(value, dict) else [(key, value)]
        for name, entry in items:
            if isinstance(entry, list) and all(type(x) in (int, float) for x in entry):
                entry = tuple(map(float, entry))
            if not isinstance(entry, (bool, int, float, str, tuple)):
                raise WrongUse(f"--settings {path}: {name} is {entry!r}, expected a number, text or numbers")
            law = key if isinstance(value, dict) else ""
            settings.append(Setting(law, name, entry, f"--settings {path}"))
    return settings


def _value(text: str) -> Any:
    """Return the value of a text: numbers separated by commas, true or false, or the text itself."""
    if text in ("true", "false"):
        return text == "true"
    try:
        numbers = tuple(float(word) for word in text.split(","))
    except ValueError:
        return text
    return numbers[0] if len(numbers) == 1 else numbers


def _offered(law: str) -> tuple[str, ...] | None:
    """Return the settings of a controller without `period`; `None` if they are not known."""
    try:
        return tuple(name for name in controllers.settings(law) if name != "period")
    except TwinError:  # the run will report the error
        return None

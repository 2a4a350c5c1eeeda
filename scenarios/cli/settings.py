"""Settings of scenarios and of control laws from the command line, and the `Config`s that they make.

Settings of laws are `--set Kp=100 pd.Kd=1,2,3,4,5,6` and `--settings FILE.toml`.  One without a law's name
before it goes to every law of the run that has it; there must be one.
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
from scenarios.base import Config
from scenarios.cli.arguments import Parser, WrongUse, add_option, fields, flag, kind_of, option
from twin.errors import TwinError

TOPICS = {
    "the robot": ("robot", "mounting", "tool", "payload", "drives"),
    "the control loop": ("bandwidth", "time_step", "steps_per_period", "reference"),
    "what the controller believes": ("model_drives", "model_payload"),
    "what the controller measures": ("encoder", "noise", "speed_cutoff", "delay"),
    "the run": ("seed", "gui", "close_window"),
}
"""The settings of every scenario in the order of the help; the controller is an option of the command."""


def add_settings(parser: Parser, configs: Mapping[str, type[Config]], besides: Sequence[str]) -> None:
    """Offer every field of the scenarios' settings; an option that is not given stays out of the result.

    Args:
        parser: where the options go.
        configs: the `Config` of each scenario that is to run, by the scenario's name.
        besides: fields of every scenario that the command has options of its own for, or does not offer.

    Raises:
        WrongUse: an option is there already, or would have to be of two types.
    """
    shared = fields(Config)
    places = [(topic, name, Config) for topic, names in TOPICS.items() for name in names]
    seen = {name: ("every scenario", kind_of(Config, name).type) for name in shared}
    for scenario, config in configs.items():
        for name in fields(config):
            kind = kind_of(config, name).type
            where, first = seen.setdefault(name, (scenario, kind))
            if kind is not first:
                raise WrongUse(
                    f"{flag(name)} is {first.__name__} in {where} and {kind.__name__} in {scenario}: run "
                    "them apart"
                )
            if where == scenario:
                places.append((f"settings of {scenario}", name, config))
    for title, name, config in places:
        if name in besides and config is Config:
            continue
        group, item = parser.group(title), fields(config)[name]
        try:
            add_option(
                group, config, item, default=default(name, configs), switch=argparse.BooleanOptionalAction
            )
        except argparse.ArgumentError as error:
            raise WrongUse(f"setting {name!r} makes an option that there is already ({error})") from error


def default(name: str, configs: Mapping[str, type]) -> str:
    """The default of a field in every scenario that has it: once if they agree, else scenario by scenario."""
    having = {scenario: fields(config) for scenario, config in configs.items()} or {"": fields(Config)}
    defaults = {scenario: known[name].default for scenario, known in having.items() if name in known}
    if len(set(defaults.values())) == 1:
        return str(next(iter(defaults.values())))
    return ", ".join(f"{value} in {scenario}" for scenario, value in defaults.items())


def configs_of(
    given: Mapping[str, Any],
    config: type[Config],
    laws: Sequence[str],
    law_settings: LawSettings,
    changes: Sequence[str] = (),
) -> list[Config]:
    """Make the settings of each run of a scenario, one a control law.

    Args:
        given: settings of scenarios by the names of their fields, of which this one need not have all.
        config: the scenario's `Config`.
        laws: names of control laws; none for the scenario's default.
        law_settings: settings of the laws.
        changes: the words of `--with`.

    Raises:
        WrongUse: a setting of a law is malformed, or none of the laws has it; so is a change.
    """
    known = fields(config).keys() - {"controller"}
    own = {name: value for name, value in given.items() if name in known}
    named: list[dict[str, Any]] = [{"controller": law} for law in dict.fromkeys(laws)] or [{}]
    names = [one.get("controller") or config(**own).controller for one in named]
    chosen = law_settings.chosen(names)
    changed = changes_of(changes)
    return [
        config(**own, **one, law_settings=chosen[law], changes=changed)
        for one, law in zip(named, names, strict=True)
    ]


changes_option = partial(
    option,
    (),
    "what of the arm is not nominal, and the controller does not know: mass=1.1 (a factor), mass.link_3=12 "
    "(kg), drives.coulomb=1.3, drives.viscous.2=5, torque_limit=0.9; after model. of the controller's model "
    "alone: model.mass=0.93",
    "NAME=VALUE",
    flag="--with",
)
"""Returns the field of `--with`, which changes the plant and the controller's model apart."""


def changes_of(words: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Read `--with`, as `Config.changes` has it.

    Raises:
        WrongUse: a word is not a name and a number.
    """
    found = []
    for word in words:
        name, sign, text = word.partition("=")
        try:
            found.append((name, float(text)))
        except ValueError:
            sign = ""
        if not (name and sign):
            raise WrongUse(f"--with {word}: expected NAME=NUMBER, as mass=1.1 or model.drives.coulomb=0.7")
    return tuple(found)


limit_option = partial(
    option,
    (),
    "a run holds if it also keeps this: joint_error, rms_error [rad], tool_error [m], rms_torque, "
    "beyond_range, speed_ratio, saturated",
    "FIGURE=VALUE",
)
"""Returns the field of `--limit`."""


def limits_of(words: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Read `--limit`, as `Config.limits` has it.

    Raises:
        WrongUse: there is no such figure, or no number.
    """
    if not words:
        return ()
    from scenarios.sweeping.plan import limits  # not light

    return tuple(limits(words).items())


LAWS = "settings of the control laws"


@dataclass(frozen=True)
class LawSettings:
    """Settings of control laws, as the command line has them."""

    words: tuple[str, ...] = option(
        (),
        "their own settings: Kp=100; one value a joint: Kp=9,9,9,4,4,4; of one law: pd.Kp=100",
        "NAME=VALUE",
        flag="--set",
    )
    file: Path | None = option(
        None,
        "the same from a file, which may have a table for each law; --set is stronger",
        "FILE.toml",
        flag="--settings",
    )

    def chosen(self, laws: Sequence[str]) -> dict[str, tuple[tuple[str, Any], ...]]:
        """The settings of each law, as `Config.law_settings` has them.

        Args:
            laws: names of the laws that are to run.

        Raises:
            WrongUse: a setting is malformed, or none of the laws has it; the message says what there is.
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
                raise WrongUse(f"{setting.origin}: no law of this run is {setting.law!r}, only {known}")
            if not fitting:
                there = "; ".join(
                    f"{law} has {', '.join(names or ()) or 'none'}" for law, names in meant.items()
                )
                raise WrongUse(f"{setting.origin}: there is no setting {setting.name!r}: {there}")
            for law in fitting:
                result[law][setting.name] = setting.value
        return {law: tuple(values.items()) for law, values in result.items()}


class Setting(NamedTuple):
    """One setting: of which law ("": of all that have it), its name, its value, and where it was given."""

    law: str
    name: str
    value: Any
    origin: str


def of_word(word: str) -> Setting:
    """A setting as it stands on the command line.

    Raises:
        WrongUse: it has no name or no value.
    """
    left, sign, value = word.partition("=")
    law, _, name = left.rpartition(".")
    if not (sign and name.isidentifier() and value):
        raise WrongUse(f"--set {word}: expected NAME=VALUE, as Kp=100 or pd.Kp=9,9,9,4,4,4")
    return Setting(law, name, _value(value), f"--set {word}")


def of_file(path: Path) -> list[Setting]:
    """The settings in a TOML file: keys for all laws, tables for one each.

    Raises:
        WrongUse: the file cannot be read, or a value is neither number, text, truth value nor numbers.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"it is not TOML: {error}"
        raise WrongUse(f"--settings {path}: cannot be read: {reason}") from error
    settings = []
    for key, value in content.items():
        items = value.items() if isinstance(value, dict) else [(key, value)]
        for name, own in items:
            if isinstance(own, list) and all(type(x) in (int, float) for x in own):
                own = tuple(map(float, own))
            if not isinstance(own, (bool, int, float, str, tuple)):
                raise WrongUse(f"--settings {path}: {name} is {own!r}, expected a number, text or numbers")
            law = key if isinstance(value, dict) else ""
            settings.append(Setting(law, name, own, f"--settings {path}"))
    return settings


def _value(text: str) -> Any:
    """A number, numbers between commas, true or false, or the text itself."""
    if text in ("true", "false"):
        return text == "true"
    try:
        numbers = tuple(float(word) for word in text.split(","))
    except ValueError:
        return text
    return numbers[0] if len(numbers) == 1 else numbers


def _offered(law: str) -> tuple[str, ...] | None:
    """The settings of a law, but for the period, which is the run's; `None` where it does not say."""
    try:
        return tuple(name for name in controllers.settings(law) if name != "period")
    except TwinError:  # the run will tell
        return None

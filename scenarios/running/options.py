"""The command line's options, built from the fields of the scenarios' `Config`s."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import sys
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from scenarios.base import Config
from scenarios.running import law_settings
from scenarios.running.help_page import HelpPage, Unprintable
from scenarios.running.law_settings import WrongUse
from twin.errors import UnknownNameError, told

TAKEN = (
    "carry_out", "changes", "command", "explain", "film", "help", "json", "limit", "limits", "log",
    "parser", "picture", "report", "scenarios", "set", "settings",
)  # fmt: skip
"""Names of the command line's own, which no setting can have."""


TOPICS = {
    "the robot": ("robot", "mounting", "tool", "payload", "drives"),
    "the control loop": ("bandwidth", "time_step", "steps_per_period", "reference"),
    "what the controller believes": ("model_drives", "model_payload"),
    "what the controller measures": ("encoder", "noise", "speed_cutoff", "delay"),
    "the run": ("seed", "gui", "close_window"),
}
"""The settings of every scenario in the order of the help; the controller is an option of the command."""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises instead of exiting, and never guesses at abbreviations."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=HelpPage, **settings)

    def print_help(self, file: Any = None) -> None:
        """Print it; argparse itself would pass over a disk that is full.

        Raises:
            Unprintable: it is.
        """
        try:
            (sys.stdout if file is None else file).write(self.format_help())
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Unprintable(told(error)) from error

    def error(self, message: str) -> NoReturn:
        """Raise `WrongUse`."""
        raise WrongUse(message)


def count(text: str, least: int = 1) -> int:
    """A whole number as an option has it.

    Raises:
        ArgumentTypeError: it is none, or less than `least`.
    """
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        raise argparse.ArgumentTypeError(f"expected a whole number above {least - 1}, got {text!r}")
    return int(text)


def fields(config: type) -> dict[str, dataclasses.Field]:
    """The fields that the command line offers, by name: those made with `base.option`."""
    return {item.name: item for item in dataclasses.fields(config) if "help" in item.metadata}


def flag(name: str) -> str:
    """`steps_per_period` -> `--steps-per-period`."""
    return "--" + name.replace("_", "-")


def kind_of(config: type, name: str) -> tuple[type, bool]:
    """What a field holds: bool, int, float or str, and whether `None` will do as well.

    Raises:
        TypeError: its annotation is something else, from which no option can be built.
    """
    try:
        annotation = typing.get_type_hints(config)[name]
    except Exception as error:  # an annotation is code: a name that is not there, a call
        raise TypeError(f"an annotation of Config cannot be evaluated: {error}") from None
    parts = typing.get_args(annotation) or (annotation,)
    kinds = [part for part in parts if part is not type(None)]
    if len(kinds) != 1 or kinds[0] not in (bool, int, float, str) or annotation in kinds[1:]:
        told = getattr(annotation, "__name__", None) if isinstance(annotation, type) else annotation
        raise TypeError(
            f"setting {name!r} is annotated {told}: an option holds bool, int, float or str, "
            "or one of them or None"
        )
    return kinds[0], type(None) in parts


def require_types(config: type[Config]) -> None:
    """Check that the command line can offer the fields of a `Config`, and that their defaults fit.

    Raises:
        TypeError: naming the field, what it is and what it may be.
    """
    for name, item in fields(config).items():
        if name in TAKEN:
            raise TypeError(
                f"setting {name!r} has a name that the command line itself uses: {', '.join(TAKEN)}"
            )
        kind, optional = kind_of(config, name)
        value, choices = item.default, item.metadata.get("choices", ())
        fits = isinstance(value, (int, float) if kind is float else kind)
        if isinstance(value, bool) and kind is not bool:
            fits = False
        if not fits and not (optional and value is None):
            wanted = kind.__name__ + (" or None" if optional else "")
            raise TypeError(f"setting {name!r} has the default {value!r}, which is not {wanted}")
        if not isinstance(item.metadata["help"], str):
            raise TypeError(f"setting {name!r} has the help {item.metadata['help']!r}, which is not text")
        if not isinstance(choices, (tuple, list)) or not all(isinstance(choice, str) for choice in choices):
            raise TypeError(f"setting {name!r} has the choices {choices!r}, which are not a tuple of texts")


def add(
    parser: argparse.ArgumentParser,
    configs: Mapping[str, type[Config]],
    besides: tuple[str, ...] = ("controller",),
) -> None:
    """Offer every field of the scenarios' settings; an option that is not given stays out of the result.

    Args:
        parser: where the options go.
        configs: the `Config` of each scenario that is to run, by the scenario's name.
        besides: fields of every scenario that the command has options of its own for, as it takes several.
    """
    laws = parser.add_argument_group("settings of the control laws")
    laws.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        help="their own settings: Kp=100; one value a joint: Kp=9,9,9,4,4,4; of one law: pd.Kp=100",
    )
    laws.add_argument(
        "--settings",
        type=Path,
        metavar="FILE.toml",
        help="the same from a file, which may have a table for each law; --set is stronger",
    )
    shared = fields(Config)
    for topic, names in TOPICS.items():
        group = parser.add_argument_group(topic)
        for name in names:
            if name not in besides:
                _add(group, Config, shared[name], configs)
    seen = {name: ("every scenario", kind_of(Config, name)) for name in shared}
    for scenario, config in configs.items():
        group = None
        for name, item in fields(config).items():
            kind = kind_of(config, name)
            if name in seen:
                _require_same(name, seen[name], (scenario, kind))
                continue
            group = group or parser.add_argument_group(f"settings of {scenario}")
            _add(group, config, item, configs)
            seen[name] = scenario, kind


def add_changes(parser: argparse.ArgumentParser) -> None:
    """Offer `--with`, which changes the plant and the controller's model apart."""
    parser.add_argument(
        "--with",
        dest="changes",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        help="what of the arm is not nominal, and the controller does not know: mass=1.1 (a factor), "
        "mass.link_3=12 (kg), drives.coulomb=1.3, drives.viscous.2=5, torque_limit=0.9; after model. of the "
        "controller's model alone: model.mass=0.93",
    )


def changes(words: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """What `--with` says, as `Config.changes` has it.

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


def _require_same(name: str, first: tuple[str, Any], second: tuple[str, Any]) -> None:
    """Raise `WrongUse` where one option would have to be of two types."""
    (where, kind), (here, other) = first, second
    if kind[0] is not other[0]:
        raise WrongUse(
            f"{flag(name)} is {kind[0].__name__} in {where} and {other[0].__name__} in {here}: run them apart"
        )


def add_settings(group: argparse._ArgumentGroup, settings: type, besides: Sequence[str] = ()) -> None:
    """Offer the fields of a dataclass that is no scenario's; one that is not given stays out of the result.

    Args:
        group: where the options go.
        settings: the dataclass; what it offers has a help text in its metadata.
        besides: fields that the command has options of its own for.
    """
    for name, item in fields(settings).items():
        if name not in besides:
            _add(group, settings, item, {"": settings})


def _add(
    group: argparse._ArgumentGroup, config: type, item: dataclasses.Field, configs: Mapping[str, type]
) -> None:
    kind, _ = kind_of(config, item.name)
    help = item.metadata["help"]
    if item.default is not None and kind is not bool:
        help += f" (default {default(item.name, configs)})"
    settings: dict[str, Any] = {"default": argparse.SUPPRESS, "help": help.replace("%", "%%")}
    if kind is bool:
        of_scenario = issubclass(config, Config)  # where a scenario's own default may be true
        settings["action"] = argparse.BooleanOptionalAction if of_scenario else "store_true"
    else:
        settings["type"] = kind
        settings["metavar"] = "|".join(item.metadata.get("choices", ())) or kind.__name__.upper()
    try:
        group.add_argument(flag(item.name), **settings)
    except argparse.ArgumentError as error:
        raise WrongUse(f"setting {item.name!r} makes an option that there is already ({error})") from error


def default(name: str, configs: Mapping[str, type]) -> str:
    """The default of a field in every scenario that has it: once if they agree, else scenario by scenario."""
    having = {scenario: fields(config) for scenario, config in configs.items()} or {"": fields(Config)}
    defaults = {scenario: known[name].default for scenario, known in having.items() if name in known}
    if len(set(defaults.values())) == 1:
        return str(next(iter(defaults.values())))
    return ", ".join(f"{value} in {scenario}" for scenario, value in defaults.items())


def configs(given: dict[str, Any], config: type[Config], controllers: list[str]) -> list[Config]:
    """One setting a controller, from the options given that this scenario has.

    Args:
        given: field name -> value, as parsed.
        config: the scenario's `Config`.
        controllers: names; empty for the scenario's default.

    Raises:
        WrongUse: a setting of a law is malformed, or none of the laws has it; so is a change.
    """
    known = fields(config).keys() - {"controller"}
    options = {name: value for name, value in given.items() if name in known}
    laws = list(dict.fromkeys(controllers)) or [config(**options).controller]
    settings = law_settings.chosen(given.get("set", []), given.get("settings"), laws)
    named: list[dict[str, Any]] = [{"controller": law} for law in laws] if controllers else [{}]
    changed = changes(given.get("changes", ()))
    return [
        config(**options, **name, law_settings=settings[law], changes=changed)
        for law, name in zip(laws, named, strict=True)
    ]


def refuse_unknown(extra: list[str], parser: argparse.ArgumentParser) -> None:
    """Complain about what the parser did not know.

    Raises:
        UnknownNameError: for an unknown option, with the nearest that exists and the whole list.
        WrongUse: for a stray word.
    """
    if not extra:
        return
    known = [text for action in parser._actions for text in action.option_strings if text.startswith("--")]
    word = next((text for text in extra if text.startswith("-")), None)
    if word is None:
        raise WrongUse(f"do not know what to do with {' '.join(extra)!r}")
    near = difflib.get_close_matches(word.partition("=")[0], known, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise UnknownNameError(f"unknown option {word.partition('=')[0]!r}{hint}: known are {', '.join(known)}")

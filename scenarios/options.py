"""The command line's options, built from the fields of the scenarios' `Config`s."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import typing
from typing import Any, NoReturn

from scenarios.base import Config
from twin.errors import UnknownNameError


class WrongUse(Exception):
    """A command line that cannot be understood."""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises instead of exiting, and never guesses at abbreviations."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **settings)

    def error(self, message: str) -> NoReturn:
        """Raise `WrongUse`."""
        raise WrongUse(message)


def fields(config: type[Config]) -> dict[str, dataclasses.Field]:
    """The fields that the command line offers, by name: those made with `base.option`."""
    return {item.name: item for item in dataclasses.fields(config) if "help" in item.metadata}


def flag(name: str) -> str:
    """`steps_per_period` -> `--steps-per-period`."""
    return "--" + name.replace("_", "-")


def add(parser: argparse.ArgumentParser, configs: dict[str, type[Config]]) -> None:
    """Offer every field of the scenarios' settings; an option that is not given stays out of the result.

    Args:
        parser: where the options go.
        configs: the `Config` of each scenario that is to run, by the scenario's name.
    """
    shared = fields(Config)
    common = parser.add_argument_group("settings of every scenario")
    for name, item in shared.items():
        if name != "controller":  # the command line takes several and runs them side by side
            _add(common, Config, item, configs)
    seen = set(shared)
    for scenario, config in configs.items():
        own = [item for name, item in fields(config).items() if name not in seen]
        if own:
            group = parser.add_argument_group(f"settings of {scenario}")
            for item in own:
                _add(group, config, item, configs)
                seen.add(item.name)


def _add(
    group: argparse._ArgumentGroup,
    config: type[Config],
    item: dataclasses.Field,
    configs: dict[str, type[Config]],
) -> None:
    kind = typing.get_type_hints(config)[item.name]
    help = item.metadata["help"].replace("%", "%%")
    if item.default is not None and kind is not bool:
        help += f" (default {default(item.name, configs)})"
    if kind is bool:
        group.add_argument(
            flag(item.name), action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=help
        )
        return
    if kind not in (int, float, str):  # `float | None` and the like: the type that is not None
        kind = next(part for part in typing.get_args(kind) if part is not type(None))
    group.add_argument(
        flag(item.name),
        type=kind,
        default=argparse.SUPPRESS,
        help=help,
        metavar="|".join(item.metadata["choices"]) or kind.__name__.upper(),
    )


def default(name: str, configs: dict[str, type[Config]]) -> str:
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
    """
    known = fields(config).keys() - {"controller"}
    settings = {name: value for name, value in given.items() if name in known}
    if not controllers:
        return [config(**settings)]
    return [config(**{**settings, "controller": name}) for name in dict.fromkeys(controllers)]


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

"""Turn the fields of a dataclass into command-line options, and the parsed values into the dataclass.

The functions of `scenarios.options` make the fields.
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import math
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass
from dataclasses import fields as all_fields
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeVar

from scenarios.options import argument, dataclass_transform, flag_of, kind_of, option, output_file, section
from twin.base.errors import UnknownNameError, WrongUse, describe_error

WIDEST = 100
"""Largest width of a line of help, in characters; longer lines are hard to read."""

start_option = partial(option, None, "use only the samples from this time on, in s", "S", flag="--from")
end_option = partial(option, None, "use only the samples up to this time, in s", "S", flag="--to")
"""Return the fields of `--from` and `--to`, which commands on logs have in common."""

T = TypeVar("T")


class Unprintable(Exception):
    """Raised if standard output cannot be written, for example on a full disk."""


class Call(NamedTuple):
    """Input of a command beside its options.

    words: the whole command line, beginning with the command's name.
    scenarios: the named scenarios, as `registry.Entry`s.
    settings: the settings given for the scenarios, by the name of their field.
    client: the words after `--`, of a command that runs the command of a client.
    """

    words: Sequence[str]
    scenarios: list[Any]
    settings: dict[str, Any]
    client: Sequence[str] = ()


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(argument, option, output_file, section)
)
class Command:
    """Command of `irb-twin`; a subclass becomes a frozen dataclass.

    Its docstring is the description in the command's help. Its fields are the options.
    """

    usage: ClassVar[str | None] = None
    examples: ClassVar[str] = ""
    names_after: ClassVar[int | None] = None
    """Number of words before the names of scenarios; `None` if the command takes no scenarios."""
    besides: ClassVar[tuple[str, ...] | None] = None
    """Settings of scenarios that are not offered; `None` if the command takes no settings of scenarios."""
    runs_client: ClassVar[bool] = False
    """Whether the command of a client may stand after `--`."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)

    @classmethod
    def texts(cls, scenarios: Sequence[Any]) -> tuple[str, str]:
        """Return the description and the examples, which may depend on the named scenarios."""
        return inspect.cleandoc(cls.__doc__ or ""), cls.examples

    def run(self, call: Call) -> int:
        """Run the command, and return the exit status."""
        raise NotImplementedError


class Commands(NamedTuple):
    """Group of commands under one name, such as `irb-twin egm`.

    places: by command, its class as `module:Class` (imported when it is chosen) and its help text.
    groups: headings of the help, by the first command below each; without any, argparse lists the commands.
    """

    description: str
    usage: str | None
    examples: str
    places: Mapping[str, tuple[str, str]]
    groups: Mapping[str, str] = MappingProxyType({})

    @property
    def listing(self) -> str:
        """The commands in their groups, one or two lines each."""
        lines = []
        for name, (_, about) in self.places.items():
            lines += [f"\n{self.groups[name]}:"] if name in self.groups else []
            lines.append(textwrap.fill(about, 79, initial_indent=f"  {name:14}", subsequent_indent=" " * 16))
        return "\n".join(lines)


def _place(item: Field) -> str:
    """Return the name under which the parser stores a value: its option's, as fields may share a name."""
    positional = item.metadata.get("positional")
    return item.metadata["metavar"] if positional else flag_of(item)[2:].replace("-", "_")


def add_options(parser: Parser, kind: type, scenarios: Sequence[Any] = (), group: Any = None) -> None:
    """Add an option for each field of a dataclass; an option that is not given is missing in the result.

    Args:
        parser: the parser to extend.
        kind: the dataclass.
        scenarios: the named scenarios, for help texts that depend on them.
        group: the group of the first options, until an option begins another group.
    """
    for item in all_fields(kind):
        if "section" in item.metadata:
            add_options(parser, _class_of(item), scenarios, parser.group(item.metadata["section"]))
            group = None
        elif "help" in item.metadata:
            if title := item.metadata.get("group"):
                group = parser.group(title)
            add_option(group or parser, kind, item, scenarios)


def _class_of(section: Field) -> type:
    """Return the dataclass of a section."""
    assert isinstance(section.default_factory, type)
    return section.default_factory


def add_option(
    group: Any,
    owner: type,
    item: Field,
    scenarios: Sequence[Any] = (),
    default: str | None = None,
    switch: Any = "store_true",
) -> None:
    """Add an option for one field.

    Args:
        group: the parser or the group of options to extend.
        owner: the dataclass that has the field.
        item: the field.
        scenarios: the named scenarios.
        default: the text of the default in the help, if it is not the field's default.
        switch: the action of argparse for a `bool`.
    """
    about, kind = item.metadata, kind_of(owner, item.name)
    help = about["help"] if isinstance(about["help"], str) else about["help"](scenarios)
    if default is None:
        default = " ".join(map(str, item.default)) if isinstance(item.default, tuple) else str(item.default)
    silent = item.default in (None, MISSING, "", ()) or kind.type is bool
    if not silent and "(default" not in help:
        help += f" (default {default})"
    settings: dict[str, Any] = {"help": help.replace("%", "%%")}
    if kind.type is bool:
        settings |= {"dest": _place(item), "default": argparse.SUPPRESS}
        group.add_argument(flag_of(item), action=switch, **settings)
        return
    shown = "|".join(about.get("choices", ()) or kind.words)
    settings["metavar"] = about.get("metavar") or shown or kind.type.__name__.upper()
    settings["type"] = about.get("read") or kind.type
    if kind.words:
        settings["choices"] = kind.words
    if about.get("positional"):
        optional = {"+": "*", None: "?"} if item.default is not MISSING else {}
        group.add_argument(_place(item), nargs=optional.get(kind.nargs, kind.nargs), **settings)
        return
    if kind.nargs == "+":
        settings |= {"nargs": "+", "action": "extend"}
    elif "alone" in about:
        settings |= {"nargs": "?", "const": about["alone"]}
    elif not about.get("read"):  # `read` makes both values of a pair from one word
        settings["nargs"] = kind.nargs
    group.add_argument(flag_of(item), dest=_place(item), default=argparse.SUPPRESS, **settings)


def made(kind: type[T], given: dict[str, Any]) -> T:
    """Make the dataclass from the parsed values, and remove its values from `given`."""
    values = {}
    for item in all_fields(kind):  # pyright: ignore[reportArgumentType]
        if "section" in item.metadata:
            values[item.name] = made(_class_of(item), given)
        elif "help" in item.metadata:
            value = given.pop(_place(item), None)
            if value is not None and value != []:  # [] is a positional argument that is missing
                values[item.name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def output_files(given: Any) -> Iterator[tuple[Path, str | tuple[str, ...], str]]:
    """Yield each file that a command is to write: its path, its required suffix, and its option."""
    for item in all_fields(given):
        value = getattr(given, item.name)
        if "section" in item.metadata:
            yield from output_files(value)
        elif "suffix" in item.metadata:
            for path in value if isinstance(value, tuple) else () if value is None else (value,):
                yield path, item.metadata["suffix"], flag_of(item)


def count(text: str, least: int = 1) -> int:
    """Convert a text into a whole number.

    Raises:
        ArgumentTypeError: the text is not a whole number, or the number is less than `least`.
    """
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        raise argparse.ArgumentTypeError(f"expected a whole number above {least - 1}, got {text!r}")
    return int(text)


def number_within(text: str, low: float, high: float, what: str) -> float:
    """Convert a text into a number.

    Raises:
        ArgumentTypeError: the text is not a number, or the number is not within `low` and `high`.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not low <= number <= high:
        raise argparse.ArgumentTypeError(f"expected {what}, got {text!r}")
    return number


class HelpPage(argparse.HelpFormatter):
    """Help formatter that wraps paragraphs, but not those with an indented line, such as examples."""

    def __init__(self, prog: str) -> None:
        width = min(shutil.get_terminal_size().columns - 2, WIDEST)
        super().__init__(prog, max_help_position=28, width=width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = re.split(r"\n[ \t]*\n", text.strip("\n"))
        return "\n\n".join(
            paragraph if re.search(r"^[ \t]", paragraph, re.MULTILINE) else textwrap.fill(paragraph, width)
            for paragraph in paragraphs
        )


class Parser(argparse.ArgumentParser):
    """Argument parser that raises instead of exiting, and rejects abbreviated options."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=HelpPage, **settings)

    def print_help(self, file: Any = None) -> None:
        """Print the help. argparse itself would ignore a write error.

        Raises:
            Unprintable: the help cannot be written, for example on a full disk.
        """
        try:
            (sys.stdout if file is None else file).write(self.format_help())
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Unprintable(describe_error(error)) from error

    def group(self, title: str) -> Any:
        """Return the group of options with this title; create it if it does not exist."""
        known = (group for group in self._action_groups if group.title == title)
        return next(known, None) or self.add_argument_group(title)

    def error(self, message: str) -> NoReturn:
        """Raise `WrongUse`."""
        raise WrongUse(message)

    def refuse_unknown(self, extra: Sequence[str]) -> None:
        """Reject words that the parser did not recognise.

        Raises:
            UnknownNameError: there is an unknown option; the message names the nearest and all valid options.
            WrongUse: there is an unexpected argument.
        """
        if not extra:
            return
        known = [text for action in self._actions for text in action.option_strings if text.startswith("--")]
        word = next((text for text in extra if text.startswith("-")), None)
        if word is None:
            raise WrongUse(f"unexpected argument {' '.join(extra)!r}")
        near = difflib.get_close_matches(word.partition("=")[0], known, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UnknownNameError(
            f"unknown option {word.partition('=')[0]!r}{hint}: known are {', '.join(known)}"
        )

"""Options of the command line from the fields of a dataclass, and the dataclass from what was typed.

A field that `option`, `argument`, `output_file` or `section` makes is offered.  Its annotation is its type:
`bool` is a switch, `X | None` may be missing, `tuple[X, ...]` takes one value or more and may be repeated,
`tuple[X, X]` takes two, `Literal["a", "b"]` takes these words.  A dataclass of another room needs no import
from here: what it offers has `help` in its metadata, and `choices` where the values are few.
"""

from __future__ import annotations

import argparse
import difflib
import functools
import inspect
import re
import shutil
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, field
from dataclasses import fields as all_fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeAlias, TypeVar

from twin.errors import UnknownNameError, describe_error

WIDEST = 100
"""Characters of a line of help, beyond which it is hard to read."""

T = TypeVar("T")


class WrongUse(Exception):
    """A command line that cannot be understood."""


class Unprintable(Exception):
    """Standard output takes no more: the disk behind it is full, or the like."""


class Call(NamedTuple):
    """Things that a command gets beside its own options.

    words: the whole command line, the command's name first.
    scenarios: `registry.Scenario`s that were named.
    settings: of scenarios, by the name of their field; only those that were given.
    """

    words: Sequence[str]
    scenarios: list[Any]
    settings: dict[str, Any]


class Command:
    """A command of `irb-twin`: a frozen dataclass that inherits this.

    Its docstring is the description in its help, its fields are its options.
    """

    usage: ClassVar[str | None] = None
    examples: ClassVar[str] = ""
    names_after: ClassVar[int | None] = None
    """How many words stand before the names of scenarios; `None` where it takes none."""
    besides: ClassVar[tuple[str, ...] | None] = None
    """Settings of every scenario that are no options of this command; `None` where none is."""

    @classmethod
    def texts(cls, scenarios: Sequence[Any]) -> tuple[str, str]:
        """Return description and examples, which may depend on the scenarios that are named."""
        return inspect.cleandoc(cls.__doc__ or ""), cls.examples

    def run(self, call: Call) -> int:
        """Do it, and return the exit status."""
        raise NotImplementedError


class Commands(NamedTuple):
    """Commands under one name, as those of `irb-twin egm`.

    places: of each its class as `module:Class`, which is imported when it is chosen, and what it does.
    """

    description: str
    usage: str | None
    examples: str
    places: Mapping[str, tuple[str, str]]


Text: TypeAlias = "str | Callable[[Sequence[Any]], str]"
"""A help text, or what makes it of the scenarios that are named."""


def option(default: Any, help: Text, metavar: str | tuple[str, ...] = "", **more: Any) -> Any:
    """Return a field that is an option.

    Args:
        default: its value where it is not given; the help tells it, unless its text has a `(default`.
        help: its help text.
        metavar: stands for the value in the help.
        more: `flag`, where the option is not `--` and the field's name; `group`, the title of the group in
            which the help shows it and the options after it; `read`, which makes the value of a word where
            the type cannot; `alone`, the value of an option that stands without one; `suffix`, see
            `output_file`.
    """
    return field(default=default, metadata={"help": help, "metavar": metavar} | more)


def argument(help: Text, metavar: str, default: Any = MISSING) -> Any:
    """Return a field whose value has no option before it; it must be given if it has no default."""
    return field(default=default, metadata={"help": help, "metavar": metavar, "positional": True})


def output_file(suffix: str, help: str, **more: Any) -> Any:
    """Return a field for the path of a file to be written, whose name ends so; see `output_files`."""
    return option(None, help, f"FILE{suffix}", suffix=suffix, **more)


def section(kind: type, title: str) -> Any:
    """Return a field that holds a dataclass, whose options the help shows in a group with that title."""
    return field(default_factory=kind, metadata={"section": title})


def fields(kind: type) -> dict[str, Field]:
    """Return the fields of a dataclass that are options, by name; those of sections are not among them."""
    return {item.name: item for item in all_fields(kind) if "help" in item.metadata}


def flag(name: str) -> str:
    """`steps_per_period` -> `--steps-per-period`."""
    return "--" + name.replace("_", "-")


def flag_of(item: Field) -> str:
    """The option of a field."""
    return item.metadata.get("flag") or flag(item.name)


def _place(item: Field) -> str:
    """Where the parser keeps a value: by its option, of which there is one, not by the name of the field."""
    positional = item.metadata.get("positional")
    return item.metadata["metavar"] if positional else flag_of(item)[2:].replace("-", "_")


class Kind(NamedTuple):
    """Kind of a field: a type, how many values as `nargs` has it, whether `None` will do, and words."""

    type: type
    nargs: str | int | None
    optional: bool
    words: tuple[str, ...]


@functools.cache
def kind_of(kind: type, name: str) -> Kind:
    """Return the kind of a field, by its annotation.

    Raises:
        TypeError: the annotation cannot be evaluated.
    """
    try:
        annotation = _annotations(kind)[name]
    except Exception as error:  # an annotation is code: a name that is not there, a call
        raise TypeError(f"an annotation of Config cannot be evaluated: {error}") from None
    union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    parts = typing.get_args(annotation) if union else (annotation,)
    kinds = [part for part in parts if part is not type(None)]
    one, nargs = kinds[0] if len(kinds) == 1 else annotation, None
    if typing.get_origin(one) is tuple:
        one, *others = typing.get_args(one)
        nargs = "+" if others == [...] else 1 + len(others)
    words = typing.get_args(one) if typing.get_origin(one) is typing.Literal else ()
    return Kind(str if words else one, nargs, type(None) in parts, words)


@functools.cache
def _annotations(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def add_options(parser: Parser, kind: type, scenarios: Sequence[Any] = (), group: Any = None) -> None:
    """Offer the fields of a dataclass; one that is not given stays out of the result.

    Args:
        parser: where the options go.
        kind: the dataclass.
        scenarios: that are named, of which help texts may tell.
        group: where its options go until one begins another group.
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
    """The dataclass of a section."""
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
    """Offer one field.

    Args:
        group: where it goes.
        owner: the dataclass that has the field.
        item: the field.
        scenarios: that are named.
        default: its default in words, where it is not that of the field.
        switch: what argparse does at a `bool`.
    """
    about, kind = item.metadata, kind_of(owner, item.name)
    help = about["help"] if isinstance(about["help"], str) else about["help"](scenarios)
    if default is None:
        default = " ".join(map(str, item.default)) if isinstance(item.default, tuple) else str(item.default)
    silent = item.default in (None, MISSING) or item.default == () or kind.type is bool
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
    elif not about.get("read"):  # which makes both of a pair
        settings["nargs"] = kind.nargs
    group.add_argument(flag_of(item), dest=_place(item), default=argparse.SUPPRESS, **settings)


def made(kind: type[T], given: dict[str, Any]) -> T:
    """Make the dataclass of what was parsed, and take from `given` what it has."""
    values = {}
    for item in all_fields(kind):  # pyright: ignore[reportArgumentType]
        if "section" in item.metadata:
            values[item.name] = made(_class_of(item), given)
        elif "help" in item.metadata:
            value = given.pop(_place(item), None)
            if value is not None and value != []:  # a positional that is missing
                values[item.name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def output_files(given: Any) -> Iterator[tuple[Path, str | tuple[str, ...], str]]:
    """The files that an instance is to write: path, how its name must end, and the option that named it."""
    for item in all_fields(given):
        value = getattr(given, item.name)
        if "section" in item.metadata:
            yield from output_files(value)
        elif "suffix" in item.metadata:
            for path in value if isinstance(value, tuple) else () if value is None else (value,):
                yield path, item.metadata["suffix"], flag_of(item)


def count(text: str, least: int = 1) -> int:
    """Read a whole number.

    Raises:
        ArgumentTypeError: it is none, or less than `least`.
    """
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        raise argparse.ArgumentTypeError(f"expected a whole number above {least - 1}, got {text!r}")
    return int(text)


class HelpPage(argparse.HelpFormatter):
    """Wraps paragraphs of descriptions; those with an indented line, as examples, stay as they are."""

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
            raise Unprintable(describe_error(error)) from error

    def group(self, title: str) -> Any:
        """Return the group of options with that title, which is made where there is none."""
        known = (group for group in self._action_groups if group.title == title)
        return next(known, None) or self.add_argument_group(title)

    def error(self, message: str) -> NoReturn:
        """Raise `WrongUse`."""
        raise WrongUse(message)

    def refuse_unknown(self, extra: Sequence[str]) -> None:
        """Complain about what the parser did not know.

        Raises:
            UnknownNameError: for an unknown option, with the nearest that exists and the whole list.
            WrongUse: for a stray word.
        """
        if not extra:
            return
        known = [text for action in self._actions for text in action.option_strings if text.startswith("--")]
        word = next((text for text in extra if text.startswith("-")), None)
        if word is None:
            raise WrongUse(f"do not know what to do with {' '.join(extra)!r}")
        near = difflib.get_close_matches(word.partition("=")[0], known, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UnknownNameError(
            f"unknown option {word.partition('=')[0]!r}{hint}: known are {', '.join(known)}"
        )

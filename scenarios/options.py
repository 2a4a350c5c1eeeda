"""Options of commands, setups and scenarios: fields of a dataclass.

The annotation of a field gives its type: `bool` is a switch, `X | None` is optional, `tuple[X, ...]` takes
one or more values and may be repeated, `tuple[X, X]` takes two values, `Literal["a", "b"]` takes one of these
values. A dataclass of another package need not import this module: the metadata of its fields contain `help`.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, field
from dataclasses import fields as all_fields
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from twin.base.errors import UnknownNameError

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Return a decorator without an effect: type checkers alone need it, and Python 3.10 lacks it."""
        return lambda kind: kind


Text: TypeAlias = "str | Callable[[Sequence[Any]], str]"
"""A help text, or a function that makes it from the named scenarios."""


def option(default: Any, help: Text, metavar: str | tuple[str, ...] = "", **more: Any) -> Any:
    """Return a field that is an option.

    Args:
        default: default value. The help shows it, unless the help text contains `(default`.
        help: help text.
        metavar: placeholder of the value in the help.
        more: further metadata. `choices` are the valid words, if there are only few; the help lists them.
            `motion` is False for an option of a scenario that its motion does not depend on. `flag` is the
            option if it is not `--` and the field's name. `group` is the title of the help group for this
            option and the options after it. `read` converts a word if the type cannot. `alone` is the value
            of an option without an argument. `suffix`: see `output_file`.

    Example:
        >>> from scenarios import TrackingScenario, option
        >>> class Nod(TrackingScenario):
        ...     "Nod with the arm."
        ...     angle: float = option(0.5, "travel of axis 5, in rad")
        >>> Nod(angle=0.2)
        Nod(angle=0.2)
    """
    return field(default=default, metadata={"help": help, "metavar": metavar} | more)


package_path_option = partial(
    option,
    None,
    "folders in which package:// meshes of a URDF are looked for (default ROS_PACKAGE_PATH)",
    "DIRS",
)
"""Return the field of `--package-path`, which the command line puts into the environment."""


lock_option = partial(
    option, (), "joints that do not move, as fingers, and their positions in rad or m", "NAME=POSITION"
)
"""Return the field of `--lock`; `locked_joints` reads it."""


def locked_joints(words: Sequence[str]) -> dict[str, float]:
    """Return the positions of `--lock`, by the joint's name.

    Raises:
        ValueError: a word is not a name and a number.

    Example:
        >>> from scenarios.options import locked_joints
        >>> locked_joints(["finger_joint=0.02"])
        {'finger_joint': 0.02}
    """
    pairs = [word.rpartition("=")[::2] for word in words]
    try:
        return {name: float(position) for name, position in pairs}
    except ValueError:
        raise ValueError(f"--lock {' '.join(words)}: expected NAME=POSITION, in rad or m") from None


def argument(help: Text, metavar: str, default: Any = MISSING) -> Any:
    """Return a field for a positional argument, which is required if it has no default."""
    return field(default=default, metadata={"help": help, "metavar": metavar, "positional": True})


def output_file(suffix: str, help: str, **more: Any) -> Any:
    """Return a field for the path of an output file with this suffix; see `output_files`."""
    return option(None, help, f"FILE{suffix}", suffix=suffix, **more)


def section(kind: type, title: str) -> Any:
    """Return a field that contains a dataclass, whose options form a group with this title in the help."""
    return field(default_factory=kind, metadata={"section": title})


def fields(kind: type) -> dict[str, Field]:
    """Return the fields of a dataclass that are options, by name, without those of its sections."""
    return {item.name: item for item in all_fields(kind) if "help" in item.metadata}


def flag(name: str) -> str:
    """Return the option of a name: `steps_per_period` -> `--steps-per-period`."""
    return "--" + name.replace("_", "-")


def flag_of(item: Field) -> str:
    """Return the option of a field."""
    return item.metadata.get("flag") or flag(item.name)


class Kind(NamedTuple):
    """Kind of a field: type, number of values as in `nargs`, whether `None` is valid, and valid words."""

    type: type
    nargs: str | int | None
    optional: bool
    words: tuple[str, ...]


@functools.cache
def kind_of(kind: type, name: str) -> Kind:
    """Return the kind of a field, from its annotation.

    Raises:
        TypeError: the annotation cannot be evaluated.
    """
    try:
        annotation = _annotations(kind)[name]
    except Exception as error:  # evaluating an annotation runs code: it may use a missing name, or call
        raise TypeError(f"its annotation cannot be evaluated: {error}") from None
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


def one_of(value: str, what: str, known: tuple[str, ...]) -> None:
    """Raise an error unless a value is one of the known ones.

    Raises:
        UnknownNameError: the value is unknown; the message lists the known values.

    Example:
        >>> from scenarios.options import one_of
        >>> one_of("hex", "shape of the path", ("circle", "square"))
        Traceback (most recent call last):
        twin.base.errors.UnknownNameError: unknown shape of the path 'hex': known are circle, square
    """
    if value not in known:
        raise UnknownNameError(f"unknown {what} {value!r}: known are {', '.join(known)}")


def positive(value: float, what: str, unit: str) -> None:
    """Raise an error unless a setting is positive and finite.

    Raises:
        ValueError: the value is not; the message has the setting's name, value and unit.

    Example:
        >>> from scenarios.options import positive
        >>> positive(0.0, "duration", "s")
        Traceback (most recent call last):
        ValueError: expected a positive, finite duration in s, got 0.0
    """
    if not 0 < value < float("inf"):
        raise ValueError(f"expected a positive, finite {what} in {unit}, got {value}")


def share(value: float, what: str) -> None:
    """Raise an error unless a setting is above 0 and up to 1.

    Raises:
        ValueError: the value is not.

    Example:
        >>> from scenarios.options import share
        >>> share(1.2, "speed fraction")
        Traceback (most recent call last):
        ValueError: expected a speed fraction above 0 and up to 1, got 1.2
    """
    if not 0 < value <= 1:
        raise ValueError(f"expected a {what} above 0 and up to 1, got {value}")


def at_least(value: int, what: str, least: int = 1) -> None:
    """Raise an error if a number is too small.

    Raises:
        ValueError: it is.

    Example:
        >>> from scenarios.options import at_least
        >>> at_least(0, "periods")
        Traceback (most recent call last):
        ValueError: expected at least 1 for periods, got 0
    """
    if not value >= least:
        raise ValueError(f"expected at least {least} for {what}, got {value}")

"""Rules for the class of a scenario: what its body may contain."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from dataclasses import Field
from dataclasses import fields as all_fields
from typing import Any

from scenarios.options import fields, kind_of
from scenarios.setup import Setup
from twin.base.errors import PluginError

TAKEN = (
    "changes", "explain", "film", "help", "json", "limit", "log", "report", "scenarios", "set", "settings",
)  # fmt: skip
"""Names that the command line uses itself; no option of a scenario can have one of them."""
ATTRIBUTES = ("defaults", "limits", "variants", "side_by_side", "leaves_limits", "needs")
"""Class attributes that a scenario sets without an annotation or with one."""


def require_settings(cls: Any) -> None:
    """Raise a PluginError unless each setting in the body of a class is an option with a type."""
    annotations = vars(cls).get("__annotations__", {})
    of_setup, inherited = {item.name for item in all_fields(Setup)}, fields(cls)
    for name in dict.fromkeys((*annotations, *vars(cls))):
        value, where = vars(cls).get(name), f"{cls.__name__}.{name}"
        if name in of_setup - {"limits"} and not inspect.isfunction(value):
            raise PluginError(
                f"{where}: {name} is a setting of every run; for another default write "
                f"defaults = {{{name!r}: ...}}, for an option choose another name"
            )
        if name in inherited and not isinstance(value, Field):
            raise PluginError(
                f"{where}: {name} is an option; for another default write {name}: "
                f"{_text(inherited[name].type)} = option({value!r}, {inherited[name].metadata['help']!r})"
            )
        taken = name in (*ATTRIBUTES, *TAKEN, *dir(cls.__base__)) and name not in inherited
        if isinstance(value, Field) and taken:
            raise PluginError(f"{where}: {name} is a name that scenarios use themselves; choose another one")
        near = difflib.get_close_matches(name, ATTRIBUTES, 1)
        if near and near != [name] and not (callable(value) or isinstance(value, Field)):
            raise PluginError(f"{where}: scenarios have no {name}; did you mean {near[0]}?")
        if isinstance(value, Field) and name not in annotations:
            raise PluginError(f"{where}: an option needs a type; write {name}: float = option(...)")
        plain = "ClassVar" in str(annotations.get(name)) or name in ATTRIBUTES
        if name in annotations and not (isinstance(value, Field) or plain):
            raise PluginError(
                f"{where}: a setting is an option; write {name}: {_text(annotations[name])} = "
                f"option({value!r}, 'what it is, and its unit')"
            )


def require_options(cls: Any) -> None:
    """Raise a PluginError unless every option of a class can be an option of the command line."""
    for name, item in fields(cls).items():
        where = f"{cls.__name__}.{name}"
        try:
            kind, nargs, optional, words = kind_of(cls, name)
        except TypeError as error:
            raise PluginError(f"{where}: {error}") from error
        if kind not in (bool, int, float, str) or nargs or words:
            raise PluginError(
                f"{where} is annotated {_text(cls.__annotations__.get(name, kind))}: the type of an option "
                "is bool, int, float or str, or one of them or None"
            )
        value, choices = item.default, item.metadata.get("choices", ())
        fits = isinstance(value, (int, float) if kind is float else kind)
        if isinstance(value, bool) and kind is not bool:
            fits = False
        if not fits and not (optional and value is None):
            expected = kind.__name__ + (" or None" if optional else "")
            raise PluginError(f"{where} has the default {value!r}, which is not {expected}")
        if not isinstance(item.metadata["help"], str):
            raise PluginError(f"{where} has the help {item.metadata['help']!r}, which is not text")
        if not isinstance(metavar := item.metadata["metavar"], str):
            raise PluginError(f"{where} has the placeholder {metavar!r}; valid words are choices={metavar!r}")
        if not isinstance(choices, (tuple, list)) or not all(isinstance(choice, str) for choice in choices):
            raise PluginError(f"{where} has the choices {choices!r}, which are not a tuple of texts")


def require_attributes(cls: Any) -> None:
    """Raise a PluginError unless the class attributes name what exists."""
    from twin.studies.sweeps.trial import FIGURES

    if not isinstance(cls.leaves_limits, str):
        raise PluginError(f"{cls.__name__}.leaves_limits must be a sentence, got {cls.leaves_limits!r}")
    for name in ("variants", "side_by_side", "needs"):
        found = getattr(cls, name, ())
        if not isinstance(found, (tuple, list)):
            raise PluginError(f"{cls.__name__}.{name} must be a tuple, got {found!r}")
    settings = tuple(fields(Setup))
    for name, found, known in (
        ("defaults", cls.defaults, settings),
        ("limits", cls.limits, FIGURES),
        ("needs", dict.fromkeys(getattr(cls, "needs", ())), ("tool", "payload", "seed")),
        *((f"variants[{k}]", one, (*fields(cls), *settings)) for k, one in enumerate(cls.variants)),
    ):
        if not isinstance(found, Mapping):
            raise PluginError(f"{cls.__name__}.{name} must be a dictionary, got {found!r}")
        if unknown := [key for key in found if key not in known]:
            raise PluginError(
                f"{cls.__name__}.{name}: there is no {unknown[0]!r}: known are {', '.join(known)}"
            )


def _text(annotation: Any) -> str:
    """Return an annotation as it is written."""
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))

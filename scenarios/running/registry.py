"""Registry of the scenarios: list their titles, and load one by its name or from a user's file.

A file of this package is a scenario if it defines `Config`, `run` and `metrics`; no registration is needed.
The list is read from the source text. It therefore imports nothing, and it includes files that cannot be
loaded.
"""

from __future__ import annotations

import ast
import functools
import itertools
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from scenarios.base import Config, Metric
from scenarios.checks.closed_loop import MakeArms, MakeReference, carrying
from scenarios.cli.arguments import fields, kind_of
from twin.errors import PluginError, TwinError, UnknownNameError, VariationError, describe_error
from twin.plugins import load_file, load_module, plugin_entries
from twin.rapid.values import SUFFIXES
from twin.robot.robot import Robot

if TYPE_CHECKING:
    from twin.logs.log import Log

PARTS = ("Config", "run", "metrics")
OPTIONAL = ("table", "cases", "picture", "reference", "arms")
HERE = Path(__file__).parents[1]
GROUP = "irb_twin.scenarios"
TAKEN = (
    "changes", "explain", "film", "help", "json", "limit", "limits", "log", "picture", "report", "scenarios",
    "set", "settings",
)  # fmt: skip
"""Names that the command line uses itself; no setting of a scenario can have one of them."""


ScenarioTable: TypeAlias = tuple[str, Sequence[Sequence[str]]]
"""Caption, and rows of texts, headings first."""


@dataclass(frozen=True)
class Scenario:
    """A loaded scenario: its name, its docstring and its parts.

    A scenario that could not be loaded has a `fault`; every run of it ends with this error.
    """

    name: str
    doc: str
    Config: type[Any]  # a subclass of base.Config, which adds the scenario's settings
    run: Callable[[Any], Log]
    metrics: Callable[[Log], tuple[Metric, ...]]
    variants: tuple[Config, ...] = ()
    suits: Callable[[Robot], bool] = lambda _: True
    file: str = ""
    fault: TwinError | None = None
    leaves_limits: str = ""
    side_by_side: tuple[str, ...] = ()
    table: Callable[[Log], ScenarioTable] | None = None
    cases: Callable[[Log], Sequence[tuple[str, str, float, str]]] = lambda _: ()
    picture: Callable[[Sequence[Log], Path], None] | None = None
    reference: MakeReference | None = None
    arms: MakeArms = carrying

    def require_closed_loop(self) -> MakeReference:
        """Return the function `reference` of the scenario.

        Raises:
            VariationError: the scenario has no such function, so that its robot cannot be changed.
        """
        if self.reference is None:
            raise VariationError(
                f"scenario {self.name!r} has no reference(robot, config): its robot cannot be changed, and "
                "it can be neither swept nor learned"
            )
        return self.reference

    @property
    def title(self) -> str:
        """First line of the docstring."""
        return self.doc.partition("\n")[0]


def titles() -> dict[str, str]:
    """Return the first docstring line of every scenario of the package, by name in alphabetical order."""
    found = {}
    for file in sorted(HERE.glob("*.py")):
        text = file.read_bytes().decode("utf-8", "replace")
        if set(re.findall(r"^(?:class|def) (\w+)", text, re.MULTILINE)).issuperset(PARTS):
            found[file.stem] = _title(text)
    return found


@functools.cache
def _title(text: str) -> str:
    try:
        return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    except (SyntaxError, ValueError) as error:
        return f"cannot be loaded: {describe_error(error)}"


def plugin_titles() -> dict[str, str]:
    """Return the first docstring line of every scenario of an installed plugin, by name."""
    found = {}
    for name, entry in plugin_entries(GROUP).items():
        if name not in titles():
            try:
                found[name] = f"{(entry.load().__doc__ or '').strip().partition(chr(10))[0]}"
            except TwinError as error:
                found[name] = describe_error(error)
    return found


def find(name: str) -> Scenario:
    """Return the scenario of a name or of a Python file.

    Args:
        name: a name from `titles`, the name of a plugin's scenario, the path of a file that ends in ``.py``,
            or a program in RAPID: a module file, or a folder with the modules of a task.

    Raises:
        UnknownNameError: there is no such scenario or file; the message lists the names.
        PluginError: the file cannot be loaded.
        TwinError: the file lacks a part of a scenario.
    """
    if is_program(name):
        return _program(name)
    if name.endswith(".py"):
        if not Path(name).is_file():
            raise UnknownNameError(f"no scenario file {name!r}")
        return _checked(Path(name).stem, load_file(name, f"scenario file {name!r}"), name)
    known = titles()
    if name in known:
        return _checked(name, load_module(f"scenarios.{name}", f"scenario {name!r}"), name)
    if name in plugin_entries(GROUP):
        return _checked(name, plugin_entries(GROUP)[name].load(), name)
    names = ", ".join(dict.fromkeys((*known, *plugin_entries(GROUP))))
    raise UnknownNameError(
        f"unknown scenario {name!r}: known are {names}, or the path of your .py file or of a program in RAPID"
    )


def is_program(name: str) -> bool:
    """Return whether the name of a scenario is the path of a program in RAPID."""
    path, known = Path(name), (*titles(), *plugin_entries(GROUP))
    return path.suffix.lower() in SUFFIXES or (name not in known and path.is_dir())


def _program(path: str) -> Scenario:
    """Return the scenario that runs a program.

    Raises:
        UnknownNameError: there is no such file or folder.
    """
    from scenarios.programs import program

    if not Path(path).exists():
        raise UnknownNameError(f"no program {path!r}")
    found = _checked(Path(path).resolve().stem, program, path)
    return replace(found, Config=program.config_of(path), file=path)


def find_regardless(name: str) -> Scenario:
    """Return the scenario as `find` does; a file that is no valid scenario becomes one whose runs fail.

    Raises:
        UnknownNameError: there is no such scenario or file.
    """
    try:
        return find(name)
    except UnknownNameError:
        raise
    except TwinError as error:
        placeholder = Scenario(Path(name).stem, "cannot be run", Config, _no_run, _no_run, file=name)
        return failing(placeholder, error)


def failing(scenario: Scenario, fault: TwinError) -> Scenario:
    """Return the scenario with a fault and with the default `Config`, because its `Config` may be invalid."""
    return replace(scenario, Config=Config, variants=(), fault=fault)


def _no_run(_: Any) -> Any:
    """Raise AssertionError; placeholder for the functions of a scenario with a fault."""
    raise AssertionError


def without_duplicates(names: Sequence[str]) -> list[str]:
    """Return the names with every file only once, even if its path is written in several forms."""
    files = {name for name in names if name.endswith(".py") or is_program(name)}
    return list({str(Path(name).resolve()) if name in files else name: name for name in names}.values())


def disambiguate(scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Return the scenarios with unique names: prefix equal names with their folder, then number them."""
    count = Counter(scenario.name for scenario in scenarios)
    taken = {name for name in count if count[name] == 1}
    result = []
    for scenario in scenarios:
        name = scenario.name
        if count[name] > 1:
            prefixed = f"{Path(scenario.file).resolve().parent.name}-{name}"
            numbered = (f"{prefixed}-{number}" for number in itertools.count(2))
            name = next(name for name in itertools.chain([prefixed], numbered) if name not in taken)
            taken.add(name)
        result.append(replace(scenario, name=name))
    return result


def require_types(config: type[Config]) -> None:
    """Raise an error unless every field of a `Config` can be an option of the command line.

    Raises:
        TypeError: a name, annotation, default, help or choices is invalid; the message has the field, the
            invalid value and the valid ones.
    """
    for name, item in fields(config).items():
        if name in TAKEN:
            raise TypeError(
                f"setting {name!r} has a name that the command line itself uses: {', '.join(TAKEN)}"
            )
        kind, nargs, optional, words = kind_of(config, name)
        if kind not in (bool, int, float, str) or nargs or words:
            annotation = config.__annotations__.get(name, kind)
            text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", annotation)
            raise TypeError(
                f"setting {name!r} is annotated {text}: the type of an option is bool, int, float or str, "
                "or one of them or None"
            )
        value, choices = item.default, item.metadata.get("choices", ())
        fits = isinstance(value, (int, float) if kind is float else kind)
        if isinstance(value, bool) and kind is not bool:
            fits = False
        if not fits and not (optional and value is None):
            expected = kind.__name__ + (" or None" if optional else "")
            raise TypeError(f"setting {name!r} has the default {value!r}, which is not {expected}")
        if not isinstance(item.metadata["help"], str):
            raise TypeError(f"setting {name!r} has the help {item.metadata['help']!r}, which is not text")
        if not isinstance(choices, (tuple, list)) or not all(isinstance(choice, str) for choice in choices):
            raise TypeError(f"setting {name!r} has the choices {choices!r}, which are not a tuple of texts")


def _checked(name: str, module: ModuleType, where: str) -> Scenario:
    """Return the scenario in a module; raise TwinError if a part is missing or invalid."""
    missing = [part for part in PARTS if not hasattr(module, part)]
    if missing:
        raise TwinError(f"{where!r} lacks {', '.join(missing)}: a scenario needs {', '.join(PARTS)}")
    if not (
        isinstance(module.Config, type) and issubclass(module.Config, Config) and is_dataclass(module.Config)
    ):
        raise TwinError(f"{where!r}: Config must be a frozen dataclass that inherits scenarios.base.Config")
    variants, suits = getattr(module, "VARIANTS", ()), getattr(module, "suits", lambda _: True)
    optional = {part: value for part in OPTIONAL if (value := getattr(module, part, None)) is not None}
    required = {"run": module.run, "metrics": module.metrics, "suits": suits}
    for part, value in (required | optional).items():
        if not callable(value):
            raise PluginError(f"{where!r}: {part} must be a function, got {value!r}")
    if not isinstance(variants, (tuple, list)) or not all(isinstance(one, Config) for one in variants):
        raise PluginError(f"{where!r}: VARIANTS must be a tuple of Configs, got {variants!r}")
    try:
        require_types(module.Config)
    except TypeError as error:
        raise PluginError(f"{where!r}: {error}") from error
    leaves_limits = getattr(module, "LEAVES_LIMITS", "")
    if not isinstance(leaves_limits, str):
        raise PluginError(f"{where!r}: LEAVES_LIMITS must be a sentence, got {leaves_limits!r}")
    return Scenario(
        name,
        doc=str(module.__doc__ or "").strip(),
        Config=module.Config,
        run=module.run,
        metrics=module.metrics,
        variants=tuple(variants),
        suits=suits,
        file=str(module.__file__),
        leaves_limits=leaves_limits,
        side_by_side=tuple(getattr(module, "SIDE_BY_SIDE", ())),
        **optional,
    )


def scenario_argument_text(path: str, name: str) -> str:
    """Return the command-line argument for a scenario: its name, or the path of a user's file."""
    file = Path(path)
    if file.suffix != ".py":  # the scenario was not loaded from a file
        return path or name
    if file.resolve().parent == HERE:
        return file.stem  # the name in the report may have the prefix of its folder
    for name, entry in plugin_entries(GROUP).items():
        if getattr(sys.modules.get(entry.value), "__file__", None) == path:
            return name
    near = os.path.relpath(file)
    return str(file) if near.startswith("..") else near if not near.startswith("-") else f"./{near}"

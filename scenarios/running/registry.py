"""Registry of the scenarios: find one by its name or in a user's file, and make runs of it.

A file is a scenario if it defines one subclass of `scenarios.Scenario`. The built-in ones are listed here.
Their class is imported within functions, so that names and titles come at once.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from scenarios.options import fields
from twin.base.errors import (
    PluginError,
    TwinError,
    UnknownNameError,
    VariationError,
    WrongUse,
    describe_error,
    near,
)
from twin.base.plugins import load_file, load_module, plugin_entries

if TYPE_CHECKING:
    from scenarios.scenario import Scenario, TrackingScenario
    from scenarios.setup import Setup
    from twin.physics.robot.robot import Robot

BUILT_IN = (
    "collision", "constrained_circle", "drive_check", "excitation", "gravity_hold", "joint_tracking",
    "laboratory", "model_agreement", "parallelogram", "payload_mismatch", "pose_path", "press",
    "velocity_control",
)  # fmt: skip
"""Names of the scenarios of this project, which are files of this package."""
HERE = Path(__file__).parents[1]
GROUP = "irb_twin.scenarios"
GUIDE = "docs/guides/own_scenario.md"
OLD_IMPORT = re.compile(rb"^\s*(from|import) scenarios(\.| import )base\b", re.M)
"""Import of the module that held the settings of scenarios up to version 0.2."""
PROGRAM = "scenarios.abb.rapid.program:RapidProgram"
"""Scenario that runs programs in RAPID, in a room above this one, which is loaded for them alone."""
SUFFIXES = ".mod", ".sys", ".prg", ".modx", ".sysx"
"""Suffixes of the files of their modules, as in `twin.abb.rapid.values`."""


class Task(NamedTuple):
    """A scenario with its options, and the setup to run it with."""

    entry: Entry
    scenario: Scenario
    setup: Setup

    def with_setup(self, **settings: Any) -> Task:
        """Return the task with other settings of its setup."""
        return self._replace(setup=replace(self.setup, **settings))

    def closed_loop(self) -> TrackingScenario:
        """Return the scenario of a task that can be swept and learned, and whose robot can be changed.

        Raises:
            VariationError: the scenario is no `TrackingScenario`.
        """
        from scenarios.scenario import TrackingScenario

        if not isinstance(self.scenario, TrackingScenario):
            raise VariationError(
                f"scenario {self.entry.name!r} is no TrackingScenario: its robot cannot be changed, and it "
                "can be neither swept nor learned"
            )
        return self.scenario


@dataclass(frozen=True)
class Entry:
    """Scenario of the registry.

    A scenario that could not be loaded has a `fault`; every run of it ends with this error.

    Attributes:
        name: name of the scenario.
        kind: its class.
        file: path of its file.
        given: options that its name sets, as the file of a program.
        fault: why it cannot be run; `None` if it can.
    """

    name: str
    kind: type[Scenario]
    file: str = ""
    given: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    fault: TwinError | None = None

    @property
    def title(self) -> str:
        """First line of the docstring."""
        return self.kind.title() if self.fault is None else "cannot be run"

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options."""
        return tuple(fields(self.kind))

    def task(self, settings: Mapping[str, Any]) -> Task:
        """Return a task.

        Args:
            settings: options of the scenario and settings of the setup by name.

        Raises:
            TwinError, ValueError: a value is invalid, or the options do not fit the setup.
        """
        options = {name: value for name, value in settings.items() if name in self.options}
        others = {name: value for name, value in settings.items() if name not in self.options}
        scenario, setup = self.kind(**self.given, **options), self.kind.setup(**others)
        return Task(self, scenario, scenario.checked(setup))


def known_names() -> tuple[str, ...]:
    """Return the names of the built-in scenarios, then those of installed plugins."""
    return tuple(dict.fromkeys((*BUILT_IN, *plugin_entries(GROUP))))


def titles(names: Iterable[str] = BUILT_IN) -> dict[str, str]:
    """Return the first docstring line of scenarios by their names, or why one cannot be loaded."""
    return {name: _title(name) for name in names}


def _title(name: str) -> str:
    """Return the title of a scenario; that of a built-in one is read from the source text."""
    if name in BUILT_IN:
        kind = name.title().replace("_", "")  # joint_tracking -> JointTracking
        with suppress(OSError, SyntaxError):
            for item in ast.parse((HERE / f"{name}.py").read_text(encoding="utf-8")).body:
                if isinstance(item, ast.ClassDef) and item.name == kind:
                    return (ast.get_docstring(item) or "").partition("\n")[0]
    entry = find_regardless(name)
    return entry.title if entry.fault is None else describe_error(entry.fault)


def find(name: str) -> Entry:
    """Return the scenario of a name or of a Python file.

    Args:
        name: a name of `BUILT_IN`, the name of a plugin's scenario, the path of a file that ends in ``.py``,
            or a program in RAPID: a module file, or a folder with the modules of a task.

    Raises:
        UnknownNameError: there is no such scenario or file; the message lists the names.
        PluginError: the file cannot be loaded, or is no scenario.
        WrongUse: the file has the form of version 0.2.

    Example:
        >>> from scenarios.running.registry import find
        >>> found = find("gravity_hold")
        >>> found.title, found.options
        ('Hold a pose from rest, and measure the sag of the arm under each controller.', ('pose', 'duration'))
    """
    if is_program(name):
        if not Path(name).exists():
            raise UnknownNameError(f"no program {name!r}")
        module, _, kind = PROGRAM.partition(":")
        program = getattr(importlib.import_module(module), kind)
        return Entry(Path(name).resolve().stem, program, name, {"program": name})
    if name.endswith(".py"):
        if not Path(name).is_file():
            raise UnknownNameError(f"no scenario file {name!r}")
        return _entry(Path(name).stem, _module(name), name)
    if name in BUILT_IN:
        return _entry(name, load_module(f"scenarios.{name}", f"scenario {name!r}"), name)
    plugins = plugin_entries(GROUP)
    if name in plugins:
        return _entry(name, plugins[name].load(), name)
    files = [f"./{name}{suffix}" for suffix in (".py", *SUFFIXES) if Path(f"{name}{suffix}").is_file()]
    hint = f", did you mean {files[0]}?" if files else near(name, known_names())
    raise UnknownNameError(
        f"unknown scenario {name!r}{hint}: known are {', '.join(known_names())}, "
        "or the path of your .py file or of a program in RAPID"
    )


def suited_to(robot: Robot) -> tuple[str, ...]:
    """Return the names of the built-in scenarios that suit a robot, without those made for another one."""
    kinds = {name: find(name).kind for name in BUILT_IN}
    return tuple(
        name
        for name, kind in kinds.items()
        if kind.defaults.get("robot", robot.name) == robot.name and kind().suits(robot)
    )


def is_program(name: str) -> bool:
    """Return whether the name of a scenario is the path of a program in RAPID."""
    path = Path(name)
    return path.suffix.lower() in SUFFIXES or (name not in known_names() and path.is_dir())


def find_regardless(name: str) -> Entry:
    """Return the scenario as `find` does; a file that is no valid scenario becomes one whose runs fail.

    Raises:
        UnknownNameError: there is no such scenario or file.
    """
    from scenarios.scenario import Scenario

    try:
        return find(name)
    except UnknownNameError:
        raise
    except TwinError as error:
        return Entry(Path(name).stem, Scenario, file=name, fault=error)


def failing(entry: Entry, fault: TwinError) -> Task:
    """Return a task that ends with a fault, without the options of its scenario, which may be invalid."""
    from scenarios.scenario import Scenario
    from scenarios.setup import Setup

    return Task(replace(entry, kind=Scenario, given={}, fault=fault), Scenario(), Setup())


def without_duplicates(names: Sequence[str]) -> list[str]:
    """Return the names with every file only once, even if its path is written in several forms."""
    files = {name for name in names if name.endswith(".py") or is_program(name)}
    return list({str(Path(name).resolve()) if name in files else name: name for name in names}.values())


def disambiguate(scenarios: Sequence[Entry]) -> list[Entry]:
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


def _module(file: str) -> ModuleType:
    """Return the module of a user's file.

    Raises:
        PluginError: the file cannot be loaded.
    """
    try:
        return load_file(file, f"scenario file {file!r}")
    except PluginError:
        if OLD_IMPORT.search(Path(file).read_bytes()):  # the module of Config no longer exists
            raise _of_version_0_2(file) from None
        raise


def _of_version_0_2(where: str) -> WrongUse:
    """Return the error of a scenario that is a module with functions."""
    return WrongUse(
        f"{where!r} has the form of version 0.2, with Config, run and metrics: a scenario is now a class, "
        f"see {GUIDE}"
    )


def _entry(name: str, module: ModuleType, where: str) -> Entry:
    """Return the scenario in a module.

    Raises:
        PluginError: its class has no docstring.
        TwinError: the module defines no subclass of `Scenario`, or several, or has the form of version 0.2.
    """
    from scenarios.scenario import Scenario

    kinds = [
        one
        for one in vars(module).values()
        if inspect.isclass(one) and issubclass(one, Scenario) and one.__module__ == module.__name__
    ]
    if not kinds and hasattr(module, "Config"):
        raise _of_version_0_2(where)
    if len(kinds) != 1:
        names = ", ".join(one.__name__ for one in kinds) or "none"
        raise TwinError(
            f"{where!r}: expected one class that inherits scenarios.TrackingScenario or scenarios.Scenario, "
            f"got {names}; see {GUIDE}"
        )
    if not kinds[0].title():
        raise PluginError(f"{where!r}: {kinds[0].__name__} has no docstring, whose first line is its title")
    return Entry(name, kinds[0], str(module.__file__))


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

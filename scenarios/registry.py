"""Which scenarios there are, and how to get one by its name or from a file of one's own.

A file of this package is a scenario if it defines `Config`, `run` and `metrics`; adding the file is all it
takes. The list is read from the source, so that asking for it starts nothing.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from scenarios.base import Config, Metric
from twin.errors import TwinError, UnknownNameError

if TYPE_CHECKING:
    from twin.log import Log
    from twin.robot import Robot

PARTS = ("Config", "run", "metrics")


@dataclass(frozen=True)
class Scenario:
    """A loaded scenario: its name, what its docstring says, and its parts."""

    name: str
    doc: str
    Config: type[Any]  # a subclass of base.Config, with settings of its own
    run: Callable[[Any], Log]
    metrics: Callable[[Log], tuple[Metric, ...]]
    variants: tuple[Config, ...] = ()
    suits: Callable[[Robot], bool] = lambda _: True
    file: str = ""

    @property
    def title(self) -> str:
        """The first line of the docstring."""
        return self.doc.partition("\n")[0]


def titles() -> dict[str, str]:
    """Name and first docstring line of every scenario of the package, in alphabetical order."""
    found = {}
    for file in sorted(Path(__file__).parent.glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        defined = {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        if defined.issuperset(PARTS):
            found[file.stem] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return found


def find(name: str) -> Scenario:
    """The scenario called `name`, or the one in the Python file `name`.

    Args:
        name: a name from `titles`, or the path of a file that ends in ``.py``.

    Raises:
        UnknownNameError: if there is no such scenario or file; the message lists the names.
        TwinError: if the file does not load or lacks a part of a scenario.
    """
    if name.endswith(".py"):
        return _checked(Path(name).stem, _load(Path(name)), name)
    known = titles()
    if name not in known:
        raise UnknownNameError(
            f"unknown scenario {name!r}: known are {', '.join(known)}, or the path of a .py file of your own"
        )
    return _checked(name, importlib.import_module(f"scenarios.{name}"), name)


def _load(path: Path) -> ModuleType:
    """The module in a user's own file."""
    if not path.is_file():
        raise UnknownNameError(f"no scenario file {str(path)!r}")
    spec = importlib.util.spec_from_file_location(f"own_scenario_{path.stem}", path)
    assert spec is not None  # the suffix is .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a user's file does wrong
        del sys.modules[module.__name__]
        raise TwinError(
            f"cannot load scenario file {str(path)!r}: {type(error).__name__}: {error}"
        ) from error
    return module


def _checked(name: str, module: ModuleType, where: str) -> Scenario:
    """The scenario in a module, if it has all the parts."""
    missing = [part for part in PARTS if not hasattr(module, part)]
    if missing:
        raise TwinError(f"{where!r} lacks {', '.join(missing)}: a scenario has {', '.join(PARTS)}")
    if not (
        isinstance(module.Config, type) and issubclass(module.Config, Config) and is_dataclass(module.Config)
    ):
        raise TwinError(f"{where!r}: Config must be a frozen dataclass that inherits scenarios.base.Config")
    return Scenario(
        name,
        (module.__doc__ or "").strip(),
        module.Config,
        module.run,
        module.metrics,
        getattr(module, "VARIANTS", ()),
        getattr(module, "suits", lambda _: True),
        str(module.__file__),
    )

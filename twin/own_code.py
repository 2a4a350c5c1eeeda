"""Loading code that is not ours: a Python file, a module, what an installed package announces.

Whatever such code does while it is loaded ends as one sentence that names it, an `OwnCodeError`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from twin.errors import OwnCodeError
from twin.faults import is_interrupt, told_with_kind

GROUPS = {
    "irb_twin.controllers": "controller",
    "irb_twin.robots": "robot",
    "irb_twin.scenarios": "scenario",
}
"""The groups of entry points by which a package announces something, and what each of them is."""


class Announced(NamedTuple):
    """Something that an installed package announces by an entry point.

    Attributes:
        group: one of `GROUPS`.
        name: what it is to be called.
        value: where it is, as `package.module` or `package.module:Name`.
        packages: the distributions that announce this name; more than one cannot be told apart.
    """

    group: str
    name: str
    value: str
    packages: tuple[str, ...]

    @property
    def title(self) -> str:
        """What it is, in words: `controller 'gentle' of package my-laws`."""
        many = "s" if len(self.packages) > 1 else ""
        return f"{GROUPS[self.group]} {self.name!r} of package{many} {' and '.join(self.packages)}"

    def load(self) -> Any:
        """What the entry point names.

        Raises:
            OwnCodeError: it fails to load, or several packages announce the same name.
        """
        if len(self.packages) > 1:
            raise OwnCodeError(f"cannot load {self.title}: uninstall all of them but one")
        module, _, name = self.value.partition(":")
        return named_in(module_named(module.strip(), self.title), name.strip(), self.title)


@cache
def announced(group: str) -> dict[str, Announced]:
    """What installed packages announce in a group of entry points, by name, in alphabetical order."""
    found: dict[str, Announced] = {}
    for entry in sorted(metadata.entry_points(group=group), key=lambda entry: entry.name):
        package = entry.dist.name if entry.dist is not None else "unknown"
        others = found[entry.name].packages if entry.name in found else ()
        if package not in others:
            found[entry.name] = Announced(group, entry.name, entry.value, (*others, package))
    return found


def module_of_file(path: str | Path, what: str) -> ModuleType:
    """The module in a Python file, loaded once in a process unless the file has changed.

    Modules that lie beside the file can be imported by it, but hide nothing that is installed.

    Args:
        path: of the file, by custom `.py`.
        what: the file is, for messages: `controller file 'my.py'`.

    Raises:
        OwnCodeError: it cannot be read, or its code fails.
    """
    path = Path(path).resolve()
    name = f"own_file_{path.with_suffix('')}"  # dataclasses look their module up, by that name and later
    try:
        content = path.read_bytes()  # a time would not tell two versions of one instant apart
        if name in sys.modules and getattr(sys.modules[name], "__own_content__", None) == content:
            return sys.modules[name]
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None:
            raise OwnCodeError("its name does not end in .py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        _find_beside(path.parent)
        # Python's own loader would take kept byte code for a version of the same second and length.
        exec(compile(content, str(path), "exec"), module.__dict__)
        module.__dict__["__own_content__"] = content
    except BaseException as error:
        sys.modules.pop(name, None)
        if is_interrupt(error):
            raise
        raise OwnCodeError(f"cannot load {what}: {told_with_kind(error)}") from error
    return module


def module_named(name: str, what: str) -> ModuleType:
    """The module of that name, as `package.module`; also one that lies in the current folder.

    Raises:
        OwnCodeError: there is none, or its code fails.
    """
    try:
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            _find_beside(Path.cwd())
        return importlib.import_module(name)
    except BaseException as error:
        if is_interrupt(error):
            raise
        raise OwnCodeError(f"cannot load {what}: {told_with_kind(error)}") from error


def named_in(module: ModuleType, name: str, what: str) -> Any:
    """What a module calls `name`, dots included; the module itself for no name.

    Raises:
        OwnCodeError: there is nothing of that name; the message lists what the module defines.
    """
    found: Any = module
    for part in name.split(".") if name else ():
        if not hasattr(found, part):
            own = [
                key
                for key, value in vars(module).items()
                if callable(value) and getattr(value, "__module__", None) == module.__name__
            ]
            told = f"it defines {', '.join(own)}" if own else "it defines no class and no function"
            raise OwnCodeError(f"cannot load {what}: there is no {name!r} in it; {told}")
        found = getattr(found, part)
    return found


def own_files() -> tuple[str, ...]:
    """The files that `module_of_file` has loaded."""
    return tuple(str(module.__file__) for name, module in sys.modules.items() if name.startswith("own_file_"))


def _find_beside(folder: Path) -> None:
    """Have Python look for modules in a folder, after all other places."""
    if str(folder) not in sys.path and os.path.isdir(folder):
        sys.path.append(str(folder))

"""Loading code that is not ours: a Python file, a module, what an installed package announces.

Whatever such code does while it is loaded ends as one sentence that names it, an `PluginError`.
"""

import ast
import importlib
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from twin.errors import PluginError, describe_error_with_type, is_interrupt

GROUPS = {
    "irb_twin.controllers": "controller",
    "irb_twin.robots": "robot",
    "irb_twin.scenarios": "scenario",
}
"""The groups of entry points by which a package announces something, and what each of them is."""

PACKAGES = ("twin", "controllers", "scenarios", "urdf")
PROJECT = Path(__file__).resolve().parents[1]
INSTALLED = (
    *(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")),
    *(PROJECT / package for package in PACKAGES),
)
"""Folders whose modules are Python's or this project's."""


class PluginEntry(NamedTuple):
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
            PluginError: it fails to load, or several packages announce the same name.
        """
        if len(self.packages) > 1:
            raise PluginError(f"cannot load {self.title}: uninstall all of them but one")
        module, _, name = self.value.partition(":")
        return named_in(module_named(module.strip(), self.title), name.strip(), self.title)


@cache
def plugin_entries(group: str) -> dict[str, PluginEntry]:
    """What installed packages announce in a group of entry points, by name, in alphabetical order."""
    found: dict[str, PluginEntry] = {}
    for entry in sorted(metadata.entry_points(group=group), key=lambda entry: entry.name):
        package = entry.dist.name if entry.dist is not None else "unknown"
        others = found[entry.name].packages if entry.name in found else ()
        if package not in others:
            found[entry.name] = PluginEntry(group, entry.name, entry.value, (*others, package))
    return found


def plugin_robots() -> tuple[str, ...]:
    """Return the names of the robots that installed packages announce, which `twin.load` takes."""
    return tuple(plugin_entries("irb_twin.robots"))


def plugin_robot_file(name: str) -> Path:
    """Return the file of a robot that a package announces.

    Its entry point names a package, whose folder holds a `robot.toml` with its URDF, a `dh.toml`, or one
    `.urdf`.

    Raises:
        PluginError: the package does not load, or there is no robot in its folder.
    """
    entry = plugin_entries("irb_twin.robots")[name]
    found = entry.load()
    for folder in getattr(found, "__path__", ()):
        for file in ("robot.toml", "dh.toml"):
            if (path := Path(folder) / file).is_file():
                return path
        urdfs = sorted(Path(folder).glob("*.urdf"))
        if len(urdfs) == 1:
            return urdfs[0]
    raise PluginError(
        f"cannot load {entry.title}: expected {entry.value!r} to be a package with a robot.toml, a dh.toml "
        "or one .urdf in its folder"
    )


def module_of_file(path: str | Path, what: str) -> ModuleType:
    """The module in a Python file, loaded once in a process unless the file has changed.

    Modules that lie beside the file can be imported by it, but hide nothing that is installed.

    Args:
        path: of the file, by custom `.py`.
        what: the file is, for messages: `controller file 'my.py'`.

    Raises:
        PluginError: it cannot be read, or its code fails.
    """
    path = Path(path).resolve()
    name = f"own_file_{path.with_suffix('')}"  # dataclasses look their module up, by that name and later
    try:
        content = path.read_bytes()  # a time would not tell two versions of one instant apart
        if name in sys.modules and getattr(sys.modules[name], "__own_content__", None) == content:
            return sys.modules[name]
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None:
            raise PluginError("its name does not end in .py")
        module = importlib.util.module_from_spec(spec)
        require_unique_helpers([path])
        sys.modules[name] = module
        _find_beside(path.parent)
        # Python's own loader would take kept byte code for a version of the same second and length.
        exec(compile(content, str(path), "exec"), module.__dict__)
        module.__dict__["__own_content__"] = content
    except BaseException as error:
        sys.modules.pop(name, None)
        if is_interrupt(error):
            raise
        raise PluginError(f"cannot load {what}: {describe_error_with_type(error)}") from error
    return module


def module_named(name: str, what: str) -> ModuleType:
    """The module of that name, as `package.module`; also one that lies in the current folder.

    Raises:
        PluginError: there is none, or its code fails.
    """
    try:
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            _find_beside(Path.cwd())
        return importlib.import_module(name)
    except BaseException as error:
        if is_interrupt(error):
            raise
        raise PluginError(f"cannot load {what}: {describe_error_with_type(error)}") from error


def named_in(module: ModuleType, name: str, what: str) -> Any:
    """What a module calls `name`, dots included; the module itself for no name.

    Raises:
        PluginError: there is nothing of that name; the message lists what the module defines.
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
            raise PluginError(f"cannot load {what}: there is no {name!r} in it; {told}")
        found = getattr(found, part)
    return found


def plugin_files() -> tuple[str, ...]:
    """The files that `module_of_file` has loaded."""
    return tuple(str(module.__file__) for name, module in sys.modules.items() if name.startswith("own_file_"))


def is_user_file(path: Path) -> bool:
    """Whether a file is the user's code: not Python's, not this project's, and not an installed package's."""
    parts = {"site-packages", "dist-packages"}.intersection(path.parts)
    return bool(path.suffix) and not parts and not any(path.is_relative_to(folder) for folder in INSTALLED)


def user_files() -> list[Path]:
    """The user's code in this process: modules that are loaded, and those that they will import.

    A module that a function imports is loaded late, so imports are read from the source, too. Packages that
    announce something are the user's even where they are installed.
    """
    entries = [entry for group in GROUPS for entry in plugin_entries(group).values()]
    packages = {entry.value.partition(":")[0].strip().partition(".")[0] for entry in entries}
    files = set[Path]()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__dict__", {}).get("__file__")
        if isinstance(file, str) and (name.partition(".")[0] in packages or is_user_file(Path(file))):
            files.add(Path(file).resolve())
    files = {file for file in files if is_user_file(file) or packages.intersection(file.parts)}
    return sorted(file for file in files.union(*map(_closure, files)) if file.is_file())


def require_unique_helpers(files: Sequence[Path]) -> None:
    """Check that the modules beside some files can be imported by their names in one process.

    Args:
        files: of laws and scenarios.

    Raises:
        PluginError: two of them import modules of one name from two folders; Python loads one of these.
    """
    files = [file.resolve() for file in files]
    folders = [*map(Path, sys.path), *(file.parent for file in files)]
    for file in files:
        for name in sorted({name for one in (file, *_closure(file)) for name in _imports(one)}):
            wanted, first = _found_in(name, [file.parent]), _found_in(name, folders)
            if not name.startswith(".") and wanted and wanted[0] != first[0] and is_user_file(first[0]):
                raise PluginError(
                    f"{file} imports {wanted[0]}, but {first[0]} has the same module name, of which a "
                    "process loads one: rename one, or run the files apart"
                )


def _closure(file: Path) -> set[Path]:
    """The user's files that a file imports, in its functions, too, and those that they import."""
    found, waiting = set[Path](), [file]
    while waiting:
        one = waiting.pop()
        for name in _imports(one):
            level = len(name) - len(name.lstrip("."))
            folders = [one.parents[level - 1]] if level else [*map(Path, sys.path), file.parent]
            new = {place for place in _found_in(name, folders) if is_user_file(place)} - found
            found |= new
            waiting += new
    return found


def _found_in(name: str, folders: Sequence[Path]) -> list[Path]:
    """The files that importing a name loads, from the first of these folders that has some of them."""
    parts = name.lstrip(".").split(".")
    for folder in folders if parts[0] not in sys.stdlib_module_names or name.startswith(".") else ():
        files, here = list[Path](), folder
        for part in parts:
            here = here / part
            files += [
                file.resolve()
                for file in (here / "__init__.py", here.with_name(f"{part}.py"))
                if file.is_file()
            ][:1]
        if files:
            return files
    return []


def _imports(file: Path) -> frozenset[str]:
    """The names of all modules that a file imports, dots before relative ones; none of what is no Python."""
    with suppress(OSError, SyntaxError, ValueError):
        return _imports_in(file.read_bytes())
    return frozenset()


@lru_cache(maxsize=1000)
def _imports_in(source: bytes) -> frozenset[str]:
    names = list[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):  # what is imported from a package may be a module
            base = "." * node.level + (f"{node.module}." if node.module else "")
            names += [base + alias.name for alias in node.names]
    return frozenset(names)


def _find_beside(folder: Path) -> None:
    """Have Python look for modules in a folder, after all other places."""
    if str(folder) not in sys.path and os.path.isdir(folder):
        sys.path.append(str(folder))

"""Loading of user code: Python files, modules, and entry points of installed packages.

Any error that such code raises while it is loaded becomes a `PluginError` with a one-line message.
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

from twin.base.errors import PluginError, describe_error_with_type, is_interrupt

GROUPS = {
    "irb_twin.controllers": "controller",
    "irb_twin.robots": "robot",
    "irb_twin.scenarios": "scenario",
}
"""Groups of entry points by which a package registers plugins, and the kind of each."""

PACKAGES = ("twin", "controllers", "scenarios", "urdf")
PROJECT = Path(__file__).resolve().parents[2]
INSTALLED = (
    *(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")),
    *(PROJECT / package for package in PACKAGES),
)
"""Folders that hold modules of Python or of this project."""


class PluginEntry(NamedTuple):
    """Entry point by which installed packages register a plugin.

    Attributes:
        group: one of `GROUPS`.
        name: name of the plugin.
        value: object reference, as `package.module` or `package.module:Name`.
        packages: distributions that register this name; more than one is ambiguous.
    """

    group: str
    name: str
    value: str
    packages: tuple[str, ...]

    @property
    def title(self) -> str:
        """Description for messages: `controller 'gentle' of package my-laws`."""
        many = "s" if len(self.packages) > 1 else ""
        return f"{GROUPS[self.group]} {self.name!r} of package{many} {' and '.join(self.packages)}"

    def load(self) -> Any:
        """Load the object that the entry point refers to.

        Raises:
            PluginError: loading fails, or several packages register the same name.
        """
        if len(self.packages) > 1:
            raise PluginError(f"cannot load {self.title}: uninstall all of them but one")
        module, _, name = self.value.partition(":")
        return attribute_of(load_module(module.strip(), self.title), name.strip(), self.title)


@cache
def plugin_entries(group: str) -> dict[str, PluginEntry]:
    """Return the entries of a group by name, in alphabetical order."""
    found: dict[str, PluginEntry] = {}
    for entry in sorted(metadata.entry_points(group=group), key=lambda entry: entry.name):
        package = entry.dist.name if entry.dist is not None else "unknown"
        others = found[entry.name].packages if entry.name in found else ()
        if package not in others:
            found[entry.name] = PluginEntry(group, entry.name, entry.value, (*others, package))
    return found


def plugin_robots() -> tuple[str, ...]:
    """Return the names of the robots that installed packages register; `twin.load` accepts them.

    Example:
        >>> import twin
        >>> twin.plugins.plugin_robots()  # without such packages
        ()
    """
    return tuple(plugin_entries("irb_twin.robots"))


def plugin_robot_file(name: str) -> Path:
    """Return the file of a robot that a package registers.

    Its entry point refers to a package whose folder holds a `robot.toml` with its URDF, a `dh.toml`, or a
    single `.urdf`.

    Raises:
        PluginError: the package cannot be loaded, or its folder holds no robot.
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


def load_file(path: str | Path, what: str) -> ModuleType:
    """Load a Python file as a module, once in a process unless the file has changed.

    The file can import modules from its folder.  They come last on Python's path, so that they hide no
    installed module.

    Args:
        path: path of the file, usually `.py`.
        what: description of the file for messages: `controller file 'my.py'`.

    Raises:
        PluginError: the file cannot be read, or its code fails.
    """
    path = Path(path).resolve()
    name = f"user_file_{path.with_suffix('')}"  # dataclasses look up their module by this name later
    try:
        content = path.read_bytes()  # two versions may have the same modification time
        if name in sys.modules and getattr(sys.modules[name], "__user_content__", None) == content:
            return sys.modules[name]
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None:
            raise PluginError("its name does not end in .py")
        module = importlib.util.module_from_spec(spec)
        require_unique_helpers([path])
        sys.modules[name] = module
        _append_to_path(path.parent)
        # Python's loader would reuse cached byte code of a version with the same second and length.
        exec(compile(content, str(path), "exec"), module.__dict__)
        module.__dict__["__user_content__"] = content
    except BaseException as error:
        sys.modules.pop(name, None)
        if is_interrupt(error):
            raise
        raise PluginError(f"cannot load {what}: {describe_error_with_type(error)}") from error
    return module


def load_module(name: str, what: str) -> ModuleType:
    """Import a module by its dotted name; the current folder is searched last.

    Raises:
        PluginError: there is no such module, or its code fails.
    """
    try:
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            _append_to_path(Path.cwd())
        return importlib.import_module(name)
    except BaseException as error:
        if is_interrupt(error):
            raise
        raise PluginError(f"cannot load {what}: {describe_error_with_type(error)}") from error


def attribute_of(module: ModuleType, name: str, what: str) -> Any:
    """Return the attribute of a module with this dotted name, or the module for an empty name.

    Raises:
        PluginError: there is no such attribute; the message lists what the module defines.
    """
    found: Any = module
    for part in name.split(".") if name else ():
        if not hasattr(found, part):
            defined = [
                key
                for key, value in vars(module).items()
                if callable(value) and getattr(value, "__module__", None) == module.__name__
            ]
            content = f"it defines {', '.join(defined)}" if defined else "it defines no class and no function"
            raise PluginError(f"cannot load {what}: there is no {name!r} in it; {content}")
        found = getattr(found, part)
    return found


def plugin_files() -> tuple[str, ...]:
    """Return the paths of the files that `load_file` has loaded."""
    return tuple(
        str(module.__file__) for name, module in sys.modules.items() if name.startswith("user_file_")
    )


def is_user_file(path: Path) -> bool:
    """Return whether a file is the user's: not Python's, not this project's, not an installed package's."""
    parts = {"site-packages", "dist-packages"}.intersection(path.parts)
    return bool(path.suffix) and not parts and not any(path.is_relative_to(folder) for folder in INSTALLED)


def user_files() -> list[Path]:
    """Return the user's source files in this process: loaded modules, and modules that they import later.

    A module that is imported within a function is loaded late, so imports are also read from the source.
    Packages that register plugins count as the user's even where they are installed.
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
        files: files of controllers and scenarios.

    Raises:
        PluginError: two files import different modules of the same name; a process can load only one of them.
    """
    files = [file.resolve() for file in files]
    folders = [*map(Path, sys.path), *(file.parent for file in files)]
    for file in files:
        for name in sorted({name for one in (file, *_closure(file)) for name in _imports(one)}):
            local, first = _files_of_import(name, [file.parent]), _files_of_import(name, folders)
            if not name.startswith(".") and local and local[0] != first[0] and is_user_file(first[0]):
                raise PluginError(
                    f"{file} imports {local[0]}, but {first[0]} has the same module name, and a process "
                    "loads only one of them: rename one, or run the files apart"
                )


def _closure(file: Path) -> set[Path]:
    """Return the user's files that a file imports, directly or indirectly, also within functions."""
    found, waiting = set[Path](), [file]
    while waiting:
        one = waiting.pop()
        for name in _imports(one):
            level = len(name) - len(name.lstrip("."))
            folders = [one.parents[level - 1]] if level else [*map(Path, sys.path), file.parent]
            new = {place for place in _files_of_import(name, folders) if is_user_file(place)} - found
            found |= new
            waiting += new
    return found


def _files_of_import(name: str, folders: Sequence[Path]) -> list[Path]:
    """Return the files that importing a name loads, from the first of these folders that contains it."""
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
    """Return the names of the modules that a file imports, relative ones with dots; none for other files."""
    with suppress(OSError, SyntaxError, ValueError):
        return _imports_in(file.read_bytes())
    return frozenset()


@lru_cache(maxsize=1000)
def _imports_in(source: bytes) -> frozenset[str]:
    names = list[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):  # a name imported from a package may be a module
            base = "." * node.level + (f"{node.module}." if node.module else "")
            names += [base + alias.name for alias in node.names]
    return frozenset(names)


def _append_to_path(folder: Path) -> None:
    """Append a folder to Python's module search path."""
    if str(folder) not in sys.path and os.path.isdir(folder):
        sys.path.append(str(folder))

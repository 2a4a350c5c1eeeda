"""Cache of compiled functions, so that the next process need not compile them again.

The machine code of a function is a file in a folder of the user's cache, whose name contains a digest of
everything that the machine code depends on, so that its content is never out of date.  Damaged or foreign
machine code does anything.  So each file ends with its SHA-256 sum, and a file without its sum, or one that
other users could have written, is removed and generated again.

Processes do not wait for each other, since every file appears complete or not at all.  A file that two
processes write at the same moment is at worst generated twice.

Whoever can write such a file has code run by its reader.  So a folder is used only if it belongs to the user
and nobody else can write to it, as OpenSSH requires of keys.

Where the cache cannot be written, or other users can write it, functions are compiled without being stored.

A program may show its user that it compiles: `on_compiling`.  By default nothing is shown.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import pickle
import shlex
import shutil
import stat
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from twin.base.atomic_file import atomic_write

PACKAGES = ("twin", "controllers")
"""Packages of this project, whose functions are cached."""

COMPILED = ("rotations", "multibody", "robot/drives", "kinematics", "dynamics", "trajectories", "control")
"""Rooms of `twin.physics` with functions that compiled functions of other rooms call."""

COUNTS, NO_COUNTS = {"_nrt": True}, {"_nrt": False}
"""Options of numba: count references to arrays, as by default, or not, in a function that makes no array.

Counting takes two thirds of the time of a small function such as `add_rotors_and_friction`, see numba's issue
2345.  The default is stated, because a function would otherwise be compiled with the option of its caller.
"""

on_compiling: Callable[[bool], object] = bool
"""Function that a program may set: it is called with true before numba compiles a function of this project,
and with false afterwards, in any thread.  Loading from the cache does not count.  `bool` does nothing."""

UNUSED_FOR = 30 * 86400.0
"""Time without use after which a folder is removed, in [s]."""

SUM_SIZE = hashlib.sha256().digest_size


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function with numba; the compiled function releases the GIL.

    The machine code of a function of this project is cached until a file of its folder or of the rooms
    `COMPILED` changes.  The function may therefore use any function and constant of these folders.

    Args:
        function: function to compile.
        options: options of `numba.njit`.
    """
    options = COUNTS | options | {"nogil": True}
    if function.__module__.partition(".")[0] not in PACKAGES:
        return _compiled(function, None, options)
    sources = source_digest(Path(function.__code__.co_filename).parent)
    digest = hashlib.sha256(sources + repr(sorted(options.items())).encode())
    return _compiled(function, _folder(f"irb_twin_{digest.hexdigest()[:16]}"), options)


@lru_cache
def source_digest(folder: Path) -> bytes:
    """Return a digest of the Python files of a folder and of the rooms `COMPILED`."""
    digest = hashlib.sha256()
    rooms = [Path(__file__).parents[1] / "physics" / room for room in COMPILED]
    for file in sorted({*folder.glob("*.py"), *(file for room in rooms for file in room.rglob("*.py"))}):
        digest.update(file.read_bytes())
    return digest.digest()


def cached_njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function of a generated module, see `imported`, and caches it.

    Args:
        options: options of `numba.njit`.
    """
    return lambda function: _compiled(function, _folder(function.__module__), COUNTS | options)


def _compiled(function: Callable[..., Any], folder: Path | None, options: dict[str, Any]) -> Any:
    """Compile a function with numba and store its machine code in a folder, if there is one."""
    from numba import njit

    _listen()
    dispatcher: Any = njit(**options)(function)
    if folder is not None and hasattr(dispatcher, "enable_caching"):  # not with NUMBA_DISABLE_JIT
        dispatcher._cache = _function_cache()(function, folder)
    return dispatcher


@cache
def _listen() -> None:
    """Make numba report each compilation to `on_compiling`."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            package = (event.data["dispatcher"].py_func.__module__ or "").partition(".")[0]
            if package in PACKAGES or package.startswith("irb_twin_"):
                on_compiling(event.is_start)

        on_end = on_start

    event.register("numba:compile", Listener())


@cache
def _function_cache() -> Callable[[Callable[..., Any], Path], object]:
    """Return the class of a function's cache in a folder."""
    import numba
    from numba.core import caching, compiler, serialize

    class FunctionCache(caching.FunctionCache):
        """The part of numba's cache of a function that a dispatcher uses, with a file for each signature."""

        def __init__(self, function: Callable[..., Any], folder: Path) -> None:
            self._py_func, self._cache_path = function, str(folder)

        def _file(self, signature: Any, codegen: Any) -> Path | None:
            """Return the file of a signature, or `None` if it contains a function, named by its address."""
            function, key = self._py_func, repr(self._index_key(signature, codegen))
            if " at 0x" in key:
                return None
            place = (function.__module__, function.__qualname__, function.__code__.co_firstlineno)
            version = (numba.__version__, sys.implementation.cache_tag)
            digest = hashlib.sha256(repr((place, version, key)).encode()).hexdigest()
            return Path(self._cache_path, f"{function.__name__}-{digest[:32]}.nbc")

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            target_context.refresh()
            path = self._file(sig, target_context.codegen())
            if path is None or (content := read(path)) is None:
                return None
            return compiler.CompileResult._rebuild(target_context, *pickle.loads(content))

        def save_overload(self, sig: Any, data: Any) -> None:
            path = self._file(sig, data.codegen)
            if path is not None and not data.library.has_dynamic_globals:  # addresses of this process
                write(path, serialize.dumps(data._reduce()))

    return FunctionCache


def prepare() -> None:
    """Load what numba otherwise loads with the first function that a process calls, in 0.3 s."""
    from numba.core import registry

    target: Any = registry.cpu_target
    target.typing_context.refresh()
    target.target_context.refresh()


def imported(name: str, text: Callable[[], str]) -> ModuleType:
    """Import the generated module `name`.  Generate it from `text` first if the cache has no intact copy."""
    if name not in sys.modules:
        module = ModuleType(name)
        exec(_code(name, text), vars(module))
        sys.modules[name] = module
    return sys.modules[name]


def _code(name: str, text: Callable[[], str]) -> CodeType:
    """Return the code of a generated module; reading it takes a hundredth of the time of generating it."""
    folder = _folder(name)
    if folder is None:
        return compile(text(), f"<{name}>", "exec")
    path = folder / f"{name}.{sys.implementation.cache_tag}.code"
    if (stored := read(path)) is not None:
        return marshal.loads(stored)
    code = compile(text(), f"<{name}>", "exec")
    write(path, marshal.dumps(code))
    return code


def read(path: Path) -> bytes | None:
    """Return the content of a file, or `None` if it is missing.

    A file that differs from its sum, or that other users could have written, is removed.
    """
    with suppress(OSError):
        stored = path.read_bytes()
        content = stored[:-SUM_SIZE]
        if not _fault(path) and stored[-SUM_SIZE:] == hashlib.sha256(content).digest():
            return content
        path.unlink()
    return None


def write(path: Path, content: bytes) -> None:
    """Write a file with its sum atomically, if it can be written."""
    with suppress(OSError), atomic_write(path) as draft:
        draft.write_bytes(content + hashlib.sha256(content).digest())
        draft.chmod(0o600)


@cache  # unbounded: a process uses few folders
def _folder(name: str) -> Path | None:
    """Return the cache folder of that name, marked as used now, or `None` if other users can write to it.

    Unused folders are removed if it is new.
    """
    from platformdirs import user_cache_path

    given = user_cache_path("irb-twin")
    # A link above is the user's choice. It is followed once, so that it cannot change after the check.
    folder = Path(os.path.realpath(given.parent), given.name, "kernels", name)
    is_new = not os.path.lexists(folder)
    if not _belongs_to_user(folder):
        return None
    if is_new:
        _remove_unused(folder.parent)
    with suppress(OSError):  # it may be readable only
        os.utime(folder)
    return folder


def _belongs_to_user(folder: Path) -> bool:
    """Make a folder if it is missing; return whether only the user can write to it.

    No part of its path may be a symbolic link.  A fault is a warning.
    """
    folders, home = [folder, *folder.parents], Path(os.path.realpath(os.path.expanduser("~")))
    if home in folders:  # what is above it is the system's
        del folders[folders.index(home) + 1 :]
    fault = ""
    try:
        for path in reversed(folders):
            if not os.path.lexists(path):
                path.mkdir(0o700, exist_ok=True)
            if fault := _fault(path, above=path != folder):
                break
    except OSError as error:  # the folder cannot be made or read
        fault = f"{error.filename}: {error.strerror}; set XDG_CACHE_HOME to a folder of your own"
    if fault:
        warnings.warn(f"compiled functions are not cached: {fault}", stacklevel=2)
    return not fault


def _fault(path: Path, *, above: bool = False) -> str:
    """Return why other users could have written to a file or folder, or "".

    A folder `above` may belong to root, and may be sticky: in /tmp nobody can rename what is the user's.  On
    Windows, where the folders of a user are private, nothing is checked.
    """
    if not hasattr(os, "geteuid"):
        return ""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return f"{path} is a symbolic link, expected a folder or file"
    if status.st_uid != os.geteuid() and not (above and status.st_uid == 0):
        return f"{path} belongs to another user; set XDG_CACHE_HOME to a folder of your own"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not (above and status.st_mode & stat.S_ISVTX):
        options = "-R go-w" if "irb-twin" in path.parts else "go-w"
        return f"other users can write to {path}; run: chmod {options} {shlex.quote(str(path))}"
    return ""


def _remove_unused(parent: Path) -> None:
    """Remove entries that were unused for `UNUSED_FOR`; a process that still needs one compiles again."""
    with suppress(OSError):
        for entry in list(parent.iterdir()):
            if entry.stat().st_mtime < time.time() - UNUSED_FOR:
                if entry.is_dir():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)

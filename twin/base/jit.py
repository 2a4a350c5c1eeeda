"""Cache of compiled functions, so that the next process need not compile them again.

numba stores the machine code of a function in a folder.  This module chooses one in the user's cache whose
name contains a digest of everything that the machine code depends on, so that its content is never out of
date.  A file may be damaged or foreign, and such machine code does anything; `verified_cache.py` checks for
that.

Where the cache cannot be written, or other users can write it, functions are compiled without being stored.

A program may show its user that it compiles: `on_compiling`.  By default nothing is shown.
"""

import hashlib
import marshal
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from twin.base.verified_cache import belongs_to_user, verified_cache, write

PACKAGES = ("twin", "controllers")
"""Packages of this project, whose functions are cached."""

COMPILED = ("rotations", "multibody", "robot/drives", "kinematics", "dynamics", "trajectories", "control")
"""Rooms of `twin.physics` with functions that compiled functions of other rooms call."""

COUNTS, NO_COUNTS = {"_nrt": True}, {"_nrt": False}
"""Options of numba: count references to arrays, as by default, or not, in a function that makes no array.

Counting takes two thirds of the time of a small function such as `add_rotors_and_friction`, see numba's issue
2345.  The default is stated, because a function would otherwise be compiled with the option of its caller.
"""

_CACHE_DIR_LOCK = threading.Lock()

on_compiling: Callable[[bool], object] = bool
"""Function that a program may set: it is called with true before numba compiles a function of this project,
and with false afterwards, in any thread.  Loading from the cache does not count.  `bool` does nothing."""

UNUSED_FOR = 30 * 86400.0
"""Time without use after which a folder is removed, in [s]."""


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function with numba; the compiled function releases the GIL.

    The machine code of a function of this project is cached until a file of its folder or of the rooms
    `COMPILED` changes.  The function may therefore use any function and constant of these folders.

    Args:
        function: function to compile.
        options: options of `numba.njit`.
    """
    from numba import config as numba_config
    from numba import njit
    from numba.extending import is_jitted

    config: Any = numba_config
    options = COUNTS | options
    package = function.__module__.partition(".")[0]
    if package not in PACKAGES:
        return njit(nogil=True, **options)(function)
    sources = source_digest(Path(function.__code__.co_filename).parent)
    digest = hashlib.sha256(sources + repr(sorted(options.items())).encode())
    folder = _folder(f"irb_twin_{digest.hexdigest()[:16]}")
    if folder is None:
        return njit(nogil=True, **options)(function)
    with _CACHE_DIR_LOCK:  # numba's cache folder is a setting of the whole process
        previous, config.CACHE_DIR = config.CACHE_DIR, str(folder)
        try:
            dispatcher = cached_njit(nogil=True, **options)(function)
        finally:
            config.CACHE_DIR = previous
    # Where that folder cannot be written numba falls back to another one, whose name has no digest.
    elsewhere = (
        is_jitted(dispatcher)
        and dispatcher.stats.cache_path
        and folder not in Path(dispatcher.stats.cache_path).parents
    )
    return njit(nogil=True, **options)(function) if elsewhere else dispatcher


@lru_cache
def source_digest(folder: Path) -> bytes:
    """Return a digest of the Python files of a folder and of the rooms `COMPILED`."""
    digest = hashlib.sha256()
    rooms = [Path(__file__).parents[1] / "physics" / room for room in COMPILED]
    for file in sorted({*folder.glob("*.py"), *(file for room in rooms for file in room.rglob("*.py"))}):
        digest.update(file.read_bytes())
    return digest.digest()


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


def cached_njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles with `numba.njit` and stores the machine code beside the source file.

    Args:
        options: options of `numba.njit`.
    """
    from numba import njit
    from numba.extending import is_jitted

    _listen()
    options = COUNTS | options

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            dispatcher = njit(cache=True, **options)(function)
        except (RuntimeError, OSError):  # the file does not exist, or its folder cannot be read or written
            return njit(**options)(function)
        if not is_jitted(dispatcher):
            return dispatcher
        return dispatcher if _verify_cache(dispatcher) else njit(**options)(function)

    return decorate


def _verify_cache(dispatcher: Any) -> bool:
    """Verify the cache of a function and register each file that numba adds to it; return whether it is own.

    numba makes the folder as the umask says, which may let a group write.
    """
    folder, numba_compile = Path(dispatcher.stats.cache_path), dispatcher.compile
    with suppress(OSError):
        if not folder.is_symlink() and not any(folder.iterdir()):
            folder.chmod(0o700)
    if not belongs_to_user(folder):
        return False
    files = verified_cache(folder)

    def compile_and_add(signature: Any) -> Any:
        try:
            return numba_compile(signature)
        except OSError:  # storing failed, for example on a full disk; the next call finds it compiled
            return numba_compile(signature)
        finally:
            files.add_new()

    dispatcher.compile = compile_and_add
    return True


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
        return compile(text(), f"<{name}>", "exec")  # numba caches no function of a file that does not exist
    files = verified_cache(folder)
    path, code_path = folder / f"{name}.py", folder / f"{name}.{sys.implementation.cache_tag}.code"
    stored = files.read(code_path.name)
    if stored is not None and files.read(path.name) is not None:
        return marshal.loads(stored)
    source = text()
    code = compile(source, path, "exec")
    write(path, source.encode())
    write(code_path, marshal.dumps(code))
    files.add_new()
    return code


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
    if not belongs_to_user(folder):
        return None
    if is_new:
        _remove_unused(folder.parent)
    with suppress(OSError):  # it may be readable only
        os.utime(folder)
    return folder


def _remove_unused(parent: Path) -> None:
    """Remove entries that were unused for `UNUSED_FOR`; a process that still needs one compiles again."""
    with suppress(OSError):
        for entry in list(parent.iterdir()):
            if entry.stat().st_mtime < time.time() - UNUSED_FOR:
                if entry.is_dir():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)

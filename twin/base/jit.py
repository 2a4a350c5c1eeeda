"""Cache of compiled functions, so that the next process need not compile them again.

numba stores the machine code of a function in a folder.  This module chooses one in the user's cache whose
name contains a digest of everything that the machine code depends on, so that its content is never out of
date.  A file may be damaged or foreign, and such machine code does anything, so only intact files of this
user are loaded: a folder has a list of the SHA-256 sums of its files.

A process checks a folder once, before it uses any file in it.  It removes files that are not listed or differ
from their sums; all of them can be generated again.  It then lists the files that it or numba adds.
Processes do not wait for each other, since every file appears complete or not at all.  A file that two
processes write at the same moment, or whose writer is killed before listing it, is at worst generated once
more.

Whoever can write such a file has code run by its reader.  So a folder is used only if it and its files belong
to the user and nobody else can write them, as OpenSSH requires of keys.

Where the cache cannot be written, or other users can write it, functions are compiled without being stored.

A program may show its user that it compiles: `on_compiling`.  By default nothing is shown.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import shlex
import shutil
import stat
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from twin.base.atomic_file import atomic_write

KINDS = (".nbi", ".nbc", ".py", ".code")
"""Suffixes of cached files: numba's machine code and index, generated modules and their byte code."""

LIST = "SHA256SUMS"
ABANDONED_AFTER = 86400.0
"""Age after which a draft is considered abandoned, in [s]."""

_faults: list[str] = []
"""Faults of folders that this process found; the first one was shown."""


def belongs_to_user(folder: Path) -> bool:
    """Make a folder if it is missing; return whether only the user can write to it and to its listed files.

    No part of its path may be a symbolic link.  The first fault that a process finds is a warning.  On
    Windows, where the folders of a user are private, nothing is checked.
    """
    if not hasattr(os, "geteuid"):
        return True
    folders, home = [folder, *folder.parents], Path(os.path.realpath(os.path.expanduser("~")))
    if home in folders:  # what is above it is the system's
        del folders[folders.index(home) + 1 :]
    try:
        for path in reversed(folders):
            if not os.path.lexists(path):
                path.mkdir(0o700, exist_ok=True)
            if fault := _fault(path, above=path != folder):
                break
        else:
            files = [folder / LIST] if os.path.lexists(folder / LIST) else []
            files += [folder / name for name in _sums(folder) if os.path.lexists(folder / name)]
            fault = next(filter(None, map(_fault, files)), "")
    except OSError:  # the folder cannot be made or read
        return False
    if fault and not _faults:
        warnings.warn(f"compiled functions are not cached: {fault}", stacklevel=2)
    _faults.extend([fault] if fault else [])
    return not fault


def _fault(path: Path, *, above: bool = False) -> str:
    """Return why other users could have written to a file or folder, or "".

    A folder `above` may belong to root, and may be sticky: in /tmp nobody can rename what is the user's.
    """
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return f"{path} is a symbolic link, expected a folder or file"
    if status.st_uid != os.geteuid() and not (above and status.st_uid == 0):
        return f"{path} belongs to another user; set XDG_CACHE_HOME to a folder of your own"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not (above and status.st_mode & stat.S_ISVTX):
        options = "-R go-w" if "irb-twin" in path.parts else "go-w"
        return f"other users can write to {path}; run: chmod {options} {shlex.quote(str(path))}"
    return ""


@cache  # unbounded: a process uses few folders
def verified_cache(folder: Path) -> VerifiedCache:
    """Return the cache in a folder, verified when this process first requests it."""
    return VerifiedCache(folder)


class VerifiedCache:
    """Files of a folder that match their checksums; the others are removed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._adding = threading.Lock()
        self._known: dict[str, int] = {}
        present, sums = self._present(), _sums(folder)
        for name, inode in present.items():
            if sums.get(name) == self._sum(name):
                self._known[name] = inode
            else:
                with suppress(OSError):
                    (folder / name).unlink()
        self._remove_drafts()

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or `None` if it is missing or was not intact."""
        if name in self._known:
            with suppress(OSError):
                return (self._folder / name).read_bytes()
        return None

    def add_new(self) -> None:
        """List the files that were written since the last call, if the list can be written."""
        with self._adding:
            present = self._present()
            # A file that is replaced gets a new inode; a file that is damaged in place does not.
            new = [name for name, inode in present.items() if self._known.get(name) != inode]
            if new:
                sums = {name: value for name, value in _sums(self._folder).items() if name in present}
                sums |= {name: self._sum(name) for name in new}
                for name in new:  # numba writes them as the umask says, which may let a group write
                    with suppress(OSError):
                        (self._folder / name).chmod(0o600)
                lines = [f"{value}  {name}\n" for name, value in sorted(sums.items())]
                if write(self._folder / LIST, "".join(lines).encode()):
                    self._known = present

    def _present(self) -> dict[str, int]:
        """Return the inode numbers of the files by name."""
        with suppress(OSError), os.scandir(self._folder) as entries:
            files = [entry for entry in entries if entry.name.endswith(KINDS)]
            return {entry.name: entry.inode() for entry in files if not entry.name.startswith(".")}
        return {}

    def _sum(self, name: str) -> str:
        """Return the checksum of a file, or a text that matches no checksum if it cannot be read."""
        with suppress(OSError):
            return hashlib.sha256((self._folder / name).read_bytes()).hexdigest()
        return f"unread {time.time_ns()}"

    def _remove_drafts(self) -> None:
        """Remove drafts that killed processes left behind."""
        for path in (*self._folder.glob(".*.draft*"), *self._folder.glob("*.tmp.*")):
            with suppress(OSError):
                if path.stat().st_mtime < time.time() - ABANDONED_AFTER:
                    path.unlink()


def _sums(folder: Path) -> dict[str, str]:
    """Return the listed checksums by name; the list has the format of `sha256sum`."""
    with suppress(OSError):
        lines = (folder / LIST).read_text(encoding="utf-8", errors="replace").splitlines()
        return {name: value for value, _, name in (line.partition("  ") for line in lines)}
    return {}


def write(path: Path, content: bytes) -> bool:
    """Write a file atomically, and return whether that succeeded."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as draft:
            draft.write_bytes(content)
            draft.chmod(0o600)
    except OSError:
        return False
    return True


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

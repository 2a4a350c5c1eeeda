"""Cache of files that are used only if they are intact: a folder has a list of their SHA-256 sums.

A process checks a folder once, before it uses any file in it.  It removes files that are not listed or differ
from their sums; all of them can be generated again.  It then lists the files that it or numba adds.
Processes do not wait for each other, since every file appears complete or not at all.  A file that two
processes write at the same moment, or whose writer is killed before listing it, is at worst generated once
more.

Whoever can write such a file has code run by its reader.  So a folder is used only if it and its files belong
to the user and nobody else can write them, as OpenSSH requires of keys.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
import threading
import time
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

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

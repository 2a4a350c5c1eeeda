"""Cache of files that are used only if they are intact: a folder has a list of their SHA-256 sums.

A process checks a folder once, before it uses any file in it.  It removes files that are not listed or differ
from their sums; all of them can be generated again.  It then lists the files that it or numba adds.
Processes do not wait for each other, since every file appears complete or not at all.  A file that two
processes write at the same moment, or whose writer is killed before listing it, is at worst generated once
more.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from twin.atomic_file import atomic_write

KINDS = (".nbi", ".nbc", ".py", ".code")
"""Suffixes of cached files: numba's machine code and index, generated modules and their byte code."""

LIST = "SHA256SUMS"
ABANDONED_AFTER = 86400.0
"""Age after which a draft is considered abandoned, in [s]."""


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
        present, sums = self._present(), self._sums()
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
                sums = {name: value for name, value in self._sums().items() if name in present}
                sums |= {name: self._sum(name) for name in new}
                lines = [f"{value}  {name}\n" for name, value in sorted(sums.items())]
                if write(self._folder / LIST, "".join(lines).encode()):
                    self._known = present

    def _present(self) -> dict[str, int]:
        """Return the inode numbers of the files by name."""
        with suppress(OSError), os.scandir(self._folder) as entries:
            files = [entry for entry in entries if entry.name.endswith(KINDS)]
            return {entry.name: entry.inode() for entry in files if not entry.name.startswith(".")}
        return {}

    def _sums(self) -> dict[str, str]:
        """Return the listed checksums by name; the list has the format of `sha256sum`."""
        with suppress(OSError):
            lines = (self._folder / LIST).read_text(encoding="utf-8", errors="replace").splitlines()
            return {name: value for value, _, name in (line.partition("  ") for line in lines)}
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


def write(path: Path, content: bytes) -> bool:
    """Write a file atomically, and return whether that succeeded."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as draft:
            draft.write_bytes(content)
    except OSError:
        return False
    return True

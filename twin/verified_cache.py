"""Files that are used only as they were written: a folder has a list of their SHA-256 sums.

A process checks a folder once, before it uses anything there, and removes what is not on the list or differs
from it; all of it can be made anew.  It adds to the list what it, or numba, writes.  Processes do not wait
for each other: every file appears whole or not at all.  What two of them write at the same moment, or one
that is killed before it has written the list, is missing there at worst, and so made once more.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from twin.atomic_file import drafted

KINDS = (".nbi", ".nbc", ".py", ".code")
"""Machine code and its index, as numba names them; modules and their compiled code."""

LIST = "SHA256SUMS"
LEFT_AFTER = 86400.0
"""A draft that is older, in [s], is nobody's any more."""


@cache  # as many as a process uses
def verified_cache(folder: Path) -> VerifiedCache:
    """The files of a folder, checked when this process first asks."""
    return VerifiedCache(folder)


class VerifiedCache:
    """The files of a folder that are as they were written; the others are removed."""

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
        """The content of a file; nothing if it is not there, or not as it was written."""
        if name in self._known:
            with suppress(OSError):
                return (self._folder / name).read_bytes()
        return None

    def add_new(self) -> None:
        """Put on the list what has been written since this was last done; where it can be written."""
        with self._adding:
            present = self._present()
            # A file that is written again is another one under the same name, one that is damaged is not.
            new = [name for name, inode in present.items() if self._known.get(name) != inode]
            if new:
                sums = {name: value for name, value in self._sums().items() if name in present}
                sums |= {name: self._sum(name) for name in new}
                lines = [f"{value}  {name}\n" for name, value in sorted(sums.items())]
                if write(self._folder / LIST, "".join(lines).encode()):
                    self._known = present

    def _present(self) -> dict[str, int]:
        """The names of the files, and their numbers in the file system."""
        with suppress(OSError), os.scandir(self._folder) as entries:
            files = [entry for entry in entries if entry.name.endswith(KINDS)]
            return {entry.name: entry.inode() for entry in files if not entry.name.startswith(".")}
        return {}

    def _sums(self) -> dict[str, str]:
        """The list, as `sha256sum` writes it."""
        with suppress(OSError):
            lines = (self._folder / LIST).read_text(encoding="utf-8", errors="replace").splitlines()
            return {name: value for value, _, name in (line.partition("  ") for line in lines)}
        return {}

    def _sum(self, name: str) -> str:
        """The sum of a file; what is no sum at all if it cannot be read."""
        with suppress(OSError):
            return hashlib.sha256((self._folder / name).read_bytes()).hexdigest()
        return f"unread {time.time_ns()}"

    def _remove_drafts(self) -> None:
        """Remove what killed processes left."""
        for path in (*self._folder.glob(".*.draft*"), *self._folder.glob("*.tmp.*")):
            with suppress(OSError):
                if path.stat().st_mtime < time.time() - LEFT_AFTER:
                    path.unlink()


def write(path: Path, content: bytes) -> bool:
    """Write a file so that another process sees the whole of it or nothing; false where that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with drafted(path) as draft:
            draft.write_bytes(content)
    except OSError:
        return False
    return True

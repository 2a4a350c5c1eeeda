"""Atomic writing of files: a file appears complete or not at all.

A file is written as a draft in its destination folder and renamed when it is complete.  The previous version
stays in place until then, also after an error.  A process that is killed at once leaves a hidden file
`.….draft…`; a process that ends in an orderly manner calls `discard_drafts` first.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

_drafts: set[Path] = set()
_lock = Lock()  # held while a draft is created or renamed


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Yield the path of a draft, which is renamed to `path` if the block completes without an exception.

    A symbolic link is followed, and the file behind it is replaced.  A new file has default permissions; a
    replacement has those of the file it replaces.  A device or pipe is written directly.  So is the draft of
    an enclosing block.

    Raises:
        OSError: `path` cannot be written, for example because its folder is read-only or the disk is full.
    """
    target = Path(os.path.realpath(path))
    if target in _drafts or (target.exists() and not target.is_file()):
        yield target
        return
    draft = target.with_name(f".{os.urandom(6).hex()}.draft{target.suffix}")
    try:
        with _lock:
            _drafts.add(draft)
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        if target.exists():
            draft.chmod(stat.S_IMODE(target.stat().st_mode))
        yield draft
        _flush_to_disk(draft)
        with _lock:
            os.replace(draft, target)
    except OSError as error:
        if error.filename in (None, draft, str(draft)):
            error.filename = str(path)
            del error.filename2  # of a rename; None would be shown
        raise
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        _drafts.discard(draft)


def _flush_to_disk(file: Path) -> None:
    """Flush a file to the disk, so that it is complete even after a power failure."""
    handle = os.open(file, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def discard_drafts() -> None:
    """Remove every unfinished draft and block new ones, for a process that is about to end."""
    _lock.acquire(timeout=0.5)  # never released, so that no draft can be created or renamed afterwards
    for draft in list(_drafts):
        with suppress(OSError):
            draft.unlink()

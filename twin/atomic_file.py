"""Files that appear whole or not at all.

A file is written as a draft in the folder where it shall be, and takes its name when it is complete: what
had the name before stays good until then, whatever goes wrong.  A process that is killed at once leaves a
hidden file `.….draft…`; one that can still act calls `abandon` first.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

_drafts: set[Path] = set()
_changing = Lock()  # drafts begin and take their names under it


@contextmanager
def drafted(path: str | Path) -> Iterator[Path]:
    """Give the path of a draft to write, which becomes the file `path` if the block ends well.

    A link is followed, and the file behind it replaced.  A new file gets the permissions of any new file, a
    replaced one keeps its own.  What is neither a file nor nothing, as a device, is written as it is; so is
    the draft of an outer block.

    Raises:
        OSError: of `path`: its folder cannot be written, the disk is full, and so on.
    """
    place = Path(os.path.realpath(path))
    if place in _drafts or (place.exists() and not place.is_file()):
        yield place
        return
    draft = place.with_name(f".{os.urandom(6).hex()}.draft{place.suffix}")
    try:
        with _changing:
            _drafts.add(draft)
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        if place.exists():
            draft.chmod(stat.S_IMODE(place.stat().st_mode))
        yield draft
        _to_the_disk(draft)
        with _changing:
            os.replace(draft, place)
    except OSError as error:
        if error.filename in (None, draft, str(draft)):
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        _drafts.discard(draft)


def _to_the_disk(file: Path) -> None:
    """Have the system write a file out, so that not even a power failure leaves half of it."""
    handle = os.open(file, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def abandon() -> None:
    """Remove every draft under way, and let none be begun or finished: for a process about to end."""
    _changing.acquire(timeout=0.5)  # and never released
    for draft in list(_drafts):
        with suppress(OSError):
            draft.unlink()

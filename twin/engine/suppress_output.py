"""Silence for a library that prints from C: the console belongs to the command line."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_silenced: dict[int, tuple[int, int]] = {}
"""For each stream that leads nowhere now: a copy of where it led before, and how many want it silent."""


@contextmanager
def suppress_output(*, errors: bool = True, pending: bool = False) -> Iterator[None]:
    """Send what is printed inside, Python's or C's, nowhere; an exception passes through.

    Works on file descriptors, which are the whole process's, so keep it short.  Threads may be inside at the
    same time, and it may be nested: the last one out opens the streams again.  On Windows it does nothing.

    Args:
        errors: silence standard error too.
        pending: silence also what C has printed before and not yet written out.
    """
    streams = [1, 2][: 1 + errors] if os.name == "posix" else []
    closed = [stream for stream in streams if _close(stream, pending)]
    try:
        yield
    finally:
        for stream in closed:
            _open(stream)


def _close(stream: int, pending: bool) -> bool:
    """Lead a stream nowhere; false where it leads nowhere already, in a process without a console."""
    with _lock:
        if stream in _silenced:
            copy, count = _silenced[stream]
            _silenced[stream] = copy, count + 1
            return True
        libc = ctypes.CDLL(None)
        flush(None if pending else libc)
        try:
            copy = os.dup(stream)
        except OSError:
            return False
        _silenced[stream] = copy, 1
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream)
        os.close(nowhere)
        libc.fflush(None)
        return True


def _open(stream: int) -> None:
    """Lead a stream back, unless others want it silent still."""
    with _lock:
        copy, count = _silenced[stream]
        if count > 1:
            _silenced[stream] = copy, count - 1
            return
        flush(ctypes.CDLL(None))
        del _silenced[stream]
        os.dup2(copy, stream)
        os.close(copy)


def flush(libc: ctypes.CDLL | None) -> None:
    """Empty the buffers of Python, and of C if its library is given: no line lands on the wrong side."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    if libc is not None:
        libc.fflush(None)

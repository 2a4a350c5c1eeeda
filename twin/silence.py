"""Silence for a library that prints from C: the console belongs to the command line."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def silence(*, errors: bool = True) -> Iterator[None]:
    """Send what is printed inside, Python's or C's, nowhere; an exception passes through.

    Works on file descriptors, which are the whole process's, so keep it short.  On Windows it does nothing.

    Args:
        errors: silence standard error too.
    """
    if os.name != "posix":
        yield
        return
    libc = ctypes.CDLL(None)
    flush(libc)
    try:
        kept = [(stream, os.dup(stream)) for stream in ((1, 2) if errors else (1,))]
    except OSError:  # a process without a console
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for stream, _ in kept:
            os.dup2(nowhere, stream)
        yield
    finally:
        flush(libc)
        for stream, copy in kept:
            os.dup2(copy, stream)
            os.close(copy)
        os.close(nowhere)


def flush(libc: ctypes.CDLL) -> None:
    """Empty the buffers of both languages, so that no line lands on the wrong side."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    libc.fflush(None)

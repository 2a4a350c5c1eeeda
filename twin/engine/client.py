"""PyBullet's server: the connection to a world of its own, and what a failed call through it means."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from twin.errors import Closed, TwinError

if TYPE_CHECKING:
    from twin.engine.window.x11_window import WindowWatch

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


with suppress_output():  # it announces its build on the console
    import pybullet
    from pybullet_utils.bullet_client import BulletClient

CLOSED: Any = Closed("the simulation is closed already")
"""In the place of whatever would call a world that is closed: its number is given to the next one."""


class Client(BulletClient):
    """Physics server of one world: calls through it cannot reach another world."""

    _client = -1  # which its destructor asks for, after a failed connection too


keeping_zero: list[Client] = []
opening = threading.Lock()


def connected() -> Any:
    """A physics server without a window.

    The window's must have PyBullet's number 0, whose camera `getDebugVisualizerCamera` tells whatever it is
    asked for: until there is a window an empty world keeps that number.

    Raises:
        TwinError: it does not start.
    """
    try:
        with opening, suppress_output(errors=False):
            if (first := Client(pybullet.DIRECT))._client != 0:
                return first
            keeping_zero[:] = [first]
            return Client(pybullet.DIRECT)
    except pybullet.error as error:
        raise TwinError(f"PyBullet does not start: {error}") from error


def disconnect(client: Any, watch: WindowWatch | None = None, *, beside_window: bool = False) -> None:
    """End a physics server, and close its window, if it has one, or if it runs beside one."""
    if watch is not None and watch.lost:
        # Disconnecting, now or when collected, would wait for the drawing thread for ever.
        client._client = -1
        return
    try:
        # A window that the user closed has said so, in a buffer that a pipe empties only now.
        with suppress_output(pending=watch is not None or beside_window):
            client.disconnect()
    except pybullet.error:  # closed by the user
        client._client = -1
    if watch is not None:
        watch.close()

"""PyBullet's window on X11: availability of a display, and detection of a closed window.

In two cases Xlib ends the process at once, and the log of the run is lost: if PyBullet opens a window without
a display, and if the user closes a window from its title bar.  Then the window manager cuts PyBullet's
connection to the display.  (The escape key closes the window properly.)  On Windows and macOS closing is
always proper.
"""

import atexit
import ctypes
import os
import select
import socket
import stat
import sys
import threading
from collections.abc import Callable
from typing import Any

from twin.base.errors import NoDisplayError

LARGE = 1440, 900
"""Pixels."""


_status = [1]


def leave_with(status: int) -> None:
    """Set the exit status of the process, by default 1, after its window was closed from the title bar."""
    _status[0] = status


class WindowWatch:
    """Watch over the connection of a window; created before PyBullet opens it."""

    def __init__(self) -> None:
        self.lost = False
        self._handler: Callable[..., Any] | None = None
        self._xlib: Any = None
        self._display: int | None = None
        self._previous: int | None = None
        self._before: list[int] = []
        self._connections: list[int] = []
        self.screen = LARGE
        if sys.platform == "linux":
            self._require_display()
            self._watch()

    def _require_display(self) -> None:
        """Raise `NoDisplayError` if no display answers."""
        name = os.environ.get("DISPLAY", "")
        try:
            self._xlib = ctypes.CDLL("libX11.so.6")
        except OSError:
            raise NoDisplayError("the window needs the library libX11") from None
        self._xlib.XOpenDisplay.restype = ctypes.c_void_p
        self._xlib.XCloseDisplay.argtypes = [ctypes.c_void_p]
        # Keep this connection open: an X server without clients may restart just when PyBullet connects.
        self._display = self._xlib.XOpenDisplay(None)
        if not self._display:
            found = f"DISPLAY is {name!r} and does not answer" if name else "DISPLAY is not set"
            raise NoDisplayError(f"no display to open the window on ({found})")

        self._xlib.XDisplayWidth.argtypes = self._xlib.XDisplayHeight.argtypes = [
            ctypes.c_void_p,
            ctypes.c_int,
        ]
        self.screen = self._xlib.XDisplayWidth(self._display, 0), self._xlib.XDisplayHeight(self._display, 0)

        self._xlib.XConnectionNumber.argtypes = [ctypes.c_void_p]
        self._before = self._to_display()

    def _watch(self) -> None:
        """Redirect Xlib's report of a lost connection to this object."""

        def cut(_display: int) -> int:
            # This runs in PyBullet's drawing thread.  Xlib ends the process when it returns, so it never
            # does.
            self.lose()
            threading.Event().wait()
            return 0

        self._handler = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(cut)
        self._xlib.XSetIOErrorHandler.argtypes = [ctypes.c_void_p]
        self._xlib.XSetIOErrorHandler.restype = ctypes.c_void_p
        self._previous = self._xlib.XSetIOErrorHandler(ctypes.cast(self._handler, ctypes.c_void_p))

    def lose(self) -> None:
        """Record that PyBullet's drawing thread does not answer any more."""
        if not self.lost:
            self.lost = True
            atexit.register(_leave)

    def find_connections(self) -> None:
        """Find PyBullet's connections to the display, after it has opened its window."""
        self._connections = [fd for fd in self._to_display() if fd not in self._before]

    def look(self) -> None:
        """Detect that the display has closed PyBullet's connection before its drawing thread detects it.

        A call to PyBullet would then wait for that thread until its time-out.
        """
        if self._connections:
            poll = select.poll()
            for fd in self._connections:
                poll.register(fd, 0)  # a hang-up is always reported
            if poll.poll(0):
                self.lose()

    def _to_display(self) -> list[int]:
        """Return the file descriptors of this process that are connected to the display."""
        display = _peer(self._xlib.XConnectionNumber(self._display)) if self._display else None
        if display is None or not os.path.isdir("/proc/self/fd"):
            return []
        return [fd for fd in map(int, os.listdir("/proc/self/fd")) if _peer(fd) == display]

    def close(self) -> None:
        """Stop the watch, after PyBullet has closed its window."""
        if self._handler is not None and not self.lost:
            self._xlib.XSetIOErrorHandler(self._previous)
            self._xlib.XCloseDisplay(self._display)
            self._handler = None


def _peer(fd: int) -> Any:
    """Return the address that a socket is connected to, `None` for other files."""
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            return None
        with socket.socket(fileno=os.dup(fd)) as copy:
            return copy.getpeername() or None
    except OSError:
        return None


def _leave() -> None:
    """End the process without PyBullet's clean-up, which would wait for its drawing thread forever."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_status[0])

"""The PyBullet window on X11: is there a display to open it on, and has the user closed it.

Two things that Xlib answers by ending the process on the spot, the run's log lost: PyBullet asked for a
window without a display; and a window closed from its title bar, which the window manager does by cutting
PyBullet's connection to the display.  (The escape key closes it in order.)  On Windows and macOS closing is
always in order, and there is nothing to do here.
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

from twin.errors import NoDisplayError

LARGE = 1440, 900
"""Pixels."""


_status = [1]


def leave_with(status: int) -> None:
    """Have the process end with another status than 1 where its window was closed from the title bar."""
    _status[0] = status


class WindowWatch:
    """Watches over the window; made before PyBullet opens it."""

    def __init__(self) -> None:
        self.lost = False
        self._handler: Callable[..., Any] | None = None
        self._xlib: Any = None
        self._display: int | None = None
        self._previous: int | None = None
        self._own: list[int] = []
        self._connections: list[int] = []
        self.screen = LARGE
        if sys.platform == "linux":
            self._require_display()
            self._watch()

    def _require_display(self) -> None:
        """Raise `TwinError` where no display answers."""
        name = os.environ.get("DISPLAY", "")
        try:
            self._xlib = ctypes.CDLL("libX11.so.6")
        except OSError:
            raise NoDisplayError("the window needs the library libX11") from None
        self._xlib.XOpenDisplay.restype = ctypes.c_void_p
        self._xlib.XCloseDisplay.argtypes = [ctypes.c_void_p]
        # Kept open: an X server whose last client leaves may start afresh, just when PyBullet comes.
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
        self._own = self._to_display()

    def _watch(self) -> None:
        """Have Xlib report a cut connection here."""

        def cut(_display: int) -> int:
            # Runs in PyBullet's drawing thread.  Xlib ends the process when this returns, so it never does.
            self.lose()
            threading.Event().wait()
            return 0

        self._handler = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(cut)
        self._xlib.XSetIOErrorHandler.argtypes = [ctypes.c_void_p]
        self._xlib.XSetIOErrorHandler.restype = ctypes.c_void_p
        self._previous = self._xlib.XSetIOErrorHandler(ctypes.cast(self._handler, ctypes.c_void_p))

    def lose(self) -> None:
        """From now on PyBullet's drawing thread does not answer any more."""
        if not self.lost:
            self.lost = True
            atexit.register(_leave)

    def find_connections(self) -> None:
        """Look, after PyBullet has opened its window, which connections to the display are PyBullet's."""
        self._connections = [fd for fd in self._to_display() if fd not in self._own]

    def look(self) -> None:
        """Say that it is lost if the display has cut PyBullet off, whose drawing thread may not know yet.

        A call to PyBullet now would wait for that thread until its time is over.
        """
        if self._connections:
            poll = select.poll()
            for fd in self._connections:
                poll.register(fd, 0)  # what is asked for is whether it hung up, which is always told
            if poll.poll(0):
                self.lose()

    def _to_display(self) -> list[int]:
        """The file descriptors of this process that are connected to the display."""
        display = _peer(self._xlib.XConnectionNumber(self._display)) if self._display else None
        if display is None or not os.path.isdir("/proc/self/fd"):
            return []
        return [fd for fd in map(int, os.listdir("/proc/self/fd")) if _peer(fd) == display]

    def close(self) -> None:
        """Stop watching, after PyBullet has closed its window."""
        if self._handler is not None and not self.lost:
            self._xlib.XSetIOErrorHandler(self._previous)
            self._xlib.XCloseDisplay(self._display)
            self._handler = None


def _peer(fd: int) -> Any:
    """What a socket is connected to, `None` for other files."""
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            return None
        with socket.socket(fileno=os.dup(fd)) as copy:
            return copy.getpeername() or None
    except OSError:
        return None


def _leave() -> None:
    """End the process, at its end, past PyBullet, which would wait for its drawing thread for ever."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_status[0])

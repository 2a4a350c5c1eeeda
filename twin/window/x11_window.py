"""The PyBullet window on X11: is there a display to open it on, and has the user closed it.

Two things that Xlib answers by ending the process on the spot, the run's log lost: PyBullet asked for a
window without a display; and a window closed from its title bar, which the window manager does by cutting
PyBullet's connection to the display.  (The escape key closes it in order.)  On Windows and macOS closing is
always in order, and there is nothing to do here.
"""

from __future__ import annotations

import atexit
import ctypes
import os
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

    def _watch(self) -> None:
        """Have Xlib report a cut connection here."""

        def cut(_display: int) -> int:
            # Runs in PyBullet's drawing thread.  Xlib ends the process when this returns, so it never does.
            self.lost = True
            atexit.register(_leave)
            threading.Event().wait()
            return 0

        self._handler = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(cut)
        self._xlib.XSetIOErrorHandler.argtypes = [ctypes.c_void_p]
        self._xlib.XSetIOErrorHandler.restype = ctypes.c_void_p
        self._previous = self._xlib.XSetIOErrorHandler(ctypes.cast(self._handler, ctypes.c_void_p))

    def close(self) -> None:
        """Stop watching, after PyBullet has closed its window."""
        if self._handler is not None and not self.lost:
            self._xlib.XSetIOErrorHandler(self._previous)
            self._xlib.XCloseDisplay(self._display)
            self._handler = None


def _leave() -> None:
    """End the process, at its end, past PyBullet, which would wait for its drawing thread for ever."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_status[0])

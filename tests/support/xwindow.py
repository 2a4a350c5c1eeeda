"""X server without a screen, and input to its windows through Xlib, as from a user."""

import ctypes
import os
import re
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

ESCAPE, SPACE, UP, RIGHT = 0xFF1B, 0x20, 0xFF52, 0xFF53
KEY_PRESS, KEY_RELEASE, BUTTON_PRESS, BUTTON_RELEASE, MOTION = 2, 3, 4, 5, 6
SIZE = 1024, 768


@contextmanager
def xvfb() -> Iterator[str]:
    """Start an X server on a free display number, and yield the name of the display."""
    read, write = os.pipe()
    server = subprocess.Popen(
        # Without -noreset the server restarts after the last client and refuses new clients meanwhile.
        ["Xvfb", "-noreset", "-displayfd", str(write), "-screen", "0", f"{SIZE[0]}x{SIZE[1]}x24"],
        pass_fds=[write],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(write)
    try:
        ready, _, _ = select.select([read], [], [], 20.0)
        number = os.read(read, 16).decode().strip() if ready else ""
        if not number:
            raise RuntimeError("Xvfb does not start")
        yield f":{number}"
    finally:
        os.close(read)
        server.terminate()
        server.wait(10)


class Display:
    """Second client of a display, like a window manager."""

    def __init__(self, name: str) -> None:
        self.xlib = ctypes.CDLL("libX11.so.6")
        self.xlib.XOpenDisplay.restype = ctypes.c_void_p
        self.display = ctypes.c_void_p(self.xlib.XOpenDisplay(name.encode()))
        assert self.display.value, f"no display {name}"
        self.xlib.XDefaultRootWindow.restype = ctypes.c_ulong

    def window(self, title: str) -> int:
        """Return the top-level window whose title contains a match of `title`."""
        root, parent, count = ctypes.c_ulong(), ctypes.c_ulong(), ctypes.c_uint()
        children = ctypes.POINTER(ctypes.c_ulong)()
        top = ctypes.c_ulong(self.xlib.XDefaultRootWindow(self.display))
        self.xlib.XQueryTree(self.display, top, *(ctypes.byref(x) for x in (root, parent, children, count)))
        titles = {}
        for window in children[: count.value]:
            name = ctypes.c_char_p()
            if self.xlib.XFetchName(self.display, ctypes.c_ulong(window), ctypes.byref(name)) and name.value:
                titles[window] = name.value.decode()
        found = [window for window, name in titles.items() if re.search(title, name)]
        assert found, f"no window {title!r} among {titles}"
        return found[0]

    def screenshot(self) -> np.ndarray:
        """Return the pixels of the screen (height, width, 3), RGB values of 0 to 255."""
        root = ctypes.c_ulong(self.xlib.XDefaultRootWindow(self.display))
        self.xlib.XGetImage.restype = ctypes.POINTER(Image)
        all_planes, by_pixel = ctypes.c_ulong(0xFFFFFFFF), 2
        image = self.xlib.XGetImage(self.display, root, 0, 0, *SIZE, all_planes, by_pixel).contents
        assert (image.bytes_per_line, image.bits_per_pixel) == (4 * SIZE[0], 32)
        pixels = np.frombuffer(ctypes.string_at(image.data, 4 * SIZE[0] * SIZE[1]), dtype=np.uint8)
        return pixels.reshape(SIZE[1], SIZE[0], 4)[..., 2::-1].astype(int)

    def until(self, condition: Callable[[np.ndarray], bool], seconds: float = 20.0) -> np.ndarray:
        """Return the first screenshot that fulfils a condition and is drawn to the end: it stays the same."""
        end, image = time.monotonic() + seconds, self.screenshot()
        while time.monotonic() < end:
            before, image = image, self.screenshot()
            if condition(image) and np.array_equal(image, before):
                return image
            time.sleep(0.1)
        raise AssertionError(f"not seen within {seconds} s")

    def close_from_title_bar(self, window: int) -> None:
        """Kill the window's client, as a window manager does if it does not handle WM_DELETE_WINDOW."""
        self.xlib.XKillClient(self.display, ctypes.c_ulong(window))
        self.xlib.XSync(self.display, 0)

    def press_escape(self, window: int) -> None:
        self.press(window, ESCAPE)

    def press(self, window: int, key: int | str, kinds: tuple[int, ...] = (KEY_PRESS, KEY_RELEASE)) -> None:
        """Press and release a key, given as a character or X keysym; `kinds` selects the events to send."""
        symbol = ctypes.c_ulong(ord(key) if isinstance(key, str) else key)
        for kind in kinds:
            self._send(window, kind, kind - 1, self.xlib.XKeysymToKeycode(self.display, symbol))

    @contextmanager
    def held(self, window: int, key: int | str) -> Iterator[None]:
        """Press a key at the start of a `with` block, and release it at the end."""
        self.press(window, key, (KEY_PRESS,))
        yield
        self.press(window, key, (KEY_RELEASE,))

    def drag(self, window: int, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Drag with the left mouse button from one place of a window to another."""
        self.mouse(window, MOTION, *start)
        self.mouse(window, BUTTON_PRESS, *start)
        for place in np.linspace(start, end, 6).round().astype(int).tolist():
            self.mouse(window, MOTION, *place)
            time.sleep(0.1)
        self.mouse(window, BUTTON_RELEASE, *end)

    def mouse(self, window: int, kind: int, x: int, y: int) -> None:
        """Move the mouse, or press or release its left button; `kind` is one of the constants above."""
        masks = {BUTTON_PRESS: 1 << 2, BUTTON_RELEASE: 1 << 3, MOTION: 1 << 6}
        self._send(window, kind, masks[kind], 0 if kind == MOTION else 1, x, y)

    def _send(self, window: int, kind: int, mask: int, code: int, x: int = 0, y: int = 0) -> None:
        event = InputEvent(type=kind, send_event=1, window=window, same_screen=1, x=x, y=y, code=code)
        target = ctypes.c_ulong(window)
        self.xlib.XSendEvent(self.display, target, 1, ctypes.c_long(mask), ctypes.byref(event))
        self.xlib.XSync(self.display, 0)


class Image(ctypes.Structure):
    """The beginning of XImage."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("width", "height", "xoffset", "format")),
        ("data", ctypes.c_void_p),
        *((name, ctypes.c_int) for name in ("byte_order", "bitmap_unit", "bitmap_bit_order", "bitmap_pad")),
        *((name, ctypes.c_int) for name in ("depth", "bytes_per_line", "bits_per_pixel")),
    )


class InputEvent(ctypes.Structure):
    """XKeyEvent, XButtonEvent and XMotionEvent, padded to the size of XEvent."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("serial", ctypes.c_ulong),
        ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p),
        *((name, ctypes.c_ulong) for name in ("window", "root", "subwindow", "time")),
        *((name, ctypes.c_int) for name in ("x", "y", "x_root", "y_root")),
        ("state", ctypes.c_uint),
        ("code", ctypes.c_uint),
        ("same_screen", ctypes.c_int),
        ("padding", ctypes.c_long * 24),
    )

"""PyBullet's window: its server, and the bench that it shows.

A simulation without a window does not import this module.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from twin.base.errors import TwinError
from twin.physics.engine.client import (
    Client,
    disconnect,
    keeping_zero,
    opening,
    pybullet,
    require_engine,
    suppress_output,
)
from twin.physics.engine.window.bench import Bench, Offered, Watched
from twin.physics.engine.window.controls import Controls
from twin.physics.engine.window.x11_window import LARGE, WindowWatch


class WindowClient(Client):
    """Server of a window; it warns on the console when a drawing has to be repeated."""

    def __getattr__(self, name: str) -> Any:
        call = super().__getattr__(name)
        return partial(_silently, call) if name.startswith("addUserDebug") else call


def _silently(call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a function of PyBullet and discard its output."""
    with suppress_output(errors=False):
        return call(*arguments, **named)


def connected_window() -> tuple[Any, WindowWatch]:
    """Return the server of a new window that fits the screen, and the watch over its connection.

    Raises:
        TwinError: PyBullet is not installed, there is no display, or a window is open already.
    """
    require_engine()
    watch = WindowWatch()
    width, height = (min(large, room) for large, room in zip(LARGE, watch.screen, strict=True))
    try:
        # If it cannot open its window it ends the process, with the reason on standard error.
        with opening, suppress_output(errors=False):
            while keeping_zero:
                keeping_zero.pop().disconnect()
            client = WindowClient(pybullet.GUI, options=f"--width={width} --height={height}")
    except pybullet.error as error:
        watch.close()
        raise TwinError("one window is open already, and PyBullet allows one a process") from error
    if client._client != 0:
        disconnect(client, watch)
        raise TwinError("the window needs PyBullet's client 0, which this program uses for something else")
    watch.find_connections()
    return client, watch


def open_bench(arm: Watched, speed: float, controls: Callable[[Bench, Any], Offered] = Controls) -> Bench:
    """Return a window that shows an arm, with the given controls; see `twin.engine.window.bench`.

    Raises:
        TwinError: there is no display, or a window is open already.
    """
    client, watch = connected_window()
    close = partial(disconnect, client, watch)
    try:
        return Bench(client, watch, arm, speed, close, controls)
    except BaseException:
        close()
        raise

"""PyBullet's server: the connection to a world of its own, and what a failed call through it means."""

from __future__ import annotations

from typing import Any

from twin.engine.suppress_output import suppress_output
from twin.engine.window import Window
from twin.errors import Closed, TwinError

with suppress_output():  # it announces its build on the console
    import pybullet
    from pybullet_utils.bullet_client import BulletClient

CLOSED: Any = Closed("the simulation is closed already")
"""In the place of whatever would call a world that is closed: its number is given to the next one."""


class _Client(BulletClient):
    """A physics server of its own: calls through it cannot reach another's world."""

    _client = -1  # which its destructor asks for, after a failed connection too


def connected(window: Window | None) -> Any:
    """A physics server, headless or behind a window.

    Raises:
        TwinError: it does not start, or a window is open already.
    """
    try:
        # If it cannot open its window it ends the process, and says why on standard error.
        with suppress_output(errors=False):
            return _Client(pybullet.GUI if window else pybullet.DIRECT)
    except pybullet.error as error:
        if window:
            window.close()
            raise TwinError("one window is open already, and PyBullet allows one a process") from error
        raise TwinError(f"PyBullet does not start: {error}") from error

"""Connections to PyBullet's servers, one per world, with a window or without, and its output suppressed."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
import threading
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import Closed, TwinError
from twin.base.version import engine_package
from twin.physics.robot.robot import Robot
from twin.physics.robot.urdf_document import read_document

if TYPE_CHECKING:
    from twin.physics.engine.window.bench import Bench, Offered, Watched
    from twin.physics.engine.window.x11_window import WindowWatch

_lock = threading.Lock()
_silenced: dict[int, tuple[int, int]] = {}
"""For each suppressed stream: a copy of its target, and the number of callers that suppress it."""


@contextmanager
def suppress_output(*, errors: bool = True, pending: bool = False) -> Iterator[None]:
    """Discard the output of Python and C inside a `with` block; exceptions pass through.

    File descriptors are redirected for the whole process, so keep the block short.  Threads may enter at the
    same time, and blocks may be nested: the last exit restores the streams.  On Windows it has no effect.

    Args:
        errors: discard standard error, too.
        pending: discard also earlier output that C has not written yet.
    """
    streams = [1, 2][: 1 + errors] if os.name == "posix" else []
    closed = [stream for stream in streams if _close(stream, pending)]
    try:
        yield
    finally:
        for stream in closed:
            _open(stream)


def _close(stream: int, pending: bool) -> bool:
    """Redirect a stream to nowhere; return false if that is not possible, as without a console."""
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
    """Restore a stream, unless another caller still suppresses it."""
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
    """Flush the buffers of Python, and those of C if its library is given."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    if libc is not None:
        libc.fflush(None)


pybullet: Any
BulletClient: Any
try:
    with suppress_output():  # PyBullet prints its build time
        import pybullet
        from pybullet_utils.bullet_client import BulletClient
except ImportError as error:
    pybullet, BulletClient, _fault = None, object, str(error)


def engine_installed() -> bool:
    """Return whether PyBullet can be imported."""
    return pybullet is not None


def require_engine(otherwise: str = "") -> None:
    """Check that PyBullet can be imported; only simulations and pictures of the engine need it.

    Args:
        otherwise: what the caller offers without PyBullet, for the message.

    Raises:
        TwinError: PyBullet cannot be imported; the message names the package to install.
    """
    if not engine_installed():
        raise TwinError(
            f"this needs the physics engine PyBullet ({_fault}): pip install {engine_package()}"
            + f"; {otherwise}" * bool(otherwise)
        )


CLOSED: Any = Closed("the simulation is closed already")
"""Replacement for the client of a closed world, whose number PyBullet gives to the next one."""


class Client(BulletClient):
    """Physics server of one world; calls through it cannot reach another world."""

    _client = -1  # read by the destructor, also after a failed connection


keeping_zero: list[Client] = []
opening = threading.Lock()


def connected() -> Any:
    """Return a physics server without a window.

    The window must have PyBullet's number 0, because `getDebugVisualizerCamera` returns the camera of number
    0 for every client.  Until there is a window, an empty world occupies that number.

    Raises:
        TwinError: PyBullet is not installed, or does not start.
    """
    require_engine()
    try:
        with opening, suppress_output(errors=False):
            if (first := Client(pybullet.DIRECT))._client != 0:
                return first
            keeping_zero[:] = [first]
            return Client(pybullet.DIRECT)
    except pybullet.error as error:
        raise TwinError(f"PyBullet does not start: {error}") from error


def disconnect(client: Any, watch: WindowWatch | None = None, *, beside_window: bool = False) -> None:
    """Stop a physics server, and close its window if it has one or runs beside one."""
    if watch is not None and watch.lost:
        # Disconnecting, now or at garbage collection, would wait for the drawing thread forever.
        client._client = -1
        return
    try:
        # A window closed by the user has written a message, which a pipe flushes only now.
        with suppress_output(pending=watch is not None or beside_window):
            client.disconnect()
    except pybullet.error:  # closed by the user
        client._client = -1
    if watch is not None:
        watch.close()


class WindowClient(Client):
    """Server of a window; it warns on the console when a drawing has to be repeated."""

    def __getattr__(self, name: str) -> Any:
        call = super().__getattr__(name)
        return suppress_output(errors=False)(call) if name.startswith("addUserDebug") else call


def connected_window() -> tuple[Any, WindowWatch]:
    """Return the server of a new window that fits the screen, and the watch over its connection.

    Raises:
        TwinError: PyBullet is not installed, there is no display, or a window is open already.
    """
    from twin.physics.engine.window.x11_window import LARGE, WindowWatch

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


def open_bench(arm: Watched, speed: float, controls: Callable[[Bench, Any], Offered] | None = None) -> Bench:
    """Return a window that shows an arm, with these controls or the usual ones; see `engine.window.bench`.

    Raises:
        TwinError: there is no display, or a window is open already.
    """
    # Modules for windows are imported only if there is a window.
    from twin.physics.engine.window.bench import Bench
    from twin.physics.engine.window.controls import Controls

    client, watch = connected_window()
    close = partial(disconnect, client, watch)
    try:
        return Bench(client, watch, arm, speed, close, controls or Controls)
    except BaseException:
        close()
        raise


def file_dynamics(robot: Robot, q: Floats) -> tuple[Floats, Floats]:
    """Return mass matrices (N, n, n) and tool positions (N, 3) as PyBullet has them for the robot's URDF.

    Only shapes are left out, because their files may be missing.

    Args:
        robot: robot with a URDF.
        q: (N, n) positions, in [rad] or [m].

    Raises:
        TwinError: PyBullet cannot load the file, or not compute its mass matrix.
    """
    assert robot.urdf is not None
    root = read_document(robot.urdf, exact=False).root
    for link in root.iter("link"):
        for shape in [part for part in link if part.tag in ("visual", "collision")]:
            link.remove(shape)
    client = connected()
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "robot.urdf"
            ET.ElementTree(root).write(path)
            with suppress_output():
                body = client.loadURDF(str(path), useFixedBase=True, flags=client.URDF_USE_INERTIA_FROM_FILE)
        infos = [client.getJointInfo(body, index) for index in range(client.getNumJoints(body))]
        moving = [info[1].decode() for info in infos if info[2] != client.JOINT_FIXED]
        tool = [info[12].decode() for info in infos].index(robot.tool_frame)
        rows = [moving.index(name) for name in robot.tree.names]
        masses, tools = [], []
        for tree_positions in robot.tree_positions(q):
            at = dict(robot.locked) | dict(zip(robot.tree.names, tree_positions.tolist(), strict=True))
            M = np.array(client.calculateMassMatrix(body, [at[name] for name in moving]))
            masses.append(robot.embedding.T @ M[np.ix_(rows, rows)] @ robot.embedding)
            for index, info in enumerate(infos):
                if info[2] != client.JOINT_FIXED:
                    client.resetJointState(body, index, at[info[1].decode()])
            tools.append(client.getLinkState(body, tool, computeForwardKinematics=True)[4])
        return np.array(masses), np.array(tools)
    except (client.error, SystemError, ValueError) as error:  # the second one of its inverse dynamics
        raise TwinError(f"PyBullet cannot read {robot.urdf}: {error.__cause__ or error}") from error
    finally:
        disconnect(client)

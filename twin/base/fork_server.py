"""Server that forks processes in which the slow modules are imported already.

Importing the modules of a run takes a second, forking some milliseconds.  A process that runs threads, an
engine or a compiler cannot be forked safely, so a separate process is forked instead: a server, which imports
modules and does nothing else.  It ends with its parent.  A forked process has the environment, the folder and
the path of the parent at that moment, and leads a session.

Only Linux forks; elsewhere libraries of the system do not allow it.
"""

from __future__ import annotations

import atexit
import math
import os
import pickle
import random
import socket
import struct
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from threading import Lock
from typing import IO, Any

AVAILABLE = sys.platform == "linux"
"""Whether processes are forked on this system."""

ENTRY = "import sys; sys.path[:] = sys.argv[1:]; from twin.base.fork_server import serve; sys.exit(serve()())"
"""Program of the server and of the processes forked from it."""

IMPORTED = ("NUMBA_", "OPENBLAS_", "OMP_", "MKL_", "MPL", "PYTHON", "XDG_", "HOME", "LC_", "LANG")
"""First letters of variables that modules read when they are imported; a change needs a new server."""

RUNNING = -(2**31)
"""Number that stands for the exit status of a process that still runs."""

_NUMBER = struct.Struct("<q")
_lock = Lock()


class Forked:
    """A forked process, with the methods of `subprocess.Popen` that this project uses.

    Attributes:
        pid: number of the process.
        stdin: pipe to its standard input.
        stdout: pipe from its standard output.
    """

    def __init__(self, server: _Server, pid: int, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self._server, self._status, self._polling = server, RUNNING, Lock()
        self.pid, self.stdin, self.stdout = pid, stdin, stdout

    def poll(self) -> int | None:
        """Return the exit status, minus the number of the signal that ended it; `None` while it runs."""
        with self._polling:  # the server tells the status once
            if self._status == RUNNING:
                self._status = self._server.status(self.pid)
        return None if self._status == RUNNING else self._status

    def wait(self, timeout: float = math.inf) -> int:
        """Wait for the end of the process, and return its exit status.

        Raises:
            subprocess.TimeoutExpired: it still runs after `timeout`, in [s].
        """
        end = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("a forked process", timeout)
            time.sleep(0.002)
        return status


def fork(target: str, modules: Iterable[str] = (), environment: dict[str, str] | None = None) -> Forked:
    """Call a function in a forked process; what it returns is the process' exit status.

    Args:
        target: the function as `"module:name"`.
        modules: modules to import before forking, beside those of this project that this process has
            imported; also functions to call, as `"module:name"`.
        environment: environment variables; by default those of this process.

    Raises:
        OSError: no process can be started, or this system is not Linux.
    """
    if not AVAILABLE:
        raise OSError(f"processes are forked on Linux alone, this is {sys.platform}: start a new one instead")
    environment = dict(os.environ) if environment is None else environment
    with _lock:
        server = _server_for(environment, modules)
        (stdin, to_stdin), (from_stdout, stdout) = os.pipe(), os.pipe()
        try:
            pid = server.fork([stdin, stdout, 2], (target, environment, os.getcwd(), sys.path))
        except OSError:
            os.close(to_stdin)
            os.close(from_stdout)
            raise
        finally:
            os.close(stdin)
            os.close(stdout)
    return Forked(server, pid, os.fdopen(to_stdin, "wb"), os.fdopen(from_stdout, "rb"))


class _Server:
    """Client's side of a server."""

    def __init__(self, environment: dict[str, str], modules: Iterable[str]) -> None:
        self.imports = imports_of(environment)
        self._connection, theirs = socket.socketpair()
        self._asking = Lock()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", ENTRY, *sys.path], stdin=theirs.fileno(), stdout=subprocess.DEVNULL,
                env=environment, start_new_session=True,
            )  # fmt: skip
        ours = [
            name for name in sys.modules if name.partition(".")[0] in ("twin", "controllers", "scenarios")
        ]
        self._send([], [*ours, *modules])

    def close(self) -> None:
        """End the server and wait for it, so that its processor time counts for this process."""
        self._connection.close()
        self.process.wait()

    def runs(self) -> bool:
        """Return whether the server's process runs."""
        return self.process.poll() is None

    def fork(self, files: list[int], content: Any) -> int:
        """Fork a process with these standard files, and return its number."""
        with self._asking:
            self._send(files, content)
            return self._answer()

    def status(self, pid: int) -> int:
        """Return the exit status of a forked process, or `RUNNING`."""
        with self._asking:
            try:
                self._send([], pid)
                return self._answer()
            except OSError:  # the server was killed, and nobody knows the status
                return 1

    def _send(self, files: list[int], content: Any) -> None:
        message = pickle.dumps(content)
        socket.send_fds(self._connection, [_NUMBER.pack(len(message))], files)
        self._connection.sendall(message)

    def _answer(self) -> int:
        answer = self._connection.recv(_NUMBER.size, socket.MSG_WAITALL)
        if len(answer) < _NUMBER.size:
            raise ConnectionError("the process that starts others has ended")
        return _NUMBER.unpack(answer)[0]


_servers: list[_Server] = []


def _server_for(environment: dict[str, str], modules: Iterable[str]) -> _Server:
    """Return the newest server; start one if that has ended, or imported modules with other variables."""
    if not _servers or not _servers[-1].runs() or _servers[-1].imports != imports_of(environment):
        _servers.append(_Server(environment, modules))
    return _servers[-1]


def close() -> None:
    """End all servers."""
    with _lock:
        while _servers:
            _servers.pop().close()


def kill() -> None:
    """Kill all servers, also those that still import; the processes that they forked go on."""
    for server in _servers:
        server.process.kill()


atexit.register(close)


def imports_of(environment: dict[str, str]) -> dict[str, str]:
    """Return the variables of an environment that modules read when they are imported."""
    return {name: value for name, value in environment.items() if name.startswith(IMPORTED)}


def serve() -> Callable[[], Any]:
    """Fork processes until the parent ends; return in each of them, with the function that it shall call."""
    connection = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    modules, _ = _request(connection)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the parent process imports the same and shows them
        for name in modules:
            try:
                _call(name) if ":" in name else import_module(name)
            except Exception:  # the process that needs it reports it
                continue
    while True:
        content, files = _request(connection)
        if isinstance(content, int):
            pid, status = os.waitpid(content, os.WNOHANG)
            _answer(connection, os.waitstatus_to_exitcode(status) if pid else RUNNING)
        elif os.fork():
            for file in files:
                os.close(file)
        else:  # the process answers itself, once it leads its session, which the parent may kill then
            os.setsid()
            _answer(connection, os.getpid())
            connection.close()
            return _begin(files, *content)


def _answer(connection: socket.socket, number: int) -> None:
    """Send a number; end the process if the parent was interrupted meanwhile."""
    try:
        connection.sendall(_NUMBER.pack(number))
    except OSError:
        os._exit(0)


def _request(connection: socket.socket) -> tuple[Any, list[int]]:
    """Return the next message and its files; end the process when the parent has ended."""
    head, files, _, _ = socket.recv_fds(connection, _NUMBER.size, 3)
    if len(head) < _NUMBER.size:
        os._exit(0)
    return pickle.loads(connection.recv(_NUMBER.unpack(head)[0], socket.MSG_WAITALL)), files


def _begin(
    files: list[int], target: str, environment: dict[str, str], folder: str, path: list[str]
) -> Callable[[], Any]:
    """Make a forked process what a new one would be, and return the function that it shall call."""
    for number, (file, name) in enumerate(zip(files, ("stdin", "stdout", "stderr"), strict=True)):
        os.dup2(file, number)
        os.close(file)
        former = getattr(sys, name)  # it knows whether the server's file has positions
        setattr(sys, name, os.fdopen(number, former.mode, -1, former.encoding, former.errors, closefd=False))
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[:] = path
    random.seed()
    if "numpy" in sys.modules:  # otherwise all processes would draw the same numbers without a seed
        sys.modules["numpy"].random.seed()
    return lambda: _call(target)


def _call(target: str) -> Any:
    """Call the function `"module:name"`."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)()

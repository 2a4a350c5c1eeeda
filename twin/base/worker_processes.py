"""Pool of worker processes: a function is called in a worker, and its result is returned to the parent.

Workers are not forked from this process, because compilers, engines and threads do not survive a fork.  On
Linux a server forks them: a process that has imported what they need, which takes a second, and does nothing
else.  Elsewhere libraries of the system do not allow it, and workers are new processes.

What a worker's code prints goes to standard error.  When the parent process ends for any reason, the
connections to its workers and servers close, and they end, too.  Each worker leads a session: signals of the
terminal do not reach it, and processes that it started end with it.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import socket
import subprocess
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from multiprocessing import connection as connections
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, NamedTuple

from twin.base import jit
from twin.base.atomic_file import discard_drafts
from twin.base.errors import describe_error_with_type
from twin.base.threads import VARIABLE, thread_count

FORKS = sys.platform == "linux"
"""Whether workers are forked on this system."""

PROGRAM = (
    "import sys; name, file, *sys.path = sys.argv[1:]; from twin.base import worker_processes as module; "
    "getattr(module, name)(int(file))"
)
"""Program of a server and of a worker that is not forked; it imports modules from its parent's path alone."""

TRIES = 2
"""Number of attempts at a task whose process ends unexpectedly; each uses a new process."""

IMPORTED = ("NUMBA_", "OPENBLAS_", "OMP_", "MKL_", "MPL", "PYTHON", "XDG_", "HOME", "LC_", "LANG")
"""First letters of variables that modules read when they are imported; a change needs a new fork server."""

STOP = b""
"""Message that asks a worker to end its task gracefully."""

Task = tuple[Callable[..., Any], tuple[Any, ...]]
"""Function of a module and its arguments; both must be picklable."""


class Answer(NamedTuple):
    """Result of a task, or the reason why there is none.

    Attributes:
        value: return value of the task.
        fault: error message; empty if the task succeeded.
        warnings: texts and categories of the warnings that the task issued.
    """

    value: Any
    fault: str = ""
    warnings: tuple[tuple[str, type[Warning]], ...] = ()

    def reissue_warnings(self) -> None:
        """Issue the worker's warnings in this process."""
        for text, category in self.warnings:
            warnings.warn(text, category, stacklevel=3)


class Started(NamedTuple):
    """Event: a task starts."""


class Message(NamedTuple):
    """Event: a task sent a value by `send_message` while it ran."""

    value: Any


class Compiling(NamedTuple):
    """Message to the parent process: a compilation begins or ends."""

    begins: bool


Event = Started | Message | Answer


class Workers:
    """Pool of processes that work through tasks; they start on demand and end with the `with` block.

    Args:
        count: largest number of simultaneous processes, which share the cores.
        tries: number of attempts at a task whose process ends unexpectedly.
        modules: modules that the tasks use, imported once for all processes where they are forked; also
            functions to call, as `"module:name"`.
    """

    def __init__(self, count: int, tries: int = TRIES, modules: Iterable[str] = ()) -> None:
        self._count, self._tries, self._modules = count, tries, tuple(modules)
        self._idle: list[_Worker] = []
        self._busy: dict[connections.Connection, _Worker] = {}
        self._stopped = False

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in (*self._idle, *self._busy.values()):
            worker.end()

    def run(self, tasks: Iterable[tuple[int, Task]]) -> Iterator[tuple[int, Event]]:
        """Run tasks, each in the next free worker.

        Args:
            tasks: pairs of a number and a task.

        Yields:
            pairs of a task's number and one of its events; its last event is an `Answer`.

        Raises:
            OSError: no process can be started.
        """
        left, self._busy = deque(tasks), (busy := {})
        try:
            while left or busy:
                while left and len(busy) < self._count:
                    number, task = left.popleft()
                    yield number, Started()
                    self._begin(number, pickle.dumps(task), self._tries)
                for connection in connections.wait(list(busy)):
                    number = busy[connection].task[0]
                    if (event := self._next_event(busy[connection])) is not None:
                        yield number, event
        finally:  # what still runs then is not needed
            for worker in busy.values():
                worker.end()

    def stop(self) -> None:
        """Ask all current and future tasks to end gracefully; this may be called from any thread."""
        self._stopped = True
        for worker in list(self._busy.values()):
            worker.send(STOP)

    def _begin(self, number: int, content: bytes, tries: int) -> None:
        """Send a task to an idle worker, or to a new one."""
        worker = self._idle.pop(0) if self._idle else _Worker(thread_count() // self._count, self._modules)
        worker.task = number, content, tries
        self._busy[worker.connection] = worker
        worker.send(content)
        if self._stopped:
            worker.send(STOP)

    def _next_event(self, worker: _Worker) -> Event | None:
        """Return the next event of a busy worker; `None` if it concerns only this process."""
        try:
            event = worker.receive()
        except (EOFError, OSError):
            del self._busy[worker.connection]
            ending, (number, content, tries) = worker.end(), worker.task
            if tries > 1:
                return self._begin(number, content, tries - 1)
            times = ", twice" if self._tries == TRIES else ""
            return Answer(None, f"the process that ran it {ending}{times}")
        if isinstance(event, Answer):
            self._idle.append(self._busy.pop(worker.connection))
        elif isinstance(event, Compiling):
            jit.on_compiling(event.begins)
            return None
        return event


class _Worker:
    """Worker process, the connection to it, and its task: number, content, and number of attempts left."""

    task: tuple[int, bytes, int]

    def __init__(self, threads: int, modules: tuple[str, ...]) -> None:
        environment = os.environ | {VARIABLE: str(max(1, threads))}
        self.connection, theirs = connections.Pipe()
        self._sending = Lock()
        if not FORKS:
            with theirs:
                process = _start_python("serve_tasks", theirs.fileno(), environment)
            self._pid, self._wait = process.pid, process.wait
        else:
            server = _server_for(environment, modules)
            with theirs, suppress(OSError):  # if the server has ended, the connection closes
                socket.send_fds(server.connection, [b"0"], [theirs.fileno(), 2])
            self.send(pickle.dumps((_take_place, (environment, os.getcwd(), sys.path))))
            try:
                self._pid, self._wait = self.connection.recv().value, lambda: server.wait(self._pid)
            except (EOFError, OSError):
                raise ConnectionError("the process that starts others has ended") from None
        _running.add(self)

    def receive(self) -> Event | Compiling:
        """Return what the worker sends next.

        Raises:
            EOFError, OSError: the process has ended.
        """
        content = self.connection.recv_bytes()
        try:
            return pickle.loads(content)
        except Exception as error:  # its class may not exist in this process
            return Answer(None, f"its result cannot be read: {describe_error_with_type(error)}")

    def send(self, content: bytes) -> None:
        """Send a message; it is dropped if the process has ended."""
        with self._sending, suppress(OSError):
            self.connection.send_bytes(content)

    def kill(self) -> None:
        """Kill the process and those that user code started in it, which belong to its session."""
        with suppress(OSError):  # Windows lacks the first of each
            getattr(os, "killpg", os.kill)(self._pid, getattr(signal, "SIGKILL", signal.SIGTERM))

    def end(self) -> str:
        """Kill the process if it still runs, and return a description of how it ended."""
        self.connection.close()
        if self not in _running:  # another process may have its number
            return "ended"
        self.kill()
        _running.discard(self)
        status = self._wait()
        if status is not None and status < 0:
            with suppress(ValueError):
                return f"was ended by {signal.Signals(-status).name}"
        return "ended" if status is None else f"ended with status {status}"


class _Server:
    """Process that forks workers, and the connection to it; it ends when the connection closes.

    Args:
        environment: environment variables.
        imports: those that modules read when they are imported.
        modules: modules to import, beside those of this project that this process has imported; also
            functions to call, as `"module:name"`.
    """

    def __init__(self, environment: dict[str, str], imports: dict[str, str], modules: Iterable[str]) -> None:
        self.imports, self._asking = imports, Lock()
        self.connection, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with theirs:
            self.process = _start_python("serve_forks", theirs.fileno(), environment)
        ours = [name for name in sys.modules if name.startswith(("twin.", "controllers.", "scenarios."))]
        self.connection.send(" ".join([*ours, *modules]).encode())

    def wait(self, pid: int) -> int | None:
        """Wait for the end of a worker, and return its exit status; `None` if the server has ended."""
        with self._asking, suppress(OSError):
            self.connection.send(b"%d" % pid)
            while answer := self.connection.recv(64):  # also one for which another thread was interrupted
                found, status = map(int, answer.split())
                if found == pid:
                    return status
        return None


_running: set[_Worker] = set()
_servers: list[_Server] = []


def _start_python(name: str, file: int, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Call a function of this module with an open file in a new process."""
    if os.name != "posix":
        os.set_handle_inheritable(file, True)  # pyright: ignore[reportAttributeAccessIssue]
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, name, str(file), *sys.path], env=environment, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        close_fds=os.name == "posix", pass_fds=(file,) if os.name == "posix" else (),
    )  # fmt: skip


def _server_for(environment: dict[str, str], modules: tuple[str, ...]) -> _Server:
    """Return the newest server; start one if that has ended, or imported modules with other variables."""
    imports = {name: value for name, value in environment.items() if name.startswith(IMPORTED)}
    if not _servers or _servers[-1].process.poll() is not None or _servers[-1].imports != imports:
        _servers.append(_Server(environment, imports, modules))
    return _servers[-1]


def kill_all() -> None:
    """Kill every worker, and the servers, also those that still import."""
    for process in (*_running, *(server.process for server in _servers)):
        process.kill()


@atexit.register
def close_servers() -> None:
    """End all servers, and wait for them, so that their processor time counts for this process."""
    while _servers:
        server = _servers.pop()
        server.connection.close()
        server.process.wait()


def serve_forks(file: int) -> None:
    """Fork workers until the parent process ends; in each of them, work through tasks."""
    control = socket.socket(fileno=file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the parent process imports the same and shows them
        for name in control.recv(2**20).decode().split():
            module, _, function = name.partition(":")
            with suppress(Exception):  # the process that needs it reports it
                getattr(import_module(module), function, bool)()
    while True:
        try:
            request, files, _, _ = socket.recv_fds(control, 64, 2)
            if files and os.fork() == 0:
                break
            if not files:
                pid, status = os.waitpid(int(request), 0)
                control.send(b"%d %d" % (pid, os.waitstatus_to_exitcode(status)))
        except (OSError, ValueError):  # the parent has ended, or the system has no room for a process
            os._exit(0)
        for passed in files:
            os.close(passed)
    os.setsid()
    control.close()
    os.dup2(files[1], 2)
    serve_tasks(files[0])


def _take_place(environment: dict[str, str], folder: str, path: list[str]) -> int:
    """Make a forked process what a new one would be, and return its number."""
    os.environ.clear()
    os.environ.update(environment)
    with suppress(OSError):  # it may have been removed since
        os.chdir(folder)
    sys.path[:] = path
    if "numpy" in sys.modules:  # otherwise all processes would draw the same numbers without a seed
        sys.modules["numpy"].random.seed()
    return os.getpid()


class _Connection:
    """Worker's side of the connection, in a process that is a worker."""

    def __init__(self, connection: connections.Connection) -> None:
        self._connection = connection
        self._sending = Lock()
        self.tasks: SimpleQueue[bytes] = SimpleQueue()
        self.stopped = False
        self.stop: Callable[[], object] = lambda: None

    def listen(self) -> None:
        """Receive messages until the parent closes the connection, then end the process."""
        try:
            while True:
                if (content := self._connection.recv_bytes()) == STOP:
                    self.stopped = True
                    self.stop()
                else:
                    self.tasks.put(content)
        finally:
            discard_drafts()
            if os.name == "posix":  # with the processes that user code started
                os.killpg(0, signal.SIGKILL)
            os._exit(0)

    def send(self, event: Event | Compiling) -> None:
        """Send an event to the parent; it is dropped if the parent has ended."""
        try:
            content = pickle.dumps(event)
        except Exception as error:  # raised by a class of user code
            fault = f"its result cannot be sent: {describe_error_with_type(error)}"
            content = pickle.dumps(Answer(None, fault))
        with self._sending, suppress(OSError):
            self._connection.send_bytes(content)


_connection: _Connection


def serve_tasks(file: int) -> None:
    """Work through tasks, which come by a connection, until the parent process ends."""
    global _connection
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles it
    if os.name == "posix":
        os.set_inheritable(file, False)  # a process of user code may outlive this one
    _connection = _Connection(getattr(connections, "PipeConnection", connections.Connection)(file))
    Thread(target=_connection.listen, daemon=True).start()
    with suppress(OSError):  # standard error may be closed
        os.dup2(2, 1)
    sys.stdout = sys.stderr
    del sys.argv[1:]
    jit.on_compiling = lambda begins: _connection.send(Compiling(begins))
    while True:
        _connection.send(_answer(_connection.tasks.get()))


def _answer(content: bytes) -> Answer:
    """Run one task and return its answer, also if its code fails."""
    with warnings.catch_warnings(record=True) as given:
        try:
            function, arguments = pickle.loads(content)
            value = function(*arguments)
        except BaseException as error:  # also `SystemExit` and errors of unpickling
            return Answer(None, describe_error_with_type(error))
    return Answer(value, "", tuple((str(one.message), one.category) for one in given))


def send_message(value: Any) -> None:
    """Send a value to the parent process while a task runs."""
    _connection.send(Message(value))


def on_stop(stop: Callable[[], object]) -> None:
    """Register `stop`, which another thread calls when the task of this worker shall end gracefully."""
    _connection.stop = stop
    if _connection.stopped:
        stop()

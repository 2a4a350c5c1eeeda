"""Pool of worker processes: a function is called in a worker, and its result is returned to the parent.

Workers are not forked from this process, because compilers, engines and threads do not survive a fork.  On
Linux Python's fork server forks them: a process that has imported what they need, which takes a second, and
does nothing else.  Elsewhere libraries of the system do not allow it, and workers are new processes.

What a worker's code prints goes to standard error.  When the parent process ends for any reason, the worker's
connection closes and the worker ends, too.  Each worker leads a session: signals of the terminal do not reach
it, and processes that it started end with it.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing import connection as connections
from multiprocessing import forkserver, get_context, resource_tracker, set_start_method, util
from queue import SimpleQueue
from shutil import rmtree
from threading import Lock, Thread
from types import ModuleType
from typing import Any, NamedTuple

from twin.base import jit
from twin.base.atomic_file import discard_drafts
from twin.base.errors import describe_error_with_type
from twin.base.threads import VARIABLE, thread_count

START = "forkserver" if sys.platform == "linux" else "spawn"
"""How Python starts workers on this system."""

TRIES = 2
"""Number of attempts at a task whose process ends unexpectedly; each uses a new process."""

IMPORTED = ("NUMBA_", "OPENBLAS_", "OMP_", "MKL_", "MPL", "PYTHON", "XDG_", "HOME", "LC_", "LANG")
"""First letters of variables that modules read when they are imported; a change needs a new fork server."""

PRELOADED = "IRB_TWIN_PRELOADED"
"""Environment variable of the fork server alone: what it imports and calls before it forks."""

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
        context = get_context(START)
        self.connection, theirs = context.Pipe()
        environment = os.environ | {VARIABLE: str(max(1, threads))}
        self._sending = Lock()
        self._process = context.Process(target=_serve, args=(theirs, environment))
        with theirs, _starting, _surroundings():
            if START == "forkserver":
                _start_server(modules)
            self._process.start()
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
        assert self._process.pid is not None
        if os.name == "posix":
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()  # it may lead no session yet

    def end(self) -> str:
        """Kill the process if it still runs, and return a description of how it ended."""
        self.connection.close()
        with _starting:  # each start asks for the status of all processes, which is told once
            if self._process.exitcode is None:  # otherwise another process may have its number
                self.kill()
            self._process.join()
        _running.discard(self)
        status = self._process.exitcode or 0
        if status < 0:
            with suppress(ValueError):
                return f"was ended by {signal.Signals(-status).name}"
        return f"ended with status {status}"


_running: set[_Worker] = set()
_starting = Lock()
_server_imports: dict[str, str] = {}
"""Variables that modules read when they are imported, as they were when the fork server started."""


def kill_all() -> None:
    """Kill every worker, and what would start others, in a process that is about to end without clean-up."""
    if forkserver._forkserver._forkserver_pid:  # pyright: ignore[reportAttributeAccessIssue]
        rmtree(util.get_temp_dir(), ignore_errors=True)  # of the server's socket
    _kill_processes()


def _kill_processes() -> None:
    for worker in list(_running):
        worker.kill()
    _kill_server(wait=False)  # so that this process ends before it sees that


util.Finalize(None, _kill_processes, exitpriority=0)  # before Python waits for the end of workers


def _kill_server(wait: bool = True) -> None:
    """Kill the fork server, also one that still imports; the processes that it forked go on."""
    if server := forkserver._forkserver._forkserver_pid:  # pyright: ignore[reportAttributeAccessIssue]
        with suppress(OSError):
            os.kill(server, signal.SIGKILL)
            if wait:
                os.waitid(os.P_PID, server, os.WEXITED | os.WNOWAIT)


@contextmanager
def _surroundings() -> Iterator[None]:
    """Let processes start with this path, and without the main module, which may do anything on import."""
    main = sys.modules["__main__"]
    former = {name: os.environ[name] for name in os.environ if name.startswith("PYTHON")}
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    try:
        sys.modules["__main__"] = ModuleType("__main__")
        # Python 3.10 ignores the second: there a module of this folder may hide one that the server needs.
        os.environ.update({"PYTHONPATH": path, "PYTHONSAFEPATH": "1"})
        yield
    except EOFError:
        raise ConnectionError("the process that starts others has ended") from None
    finally:
        sys.modules["__main__"] = main
        for name in ("PYTHONPATH", "PYTHONSAFEPATH", PRELOADED):
            os.environ.pop(name, None)
        os.environ.update(former)


def _start_server(modules: Iterable[str]) -> None:
    """Start the fork server, unless it runs and has imported modules with the same variables."""
    global _server_imports
    names = (name for name in os.environ if name.startswith(IMPORTED) and name != "PYTHONPATH")
    if (imports := {name: os.environ[name] for name in names}) != _server_imports:
        _kill_server()
        _server_imports = imports
    ours = [name for name in sys.modules if name.partition(".")[0] in ("twin", "controllers", "scenarios")]
    os.environ[PRELOADED] = " ".join([*ours, *modules])
    forkserver.set_forkserver_preload([__name__])
    resource_tracker.ensure_running()  # which unblocks signals
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # of a terminal, until it has a session
    forkserver.ensure_running()
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


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


def _serve(connection: connections.Connection, environment: dict[str, str]) -> None:
    """Work through tasks until the parent process ends."""
    global _connection
    if os.name == "posix":
        os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles it
    _connection = _Connection(connection)
    Thread(target=_connection.listen, daemon=True).start()
    os.environ.clear()
    os.environ.update(environment)
    set_start_method(None, force=True)  # user code has the usual one
    if "numpy" in sys.modules:  # otherwise all processes would draw the same numbers without a seed
        sys.modules["numpy"].random.seed()
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


def _preload(names: Iterable[str]) -> None:
    """Import modules and call functions, as `"module:name"`, in the fork server."""
    os.setsid()  # signals of the terminal do not reach it
    sys.path[:] = os.environ["PYTHONPATH"].split(os.pathsep)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the parent process imports the same and shows them
        for name in names:
            module, _, function = name.partition(":")
            with suppress(Exception):  # the process that needs it reports it
                getattr(import_module(module), function, bool)()


if PRELOADED in os.environ:
    _preload(os.environ.pop(PRELOADED).split())

"""Pool of worker processes: a function is called in a worker, and its result is returned to the parent.

Workers are not forked from this process, because compilers, engines and threads do not survive a fork.  On
Linux they are forked from a server that has imported what they need, see `fork_server.py`; elsewhere they are
new processes.  A worker reads tasks from its standard input and writes answers to its standard
output; what its code prints goes to standard error.  When the parent process ends for any reason, the
worker's input closes and the worker ends, too.  Each worker leads a session: signals of the terminal do not
reach it, and processes that it started end with it.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import IO, Any, NamedTuple

from twin.base import fork_server, jit
from twin.base.atomic_file import discard_drafts
from twin.base.errors import describe_error_with_type
from twin.base.threads import VARIABLE, thread_count

TRIES = 2
"""Number of attempts at a task whose process ends unexpectedly; each uses a new process."""

ENTRY = "import sys; sys.path[:] = sys.argv[1:]; from twin.base.worker_processes import serve; serve()"
"""Program of a worker; it imports modules from the same path as its parent."""

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
        self._idle: deque[_Worker] = deque()
        self._busy: set[_Worker] = set()
        self._lock = Lock()
        self._closed = self._stopped = False

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True
            idle, busy = list(self._idle), list(self._busy)
            for worker in (*idle, *busy):
                worker.kill()
        for worker in idle:
            worker.end()
        for worker in busy:  # another thread still reads the pipes
            worker.wait()

    def run(self, tasks: Iterable[tuple[int, Task]]) -> Iterator[tuple[int, Event]]:
        """Run tasks, each in the next free worker.

        Args:
            tasks: pairs of a number and a task.

        Yields:
            pairs of a task's number and one of its events; its last event is an `Answer`.

        Raises:
            OSError: no process can be started.
        """
        left = deque(tasks)
        events: SimpleQueue[tuple[int, Event] | BaseException] = SimpleQueue()
        missing = len(left)
        for _ in range(min(self._count, missing)):
            Thread(target=self._pass_tasks, args=(left, events), daemon=True).start()
        try:
            while missing:
                event = events.get()
                if isinstance(event, BaseException):
                    raise event
                missing -= isinstance(event[1], Answer)
                yield event
        finally:
            left.clear()

    def stop(self) -> None:
        """Ask all current and future tasks to end gracefully; this may be called from any thread."""
        with self._lock:
            self._stopped = True
            busy = list(self._busy)
        for worker in busy:
            worker.send(STOP)

    def _pass_tasks(self, left: deque[tuple[int, Task]], events: SimpleQueue[Any]) -> None:
        """Pass tasks to a worker until none is left."""
        try:
            while left:
                with suppress(IndexError):  # another thread took the last one
                    number, task = left.popleft()
                    events.put((number, Started()))
                    answer = self._run_task(task, lambda event, k=number: events.put((k, event)))
                    events.put((number, answer))
        except BaseException as error:  # no process can be started, or the task cannot be pickled
            events.put(error)

    def _run_task(self, task: Task, report: Callable[[Message], object]) -> Answer:
        """Run a task in a worker, and return its answer."""
        content, ending = pickle.dumps(task), ""
        for _ in range(self._tries):
            worker = self._take_worker()
            answer = worker.ask(content, report)
            with self._lock:
                self._busy.discard(worker)
                if answer is not None:
                    self._idle.append(worker)
                    return answer
            ending = worker.end()
            if self._closed:
                break
        times = ", twice" if self._tries == TRIES else ""
        return Answer(None, f"the process that ran it {ending}{times}")

    def _take_worker(self) -> _Worker:
        """Return an idle worker, or a new one."""
        with self._lock:
            threads = max(1, thread_count() // self._count)
            worker = self._idle.popleft() if self._idle else _Worker(threads, self._modules)
            self._busy.add(worker)
            if self._closed:
                worker.kill()
        if self._stopped:
            worker.send(STOP)
        return worker


class _Worker:
    """Worker process and the pipes to it."""

    def __init__(self, threads: int, modules: tuple[str, ...]) -> None:
        self._sending = Lock()
        environment = os.environ | {VARIABLE: str(threads)}
        # Without the lock, for which Ctrl-C would wait: a process that misses its signal ends with its input.
        if fork_server.AVAILABLE:
            self._process = fork_server.fork(f"{__name__}:serve", modules, environment)
        else:
            self._process = subprocess.Popen(
                [sys.executable, "-c", ENTRY, *sys.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                env=environment, start_new_session=True,
            )  # fmt: skip
        with _lock:
            _running.add(self)

    def ask(self, content: bytes, report: Callable[[Message], object]) -> Answer | None:
        """Return the answer to a task; `None` if the process ended."""
        self.send(content)
        while (answer := _receive(self._process.stdout)) is not None:
            try:
                event = pickle.loads(answer)
            except Exception as error:  # its class may not exist in this process
                return Answer(None, f"its result cannot be read: {describe_error_with_type(error)}")
            if isinstance(event, Answer):
                return event
            if isinstance(event, Compiling):
                jit.on_compiling(event.begins)
            else:
                report(event)
        return None

    def send(self, content: bytes) -> None:
        """Send a message; it is dropped if the process has ended."""
        with self._sending, suppress(OSError, ValueError):
            _send(self._process.stdin, content)

    def kill(self) -> None:
        """Kill the process and those that user code started in it, which belong to its session."""
        with suppress(OSError):
            if os.name == "posix" and self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
            elif isinstance(self._process, subprocess.Popen):
                self._process.kill()

    def end(self) -> str:
        """End the process if it still runs, and return a description of how it ended."""
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        status = self.wait()
        if status < 0:
            with suppress(ValueError):
                return f"was ended by {signal.Signals(-status).name}"
        return f"ended with status {status}"

    def wait(self) -> int:
        """Wait up to 5 s for the process to end, then kill it; return its exit status."""
        try:
            status = self._process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self.kill()
            status = self._process.wait()
        with _lock:
            _running.discard(self)
        return status


_running: set[_Worker] = set()
_lock = Lock()


def kill_all() -> None:
    """Kill every worker, and what would start others."""
    with _lock:
        for worker in _running:
            worker.kill()
    fork_server.kill()


def _send(stream: IO[bytes] | None, content: bytes) -> None:
    assert stream is not None
    stream.write(len(content).to_bytes(8, "little") + content)
    stream.flush()


def _receive(stream: IO[bytes] | None) -> bytes | None:
    """Return the next message; `None` at the end of the stream or after an incomplete message."""
    assert stream is not None
    with suppress(OSError, ValueError):
        head = stream.read(8)
        content = stream.read(int.from_bytes(head, "little"))
        if len(head) == 8 and len(content) == int.from_bytes(head, "little"):
            return content
    return None


class _Connection:
    """Worker's side of the connection, in a process that is a worker."""

    def __init__(self, inbox: IO[bytes], outbox: IO[bytes]) -> None:
        self._inbox, self._outbox = inbox, outbox
        self._sending = Lock()
        self.tasks: SimpleQueue[bytes] = SimpleQueue()
        self.stopped = False
        self.stop: Callable[[], object] = lambda: None

    def listen(self) -> None:
        """Receive messages until the parent closes the pipe, then end the process."""
        while (content := _receive(self._inbox)) is not None:
            if content == STOP:
                self.stopped = True
                self.stop()
            else:
                self.tasks.put(content)
        discard_drafts()
        if os.name == "posix" and os.getpgrp() == os.getpid():  # with the processes that user code started
            os.killpg(0, signal.SIGKILL)
        os._exit(0)

    def send(self, event: Event | Compiling) -> None:
        """Send an event to the parent."""
        try:
            content = pickle.dumps(event)
        except Exception as error:  # raised by a class of user code
            content = pickle.dumps(
                Answer(None, f"its result cannot be sent: {describe_error_with_type(error)}")
            )
        try:
            with self._sending:
                _send(self._outbox, content)
        except OSError:
            os._exit(1)


_connection: _Connection | None = None


def serve() -> None:
    """Work through tasks until the parent process ends."""
    global _connection
    _connection = _Connection(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with suppress(OSError):  # standard error may be closed
        os.dup2(2, 1)
    del sys.argv[1:]
    for name in ("SIGINT", "SIGHUP"):  # the parent process handles them
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    Thread(target=_connection.listen, daemon=True).start()
    connection = _connection
    jit.on_compiling = lambda begins: connection.send(Compiling(begins))
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
    assert _connection is not None
    _connection.send(Message(value))


def on_stop(stop: Callable[[], object]) -> None:
    """Register `stop`, which another thread calls when the task of this worker shall end gracefully."""
    assert _connection is not None
    _connection.stop = stop
    if _connection.stopped:
        stop()

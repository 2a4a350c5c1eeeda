"""Work shared between processes: a function is called in a worker, and its result comes back.

Workers are started anew, not forked: compilers, engines and threads do not outlive a fork whole.  A worker
gets its tasks on its standard input, and answers on its standard output; what its code prints goes to
standard error.  When the process that started it ends, however that happens, its input ends, and so does it.
A worker leads a session of its own: signals of the terminal do not reach it, and processes that it began end
with it.
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

from twin.atomic_file import abandon
from twin.errors import describe_error_with_type
from twin.threads import VARIABLE, thread_count

TRIES = 2
"""A task whose process ends is done once more, in a new process, and fails if that ends, too."""

ENTRY = "import sys; sys.path[:] = sys.argv[1:]; from twin.worker_processes import serve; serve()"
"""The program of a worker, which imports from where its starter does."""

STOP = b""
"""A message to a worker: end the task in order."""

Task = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function of a module, and its arguments; both have to be known to pickle."""


class Answer(NamedTuple):
    """The result of a task, or why there is none, in a sentence.

    `warnings` are the texts and categories of those that were given on the way.
    """

    value: Any
    fault: str = ""
    warnings: tuple[tuple[str, type[Warning]], ...] = ()

    def warn_again(self) -> None:
        """Give the warnings of the worker here."""
        for text, category in self.warnings:
            warnings.warn(text, category, stacklevel=3)


class Begun(NamedTuple):
    """A task begins."""


class Word(NamedTuple):
    """What a task said by `say` while it ran."""

    value: Any


Event = Begun | Word | Answer


class Workers:
    """Processes that work through tasks; they are started when they are needed, and end with the block.

    Args:
        count: at most so many at once, which share the cores.
        tries: how often a task is begun whose process ends.
    """

    def __init__(self, count: int, tries: int = TRIES) -> None:
        self._count, self._tries = count, tries
        self._idle: deque[_Worker] = deque()
        self._busy: set[_Worker] = set()
        self._changing = Lock()
        self._over = self._stopped = False

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        with self._changing:
            self._over = True
            idle, busy = list(self._idle), list(self._busy)
            for worker in (*idle, *busy):
                worker.kill()
        for worker in idle:
            worker.end()
        for worker in busy:  # whose pipes another thread still reads
            worker.wait()

    def run(self, tasks: Iterable[tuple[int, Task]]) -> Iterator[tuple[int, Event]]:
        """Do tasks, each by the next worker that is free.

        Args:
            tasks: numbers, and what is to be done.

        Yields:
            the numbers, and what happens to them, to one answer each.

        Raises:
            OSError: no process can be started.
        """
        left = deque(tasks)
        happened: SimpleQueue[tuple[int, Event] | BaseException] = SimpleQueue()
        missing = len(left)
        for _ in range(min(self._count, missing)):
            Thread(target=self._serve, args=(left, happened), daemon=True).start()
        try:
            while missing:
                event = happened.get()
                if isinstance(event, BaseException):
                    raise event
                missing -= isinstance(event[1], Answer)
                yield event
        finally:
            left.clear()

    def stop(self) -> None:
        """Have all tasks that run, or will yet, end in order; from any thread."""
        with self._changing:
            self._stopped = True
            busy = list(self._busy)
        for worker in busy:
            worker.send(STOP)

    def _serve(self, left: deque[tuple[int, Task]], happened: SimpleQueue[Any]) -> None:
        """Give tasks to one worker, and to its successors."""
        try:
            while left:
                with suppress(IndexError):  # another thread took the last one
                    number, task = left.popleft()
                    happened.put((number, Begun()))
                    happened.put((number, self._done(task, lambda word, k=number: happened.put((k, word)))))
        except BaseException as error:  # no process can be started, or the task cannot be pickled
            happened.put(error)

    def _done(self, task: Task, tell: Callable[[Word], object]) -> Answer:
        """Have a task done."""
        content, how = pickle.dumps(task), ""
        for _ in range(self._tries):
            worker = self._taken()
            answer = worker.ask(content, tell)
            with self._changing:
                self._busy.discard(worker)
                if answer is not None:
                    self._idle.append(worker)
                    return answer
            how = worker.end()
            if self._over:
                break
        times = ", twice" if self._tries == TRIES else ""
        return Answer(None, f"the process that ran it {how}{times}")

    def _taken(self) -> _Worker:
        """A worker that is free, or a new one."""
        with self._changing:
            worker = self._idle.popleft() if self._idle else _Worker(max(1, thread_count() // self._count))
            self._busy.add(worker)
            if self._over:
                worker.kill()
        if self._stopped:
            worker.send(STOP)
        return worker


class _Worker:
    """One worker process, and the pipes to it."""

    def __init__(self, threads: int) -> None:
        self._sending = Lock()
        with _changing:
            self._process = subprocess.Popen(
                [sys.executable, "-c", ENTRY, *sys.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                env=os.environ | {VARIABLE: str(threads)}, start_new_session=True,
            )  # fmt: skip
            _running.add(self)

    def ask(self, content: bytes, tell: Callable[[Word], object]) -> Answer | None:
        """The answer to a task; `None` if the process ended."""
        self.send(content)
        while (answer := _received(self._process.stdout)) is not None:
            try:
                event = pickle.loads(answer)
            except Exception as error:  # of a class of somebody's that is not there in this process
                return Answer(None, f"its result cannot be read: {describe_error_with_type(error)}")
            if isinstance(event, Answer):
                return event
            tell(event)
        return None

    def send(self, content: bytes) -> None:
        """Send a message; to a process that ended none."""
        with self._sending, suppress(OSError, ValueError):
            _send(self._process.stdin, content)

    def kill(self) -> None:
        """End the process at once, with those that the user's code in it began: they are of its session."""
        with suppress(OSError):
            if os.name == "posix" and self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def end(self) -> str:
        """End the process if it has not ended yet, and say how it did."""
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
        """Wait for the end of the process, not for long; its exit status."""
        try:
            status = self._process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self.kill()
            status = self._process.wait()
        with _changing:
            _running.discard(self)
        return status


_running: set[_Worker] = set()
_changing = Lock()


def kill_all() -> None:
    """End every worker at once."""
    with _changing:
        for worker in _running:
            worker.kill()


def _send(stream: IO[bytes] | None, content: bytes) -> None:
    assert stream is not None
    stream.write(len(content).to_bytes(8, "little") + content)
    stream.flush()


def _received(stream: IO[bytes] | None) -> bytes | None:
    """The next message; `None` at the end, or if half a message is all that came."""
    assert stream is not None
    with suppress(OSError, ValueError):
        head = stream.read(8)
        content = stream.read(int.from_bytes(head, "little"))
        if len(head) == 8 and len(content) == int.from_bytes(head, "little"):
            return content
    return None


class _Here:
    """This process, where it is a worker."""

    def __init__(self, inbox: IO[bytes], outbox: IO[bytes]) -> None:
        self._inbox, self._outbox = inbox, outbox
        self._sending = Lock()
        self.tasks: SimpleQueue[bytes] = SimpleQueue()
        self.stopped = False
        self.stop: Callable[[], object] = lambda: None

    def listen(self) -> None:
        """Take messages in, and end the process at once when there is nobody any more who would send some."""
        while (content := _received(self._inbox)) is not None:
            if content == STOP:
                self.stopped = True
                self.stop()
            else:
                self.tasks.put(content)
        abandon()
        if os.name == "posix" and os.getpgrp() == os.getpid():  # with what somebody's code began
            os.killpg(0, signal.SIGKILL)
        os._exit(0)

    def send(self, event: Event) -> None:
        """Send a word or an answer."""
        try:
            content = pickle.dumps(event)
        except Exception as error:  # in what somebody's own code made
            content = pickle.dumps(
                Answer(None, f"its result cannot be sent: {describe_error_with_type(error)}")
            )
        try:
            with self._sending:
                _send(self._outbox, content)
        except OSError:
            os._exit(1)


_here: _Here | None = None


def serve() -> None:
    """Be a worker, until the process that started it ends."""
    global _here
    _here = _Here(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with suppress(OSError):  # closed by whoever started the command
        os.dup2(2, 1)
    del sys.argv[1:]
    for name in ("SIGINT", "SIGHUP"):  # whoever started this process decides
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    Thread(target=_here.listen, daemon=True).start()
    while True:
        _here.send(_answered(_here.tasks.get()))


def _answered(content: bytes) -> Answer:
    """Do one task; whatever its code does, there is an answer."""
    with warnings.catch_warnings(record=True) as given:
        try:
            function, arguments = pickle.loads(content)
            value = function(*arguments)
        except BaseException as error:  # settings that cannot be read, a module that can be loaded once
            return Answer(None, describe_error_with_type(error))
    return Answer(value, "", tuple((str(one.message), one.category) for one in given))


def say(value: Any) -> None:
    """Send a word to the process that started this worker, in the midst of a task."""
    assert _here is not None
    _here.send(Word(value))


def when_stopped(stop: Callable[[], object]) -> None:
    """Have `stop` called, from another thread, when the task of this worker shall end in order."""
    assert _here is not None
    _here.stop = stop
    if _here.stopped:
        stop()

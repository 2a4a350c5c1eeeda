"""Runs shared between processes: the same results as in one, in the same order, to the same bits.

The processes are started anew, not forked: compilers, engines and threads do not outlive a fork whole.  Each
takes the next task when it is done with one.  If it ends in the midst of one, as by a fault in compiled code
or for want of memory, the task is done once more, in a new process, and is a failed one if that ends, too.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from scenarios.running.registry import scenario_word
from scenarios.running.runs import Run, carry_out
from scenarios.running.worker import Answer, RunTask
from twin.errors import told_with_kind
from twin.threads import VARIABLE, thread_count

if TYPE_CHECKING:
    from scenarios.base import Config
    from scenarios.running.registry import Scenario

Work = tuple["Scenario", "Config"]
LONG = ("laboratory", "pose_path")
"""Scenarios of this project that take longest, some 2 s a run, and so begin first."""
TRIES = 2


def carried_out(
    work: Sequence[Work],
    jobs: int,
    begun: Callable[[int], None],
    done: Callable[[int, bool], None],
) -> list[Run]:
    """Carry out runs in so many other processes.

    Args:
        work: scenarios with their settings.
        jobs: how many processes.
        begun: called with the place of what begins.
        done: called with its place, and whether it holds, when it is done.

    Returns:
        what came of each, in the order of `work`, with figures and no logs.
    """
    results: dict[int, Run] = {}
    order = sorted(range(len(work)), key=lambda place: _rank(work[place]))
    apart = {place: task for place in order if (task := task_of(work[place])) is not None}
    for place in order:
        if place not in apart:
            begun(place)
            results[place] = _here(work[place])
            done(place, results[place].holds)
    if apart:
        with Processes(list(apart.items()), jobs) as processes:
            for place, answer in processes.answers():
                if answer is None:
                    begun(place)
                    continue
                results[place] = result_of(work[place], answer)
                done(place, results[place].holds)
    return [results[place] for place in range(len(work))]


def _rank(one: Work) -> int:
    """0 for what takes long."""
    return 0 if one[0].name in LONG else 1


def _here(one: Work) -> Run:
    """A result of this process."""
    return carry_out(*one).without_log()


def task_of(one: Work, *, with_log: bool = False) -> RunTask | None:
    """What another process has to be told; nothing of what is known to fail, or cannot be told."""
    scenario, config = one
    if scenario.fault is not None:
        return None
    try:
        found_by = scenario_word(scenario.file, scenario.name)
        return RunTask(found_by, scenario.name, pickle.dumps(config), with_log)
    except Exception:  # a setting of somebody's that pickle does not know
        return None


def result_of(one: Work, answer: Answer) -> Run:
    """What a process sent, with what it did not have to."""
    for text, category in answer.warnings:
        warnings.warn(text, category, stacklevel=2)
    scenario, config = one
    if answer.value is None:
        return Run(scenario.name, config, None, (), 0.0, answer.fault, file=scenario.file)
    return Run(config=config, **answer.value)


class Processes:
    """Processes that work through tasks; all of them end with the block."""

    def __init__(self, tasks: Sequence[tuple[int, Any]], jobs: int) -> None:
        self._left = deque(tasks)
        self._count = len(tasks)
        self._over = False
        self._jobs = min(jobs, len(tasks))
        self._told: SimpleQueue[tuple[int, Answer | None] | BaseException] = SimpleQueue()

    def __enter__(self) -> Processes:
        for _ in range(self._jobs):
            Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._left.clear()
        kill_all()

    def answers(self) -> Iterator[tuple[int, Answer | None]]:
        """Tasks as they begin, with `None`, and as they are done, with their answer."""
        missing = self._count
        while missing:
            told = self._told.get()
            if isinstance(told, BaseException):
                raise told
            missing -= told[1] is not None
            yield told

    def _serve(self) -> None:
        """Give tasks to one process, and to its successors."""
        process = None
        try:
            while True:
                try:
                    place, task = self._left.popleft()
                except IndexError:
                    break
                self._told.put((place, None))
                answer = None
                for _ in range(TRIES):
                    process = process or self._started()
                    answer = _asked(process, task)
                    if answer is not None or self._over:
                        break
                    how, process = _ended(process), None
                self._told.put((place, answer or Answer(None, f"the process that ran it {how}, twice")))
        except BaseException as error:  # no process can be started
            self._told.put(error)
        if process is not None:
            _ended(process)

    def _started(self) -> subprocess.Popen[bytes]:
        """A new process, with the modules that can be imported here, and its share of the cores."""
        code = f"import sys; sys.path[:] = {sys.path!r}; from scenarios.running.worker import main; main()"
        environment = os.environ | {VARIABLE: str(max(1, thread_count() // self._jobs))}
        with _changing:
            process = subprocess.Popen(
                [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
                start_new_session=True,
            )  # fmt: skip
            _running.add(process)
            if self._over:
                _kill(process)
        return process


_running: set[subprocess.Popen[bytes]] = set()
_changing = Lock()


def kill_all() -> None:
    """End every process at once."""
    with _changing:
        for process in _running:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process at once, with those that the user's code in it began: they are of its session."""
    with suppress(OSError):
        if os.name == "posix" and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _asked(process: subprocess.Popen[bytes], task: Any) -> Answer | None:
    """The answer of a process; `None` if it ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError):
        pickle.dump(task, process.stdin)
        process.stdin.flush()
        length = int.from_bytes(process.stdout.read(8), "little")
        content = process.stdout.read(length)
        if length and len(content) == length:
            return _read(content)
    return None


def _read(content: bytes) -> Answer:
    try:
        return pickle.loads(content)
    except Exception as error:  # of a class of somebody's that is not there in this process
        return Answer(None, f"its result cannot be read: {told_with_kind(error)}")


def _ended(process: subprocess.Popen[bytes]) -> str:
    """End a process if it has not ended yet, and say how it did."""
    for stream in (process.stdin, process.stdout):
        with suppress(OSError):
            if stream is not None:
                stream.close()
    try:
        status = process.wait(timeout=5.0)
    except subprocess.TimeoutExpired:
        _kill(process)
        status = process.wait()
    with _changing:
        _running.discard(process)
    if status < 0:
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-status).name}"
    return f"ended with status {status}"

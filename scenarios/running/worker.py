"""A process that carries out runs for another, one after the other, and sends what came of them.

It is told what to do on its standard input, and answers on its standard output; what somebody's code prints
goes to standard error.  When whoever started it ends, however that happens, its input ends, and so does it.
"""

from __future__ import annotations

import os
import pickle
import signal
import warnings
from contextlib import suppress
from functools import cache
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from twin.errors import told_with_kind

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario


class RunTask(NamedTuple):
    """A run to be carried out: how to find its scenario, what to call it, and its pickled settings.

    `with_log` asks for the log, too, which is large.
    """

    found_by: str
    name: str
    config: bytes
    with_log: bool = False


class Answer(NamedTuple):
    """What came of a task: a run without its settings, or a fault in a sentence.

    `warnings` are the texts and categories of those that were given on the way.
    """

    value: Any
    fault: str = ""
    warnings: tuple[tuple[str, type[Warning]], ...] = ()


def main() -> None:
    """Answer tasks until there are no more."""
    inbox, outbox = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with suppress(OSError):  # closed by whoever started the command
        os.dup2(2, 1)
    for name in ("SIGINT", "SIGHUP"):  # of the whole terminal; whoever started this one decides
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    tasks: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_listen, args=(inbox, tasks), daemon=True).start()
    while True:
        answer = answered(tasks.get())
        try:
            content = pickle.dumps(answer)
        except Exception as error:  # in what a scenario's own code made
            content = pickle.dumps(Answer(None, f"its result cannot be sent: {told_with_kind(error)}"))
        try:
            outbox.write(len(content).to_bytes(8, "little") + content)
            outbox.flush()
        except OSError:
            os._exit(1)


def _listen(inbox: Any, tasks: SimpleQueue[Any]) -> None:
    """Take tasks in, and end the process at once when there is nobody any more who would send some."""
    with suppress(Exception):
        while True:
            tasks.put(pickle.load(inbox))
    os._exit(0)


def answered(task: RunTask) -> Answer:
    """Carry out one task; whatever its code does, there is an answer."""
    with warnings.catch_warnings(record=True) as given:
        try:
            value = _run(task)
        except BaseException as error:  # a module that can be loaded once, settings that cannot be read
            return Answer(None, told_with_kind(error))
    return Answer(value, "", tuple((str(one.message), one.category) for one in given))


def _run(task: RunTask) -> dict[str, Any]:
    """A run's fields, but for its settings, which whoever asked has, and its log unless that is asked for."""
    from dataclasses import replace

    from scenarios.running.runs import carry_out

    scenario = replace(_found(task.found_by), name=task.name)
    run = carry_out(scenario, pickle.loads(task.config))  # whose class is found once its scenario is
    run = run if task.with_log else run.without_log()
    return {name: value for name, value in vars(run).items() if name != "config"}


@cache
def _found(name: str) -> Scenario:
    """A scenario; somebody's file is loaded once, as in one process."""
    from scenarios.running import registry

    return registry.find_regardless(name)

"""The command `irb-twin` as a process of its own, which ends at once when it is told to.

Python hands a signal to the main thread, between two of its own instructions.  A thread in compiled code, in
a compiler or in PyBullet comes to none for seconds, and an exception that is raised in the midst of an import
is taken for a fault of whatever was being imported.  So a signal raises nothing here: the number that C
leaves in a pipe wakes a thread, which clears up and ends the process.  It has to wait only for C code that
holds the GIL, as PyBullet does while it draws a picture (half a second).  What runs until it is told to stop,
as a server does, is told so by the first signal, and ends in order; the second ends the process.

Nothing heavy is imported before that is in place.  `command_line.main`, called from a program, leaves signals
alone.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

SAID = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up on"}
"""Words for the signals that end the process; its exit status is 128 and their number."""

SHOW_CURSOR = b"\r\x1b[2K\x1b[?25h"
"""Clears the line of the progress bar, and shows the cursor again that it hid."""


def main() -> int:
    """Run the command with the words of the process; its exit status."""
    listen()
    from twin.atomic_file import discard_drafts
    from twin.sibling_packages import hidden

    if sentence := hidden("controllers"):
        sys.stderr.write(f"irb-twin: {sentence}\n")
        return 2
    _at_the_end.append(discard_drafts)
    from scenarios.cli.command_line import main

    status = main()
    if "twin.engine.window.x11_window" in sys.modules:  # which ends a process whose window was lost
        sys.modules["twin.engine.window.x11_window"].leave_with(status)
    return status


_at_the_end: list[Callable[[], None]] = []
"""Functions that clear up; known once they could be imported."""


def listen() -> None:
    """Have the signals end this process from now on, but for those that it was told to ignore."""
    try:
        console = os.dup(2)  # the engine is silenced by turning 2 away
    except OSError:  # closed by whoever started it
        console = None
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    known = [getattr(signal, name) for name in SAID if hasattr(signal, name)]
    caught = [number for number in known if signal.getsignal(number) != signal.SIG_IGN]
    Thread(target=_wait, args=(told, console, caught), daemon=True).start()
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    for number in caught:
        signal.signal(number, _nothing)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _forget(caught))


def _nothing(*_: object) -> None:
    """A handler in Python is what makes C write to the pipe."""


def _forget(caught: list[int]) -> None:
    """In a process that was forked off: the thread is not there, so the signals do what they always do."""
    signal.set_wakeup_fd(-1)
    for number in caught:
        signal.signal(number, signal.SIG_DFL)


def _wait(told: int, console: int | None, caught: list[int]) -> None:
    """Wait for one of the signals that ends the process, clear up, and end it."""
    while (number := os.read(told, 1)[0]) not in caught or take(number):  # somebody else's, or in order
        pass
    try:
        for clear_up in _at_the_end:
            clear_up()
        for child in _called("multiprocessing", "active_children") or ():
            child.kill()
        _called("twin.worker_processes", "kill_all")
        if console is not None:
            drawn = "rich.progress" in sys.modules and os.isatty(console)
            said = f"irb-twin: {SAID[signal.Signals(number).name]}\n".encode()
            os.write(console, SHOW_CURSOR * drawn + said)
    finally:
        os._exit(128 + number)


def _called(module: str, name: str) -> Any:
    """Call a function of a module, unless that is not imported, or is being imported and has it not yet."""
    function = getattr(sys.modules.get(module), name, None)
    return None if function is None else function()


class Interrupt:
    """The signal that came, if one did.

    Attributes:
        number: of the signal; 0 if none came.
    """

    def __init__(self, stop: Callable[[], object]) -> None:
        self.number = 0
        self.stop = stop


_running: list[Interrupt] = []


@contextmanager
def graceful_stop(stop: Callable[[], object]) -> Iterator[Interrupt]:
    """While the block runs, the first signal calls `stop`, from a thread of its own, and nothing else."""
    interrupt = Interrupt(stop)
    _running.append(interrupt)
    try:
        yield interrupt
    finally:
        _running.remove(interrupt)


def take(number: int) -> bool:
    """Have what runs stop; whether there is something that had not been told to."""
    untold = [interrupt for interrupt in _running if not interrupt.number]
    for interrupt in untold:
        interrupt.number = number
        interrupt.stop()
    return bool(untold)

"""The process of `irb-twin`, which a signal ends at once.

Python runs a signal handler in the main thread, between two bytecode instructions.  Compiled code, a compiler
or PyBullet may block the main thread for seconds, and an exception raised during an import looks like an
error of the imported module.  So a signal raises no exception here.  Instead, the signal's number wakes a
thread through a pipe; the thread cleans up and ends the process.  It waits only for C code that holds the
GIL, such as PyBullet while it draws a picture (half a second).  A server runs until it is stopped: the first
signal asks it to stop in order, the second ends the process.

No slow module is imported before the thread runs.  `command_line.main`, called from a program, does not
change the handling of signals.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import Any

MESSAGES = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up on"}
"""Messages for the signals that end the process; its exit status is 128 plus the signal's number."""

SHOW_CURSOR = b"\r\x1b[2K\x1b[?25h"
"""Escape sequence that clears the line of the progress bar, and shows the cursor that the bar hid."""


def main() -> int:
    """Run the command line of this process, and return the exit status."""
    listen()
    from twin.base.atomic_file import discard_drafts
    from twin.base.sibling_packages import hidden

    if sentence := hidden("controllers"):
        sys.stderr.write(f"irb-twin: {sentence}\n")
        return 2
    _exit_functions.append(discard_drafts)
    from scenarios.shell.command_line import main
    from scenarios.shell.output import compiling_shown

    with compiling_shown():
        status = main()
    if (
        "twin.physics.engine.window.x11_window" in sys.modules
    ):  # its thread ends a process whose window was lost
        sys.modules["twin.physics.engine.window.x11_window"].leave_with(status)
    return status


def run_script(file: str) -> int:
    """Run the command line for a scenario's file that is executed as a script, and return the exit status.

    `python -m scenarios.pose_path --controller pd` and `python scenarios/pose_path.py --controller pd` are
    `irb-twin run pose_path --controller pd`.

    Args:
        file: `__file__` of the scenario.
    """
    folder, name = os.path.split(os.path.abspath(file))
    built_in = folder == os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if built_in and os.path.abspath(sys.path[0]) == folder:
        sys.path[0] = os.path.dirname(folder)  # the modules beside the script must not hide others
    sys.argv = ["irb-twin", "run", os.path.splitext(name)[0] if built_in else file, *sys.argv[1:]]
    return main()


_exit_functions: list[Callable[[], None]] = []
"""Functions that clean up before the process ends; filled as soon as their modules are imported."""


_advice: list[str] = []
"""What the user can do after a signal has ended the process."""


@contextmanager
def advised(sentences: Sequence[str]) -> Iterator[None]:
    """Print sentences if a signal ends the process in the block."""
    _advice.extend(sentences)
    try:
        yield
    finally:
        _advice.clear()


def listen() -> None:
    """Install the handling of the signals that end this process, except those that it ignores already."""
    try:
        console = os.dup(2)  # the output of the engine is suppressed by redirecting 2
    except OSError:  # closed by the parent process
        console = None
    receiver, sender = os.pipe()
    if hasattr(os, "set_blocking"):  # Windows has it from Python 3.12 on, and needs it on no version
        os.set_blocking(sender, False)
    known = [getattr(signal, name) for name in MESSAGES if hasattr(signal, name)]
    caught = [number for number in known if signal.getsignal(number) != signal.SIG_IGN]
    Thread(target=_wait, args=(receiver, console, caught), daemon=True).start()
    signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    for number in caught:
        signal.signal(number, _nothing)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _forget(caught))


def _nothing(*_: object) -> None:
    """Do nothing: C writes to the pipe only for signals with a handler in Python."""


def _forget(caught: list[int]) -> None:
    """Restore the default handling of signals in a forked process, which has no thread to wait for them."""
    signal.set_wakeup_fd(-1)
    for number in caught:
        signal.signal(number, signal.SIG_DFL)


def _wait(receiver: int, console: int | None, caught: list[int]) -> None:
    """Wait for one of the signals that ends the process, clean up, and end it."""
    while (number := os.read(receiver, 1)[0]) not in caught or take(number):
        pass  # another signal, or a graceful stop
    try:
        for clean_up in _exit_functions:
            clean_up()
        for child in _called("multiprocessing", "active_children") or ():
            child.kill()
        _called("twin.base.worker_processes", "kill_all")
        if console is not None:
            drawn = "rich.progress" in sys.modules and os.isatty(console)
            sentences = "; ".join((MESSAGES[signal.Signals(number).name], *_advice))
            message = f"irb-twin: {sentences}\n".encode()
            os.write(console, SHOW_CURSOR * drawn + message)
    finally:
        os._exit(128 + number)


def _called(module: str, name: str) -> Any:
    """Call a function of a module, unless the module is not imported or not yet complete."""
    function = getattr(sys.modules.get(module), name, None)
    return None if function is None else function()


class Interrupt:
    """A signal that may arrive while a function runs.

    Attributes:
        number: number of the signal; 0 if none arrived.
    """

    def __init__(self, stop: Callable[[], object]) -> None:
        self.number = 0
        self.stop = stop


_running: list[Interrupt] = []


@contextmanager
def graceful_stop(stop: Callable[[], object]) -> Iterator[Interrupt]:
    """Make the first signal call `stop` in a separate thread, instead of ending the process."""
    interrupt = Interrupt(stop)
    _running.append(interrupt)
    try:
        yield interrupt
    finally:
        _running.remove(interrupt)


def take(number: int) -> bool:
    """Stop what runs; return whether anything had not been stopped before."""
    unstopped = [interrupt for interrupt in _running if not interrupt.number]
    for interrupt in unstopped:
        interrupt.number = number
        interrupt.stop()
    return bool(unstopped)

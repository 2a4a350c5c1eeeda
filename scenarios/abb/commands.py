"""Commands of a person for a running session, as lines that are typed on the terminal."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import NamedTuple

from scenarios.abb.background import RunningController
from twin.base.errors import TwinError, near


class Word(NamedTuple):
    """Command: what follows its word, what it does, and the function that returns its answer."""

    arguments: str
    does: str
    run: Callable[[RunningController, list[str]], str]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise TwinError(f"expected a number, got {text!r}") from None


def _speed(running: RunningController, words: list[str]) -> str:
    running.speed = _number(words[0].rstrip("%"))
    return f"speed {running.speed:g} %"


def _main(running: RunningController, words: list[str]) -> str:
    running.to_main(*words)
    return f"the program pointer is at {words[0] if words else 'the beginning'}"


def _set(running: RunningController, words: list[str]) -> str:
    name, value = words
    running.signals[name] = _number(value)
    return f"{name} = {running.signals[name]:g}"


def _status(running: RunningController, words: list[str]) -> str:
    controller = running.controller

    def read() -> str:
        execution = "runs" if controller.execution.running else "is stopped"
        arm = "rests" if controller.rests else "moves"
        tasks = ", ".join(f"{one.settings.name} {one.state}" for one in controller.tasks.values())
        signals = ", ".join(
            f"{name} = {value:g}" for name, value in sorted(controller.signals.values.items())
        )
        asks = "".join(f"; {name} asks: {one.text}" for name, one in controller.execution.questions.items())
        return (
            f"the execution {execution}, speed {running.speed:g} %, the arm {arm}; {tasks}; "
            f"signals: {signals or 'none'}{asks}"
        )

    return controller.call(read)


WORDS = {
    "start": Word("", "start the execution, or go on", lambda running, words: running.start() or "started"),
    "stop": Word("", "stop the arm on its path", lambda running, words: running.stop() or "stopped"),
    "speed": Word("PERCENT", "change the speed of the arm", _speed),
    "main": Word("[ROUTINE]", "move the program pointer to the beginning, or to a routine", _main),
    "set": Word("SIGNAL VALUE", "change a signal", _set),
    "answer": Word(
        "TEXT",
        "answer the question of a program",
        lambda running, words: running.answer(" ".join(words)) or "",
    ),
    "status": Word("", "show what runs, and the signals", _status),
}
"""Commands by their words; `help` and `quit` come on top."""


class Commands:
    """Commands for a running controller.

    Args:
        running: the running controller.
        quit: function that ends the session.
    """

    def __init__(self, running: RunningController, quit: Callable[[], object]) -> None:
        self._running, self._quit = running, quit

    def run(self, line: str) -> str:
        """Execute a line, and return a sentence for the person."""
        word, *words = line.split() or [""]
        if word in ("", "help"):
            known = {**{name: (one.arguments, one.does) for name, one in WORDS.items()}, "quit": ("", "end")}
            return "\n".join(f"{f'{name} {more}':20s}  {does}" for name, (more, does) in known.items())
        if word == "quit":
            self._quit()
            return "ending"
        if word not in WORDS:
            return f"unknown command {word!r}{near(word, [*WORDS, 'help', 'quit'])}; help names all"
        least = sum(not one.startswith("[") for one in WORDS[word].arguments.split())
        most = None if word == "answer" else len(WORDS[word].arguments.split())
        if len(words) < least or (most is not None and len(words) > most):
            return f"expected {word} {WORDS[word].arguments}".rstrip()
        try:
            return WORDS[word].run(self._running, words)
        except TwinError as error:
            return str(error)


def read_commands(commands: Commands, say: Callable[[str], object]) -> None:
    """Execute the lines of the standard input in a thread of its own, until it ends."""

    def run() -> None:
        if hasattr(
            signal, "pthread_sigmask"
        ):  # in the background of a shell, reading fails and does not stop us
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTIN})
        rest = b""
        with suppress(OSError):  # of a terminal that is gone
            while received := os.read(sys.stdin.fileno(), 4096):  # a reader of Python would hold up the end
                *lines, rest = (rest + received).split(b"\n")
                for line in lines:
                    if answer := commands.run(line.decode(errors="replace")):
                        say(answer)

    Thread(target=run, name="commands", daemon=True).start()

"""Waits of a program: for a time, for signals that are given, and for those that are taken as answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twin.abb.rapid import syntax_tree as st
from twin.abb.rapid.arguments import Arguments
from twin.abb.rapid.recorder import Pause, Recorder
from twin.abb.rapid.values import BOOL, NUM
from twin.base.errors import RapidError


def wait_time(recorder: Recorder, given: Arguments) -> None:
    """Wait for a time (WaitTime)."""
    seconds = given.value(0, NUM)
    if not seconds >= 0:
        raise RapidError(f"WaitTime of {seconds:g} s, expected at least 0")
    if seconds:
        recorder.pause(Pause(*given.interpreter.place, seconds))


def wait_signal(recorder: Recorder, given: Arguments) -> None:
    r"""Wait for the value of a signal (WaitDI and others), with `\LT` and `\GT` for a limit of it."""
    name = given.signal(0)
    wanted = given.value("dvalue", "dnum") if "dvalue" in given else given.value(1, NUM)

    def is_there() -> bool:
        value = recorder.signals.values.get(name.lower(), 0.0)
        return value < wanted if "lt" in given else value > wanted if "gt" in given else value == wanted

    beyond = wanted + ("gt" in given) - ("lt" in given)
    _wait(recorder, given, name, is_there, [(name, float(beyond))])


def wait_until(recorder: Recorder, given: Arguments) -> None:
    """Wait for a condition (WaitUntil)."""
    condition = given.expression(0)
    interpreter = given.interpreter

    def is_there() -> bool:
        return interpreter.typed(interpreter.evaluate(condition), bool, BOOL)

    _wait(recorder, given, "", is_there, list(_levels(interpreter, condition)))


def wait_test_and_set(recorder: Recorder, given: Arguments) -> None:
    """Take a semaphore (WaitTestAndSet); only this task has it."""
    given.write(0, True)


def _wait(
    recorder: Recorder,
    given: Arguments,
    name: str,
    is_there: Callable[[], bool],
    wanted: list[tuple[str, float]],
) -> None:
    given.give("timeflag", False)
    recorder.wait(given, name, is_there, wanted)


def _levels(interpreter: Any, node: Any) -> Any:
    """Yield the signals of a condition, with the values for which it holds."""
    if isinstance(node, st.Unary) and node.operator == "(":
        yield from _levels(interpreter, node.operand)
    elif isinstance(node, st.Binary) and node.operator == "AND":
        yield from _levels(interpreter, node.left)
        yield from _levels(interpreter, node.right)
    elif isinstance(node, st.Binary) and node.operator == "OR":
        yield from _levels(interpreter, node.left)
    elif isinstance(node, st.Binary) and node.operator == "=":
        side = node.left
        if isinstance(side, st.Function) and side.arguments:
            side = side.arguments[0].value
        name = interpreter.signal(side)
        if name is not None and name in interpreter.signals:
            value = interpreter.evaluate(node.right)
            if isinstance(value, float):
                yield name, value
    elif isinstance(node, st.Function) and node.name.lower() == "testdi":
        name = interpreter.signal(node.arguments[0].value)
        if name is not None:
            yield name, 1.0

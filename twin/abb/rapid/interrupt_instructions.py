"""Instructions of interrupts, and of the path in traps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twin.abb.rapid.arguments import Arguments
from twin.abb.rapid.interrupts import Cause
from twin.abb.rapid.moves import Instruction
from twin.abb.rapid.recorder import Recorder
from twin.abb.rapid.values import NUM
from twin.base.errors import RapidError

EDGE = 2.0
"""Value of `edge`: every change of a signal is the cause."""


def _number(given: Arguments, which: int) -> int:
    number = int(given.value(which, NUM))
    if number not in given.interpreter.interrupts.traps:
        raise RapidError(
            f"{given.name}: {given.name_of(which) or number} is not connected with a trap (CONNECT)",
            number="err_unkinum",
        )
    return number


def watch(
    given: Arguments, which: int, name: str, kind: str, fires: Callable[[Any, Any], bool], period: float = 0.0
) -> None:
    """Watch a cause of the interrupt that stands as an argument."""
    recorder = given.interpreter.recorder
    at = recorder.now() + period
    single, safe = "single" in given or "singlesafe" in given, "singlesafe" in given
    number = _number(given, which)
    cause = Cause(number, name, kind, given.interpreter.place, single, safe, fires, period, at)
    given.interpreter.interrupts.watch(cause)


def _digital(recorder: Recorder, given: Arguments) -> None:
    wanted = given.value(1, NUM)
    watch(given, 2, given.signal(0), "signal", lambda before, after: wanted in (EDGE, after))


def _group(recorder: Recorder, given: Arguments) -> None:
    watch(given, 1, given.signal(0), "signal", lambda before, after: True)


def _analog(recorder: Recorder, given: Arguments) -> None:
    condition, high, low, delta = (given.value(k, NUM) for k in (1, 2, 3, 4))
    name = given.signal(0)
    reference = recorder.signals.values.get(name.lower(), 0.0)
    holds: dict[float, Callable[[float], bool]] = {
        1.0: lambda value: value > high, 2.0: lambda value: value <= high,
        3.0: lambda value: value > low, 4.0: lambda value: value <= low,
        5.0: lambda value: low <= value <= high, 6.0: lambda value: not low <= value <= high,
        7.0: lambda value: True,
    }  # fmt: skip
    test = holds.get(condition, lambda value: True)

    def fires(before: float, after: float) -> bool:
        nonlocal reference  # the value at this instruction, or at the interrupt before
        if not (test(after) and abs(after - reference) > delta):
            return False
        reference = after
        return True

    watch(given, 5, name, "signal", fires)


def _timer(recorder: Recorder, given: Arguments) -> None:
    period = given.value(0, NUM)
    least = 0.01 if {"single", "singlesafe"} & set(given.named) else 0.1
    if not period >= least:
        raise RapidError(f"{given.name} of {period:g} s, expected at least {least:g}")
    watch(given, 1, f"ITimer {period:g} s", "timer", lambda before, after: True, period)


def _persistent(recorder: Recorder, given: Arguments) -> None:
    watch(given, 1, given.name_of(0), "persistent", lambda before, after: before != after)


def _elsewhere(recorder: Recorder, given: Arguments) -> None:
    watch(given, len(given) - 1, given.name, "elsewhere", lambda before, after: False)


def _change(what: str) -> Callable[[Recorder, Arguments], None]:
    def run(recorder: Recorder, given: Arguments) -> None:
        interrupts = given.interpreter.interrupts
        if what in ("disable", "enable"):
            interrupts.enabled = what == "enable"
            return
        number = int(given.value(0, NUM))
        if what == "delete":
            interrupts.delete(number)
        elif what == "sleep":
            interrupts.asleep.add(number)
        else:
            interrupts.asleep.discard(number)

    return run


# ------------------------------------------------------------------------------------------- the path


def _stop_move(recorder: Recorder, given: Arguments) -> None:
    place = given.interpreter.place
    recorder.note(place, "StopMove: the motion stops at the end of the move before")
    recorder.stop_move(place)


def _start_move(recorder: Recorder, given: Arguments) -> None:
    recorder.stopped_at = None


def _store_path(recorder: Recorder, given: Arguments) -> None:
    recorder.note(given.interpreter.place, f"{given.name}: the path is stored at the end of the move before")
    recorder.stored.append(recorder.stopped_at)
    recorder.stopped_at = None


def _restore_path(recorder: Recorder, given: Arguments) -> None:
    recorder.stopped_at = recorder.stored.pop() if recorder.stored else None


def _clear_path(recorder: Recorder, given: Arguments) -> None:
    recorder.note(given.interpreter.place, f"{given.name}: the move before is made to its end")


INSTRUCTIONS = {
    **dict.fromkeys(("ISignalDI", "ISignalDO"), Instruction(("Signal", "TriggValue", "Interrupt"), _digital)),
    **dict.fromkeys(("ISignalGI", "ISignalGO"), Instruction(("Signal", "Interrupt"), _group)),
    **dict.fromkeys(
        ("ISignalAI", "ISignalAO"),
        Instruction(("Signal", "Condition", "HighValue", "LowValue", "DeltaValue", "Interrupt"), _analog),
    ),
    "ITimer": Instruction(("Time", "Interrupt"), _timer),
    "IPers": Instruction(("Name", "Interrupt"), _persistent),
    **dict.fromkeys(("IVarValue", "IError", "IRMQMessage"), Instruction((), _elsewhere)),
    "IDelete": Instruction(("Interrupt",), _change("delete")),
    "ISleep": Instruction(("Interrupt",), _change("sleep")),
    "IWatch": Instruction(("Interrupt",), _change("watch")),
    "IDisable": Instruction((), _change("disable")),
    "IEnable": Instruction((), _change("enable")),
    "StopMove": Instruction((), _stop_move),
    "StartMove": Instruction((), _start_move),
    "StartMoveRetry": Instruction((), _start_move),
    "StorePath": Instruction((), _store_path),
    "RestoPath": Instruction((), _restore_path),
    "ClearPath": Instruction((), _clear_path),
}
"""Instructions by their names."""

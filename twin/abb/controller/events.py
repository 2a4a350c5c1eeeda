"""Events of the controller: errors, warnings and information, which traps of any task may get (IError)."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from twin.abb.rapid.arguments import Arguments
from twin.abb.rapid.instructions import watch
from twin.abb.rapid.moves import Instruction
from twin.abb.rapid.values import NUM, STRING
from twin.base.errors import RapidError, TwinError

if TYPE_CHECKING:
    from twin.abb.controller.live_recorder import LiveRecorder

STATE, WARNING, ERROR = 1, 2, 3
"""Types of events; 0 stands for all of them where traps are ordered."""

PROGRAM, MOTION, USER = 4, 5, 8
"""Domains of events, the first digit of their codes; 0 stands for all of them."""

REACH = (MOTION, 50, "Position outside reach")
CODES = {
    "err_coll_stop": (MOTION, 204, "Motion supervision"), "err_roblimit": REACH, "target": REACH,
    "other": (PROGRAM, 229, "Unhandled error"),
}  # fmt: skip
"""Domain, number and title of faults by their error or kind; from memory, not checked on a controller."""


class Event(NamedTuple):
    """Event of the controller.

    Attributes:
        t: time, in [s].
        task: name of its task, "" for the controller.
        domain: first digit of its code.
        number: rest of its code.
        type: `STATE`, `WARNING` or `ERROR`.
        title: title.
        texts: further texts.
    """

    t: float
    task: str
    domain: int
    number: int
    type: int
    title: str
    texts: tuple[str, ...] = ()


def of_fault(t: float, task: str, fault: RapidError) -> Event:
    """Return the event of a fault that ended the program of a task; its texts are task, place and reason."""
    domain, number, title = CODES.get(fault.number) or CODES.get(fault.kind) or CODES["other"]
    place = f"{PurePath(fault.file).name} line {fault.line}"
    return Event(t, task, domain, number, ERROR, title, (task, place, TwinError.__str__(fault)))


def _write(recorder: LiveRecorder, given: Arguments) -> None:
    title, name = given.value(0, STRING), recorder.task.settings.name
    texts = [given.value(1, STRING)] if len(given) > 1 else []
    texts += [given.value(one, STRING) for one in ("rl2", "rl3", "rl4") if one in given]
    number, type_ = (2, WARNING) if "w" in given else (3, STATE) if "i" in given else (1, ERROR)
    recorder.controller.report(name, f"{given.name}: {': '.join([title, ' '.join(texts)])}")
    recorder.controller.enter(Event(recorder.now(), name, USER, number, type_, title, tuple(texts)))


def _order(recorder: LiveRecorder, given: Arguments) -> None:
    domain, type_ = given.value(0, NUM), given.value(1, NUM)
    number = given.optional("errorid", NUM, None)

    def fires(before: object, event: Event) -> bool:
        wanted = ((domain, event.domain), (type_, event.type), (number or 0, event.number))
        return all(one in (0.0, found) for one, found in wanted)

    watch(given, 2, "", "event", fires)


def _get(recorder: LiveRecorder, given: Arguments) -> None:
    given.cell(0).value = given.interpreter.interrupts.present


def _read(recorder: LiveRecorder, given: Arguments) -> None:
    event = given.opaque(0, Event, None)
    if event is None:
        given.interpreter.raise_error("err_tr_data", f"{given.name_of(0)} has no data of an event")
    for which, value in enumerate((event.domain, event.number, event.type), start=1):
        given.cell(which).value = float(value)
    given.give("title", event.title[:80])
    for k in range(1, 6):
        given.give(f"str{k}", event.texts[k - 1][:80] if k <= len(event.texts) else "")


INSTRUCTIONS: dict[str, Instruction] = {
    name: Instruction(tuple(arguments.split()), run)  # type: ignore[arg-type]
    for name, arguments, run in (
        ("ErrWrite", "Header Reason", _write), ("IError", "ErrorDomain ErrorType Interrupt", _order),
        ("GetTrapData", "TrapEvent", _get),
        ("ReadErrData", "TrapEvent ErrorDomain ErrorId ErrorType", _read),
    )
}  # fmt: skip
"""Instructions by their names."""

"""The arm and the signals: joint angles, pose and mechanical unit, inputs and outputs."""

from __future__ import annotations

import numpy as np

from twin.abb.rapid.values import PREDEFINED, Record, copied, text_of
from twin.abb.rws.cabinet import Cabinet, Route
from twin.abb.rws.exchange import DONE, Answer, Condition, Item, Refused, Request
from twin.abb.rws.rapid import symbols_of
from twin.abb.rws.system import ARM

EXTERNAL_AXES = "abcdef"
COORDINATES = "base", "world", "word", "tool", "wobj", ""
"""Coordinate systems of a pose; one C++ client writes `Word`."""


def _number(value: float) -> str:
    return f"{value:.8g}".replace("e", "E")


def _check_unit(request: Request) -> None:
    if (unit := request.part["unit"]).upper() != ARM:
        raise Refused(Condition.NO_ADDRESS, f"there is no mechanical unit {unit}, expected {ARM}")


def _units(cabinet: Cabinet, request: Request) -> Answer:
    fields = {"mode": "Activated", "activation-allowed": "TRUE"}
    return Answer([Item("ms-mechunit-li", ARM, fields)], page=100)


def _unit(cabinet: Cabinet, request: Request) -> Answer:
    """Describe the unit: what does not change, what does, or both; no text is empty, which clients refuse."""
    _check_unit(request)
    task = next((t.settings.name for t in cabinet.controller.tasks.values() if t.settings.moves), "T_ROB1")
    n = str(cabinet.controller.robot.n)
    static = {
        "task-name": task, "is-integrated-unit": "NoIntegratedUnit",
        "has-integrated-unit": "NoIntegratedUnit", "type": "TCPRobot", "axes": n, "axes-total": n,
    }  # fmt: skip
    dynamic = {
        "mode": "Activated", "status": "0", "jog-mode": "AxisGroup1", "coord-system": "Base",
        "tool-name": "tool0", "wobj-name": "wobj0", "payload-name": "load0", "total-payload-name": "load0",
    }  # fmt: skip
    which = request.query.get("resource", "")
    fields = {"static": static, "dynamic": dynamic}.get(which, static | dynamic)
    return Answer([Item("ms-mechunit", ARM, fields)])


def _jointtarget(cabinet: Cabinet, request: Request) -> Answer:
    _check_unit(request)
    degrees = np.degrees(cabinet.controller.arm.q)
    fields = {f"rax_{k}": _number(one) for k, one in enumerate(degrees, 1)}
    fields |= {f"eax_{axis}": "9E+09" for axis in EXTERNAL_AXES}
    return Answer([Item("ms-jointtarget", "jointtarget", fields)])


def _robtarget(cabinet: Cabinet, request: Request) -> Answer:
    """Compute the pose of a tool beside the cycles, from joint angles and frames that a cycle has given."""
    _check_unit(request)
    coordinate = request.query.get("coordinate", "").lower()
    if coordinate not in COORDINATES:
        raise Refused(
            Condition.ARGUMENT, f"coordinate: expected Base, World, Tool or Wobj, got {coordinate!r}"
        )

    def state() -> tuple[np.ndarray, Record, Record]:
        tool = _frame(cabinet, request, "tool", "tooldata", "tool0")
        work_object = _frame(cabinet, request, "wobj", "wobjdata", "wobj0")
        return cabinet.controller.arm.q.copy(), tool, work_object

    q, tool, work_object = cabinet.call(state)
    if coordinate not in ("wobj", ""):
        work_object = PREDEFINED["wobj0"].value
    target = cabinet.controller.unit.kinematics.target(tool, work_object, q)
    if coordinate == "tool":  # the tool in its axes
        target = target.changed(trans=Record("pos", [0.0] * 3), rot=Record("orient", [1.0, 0.0, 0.0, 0.0]))
    names = ("x", "y", "z", "q1", "q2", "q3", "q4", "cf1", "cf4", "cf6", "cfx")
    fields = {name: text_of(value) for name, value in zip(names, target.numbers(), strict=False)}
    for axis in EXTERNAL_AXES:  # clients read either of the names
        fields |= {f"eax{axis}": "9E+09", f"eax_{axis}": "9E+09"}
    return Answer([Item("ms-robtargets", "robtarget", fields)])


def _frame(cabinet: Cabinet, request: Request, name: str, type_: str, default: str) -> Record:
    """Return a tool or work object by the name in the query."""
    wanted = request.query.get(name, default)
    if wanted.lower() == default:
        return PREDEFINED[default].value
    for task in cabinet.controller.tasks.values():
        for one in symbols_of(task):
            is_named = one.declaration.name.lower() == wanted.lower()
            if is_named and one.cell.type == type_ and not one.cell.dimensions:
                return copied(task.interpreter.read(one.cell))
    raise Refused(Condition.ARGUMENT, f"{name}: there is no {type_} {wanted}")


UNIT = "rw/motionsystem/mechunits/{unit}"


BINARY = "DI", "DO"


def signal_name(cabinet: Cabinet, path: str) -> str:
    """Return the name of a signal in lower case from a path [network/unit/]name.

    Network and unit are ignored: clients write those of another controller.

    Raises:
        Refused: there is no such signal.
    """
    name = path.split("/")[-1].lower()
    if name not in cabinet.controller.signals:
        raise Refused(Condition.NO_ADDRESS, f"there is no signal {path.split('/')[-1]}")
    return name


def signal_text(value: float) -> str:
    """Return the value of a signal as a text."""
    return f"{value:.7g}"


def _signal_item(name: str, type_: str, value: float, kind: str) -> Item:
    fields = {"name": name, "type": type_, "category": "", "lvalue": signal_text(value)}
    return Item(kind, name, fields | {"lstate": "simulated"})


def _signals(cabinet: Cabinet, request: Request) -> Answer:
    signals = cabinet.controller.signals
    names, values = cabinet.call(lambda: (sorted(signals.names), dict(signals.values)))
    found = [_signal_item(n, signals.types.get(n, "DO"), values.get(n, 0.0), "ios-signal-li") for n in names]
    return Answer(found, page=100)


def _signal(cabinet: Cabinet, request: Request) -> Answer:
    signals, name = cabinet.controller.signals, signal_name(cabinet, request.part["signal"])
    kind = "ios-signal" if cabinet.version == 1 else "ios-signal-li"
    return Answer([_signal_item(name, signals.types.get(name, "DO"), signals.values.get(name, 0.0), kind)])


def _set_signal(cabinet: Cabinet, request: Request) -> Answer:
    name = signal_name(cabinet, request.part["signal"])
    type_ = cabinet.controller.signals.types.get(name, "")
    text = request.given("lvalue")
    try:
        value = float(text)
        if not abs(value) < 1e38 or (type_ in BINARY and value not in (0.0, 1.0)):
            raise ValueError
    except ValueError:
        wanted = "0 or 1" if type_ in BINARY else "a number"
        raise Refused(Condition.ARGUMENT, f"lvalue of {name}: expected {wanted}, got {text!r}") from None
    cabinet.controller.signals.write(name, value)
    return DONE


SIGNAL = "rw/iosystem/signals/{signal...}"


ROUTES = (
    Route("GET", "rw/motionsystem/mechunits", _units),
    Route("GET", UNIT, _unit),
    Route("GET", f"{UNIT}/jointtarget", _jointtarget),
    Route("GET", f"{UNIT}/robtarget", _robtarget, waits=True),
    Route("GET", "rw/iosystem/signals", _signals, waits=True),
    Route("GET", SIGNAL, _signal),
    Route("POST", SIGNAL, _set_signal, "set", f"{SIGNAL}/set-value"),
)  # fmt: skip

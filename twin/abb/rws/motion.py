"""The arm and the signals: joint angles, pose and mechanical unit, inputs and outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from twin.abb.rapid.values import PREDEFINED, Record, copied, text_of
from twin.abb.rws.cabinet import NONE, Cabinet, Fields, Route, listed, shown
from twin.abb.rws.exchange import DONE, Answer, Condition, Item, Refused, Request
from twin.abb.rws.panel import checked
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


def _jointtarget(cabinet: Cabinet, request: Request) -> Fields:
    _check_unit(request)
    degrees = np.degrees(cabinet.controller.arm.q)
    fields = {f"rax_{k}": _number(one) for k, one in enumerate(degrees, 1)}
    return fields | {f"eax_{axis}": "9E+09" for axis in EXTERNAL_AXES}


def _pose(cabinet: Cabinet, request: Request) -> list[str]:
    """Compute the pose of a tool beside the cycles, from joint angles and frames that a cycle has given."""
    _check_unit(request)
    coordinate = request.query.get("coordinate", "").lower()
    if coordinate not in COORDINATES:
        expected = "expected Base, World, Tool or Wobj"
        raise Refused(Condition.ARGUMENT, f"coordinate: {expected}, got {coordinate!r}")

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
    return [text_of(value) for value in target.numbers()[:11]]


POSE = "x", "y", "z", "q1", "q2", "q3", "q4"


def _named(pose: list[str], *configuration: str) -> dict[str, str]:
    return dict(zip((*POSE, *configuration), pose, strict=True))


def _robtarget(cabinet: Cabinet, request: Request) -> Answer:
    fields = _named(_pose(cabinet, request), "cf1", "cf4", "cf6", "cfx")
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


def _cartesian(cabinet: Cabinet, request: Request) -> Answer:
    names = ("j1", "j4", "j6", "jx") if cabinet.version == 1 else ("cf1", "cf4", "cf6", "cfx")
    return Answer([Item("ms-mechunit-cartesian", "cartesian", _named(_pose(cabinet, request), *names))])


def _axis(cabinet: Cabinet, request: Request) -> Answer:
    _check_unit(request)
    axis, n = request.part["axis"], cabinet.controller.robot.n
    if axis not in map(str, range(1, n + 1)):
        raise Refused(Condition.ARGUMENT, f"there is no axis {axis}, expected 1 to {n}")
    status = Item("ms-mechunit-axisstatus", "axisstatus", {"axis-status": "Synchronized"})
    return Answer([status, Item("ms-mechunit-logicalaxis", "logicalaxis", {"logical-axis": axis})])


def _is_changed(cabinet: Cabinet, request: Request) -> Fields:
    """Return whether the motion's configuration changed since a count; it never changes here."""
    count = request.part.get("count") or request.query.get("changecount", "")
    if not re.fullmatch(r"-?[0-9]+", count):
        raise Refused(Condition.ARGUMENT, f"changecount: expected a number, got {count!r}")
    name = "changestate" if cabinet.version == 1 else "change-state"
    return {name: "FALSE" if int(count) == 0 else "TRUE"}


UNIT = "rw/motionsystem/mechunits/{unit}"


BINARY, INPUTS = ("DI", "DO"), ("DI", "GI", "AI")
DEVICES = "Local/DRV_1", "Local/PANEL"  # of every controller, with their network


def _path(cabinet: Cabinet, name: str) -> str:
    """Return the path [network/device/]name of a signal by its name in lower case."""
    signals = cabinet.controller.signals
    device = signals.tables.get(name, {}).get("device", "")
    place = f"{device if '/' in device or not device else f'Local/{device}'}/"
    return place.lstrip("/") + signals.names.get(name, name)


def signal_name(cabinet: Cabinet, path: str) -> str:
    """Return the name of a signal in lower case from a path [network/device/]name.

    Clients write network and device of another controller, which are ignored unless the services are strict.

    Raises:
        Refused: there is no such signal.
    """
    name = path.split("/")[-1].lower()
    if name not in cabinet.controller.signals:
        raise Refused(Condition.NO_ADDRESS, f"there is no signal {path.split('/')[-1]}")
    if cabinet.strict and "/" in path and path.lower() != _path(cabinet, name).lower():
        _refuse(cabinet, Condition.NO_ADDRESS, f"there is no signal {path}, it is {_path(cabinet, name)}")
    return name


def _refuse(cabinet: Cabinet, condition: Condition, sentence: str) -> None:
    """Refuse what only strict services do, with a line of the session for who wonders why."""
    cabinet.say_once(sentence)
    raise Refused(condition, sentence)


def signal_text(value: float) -> str:
    """Return the value of a signal as a text."""
    return f"{value:.7g}"


def _check_writable(cabinet: Cabinet, name: str, value: bool = True) -> None:
    """Raise `Refused` if a remote client of a controller may not write, or simulate, a signal."""
    signals = cabinet.controller.signals
    table = {"access": "Default", **signals.tables.get(name, {})}
    level = f'its access level is {table["access"]}: remote clients write signals with access = "All"'
    is_input = signals.types.get(name) in INPUTS and not cabinet.simulated.get(name)
    for holds, condition, reason in (
        (table["access"] != "All", Condition.REJECTED, level),
        ("state" in table, Condition.REJECTED, f"it is the state {table.get('state')} of the controller"),
        ("follows" in table, Condition.FOLLOWS_ANOTHER, f"it follows {table.get('follows')}"),
        (value and is_input, Condition.NOT_SIMULATED_INPUT, "it is an input whose lstate is not simulated"),
    ):
        if cabinet.strict and holds:
            _refuse(cabinet, condition, f"{name} is not written: {reason}")


def _signal_item(cabinet: Cabinet, name: str, value: float, kind: str) -> Item:
    signals = cabinet.controller.signals
    fields = {
        "name": signals.names[name], "type": signals.types.get(name, "DO"), "category": "",
        "lvalue": signal_text(value),
        "lstate": "simulated" if cabinet.simulated.get(name, not cabinet.strict) else "not simulated",
        "write-access-level": signals.tables.get(name, {}).get("access", "Default"),
    }  # fmt: skip
    return Item(kind, _path(cabinet, name), fields)


def _signals(cabinet: Cabinet, request: Request) -> Answer:
    """Return the signals, or those that a client searches."""
    signals = cabinet.controller.signals
    names, values = cabinet.call(lambda: (sorted(signals.names), dict(signals.values)))
    items = [_signal_item(cabinet, n, values.get(n, 0.0), "ios-signal-li") for n in names]
    return Answer(_found(items, dict(request.form)), page=100)


KEYS = "name", "device", "network", "category", "type", "lstate"


def _found(items: list[Item], wanted: Mapping[str, str]) -> list[Item]:
    """Return the items with a part of a name and other values that a client searches; `name2` narrows it."""

    def has(item: Item, key: str, value: str) -> bool:
        network, device, *_ = item.title.split("/") if "/" in item.title else ("", "")
        known = {"network": network, "device": device}.get(key) or str(item.fields.get(key, ""))
        return value.lower() in known.lower() if key == "name" else value.lower() == known.lower()

    pairs = [(key.rstrip("2"), value) for key, value in wanted.items() if key.rstrip("2") in KEYS and value]
    return [one for one in items if all(has(one, *pair) for pair in pairs)]


def _devices(cabinet: Cabinet, request: Request) -> Answer:
    """Return the devices, those of a network, or those that a client searches."""
    own = (_path(cabinet, name).rpartition("/")[0] for name in cabinet.controller.signals.tables)
    state = {"lstate": "enabled", "pstate": "running", "address": "-"}
    paths = sorted({*DEVICES, *filter(None, own)})
    items = [Item("ios-device-li", path, {"name": path.partition("/")[2], **state}) for path in paths]
    items = _found(items, {**request.query, **dict(request.form), **request.part})
    if request.part and not items:
        raise Refused(Condition.NO_ADDRESS, f"there is no {'/'.join(request.part.values())}")
    return Answer(items, page=0 if request.part else 100)


def _networks(cabinet: Cabinet, request: Request) -> Answer:
    answer, state = _devices(cabinet, request), {"pstate": "running", "lstate": "started"}
    names = dict.fromkeys(one.title.partition("/")[0] for one in answer.items)
    return Answer([Item("ios-network-li", one, {"name": one, **state}) for one in names], page=answer.page)


def _signal(cabinet: Cabinet, request: Request) -> Answer:
    name = signal_name(cabinet, request.part["signal"])
    kind = "ios-signal" if cabinet.version == 1 else "ios-signal-li"
    return Answer([_signal_item(cabinet, name, cabinet.controller.signals.values.get(name, 0.0), kind)])


def _simulate(cabinet: Cabinet, request: Request) -> Answer:
    """Simulate a signal, or no longer: clients of strict services write inputs that are simulated."""
    name = signal_name(cabinet, request.part["signal"])
    _check_writable(cabinet, name, value=False)
    state = checked(request, "lstate", ("simulated", "not simulated"))
    cabinet.simulated[name] = state == "simulated"
    return DONE


def _set_signal(cabinet: Cabinet, request: Request) -> Answer:
    if request.given("lstate", "") and not request.given("lvalue", ""):
        return _simulate(cabinet, request)
    name = signal_name(cabinet, request.part["signal"])
    type_ = cabinet.controller.signals.types.get(name, "")
    _check_writable(cabinet, name)
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
    listed("rw/motionsystem/mechunits", "ms-mechunit-li",
           lambda c, r: {ARM: {"mode": "Activated", "activation-allowed": "TRUE"}}),
    Route("GET", UNIT, _unit),
    shown(f"{UNIT}/jointtarget", "ms-jointtarget", _jointtarget),
    Route("GET", f"{UNIT}/robtarget", _robtarget, waits=True),
    Route("GET", f"{UNIT}/cartesian", _cartesian, waits=True),
    shown(f"{UNIT}/baseframe", "ms-mechunit-baseframe",
          lambda c, r: _check_unit(r) or {name: "1" if name == "q1" else "0" for name in POSE}),
    shown(f"{UNIT}/axes", "ms-mechunit-axes",
          lambda c, r: _check_unit(r) or {"axes": str(c.controller.robot.n)}),
    Route("GET", f"{UNIT}/axes/{{axis}}", _axis),
    shown("rw/motionsystem", "ms", lambda c, r: {"change-count": "0", "mechunit-name": ARM}),
    shown("rw/motionsystem/checkchangecount", "checkchangecount", _is_changed, "check-changecount",
          "rw/motionsystem/checkchangecount/{count}"),
    shown("rw/motionsystem/errorstate", "ms-errorstate",
          lambda c, r: {"err-state": "HPJ_OK", "err-count": "0"}, "ms-errorstate-li"),
    shown("rw/motionsystem/nonmotionexecution", "ms-nonmotionexecution", lambda c, r: {"mode": "OFF"}),
    *(Route("GET", f"rw/iosystem/networks{one}", _networks) for one in ("", "/{network}")),
    *(Route("GET", f"rw/iosystem/devices{one}", _devices) for one in ("", "/{network}/{device}")),
    Route("POST", "rw/iosystem/devices", _devices, "search", "rw/iosystem/devices"),
    Route("POST", "rw/iosystem/signals", _signals, "signal-search", waits=True),
    Route("POST", "rw/iosystem/signals", _signals, "signal-searchex",
          "rw/iosystem/signals/signal-search-ex", waits=True),
    Route("POST", NONE, _simulate, path_2="rw/iosystem/signals/{signal...}/set-lstate"),
    Route("GET", "rw/iosystem/signals", _signals, waits=True),
    Route("GET", SIGNAL, _signal),
    Route("POST", SIGNAL, _set_signal, "set", f"{SIGNAL}/set-value"),
)  # fmt: skip

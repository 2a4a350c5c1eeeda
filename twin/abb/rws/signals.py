"""Signals of the cell."""

from __future__ import annotations

from twin.abb.rws.cabinet import Cabinet, Route
from twin.abb.rws.exchange import DONE, Answer, Condition, Item, Refused, Request

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


def _item(name: str, type_: str, value: float, kind: str) -> Item:
    fields = {
        "name": name,
        "type": type_,
        "category": "",
        "lvalue": signal_text(value),
        "lstate": "simulated",
    }
    return Item(kind, name, fields)


def _signals(cabinet: Cabinet, request: Request) -> Answer:
    signals = cabinet.controller.signals
    names, values = cabinet.call(lambda: (sorted(signals.names), dict(signals.values)))
    found = [_item(n, signals.types.get(n, "DO"), values.get(n, 0.0), "ios-signal-li") for n in names]
    return Answer(found, page=100)


def _signal(cabinet: Cabinet, request: Request) -> Answer:
    signals, name = cabinet.controller.signals, signal_name(cabinet, request.part["signal"])
    kind = "ios-signal" if cabinet.version == 1 else "ios-signal-li"
    return Answer([_item(name, signals.types.get(name, "DO"), signals.values.get(name, 0.0), kind)])


def _set(cabinet: Cabinet, request: Request) -> Answer:
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
    Route("GET", "rw/iosystem/signals", _signals, waits=True),
    Route("GET", SIGNAL, _signal),
    Route("POST", SIGNAL, _set, "set", f"{SIGNAL}/set-value"),
)

"""Signals of a program, and the interrupts that they, persistents and timers cause."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from twin.abb.rapid import syntax_tree as st
from twin.abb.rapid.values import PREDEFINED, SIGNAL_TYPES, one_letter_beside

_FIRST = """dinput doutput ainput aoutput ginput goutput testdi setdo setao setgo set reset pulsedo invertdo
    waitdi waitdo waitai waitao waitgi waitgo isignaldi isignaldo isignalai isignalao isignalgi isignalgo
    searchl searchj searchc validio ionorunit getsignalorigin ginputdnum goutputdnum"""
SIGNAL_ARGUMENTS = {
    **dict.fromkeys(_FIRST.split(), (0,)),
    **dict.fromkeys(("movejdo", "moveldo"), (4,)),
    "movecdo": (5,),
    "aliasio": (0, 1),
}
"""Places of the signals among the required arguments of instructions and functions."""

SIGNAL_OPTIONS = "dibreak", "dobreak", "dop", "gop", "aop", "signaldo", "signaldi"
"""Optional arguments that are signals."""

Inputs = Mapping[str, "float | Sequence[tuple[float, float]]"]
"""Values of inputs by their names; pairs of a time in [s] and a value for one that changes."""


class Signal(str):
    """Name of a signal, as the value of a parameter or of data that AliasIO connects."""


class Connection(NamedTuple):
    """Cross connection: a signal that follows another one after a delay in [s], inverted if so wanted."""

    follower: str
    delay: float = 0.0
    inverts: bool = False


class Signals:
    """Values of the signals of a cell.

    Args:
        inputs: values that are given.
        names: names in the modules that are signals although nothing declares them, in lower case.
        declared: types of the signals of the controller's configuration by their names.

    Attributes:
        names: names as they are declared or written, by names in lower case.
        values: values by names in lower case.
        assumed: signals that were read without a value, with the place of the first reading.
        given: names of the inputs that are given.
        types: types of the signals of the controller's configuration, by their names in lower case.
        tables: tables of the station by the names of signals in lower case; web services use `device`,
            `access`, `state` and `follows`.
        connections: signals that follow another one, by its name in lower case.
        on_change: function that is called with a name and its values before and after a change.
    """

    def __init__(self, inputs: Inputs, names: Iterable[str] = (), declared: Mapping[str, str] | None = None):
        self.values: dict[str, float] = {}
        self.assumed: dict[str, tuple[str, tuple[str, int]]] = {}
        self.given = {name.lower() for name in inputs}
        self.types = {name.lower(): type_.upper() for name, type_ in (declared or {}).items()}
        self.names = {name.lower(): name for name in (*names, *inputs, *(declared or {}))}
        self.on_change: Callable[[str, float, float], None] = lambda name, before, after: None
        steps = [
            (float(t), name.lower(), float(value))
            for name, given in inputs.items()
            for t, value in ([(0.0, given)] if isinstance(given, (int, float)) else given)
        ]
        self._changes = sorted(steps, reverse=True)
        self.connections: dict[str, list[Connection]] = {}
        self.tables: dict[str, Mapping[str, Any]] = {}
        self._t = 0.0
        self.advance(0.0)

    def __contains__(self, name: str) -> bool:
        return name.lower() in self.names

    def read(self, name: str, place: tuple[str, int] = ("", 0)) -> float:
        """Return the value of a signal, 0 if nothing set it."""
        key = name.lower()
        if key not in self.values and key not in self.given:
            self.assumed.setdefault(key, (name, place))
        return self.values.get(key, 0.0)

    def write(self, name: str, value: float) -> None:
        """Change a signal."""
        key = name.lower()
        before = self.values.get(key, 0.0)
        self.names.setdefault(key, name)
        self.values[key] = value
        if value != before:
            self.on_change(key, before, value)
            for one in self.connections.get(key, ()):
                self.schedule(one.delay, one.follower, 1.0 - value if one.inverts else value)

    def schedule(self, delay: float, name: str, value: float) -> None:
        """Change a signal after a time, in [s]; at once without a delay."""
        if delay > 0:
            self._changes.insert(0, (self._t + delay, name.lower(), value))
            self._changes.sort(key=lambda change: -change[0])  # stable: at equal times in order
        else:
            self.write(name, value)

    @property
    def next_change(self) -> float | None:
        """Time of the next change of an input, in [s]; None if there is none."""
        return self._changes[-1][0] if self._changes else None

    def advance(self, t: float) -> None:
        """Change the signals that change until a time, in [s]."""
        self._t = t
        while self._changes and self._changes[-1][0] <= t + 1e-9:
            _, name, value = self._changes.pop()
            self.write(name, value)

    def may_become(self, name: str, value: float) -> None:
        """Give a signal without a given value the one that a program waits for."""
        if name.lower() not in self.given:
            self.write(name, value)


def input_values(text: str) -> Inputs:
    """Return the values of inputs in a text such as `part_there=1,count=3,di1=1@2.5`.

    `di1=1@2.5` is an input that becomes 1 after 2.5 s.

    Raises:
        ValueError: the text has another form.
    """
    found: dict[str, Any] = {}
    for part in text.split(",") if text else ():
        name, _, given = part.partition("=")
        value, _, since = given.partition("@")
        name = name.strip()
        try:
            if not since:
                found[name] = float(value)
                continue
            before = found.get(name, ())
            before = ((0.0, before),) if isinstance(before, float) else before
            found[name] = (*before, (float(since), float(value)))
            if not float(since) >= 0:
                raise ValueError
        except ValueError:
            raise ValueError(
                f"expected inputs as part_there=1,count=3, or di1=1@2.5 from 2.5 s on, got {text!r}"
            ) from None
    return found


# ------------------------------------------------------------------------------------- names of signals


def signals_of(modules: Sequence[st.Module], known: Iterable[str] = ()) -> dict[str, str]:
    """Return the undeclared names that stand where signals stand, as written, by their names in lower case.

    That is as an argument of an instruction for signals, compared with 0, 1, high or low, or as the value of
    a number. A name beside a declared one, or beside a known signal, is none, nor is one that is calculated
    with elsewhere.
    """
    shared = {one.name.lower(): one for m in modules for one in m.items if one.scope != "LOCAL"}
    found: dict[str, str] = {}
    numbers: set[str] = set()
    everything = set(shared) | set(known)
    for module in modules:
        names = shared | {one.name.lower(): one for one in module.items}
        for routine in (one for one in module.items if isinstance(one, st.Routine)):
            inner = {one.name.lower(): one for _, group in routine.parameters for one in group}
            inner |= {data.name.lower(): data for data in routine.data}
            everything |= set(inner)
            for name, is_signal in _uses((routine.block, *routine.handlers.values()), names | inner):
                key = name.lower()
                if key in names or key in inner or key in PREDEFINED:
                    continue
                if is_signal:
                    found.setdefault(key, name)
                else:
                    numbers.add(key)
    return {
        key: name for key, name in found.items()
        if key not in numbers and not one_letter_beside(key, everything)
    }  # fmt: skip


def _uses(tree: Any, names: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield names that a program uses, and whether as a signal; otherwise they are used as numbers."""
    waiting = [tree]  # instead of recursion, which deep programs exhaust
    while waiting:
        node = waiting.pop()
        if isinstance(node, st.Binary):
            pair = (node.left, node.right)
            if node.operator in ("=", "<>"):
                for one, other in (pair, pair[::-1]):
                    if _is_plain(one) and _is_level(other):
                        yield one.name, True
            elif node.operator in ("+", "-", "*", "/", "DIV", "MOD"):
                yield from ((one.name, False) for one in pair if _is_plain(one))
        elif isinstance(node, st.Assign) and _is_plain(node.target):
            yield node.target.name, False
            type_ = getattr(names.get(node.target.name.lower()), "type", "")
            if type_.lower() in ("num", "dnum", "byte") and _is_plain(node.value):
                yield node.value.name, True
        elif isinstance(node, st.For):
            yield from ((one.name, False) for one in (node.first, node.last) if _is_plain(one))
            yield node.name, False
        elif isinstance(node, (st.Call, st.Function)):
            yield from _arguments(node, names)
        waiting += [one for one in reversed(node) if isinstance(one, (tuple, list))]


def _arguments(node: st.Call | st.Function, names: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield the names of signals among the arguments of a call."""
    name = node.name.lower() if isinstance(node.name, str) else ""
    places: Iterable[int] = SIGNAL_ARGUMENTS.get(name, ())
    if isinstance(called := names.get(name), st.Routine):
        required = [group[0] for is_optional, group in called.parameters if not is_optional]
        places = [k for k, one in enumerate(required) if one.type.lower() in SIGNAL_TYPES]
    given = [one.value for one in node.arguments if one.name is None or one.required]
    for k in places:
        if k < len(given) and _is_plain(given[k]):
            yield given[k].name, True
    for one in node.arguments:
        if one.name in SIGNAL_OPTIONS and _is_plain(one.value):
            yield one.value.name, True


def _is_plain(node: Any) -> bool:
    return isinstance(node, st.Variable) and not node.path


def _is_level(node: Any) -> bool:
    if isinstance(node, st.Literal):
        return node.value in (0.0, 1.0)
    return _is_plain(node) and node.name.lower() in ("high", "low")


MOST_PENDING = 1000
"""Largest number of traps that wait; the oldest are dropped (ours)."""


@dataclass(eq=False)
class Cause:
    """Cause of an interrupt.

    Attributes:
        number: number of the interrupt.
        name: what causes it, for messages: a signal, a persistent, or a timer.
        kind: signal, persistent or timer.
        place: file and line of the instruction.
        single: whether it is the cause once.
        safe: whether it counts while the execution is stopped, too.
        fires: function that returns whether a change of values (before, after) is the cause.
        period: time between two interrupts of a timer, in [s].
        at: time of a timer's next interrupt, in [s].
    """

    number: int
    name: str
    kind: str
    place: tuple[str, int]
    single: bool = False
    safe: bool = False
    fires: Callable[[Any, Any], bool] = field(default=lambda before, after: True)
    period: float = 0.0
    at: float = 0.0


class Interrupts:
    """Interrupts of a program.

    Attributes:
        traps: routine of the trap by the number of the interrupt.
        pending: numbers of interrupts whose traps have not run yet, with what their causes became.
        present: what the cause of the trap that runs became.
        stopped: whether the execution is stopped: causes do not count then, unless they are safe.
        asleep: numbers of interrupts that ISleep deactivated.
        enabled: whether traps run (IDisable, IEnable).
        fired: causes that came.
        causes: causes that are watched.
    """

    def __init__(self) -> None:
        self.traps: dict[int, Any] = {}
        self.pending: deque[tuple[int, Any]] = deque(maxlen=MOST_PENDING)
        self.present: Any = None
        self.stopped = False
        self.asleep: set[int] = set()
        self.enabled = True
        self.running = False
        self.causes: list[Cause] = []
        self.ever: list[Cause] = []
        self.fired: set[str] = set()

    @property
    def due(self) -> bool:
        """Whether a trap is to run now; a trap is not interrupted by another one."""
        return bool(self.pending) and self.enabled and not self.running

    def connect(self, trap: Any) -> int:
        """Return the number of a new interrupt of a trap."""
        number = max(self.traps, default=0) + 1
        self.traps[number] = trap
        return number

    def watch(self, cause: Cause) -> None:
        """Watch a cause, in place of the same one of this interrupt."""
        same = cause.number, cause.kind, cause.name
        self.causes = [one for one in self.causes if (one.number, one.kind, one.name) != same]
        self.causes.append(cause)
        self.ever.append(cause)

    def delete(self, number: int) -> None:
        """Forget an interrupt, its causes, and what it has pending."""
        self.traps.pop(number, None)
        self.asleep.discard(number)
        self.causes = [one for one in self.causes if one.number != number]
        for one in [one for one in self.pending if one[0] == number]:
            self.pending.remove(one)

    def changed(self, kind: str, name: str, before: Any, after: Any) -> None:
        """Take note of the change of a signal or persistent."""
        for cause in list(self.causes):
            if cause.kind == kind and cause.name.lower() == name.lower() and cause.fires(before, after):
                self._fire(cause, after)

    @property
    def next_time(self) -> float | None:
        """Time of the next timer, in [s]; None if there is none."""
        return min((one.at for one in self.causes if one.kind == "timer"), default=None)

    def advance(self, t: float) -> None:
        """Let timers fire that end until a time, in [s]."""
        for cause in list(self.causes):
            if self.stopped and cause.kind == "timer" and not cause.single:  # none is made up for
                cause.at += max(0.0, math.floor((t - cause.at) / cause.period) + 1.0) * cause.period
            while cause.kind == "timer" and cause.at <= t + 1e-9 and cause in self.causes:
                self._fire(cause, t)
                cause.at += cause.period

    def interrupt(self, number: int, value: Any = None) -> None:
        """Let the trap of an interrupt run, unless it is asleep or deleted."""
        if number in self.traps and number not in self.asleep:
            self.pending.append((number, value))

    def _fire(self, cause: Cause, value: Any) -> None:
        if self.stopped and not cause.safe:
            return
        if cause.number not in self.asleep:
            self.pending.append((cause.number, value))
            self.fired.add(cause.name)
        if cause.single:
            self.causes.remove(cause)

    def never_fired(self) -> list[Cause]:
        """Return the causes that never came, one for each name."""
        names: dict[str, Cause] = {}
        for cause in self.ever:
            if cause.name not in self.fired:
                names.setdefault(cause.name, cause)
        return list(names.values())

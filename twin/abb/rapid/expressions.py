"""Data objects, names and expressions of RAPID programs; `twin.rapid.program` executes the statements."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from twin.abb.rapid import syntax_tree as st
from twin.abb.rapid.signals import Interrupts, Signal, Signals
from twin.abb.rapid.values import (
    BOOL,
    NUM,
    PREDEFINED,
    SIGNAL_TYPES,
    STATES,
    STRING,
    Record,
    Types,
    copied,
    one_letter_beside,
    rounded,
    text_of,
)
from twin.base.errors import RapidError, near


class Cell:
    """Data object: value, type and kind (CONST, PERS, FIXED, VAR or IN for a parameter).

    FIXED is a persistent of the controller that a program cannot change: `tool0`, `wobj0` and `load0`.

    The initial value of a module's data is computed when it is first needed, since it may use data that is
    declared later.
    """

    __slots__ = ("dimensions", "kind", "pending", "type", "value")

    def __init__(self, type_: str, dimensions: int, kind: str, value: Any = None) -> None:
        self.type, self.dimensions, self.kind, self.value = type_, dimensions, kind, value
        self.pending: Callable[[], Any] | None = None


class Part:
    """Component of a record or element of an array, as a data object."""

    __slots__ = ("dimensions", "items", "key", "kind", "type")

    def __init__(self, items: list[Any], key: int, type_: str, dimensions: int, kind: str) -> None:
        self.items, self.key, self.type, self.dimensions, self.kind = items, key, type_, dimensions, kind

    @property
    def value(self) -> Any:
        """Value of the component or element."""
        return self.items[self.key]

    @value.setter
    def value(self, value: Any) -> None:
        self.items[self.key] = value


ABSENT = Cell("absent", 0, "IN")
"""Optional parameter that was not given."""


class Scope:
    """Names of a module: its local ones, and those that all modules share."""

    def __init__(self, shared: dict[str, Any], file: str) -> None:
        self.local: dict[str, Any] = {}
        self.shared = shared
        self.file = file

    def find(self, name: str) -> Any:
        """Return the data object or routine of a name in lower case, None if there is none."""
        found = self.local.get(name)
        return self.shared.get(name) if found is None else found


class RoutineOf(NamedTuple):
    """Routine of a module: the names that it sees, and itself."""

    scope: Scope
    routine: st.Routine


@dataclass
class Frame:
    """Call of a routine: its module, its data, and the error that its handler handles."""

    scope: Scope
    routine: st.Routine
    data: dict[str, Any] = field(default_factory=dict)
    handling: float | None = None


USER_DATA = {**{f"reg{k}": NUM for k in range(1, 6)}, "clock1": "clock"}
"""Data of the module `user` that every new controller has, by their types."""

FIXED = "tool0", "wobj0", "load0"
"""Persistents of a controller that cannot be changed."""

COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Evaluator(ABC):
    """Names and expressions of the modules of one task, and what an instruction may ask of its program.

    Attributes:
        types: types of the modules.
        functions: predefined functions by their names in lower case.
        signals: signals of the cell; expressions may use them as numbers.
        shared: data objects, and routines with their scopes, that all modules share.
        places: file and line of each shared name.
        interrupts: interrupts and their traps.
        running_clocks: clocks that run, by the identities of their data objects.
        now: function that returns the planned time so far, in [s].
        watching: interrupts of all tasks that a change of a persistent may cause.
        frame: call of the current routine.
        place: file and line of the current statement.
    """

    def __init__(
        self, modules: Sequence[st.Module], functions: Mapping[str, Callable[..., Any]], signals: Signals
    ) -> None:
        self.types = Types()
        self.functions = functions
        self.signals = signals
        self.interrupts = Interrupts()
        self.watching = [self.interrupts]
        self.running_clocks: set[int] = set()
        self.now: Callable[[], float] = lambda: 0.0
        self.place = ("", 0)
        self.error_numbers: dict[str, float] = {}
        self.frame: Frame | None = None
        self.shared: dict[str, Any] = {}
        self.places: dict[str, str] = {}
        self.scopes = scopes = [Scope(self.shared, module.file) for module in modules]
        for module, scope in zip(modules, scopes, strict=True):
            self._declare_types(module, scope)
        for module, scope in zip(modules, scopes, strict=True):
            self._declare_items(module, scope)
        for name, type_ in USER_DATA.items():
            self.shared.setdefault(name, Cell(type_, 0, "VAR", self.types.initial(type_)))

    @abstractmethod
    def call_function(self, node: st.Function) -> Any:
        """Return the value of a function of the program, or of a predefined one."""

    @abstractmethod
    def call_procedure(self, name: str) -> None:
        """Call a procedure or instruction without arguments by its name."""

    # ------------------------------------------------------------------------------------ declarations

    def _declare_types(self, module: st.Module, scope: Scope) -> None:
        for item in module.items:
            if isinstance(item, st.RecordType):
                self.types.records[item.name.lower()] = tuple(
                    (name.lower(), type_.lower()) for type_, name in item.components
                )
            elif isinstance(item, st.Alias):
                self.types.aliases[item.name.lower()] = item.type.lower()

    def _declare_items(self, module: st.Module, scope: Scope) -> None:
        local: dict[str, str] = {}
        for item in module.items:
            if isinstance(item, (st.RecordType, st.Alias)):
                continue
            is_local = item.scope == "LOCAL"
            names, places = (scope.local, local) if is_local else (self.shared, self.places)
            name = item.name.lower()
            with Placed(scope.file, item.line):
                if name in names and not (isinstance(item, st.Data) and item.kind == "PERS"):
                    first = f", also in {places[name]}" if name in places else ""
                    raise RapidError(f"{item.name} is declared twice{first}", "name")
                places[name] = f"{scope.file}, line {item.line}"
                if isinstance(item, st.Routine):
                    names[name] = RoutineOf(scope, item)
                else:
                    names[name] = self.declared(item, Frame(scope, _OUTSIDE))

    def declared(self, item: st.Data, frame: Frame) -> Cell:
        """Return the data object of a declaration; its value is computed when it is needed."""
        cell = Cell(self.types.resolved(item.type), len(item.dimensions), item.kind)

        def initial() -> Any:
            before, self.frame = self.frame, frame
            try:
                with Placed(frame.scope.file, item.line):
                    sizes = [self.whole(self.evaluate(one)) for one in item.dimensions]
                    if item.initial is None:
                        return self.types.initial(cell.type, sizes)
                    value = self.evaluate(item.initial, cell.type, cell.dimensions)
                    value = copied(self.types.converted(value, cell.type, cell.dimensions))
                    _check_sizes(value, sizes, item.name)
                    return value
            finally:
                self.frame = before

        cell.pending = initial
        return cell

    def read(self, cell: Cell | Part) -> Any:
        """Return the value of a data object."""
        if isinstance(cell, Cell) and cell.pending is not None:
            initial, cell.pending = cell.pending, _cyclic
            cell.value = initial()
            cell.pending = None
        return cell.value

    def write(self, cell: Cell | Part, name: str, value: Any) -> None:
        """Write a value into a data object of a name, which may cause interrupts.

        Raises:
            RapidError: it is constant, or has another type.
        """
        if cell.kind in ("CONST", "FIXED"):
            fixed = f" ({', '.join(FIXED)} cannot be changed)" if cell.kind == "FIXED" else ""
            raise RapidError(f"{name} is constant{fixed}", "type")
        before = self.read(cell)
        cell.value = copied(self.types.converted(value, cell.type, cell.dimensions))
        if cell.kind == "PERS":
            for interrupts in self.watching:
                if interrupts.causes:
                    interrupts.changed("persistent", name, before, cell.value)

    # ------------------------------------------------------------------------------ the current routine

    @property
    def routine(self) -> str:
        """Name of the routine that runs."""
        return "" if self.frame is None else self.frame.routine.name

    @property
    def handles_errors(self) -> bool:
        """Whether the current routine has an error handler that may run."""
        frame = self.frame
        return frame is not None and "ERROR" in frame.routine.handlers and frame.handling is None

    def raise_number(self, number: float) -> NoReturn:
        """Raise an error by its number, for the handlers of the program."""
        raise Raised(number, *self.place, "")

    def raise_error(self, name: str, sentence: str) -> NoReturn:
        """Raise an error of the controller, such as `err_udpuc_comm`, for the handlers of the program."""
        raise Raised(self.error_number(name), *self.place, sentence)

    # ------------------------------------------------------------------------------------------- names

    def find(self, name: str) -> Any:
        """Return the data object, routine or None for a name, from the inside outwards."""
        key = name.lower()
        frame = self.frame
        assert frame is not None
        found = frame.data.get(key)
        if found is None:
            found = frame.scope.find(key)
        if found is None and key in PREDEFINED:
            return Cell(PREDEFINED[key].type, 0, "FIXED" if key in FIXED else "CONST", PREDEFINED[key].value)
        if found is None and key.startswith("err_"):  # controllers have some two hundred of them
            return Cell(NUM, 0, "CONST", self.error_number(key))
        return found

    def error_number(self, name: str) -> float:
        """Return the number of an error of the controller by its name in lower case."""
        if name in STATES:
            return float(STATES.index(name))
        return self.error_numbers.setdefault(name, float(len(STATES) + len(self.error_numbers)))

    def cell(self, variable: st.Variable) -> Cell | Part:
        """Return the data object of a variable, an element or a component.

        Raises:
            RapidError: there is none, or an index is out of range.
        """
        found: Any = self.find(variable.name)
        if found is None and variable.name in self.signals and not variable.path:
            return Cell(NUM, 0, "CONST", self.signals.read(variable.name, self.place))
        if not isinstance(found, (Cell, Part)):
            raise self.unknown(variable.name, found)
        if found is ABSENT:
            raise RapidError(f"the optional parameter {variable.name} was not given", "value")
        for step in variable.path:
            value = self.read(found)
            if isinstance(step, str):
                index, type_ = self.types.component(value, step)
                found = Part(value.values, index, type_, 0, found.kind)
            else:
                for one in step:
                    index = self.whole(self.evaluate(one))
                    if not found.dimensions:
                        raise RapidError(f"{variable.name} has fewer dimensions than indices", "type")
                    items = self.read(found)
                    if not 1 <= index <= len(items):
                        raise RapidError(
                            f"index {index} of {variable.name} is not in 1 to {len(items)}",
                            number="err_arrindex",
                        )
                    found = Part(items, index - 1, found.type, found.dimensions - 1, found.kind)
        return found

    def unknown(self, name: str, found: Any = None) -> RapidError:
        """Return the error of a name that is no data object."""
        assert self.frame is not None
        if found is not None:
            return RapidError(f"{name} is a routine", "name")
        known = [*self.frame.data, *self.frame.scope.local, *self.shared]
        beside = one_letter_beside(name.lower(), known)
        hint = f", did you mean {beside!r}?" if beside else near(name, known)
        hint += " Or else" if hint else ":"
        hint += " add the module that declares it, or --inputs NAME=VALUE for a signal"
        return RapidError(f"{name} is not declared{hint}", "name")

    def signal(self, node: Any) -> Signal | None:
        """Return the signal that an expression names, None if it names none."""
        if not isinstance(node, st.Variable):
            return None
        found = self.find(node.name)
        if isinstance(found, (Cell, Part)):
            found = self.cell(node)
            if found.type not in SIGNAL_TYPES:
                return None
            value = self.read(found)
            return value if isinstance(value, Signal) else Signal(node.name)
        return None if node.path or found is not None else Signal(node.name)

    # ------------------------------------------------------------------------------------- expressions

    def evaluate(self, node: Any, type_: str | None = None, dimensions: int = 0) -> Any:
        """Return the value of an expression.

        Args:
            node: expression.
            type_: type that an aggregate gets from its destination; without it, it stays a list.
            dimensions: number of dimensions of the destination.
        """
        if isinstance(node, st.Literal):
            return node.value
        if isinstance(node, st.Variable):
            if not node.path and node.name.lower() in _TRUTH:
                return _TRUTH[node.name.lower()]
            cell = self.cell(node)
            if cell.type in SIGNAL_TYPES and not cell.dimensions:
                return self.signals.read(self.signal(node) or node.name, self.place)
            return self.read(cell)
        if isinstance(node, st.Numbers):
            return self.types.converted(node.items, type_, dimensions) if type_ else node.items
        if isinstance(node, st.Aggregate):
            items = [self.evaluate(one) for one in node.items]
            return self.types.converted(items, type_, dimensions) if type_ else items
        if isinstance(node, st.Function):
            return self.call_function(node)
        if isinstance(node, st.Unary):
            return self._unary(node)
        if isinstance(node, st.Placeholder):
            raise RapidError(f"{node.text} stands for an expression that is not written yet", "syntax")
        return self._binary(node)

    def _unary(self, node: st.Unary) -> Any:
        value = self.evaluate(node.operand)
        if node.operator == "(":
            return value
        if node.operator == "NOT":
            return not self.typed(value, bool, BOOL)
        if isinstance(value, Record) and value.type == "pos":
            return Record("pos", [-one if node.operator == "-" else one for one in value.values])
        number = self.typed(value, float, NUM)
        return type(number)(-number) if node.operator == "-" else number

    def _binary(self, node: st.Binary) -> Any:
        word, left = node.operator, self.evaluate(node.left)
        if word in ("AND", "OR", "XOR"):
            left = self.typed(left, bool, BOOL)
            if word == "XOR":
                return left != self.typed(self.evaluate(node.right), bool, BOOL)
            if left == (word == "OR"):
                return left
            return self.typed(self.evaluate(node.right), bool, BOOL)
        right = self.evaluate(node.right)
        if isinstance(left, list) and isinstance(right, Record):
            left = self.types.converted(left, right.type)
        elif isinstance(right, list) and isinstance(left, Record):
            right = self.types.converted(right, left.type)
        if word in ("=", "<>"):
            return equal(left, right) == (word == "=")
        if word == "+" and isinstance(left, str):
            return _short(left + self.typed(right, str, STRING))
        if isinstance(left, Record) or isinstance(right, Record):
            return _record_operation(word, left, right)
        x, y = self.typed(left, float, NUM), self.typed(right, float, NUM)
        if word in COMPARISONS:
            return COMPARISONS[word](rounded(x, x, y), rounded(y, x, y))
        return _operation(word, x, y)

    @staticmethod
    def typed(value: Any, kind: type, name: str) -> Any:
        """Return a value of a Python type, or raise `RapidError` with the name of the RAPID type."""
        if isinstance(value, kind) or (kind is float and type(value) is int):
            return value
        raise RapidError(f"expected {name}, got {text_of(value)}", "type")

    def whole(self, value: Any) -> int:
        """Return a whole number, or raise `RapidError`."""
        number = self.typed(value, float, NUM)
        if number != round(number):
            raise RapidError(f"expected a whole number, got {text_of(number)}", "type")
        return int(number)

    def number(self, value: Any) -> float:
        """Return a number, or raise `RapidError`."""
        return float(self.typed(value, float, NUM))


class Raised(Exception):
    """Error for the handlers of the program; `args` are its number, file, line, and a sentence or ""."""


class Placed:
    """Context that adds file and line to errors that lack them."""

    __slots__ = ("file", "line")

    def __init__(self, file: str, line: int) -> None:
        self.file, self.line = file, line

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, RapidError) and not error.line:
            error.file, error.line = self.file, self.line


_OUTSIDE = st.Routine(0, "", "PROC", "", "", (), (), (), {})
"""Routine of the data of modules."""

_TRUTH = {"true": True, "false": False, "on": True, "off": False, "high": 1.0, "low": 0.0}


LONGEST_STRING = 80
"""Largest length of a string on a controller."""


def _short(text: str) -> str:
    if len(text) > LONGEST_STRING:
        raise RapidError(
            f"a string of {len(text)} characters, the limit is {LONGEST_STRING}", number="err_strtoolng"
        )
    return text


def _cyclic() -> Any:
    raise RapidError("the initial value depends on itself", "value")


def _check_sizes(value: Any, sizes: Sequence[int], name: str) -> None:
    if sizes:
        if len(value) != sizes[0]:
            raise RapidError(f"{name} has {sizes[0]} elements, its initial value {len(value)}", "type")
        for one in value:
            _check_sizes(one, sizes[1:], name)


def equal(left: Any, right: Any) -> bool:
    """Return whether two values are equal; numbers are compared in single precision."""
    if isinstance(left, float) and isinstance(right, (float, int)) and not isinstance(right, bool):
        return rounded(left, left, right) == rounded(right, left, right)
    if isinstance(left, Record) and isinstance(right, Record) and left.type == right.type:
        return all(map(equal, left.values, right.values))
    if type(left) is not type(right):
        raise RapidError(f"{text_of(left)} and {text_of(right)} cannot be compared", "type")
    return left == right


def _operation(word: str, x: float, y: float) -> float:
    if word in ("/", "DIV", "MOD") and y == 0.0:
        raise RapidError(f"{text_of(x)} {word} 0", "value", number="err_divzero")
    if word == "+":
        return rounded(x + y, x, y)
    if word == "-":
        return rounded(x - y, x, y)
    if word == "*":
        return rounded(x * y, x, y)
    if word == "/":
        return rounded(x / y, x, y)
    quotient = int(abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)
    return float(quotient) if word == "DIV" else rounded(x - quotient * y, x, y)


def _record_operation(word: str, left: Any, right: Any) -> Record:
    """Return the result of an operation on positions or orientations."""
    kinds = tuple(one.type if isinstance(one, Record) else NUM for one in (left, right))
    if kinds == ("pos", "pos") and word in ("+", "-"):
        return Record("pos", [_operation(word, x, y) for x, y in zip(left.values, right.values, strict=True)])
    if kinds == ("pos", "pos") and word == "*":
        (a, b, c), (x, y, z) = left.values, right.values
        return Record("pos", [rounded(v) for v in (b * z - c * y, c * x - a * z, a * y - b * x)])
    if kinds == ("orient", "orient") and word == "*":
        (a, b, c, d), (w, x, y, z) = left.values, right.values
        product = (
            a * w - b * x - c * y - d * z,
            a * x + b * w + c * z - d * y,
            a * y - b * z + c * w + d * x,
            a * z + b * y - c * x + d * w,
        )
        return Record("orient", [rounded(v) for v in product])
    if kinds == ("pos", NUM) and word in ("*", "/") and isinstance(right, (float, int)):
        return Record("pos", [_operation(word, x, float(right)) for x in left.values])
    if kinds == (NUM, "pos") and word == "*" and isinstance(left, (float, int)):
        return Record("pos", [rounded(float(left) * x) for x in right.values])
    raise RapidError(f"{word} does not work with {text_of(left)} and {text_of(right)}", "type")

"""Execution of RAPID programs: scopes, data, calls and statements.

Moves and waits are collected, signals and messages are logged; `twin.rapid.instructions` has the instructions.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twin.errors import RapidError, near
from twin.rapid import syntax_tree as st
from twin.rapid.values import BOOL, NUM, PREDEFINED, STRING, Record, Types, copied, rounded, text_of


class Cell:
    """Data object: value, type and kind (CONST, PERS, VAR or IN for a parameter).

    The initial value of a module's data is computed when it is first needed, since it may use data that is
    declared later.
    """

    __slots__ = ("dimensions", "kind", "pending", "type", "value")

    def __init__(self, type_: str, dimensions: int, kind: str, value: Any = None) -> None:
        self.type, self.dimensions, self.kind, self.value = type_, dimensions, kind, value
        self.pending: Callable[[], Any] | None = None


class Part:
    """Component of a record or element of an array, as a data object."""

    __slots__ = ("dimensions", "items", "key", "kind", "pending", "type")

    def __init__(self, items: list[Any], key: int, type_: str, dimensions: int, kind: str) -> None:
        self.items, self.key, self.type, self.dimensions, self.kind = items, key, type_, dimensions, kind
        self.pending = None

    @property
    def value(self) -> Any:
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
        found = self.local.get(name)
        return self.shared.get(name) if found is None else found


@dataclass
class Frame:
    """Call of a routine: its module, its data, and the error that its handler handles."""

    scope: Scope
    routine: st.Routine
    data: dict[str, Any] = field(default_factory=dict)
    handling: float | None = None


class _Returned(Exception):
    """RETURN; `args[0]` is the value."""


class _Jumped(Exception):
    """GOTO; `args` are the label, and file and line."""


class _Raised(Exception):
    """Error for the handlers of the program; `args` are its number, and file and line."""


class _Handled(Exception):
    """End of an error handler; `args` are RETRY or TRYNEXT, and file and line."""


class Stopped(Exception):
    """End of the execution before that of the program; `args[0]` states why, as a sentence."""


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

DEEPEST = 100
"""Largest number of calls within each other."""

STEP_LIMIT = 1_000_000
"""Statements after which a program without a limit of moves is stopped."""


class Interpreter:
    """Interpreter of the modules of one task.

    Attributes:
        types: types of the modules.
        log: lines of what was done without an effect on the motion, as pairs of place and text.
        place: file and line of the current statement.
        counts: number of executed statements for each line, to name an endless loop.
    """

    def __init__(
        self,
        modules: Sequence[st.Module],
        instructions: Mapping[str, Callable[..., Any]],
        functions: Mapping[str, Callable[..., Any]],
        *,
        step_limit: int = STEP_LIMIT,
    ) -> None:
        self.types = Types()
        self.instructions, self.functions = instructions, functions
        self.step_limit = step_limit
        self.steps = self.depth = 0
        self.counts: Counter[tuple[str, int]] = Counter()
        self.place = ("", 0)
        self.signals: dict[str, float] = {}
        self.frame: Frame | None = None
        self.shared: dict[str, Any] = {}
        scopes = [Scope(self.shared, module.file) for module in modules]
        for module, scope in zip(modules, scopes, strict=True):
            self._declare_types(module, scope)
        for module, scope in zip(modules, scopes, strict=True):
            self._declare_items(module, scope)

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
        for item in module.items:
            if isinstance(item, (st.RecordType, st.Alias)):
                continue
            names = scope.local if item.scope == "LOCAL" else self.shared
            name = item.name.lower()
            with self._at(scope.file, item.line):
                if name in names and not (isinstance(item, st.Data) and item.kind == "PERS"):
                    raise RapidError(f"{item.name} is declared twice", "name")
                if isinstance(item, st.Routine):
                    names[name] = (scope, item)
                else:
                    names[name] = self._declared(item, Frame(scope, _OUTSIDE))

    def _declared(self, item: st.Data, frame: Frame) -> Cell:
        """Return the data object of a declaration; its value is computed when it is needed."""
        cell = Cell(self.types.resolved(item.type), len(item.dimensions), item.kind)

        def initial() -> Any:
            before, self.frame = self.frame, frame
            try:
                with self._at(frame.scope.file, item.line):
                    sizes = [self._whole(self.evaluate(one)) for one in item.dimensions]
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
        if cell.pending is not None:
            initial, cell.pending = cell.pending, _cyclic
            cell.value = initial()
            cell.pending = None
        return cell.value

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
            type_, value = PREDEFINED[key]
            return Cell(type_, 0, "CONST", value)
        return found

    def cell(self, variable: st.Variable) -> Cell | Part:
        """Return the data object of a variable, an element or a component.

        Raises:
            RapidError: there is none, or an index is out of range.
        """
        found: Any = self.find(variable.name)
        if found is None and variable.name.lower() in self.signals and not variable.path:
            return Cell(NUM, 0, "CONST", self.signals[variable.name.lower()])
        if not isinstance(found, (Cell, Part)):
            assert self.frame is not None
            known = [*self.frame.data, *self.frame.scope.local, *self.shared, *PREDEFINED]
            kind = "a routine" if found is not None else "not declared" + near(variable.name, known)
            raise RapidError(f"{variable.name} is {kind}", "name")
        if found is ABSENT:
            raise RapidError(f"the optional parameter {variable.name} was not given", "value")
        for step in variable.path:
            value = self.read(found)
            if isinstance(step, str):
                index, type_ = self.types.component(value, step)
                found = Part(value.values, index, type_, 0, found.kind)
            else:
                for one in step:
                    index = self._whole(self.evaluate(one))
                    if not found.dimensions:
                        raise RapidError(f"{variable.name} has fewer dimensions than indices", "type")
                    items = self.read(found)
                    if not 1 <= index <= len(items):
                        raise RapidError(f"index {index} of {variable.name} is not in 1 to {len(items)}")
                    found = Part(items, index - 1, found.type, found.dimensions - 1, found.kind)
        return found

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
            return self.read(self.cell(node))
        if isinstance(node, st.Numbers):
            return self.types.converted(node.items, type_, dimensions) if type_ else node.items
        if isinstance(node, st.Aggregate):
            items = [self.evaluate(one) for one in node.items]
            return self.types.converted(items, type_, dimensions) if type_ else items
        if isinstance(node, st.Function):
            return self.call_function(node)
        if isinstance(node, st.Unary):
            return self._unary(node)
        return self._binary(node)

    def _unary(self, node: st.Unary) -> Any:
        value = self.evaluate(node.operand)
        if node.operator == "(":
            return value
        if node.operator == "NOT":
            return not self._typed(value, bool, BOOL)
        if isinstance(value, Record) and value.type == "pos":
            return Record("pos", [-one if node.operator == "-" else one for one in value.values])
        number = self._typed(value, float, NUM)
        return type(number)(-number) if node.operator == "-" else number

    def _binary(self, node: st.Binary) -> Any:
        word, left = node.operator, self.evaluate(node.left)
        if word in ("AND", "OR", "XOR"):
            left = self._typed(left, bool, BOOL)
            if word == "XOR":
                return left != self._typed(self.evaluate(node.right), bool, BOOL)
            if left == (word == "OR"):
                return left
            return self._typed(self.evaluate(node.right), bool, BOOL)
        right = self.evaluate(node.right)
        if isinstance(left, list) and isinstance(right, Record):
            left = self.types.converted(left, right.type)
        elif isinstance(right, list) and isinstance(left, Record):
            right = self.types.converted(right, left.type)
        if word in ("=", "<>"):
            return _equal(left, right) == (word == "=")
        if word == "+" and isinstance(left, str):
            return left + self._typed(right, str, STRING)
        if isinstance(left, Record) or isinstance(right, Record):
            return _record_operation(word, left, right)
        x, y = self._typed(left, float, NUM), self._typed(right, float, NUM)
        if word in COMPARISONS:
            return COMPARISONS[word](rounded(x, x, y), rounded(y, x, y))
        return _operation(word, x, y)

    @staticmethod
    def _typed(value: Any, kind: type, name: str) -> Any:
        if isinstance(value, kind) or (kind is float and type(value) is int):
            return value
        raise RapidError(f"expected {name}, got {text_of(value)}", "type")

    def _whole(self, value: Any) -> int:
        number = self._typed(value, float, NUM)
        if number != round(number):
            raise RapidError(f"expected a whole number, got {text_of(number)}", "type")
        return int(number)

    def number(self, value: Any) -> float:
        """Return a number, or raise `RapidError`."""
        return float(self._typed(value, float, NUM))

    # ------------------------------------------------------------------------------------------- calls

    def call_function(self, node: st.Function) -> Any:
        """Return the value of a function of the program, or of a predefined one."""
        found = self.find(node.name)
        if isinstance(found, tuple) and found[1].kind == "FUNC":
            return self.run_routine(*found, node.arguments)
        function = self.functions.get(node.name.lower())
        if function is not None:
            return function(self, Arguments(self, node.name, node.arguments))
        known = [name for name, one in self.shared.items() if isinstance(one, tuple)]
        raise RapidError(f"there is no function {node.name}{near(node.name, [*known, *self.functions])}", "name")

    def run_routine(self, scope: Scope, routine: st.Routine, arguments: Sequence[st.Argument] = ()) -> Any:
        """Run a routine with arguments, and return a function's value."""
        frame = Frame(scope, routine, self._bound(routine, arguments))
        before, place = self.frame, self.place
        if self.depth >= DEEPEST:
            raise RapidError(f"{routine.name} is call {DEEPEST + 1} within another, the limit is {DEEPEST}", "value")
        self.frame = frame
        self.depth += 1
        try:
            for item in routine.data:
                with self._at(scope.file, item.line):
                    frame.data[item.name.lower()] = cell = self._declared(item, frame)
                    self.read(cell)
            self.run_block(routine.block)
        except _Returned as end:
            if routine.kind != "FUNC":
                return None
            return copied(self.types.converted(end.args[0], self.types.resolved(routine.type)))
        finally:
            self.frame, self.place = before, place
            self.depth -= 1
        if routine.kind == "FUNC":
            raise RapidError(f"the function {routine.name} ends without RETURN", "value")
        return None

    def _bound(self, routine: st.Routine, arguments: Sequence[st.Argument]) -> dict[str, Any]:
        """Return the parameters of a routine with the values, or data objects, of the arguments."""
        required = [one for one in arguments if one.name is None]
        named = {one.name: one for one in arguments if one.name is not None}
        data: dict[str, Any] = {}
        for is_optional, group in routine.parameters:
            for parameter in group:
                name = parameter.name.lower()
                if is_optional:
                    given = named.pop(name, None)
                else:
                    given = required.pop(0) if required else None
                    if given is None:
                        raise RapidError(f"{routine.name} lacks the argument {parameter.name}", "value")
                data[name] = ABSENT if given is None else self._argument(given, parameter)
        if required or named:
            odd = f"\\{next(iter(named))}" if named else text_of(self.evaluate(required[0].value))
            raise RapidError(f"{routine.name} has no parameter for the argument {odd}", "value")
        return data

    def _argument(self, given: st.Argument, parameter: st.Parameter) -> Any:
        type_ = self.types.resolved(parameter.type)
        if given.passed_on is not None:
            assert self.frame is not None
            return self.frame.data.get(given.passed_on, ABSENT)
        if given.value is None:
            return Cell(BOOL, 0, "IN", True)
        if parameter.mode:
            if not isinstance(given.value, st.Variable):
                raise RapidError(f"the parameter {parameter.name} needs a variable", "type")
            cell = self.cell(given.value)
            self.read(cell)
            if cell.kind == "CONST":
                raise RapidError(f"{given.value.name} is constant, and {parameter.name} may change it", "type")
            return cell
        value = self.evaluate(given.value, type_, parameter.stars)
        return Cell(type_, parameter.stars, "IN", copied(self.types.converted(value, type_, parameter.stars)))

    # -------------------------------------------------------------------------------------- statements

    def run_block(self, block: st.Block) -> None:
        """Run statements in order; a GOTO continues behind its label, in this block or one around it."""
        i = 0
        while i < len(block):
            try:
                self._run_guarded(block[i])
            except _Jumped as jump:
                targets = [k for k, one in enumerate(block) if isinstance(one, st.Label) and one.name == jump.args[0]]
                if not targets:
                    raise
                i = targets[0]
            i += 1

    def _run_guarded(self, statement: Any) -> None:
        """Run a statement, and the error handler of its routine if the program raises an error there."""
        frame = self.frame
        assert frame is not None
        while True:
            try:
                self.run(statement)
                return
            except _Raised as error:
                handler = frame.routine.handlers.get("ERROR")
                if handler is None or frame.handling is not None:
                    raise
                frame.handling = error.args[0]
                frame.data["errno"] = Cell(NUM, 0, "CONST", error.args[0])
                try:
                    self.run_block(handler)
                    raise _Returned(None)
                except _Handled as end:
                    if end.args[0] == "TRYNEXT":
                        return
                finally:
                    frame.handling = None

    def run(self, statement: Any) -> None:
        """Run one statement."""
        frame = self.frame
        assert frame is not None
        if isinstance(statement, st.Label):
            return
        self.place = place = (frame.scope.file, statement.line)
        self.steps += 1
        self.counts[place] += 1
        if self.steps > self.step_limit:
            (file, line), count = self.counts.most_common(1)[0]
            raise Stopped(f"stopped after {self.step_limit} statements; {file}, line {line} ran {count} times")
        with self._at(*place):
            self._statements[type(statement)](self, statement)

    def _assign(self, statement: st.Assign) -> None:
        cell = self.cell(statement.target)
        if cell.kind == "CONST":
            raise RapidError(f"{statement.target.name} is constant", "type")
        value = self.evaluate(statement.value, cell.type, cell.dimensions)
        self.read(cell)
        cell.value = copied(self.types.converted(value, cell.type, cell.dimensions))

    def _call(self, statement: st.Call) -> None:
        name = statement.name
        if not isinstance(name, str):  # a late call, "routine" or "module:routine"
            name = self._typed(self.evaluate(name), str, STRING).split(":")[-1]
        found = self.find(name)
        if isinstance(found, tuple) and found[1].kind == "PROC":
            self.run_routine(*found, statement.arguments)
            return
        instruction = self.instructions.get(name.lower())
        if instruction is None:
            known = [one for one, item in self.shared.items() if isinstance(item, tuple)]
            known += [*self.instructions]
            raise RapidError(f"there is no procedure or instruction {name}{near(name, known)}", "name")
        instruction(self, Arguments(self, name, statement.arguments))

    def _goto(self, statement: st.Goto) -> None:
        raise _Jumped(statement.label, *self.place)

    def _if(self, statement: st.If) -> None:
        for condition, block in statement.branches:
            if condition is None or self._typed(self.evaluate(condition), bool, BOOL):
                self.run_block(block)
                return

    def _for(self, statement: st.For) -> None:
        assert self.frame is not None
        first, last = self.number(self.evaluate(statement.first)), self.number(self.evaluate(statement.last))
        step = 1.0 if first <= last else -1.0
        if statement.step is not None:
            step = self.number(self.evaluate(statement.step))
        if step == 0.0:
            raise RapidError("STEP is 0, so the loop does not end", "value")
        hidden = self.frame.data.get(statement.name)
        value = first
        while (value <= last) if step > 0 else (value >= last):
            self.frame.data[statement.name] = Cell(NUM, 0, "CONST", value)
            self.run_block(statement.block)
            value = rounded(value + step)
        self.frame.data.pop(statement.name, None)
        if hidden is not None:
            self.frame.data[statement.name] = hidden

    def _while(self, statement: st.While) -> None:
        while self._typed(self.evaluate(statement.condition), bool, BOOL):
            self.run_block(statement.block)
            self.steps += 1
            if self.steps > self.step_limit:
                raise Stopped(
                    f"stopped after {self.step_limit} statements in the loop of {self.place[0]}, "
                    f"line {statement.line}"
                )

    def _test(self, statement: st.Test) -> None:
        value = self.evaluate(statement.value)
        for cases, block in statement.cases:
            if cases is None or any(_equal(value, self.evaluate(one)) for one in cases):
                self.run_block(block)
                return

    def _return(self, statement: st.Return) -> None:
        assert self.frame is not None
        routine = self.frame.routine
        if routine.kind == "FUNC" and statement.value is not None:
            raise _Returned(self.evaluate(statement.value, self.types.resolved(routine.type)))
        raise _Returned(None)

    def _raise(self, statement: st.Raise) -> None:
        assert self.frame is not None
        if statement.value is None:
            raise _Raised(self.frame.handling or 0.0, *self.place)
        raise _Raised(self.number(self.evaluate(statement.value)), *self.place)

    def _jump(self, statement: st.Jump) -> None:
        if statement.word == "EXIT":
            raise Stopped("")
        raise _Handled(statement.word, *self.place)

    def _connect(self, statement: st.Connect) -> None:
        raise RapidError("CONNECT is refused: there are no interrupts here", "refusal")

    _statements: Mapping[type, Callable[..., None]] = {
        st.Assign: _assign,
        st.Call: _call,
        st.Goto: _goto,
        st.If: _if,
        st.For: _for,
        st.While: _while,
        st.Test: _test,
        st.Return: _return,
        st.Raise: _raise,
        st.Jump: _jump,
        st.Connect: _connect,
    }

    # ------------------------------------------------------------------------------------------ errors

    def _at(self, file: str, line: int) -> _Placed:
        return _Placed(file, line)

    def run_program(self, main: str = "main") -> str:
        """Run a procedure of the modules from its beginning to its end.

        Returns:
            a sentence on why the execution stopped early, "" after EXIT or the end.

        Raises:
            RapidError: a fault; the message states file and line.
        """
        found = self.shared.get(main.lower())
        if not isinstance(found, tuple) or found[1].kind != "PROC":
            procedures = sorted(
                one[1].name for one in self.shared.values() if isinstance(one, tuple) and one[1].kind == "PROC"
            )
            listed = ", ".join(procedures) or "none"
            raise RapidError(f"there is no procedure {main} to begin with; the modules have: {listed}", "name")
        try:
            self.run_routine(*found)
        except Stopped as end:
            return end.args[0]
        except _Raised as error:
            number, *place = error.args
            raise RapidError(f"error {number:g} has no handler", "value", *place) from None
        except _Jumped as jump:
            label, *place = jump.args
            raise RapidError(f"there is no label {label} for GOTO", "name", *place) from None
        except _Handled as end:
            word, *place = end.args
            raise RapidError(f"{word} stands outside of an error handler", "value", *place) from None
        return ""


class Arguments:
    """Arguments of an instruction or a predefined function, evaluated when they are asked for."""

    def __init__(self, interpreter: Interpreter, name: str, arguments: Sequence[st.Argument]) -> None:
        self.interpreter = interpreter
        self.name = name
        self.required = [one for one in arguments if one.name is None]
        self.named = {}
        for one in arguments:
            if one.name is not None and self._is_given(one):
                self.named[one.name] = one

    def _is_given(self, argument: st.Argument) -> bool:
        if argument.passed_on is None:
            return True
        assert self.interpreter.frame is not None
        return self.interpreter.frame.data.get(argument.passed_on, ABSENT) is not ABSENT

    def __len__(self) -> int:
        return len(self.required)

    def __contains__(self, name: str) -> bool:
        return name in self.named

    def value(self, which: int | str, type_: str) -> Any:
        """Return a required argument by its number from 0, or an optional one by its name."""
        if isinstance(which, str):
            given = self.named[which]
        elif which < len(self.required):
            given = self.required[which]
        else:
            raise RapidError(f"{self.name} lacks argument {which + 1}, {type_}", "value")
        if given.passed_on is not None:
            assert self.interpreter.frame is not None
            value = self.interpreter.read(self.interpreter.frame.data[given.passed_on])
        else:
            value = self.interpreter.evaluate(given.value, type_)
        try:
            return self.interpreter.types.converted(value, type_)
        except RapidError as error:
            number = f"argument {which + 1}" if isinstance(which, int) else f"\\{which}"
            raise RapidError(f"{number} of {self.name}: {error}", "type") from None

    def cell(self, which: int) -> Cell | Part:
        """Return the data object of a required argument."""
        node = self.required[which].value if which < len(self.required) else None
        if not isinstance(node, st.Variable):
            raise RapidError(f"{self.name} needs a variable as argument {which + 1}", "type")
        cell = self.interpreter.cell(node)
        self.interpreter.read(cell)
        return cell

    def name_of(self, which: int) -> str:
        """Return the name that stands as a required argument, "" for another expression."""
        node = self.required[which].value if which < len(self.required) else None
        return node.name if isinstance(node, st.Variable) else ""


class _Placed:
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


def _cyclic() -> Any:
    raise RapidError("the initial value depends on itself", "value")


def _check_sizes(value: Any, sizes: Sequence[int], name: str) -> None:
    if sizes:
        if len(value) != sizes[0]:
            raise RapidError(f"{name} has {sizes[0]} elements, its initial value {len(value)}", "type")
        for one in value:
            _check_sizes(one, sizes[1:], name)


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, (float, int)) and not isinstance(right, bool):
        return rounded(left, left, right) == rounded(right, left, right)
    if isinstance(left, Record) and isinstance(right, Record) and left.type == right.type:
        return all(map(_equal, left.values, right.values))
    if type(left) is not type(right):
        raise RapidError(f"{text_of(left)} and {text_of(right)} cannot be compared", "type")
    return left == right


def _operation(word: str, x: float, y: float) -> float:
    if word in ("/", "DIV", "MOD") and y == 0.0:
        raise RapidError(f"{text_of(x)} {word} 0", "value")
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


def routines_of(modules: Sequence[st.Module], kind: str = "PROC") -> Iterator[st.Routine]:
    """Yield the routines of modules."""
    for module in modules:
        for item in module.items:
            if isinstance(item, st.Routine) and item.kind == kind:
                yield item

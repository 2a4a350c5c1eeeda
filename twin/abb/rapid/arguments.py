"""Arguments of instructions and predefined functions, and those that become parameters of routines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twin.abb.rapid import syntax_tree as st
from twin.abb.rapid.expressions import ABSENT, Cell, Evaluator, Part
from twin.abb.rapid.values import BOOL, PRINTED, SIGNAL_TYPES, copied, text_of
from twin.base.errors import RapidError

KINDS = "DI", "DO", "AI", "AO", "GI", "GO"
"""Types of signals, with which the names of their instructions end."""


class Arguments:
    """Arguments of an instruction or a predefined function, evaluated when they are asked for."""

    def __init__(self, interpreter: Evaluator, name: str, arguments: Sequence[st.Argument]) -> None:
        self.interpreter = interpreter
        self.name = name
        self.required = [one for one in arguments if one.name is None]
        self.named = {}
        self._by_name = {one.name: one for one in arguments if one.required}
        for one in arguments:
            if one.name is not None and not one.required and self._is_given(one):
                self.named[one.name] = one

    def arrange(self, names: Sequence[str]) -> None:
        """Put required arguments that are given by their names in their places.

        Args:
            names: names of the required arguments in order.

        Raises:
            RapidError: there is no argument of a name.
        """
        for place, name in enumerate(names):
            if given := self._by_name.pop(name.lower(), None):
                self.required.insert(place, given)
        for name in self._by_name:
            known = ", ".join(names) or "none that has a name here"
            raise RapidError(f"{self.name} has no argument {name}, it has {known}", "name")

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
            if which not in self.named:
                raise RapidError(f"{self.name} lacks the argument \\{which}, {type_}", "value")
            given = self.named[which]
        else:
            given = self._required(which, type_)
        if given.passed_on is not None:
            assert self.interpreter.frame is not None
            value = self.interpreter.read(self.interpreter.frame.data[given.passed_on])
        else:
            if given.value is None:
                raise RapidError(f"\\{which} of {self.name} lacks a value, {type_}", "value")
            value = self.interpreter.evaluate(given.value, type_)
        try:
            return self.interpreter.types.converted(value, type_)
        except RapidError as error:
            number = f"argument {which + 1}" if isinstance(which, int) else f"\\{which}"
            raise RapidError(f"{number} of {self.name}: {error}", "type") from None

    def _required(self, which: int, what: str) -> st.Argument:
        if not 0 <= which < len(self.required):
            raise RapidError(f"{self.name} lacks argument {which + 1}, {what}", "value")
        return self.required[which]

    def expression(self, which: int) -> Any:
        """Return the expression of a required argument, which is not evaluated.

        Raises:
            RapidError: it is not given.
        """
        return self._required(which, "an expression").value

    def opaque(self, which: int, kind: type, default: Any) -> Any:
        """Return the value of a data object whose type means nothing in RAPID, such as a clock.

        Args:
            which: number of the argument from 0.
            kind: Python type of its value.
            default: its value before it has one.

        Raises:
            RapidError: it is data of another type.
        """
        value = self.cell(which).value
        if value is None:
            return default
        if not isinstance(value, kind):
            raise RapidError(
                f"{self.name} needs other data than {self.name_of(which)} as argument {which + 1}", "type"
            )
        return value

    def optional(self, name: str, type_: str, default: Any) -> Any:
        """Return an optional argument, or a default where it is not given."""
        return self.value(name, type_) if name in self else default

    def cell(self, which: int) -> Cell | Part:
        """Return the data object of a required argument."""
        node = self.required[which].value if which < len(self.required) else None
        if not isinstance(node, st.Variable):
            raise RapidError(f"{self.name} needs a variable as argument {which + 1}", "type")
        cell = self.interpreter.cell(node)
        self.interpreter.read(cell)
        return cell

    def write(self, which: int, value: Any) -> None:
        """Write a value into the data object of a required argument, as an assignment does."""
        self.interpreter.write(self.cell(which), self.name_of(which), value)

    def signal(self, which: int | str) -> str:
        """Return the name of the signal that stands as an argument.

        Raises:
            RapidError: there is none.
        """
        if isinstance(which, str):
            node = self.named[which].value
        else:
            node = self.required[which].value if which < len(self.required) else None
        found = self.interpreter.signal(node)
        if found is None:
            what = f"argument {which + 1}" if isinstance(which, int) else f"\\{which}"
            raise RapidError(f"{self.name} needs a signal as {what}{self._no_signal(node)}", "type")
        kind, known = self.name[-2:].upper(), self.interpreter.signals.types.get(found.lower(), "")
        if known and kind in KINDS and kind != known:
            raise RapidError(f"{found} is a signal of type {known}, {self.name} needs {kind}", "type")
        return found

    def _no_signal(self, node: Any) -> str:
        """Return what an expression is that is no signal."""
        if not isinstance(node, st.Variable):
            return ""
        found = self.interpreter.find(node.name)
        if found is None:
            return f", and nothing declares {node.name}: --io EIO.cfg or --inputs {node.name}=1 does"
        kind = f"data of the type {found.type}" if isinstance(found, (Cell, Part)) else "a routine"
        return f", and {node.name} is {kind}"

    def give(self, name: str, value: Any) -> None:
        """Give a value to the data object of an optional argument, if there is one."""
        if name in self.named and isinstance(self.named[name].value, st.Variable):
            node = self.named[name].value
            self.interpreter.write(self.interpreter.cell(node), node.name, value)

    def report_time_out(self, seconds: float) -> None:
        r"""Let the program know that a wait lasted its longest time: by `\TimeFlag`, or by an error."""
        if "timeflag" not in self:
            self.interpreter.raise_error("err_wait_maxtime", f"{self.name} lasts {seconds:g} s")
        self.give("timeflag", True)

    def texts(self) -> str:
        """Return all arguments with a value as one text."""
        given = (one.value for one in (*self.required, *self.named.values()) if one.value is not None)
        values = map(self.interpreter.evaluate, given)
        return "".join(value if isinstance(value, str) else text_of(value, PRINTED) for value in values)

    def name_of(self, which: int) -> str:
        """Return the name that stands as a required argument, "" for another expression."""
        node = self.required[which].value if which < len(self.required) else None
        return node.name if isinstance(node, st.Variable) else ""


def expression_of(text: str) -> Any:
    """Return the expression that a text has.

    Raises:
        RapidError: it is none.
    """
    from twin.abb.rapid.language import parse

    return parse(f"MODULE M\nVAR num x := {text};\nENDMODULE").modules[0].items[0].initial


def bound(interpreter: Evaluator, routine: st.Routine, arguments: Sequence[st.Argument]) -> dict[str, Any]:
    """Return the parameters of a routine with the values, or data objects, of the arguments."""
    required = [one for one in arguments if one.name is None]
    named = {one.name: one for one in arguments if one.name is not None}
    data: dict[str, Any] = {}
    for is_optional, group in routine.parameters:
        for parameter in group:
            name = parameter.name.lower()
            if is_optional or name in named:
                given = named.pop(name, None)
            else:
                given = required.pop(0) if required else None
                if given is None:
                    raise RapidError(f"{routine.name} lacks the argument {parameter.name}", "value")
            data[name] = ABSENT if given is None else _argument(interpreter, given, parameter)
    if required or named:
        odd = f"\\{next(iter(named))}" if named else text_of(interpreter.evaluate(required[0].value))
        raise RapidError(f"{routine.name} has no parameter for the argument {odd}", "value")
    return data


def _argument(interpreter: Evaluator, given: st.Argument, parameter: st.Parameter) -> Any:
    type_ = interpreter.types.resolved(parameter.type)
    if given.passed_on is not None:
        assert interpreter.frame is not None
        return interpreter.frame.data.get(given.passed_on, ABSENT)
    if given.value is None:
        return Cell(BOOL, 0, "IN", True)
    if type_ in SIGNAL_TYPES and not parameter.stars:
        return Cell(type_, 0, "IN", interpreter.signal(given.value))
    if parameter.mode:
        if not isinstance(given.value, st.Variable):
            raise RapidError(f"the parameter {parameter.name} needs a variable", "type")
        cell = interpreter.cell(given.value)
        interpreter.read(cell)
        if cell.kind == "CONST" or (cell.kind == "FIXED" and parameter.mode == "VAR"):
            raise RapidError(f"{given.value.name} is constant, and {parameter.name} may change it", "type")
        return cell
    value = interpreter.evaluate(given.value, type_, parameter.stars)
    return Cell(
        type_, parameter.stars, "IN", copied(interpreter.types.converted(value, type_, parameter.stars))
    )

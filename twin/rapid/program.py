"""Execution of RAPID programs: calls, statements and error handlers.

Moves and waits are collected, signals and messages are logged by `twin.rapid.instructions`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from twin.errors import RapidError, near
from twin.rapid import syntax_tree as st
from twin.rapid.expressions import ABSENT, Cell, Evaluator, Frame, Part, Placed, RoutineOf, Scope, equal
from twin.rapid.values import BOOL, NUM, STATES, STRING, copied, rounded, text_of


class _Returned(Exception):
    """RETURN; `args[0]` is the value."""


class _Jumped(Exception):
    """GOTO; `args` are the label, and file and line."""


class _Raised(Exception):
    """Error for the handlers of the program; `args` are its number, file, line, and a sentence or ""."""


class _Handled(Exception):
    """End of an error handler; `args` are RETRY or TRYNEXT, and file and line."""


class Stopped(Exception):
    """End of the execution before that of the program; `args[0]` states why, as a sentence."""


DEEPEST = 100
"""Largest number of calls within each other."""

STEP_LIMIT = 1_000_000
"""Statements after which a program without a limit of moves is stopped."""


class Interpreter(Evaluator):
    """Interpreter of the modules of one task.

    Attributes:
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
        super().__init__(modules, functions)
        self.instructions = instructions
        self.step_limit = step_limit
        self.steps = self.depth = 0
        self.counts: Counter[tuple[str, int]] = Counter()
        self.place = ("", 0)

    @property
    def routine(self) -> str:
        """Name of the routine that runs."""
        return "" if self.frame is None else self.frame.routine.name

    # ------------------------------------------------------------------------------------------- calls

    def call_function(self, node: st.Function) -> Any:
        """Return the value of a function of the program, or of a predefined one."""
        found = self.find(node.name)
        if isinstance(found, RoutineOf) and found.routine.kind == "FUNC":
            return self.run_routine(found.scope, found.routine, node.arguments)
        function = self.functions.get(node.name.lower())
        if function is not None:
            return function(Arguments(self, node.name, node.arguments))
        known = [name for name, one in self.shared.items() if isinstance(one, RoutineOf)]
        raise RapidError(
            f"there is no function {node.name}{near(node.name, [*known, *self.functions])}", "name"
        )

    def run_routine(self, scope: Scope, routine: st.Routine, arguments: Sequence[st.Argument] = ()) -> Any:
        """Run a routine with arguments, and return a function's value."""
        frame = Frame(scope, routine, self._bound(routine, arguments))
        before, place = self.frame, self.place
        if self.depth >= DEEPEST:
            raise RapidError(
                f"{routine.name} is call {DEEPEST + 1} within another, the limit is {DEEPEST}", "value"
            )
        self.frame = frame
        self.depth += 1
        try:
            for item in routine.data:
                with Placed(scope.file, item.line):
                    frame.data[item.name.lower()] = cell = self.declared(item, frame)
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
                raise RapidError(
                    f"{given.value.name} is constant, and {parameter.name} may change it", "type"
                )
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
                targets = [
                    k for k, one in enumerate(block) if isinstance(one, st.Label) and one.name == jump.args[0]
                ]
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
            raise Stopped(
                f"stopped after {self.step_limit} statements; {file}, line {line} ran {count} times"
            )
        with Placed(*place):
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
            name = self.typed(self.evaluate(name), str, STRING).split(":")[-1]
        found = self.find(name)
        if isinstance(found, RoutineOf) and found.routine.kind == "PROC":
            self.run_routine(found.scope, found.routine, statement.arguments)
            return
        instruction = self.instructions.get(name.lower())
        if instruction is None:
            known = [one for one, item in self.shared.items() if isinstance(item, RoutineOf)]
            known += [*self.instructions]
            raise RapidError(f"there is no procedure or instruction {name}{near(name, known)}", "name")
        instruction(Arguments(self, name, statement.arguments))

    def _goto(self, statement: st.Goto) -> None:
        raise _Jumped(statement.label, *self.place)

    def _if(self, statement: st.If) -> None:
        for condition, block in statement.branches:
            if condition is None or self.typed(self.evaluate(condition), bool, BOOL):
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
        while self.typed(self.evaluate(statement.condition), bool, BOOL):
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
            if cases is None or any(equal(value, self.evaluate(one)) for one in cases):
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
            raise _Raised(self.frame.handling or 0.0, *self.place, "")
        raise _Raised(self.number(self.evaluate(statement.value)), *self.place, "")

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

    def raise_error(self, name: str, sentence: str) -> NoReturn:
        """Raise an error of the controller, such as `err_udpuc_comm`, for the handlers of the program."""
        raise _Raised(float(STATES.index(name)), *self.place, sentence)

    def run_program(self, main: str = "main") -> str:
        """Run a procedure of the modules from its beginning to its end.

        Returns:
            a sentence on why the execution stopped early, "" after EXIT or the end.

        Raises:
            RapidError: a fault; the message states file and line.
        """
        found = self.shared.get(main.lower())
        if not isinstance(found, RoutineOf) or found.routine.kind != "PROC":
            procedures = sorted(
                one.routine.name
                for one in self.shared.values()
                if isinstance(one, RoutineOf) and one.routine.kind == "PROC"
            )
            listed = ", ".join(procedures) or "none"
            raise RapidError(
                f"there is no procedure {main} to begin with; the modules have: {listed}", "name"
            )
        try:
            self.run_routine(*found)
        except Stopped as end:
            return end.args[0]
        except _Raised as error:
            number, *place, sentence = error.args
            known = {float(k): one.upper() for k, one in enumerate(STATES) if one.startswith("err_")}
            name = known.get(number, f"error {number:g}")
            reason = f": {sentence}" if sentence else ""
            raise RapidError(f"{name} has no handler{reason}", "value", *place) from None
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

    def name_of(self, which: int) -> str:
        """Return the name that stands as a required argument, "" for another expression."""
        node = self.required[which].value if which < len(self.required) else None
        return node.name if isinstance(node, st.Variable) else ""

"""Execution of RAPID programs: calls, statements, error handlers, and loops that never end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from twin.abb.rapid import syntax_tree as st
from twin.abb.rapid.arguments import Arguments, bound
from twin.abb.rapid.expressions import Cell, Evaluator, Frame, Part, Placed, Raised, RoutineOf, Scope, equal
from twin.abb.rapid.recorder import Left, Recorder, Stopped
from twin.abb.rapid.signals import signals_of
from twin.abb.rapid.values import BOOL, NUM, STATES, STRING, Record, copied, one_letter_beside, rounded
from twin.base.errors import RapidError, near
from twin.base.threads import in_threads


class _Returned(Exception):
    """RETURN; `args[0]` is the value."""


class _Jumped(Exception):
    """GOTO; `args` are the label, and file and line."""


class _Handled(Exception):
    """End of an error handler; `args` are RETRY or TRYNEXT, and file and line."""


DEEPEST = 12_000
"""Largest number of calls within each other; a controller has memory for some number, too."""

MANY_CALLS = 100
"""Number of calls within each other that are stated at the end, because they had not returned."""

CALLS_OF_A_STACK = 100
"""Calls within each other on the stack of one thread; the next ones are on that of another thread."""

FRAMES = 5000
"""Depth of Python's calls for the calls of one stack."""

STEP_LIMIT = 500_000
"""Statements after which a program is stopped."""

MANY_QUESTIONS = 100
"""Number of questions without an answer from which on a program waits in a menu."""

TARGETS = "robtarget", "jointtarget"


class Interpreter(Evaluator):
    """Interpreter of the modules of one task.

    Attributes:
        recorder: results of the program.
        counts: number of executed statements for each line, to name an endless loop.
        unreturned: number of calls that had not returned when the program ended.
    """

    def __init__(
        self,
        modules: Sequence[st.Module],
        instructions: Mapping[str, Callable[..., Any]],
        functions: Mapping[str, Callable[..., Any]],
        recorder: Recorder,
        *,
        step_limit: int = STEP_LIMIT,
    ) -> None:
        super().__init__(modules, functions, recorder.signals)
        recorder.signals.names = signals_of(modules, recorder.signals.types) | recorder.signals.names
        self.instructions, self.recorder = instructions, recorder
        self.step_limit = step_limit
        self.steps = self.depth = self.endless = self.unreturned = 0
        self._recursions: dict[int, Repetition] = {}  # of routines that run, by their identities
        self.counts: Counter[tuple[str, int]] = Counter()
        self.now = recorder.now
        recorder.signals.on_change = self.signal_changed
        recorder.wakes_at = lambda: self.interrupts.next_time
        recorder.on_time = self.interrupts.advance
        for name in sorted(recorder.signals.given):
            self._write_data(name, recorder.signals.values.get(name))

    def signal_changed(self, name: str, before: float, after: float) -> None:
        """Take note of the change of a signal: in data of its name, and as a cause of interrupts."""
        self._write_data(name, after)
        self.interrupts.changed("signal", name, before, after)

    def _write_data(self, name: str, value: float | None) -> None:
        """Write the value of an input into the data of its name, as an operator's panel writes PERS data."""
        cell = self.shared.get(name)
        if value is not None and isinstance(cell, Cell) and cell.kind != "CONST" and not cell.dimensions:
            before, cell.pending = cell.value, None
            cell.value = value != 0.0 if cell.type == BOOL else self.types.converted(value, cell.type)
            self.interrupts.changed("persistent", name, before, cell.value)

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
        hint = near(node.name, [*known, *self.functions]) or ": add the module that declares it"
        raise RapidError(f"there is no function {node.name}{hint}", "name")

    def run_routine(self, scope: Scope, routine: st.Routine, arguments: Sequence[st.Argument] = ()) -> Any:
        """Run a routine with arguments, and return a function's value."""
        frame = Frame(scope, routine, bound(self, routine, arguments))
        before, place = self.frame, self.place
        if self.depth >= DEEPEST:
            raise RapidError(
                f"{routine.name} is call {DEEPEST + 1} within another, the limit is {DEEPEST}", "value"
            )
        self.frame = frame
        self.depth += 1
        try:
            if self.depth % CALLS_OF_A_STACK:
                return self._run_in(frame)
            values: list[Any] = []
            in_threads(lambda: values.append(self._run_in(frame)), 1)
            return values[0]
        except Stopped:
            self.unreturned += 1
            raise
        finally:
            self.frame, self.place = before, place
            self.depth -= 1

    def _run_in(self, frame: Frame) -> Any:
        """Run the routine of a call, and return a function's value."""
        scope, routine = frame.scope, frame.routine
        rounds = self.watched_calls(routine)
        try:
            if rounds is not None and rounds.begin_round() == 1 and not routine.parameters:
                text = f"{routine.name} calls itself: each call takes memory, a loop does not"
                self.recorder.note((scope.file, routine.line), text)
            for item in routine.data:
                with Placed(scope.file, item.line):
                    frame.data[item.name.lower()] = cell = self.declared(item, frame)
                    self.read(cell)
            self.run_block(routine.block)
        except Left:
            self.run_block(routine.handlers.get("UNDO", ()))
            raise
        except _Returned as end:
            if routine.kind != "FUNC":
                return None
            return copied(self.types.converted(end.args[0], self.types.resolved(routine.type)))
        finally:
            if rounds is not None:
                rounds.end_round()
        if routine.kind == "FUNC":
            raise RapidError(f"the function {routine.name} ends without RETURN", "value")
        return None

    def watched_calls(self, routine: st.Routine) -> Repetition | None:
        """Return the calls of a procedure within itself as the rounds of a loop, None for other routines."""
        if routine.kind != "PROC":
            return None
        return self._recursions.setdefault(id(routine), Repetition(self, routine.line, True, rounds=-1))

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
        retries = 0
        while True:
            try:
                self.run(statement)
                return
            except (Raised, RapidError) as error:
                number = error.args[0] if isinstance(error, Raised) else self._error_number(error)
                handler = frame.routine.handlers.get("ERROR")
                if number is None or handler is None or frame.handling is not None:
                    raise
                frame.handling = number
                frame.data["errno"] = Cell(NUM, 0, "CONST", number)
                try:
                    self.run_block(handler)
                    raise _Returned(None)
                except _Handled as end:
                    if end.args[0] == "TRYNEXT":
                        return
                finally:
                    frame.handling = None
                retries += 1
                if retries > self.recorder.most_retries:
                    raise RapidError(
                        f"RETRY of line {statement.line} for the {retries}th time: a controller stops after "
                        f"{self.recorder.most_retries:g} (No Of Retry)"
                    ) from None

    def _error_number(self, error: RapidError) -> float | None:
        """Return the number of an error that the controller raises, None for other faults."""
        return self.error_number(error.number) if error.number else None

    def run_traps(self) -> None:
        """Run the traps whose causes came."""
        interrupts, place = self.interrupts, self.place
        while interrupts.due:
            number, interrupts.present = interrupts.pending.popleft()
            self.shared["intno"] = Cell(NUM, 0, "CONST", float(number))
            interrupts.running = True
            try:
                self.run_routine(*interrupts.traps[number])
            finally:
                interrupts.running = False
                self.place = place

    def run(self, statement: Any) -> None:
        """Run one statement."""
        frame = self.frame
        assert frame is not None
        if isinstance(statement, st.Label):
            return
        if self.interrupts.pending and self.interrupts.due:
            self.run_traps()
        self.place = place = (frame.scope.file, statement.line)
        self.steps += 1
        self.counts[place] += 1
        if self.steps > self.step_limit:
            (file, line), count = self.counts.most_common(1)[0]
            menu = "; the program waits in a menu: --operator" * (
                self.recorder.operator.assumed > MANY_QUESTIONS
            )
            raise Stopped(
                f"stopped after {self.step_limit} statements; {file}, line {line} ran {count} times{menu}"
            )
        with Placed(*place):
            self._statements[type(statement)](self, statement)

    def _assign(self, statement: st.Assign) -> None:
        cell = self.cell(statement.target)
        value = self.evaluate(statement.value, cell.type, cell.dimensions)
        self.write(cell, statement.target.name, value)

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
            self._skip_unknown(name, statement)
        else:
            instruction(Arguments(self, name, statement.arguments))

    def _skip_unknown(self, name: str, statement: st.Call) -> None:
        """Skip a procedure of an option of the controller, or of a module that is not there.

        Raises:
            RapidError: it takes a target, is beside a known name, or is called late.
        """
        procedures = [one for one, item in self.shared.items() if isinstance(item, RoutineOf)]
        sentence = f"there is no procedure or instruction {name}"
        if beside := one_letter_beside(name.lower(), [*procedures, *self.instructions]):
            raise RapidError(f"{sentence}, did you mean {beside!r}?", "name")
        if not isinstance(statement.name, str):
            raise RapidError(sentence, "name", number="err_refunkprc")
        if any(self._is_target(one.value) for one in statement.arguments):
            raise RapidError(f"{sentence}, and it takes a target: add the module that declares it", "name")
        self.recorder.assume(self.place, f"{name} is not in these modules or known here: skipped")

    def _is_target(self, node: Any) -> bool:
        """Return whether an argument is a target of a move."""
        if isinstance(node, st.Function):
            return node.name.lower() in ("offs", "reltool", "crobt", "calcrobt")
        if not isinstance(node, st.Variable) or node.path:
            return False
        found = self.find(node.name)
        return isinstance(found, (Cell, Part)) and found.type in TARGETS

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
        condition = statement.condition
        is_endless = isinstance(condition, st.Variable) and condition.name.lower() == "true"
        begin_round = self.watched_rounds(statement.line, is_endless)
        self.endless += is_endless
        while self.typed(self.evaluate(condition), bool, BOOL):
            begin_round()
            self.run_block(statement.block)
            self.steps += 1
            if self.steps > self.step_limit:
                raise Stopped(
                    f"stopped after {self.step_limit} statements in the loop of {self.place[0]}, "
                    f"line {statement.line}"
                )
        self.endless -= is_endless

    def watched_rounds(self, line: int, is_endless: bool) -> Callable[[], object]:
        """Return the function that a loop calls at the beginning of each round."""
        return Repetition(self, line, is_endless).begin_round

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
            raise Raised(self.frame.handling or 0.0, *self.place, "")
        raise Raised(self.number(self.evaluate(statement.value)), *self.place, "")

    def _jump(self, statement: st.Jump) -> None:
        if statement.word == "EXIT":
            raise Left
        raise _Handled(statement.word, *self.place)

    def _connect(self, statement: st.Connect) -> None:
        trap = self.find(statement.trap)
        if not isinstance(trap, RoutineOf) or trap.routine.kind != "TRAP":
            raise RapidError(f"there is no trap {statement.trap}", "name")
        cell = self.cell(statement.interrupt)
        self.read(cell)
        connected = self.interrupts.traps.get(cell.value)
        if connected is None:
            cell.value = float(self.interrupts.connect(trap))
        elif connected is not trap:
            self.raise_error("err_alrdcnt", f"{statement.interrupt.name} is connected already")

    def _placeholder(self, statement: st.Placeholder) -> None:
        raise RapidError(f"{statement.text} stands for a statement that is not written yet", "syntax")

    _statements: Mapping[type, Callable[..., None]] = {
        st.Assign: _assign, st.Call: _call, st.Goto: _goto, st.If: _if, st.For: _for, st.While: _while,
        st.Test: _test, st.Return: _return, st.Raise: _raise, st.Jump: _jump, st.Connect: _connect,
        st.Placeholder: _placeholder,
    }  # fmt: skip

    def call_procedure(self, name: str) -> None:
        """Call a procedure or instruction without arguments by its name."""
        self._call(st.Call(self.place[1], name, ()))

    def procedure(self, name: str) -> RoutineOf:
        """Return a procedure to begin with.

        Raises:
            RapidError: there is none of this name.
        """
        found = self.shared.get(name.lower())
        if isinstance(found, RoutineOf) and found.routine.kind == "PROC":
            return found
        routines = [one.routine for one in self.shared.values() if isinstance(one, RoutineOf)]
        listed = ", ".join(sorted(one.name for one in routines if one.kind == "PROC")) or "none"
        raise RapidError(f"there is no procedure {name} to begin with; the modules have: {listed}", "name")

    def run_program(self, main: str = "main") -> Stopped:
        """Run a procedure of the modules from its beginning to its end.

        Returns:
            why the execution stopped early, with an empty sentence after EXIT or the end.

        Raises:
            RapidError: a fault; the message states file and line.
        """
        try:
            self.unreturned = 0
            self.run_routine(*self.procedure(main))
        except Stopped as end:
            is_deep = self.unreturned > MANY_CALLS
            end.planned |= (self.endless > 0 or is_deep) and self.recorder.is_full
            if is_deep:
                calls = f"{self.unreturned} calls within each other had not returned"
                end.args = (f"{end}; {calls}" if str(end) else calls,)
            return end
        except Raised as error:
            number, *place, sentence = error.args
            known = {float(k): one.upper() for k, one in enumerate(STATES) if one.startswith("err_")}
            known |= {number: one.upper() for one, number in self.error_numbers.items()}
            name = known.get(number, f"error {number:g}")
            reason = ": " * bool(sentence) + sentence
            raise RapidError(f"{name} has no handler{reason}", "value", *place) from None
        except _Jumped as jump:
            label, *place = jump.args
            raise RapidError(f"there is no label {label} for GOTO", "name", *place) from None
        except _Handled as end:
            word, *place = end.args
            raise RapidError(f"{word} stands outside of an error handler", "value", *place) from None
        return Stopped("", planned=True)


# ------------------------------------------------------------------------------ loops that never end

FIRST_ROUNDS = 64
"""Rounds of an endless loop whose states are compared."""

WAITING_ROUNDS = 128
"""Rounds of another loop from which on its states are compared: most loops end before."""


class Repetition:
    """Watch over a loop of a program.

    A program does the same again where all its data, its signals and its arm are as in a round before.

    Args:
        interpreter: interpreter of the program.
        line: line of the loop.
        is_endless: whether the condition of the loop is TRUE.
        rounds: number of the round before the first one; -1 for a procedure, whose first call is no round.
    """

    def __init__(self, interpreter: Interpreter, line: int, is_endless: bool, rounds: int = 0) -> None:
        self._interpreter, self._line, self._is_endless = interpreter, line, is_endless
        self._seen: dict[Hashable, tuple[int, int]] = {}  # moves and rounds by states
        self._rounds = rounds

    def end_round(self) -> None:
        """Forget the last round, as that of a call which returns."""
        if self._seen and next(reversed(self._seen.values()))[1] == self._rounds:
            self._seen.popitem()
        self._rounds -= 1

    def begin_round(self) -> int:
        """Compare the present state with those of the rounds before, and return the number of the round.

        Raises:
            Stopped: the loop repeats itself.
        """
        self._rounds += 1
        rounds = self._rounds
        if not (self._is_endless and 0 < rounds <= FIRST_ROUNDS):
            apart = rounds & (rounds - 1)  # 0 at powers of two; they and the rounds after them count
            if rounds < WAITING_ROUNDS or (apart and (rounds - 1) & (rounds - 2)):
                return rounds
        recorder = self._interpreter.recorder
        if recorder.signals.next_change is not None or recorder.wakes_at() is not None:
            return rounds
        if self._interpreter.running_clocks:
            return rounds
        several = len(self._interpreter.scopes) > 1
        line = f"line {self._line}" + f" of {Path(self._interpreter.place[0]).name}" * several
        state = state_of(self._interpreter)
        if state not in self._seen:
            self._seen[state] = recorder.moves, rounds
        elif recorder.moves > self._seen[state][0]:
            raise Stopped(
                f"{line} repeats itself for ever: its moves until round {rounds} are judged", planned=True
            )
        elif not self._answer_wait():
            waits = "in a menu (--operator)" if recorder.operator.assumed else "for what never comes"
            raise Stopped(
                f"the program waits {waits} in the loop of {line}: --inputs NAME=VALUE@TIME "
                "changes a signal or data"
            )
        return rounds

    def _answer_wait(self) -> bool:
        """Let a signal become 1 that the loop reads and nobody set, as a wait for it is answered."""
        signals = self._interpreter.recorder.signals
        for key, (name, _) in list(signals.assumed.items()):
            if key not in signals.values:
                signals.write(key, 1.0)
                place = self._interpreter.place[0], self._line
                self._interpreter.recorder.assume(
                    place, f"{name} becomes 1, because the loop waits (--inputs {name}=1@TIME)"
                )
                return True
        return False


def state_of(interpreter: Interpreter) -> Hashable:
    """Return all that a program may depend on, for comparison."""
    recorder, frame = interpreter.recorder, interpreter.frame
    scopes = [interpreter.shared, *(scope.local for scope in interpreter.scopes)]
    scopes += [] if frame is None else [frame.data]
    values = tuple(
        _frozen(cell.value)
        for names in scopes
        for cell in names.values()
        if getattr(cell, "kind", "CONST") != "CONST" and getattr(cell, "pending", None) is None
    )
    arm = () if recorder.arm is None else tuple(recorder.arm.q.round(9).tolist())
    last = () if recorder.arm is not None or not recorder.moves else _frozen(recorder.last_target)
    return (
        values, tuple(sorted(recorder.signals.values.items())), arm, last, recorder.operator.left,
        tuple(number for number, _ in interpreter.interrupts.pending), _frozen(list(recorder.settings)),
    )  # fmt: skip


def _frozen(value: Any) -> Hashable:
    if isinstance(value, Record):
        return tuple(map(_frozen, value.values))
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return value if isinstance(value, Hashable) else id(value)

"""Task of a virtual controller: its recorder, its interpreter, and the run of its program.

The recorder makes moves, lets waits last, and turns notes into lines.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twin.abb.controller.arm import MechanicalUnit
from twin.abb.controller.egm import Egm
from twin.abb.controller.events import of_fault
from twin.abb.controller.execution import Execution, Question, TaskSettings, TaskThread
from twin.abb.controller.machine import Network, RapidSocket
from twin.abb.controller.motion import Path, Trigger, triggers_of
from twin.abb.egm.robot.exchange import Pace
from twin.abb.rapid import syntax_tree as st
from twin.abb.rapid.arguments import Arguments
from twin.abb.rapid.expressions import USER_DATA, Cell, RoutineOf, Scope
from twin.abb.rapid.planning import groups_of
from twin.abb.rapid.program import Interpreter
from twin.abb.rapid.recorder import Files, Left, Note, Operator, Recorder, Stopped
from twin.abb.rapid.signals import Signals, signals_of
from twin.abb.rapid.targets import Arm, Move, Pause
from twin.abb.rapid.values import NUM
from twin.base.errors import RapidError

MOST_AHEAD = 10
"""Moves without a stop that are collected before the arm begins with them; others are added later (ours)."""


class LiveRecorder(Recorder):
    """Recorder of a task that lives: what its instructions may ask and do on a virtual controller.

    Attributes:
        task: thread of the task.
        name: name of the task.
        interpreter: interpreter of the task.
        execution: execution of all programs.
        unit: the arm.
        egm: EGM of the programs.
        network: network of the sockets.
        sockets: open sockets of the task.
    """

    def __init__(
        self, task: TaskThread, execution: Execution, unit: MechanicalUnit, egm: Egm, network: Network,
        signals: Signals, operator: Operator, files: Files,
    ) -> None:  # fmt: skip
        arm = Arm(unit.robot, unit.motion.q) if task.settings.moves else None
        super().__init__(arm, signals, operator=operator, files=files)
        self.task, self.name, self.execution, self.unit = task, task.settings.name, execution, unit
        self.egm, self.network = egm, network
        self.interpreter: Interpreter
        self.sockets: set[RapidSocket] = set()
        self._stored: list[tuple[list, list]] = []
        if arm is not None:
            unit.forget_moves = self.forget_moves

    def now(self) -> float:
        """Return the time since the start of the controller, in [s]."""
        return self.execution.t

    def report(self, sentence: str) -> None:
        """Report what happened."""
        self.execution.report(self.name, sentence)

    def note(self, place: tuple[str, int], text: str) -> None:
        """Do nothing: notes are for a check."""

    def _add_note(self, notes: list[Note], note: Note) -> None:
        count = len(notes)
        super()._add_note(notes, note)
        for new in notes[count:]:
            self.report(f"line {new.line}: {new.text}")

    # --------------------------------------------------------------------------------------------- waits

    def wait_until(self, is_there: Callable[[], bool], seconds: float = float("inf")) -> None:
        """Wait for a condition that the controller's thread may look at, for a time in [s]; traps run."""
        interrupts, end = self.interpreter.interrupts, self.execution.t + seconds - 1e-9
        while True:
            if interrupts.due:
                self.interpreter.run_traps()
            if is_there() or self.execution.t >= end:
                return
            self.begin()
            self.task.hand_over(lambda: is_there() or self.execution.t >= end or interrupts.due)

    def pause(self, pause: Pause) -> None:
        """Make the moves before, and wait."""
        self._settle()
        self.wait_until(lambda: False, pause.seconds)

    def wait(
        self, given: Arguments, name: str, is_there: Callable[[], bool], wanted: list[tuple[str, float]]
    ) -> None:
        """Wait until a condition holds, see `Recorder.wait`; nothing is taken as answered.

        The condition is looked at in every turn, because it may call routines of the task.
        """
        self._settle()
        end = self.execution.t + given.optional("maxtime", NUM, float("inf"))
        while True:
            if self.interpreter.interrupts.due:
                self.interpreter.run_traps()
            if is_there() or self.execution.t >= end - 1e-9:
                break
            self.begin()
            self.task.hand_over()
        if not is_there():
            given.report_time_out(given.value("maxtime", NUM))

    def hold(self) -> bool:
        """Stop the arm, and wait until it rests; return whether it was held before."""
        held, self.execution.held = self.execution.held, True
        self.wait_until(lambda: self.egm.rests)
        return held

    def ask(self, given: Arguments, question: str, keys: Sequence[str] = ()) -> str | None:
        r"""Return an answer that was given before, or wait for that of a person, `\MaxTime` at most."""
        if (answer := super().ask(given, question)) is not None:
            return answer
        most = given.optional("maxtime", NUM, float("inf"))
        asked = self.execution.questions[self.name] = Question(question, tuple(keys))
        choices = f" ({', '.join(keys)})" if keys else ""
        self.report(f"{given.name} asks: {question}{choices}")
        try:
            self.wait_until(lambda: asked.answer is not None, most)
        finally:
            del self.execution.questions[self.name]
        if asked.answer is None:
            if "breakflag" not in given:
                given.interpreter.raise_error("err_tp_maxtime", f"{given.name} had no answer in {most:g} s")
            given.give("breakflag", given.interpreter.error_number("err_tp_maxtime"))
        return asked.answer or "0"

    def refuse_answer(self, sentence: str) -> None:
        """Report that an answer is refused."""
        self.report(sentence)

    def _settle(self) -> None:
        """Make the moves before a wait; a trap, or a program that stopped the arm, does not wait for it."""
        if not (self.interpreter.interrupts.running or self.execution.held):
            self.finish()

    # --------------------------------------------------------------------------------------------- moves

    def triggers(self, given: Arguments, place: Mapping[str, int]) -> tuple[Trigger, ...]:
        """Return what happens on the way of a move: its triggers, and the output at its end."""
        if "Value" in place:
            signal, value = given.signal(place["Signal"]), given.value(place["Value"], NUM)
            return (Trigger(lambda: self.signals.write(signal, value)),)
        return triggers_of(given, place)

    def set_at_target(self, signal: str, value: float) -> None:
        """Do nothing: a trigger sets the output."""

    def add(self, move: Move) -> None:
        """Make a move, or collect it if the arm does not stop at its end.

        Raises:
            RapidError: the task moves no arm, or the move is impossible.
        """
        if self.arm is None:
            raise RapidError(f"{move.name}: the task {self.name} moves no arm", "refusal")
        motion = self.unit.motion
        if self.egm.guides:
            raise RapidError(f"{move.name} while EGM guides the arm: EGMStop must stand before it", "value")
        if not is_guided(move):
            self._refuse_guided_moves()
        elif not self.guided_moves:
            self.finish()
        if not self.events and not motion.paths:
            self.arm.q = motion.q.copy()
        self.arm.move(move)
        self.events.append(move)
        self.moves += 1
        if self.arm.warnings:  # remarks of a check; they would grow
            self.arm.warnings.clear()
        if is_guided(move):
            return
        if move.stops:
            self.finish()
        elif len(self.events) >= MOST_AHEAD:
            self._plan()
            self.wait_until(lambda: motion.ahead <= MOST_AHEAD // 2)

    @property
    def guided_moves(self) -> list[Move]:
        """Collected moves that a client will correct: EGMMoveL, EGMMoveC."""
        return [one for one in self.events if isinstance(one, Move) and is_guided(one)]

    def _refuse_guided_moves(self) -> None:
        if self.guided_moves:
            raise RapidError("the last EGMMove must end in a fine point", "value")

    def begin(self) -> None:
        """Let the arm begin with the collected moves before the task waits, because no other may follow."""
        if self.events and self.arm is not None and not self.guided_moves:
            self._plan()

    def finish(self) -> None:
        """Make all moves of the task, and wait until the arm has made them.

        Raises:
            RapidError: a move cannot keep the limits, or its corner leads to no further EGMMove.
        """
        if self.arm is None:
            return
        self._refuse_guided_moves()
        if self.events:
            self.interrupt_corner("")
            self._plan()
        self.wait_until(lambda: not self.unit.motion.paths)

    def catch_up(self) -> None:
        """Let the arm begin its last move, so that an output is not set many moves ahead of the arm.

        A trap, or a program that stopped the arm, does not wait for it.
        """
        if self.arm is None or self.interpreter.interrupts.running or self.execution.held:
            return
        self.begin()
        self.wait_until(lambda: self.unit.motion.ahead == 0)

    def _plan(self) -> None:
        """Plan the collected moves, and let the arm begin with them, or blend them into its present path.

        Raises:
            RapidError: a move cannot keep the limits.
        """
        assert self.arm is not None
        unit, motion, era = self.unit, self.unit.motion, self.unit.era
        groups = [one for one in groups_of(self.arm.segments, self.events) if isinstance(one, list)]
        self.forget_moves()
        if motion.paths and motion.paths[-1].open:
            last = motion.paths[-1]
            rest = last.rest(motion.t if last is motion.paths[0] else 0.0)
            longer = self.task.aside(
                lambda: Path.planned(unit.robot, [*rest.segments, *groups[0]], unit.limits, rest.begin)
            )
            if era != unit.era:  # ClearPath came meanwhile
                return
            if longer is not None and motion.extend(rest, last, longer):
                groups = groups[1:]
        planned = self.task.aside(lambda: [Path.planned(unit.robot, one, unit.limits) for one in groups])
        if era != unit.era:
            return
        for group, path in zip(groups, planned, strict=True):
            if path is None:  # it leads nowhere
                motion.due += [one for segment in group for one in segment.move.triggers]
            else:
                motion.paths.append(path)

    def forget_moves(self) -> None:
        """Forget the moves that were collected and not planned."""
        self.events.clear()
        if self.arm is not None:
            self.arm.segments.clear()

    def store_moves(self) -> None:
        """Put the collected moves aside, with the path of the arm."""
        self._stored.append((list(self.events), [] if self.arm is None else list(self.arm.segments)))
        self.forget_moves()

    def restore_moves(self) -> None:
        """Take back the moves that were stored last."""
        self.finish()
        events, segments = self._stored.pop() if self._stored else ([], [])
        self.events[:] = events
        if self.arm is not None:
            self.arm.segments[:] = segments
            paths = self.unit.motion.paths
            if segments:
                self.arm.q = segments[-1].q[-1].copy()
            elif paths:
                self.arm.q = paths[-1].motion.q[-1].copy()

    def close_sockets(self) -> None:
        """Close all sockets of the task."""
        for one in list(self.sockets):
            one.close()
        self.sockets.clear()


def is_guided(move: Move) -> bool:
    """Return whether a client corrects a move: EGMMoveL or EGMMoveC."""
    return move.name.lower().startswith("egm")


class TaskInterpreter(Interpreter):
    """Interpreter whose statements end a turn that lasts too long."""

    def __init__(self, end_long_turn: Callable[[], None], *given: Any) -> None:
        super().__init__(*given)
        self._end_long_turn = end_long_turn
        self.step_limit = 2**62
        self.interrupts.ever = deque(maxlen=0)  # type: ignore[assignment]  # of a check; it grows
        self._note_initial_values()

    def _note_initial_values(self) -> None:
        names = [self.shared, *(scope.local for scope in self.scopes)]
        cells = [cell for one in names for cell in one.values() if isinstance(cell, Cell)]
        self._initial = [(cell, cell.pending) for cell in cells if cell.kind == "VAR"]

    def run(self, statement: Any) -> None:
        """Run one statement."""
        try:
            self._end_long_turn()
        except RapidError as error:  # see `TaskThread.fail`
            error.file, error.line = self.place
            raise
        super().run(statement)

    def watched_rounds(self, line: int, is_endless: bool) -> Callable[[], object]:
        """Return the function that a loop calls in each round, which ends a long turn of an empty loop."""
        return self._end_long_turn

    def watched_calls(self, routine: st.Routine) -> None:
        """Return None: a task may repeat itself for ever."""

    def add_module(self, module: st.Module) -> None:
        """Add a module.

        Raises:
            RapidError: a name of it is declared already; nothing is changed then.
        """
        for item in module.items:
            if not isinstance(item, (st.RecordType, st.Alias)) and item.scope != "LOCAL":
                found = self.shared.get(item.name.lower())
                is_persistent = isinstance(item, st.Data) and item.kind == "PERS"
                if found is not None and not is_persistent and item.name.lower() not in USER_DATA:
                    raise RapidError(
                        f"{item.name} is declared in another module already", "name", module.file, item.line
                    )
                if item.name.lower() in USER_DATA:
                    self.shared.pop(item.name.lower(), None)
        scope = Scope(self.shared, module.file)
        self._declare_types(module, scope)
        self._declare_items(module, scope)
        self.scopes.append(scope)
        self.signals.names = signals_of([module], self.signals.types) | self.signals.names
        self._note_initial_values()

    def remove_module(self, module: st.Module, k: int) -> None:
        """Remove module number `k`."""
        for item in module.items:
            if not isinstance(item, (st.RecordType, st.Alias)) and item.scope != "LOCAL":
                self.shared.pop(item.name.lower(), None)
        del self.scopes[k]
        self._note_initial_values()

    def _skip_unknown(self, name: str, statement: st.Call) -> None:
        """Raise ERR_REFUNKPRC for the handler of this routine, or skip a procedure that is not there."""
        if self.handles_errors:
            self.raise_error("err_refunkprc", f"there is no procedure {name}")
        super()._skip_unknown(name, statement)

    def begin_again(self) -> None:
        """Forget all interrupts, and give variables their initial values."""
        self.interrupts.__init__()
        self.interrupts.ever = deque(maxlen=0)  # type: ignore[assignment]
        for cell, initial in self._initial:
            if initial is not None:
                cell.pending = initial


class Task(TaskThread):
    """Task of a virtual controller.

    Attributes:
        recorder: what the instructions of the task use.
        interpreter: its interpreter.
        modules: its modules.
        changes: number of modules that were loaded and removed since the start.
    """

    def __init__(self, settings: TaskSettings, pace: Pace, execution: Execution) -> None:
        self.modules, self.changes, self._execution = list(settings.modules), 0, execution
        self._begin = settings.entry
        self.recorder: LiveRecorder
        self.interpreter: TaskInterpreter
        super().__init__(settings, pace)

    def load(
        self,
        recorder: LiveRecorder,
        instructions: Mapping[str, Callable[[Arguments], None]],
        functions: Mapping[str, Callable[[Arguments], Any]],
    ) -> None:
        """Load the modules of the settings.

        Raises:
            RapidError: a module is wrong.
        """
        self.recorder, given = recorder, (self.settings.modules, instructions, functions, recorder)
        self.interpreter = recorder.interpreter = TaskInterpreter(self.end_long_turn, *given)
        self.interrupts = self.interpreter.interrupts

    @property
    def has_program(self) -> bool:
        """Whether the procedure to begin with is there."""
        return isinstance(self.interpreter.shared.get(self.settings.entry.lower()), RoutineOf)

    @property
    def beginning(self) -> tuple[str, int] | None:
        """File and line of the first statement of the procedure to begin with, None if it is not there."""
        entry = self.interpreter.shared.get(self.settings.entry.lower())
        if not isinstance(entry, RoutineOf):
            return None
        first = entry.routine.block[0].line if entry.routine.block else entry.routine.line
        return entry.scope.file, first

    @property
    def pointer(self) -> tuple[str, int] | None:
        """File and line of the program pointer, None without a program."""
        return self.interpreter.place if self.state in ("running", "faulty") else self.beginning

    def module(self, name: str) -> st.Module | None:
        """Return the module of a name, None if there is none."""
        return next((one for one in self.modules if one.name.lower() == name.lower()), None)

    def to_entry(self, routine: str = "") -> None:
        """Move the program pointer to the entry; the routines that run are left by their UNDO handlers.

        Args:
            routine: procedure with which the program begins once, in place of the entry.
        """
        if self.state == "running":
            self.error = Left("the program pointer was moved")
            for _ in range(1000):  # handlers may wait
                self.turn()
                if self.state != "running":
                    break
        self.state, self.fault, self.error = "ready", None, None
        self._begin = routine or self.settings.entry
        self.interpreter.begin_again()
        self.recorder.close_sockets()

    def end_long_turn(self) -> None:
        """End the turn if its time is over."""
        self._left -= 1
        if self._left < 0 if self.pace.virtual else time.perf_counter() > self._end:
            self.recorder.begin()
            self.hand_over()

    def _end_with(self, fault: RapidError) -> None:
        self.state, self.fault = "faulty", fault
        self._execution.report(self.settings.name, str(fault))
        self._execution.enter(of_fault(self._execution.t, self.settings.name, fault))

    def _run_once(self) -> None:
        """Run the program from its entry to its end."""
        begin, self._begin = self._begin, self.settings.entry
        try:
            end: Stopped = self.interpreter.run_program(begin)
            self.recorder.finish()
        except Stopped as stopped:
            end = stopped
        except (RapidError, RecursionError) as error:
            deep = RapidError("calls are nested too deep", "value")
            self._end_with(error if isinstance(error, RapidError) else deep)
            return
        again = end.restarts if isinstance(end, Left) else self._execution.forever or self.is_background
        if not again:
            self.state = "ended"

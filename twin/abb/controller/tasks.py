"""Tasks of a virtual controller: threads of which one at a time runs, each for a turn in every cycle.

A thread and not a generator carries a task, because a function in an expression may move the arm or wait:
its statements hand over from any depth of the interpreter, which therefore has no second form.  The
controller gives the baton to one task and waits for it, so that data needs no locks.  A turn ends at a wait,
at a move, or after 1 ms.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from twin.abb.controller.events import of_fault
from twin.abb.rapid import syntax_tree as st
from twin.abb.rapid.expressions import USER_DATA, Cell, RoutineOf, Scope
from twin.abb.rapid.program import FRAMES, Interpreter
from twin.abb.rapid.recorder import Left, Stopped
from twin.abb.rapid.signals import signals_of
from twin.base.errors import RapidError

if TYPE_CHECKING:
    from twin.abb.controller.controller import VirtualController
    from twin.abb.controller.live_recorder import LiveRecorder

TURN = 1e-3
"""Longest turn of a task by the clock, in [s]."""

STATEMENTS = 100
"""Statements of a turn in virtual time, where the clock must not decide: about those of 1 ms."""

T = TypeVar("T")


@dataclass(frozen=True)
class TaskSettings:
    """Settings of a task.

    Attributes:
        name: name of the task.
        modules: its modules.
        kind: NORMAL tasks start and stop with the execution; STATIC and SEMISTATIC ones run always.
        entry: procedure to begin with.
        moves: whether its program moves the arm.
    """

    name: str
    modules: Sequence[st.Module]
    kind: Literal["NORMAL", "STATIC", "SEMISTATIC"] = "NORMAL"
    entry: str = "main"
    moves: bool = False


class Closed(BaseException):
    """End of a task's thread."""


class TaskInterpreter(Interpreter):
    """Interpreter whose statements end a turn that lasts too long."""

    def __init__(self, task: Task, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._end_long_turn = task.end_long_turn
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
        except RapidError as error:  # see `Task.fail`
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
        self.signals.names |= set(signals_of([module], self.signals.types))
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


class Task:
    """Task of a virtual controller.

    Attributes:
        settings: its settings.
        state: ready (program pointer at the entry), running, ended, or faulty.
        fault: fault that ended the program.
        error: error that the program is to raise at its next turn, wherever it waits.
        recorder: what the instructions of the task use.
        interpreter: its interpreter.
        modules: its modules.
        is_active: whether a start of the execution starts the task.
        changes: number of modules that were loaded and removed since the start.
    """

    def __init__(self, controller: VirtualController, settings: TaskSettings) -> None:
        self.settings, self.modules, self.is_active = settings, list(settings.modules), True
        self.changes = 0
        self.state: Literal["ready", "running", "ended", "faulty"] = "ready"
        self.fault: RapidError | None = None
        self.error: Exception | None = None
        self._controller = controller
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._until: Callable[[], bool] | None = None
        self._error: BaseException | None = None
        self._closing = False
        self._end = 0.0
        self._left = 0
        self._begin = settings.entry
        self.recorder: LiveRecorder
        self.interpreter: TaskInterpreter
        self._thread = threading.Thread(target=self._run, name=settings.name, daemon=True)
        self._thread.start()

    @property
    def is_background(self) -> bool:
        """Whether the task runs whether or not the execution does."""
        return self.settings.kind != "NORMAL"

    @property
    def is_started(self) -> bool:
        """Whether the task starts and stops with the execution."""
        return self.is_active and not self.is_background

    @property
    def has_program(self) -> bool:
        """Whether the procedure to begin with is there."""
        return isinstance(self.interpreter.shared.get(self.settings.entry.lower()), RoutineOf)

    def module(self, name: str) -> st.Module | None:
        """Return the module of a name, None if there is none."""
        return next((one for one in self.modules if one.name.lower() == name.lower()), None)

    # ------------------------------------------------------------------------- in the controller's thread

    def turn(self) -> None:
        """Let the task run until it waits, or until its time is over."""
        if self.error is None and (self.state != "running" or (self._until and not self._until())):
            return
        self._until = None
        self._give()

    def _give(self) -> None:
        self._end, self._left = time.perf_counter() + TURN, STATEMENTS
        self._go.release()
        self._back.acquire()
        if self._error is not None:
            raise self._error

    def start(self) -> None:
        """Begin, or continue, unless the task is faulty."""
        if self.state in ("ready", "ended"):
            self.state = "running"

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

    def fail(self, error: RapidError) -> None:
        """Raise an error in the program at its next turn, wherever it waits."""
        self.error = error

    def close(self) -> None:
        """End the thread."""
        self._closing = True
        self._go.release()
        self._thread.join(5.0)

    # ------------------------------------------------------------------------------- in the task's thread

    def end_long_turn(self) -> None:
        """End the turn if its time is over."""
        self._left -= 1
        if self._left < 0 if self._controller.pace.virtual else time.perf_counter() > self._end:
            self.recorder.begin()
            self.hand_over()

    def hand_over(self, until: Callable[[], bool] | None = None) -> None:
        """End the turn; the next one begins when a condition holds, which the controller's thread looks at.

        Raises:
            Left: the program pointer was moved to the entry.
            RapidError: an error of the controller, see `fail`.
        """
        self._until = until
        self._back.release()
        self._await_turn()

    def _await_turn(self) -> None:
        self._go.acquire()
        if self._closing:
            raise Closed
        error, self.error = self.error, None
        if error is not None:
            raise error

    def wait(self, is_there: Callable[[], bool]) -> None:
        """Wait for a condition that the controller's thread may look at; traps run meanwhile."""
        interrupts = self.interpreter.interrupts
        while True:
            if interrupts.due:
                self.interpreter.run_traps()
            if is_there():
                return
            self.recorder.begin()
            self.hand_over(lambda: is_there() or interrupts.due)

    def poll(self, is_there: Callable[[], bool]) -> None:
        """Wait for a condition that is looked at in every turn, because it may call routines of the task."""
        while True:
            if self.interpreter.interrupts.due:
                self.interpreter.run_traps()
            if is_there():
                return
            self.recorder.begin()
            self.hand_over()

    def aside(self, work: Callable[[], T]) -> T:
        """Return the result of work that the arm's cycles do not wait for, and that uses no shared data."""
        if self._controller.pace.virtual:
            return work()
        done = threading.Event()
        self._until = done.is_set
        self._back.release()
        try:
            return work()
        finally:
            done.set()
            self._await_turn()

    def _run(self) -> None:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), FRAMES))
        try:
            wait: Callable[[], None] = self._await_turn
            while True:
                try:
                    wait()
                except Left:  # between two runs
                    self.state = "ended"
                except RapidError as error:
                    self._end_with(error)
                else:
                    self._run_once()
                wait = self.hand_over
        except Closed:
            pass
        except BaseException as error:  # a mistake of ours, which the controller's thread raises
            self._error = error
        finally:
            self._back.release()

    def _end_with(self, fault: RapidError) -> None:
        self.state, self.fault = "faulty", fault
        self._controller.report(self.settings.name, str(fault))
        self._controller.enter(of_fault(self._controller.t, self.settings.name, fault))

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
        again = end.restarts if isinstance(end, Left) else self._controller.forever or self.is_background
        if not again:
            self.state = "ended"

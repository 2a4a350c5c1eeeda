"""Execution of programs: threads of tasks of which one at a time runs, and what they share.

A thread and not a generator carries a task, because a function in an expression may move the arm or wait:
its statements hand over from any depth of the interpreter, which therefore has no second form.  The
controller gives the baton to one task and waits for it, so that data needs no locks.  A turn ends at a wait,
at a move, or after 1 ms.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from twin.abb.controller import events
from twin.abb.controller.events import Event, EventLog, Line, Message, Queue, event, queue_of
from twin.abb.egm.robot.exchange import Pace
from twin.abb.rapid import syntax_tree as st
from twin.abb.rapid.program import FRAMES
from twin.abb.rapid.recorder import Left
from twin.abb.rapid.signals import Interrupts
from twin.base.errors import RapidError

TURN = 1e-3
"""Longest turn of a task by the clock, in [s]."""

STATEMENTS = 100
"""Statements of a turn in virtual time, where the clock must not decide: about those of 1 ms."""

MODES = "AUTO", "MANR", "MANF"
"""Modes: automatic, and manual with reduced speed, 250 mm/s at most, and with full speed."""

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


@dataclass
class Question:
    """Question of a program to the operator: its text, the texts of keys, and the answer when it comes."""

    text: str
    keys: tuple[str, ...]
    answer: str | None = None


class TaskThread:
    """Thread of a task, which runs for a turn in every cycle.

    Attributes:
        settings: settings of the task.
        state: ready (program pointer at the entry), running, ended, or faulty.
        fault: fault that ended the program.
        error: error that the program is to raise at its next turn, wherever it waits.
        interrupts: interrupts of the program.
        is_active: whether a start of the execution starts the task.
        pace: timing of the cycles; in virtual time the number of statements ends a turn.
    """

    def __init__(self, settings: TaskSettings, pace: Pace) -> None:
        self.settings, self.pace, self.is_active = settings, pace, True
        self.interrupts = Interrupts()
        self.state: Literal["ready", "running", "ended", "faulty"] = "ready"
        self.fault: RapidError | None = None
        self.error: Exception | None = None
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._until: Callable[[], bool] | None = None
        self._error: BaseException | None = None
        self._closing = False
        self._end = 0.0
        self._left = 0
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

    def fail(self, error: RapidError) -> None:
        """Raise an error in the program at its next turn, wherever it waits."""
        self.error = error

    def close(self) -> None:
        """End the thread."""
        self._closing = True
        self._go.release()
        self._thread.join(5.0)

    # ------------------------------------------------------------------------------- in the task's thread

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

    def aside(self, work: Callable[[], T]) -> T:
        """Return the result of work that the arm's cycles do not wait for, and that uses no shared data."""
        if self.pace.virtual:
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

    def _run_once(self) -> None:
        """Run the program from its entry to its end."""
        raise NotImplementedError

    def _end_with(self, fault: RapidError) -> None:
        """End the program with a fault."""
        raise NotImplementedError


class Execution:
    """Execution of the programs of a controller: who runs, what an operator set, and what happens.

    Attributes:
        tasks: threads of the tasks by their names in lower case.
        motors: whether the motors are on.
        mode: AUTO, or MANR and MANF for manual mode with reduced and full speed.
        running: whether the execution was started, and not stopped since; see `executing`.
        forever: whether a program begins again at its end.
        override: share of the speed, 0 to 1.
        held: whether StopMove, or the supervision, stopped the arm.
        questions: questions that wait for an answer, by the names of their tasks.
        ports: local ports on which programs listen, by those that they name.
        queues: queues of messages by their names in lower case: one of each task, and those of clients.
        events: the last events of the controller.

    Args:
        clock: function that returns the time since the start, in [s].
        on_line: function that is called with every line, in the thread of the cycles or of a task.
    """

    def __init__(
        self, clock: Callable[[], float], *, forever: bool, on_line: Callable[[Line], object] | None
    ) -> None:
        self._clock, self.forever, self._on_line = clock, forever, on_line
        self.tasks: Mapping[str, TaskThread] = {}
        self.motors, self.mode, self.override = True, "AUTO", 1.0
        self.running = self.held = False
        self.questions: dict[str, Question] = {}
        self.ports: dict[int, int] = {}
        self.queues: dict[str, Queue] = {}
        self.events = EventLog()

    @property
    def t(self) -> float:
        """Time since the start, in [s]."""
        return self._clock()

    @property
    def is_stopped(self) -> bool:
        """Whether the arm stops, or stands, although a program may want to move it."""
        return self.held or not self.running or bool(self.faults)

    @property
    def faults(self) -> list[tuple[str, RapidError]]:
        """Tasks that ended with a fault, with it."""
        return [(one.settings.name, one.fault) for one in self.tasks.values() if one.fault is not None]

    @property
    def has_ended(self) -> bool:
        """Whether there are normal tasks, and all have ended."""
        states = self._started_states()
        return bool(states) and states <= {"ended", "faulty"}

    @property
    def executing(self) -> bool:
        """Whether the execution runs, and a normal task has not ended."""
        return self.running and bool(self._started_states() - {"ended", "faulty"})

    def _started_states(self) -> set[str]:
        """Return the states of the tasks that start and stop with the execution."""
        return {one.state for one in self.tasks.values() if one.is_started}

    def report(self, task: str, sentence: str) -> None:
        """Report what happened."""
        if self._on_line is not None:
            self._on_line(Line(self.t, task, sentence))

    def enter(self, event: Event) -> None:
        """Remember an event, and let the traps run that wait for such ones."""
        self.events.append(event)
        for task in self.tasks.values():
            task.interrupts.changed("event", "", None, event)

    def note(self, code: int, *texts: str, type_: int = events.STATE) -> None:
        """Remember an event of the controller itself by its code."""
        self.enter(event(self.t, code, *texts, type_=type_))

    def send(self, queue: str, message: Message) -> bool:
        """Put a message into a queue, for a task or a client; return whether it has room."""
        waiting = self.queues[queue.lower()]
        if len(waiting) >= events.MOST_MESSAGES:
            return False
        waiting.append(message)
        for task in self.tasks.values():
            if queue_of(task.settings.name).lower() == queue.lower():
                kind = f"{message.type}{{{message.dimensions}}}"
                task.interrupts.changed("message", kind, None, message)
        return True

    def stop(self) -> None:
        """Stop the execution; the arm stops on its path."""
        self.running = False

    def set_motors(self, on: bool) -> None:
        """Switch the motors on or off; the execution stops when they are switched off."""
        if on != self.motors:
            self.motors = on
            self.note(10011 if on else 10010)
        if not on:
            self.stop()

    def answer(self, text: str, task: str = "") -> None:
        """Give an answer to the question of a task, or to that which waits longest.

        Raises:
            RapidError: no task asks.
        """
        waiting = [one for name, one in self.questions.items() if one.answer is None and task in ("", name)]
        if not waiting:
            raise RapidError("no task asks the operator")
        waiting[0].answer = text

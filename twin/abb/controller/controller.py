"""Virtual controller: tasks, signals and an arm, advanced cycle by cycle.

Each cycle of 4 ms has these steps: signals and timers change that are due; every task gets a turn; the arm
moves to the end of the cycle.  Tasks therefore see the arm where the cycle begins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from twin.abb.controller.calls import Calls, T
from twin.abb.controller.egm import Egm, EgmDevices
from twin.abb.controller.event_log import EventLog, event
from twin.abb.controller.events import ERROR, STATE, WARNING, Event
from twin.abb.controller.home import HomeFiles
from twin.abb.controller.instructions import functions_for, instructions_for
from twin.abb.controller.live_recorder import LiveRecorder, Question
from twin.abb.controller.messages import MOST_MESSAGES, Message, Queue, queue_of
from twin.abb.controller.motion import Motion
from twin.abb.controller.supervision import Supervision
from twin.abb.controller.tasks import Task, TaskInterpreter, TaskSettings
from twin.abb.egm.robot.exchange import Pace, RealTime
from twin.abb.egm.robot.guided_arm import Controller, GuidedArm
from twin.abb.egm.robot.session import whole_periods
from twin.abb.rapid import syntax_tree as st
from twin.abb.rapid.expressions import Cell
from twin.abb.rapid.planning import Limits
from twin.abb.rapid.recorder import Operator
from twin.abb.rapid.signals import Signals, signals_of
from twin.abb.rapid.targets import Arm
from twin.base.arrays import Floats
from twin.base.errors import RapidError, near
from twin.data.logs.annotations import ProgramLines
from twin.data.logs.log import Log
from twin.physics.robot.robot import Payload, Robot

CYCLE = 4e-3
"""Duration of a cycle, in [s]."""

MOST_MARKS = 30_000
"""Largest number of lines whose beginnings are known for the log: one in each cycle of its two minutes."""


class Line(NamedTuple):
    """Line on what happened: time in [s], name of the task or "", and a sentence."""

    t: float
    task: str
    sentence: str


SYSTEM_OUTPUTS = (
    "MotorOn", "CycleOn", "TaskExecuting", "RobotNotMoving", "ExecutionError", "EmergencyStop",
    "MotionPossible", "AutoOn",
)  # fmt: skip
"""States of the controller that an output may have."""


@dataclass(frozen=True)
class Network:
    """Network of a virtual controller.

    Attributes:
        bind: local address of all sockets, whatever address a program names.
        allow: hosts beside this machine to which programs may connect.
        ports: local ports by those that programs name.
        free: whether all other ports are free ones of this machine; `VirtualController.ports` has them.
    """

    bind: str = "127.0.0.1"
    allow: tuple[str, ...] = ()
    ports: Mapping[int, int] = field(default_factory=dict)
    free: bool = False


class VirtualController:
    """Virtual controller.

    Attributes:
        robot: nominal arm, without a payload.
        signals: signals of the cell.
        motion: motion of the arm.
        supervision: what watches the arm while it moves.
        tasks: tasks by their names in lower case.
        limits: share of the torque, and settling time, of planned moves.
        motors: whether the motors are on.
        mode: AUTO, or MANR and MANF for manual mode with reduced and full speed.
        running: whether the execution was started, and not stopped since; see `executing`.
        forever: whether a program begins again at its end.
        override: share of the speed, 0 to 1.
        held: whether StopMove, or the supervision, stopped the arm.
        operator: answers of the operator that were given before.
        questions: questions that wait for an answer, by the names of their tasks.
        ports: local ports on which programs listen, by those that they name.
        home: folder that stands for HOME:, None without one.
        queues: queues of messages by their names in lower case: one of each task, and those of clients.
        events: the last events of the controller.
        era: number of times that the path was cleared.
        egm: EGM of its programs.
        pace: timing of the cycles; in virtual time it is their number, and no clock measures the tasks.
        samples: number of samples of the arm in a cycle.

    Args:
        arm: the arm, at rest.
        robot: nominal arm, without a payload.
        controller_for: function that returns the controller for a payload.
        tasks: settings of the tasks.
        signals: signals of the cell.
        outputs: names of outputs by the state of the controller that they have, see `SYSTEM_OUTPUTS`.
        home: folder that stands for HOME:.
        network: network of the sockets.
        operator: answers of the operator; others are waited for.
        supervision: what watches the arm; by default its drives are watched.
        egm: clients of EGM.
        pace: timing of the cycles, by default by the clock.
        on_line: function that is called with every line, in the thread of the cycles or of a task.

    Raises:
        RapidError: a module is wrong, or more than one task moves the arm.
    """

    def __init__(
        self,
        arm: GuidedArm,
        robot: Robot,
        controller_for: Callable[[Payload | None], Controller],
        tasks: Sequence[TaskSettings],
        *,
        signals: Signals | None = None,
        outputs: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        home: Path | None = None,
        network: Network | None = None,
        supervision: Supervision | None = None,
        operator: Operator | None = None,
        egm: EgmDevices | None = None,
        forever: bool = True,
        pace: Pace | None = None,
        on_line: Callable[[Line], object] | None = None,
    ) -> None:
        self.arm, self.robot, self._controller_for = arm, robot, controller_for
        self.signals = Signals({}) if signals is None else signals
        self.limits = Limits(0.9) if limits is None else limits
        self.network = Network() if network is None else network
        self.supervision = Supervision() if supervision is None else supervision
        self.operator = Operator(()) if operator is None else operator
        self.questions: dict[str, Question] = {}
        self.ports: dict[int, int] = {}
        self.queues: dict[str, Queue] = {queue_of(one.name).lower(): Queue() for one in tasks}
        self.outputs, self.home = outputs or {}, home
        self.forever, self._on_line = forever, on_line
        self.pace: Pace = RealTime(CYCLE) if pace is None else pace
        self.events = EventLog()
        self.motors, self.mode = True, "AUTO"
        self.running = self.held = self._executed = False
        self.override, self.era = 1.0, 0
        self.motion = Motion(arm.q, arm.period)
        self.kinematics = Arm(robot, arm.q)
        self.samples = whole_periods(CYCLE, arm.period)
        self.egm = Egm(self, EgmDevices() if egm is None else egm)
        self._payload: Payload | None = None
        self._marks: deque[tuple[int, str, int]] = deque(maxlen=MOST_MARKS)
        self._calls = Calls()
        self.tasks: dict[str, Task] = {}
        if len(moving := [one.name for one in tasks if one.moves]) > 1:
            raise RapidError(f"the tasks {', '.join(moving)} move the arm: expected one", "refusal")
        try:
            for settings in tasks:
                self.tasks[settings.name.lower()] = self._loaded(settings, HomeFiles(home))
            self.share_persistents()
        except BaseException:
            self.close()
            raise
        self.signals.on_change = self._signal_changed
        for task in self.tasks.values():
            if task.is_background:
                task.start()

    def _loaded(self, settings: TaskSettings, files: HomeFiles) -> Task:
        task = Task(self, settings)
        try:
            task.recorder = recorder = LiveRecorder(self, task, files)
            task.interpreter = TaskInterpreter(
                task, settings.modules, instructions_for(recorder), functions_for(recorder), recorder
            )
        except BaseException:
            task.close()
            raise
        known = self.signals.types
        for key, name in signals_of(settings.modules).items():
            if known and key not in known and key not in self.signals.given:
                self.report(settings.name, f"{name} is no signal of the station{near(name, known)}: made")
        return task

    def share_persistents(self) -> None:
        """Make persistents of one name and type one data object of all tasks."""
        declared = [
            (task.interpreter.shared, item, (item.name.lower(), item.type.lower(), len(item.dimensions)))
            for task in self.tasks.values()
            for module in task.modules
            for item in module.items
            if isinstance(item, st.Data) and item.kind == "PERS" and not item.scope
        ]
        common: dict[tuple[str, str, int], Cell] = {}
        for shared, item, key in sorted(declared, key=lambda one: one[1].initial is None):
            common.setdefault(key, shared[item.name.lower()])
        for shared, item, key in declared:
            shared[item.name.lower()] = common[key]
        watching = [task.interpreter.interrupts for task in self.tasks.values()]
        for task in self.tasks.values():
            task.interpreter.watching = watching

    # ---------------------------------------------------------------------------------------------- state

    @property
    def t(self) -> float:
        """Time since the start, in [s]."""
        return self.arm.t

    @property
    def is_stopped(self) -> bool:
        """Whether the arm stops, or stands, although a program may want to move it."""
        return self.held or not self.running or bool(self.faults)

    @property
    def rests(self) -> bool:
        """Whether the arm makes no move, and no client guides it."""
        return self.motion.rests and not (self.egm.session is not None and self.egm.session.moves)

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
            task.interpreter.interrupts.changed("event", "", None, event)

    def note(self, code: int, *texts: str, type_: int = STATE) -> None:
        """Remember an event of the controller itself by its code."""
        self.enter(event(self.t, code, *texts, type_=type_))

    def send(self, queue: str, message: Message) -> bool:
        """Put a message into a queue, for a task or a client; return whether it has room."""
        waiting = self.queues[queue.lower()]
        if len(waiting) >= MOST_MESSAGES:
            return False
        waiting.append(message)
        for task in self.tasks.values():
            if queue_of(task.settings.name).lower() == queue.lower():
                kind = f"{message.type}{{{message.dimensions}}}"
                task.interpreter.interrupts.changed("message", kind, None, message)
        return True

    # ------------------------------------------------------------------------------------------- execution

    def start(self) -> None:
        """Start the execution, or continue on the path.

        Raises:
            RapidError: the motors are off, or a task has no program, or a fault: the program pointer must be
                moved first.
        """
        if not self.motors:
            raise RapidError("the execution starts while the motors are on", "refusal")
        for task in self.tasks.values():
            if task.is_started and not task.has_program:
                raise RapidError(
                    f"the task {task.settings.name} has no procedure {task.settings.entry}", "refusal"
                )
        for name, fault in self.faults:
            raise RapidError(
                f"the task {name} stopped with a fault: move its program pointer to main; {fault}", "refusal"
            )
        self.running = True
        for task in self.tasks.values():
            if task.is_started:
                task.start()

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

    def to_main(self, routine: str = "") -> None:
        """Move the program pointers of all normal tasks to their entries, and forget the path.

        Args:
            routine: procedure without arguments with which the task that moves the arm begins, once; its
                entry if this is empty.

        Raises:
            RapidError: the execution runs, the arm has not stopped yet, or there is no such procedure.
        """
        if self.executing or not self.rests:
            raise RapidError("the program pointer moves while the execution is stopped and the arm rests")
        self.running = False
        if routine:
            for task in self._moving():
                task.interpreter.procedure(routine)
        self.egm.close()
        self.clear_path()
        for task in self.tasks.values():
            if not task.is_background:
                task.to_entry(routine if task.settings.moves else "")
        self.held = False
        self.note(10002)

    def _moving(self) -> list[Task]:
        """Return the task that moves the arm, if there is one."""
        return [task for task in self.tasks.values() if task.settings.moves]

    def answer(self, text: str) -> None:
        """Give an answer to the question that waits longest.

        Raises:
            RapidError: no task asks.
        """
        waiting = [one for one in self.questions.values() if one.answer is None]
        if not waiting:
            raise RapidError("no task asks the operator")
        waiting[0].answer = text

    def clear_path(self) -> None:
        """Forget all moves that are not made."""
        self.motion.clear()
        self.era += 1
        for task in self.tasks.values():
            task.recorder.forget_moves()

    def _signal_changed(self, name: str, before: float, after: float) -> None:
        for task in self.tasks.values():
            task.interpreter.signal_changed(name, before, after)

    # ---------------------------------------------------------------------------------------------- cycles

    def call(self, function: Callable[[], T], timeout: float = 5.0) -> T:
        """Return the result of a function that is called between the turns of tasks, for other threads.

        The thread of the cycles calls it at the beginning of the next cycle; while none runs, the present
        thread does at once.  It must be short, and must not wait for a task.

        Args:
            function: function without arguments; what it raises is raised here.
            timeout: time in which a cycle must begin, in [s].

        Raises:
            TwinError: no cycle began in this time; the function is not called later.
        """
        return self._calls.call(function, timeout)

    def cycle(self) -> None:
        """Run a cycle.

        Raises:
            DivergenceError: the motion of the arm diverged.
            TwinError: the window was closed.
        """
        with self._calls.lock:
            self._calls.answer()
            self._cycle()

    def _cycle(self) -> None:
        self.signals.advance(self.t)
        self._write_outputs()
        for task in self.tasks.values():
            interrupts = task.interpreter.interrupts
            interrupts.stopped = not (task.is_background or (self.running and task.is_active))
            interrupts.advance(self.t)
            if not interrupts.stopped:
                task.turn()
        self.motion.goal = 0.0 if self.is_stopped else self.override
        for path, k in self.motion.begun():
            move = path.segments[k].move
            self.mark(move.file, move.line)
            self.change_load(path.payload(k))
        self.egm.move(self.samples)
        due, self.motion.due = self.motion.due, []
        for trigger in due:
            trigger.act()
        for sentence in self.supervision.look(self.arm):
            self.report("", sentence)
            self.note(50204, sentence, type_=ERROR if self.supervision.stops else WARNING)
            if self.supervision.stops:
                self._stop_by_supervision(sentence)
        if self.has_ended and self.rests:
            self.running = False
        if self.executing != self._executed:
            self._executed = not self._executed
            self.note(10150 if self._executed else 10151)

    def _stop_by_supervision(self, sentence: str) -> None:
        """Stop the arm on its path until a StartMove, and raise an error in the task that moves it."""
        self.held = True
        for task in self._moving():
            if task.state == "running":
                task.fail(RapidError(sentence, "supervision", number="err_coll_stop"))

    def next_cycle(self, stopping: Callable[[], bool]) -> bool:
        """Wait until the next cycle begins; return False if a stop was requested.

        In virtual time it waits for the answer of a client of EGM alone.
        """
        session = self.egm.session
        if isinstance(self.pace, RealTime):
            return self.pace.next_cycle(stopping)
        if session is None or not session.is_due:
            return not stopping()
        return self.pace.wait(session.inbox, session.send_again, stopping)

    def mark(self, file: str, line: int) -> None:
        """Note that the motion of a line begins now, for the log."""
        self._marks.append((round(self.t / self.arm.period), file, line))

    def change_load(self, payload: Payload | None) -> None:
        """Change the payload of the arm, and its controller."""
        if not same_payload(payload, self._payload):
            self._payload = payload
            self.arm.change_load(payload, self._controller_for(payload))

    def _write_outputs(self) -> None:
        if not self.outputs:
            return
        rests, faulty = self.rests, bool(self.faults)
        states: dict[str, float] = {
            "MotorOn": float(self.motors), "AutoOn": float(self.mode == "AUTO"),
            "CycleOn": float(self.executing), "TaskExecuting": float(self.executing),
            "RobotNotMoving": float(rests), "ExecutionError": float(faulty), "EmergencyStop": 0.0,
            "MotionPossible": float(self.executing and not faulty),
        }  # fmt: skip
        for name, state in self.outputs.items():
            self.signals.write(name, states[state])

    def log(self, T_flange_tool: Floats) -> Log | None:
        """Return the log of the end of the motion, with the lines of the moves and the messages of EGM."""
        log = self.arm.log(T_flange_tool, self.egm.arrays())
        if log is None:
            return None
        samples = round(log.t[0] / self.arm.period) + np.arange(len(log.t))
        return replace(log, program=ProgramLines.of(list(self._marks), samples))

    def close(self) -> None:
        """End all tasks, and close their sockets."""
        with self._calls.lock:
            while self._calls:
                self._calls.answer()
        self.egm.close_channels()
        for task in self.tasks.values():
            task.close()
            with suppress(AttributeError):  # of a task that could not be loaded
                task.recorder.close_sockets()


def same_payload(one: Payload | None, other: Payload | None) -> bool:
    """Return whether two payloads are equal."""
    if one is None or other is None:
        return one is other
    pairs = ((one.com, other.com), (one.inertia, other.inertia))
    return one.mass == other.mass and all(np.array_equal(a, b) for a, b in pairs)

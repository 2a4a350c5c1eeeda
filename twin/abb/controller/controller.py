"""Virtual controller: tasks, signals and an arm, advanced cycle by cycle.

Each cycle of 4 ms has these steps: signals and timers change that are due; every task gets a turn; the arm
moves to the end of the cycle.  Tasks therefore see the arm where the cycle begins.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from twin.abb.controller.arm import CYCLE, MechanicalUnit, Supervision
from twin.abb.controller.egm import Egm, EgmDevices
from twin.abb.controller.events import ERROR, WARNING, Line, Queue, queue_of
from twin.abb.controller.execution import Execution, TaskSettings
from twin.abb.controller.instructions import functions_for, instructions_for
from twin.abb.controller.jogging import Jog
from twin.abb.controller.machine import HomeFiles, Network
from twin.abb.controller.motion import NEAR_PATH, REDUCED, Step
from twin.abb.controller.tasks import LiveRecorder, Task
from twin.abb.egm.robot.exchange import Lateness, Pace, RealTime, garbage_collection_frozen
from twin.abb.egm.robot.guided_arm import Controller, GuidedArm
from twin.abb.rapid import syntax_tree as st
from twin.abb.rapid.expressions import Cell
from twin.abb.rapid.language import parse
from twin.abb.rapid.planning import Limits
from twin.abb.rapid.programs import check, interpret
from twin.abb.rapid.recorder import Operator
from twin.abb.rapid.signals import Signals, signals_of
from twin.base.arrays import Floats
from twin.base.errors import RapidError, TwinError, near
from twin.data.logs.log import Log
from twin.physics.robot.robot import Payload, Robot

SYSTEM_OUTPUTS = (
    "MotorOn", "CycleOn", "TaskExecuting", "RobotNotMoving", "ExecutionError", "EmergencyStop",
    "MotionPossible", "AutoOn",
)  # fmt: skip
"""States of the controller that an output may have."""

ANSWERING = 1e-3
"""Longest time of a cycle for calls, in [s]; the next cycle answers the others."""

PERIOD = 8e-3
"""Time after which a call looks again whether cycles run, in [s]."""

SWITCH = 2e-4
"""Time after which a thread lets another one go on, in [s]; Python's 5 ms are longer than a cycle."""

T = TypeVar("T")


class Calls:
    """Calls that wait for an answer.

    Attributes:
        lock: lock that a cycle holds.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._waiting: deque[tuple[Callable[[], Any], Future]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def call(self, function: Callable[[], T], timeout: float) -> T:
        """Return the result of a function, see `VirtualController.call`."""
        result: Future[T] = Future()
        self._waiting.append((function, result))
        end = time.monotonic() + timeout
        while True:  # the cycle that runs now may be the last one
            if self.lock.acquire(blocking=False):
                try:
                    self.answer()
                finally:
                    self.lock.release()
            left = end - time.monotonic()
            if wait([result], min(PERIOD, max(left, 0.0))).done or left < 0.0:
                break
        if result.cancel():
            raise TwinError(f"the controller began no cycle within {timeout:g} s")
        return result.result()

    def answer(self) -> None:
        """Answer the calls that wait, for a time at most."""
        end = time.perf_counter() + ANSWERING
        while self._waiting and time.perf_counter() < end:
            function, result = self._waiting.popleft()
            if result.set_running_or_notify_cancel():
                try:
                    result.set_result(function())
                except BaseException as error:
                    result.set_exception(error)


class VirtualController:
    """Virtual controller.

    Attributes:
        arm: the arm.
        robot: nominal arm, without a payload.
        limits: share of the torque, and settling time, of planned moves.
        signals: signals of the cell.
        execution: execution of the programs.
        unit: the arm with its motion.
        egm: EGM of the programs.
        supervision: what watches the arm while it moves.
        tasks: tasks by their names in lower case.
        home: folder that stands for HOME:, None without one.
        pace: timing of the cycles; in virtual time it is their number, and no clock measures the tasks.

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
        self.arm, self.robot, self.home, self._outputs = arm, robot, home, outputs or {}
        self.signals = Signals({}) if signals is None else signals
        self.limits = Limits(0.9) if limits is None else limits
        self.supervision = Supervision() if supervision is None else supervision
        self.supervision.feel(arm, 0.0)
        self.pace: Pace = RealTime(CYCLE) if pace is None else pace
        self.execution = Execution(lambda: arm.t, forever=forever, on_line=on_line)
        self.execution.queues.update({queue_of(one.name).lower(): Queue() for one in tasks})
        self.unit = MechanicalUnit(arm, robot, controller_for, self.limits)
        network, operator = network or Network(), operator or Operator(())
        self.egm = Egm(self.execution, self.unit, self.pace, egm or EgmDevices(), network.bind)
        self._executed, self._calls = False, Calls()
        self._step: Step | None = None
        self.tasks: dict[str, Task] = {}
        self.execution.tasks = self.tasks
        if len(moving := [one.name for one in tasks if one.moves]) > 1:
            raise RapidError(f"the tasks {', '.join(moving)} move the arm: expected one", "refusal")
        try:
            for settings in tasks:
                self.tasks[settings.name.lower()] = self._loaded(settings, network, operator)
            self.share_persistents()
        except BaseException:
            self.close()
            raise
        self.signals.on_change = self._signal_changed
        for task in self.tasks.values():
            if task.is_background:
                task.start()

    def _loaded(self, settings: TaskSettings, network: Network, operator: Operator) -> Task:
        task = Task(settings, self.pace, self.execution)
        try:
            recorder = LiveRecorder(
                task, self.execution, self.unit, self.egm, network, self.signals, operator,
                HomeFiles(self.home),
            )  # fmt: skip
            task.load(recorder, instructions_for(recorder), functions_for(recorder))
        except BaseException:
            task.close()
            raise
        known = self.signals.types
        for key, name in signals_of(settings.modules).items():
            if known and key not in known and key not in self.signals.given:
                sentence = f"{name} is no signal of the station{near(name, known)}: made"
                self.execution.report(settings.name, sentence)
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
    def rests(self) -> bool:
        """Whether the arm makes no move, and no client guides it."""
        return self.egm.rests

    @property
    def faults(self) -> list[tuple[str, RapidError]]:
        """Tasks that ended with a fault, with it."""
        return self.execution.faults

    # ------------------------------------------------------------------------------------------- execution

    def start(self) -> None:
        """Start the execution, or continue on the path.

        Raises:
            RapidError: the motors are off, the arm is jogged or off its path, or a task has no program, or a
                fault: the program pointer must be moved first.
        """
        motion = self.unit.motion
        if not self.execution.motors:
            raise RapidError("the execution starts while the motors are on", "refusal")
        if motion.jog is not None or motion.off_path > NEAR_PATH:
            raise RapidError(
                "the arm was jogged off its path: jog it back, or move the program pointer to main", "refusal"
            )
        for task in self.tasks.values():
            if task.is_started and not task.has_program:
                raise RapidError(
                    f"the task {task.settings.name} has no procedure {task.settings.entry}", "refusal"
                )
        for name, fault in self.faults:
            raise RapidError(
                f"the task {name} stopped with a fault: move its program pointer to main; {fault}", "refusal"
            )
        self.execution.running = True
        for task in self.tasks.values():
            if task.is_started:
                task.start()

    def stop(self) -> None:
        """Stop the execution, or jogging; the arm stops on its path."""
        self.execution.stop()
        if (jog := self.unit.motion.jog) is not None:
            jog.stop()

    def step(self) -> None:
        """Start the execution, which stops where the present move ends, or the next one; see `start`."""
        self.start()
        self._step = Step(self.unit.motion)

    def set_mode(self, mode: str) -> None:
        """Change the mode to AUTO, MANR or MANF; the execution stops."""
        if mode != self.execution.mode:
            self.execution.mode = mode
            self.stop()
            self.execution.note(10017 if mode == "AUTO" else 10015)

    def jog(self) -> Jog:
        """Return the jogging of the arm, which begins if nobody jogs it.

        Raises:
            RapidError: the mode is automatic, the motors are off, or the arm moves or is guided.
        """
        execution, motion = self.execution, self.unit.motion
        if execution.mode == "AUTO" or not execution.motors:
            raise RapidError("the arm is jogged in manual mode with motors on", "refusal")
        if motion.jog is None:
            if execution.executing or self.egm.guides or not self.rests:
                raise RapidError(
                    "the arm is jogged while the execution is stopped and the arm rests", "refusal"
                )
            motion.jog = Jog(self.robot, motion.q, self.arm.period, lambda text: execution.report("", text))
        return motion.jog

    def to_main(self, routine: str = "") -> None:
        """Move the program pointers of all normal tasks to their entries, and forget the path.

        Args:
            routine: procedure without arguments with which the task that moves the arm begins, once; its
                entry if this is empty.

        Raises:
            RapidError: the execution runs, the arm has not stopped yet, or there is no such procedure.
        """
        if self.execution.executing or not self.rests:
            raise RapidError("the program pointer moves while the execution is stopped and the arm rests")
        self.execution.running = False
        if routine:
            for task in self._moving():
                task.interpreter.procedure(routine)
        self.egm.close()
        self.unit.clear_path()
        for task in self.tasks.values():
            if not task.is_background:
                task.to_entry(routine if task.settings.moves else "")
        self.execution.held, self.unit.level = False, 100.0
        self.execution.note(10002)

    def _moving(self) -> list[Task]:
        """Return the task that moves the arm, if there is one."""
        return [task for task in self.tasks.values() if task.settings.moves]

    def _signal_changed(self, name: str, before: float, after: float) -> None:
        for task in self.tasks.values():
            task.interpreter.signal_changed(name, before, after)

    # ------------------------------------------------------------------------------------------- modules

    def load(self, task: Task, module: st.Module, replaces: bool) -> None:
        """Load a module into a task; the program pointer moves to the entry if one of this name was there.

        Raises:
            RapidError: the execution runs, the module is there already, or declares a name of another one.
        """
        self._check_stopped()
        before = task.module(module.name)
        if before is not None:
            if not replaces:
                raise RapidError(f"the module {module.name} is loaded already", "refusal")
            self.unload(task, before)
        try:
            task.interpreter.add_module(module)
            task.modules.append(module)
            task.changes += 1
        except RapidError:
            if before is not None:
                task.interpreter.add_module(before)
                task.modules.append(before)
            raise
        finally:
            self.share_persistents()

    def unload(self, task: Task, module: st.Module) -> None:
        """Remove a module of a task, whose program pointer moves to the entry.

        Raises:
            RapidError: the execution runs.
        """
        self._check_stopped()
        self.unit.clear_path()
        task.changes += 1
        task.to_entry()
        k = task.modules.index(module)
        task.interpreter.remove_module(module, k)
        del task.modules[k]

    def _check_stopped(self) -> None:
        if self.execution.executing or not self.rests:
            raise RapidError("modules change while the execution is stopped and the arm rests", "refusal")

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
        execution, motion = self.execution, self.unit.motion
        self.signals.advance(self.t)
        self._write_outputs()
        self._end_step()
        for task in self.tasks.values():
            task.interrupts.stopped = not (task.is_background or (execution.running and task.is_active))
            task.interrupts.advance(self.t)
            if not task.interrupts.stopped:
                task.turn()
        braking = execution.is_stopped or (self._step is not None and self._step.brakes)
        motion.goal = 0.0 if braking else execution.override
        motion.top_speed = REDUCED if execution.mode == "MANR" else inf
        if motion.jog is not None and not execution.motors:
            motion.jog.stop()
        self.unit.begin_moves()
        self._grip()
        self.egm.move()
        due, motion.due = motion.due, []
        for trigger in due:
            trigger.act()
        for sentence in self.supervision.look(self.arm, self.unit.level):
            execution.report("", sentence)
            execution.note(50204, sentence, type_=ERROR if self.supervision.stops else WARNING)
            if self.supervision.stops:
                self._stop_by_supervision(sentence)
        if self.supervision.backs_off and not (execution.held and motion.rate):
            self.supervision.backs_off = False
            motion.back_off(self.robot)
        if execution.has_ended and self.rests:
            execution.running = False
        if execution.executing != self._executed:
            self._executed = not self._executed
            execution.note(10150 if self._executed else 10151)

    def _grip(self) -> None:
        """Close or open the gripper of parts; where it closes on nothing, this is an event."""
        gripper = self.unit.gripper
        if gripper is not None and (sentence := self.unit.grip(gripper, self.signals.values)):
            self.supervision.now = None  # known of shapes that were elsewhere
            self.execution.report("", sentence)
            if gripper.is_closed and not gripper.held:
                self.execution.note(80002, sentence, type_=WARNING)

    def _end_step(self) -> None:
        """End a step where the arm has made its move."""
        if self._step is not None and (not self.execution.running or self._step.is_over()):
            self.stop()
            self._step = None

    def _stop_by_supervision(self, sentence: str) -> None:
        """Stop jogging; or stop the arm until a StartMove, and raise an error in the task that moves it."""
        if self.unit.motion.jog is not None:
            return self.unit.motion.jog.stop()
        self.execution.held = True
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

    def _write_outputs(self) -> None:
        if not self._outputs:
            return
        faulty, executing = bool(self.faults), self.execution.executing
        states: dict[str, float] = {
            "MotorOn": float(self.execution.motors), "AutoOn": float(self.execution.mode == "AUTO"),
            "CycleOn": float(executing), "TaskExecuting": float(executing),
            "RobotNotMoving": float(self.rests), "ExecutionError": float(faulty), "EmergencyStop": 0.0,
            "MotionPossible": float(executing and not faulty),
        }  # fmt: skip
        for name, state in self._outputs.items():
            self.signals.write(name, states[state])

    def log(self, T_flange_tool: Floats) -> Log | None:
        """Return the log of the end of the motion, with the lines of the moves and the messages of EGM."""
        return self.unit.log(T_flange_tool, self.egm.arrays())

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


def rehearse(robot: Robot, q: np.ndarray, limits: Limits) -> None:
    """Plan a small motion once, so that everything is compiled and loaded before the first cycle."""
    middle = np.clip(np.zeros(robot.n), robot.q_min, robot.q_max)
    ends = [np.degrees(q + share * (middle - q)).round(6).tolist() for share in (0.0, 0.1)]
    ends[1][4] += 5.0 if ends[1][4] < 0 else -5.0
    moves = "".join(f"MoveAbsJ [{one},[9E9,9E9,9E9,9E9,9E9,9E9]],v100,z1,tool0;\n" for one in (*ends, *ends))
    check(
        interpret(parse(f"MODULE M\nPROC main()\n{moves}ENDPROC\nENDMODULE"), robot, start=q), robot, limits
    )


def run_by_the_clock(
    controller: VirtualController,
    stopping: Callable[[], bool],
    duration: float | None = None,
    *,
    to_end: bool = True,
) -> Lateness:
    """Run cycles by the clock until a stop is wanted, all programs have ended, or a time is over.

    Args:
        controller: the virtual controller, which stays open.
        stopping: function that returns whether the run is to end; called once a cycle.
        duration: duration, in [s]; None for no limit.
        to_end: whether the run ends with the programs of all normal tasks.

    Returns:
        The lateness of the cycles.

    Raises:
        DivergenceError: the motion of the arm diverged.
        TwinError: the window was closed.
    """
    rehearse(controller.robot, controller.arm.q, controller.limits)
    pace, interval = controller.pace, sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        with garbage_collection_frozen(not pace.virtual):
            pace.begin()
            while duration is None or controller.t < duration - 1e-9:
                if to_end and controller.execution.has_ended and controller.rests:
                    break
                pace.sending()
                controller.cycle()
                if not controller.next_cycle(stopping):
                    break
    finally:
        sys.setswitchinterval(interval)
    return pace.lateness()

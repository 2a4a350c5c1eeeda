"""Pendant of a virtual controller: what a page in a browser asks of it, and the process that shows the page.

The page is drawn by a process of its own, so that pictures do not delay the cycles.  What it reads and does
is a request, which is answered between two turns of the programs; joint angles are read at any time.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from subprocess import PIPE
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scenarios.abb.background import RunningController
from twin.abb.controller.execution import Question
from twin.abb.rapid.targets import tool_frame
from twin.base.errors import RapidError, TwinError, WrongUse
from twin.studies.cell.cell import body_name

if TYPE_CHECKING:
    from twin.physics.robot.robot import Robot
    from twin.studies.cell.cell import Nearest

MOST_EVENTS = 12
"""Largest number of events and lines that are shown."""

PAGE = """import sys; sys.path[:] = {path!r}
from scenarios.abb.pendant_page import main; main({port})"""
"""Program of the process with the page."""


class SeenTask(NamedTuple):
    """Task: state, program pointer and move (file and line, or None), number of changes of its modules."""

    state: str
    at: tuple[str, int] | None
    move: tuple[str, int] | None
    changes: int


class Seen(NamedTuple):
    """State of a controller between two turns of its programs.

    Attributes:
        q: (n,) joint angles, in [rad].
        T_flange_tool: (4, 4) pose of the tool of the last move on the flange.
        state: motors, mode, execution, speed of the programs in [%], and whether the arm rests.
        tasks: tasks by their names.
        signals: values by names in lower case.
        questions: questions to the operator by the names of their tasks.
        events: texts of the last events and lines, the newest first.
        masters: domains of which a client of web services has the mastership.
        nearest: nearest pair of the arm, None if it is not judged.
        places: joint that moves each of the bodies that are shown, -1 without one, and the pose (4, 4) in its
            frame of what was the base frame at first.
    """

    q: np.ndarray
    T_flange_tool: np.ndarray
    state: tuple[bool, str, bool, float, bool]
    tasks: Mapping[str, SeenTask]
    signals: Mapping[str, float]
    questions: Mapping[str, Question]
    events: tuple[str, ...]
    masters: tuple[str, ...]
    nearest: Nearest | None
    places: Sequence[tuple[int, np.ndarray]]


class Shown(NamedTuple):
    """Constant part of what a page shows.

    Attributes:
        robot: the arm.
        q: (n,) first joint angles, in [rad].
        bodies: vertices, triangles and names of the cell's objects and the tool, at these angles.
        inputs: names of the inputs, and whether they have two values.
        targets, tools, objects: names of data of the programs.
    """

    robot: Robot
    q: np.ndarray
    bodies: Sequence[tuple[np.ndarray, np.ndarray, str]]
    inputs: Mapping[str, bool]
    targets: Sequence[str]
    tools: Sequence[str]
    objects: Sequence[str]


class Pendant:
    """Page of a running controller, from its creation until it is closed.

    Attributes:
        url: address of the page, which this machine alone reaches.

    Args:
        running: the controller.
        port: port of the page; 0 for a free one.
        masters: function that returns the domains of which a client of web services has the mastership.

    Raises:
        WrongUse: the page cannot be shown: its port is in use, or the robot has a shape that cannot be drawn.
    """

    def __init__(
        self, running: RunningController, port: int = 0, masters: Callable[[], Sequence[str]] = tuple
    ) -> None:
        self._running, self._controller, self._masters = running, running.controller, masters
        program = PAGE.format(path=sys.path, port=port)
        self._process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=PIPE, stdout=PIPE, start_new_session=True
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdout, self._process.stdin
        self._send(self._shown())
        try:
            self.url, fault = pickle.load(self._requests)
        except EOFError:
            self.url, fault = "", "its process ended"
        self._thread = Thread(target=self._run, name="pendant", daemon=True)
        self._thread.start()
        if fault:
            self.close()
            raise WrongUse(f"--browser {port}: {fault}")

    def close(self) -> None:
        """End the page."""
        self._process.terminate()
        self._process.wait()
        self._thread.join()
        for pipe in (self._requests, self._answers):
            with suppress(OSError):  # of an answer that nobody reads
                pipe.close()

    def _send(self, what: object) -> None:
        pickle.dump(what, self._answers)
        self._answers.flush()

    def _run(self) -> None:
        """Answer the requests of the page until it ends."""
        commands = self._commands()
        with suppress(EOFError, OSError, pickle.UnpicklingError):  # it has ended, perhaps within a request
            while True:
                name, given = pickle.load(self._requests)
                try:
                    answer = commands[name](*given)
                except TwinError as error:
                    answer = error
                self._send(answer)

    # ------------------------------------------------------------------------------------------- reading

    def _shown(self) -> Shown:
        running, controller = self._running, self._controller
        clearance, signals = controller.supervision.clearance, controller.signals
        q = controller.arm.q.copy()
        self._first = () if clearance is None else np.linalg.inv(clearance.poses(q))
        return Shown(
            controller.robot,
            q,
            [] if clearance is None else clearance.meshes(q),
            {
                written: signals.types.get(name) == "DI"
                for name, written in sorted(signals.names.items())
                if is_input(signals.types.get(name), name, signals.given)
            },
            running.data("robtarget", "jointtarget"), running.data("tooldata"), running.data("wobjdata"),
        )  # fmt: skip

    def _look(self) -> Seen | None:
        """Return the present state; None if no cycle began: it waits for a client of EGM, or ends."""
        with suppress(TwinError):
            return self._controller.call(self._state)
        return None

    def _state(self) -> Seen:
        """Return the present state; called between the turns of the programs."""
        controller, signals = self._controller, self._controller.signals
        clearance, robot = controller.supervision.clearance, controller.robot
        places = [
            (one.body, one.T @ first)
            for one, first in zip(clearance.solids if clearance else (), self._first, strict=True)
            if one.name != body_name(robot, one.body)
        ]
        execution, unit, moves = controller.execution, controller.unit, bool(controller.unit.motion.paths)
        tasks = {
            one.settings.name: SeenTask(
                one.state, one.pointer, unit.line if one.settings.moves and moves else None, one.changes
            )
            for one in controller.tasks.values()
        }
        events = islice(execution.events, MOST_EVENTS)
        both = [(one.event.t, f"{one.code} {one.event.title}") for one in events]
        both += [(one.t, f"{one.task} {one.sentence}") for one in self._running.lines[-MOST_EVENTS:]]
        both.sort(key=lambda one: -one[0])
        state = (
            execution.motors, execution.mode, execution.executing, self._running.speed, controller.rests,
        )  # fmt: skip
        values = {written: signals.values.get(name, 0.0) for name, written in signals.names.items()}
        return Seen(
            controller.arm.q.copy(), tool_frame(unit.tool), state, tasks, values,
            dict(execution.questions), tuple(f"{t:.3f} s  {text}" for t, text in both[:MOST_EVENTS]),
            tuple(self._masters()), controller.supervision.now, places,
        )  # fmt: skip

    def _text(self, task: str, file: str) -> str:
        """Return the text of a module."""
        modules = self._controller.tasks[task.lower()].modules
        return next((one.text for one in modules if one.file == file), "")

    # ------------------------------------------------------------------------------------------- commands

    def _commands(self) -> dict[str, Callable[..., Any]]:
        """Return what a page may ask by the names of the requests."""
        running, controller = self._running, self._controller
        return {
            "where": lambda: controller.arm.q, "look": self._look, "text": self._text,
            "start": running.start, "step": running.step,
            "stop": lambda: controller.call(controller.stop), "motors": running.set_motors,
            "mode": running.set_mode, "set": running.signals.__setitem__, "answer": running.answer,
            "to_main": self._with_mastership("edit", running.to_main),
            "speed": self._with_mastership("edit", running.set_speed),
            "modify": self._with_mastership("edit", running.modify_position),
            "jog": self._with_mastership("motion", running.jog),
        }  # fmt: skip

    def _with_mastership(self, domain: str, act: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that acts unless a client of web services has the mastership of a domain."""

        def checked(*given: Any) -> Any:
            held = self._masters()
            if domain in held or (domain == "edit" and "rapid" in held):
                raise RapidError(f"a client of web services has the mastership of {domain}", "refusal")
            return act(*given)

        return checked


def is_input(type_: str | None, name: str, given: set[str]) -> bool:
    """Return whether a signal is an input, by its type, or because a person gives its value."""
    return name in given if type_ is None else type_.endswith("I")

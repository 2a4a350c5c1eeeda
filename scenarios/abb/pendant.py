"""Pendant of a virtual controller: a page in a browser with the arm, the programs, signals and dialogs.

The page gives the commands that are typed in a terminal, and reads the controller between two turns of the
programs, twenty times a second.  All pages share one state.  What a page changes waits for no page.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from html import escape
from itertools import zip_longest
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scenarios.abb.background import RunningController
from twin.abb.controller.execution import MODES, Question
from twin.abb.controller.tasks import Task
from twin.abb.rapid.expressions import RoutineOf
from twin.abb.rapid.targets import tool_frame
from twin.base.errors import RapidError, TwinError
from twin.physics.kinematics.forward import forward_kinematics, link_poses
from twin.physics.robot.robot import Robot
from twin.physics.rotations.rotations import quaternion_from_matrix
from twin.physics.trajectories.jogging import AXES
from twin.studies.views.browser import (
    COLOURS,
    FIXTURE,
    Arm,
    add_arm,
    arm_meshes,
    local_server,
    place,
    reached,
    stop,
    surroundings,
)

if TYPE_CHECKING:
    from viser import GuiEvent

    from twin.studies.cell.cell import Nearest
    from twin.studies.cell.clearance import Clearance

PICTURE = 0.05
"""Time between two pictures, in [s]."""

TRAIL, TRAIL_PERIOD = 10.0, 0.1
"""Duration of the path behind the tool, and time between its points, in [s]."""

AROUND = 8
"""Lines of a module that are shown before and behind the program pointer."""

MOST_INPUTS, MOST_EVENTS = 40, 12
"""Largest numbers of inputs with a switch, and of events and lines that are shown."""

STEPS = "0.1", "1", "5", "20"
"""Increments of jogging, in [deg] or [mm]."""

FRAMES = {"joints": None, "tool, base axes": False, "tool, its axes": True}
"""What is jogged, and whether axes are those of the tool."""

TITLES = {"AUTO": "automatic", "MANR": "manual, 250 mm/s", "MANF": "manual, full speed"}
"""Modes as the page names them."""


class Seen(NamedTuple):
    """State of a controller between two turns of its programs.

    Attributes:
        q: (n,) joint angles, in [rad].
        T_flange_tool: (4, 4) pose of the tool of the last move on the flange.
        state: motors, mode, execution, speed of the programs in [%], and whether the arm rests.
        tasks: state of each task by its name, its program pointer and its move: file and line, or None.
        signals: values by names in lower case.
        questions: questions to the operator by the names of their tasks.
        events: texts of the last events and lines, the newest first.
        masters: domains of which a client of web services has the mastership.
        nearest: nearest pair of the arm, None if it is not judged.
    """

    q: np.ndarray
    T_flange_tool: np.ndarray
    state: tuple[bool, str, bool, float, bool]
    tasks: Mapping[str, tuple[str, tuple[str, int] | None, tuple[str, int] | None]]
    signals: Mapping[str, float]
    questions: Mapping[str, Question]
    events: tuple[str, ...]
    masters: tuple[str, ...]
    nearest: Nearest | None


class Pendant:
    """Page of a running controller, from its creation until it is closed.

    Attributes:
        url: address of the page, which this machine alone reaches.

    Args:
        running: the controller.
        port: port of the page; 0 for a free one.
        clearance: distances of the arm, None if they are not judged.
        masters: function that returns the domains of which a client of web services has the mastership.

    Raises:
        RobotError: a shape of the robot cannot be drawn.
        OSError: the port is in use.
    """

    def __init__(
        self,
        running: RunningController,
        port: int = 0,
        clearance: Clearance | None = None,
        masters: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._running, self._controller, self._masters = running, running.controller, masters
        self._seen = self._controller.call(self._look)
        self._server, self._ending = local_server(port), Event()
        self.url = f"http://127.0.0.1:{self._server.get_port()}/"
        self._scene = Scene(self._server, self._controller.robot, self._seen.q, clearance)
        self._build()
        self._show(self._seen)
        self._thread = Thread(target=self._run, name="pendant", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the page."""
        self._ending.set()
        self._thread.join()
        stop(self._server)

    def _run(self) -> None:
        while not self._ending.wait(PICTURE):
            with suppress(TwinError):  # no cycle began: it waits for a client of EGM, or ends
                self._show(self._controller.call(self._look))

    # ------------------------------------------------------------------------------------------- reading

    def _look(self) -> Seen:
        """Return the present state; called between the turns of the programs."""
        controller, execution, unit = self._controller, self._controller.execution, self._controller.unit
        tasks = {
            task.settings.name: (task.state, pointer(task), unit.line if task.settings.moves else None)
            for task in controller.tasks.values()
        }
        events = [(one.event.t, f"{one.code} {one.event.title}") for one in execution.events]
        lines = [
            (one.t, f"{one.task}: {one.sentence}" if one.task else one.sentence)
            for one in self._running.lines
        ]
        both = sorted([*events[:MOST_EVENTS], *lines[-MOST_EVENTS:]], key=lambda one: -one[0])[:MOST_EVENTS]
        state = (
            execution.motors, execution.mode, execution.executing, self._running.speed, controller.rests,
        )  # fmt: skip
        return Seen(
            controller.arm.q.copy(), tool_frame(unit.tool), state, tasks, dict(controller.signals.values),
            dict(execution.questions), tuple(f"{t:.3f} s  {text}" for t, text in both),
            tuple(self._masters()), controller.supervision.now,
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------- building

    def _build(self) -> None:
        running, gui, joints = self._running, self._server.gui, self._controller.robot.joint_names
        gui.configure_theme(control_width="large", show_share_button=False, show_logo=False)
        gui.set_panel_label(f"{self._controller.robot.name}, virtual controller")
        self._state = gui.add_html("")
        moves = {
            "start": running.start,
            "stop": running.stop,
            "step": running.step,
            "PP to main": self._to_main,
        }
        self._group("program", moves)
        switches = {"on": lambda: running.set_motors(True), "off": lambda: running.set_motors(False)}
        self._group("motors", switches)
        self._mode = gui.add_dropdown("mode", [TITLES[one] for one in MODES])
        self._on_change(self._mode, lambda title: running.set_mode(MODES[list(TITLES.values()).index(title)]))
        self._speed = gui.add_slider("speed [%]", 0, 100, 1, 100)
        self._on_change(self._speed, self._set_speed)
        self._questions: tuple[tuple[str, Question], ...] = ()
        self._dialogs: list[Any] = []
        self._dialog_place = gui.add_folder(None)
        tabs = gui.add_tab_group()
        with tabs.add_tab("program"):
            self._tasks = gui.add_html("")
            self._task = gui.add_dropdown("task", list(self._seen.tasks))
            self._listing = gui.add_html("")
        with tabs.add_tab("signals"):
            self._inputs = self._input_switches()
            self._outputs = gui.add_html("")
        with tabs.add_tab("events"):
            self._events = gui.add_html("")
        with tabs.add_tab("jog"):
            self._frame = gui.add_dropdown("jog", list(FRAMES))
            self._frame.on_update(lambda _: self._name_axes())
            self._step = gui.add_dropdown("step [deg, mm]", STEPS, initial_value="5")
            self._tool = gui.add_dropdown("tool", ["tool0", *running.data("tooldata")])
            self._axes = [
                self._group(name, {"−": lambda k=k: self._jog(k, -1), "+": lambda k=k: self._jog(k, 1)})
                for k, name in enumerate(joints)
            ]
            self._group("stop", {"stop": running.stop})
            self._place = gui.add_html("")
            self._object = gui.add_dropdown("work object", ["wobj0", *running.data("wobjdata")])
            self._target = gui.add_dropdown("target", running.data("robtarget", "jointtarget") or ["none"])
            self._group("here", {"modify position": self._modify})
            self._declaration = gui.add_markdown("")
        dark = gui.add_checkbox("dark", False)
        dark.on_update(
            lambda _: gui.configure_theme(
                control_width="large", show_share_button=False, show_logo=False, dark_mode=dark.value
            )
        )

    def _group(self, label: str, actions: Mapping[str, Callable[[], Any]]) -> Any:
        """Add a row of buttons by their actions."""
        group = self._server.gui.add_button_group(label, list(actions))
        group.on_click(lambda event: self._act(event, actions[event.target.value]))
        return group

    def _on_change(self, handle: Any, act: Callable[[Any], Any]) -> None:
        """Call a function with each value that a person gives."""
        handle.on_update(lambda event: event.client and self._act(event, lambda: act(event.target.value)))

    def _act(self, event: GuiEvent, act: Callable[[], Any]) -> None:
        """Act for a page, which shows why the controller refuses it."""
        try:
            act()
        except TwinError as error:
            if event.client is not None:
                event.client.add_notification("refused", str(error), auto_close_seconds=8.0, color="red")

    def _input_switches(self) -> dict[str, Any]:
        """Add a switch or a number for each input."""
        gui, signals, found = self._server.gui, self._controller.signals, {}
        inputs = [
            name for name in sorted(signals.names) if is_input(signals.types.get(name), name, signals.given)
        ]
        for name in inputs[:MOST_INPUTS]:
            value = self._seen.signals.get(name, 0.0)
            binary = signals.types.get(name) == "DI"
            found[name] = gui.add_checkbox(name, bool(value)) if binary else gui.add_number(name, value)
            self._on_change(found[name], lambda value, name=name: self._set_signal(name, value))
        if len(inputs) > MOST_INPUTS:
            gui.add_markdown(
                f"{len(inputs) - MOST_INPUTS} more inputs: type `set NAME VALUE` in the terminal"
            )
        return found

    # ------------------------------------------------------------------------------------------- commands

    def _check_master(self, domain: str) -> None:
        """Raise `RapidError` if a client of web services has the mastership of a domain."""
        if domain in self._seen.masters or (domain == "edit" and "rapid" in self._seen.masters):
            raise RapidError(f"a client of web services has the mastership of {domain}", "refusal")

    def _to_main(self) -> None:
        self._check_master("edit")
        self._running.to_main()

    def _set_speed(self, percent: float) -> None:
        self._check_master("edit")
        self._running.speed = percent

    def _set_signal(self, name: str, value: float) -> None:
        self._running.signals[name] = float(value)

    def _jog(self, k: int, sense: int) -> None:
        self._check_master("motion")
        in_tool_axes = FRAMES[self._frame.value]
        names = self._controller.robot.joint_names if in_tool_axes is None else AXES
        step = sense * float(self._step.value)
        self._running.jog(names[k], step, self._tool.value, in_tool_axes=bool(in_tool_axes))

    def _modify(self) -> None:
        self._check_master("edit")
        given = self._target.value, self._tool.value, self._object.value
        self._declaration.content = f"```\n{self._running.modify_position(*given)}\n```"

    def _name_axes(self) -> None:
        by_joints = FRAMES[self._frame.value] is None
        for group, joint, axis in zip(self._axes, self._controller.robot.joint_names, AXES, strict=False):
            group.label = joint if by_joints else axis

    # ------------------------------------------------------------------------------------------- showing

    def _show(self, seen: Seen) -> None:
        self._seen = seen
        motors, mode, executing, speed, rests = seen.state
        with self._server.atomic():
            self._scene.show(seen)
        words = [
            "motors on" if motors else "motors off", TITLES[mode], "runs" if executing else "stopped",
            "" if rests else "the arm moves",
            f"{', '.join(seen.masters)}: mastership of a client" if seen.masters else "",
        ]  # fmt: skip
        near = "" if seen.nearest is None else f"nearest: {seen.nearest.names}, {seen.nearest.text}"
        first = escape(" · ".join(word for word in words if word))
        change(self._state, padded(f"<b>{first}</b><br>{escape(near)}"))
        self._mode.value, self._speed.value = TITLES[mode], round(speed)
        for name, handle in self._inputs.items():
            handle.value = seen.signals.get(name, 0.0)
        states = [f"{name}: {state}" for name, (state, _, _) in seen.tasks.items()]
        change(self._tasks, padded(escape(", ".join(states))))
        change(self._listing, self._program(seen))
        others = sorted({*self._controller.signals.names, *seen.signals} - {*self._inputs})
        change(self._outputs, table([(name, f"{seen.signals.get(name, 0.0):g}") for name in others]))
        change(self._events, table([(one,) for one in seen.events]))
        change(self._place, self._where(seen))
        if tuple(seen.questions.items()) != self._questions:
            self._ask(tuple(seen.questions.items()))

    def _program(self, seen: Seen) -> str:
        """Return the lines about the program pointer of the chosen task, with the line of the move."""
        name = self._task.value
        _, at, move = seen.tasks[name]
        if at is None:
            return "no program"
        for module in self._controller.tasks[name.lower()].modules:
            if module.file == at[0]:
                return listing(module.text.splitlines(), at[1], move[1] if move and move[0] == at[0] else 0)
        return f"{escape(at[0])}, line {at[1]}"

    def _where(self, seen: Seen) -> str:
        """Return the joint angles, and the place of the tool that is jogged, as a table."""
        T = forward_kinematics(self._controller.robot, seen.q, self._scene.T_flange_tool)
        joints = zip(self._controller.robot.joint_names, np.degrees(seen.q), strict=True)
        places = [(axis, f"{1e3 * at:.1f} mm") for axis, at in zip("xyz", T[:3, 3], strict=True)]
        rows = zip_longest(((name, f"{angle:.2f} deg") for name, angle in joints), places, fillvalue=())
        return table([(*joint, *at) for joint, at in rows])

    def _ask(self, questions: tuple[tuple[str, Question], ...]) -> None:
        """Show the dialogs of the programs."""
        for one in self._dialogs:
            one.remove()
        self._questions, self._dialogs, gui = questions, [], self._server.gui
        with self._dialog_place:
            for task, question in questions:
                folder = gui.add_folder(f"{task} asks")
                with folder:
                    gui.add_markdown(escape(question.text))
                    if question.keys:
                        self._group(
                            "",
                            {
                                key: lambda key=key, task=task: self._running.answer(key, task)
                                for key in question.keys
                            },
                        )
                    else:
                        field = gui.add_text("answer", "")
                        self._group(
                            "", {"OK": lambda field=field, task=task: self._running.answer(field.value, task)}
                        )
                self._dialogs.append(folder)


class Scene:
    """Arm in its cell, with the path and the frame of its tool, and the nearest pair.

    Attributes:
        T_flange_tool: (4, 4) pose of the tool on the flange.
    """

    def __init__(self, server: Any, robot: Robot, q: np.ndarray, clearance: Clearance | None) -> None:
        self._server, self._robot, self.T_flange_tool = server, robot, np.eye(4)
        meshes, poses = arm_meshes(robot), np.array([q, *robot.poses.values()])
        bodies = [] if clearance is None else clearance.meshes(q)
        around = [vertices for vertices, _, _ in bodies]
        surroundings(server, robot, np.concatenate([reached(meshes, link_poses(robot, poses)), *around]))
        self._links = add_arm(server, robot, meshes, Arm(robot.name, q[None], None), 1)
        self._before: np.ndarray | None = None
        T_flange = link_poses(robot, q)[-1]
        for k, (vertices, faces, name) in enumerate(bodies):
            is_tool = name == "tool"
            if is_tool:  # it moves with the last link
                vertices = (vertices - T_flange[:3, 3]) @ T_flange[:3, :3]
            server.scene.add_mesh_simple(
                f"{self._links[-1].name}/tool {k}" if is_tool else f"/cell/{k}", vertices, faces,
                color=FIXTURE, flat_shading=True, opacity=0.8, cast_shadow=False, receive_shadow=False,
            )  # fmt: skip
        self._tool = server.scene.add_frame("/tool", axes_length=0.08, axes_radius=0.003)
        self._trail: deque[np.ndarray] = deque(maxlen=round(TRAIL / TRAIL_PERIOD))
        self._count = 0

    def show(self, seen: Seen) -> None:
        """Show a state."""
        T = link_poses(self._robot, seen.q)
        place(self._links, T, self._before)
        self._before, self.T_flange_tool = T, seen.T_flange_tool
        T_tool = forward_kinematics(self._robot, seen.q, seen.T_flange_tool)
        self._tool.position, self._tool.wxyz = T_tool[:3, 3], quaternion_from_matrix(T_tool[:3, :3])
        if self._count % round(TRAIL_PERIOD / PICTURE) == 0:
            self._trail.append(T_tool[:3, 3])
            self._lines("/path of the tool", self._segments(), COLOURS[0])
            near = seen.nearest
            self._lines(
                "/nearest points", np.empty((0, 2, 3)) if near is None else near.points[None], "#ff0000"
            )
        self._count += 1

    def _segments(self) -> np.ndarray:
        points = np.array(self._trail)
        pairs = np.stack([points[:-1], points[1:]], axis=1)
        return pairs[np.any(pairs[:, 0] != pairs[:, 1], axis=1)]

    def _lines(self, name: str, segments: np.ndarray, colour: str) -> None:
        rgb = tuple(int(colour[k : k + 2], 16) for k in (1, 3, 5))
        self._server.scene.add_line_segments(name, segments, rgb, thickness=3.0, thickness_units="screen")


def pointer(task: Task) -> tuple[str, int] | None:
    """Return the file and the line of the program pointer of a task, None without a program."""
    entry = task.interpreter.shared.get(task.settings.entry.lower())
    if task.state in ("running", "faulty") and task.interpreter.place[1]:
        return task.interpreter.place
    return (entry.scope.file, entry.routine.line) if isinstance(entry, RoutineOf) else None


def is_input(type_: str | None, name: str, given: set[str]) -> bool:
    """Return whether a signal is an input, by its type, or because a person gives its value."""
    return name in given if type_ is None else type_.endswith("I")


def change(handle: Any, content: str) -> None:
    """Change a text of the page, if it is another one."""
    if handle.content != content:
        handle.content = content


def padded(content: str) -> str:
    """Return a part of the page in HTML with the margins of the panel."""
    return f'<div style="padding:0.3em 0.75em;font-size:0.85em">{content}</div>'


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table in HTML."""
    cells = ("".join(f'<td style="padding:0 0.8em 0 0">{escape(one)}</td>' for one in row) for row in rows)
    return padded(f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>")


def listing(lines: Sequence[str], at: int, move: int) -> str:
    """Return lines of a module in HTML, with the program pointer and the line of the move.

    Args:
        lines: lines of the module.
        at: line of the program pointer, from 1.
        move: line of the move, 0 for none.
    """
    first, rows = max(at - AROUND, 1), []
    for number, line in enumerate(lines[first - 1 : at + AROUND], start=first):
        mark = ("➤" if number == at else " ") + ("●" if number == move else " ")
        shade = (
            "rgba(80,140,255,0.3)" if number == at else "rgba(255,170,0,0.3)" if number == move else "none"
        )
        rows.append(f'<div style="background:{shade}">{mark}{number:4d}  {escape(line)}</div>')
    style = "font-size:0.8em;line-height:1.35;overflow-x:auto;margin:0;white-space:pre;font-family:monospace"
    return f'<div style="{style}">{"".join(rows)}</div>'

"""Page of a pendant in a browser: the arm in its cell, programs, signals, dialogs and jogging."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from html import escape
from itertools import zip_longest
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from scenarios.abb.pendant import Seen, Shown
from twin.abb.controller.execution import MODES, Question
from twin.base.errors import TwinError, WrongUse
from twin.physics.kinematics.forward import forward_kinematics, link_poses
from twin.physics.rotations.rotations import quaternion_from_matrix
from twin.physics.trajectories.jogging import AXES
from twin.studies.views import browser

if TYPE_CHECKING:
    from viser import GuiEvent

PICTURE = 0.05
"""Time between two pictures, in [s]."""

LOOK = 4
"""Pictures between two looks at the whole state."""

TRAIL, TRAIL_PERIOD = 10.0, 0.1
"""Duration of the path behind the tool, and time between its points, in [s]."""

AROUND = 8
"""Lines of a module that are shown before and behind the program pointer."""

MOST_INPUTS = 40
"""Largest number of inputs with a switch."""

STEPS = "0.1", "1", "5", "20"
"""Increments of jogging, in [deg] or [mm]."""

FRAMES = {"joints": None, "tool, base axes": False, "tool, its axes": True}
"""What is jogged, and whether axes are those of the tool."""

TITLES = {"AUTO": "automatic", "MANR": "manual, 250 mm/s", "MANF": "manual, full speed"}
"""Modes as the page names them."""


Request = tuple[Any, ...] | Callable[[], None]
"""Request to the controller: its name with what it is given, or a function that makes it."""


def main(port: int) -> None:
    """Show a page until the controller ends, which answers requests through the standard input and output."""
    answers, requests = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    try:
        page = Page(answers, requests, port)
    except (TwinError, WrongUse, OSError) as error:
        send(requests, ("", getattr(error, "strerror", None) or str(error)))
        return
    send(requests, (page.url, ""))
    with suppress(EOFError, OSError):  # the controller has ended
        page.run()
    os._exit(0)


def send(file: BinaryIO, what: object) -> None:
    """Write an object into a pipe."""
    pickle.dump(what, file)
    file.flush()


class Page:
    """Page of a controller behind two pipes.

    Attributes:
        url: address of the page.

    Raises:
        RobotError: a shape of the robot cannot be drawn.
        OSError: the port is in use.
    """

    def __init__(self, answers: BinaryIO, requests: BinaryIO, port: int) -> None:
        self._answers, self._requests, self._lock = answers, requests, Lock()
        self._shown: Shown = pickle.load(answers)
        self._server = browser.local_server(port)
        self.url = f"http://127.0.0.1:{self._server.get_port()}/"
        self._scene = Scene(self._server, self._shown)
        self._text: tuple[str, int, list[str]] = ("", 0, [])
        self._values: dict[int, Any] = {}  # of the fields that a person may change
        self._seen: Seen | None = None

    def run(self) -> None:
        """Show pictures while somebody looks.

        Raises:
            EOFError, OSError: the controller has ended.
        """
        count = 0
        while True:
            q = self._ask("where")  # also while nobody looks: it ends with the controller
            if self._seen is None or self._server.get_clients():
                if count % LOOK == 0 and (seen := self._ask("look")):
                    if self._seen is None:
                        self._build(seen)
                    self._show(seen)
                if self._seen is not None:
                    with self._server.atomic():
                        self._scene.show(q, self._seen)
                count += 1
            time.sleep(PICTURE)

    def _ask(self, name: str, *given: Any) -> Any:
        """Return the controller's answer to a request.

        Raises:
            TwinError: the controller refuses it.
        """
        with self._lock:
            send(self._requests, (name, given))
            answer = pickle.load(self._answers)
        if isinstance(answer, TwinError):
            raise answer
        return answer

    # ------------------------------------------------------------------------------------------- building

    def _build(self, seen: Seen) -> None:
        gui, shown = self._server.gui, self._shown
        self._theme(dark=False)
        gui.set_panel_label(f"{shown.robot.name}, virtual controller")
        self._state = gui.add_html("")
        programs = {"start": ("start",), "stop": ("stop",), "step": ("step",), "PP to main": ("to_main",)}
        self._group("program", programs)
        self._group("motors", {"on": ("motors", True), "off": ("motors", False)})
        self._mode = gui.add_dropdown("mode", [TITLES[one] for one in MODES])
        self._on_change(self._mode, lambda title: ("mode", MODES[list(TITLES.values()).index(title)]))
        self._speed = gui.add_slider("speed [%]", 0, 100, 1, 100)
        self._on_change(self._speed, lambda percent: ("speed", percent))
        self._questions: tuple[tuple[str, Question], ...] = ()
        self._dialogs: list[Any] = []
        self._dialog_place = gui.add_folder(None)
        tabs = gui.add_tab_group()
        with tabs.add_tab("program"):
            self._tasks = gui.add_html("")
            self._task = gui.add_dropdown("task", list(seen.tasks))
            self._listing = gui.add_html("")
        with tabs.add_tab("signals"):
            self._inputs = self._input_switches(seen)
            self._outputs = gui.add_html("")
        with tabs.add_tab("events"):
            self._events = gui.add_html("")
        with tabs.add_tab("jog"):
            self._frame = gui.add_dropdown("jog", list(FRAMES))
            self._frame.on_update(lambda _: self._name_axes())
            self._step = gui.add_dropdown("step [deg, mm]", STEPS, initial_value="5")
            self._tool = gui.add_dropdown("tool", ["tool0", *shown.tools])
            self._axes = [
                self._group(name, {"−": partial(self._jog, k, -1), "+": partial(self._jog, k, 1)})
                for k, name in enumerate(shown.robot.joint_names)
            ]
            self._group("stop", {"stop": ("stop",)})
            self._place = gui.add_html("")
            self._object = gui.add_dropdown("work object", ["wobj0", *shown.objects])
            self._target = gui.add_dropdown("target", shown.targets or ["none"])
            self._group("here", {"modify position": self._modify})
            self._declaration = gui.add_markdown("")
        dark = gui.add_checkbox("dark", False)
        dark.on_update(lambda _: self._theme(dark=dark.value))

    def _theme(self, *, dark: bool) -> None:
        self._server.gui.configure_theme(
            control_width="large", show_share_button=False, show_logo=False, dark_mode=dark
        )

    def _group(self, label: str, requests: Mapping[str, Request]) -> Any:
        """Add a row of buttons by their requests."""
        group = self._server.gui.add_button_group(label, list(requests))
        group.on_click(lambda event: self._act(event, requests[event.target.value]))
        return group

    def _on_change(self, handle: Any, request: Callable[[Any], Request]) -> None:
        """Make a request of each value that a person gives."""
        handle.on_update(lambda event: event.client and self._act(event, request(event.target.value)))

    def _act(self, event: GuiEvent, request: Request) -> None:
        """Make a request; a page shows why the controller refuses it."""
        try:
            if callable(request):
                request()
            else:
                self._ask(*request)
        except TwinError as error:
            if event.client is not None:
                event.client.add_notification("refused", str(error), auto_close_seconds=8.0, color="red")
            self._values = {}

    def _input_switches(self, seen: Seen) -> dict[str, Any]:
        """Add a switch or a number for each input."""
        gui, inputs, found = self._server.gui, self._shown.inputs, {}
        for name in list(inputs)[:MOST_INPUTS]:
            value = seen.signals.get(name, 0.0)
            found[name] = gui.add_checkbox(name, bool(value)) if inputs[name] else gui.add_number(name, value)
            self._on_change(found[name], lambda value, name=name: ("set", name, value))
        if (more := len(inputs) - MOST_INPUTS) > 0:
            gui.add_markdown(f"{more} more inputs: type `set NAME VALUE` in the terminal")
        return found

    def _jog(self, k: int, sense: int) -> None:
        in_tool_axes = FRAMES[self._frame.value]
        names = self._shown.robot.joint_names if in_tool_axes is None else AXES
        self._ask("jog", names[k], sense * float(self._step.value), self._tool.value, bool(in_tool_axes))

    def _modify(self) -> None:
        text = self._ask("modify", self._target.value, self._tool.value, self._object.value)
        self._declaration.content = f"```\n{text}\n```"

    def _name_axes(self) -> None:
        by_joints = FRAMES[self._frame.value] is None
        for group, joint, axis in zip(self._axes, self._shown.robot.joint_names, AXES, strict=False):
            group.label = joint if by_joints else axis

    # ------------------------------------------------------------------------------------------- showing

    def _show(self, seen: Seen) -> None:
        self._seen = seen
        motors, mode, executing, speed, rests = seen.state
        words = [
            "motors on" if motors else "motors off", TITLES[mode], "runs" if executing else "stopped",
            "" if rests else "the arm moves",
            f"{', '.join(seen.masters)}: mastership of a client" if seen.masters else "",
        ]  # fmt: skip
        near = "" if seen.nearest is None else f"nearest: {seen.nearest.names}, {seen.nearest.text}"
        first = escape(" · ".join(word for word in words if word))
        change(self._state, padded(f"<b>{first}</b><br>{escape(near)}"))
        shown = [(self._mode, TITLES[mode]), (self._speed, round(speed))]
        shown += [(handle, seen.signals[name]) for name, handle in self._inputs.items()]
        for k, (handle, value) in enumerate(shown):
            if self._values.get(k) != value:  # what a person gives meanwhile stays
                self._values[k] = handle.value = value
        states = [f"{name}: {one.state}" for name, one in seen.tasks.items()]
        change(self._tasks, padded(escape(", ".join(states))))
        change(self._listing, self._program(seen))
        others = sorted({*seen.signals} - {*self._inputs})
        change(self._outputs, table([(name, f"{seen.signals[name]:g}") for name in others]))
        change(self._events, table([(one,) for one in seen.events]))
        change(self._place, self._where(seen))
        if tuple(seen.questions.items()) != self._questions:
            self._open_dialogs(tuple(seen.questions.items()))

    def _program(self, seen: Seen) -> str:
        """Return the lines about the program pointer of the chosen task, with the line of the move."""
        task = seen.tasks[self._task.value]
        if task.at is None:
            return "no program"
        (file, line), move = task.at, task.move
        if self._text[:2] != (file, task.changes):
            self._text = file, task.changes, self._ask("text", self._task.value, file).splitlines()
        return listing(self._text[2], line, move[1] if move and move[0] == file else 0)

    def _where(self, seen: Seen) -> str:
        """Return the joint angles, and the place of the tool that is jogged, as a table."""
        T = forward_kinematics(self._shown.robot, seen.q, self._scene.T_flange_tool)
        joints = zip(self._shown.robot.joint_names, np.degrees(seen.q), strict=True)
        places = [(axis, f"{1e3 * at:.1f} mm") for axis, at in zip("xyz", T[:3, 3], strict=True)]
        rows = zip_longest(((name, f"{angle:.2f} deg") for name, angle in joints), places, fillvalue=())
        return table([(*joint, *at) for joint, at in rows])

    def _open_dialogs(self, questions: tuple[tuple[str, Question], ...]) -> None:
        """Show the questions of the programs."""
        for one in self._dialogs:
            one.remove()
        self._questions, self._dialogs, gui = questions, [], self._server.gui
        for task, question in questions:
            with self._dialog_place:
                self._dialogs.append(gui.add_folder(f"{task} asks"))
            with self._dialogs[-1]:
                gui.add_markdown(escape(question.text))
                if question.keys:
                    self._group("", {key: ("answer", key, task) for key in question.keys})
                else:
                    field = gui.add_text("answer", "")
                    self._group("", {"OK": partial(self._answer, field, task)})

    def _answer(self, field: Any, task: str) -> None:
        self._ask("answer", field.value, task)


class Scene:
    """Arm in its cell, with the path and the frame of its tool, and the nearest pair.

    Attributes:
        T_flange_tool: (4, 4) pose of the tool on the flange.
    """

    def __init__(self, server: Any, shown: Shown) -> None:
        robot, q, bodies = shown.robot, shown.q, shown.bodies
        self._server, self._robot, self.T_flange_tool = server, robot, np.eye(4)
        meshes, poses = browser.arm_meshes(robot), np.array([q, *robot.poses.values()])
        around = [vertices for vertices, _, _ in bodies]
        browser.surroundings(
            server, robot, np.concatenate([browser.reached(meshes, link_poses(robot, poses)), *around])
        )
        links = browser.add_arm(server, robot, meshes, browser.Arm(robot.name, q[None], None), 1)
        fixtures = [
            server.scene.add_mesh_simple(
                f"/cell/{k}", vertices, faces, color=browser.FIXTURE, flat_shading=True, opacity=0.8,
                cast_shadow=False, receive_shadow=False,
            )
            for k, (vertices, faces, _) in enumerate(bodies)
        ]  # fmt: skip
        self._moving: list[Any] = [*links, *fixtures]
        self._before: np.ndarray | None = None
        self._tool = server.scene.add_frame("/tool", axes_length=0.08, axes_radius=0.003)
        self._trail: deque[np.ndarray] = deque(maxlen=round(TRAIL / TRAIL_PERIOD))
        self._count = 0

    def show(self, q: np.ndarray, seen: Seen) -> None:
        """Show joint angles (n,), in [rad], and the nearest pair of a state."""
        T_bodies = [*link_poses(self._robot, q), np.eye(4)]
        T = np.array([*T_bodies[:-1], *(T_bodies[body] @ place for body, place in seen.places)])
        browser.place(self._moving, T, self._before)
        self._before, self.T_flange_tool = T, seen.T_flange_tool
        T_tool = forward_kinematics(self._robot, q, seen.T_flange_tool)
        self._tool.position, self._tool.wxyz = T_tool[:3, 3], quaternion_from_matrix(T_tool[:3, :3])
        if self._count % round(TRAIL_PERIOD / PICTURE) == 0:
            self._trail.append(T_tool[:3, 3])
            self._lines("/path of the tool", self._segments(), browser.COLOURS[0])
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

"""Views in a browser: replays of logs as pages, and a robot that is jogged by sliders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.base.arrays import float_array
from twin.base.atomic_file import atomic_write
from twin.base.errors import TwinError
from twin.data.logs.log import Log
from twin.physics.kinematics.forward import link_poses
from twin.physics.robot.limits import joint_ranges
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import SHOWN
from twin.studies.views.scene import (
    COLOURS,
    Arm,
    Logged,
    add_arm,
    arm_meshes,
    local_server,
    place,
    reached,
    replay,
    stop,
    surroundings,
)

FRAMES = 240  # of a replay, so that a notebook with it remains small
FRAME = '<iframe {} style="width: 100%; height: 480px; border: 0" title="{}"></iframe>'


class Replay:
    """Three-dimensional replay of logs of one robot with a time slider, which needs no network.

    Attributes:
        html: the page.
    """

    def __init__(self, html: str) -> None:
        self.html = html

    @classmethod
    def of(cls, logs: Mapping[str, Log], frames: int = FRAMES) -> Replay:
        """Return the replay of logs by name; all but the first are transparent.

        Args:
            logs: logs by name, at least one.
            frames: largest number of frames.

        Raises:
            TwinError: no sample has a finite position, or a shape of the robot cannot be drawn.
        """
        shown = [Logged(log, name, COLOURS[k % len(COLOURS)]) for k, (name, log) in enumerate(logs.items())]
        document = replay(shown, frames)
        if document is None:
            raise TwinError(f"{', '.join(logs)} cannot be shown: no sample has finite joint positions")
        return cls(f"{document.head}{document.recording}{document.tail}")

    def __repr__(self) -> str:
        return f"<Replay: page of {len(self.html) / 1e6:.2f} MB>"

    def _repr_html_(self) -> str:
        return FRAME.format(f'srcdoc="{escape(self.html)}"', "replay")

    def save(self, path: str | Path) -> None:
        """Write the page atomically."""
        with atomic_write(path) as draft:
            Path(draft).write_text(self.html, encoding="utf-8")

    def serve(self, port: int = 0, announce: Callable[[str], None] = print) -> None:
        """Show the page to browsers of this machine until the user interrupts the program.

        Args:
            port: port of the server; 0 for a free one.
            announce: callback that receives the address of the page.
        """
        content = self.html.encode()

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", port), Page) as server:
            announce(f"http://127.0.0.1:{server.server_port}/")
            server.serve_forever()


class View:
    """Robot in a browser with a slider for every joint; a notebook shows it, `close` ends it.

    Only browsers of this machine reach it.

    Attributes:
        url: address of the page.
        target: (n,) positions of the sliders, in [rad].

    Args:
        robot: the robot.
        q: (n,) initial positions, in [rad]; `None` for zero within the ranges.
        port: port of the server; 0 for a free one.
        follow: whether the arm follows the sliders; else `show` moves it.

    Raises:
        ValueError: q has another shape, or is not finite.
        RobotError: a shape of the robot cannot be drawn.
    """

    def __init__(
        self, robot: Robot, q: ArrayLike | None = None, *, port: int = 0, follow: bool = True
    ) -> None:
        self.robot = robot
        low, high = joint_ranges(robot)
        q = np.clip(np.zeros(robot.n), low, high) if q is None else float_array(q, "q", (robot.n,))
        meshes = arm_meshes(robot)
        self.server = local_server(port)
        self.url = f"http://127.0.0.1:{self.server.get_port()}/"
        poses = np.array([q, *robot.poses.values()])
        surroundings(self.server, robot, reached(meshes, link_poses(robot, poses)))
        self._links = add_arm(self.server, robot, meshes, Arm(robot.name, q[None], None), 1)
        gui = self.server.gui
        gui.configure_theme(show_share_button=False, show_logo=False)
        gui.set_panel_label(robot.name)
        self._scale = np.array([SHOWN[kind][1] for kind in robot.joint_kinds])
        self._units = [SHOWN[kind][0] for kind in robot.joint_kinds]
        ends = np.ceil(10 * self._scale * low) / 10, np.floor(10 * self._scale * high) / 10
        columns = zip(robot.joint_names, self._units, *ends, np.clip(self._scale * q, *ends), strict=True)
        self._sliders = [
            gui.add_slider(f"{name} [{unit}]", low, high, step=0.1, initial_value=at)
            for name, unit, low, high, at in columns
        ]
        self._text = gui.add_markdown("")
        self.show(q)
        if follow:
            for slider in self._sliders:
                slider.on_update(lambda _: self.show(self.target))

    def __repr__(self) -> str:
        return f"<View of {self.robot.name} at {self.url}>"

    def _repr_html_(self) -> str:
        return FRAME.format(f'src="{self.url}"', self.robot.name) + f"<p>{self.robot.name} at {self.url}</p>"

    @property
    def target(self) -> NDArray:  # noqa: D102
        return np.array([slider.value for slider in self._sliders]) / self._scale

    def show(self, q: ArrayLike, text: str = "") -> None:
        """Move the arm to positions q (n,), in [rad], and show them, above a text in Markdown."""
        q = float_array(q, "q", (self.robot.n,))
        with self.server.atomic():
            place(self._links, link_poses(self.robot, q))
        cells = zip(self.robot.joint_names, self._scale * q, self._units, strict=True)
        lines = [f"{name}: {value:.2f} {unit}" for name, value, unit in cells]
        self._text.content = "  \n".join([*lines, text])

    def close(self) -> None:
        """Stop the server."""
        stop(self.server)


def view(robot: Robot, q: ArrayLike | None = None, *, port: int = 0) -> View:
    """Show a robot in the browser, with a slider for every joint: `twin.view(twin.load("irb140"))`.

    Args:
        robot: the robot.
        q: (n,) initial positions, in [rad]; `None` for zero within the ranges.
        port: port of the page; 0 for a free one.

    Raises:
        ValueError: q has another shape, or is not finite.
        RobotError: a shape of the robot cannot be drawn.
    """
    return View(robot, q, port=port)

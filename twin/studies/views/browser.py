"""Views in a browser: replays of logs as pages, and a robot that is jogged by sliders.

Both show a three-dimensional scene of viser.  A replay is a document: viser's recorder and player are used
without a browser, and its server stops when the document is complete.  The arm of the first log has its
original colours.  The arms of the other logs are transparent, in the colours of their curves; beside a single
log a transparent arm shows the desired motion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.base.arrays import float_array
from twin.base.errors import TwinError, WrongUse
from twin.base.notebook import FRAME, Page
from twin.data.logs.figures import tool_distance
from twin.data.logs.log import Log
from twin.physics.kinematics.forward import link_poses
from twin.physics.robot.limits import joint_ranges
from twin.physics.robot.link_shapes import link_shapes
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import SHOWN
from twin.physics.rotations.rotations import quaternion_from_matrix
from twin.physics.trajectories.joint_paths import NEAR_SINGULAR, singular_distances
from twin.studies.views.touch import arrows, surface_meshes

if TYPE_CHECKING:
    from viser import FrameHandle, ViserServer


MOST_FRAMES, FEWEST_FRAMES = 400, 40
MOST_POSES = 25_000
"""Largest number of link poses, over all frames and arms of a page."""
PATH_POINTS = 1000
REST = 0.5  # s, pause before the player starts again
DOTS = 0.012  # m, distance of the dots on the desired path
MOMENTS = 60  # samples of a log for which the camera must see the arm
COLOURS = ("#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#e69f00")
"""Colours of `twin.views.curves`; those similar to an orange arm come last."""
DESIRED = (120, 120, 125)
GHOST = 0.45  # opacity
INSET = 2e-3  # m, by which each transparent arm is smaller than the arm before it
NEAR = (220, 20, 40)  # colour of a program's path near a singularity
FIELD_OF_VIEW = np.deg2rad(40.0)
MOST_TRIANGLES = 40_000
"""Largest number of triangles of an arm; a finer arm is simplified."""
FINEST = 1e-3  # m: width of the first grid by which a mesh with too many triangles is simplified
LOCAL = re.compile(r"https?://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?")
"""Origins of pages whose web sockets are accepted; another port is that of an SSH tunnel."""
MARK = '__VISER_EMBED_DATA__="'
"""Text before the recording in viser's document; a quotation mark follows the recording."""


class Document(NamedTuple):
    """Document in three parts: the player before the recording, the recording, and the player after it.

    `start` is the time in the log, in [s], at which the recording begins.
    """

    head: str
    recording: str
    tail: str
    start: float


FIXTURE = (110, 145, 180)
"""Colour of what stands around an arm."""


class Logged(NamedTuple):
    """Log with at least one sample, its label, and the colour of its curves, such as `#0072b2`."""

    log: Log
    label: str
    colour: str


class Arm(NamedTuple):
    """Arm of the scene: name, positions (F, n) in every frame, and colour if it is transparent."""

    name: str
    q: NDArray
    ghost: tuple[int, int, int] | None


def links(shown: Sequence[Logged]) -> int:
    """Return how many links move in the replay of logs of one robot."""
    return sum(one.log.robot.tree.n for one in shown) * (2 if len(shown) == 1 else 1)


class Fixture(NamedTuple):
    """Body that stands in the scene: its name, vertices (k, 3) in the base frame, in [m], and triangles."""

    name: str
    vertices: NDArray
    faces: NDArray


def replay(
    shown: Sequence[Logged],
    frames: int,
    moments: Sequence[float] = (),
    fixtures: Sequence[Fixture] = (),
    lines: Sequence[NDArray] = (),
) -> Document | None:
    """Return the replay of logs of one robot; `None` if no log has a finite position.

    Args:
        shown: the logs, one per controller.
        frames: largest number of frames.
        moments: times at which there is a frame in any case, in [s].
        fixtures: bodies that stand around the arm.
        lines: pairs of points (2, 3) in the base frame, joined by red lines.

    Raises:
        RobotError: a shape of the robot cannot be drawn.
    """
    drawn = [one for one in shown if len(_finite_samples(one.log))]
    if not drawn:
        return None
    times, first = frame_times([one.log for one in drawn], frames, moments), drawn[0].log
    arms = [
        Arm(one.label, at_times(one.log, one.log.q, times), _rgb(one.colour) if k else None)
        for k, one in enumerate(drawn)
    ]
    if len(drawn) == 1:
        arms.append(Arm("desired motion", at_times(first, first.q_ref, times), DESIRED))
    meshes = arm_meshes(first.robot)
    points = []
    for one in drawn:
        finite = _finite_samples(one.log)
        some = finite[np.linspace(0, len(finite) - 1, MOMENTS, dtype=int)]
        points += [reached(meshes, link_poses(first.robot, one.log.q[some])), one.log.pose[some, :3]]
    with _recording_server() as server:
        surroundings(server, first.robot, np.concatenate(points))
        _paths(server, drawn)
        for k, body in enumerate(fixtures):
            server.scene.add_mesh_simple(
                f"/cell/{_word(body.name, k)}", body.vertices, body.faces, color=FIXTURE, flat_shading=True,
                opacity=0.8, cast_shadow=False, receive_shadow=False,
            )  # fmt: skip
        if len(lines):
            server.scene.add_line_segments(
                "/nearest points", np.array(lines), (255, 0, 0), thickness=4.0, thickness_units="screen"
            )
        for k, (vertices, faces) in enumerate(surface_meshes(first)):
            server.scene.add_mesh_simple(
                f"/surface {k + 1}", vertices, faces, color=FIXTURE, flat_shading=True, opacity=0.6,
                side="double", cast_shadow=False, receive_shadow=False,
            )  # fmt: skip
        moving = [moved_arm(server, first.robot, meshes, arm, k) for k, arm in enumerate(arms, start=1)]
        moving += [moved_force(server, one, times, k) for k, one in enumerate(drawn, start=1)]
        for arm in moving:
            next(arm)
        recorder = server.get_scene_serializer()
        for pause in np.diff(times):
            recorder.insert_sleep(float(pause))
            for arm in moving:
                next(arm)
        recorder.insert_sleep(REST)
        whole = recorder.as_html()
    head, mark, rest = whole.partition(MARK)
    recording, quote, tail = rest.partition('"')
    return Document(head + mark, recording, quote + tail, float(times[0]))


def frame_times(logs: Sequence[Log], most: int, moments: Sequence[float] = ()) -> NDArray:
    """Return the times of the frames, in [s]: evenly spaced, and the given moments."""
    start, end = min(log.t[0] for log in logs), max(log.t[-1] for log in logs)
    samples = 1 + round((end - start) / min(log.time_step * log.steps_per_period for log in logs))
    even = np.linspace(start, end, max(2, min(most - len(moments), samples)))
    return np.unique([*even, *moments])


def at_times(log: Log, q: NDArray, times: NDArray) -> NDArray:
    """Return positions (F, n) at these times, each from the latest finite sample."""
    finite = _finite_samples(log)
    found = np.searchsorted(log.t[finite], times + 1e-9, side="right") - 1
    return q[finite[np.clip(found, 0, len(finite) - 1)]]


def _finite_samples(log: Log) -> NDArray:
    """Return the indices of the samples whose positions are finite."""
    return np.nonzero(np.isfinite(log.q).all(axis=1))[0]


@contextmanager
def _recording_server() -> Iterator[ViserServer]:
    server = local_server()
    try:
        yield server
    finally:
        stop(server)


def local_server(port: int = 0) -> ViserServer:
    """Start a server of scenes that only this machine reaches, silently.

    Viser listens on all interfaces, accepts web sockets of pages from anywhere, and offers a public address.
    This server listens on 127.0.0.1, refuses pages of other hosts, and shares nothing.

    Args:
        port: port of the server; 0 for a free one.

    Raises:
        WrongUse: there is no such port, or it is in use.
    """
    if not 0 <= port <= 65535:
        raise WrongUse(f"port {port}: expected one from 0, a free one, to 65535")
    import viser
    from viser import _messages
    from websockets.asyncio import server as sockets

    with _silence():
        serve = sockets.serve
        sockets.serve = partial(serve, origins=[LOCAL, None])  # viser has no setting for it
        try:
            server = viser.ViserServer(host="127.0.0.1", port=port, verbose=False)
        finally:
            sockets.serve = serve
    if port not in (0, server.get_port()):  # viser takes the next free one
        stop(server)
        raise WrongUse(f"port {port} is in use")
    for message in (_messages.ShareUrlRequest, _messages.ShareUrlDisconnect):
        server._websock_server.unregister_handler(message)
    return server


@contextmanager
def _silence() -> Iterator[None]:
    """Silence viser, which prints with rich: on standard output, and into the page of a notebook."""
    import rich

    printer = rich.get_console()
    before, printer.quiet = printer.quiet, True
    try:
        yield
    finally:
        printer.quiet = before


def stop(server: ViserServer) -> None:
    """Stop a server of scenes silently."""
    with _silence():
        server.stop()


def surroundings(server: ViserServer, robot: Robot, points: NDArray) -> None:
    """Add light, the plane of the base, and a camera that sees points (k, 3) of the base frame."""
    gravity = robot.gravity
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    centre, radius = (low + high) / 2, max(0.1, float(np.linalg.norm(high - low)) / 2)
    up = -gravity / np.linalg.norm(gravity) if np.any(gravity) else np.array([0.0, 0.0, 1.0])
    beside = np.array([0.75, -1.0, 0.0]) if abs(up[2]) > 0.5 else np.array([0.0, -1.0, 0.9])
    away = (beside + 0.45 * up) / np.linalg.norm(beside + 0.45 * up)
    scene, sun = server.scene, centre + 5 * (away + up)
    scene.set_up_direction(tuple(up.tolist()))
    scene.configure_environment_map(hdri=None)  # viser's default picture is decoded in every loop
    scene.configure_default_lights(enabled=False)
    scene.add_light_ambient("/light/ambient", intensity=1.1)
    scene.add_light_hemisphere(
        "/light/sky", sky_color=(255, 255, 255), ground_color=(190, 190, 195), intensity=1.2
    )
    scene.add_light_directional("/light/sun", intensity=1.6, position=tuple(sun.tolist()))
    size = float(np.ceil(4 * (radius + np.linalg.norm(centre))))
    scene.add_grid(
        "/plane of the base", width=size, height=size, cell_size=0.1, section_size=0.5, cell_thickness=0.6,
        cell_color=(232, 232, 235), section_color=(205, 205, 210),
    )  # fmt: skip
    camera = server.initial_camera
    camera.look_at = tuple(centre.tolist())
    camera.position = tuple((centre + away * 0.85 * radius / np.sin(FIELD_OF_VIEW / 2)).tolist())
    camera.fov = float(FIELD_OF_VIEW)


def _paths(server: ViserServer, drawn: Sequence[Logged]) -> None:
    """Add the desired and the actual paths of the tool, and a ball where its error was largest."""
    for number, (log, label, colour) in enumerate(drawn, start=1):
        finite, name = _finite_samples(log), _word(label, number)
        some = finite[np.unique(np.linspace(0, len(finite) - 1, PATH_POINTS, dtype=int))]
        if number == 1:
            desired = _evenly(log.pose_ref[finite, :3])
            server.scene.add_point_cloud("/desired tool path", desired, DESIRED, point_size=0.004)
        if len(some) > 1:
            path = log.pose[some, :3]
            colours = _colours_of_speed(log, some) if number == 1 and log.program else _rgb(colour)
            server.scene.add_line_segments(
                f"/tool path {name}", np.stack([path[:-1], path[1:]], axis=1), colours,
                thickness=2.0 if number > 1 or not log.program else 4.0, thickness_units="screen",
            )  # fmt: skip
        worst = finite[int(np.argmax(tool_distance(log)[finite]))]
        server.scene.add_icosphere(
            f"/largest tool error {name}", radius=0.012, color=_rgb(colour),
            position=tuple(log.pose[worst, :3].tolist()),
        )  # fmt: skip


def _colours_of_speed(log: Log, samples: NDArray) -> NDArray:
    """Return colours (N - 1, 2, 3) of the parts of a path by the tool's speed, red near a singularity."""
    from matplotlib import colormaps

    path, t = log.pose[samples, :3], log.t[samples]
    speed = np.linalg.norm(np.diff(path, axis=0), axis=1) / np.diff(t)
    rgb = 255 * colormaps["viridis"](speed / max(float(speed.max()), 1e-9))[:, :3]
    if log.robot.dh is not None:
        q = log.q[samples[1:]]
        distances = singular_distances(log.robot, q, np.zeros_like(q))[0]
        rgb[np.min(np.abs(distances), axis=1) < NEAR_SINGULAR] = NEAR
    return np.stack([rgb, rgb], axis=1).astype(np.uint8)


def _evenly(points: NDArray) -> NDArray:
    """Return points of a path (N, 3) at equal distances along it, at most `PATH_POINTS`."""
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    marks = np.linspace(0.0, length[-1], min(PATH_POINTS, 2 + int(length[-1] / DOTS)))
    return points[np.searchsorted(length, marks).clip(0, len(points) - 1)]


def moved_arm(
    server: ViserServer, robot: Robot, meshes: Sequence[Mesh], arm: Arm, number: int
) -> Iterator[None]:
    """Add an arm in its first frame; every further step moves it to its next frame."""
    handles, T = add_arm(server, robot, meshes, arm, number), link_poses(robot, arm.q)
    for frame in range(len(T)):
        place(handles, T[frame], T[frame - 1] if frame else None)
        yield


def moved_force(server: ViserServer, one: Logged, times: NDArray, number: int) -> Iterator[None]:
    """Add the arrow of the force on a tool; every further step shows that of the next frame."""
    if len(found := arrows(one.log)) == 0:
        yield from repeat(None)
        return
    shown = at_times(one.log, found, times)
    handle = server.scene.add_arrows(
        f"/force {_word(one.label, number)}", shown[:1], _rgb(one.colour), shaft_radius=0.006,
        head_radius=0.014, head_length=0.03,
    )  # fmt: skip
    for frame in range(len(times)):
        handle.points = shown[frame : frame + 1].astype(np.float32)
        handle.visible = bool(np.any(shown[frame, 0] != shown[frame, 1]))
        yield


def add_arm(
    server: ViserServer, robot: Robot, meshes: Sequence[Mesh], arm: Arm, number: int
) -> list[FrameHandle]:
    """Add an arm to a scene; return the frames of its links, in the order of the tree."""
    root = f"/{_word(arm.name, number)}"
    names = ["base", *(_word(link, k) for k, link in enumerate(robot.tree.links, start=1))]
    handles = [server.scene.add_frame(f"{root}/{name}", show_axes=False) for name in names]
    for k, mesh in enumerate(meshes, start=1):
        if mesh.link < 0 and arm.ghost:
            continue  # it would coincide with the base of the first arm
        depth = INSET * (number - 1)  # coinciding surfaces would flicker
        server.scene.add_mesh_simple(
            f"{handles[mesh.link + 1].name}/shape {k}", mesh.inside(depth), mesh.faces,
            color=arm.ghost or mesh.color, opacity=GHOST if arm.ghost else None, flat_shading=True,
            cast_shadow=False, receive_shadow=False,
        )  # fmt: skip
    return handles[1:]


def place(handles: Sequence[FrameHandle], T: NDArray, before: NDArray | None = None) -> None:
    """Move links to their poses T (n_tree, 4, 4), except those that had the same pose `before`."""
    for link, handle in enumerate(handles):
        if before is None or np.any(T[link] != before[link]):
            handle.position, handle.wxyz = T[link, :3, 3], quaternion_from_matrix(T[link, :3, :3])


def _rgb(text: str) -> tuple[int, int, int]:
    """Return the colour `#0072b2` as numbers from 0 to 255."""
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def _word(name: str, number: int) -> str:
    """Return a unique name of a node in the scene's tree, without slashes, which separate its levels."""
    return f"{number} {name.replace('/', '|')}"


class Mesh(NamedTuple):
    """Mesh of a link.

    Attributes:
        link: index of the link, -1 for the base.
        color: (3,) red, green and blue, to 255.
        vertices: (k, 3) in the link's frame, in [m].
        faces: (m, 3) triangles, as indices of vertices.
        inward: (k, 3) direction from each vertex to the centre of its part, relative to the half width of the
            part: 1 or -1 at its sides, 0 at its centre.
    """

    link: int
    color: tuple[int, int, int]
    vertices: NDArray
    faces: NDArray
    inward: NDArray

    def inside(self, depth: float) -> NDArray:
        """Return vertices (k, 3) of the same shape, made smaller by `depth`, in [m], on all sides."""
        return self.vertices + depth * self.inward


def arm_meshes(robot: Robot) -> list[Mesh]:
    """Return the robot's shapes, one mesh per link and colour, simplified if they have too many triangles.

    Raises:
        RobotError: a shape of the robot cannot be drawn.
    """
    parts: dict[tuple[int, tuple[float, ...]], list[Any]] = {}
    for shape in link_shapes(robot):
        parts.setdefault((shape.link, shape.color), []).append(shape.mesh)
    found = []
    for (link, color), together in parts.items():
        starts = np.cumsum([0, *(len(mesh.vertices) for mesh in together)])
        vertices = np.concatenate([mesh.vertices for mesh in together])
        faces = np.concatenate([mesh.faces + start for mesh, start in zip(together, starts, strict=False)])
        inward = np.concatenate([_inward(mesh.vertices) for mesh in together])
        red, green, blue = (round(255 * part) for part in color[:3])
        found.append(Mesh(link, (red, green, blue), vertices, faces, inward))
    cell = FINEST
    while sum(len(mesh.faces) for mesh in found) > MOST_TRIANGLES:
        found = [coarser(mesh, cell) for mesh in found]
        cell *= 1.5
    return [mesh for mesh in found if len(mesh.faces)]


def coarser(mesh: Mesh, cell: float) -> Mesh:
    """Merge the vertices in each cell of a grid, and drop triangles that lose a side.

    Args:
        mesh: mesh of a link.
        cell: width of a cell of the grid, in [m].
    """
    cells = np.round(mesh.vertices / cell)
    _, first, inverse = np.unique(cells, axis=0, return_index=True, return_inverse=True)
    faces = inverse.reshape(-1)[mesh.faces]
    a, b, c = faces.T
    whole = (a != b) & (b != c) & (c != a)
    return Mesh(mesh.link, mesh.color, mesh.vertices[first], faces[whole], mesh.inward[first])


def _inward(vertices: NDArray) -> NDArray:
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    half = np.maximum((high - low) / 2, 1e-9)
    return ((low + high) / 2 - vertices) / half


def reached(meshes: Sequence[Mesh], T: NDArray) -> NDArray:
    """Return the corners (k, 3), base frame, of boxes about links with poses T (F, n_tree, 4, 4)."""
    points = [np.zeros((1, 3))]
    for mesh in meshes:
        ends = np.array([mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)])
        box = np.array([[ends[i, 0], ends[j, 1], ends[k, 2]] for i, j, k in product((0, 1), repeat=3)])
        if mesh.link >= 0:
            R, p = T[:, mesh.link, :3, :3], T[:, mesh.link, :3, 3]
            box = (np.einsum("fij,cj->fci", R, box) + p[:, None]).reshape(-1, 3)
        points.append(box)
    return np.concatenate(points)


FRAMES = 240  # of a replay, so that a notebook with it remains small


class Replay(Page):
    """Three-dimensional replay of logs of one robot with a time slider, which needs no network.

    Attributes:
        html: the page.
    """

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

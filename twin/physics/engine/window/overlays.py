"""Drawings in the window: lines, frames and crosses, text at its edges, and arms that are not simulated."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from twin.base.arrays import real_array
from twin.physics.robot.evaluation import joint_vector
from twin.physics.robot.link_shapes import PLAIN, link_shapes, meshes_by_colour
from twin.physics.robot.robot import Robot

MOST_SEGMENTS = 128
"""Largest number of segments of a path; each is a call to PyBullet's drawing thread."""

PATH_WIDTH, LINE_WIDTH = 2, 3  # pixels
HEAD = 0.2
"""Length of an arrow's head, as a share of the arrow's length."""

AXIS_COLORS = ((0.9, 0.1, 0.1), (0.1, 0.65, 0.1), (0.15, 0.25, 0.95))


def add_item(client: Any, add: Callable[..., int], *what: Any, replaced: int = -1) -> int:
    """Create an item of the window, a line, a text or a slider, or replace one by its number.

    If its threads collide, once in some thousand calls on a busy computer, PyBullet creates the item but
    returns -1 instead of its number.  The number is then derived from the next one, as they are consecutive.

    Args:
        client: PyBullet's client of the window.
        add: its `addUserDebugLine`, `addUserDebugText` or `addUserDebugParameter`.
        what: arguments of `add`.
        replaced: number of the item to replace.

    Returns:
        The item's number.
    """
    if replaced >= 0:
        add(*what, replaceItemUniqueId=replaced)
        return replaced
    number = add(*what)
    if number < 0:
        number = add_item(client, add, *what)
        client.removeUserDebugItem(number - 1)
    return number


def path_points(points: ArrayLike) -> np.ndarray:
    """Return the points of a path as an array; raise `ValueError` unless they are (N, 3)."""
    path = real_array(points, "points")
    if path.ndim != 2 or path.shape[1] != 3:
        raise ValueError(f"expected points of shape (N, 3), got {path.shape}")
    return path


class Drawing:
    """Drawings made of lines, which appear at the next picture; positions are in the base frame, in [m].

    PyBullet's `addUserDebugPoints` would be simpler, but it removes the letters of sliders and buttons.

    Args:
        client: PyBullet's client of the window.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._wanted: dict[str, list[tuple]] = {}
        self._items: dict[str, list[tuple[int, tuple]]] = {}

    def path(self, name: str, points: ArrayLike, color: Sequence[float]) -> None:
        """Draw a line through at most `MOST_SEGMENTS + 1` of the points (N, 3); one point draws none."""
        path = path_points(points)
        every = 1
        while (len(path) - 1) / every > MOST_SEGMENTS:  # doubling: a growing path keeps most of its lines
            every *= 2
        shown = path[::every]
        if (len(path) - 1) % every:
            shown = np.vstack((shown, path[-1:]))
        self._lines(name, list(pairwise(shown)), [color] * (len(shown) - 1), PATH_WIDTH)

    def crosses(self, name: str, points: ArrayLike, color: Sequence[float], length: float) -> None:
        """Draw a cross along the base axes at each of points (N, 3)."""
        arms = 0.5 * length * np.eye(3)
        lines = [(point - arm, point + arm) for point in path_points(points) for arm in arms]
        self._lines(name, lines, [color] * len(lines), LINE_WIDTH)

    def arrow(self, name: str, start: ArrayLike, vector: ArrayLike, color: Sequence[float]) -> None:
        """Draw an arrow from `start` (3,) along `vector` (3,); a zero vector draws none."""
        start, vector = real_array(start, "start"), real_array(vector, "vector")
        length = float(np.linalg.norm(vector))
        if not length > 0:
            self.remove(name)
            return
        end, along = start + vector, vector / length
        aside = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
        aside *= 0.35 / np.linalg.norm(aside)
        upwards = np.cross(along, aside)
        back = HEAD * length
        corners = [end + back * (side - along) for side in (aside, upwards, -aside, -upwards)]
        self._lines(name, [(start, end), *((end, corner) for corner in corners)], [color] * 5, LINE_WIDTH)

    def frame(self, name: str, T: ArrayLike, length: float) -> None:
        """Draw the axes of a pose (4, 4), x red, y green, z blue."""
        T = real_array(T, "T")
        origin, axes = T[:3, 3], T[:3, :3].T
        self._lines(name, [(origin, origin + length * axis) for axis in axes], AXIS_COLORS, LINE_WIDTH)

    def remove(self, name: str) -> None:
        """Remove the drawing of this name, if there is one."""
        self._wanted.pop(name, None)

    def write(self) -> None:
        """Update the window; only lines that changed are drawn again."""
        client, add = self._client, self._client.addUserDebugLine
        for name in [*self._items]:
            items, lines = self._items[name], self._wanted.get(name, [])
            while len(items) > len(lines):
                client.removeUserDebugItem(items.pop()[0])
            if not items:
                del self._items[name]
        for name, lines in self._wanted.items():
            items = self._items.setdefault(name, [])
            for index, line in enumerate(lines):
                if index == len(items):
                    items.append((add_item(client, add, *line), line))
                elif items[index][1] != line:
                    items[index] = (add_item(client, add, *line, replaced=items[index][0]), line)

    def _lines(
        self, name: str, lines: Sequence[tuple], colors: Sequence[Sequence[float]], width: int
    ) -> None:
        """Store lines `(start, end)` in place of those of the same name."""
        self._wanted[name] = [
            (start.tolist(), end.tolist(), list(color), width)
            for (start, end), color in zip(lines, colors, strict=True)
        ]


PANELS = 250, 122  # pixels: width of the panels at each side, and height of the panel at the bottom
LEFT, TOP, BOTTOM, LEADING = (
    PANELS[0] + 12,
    38,
    PANELS[1] + 12,
    17,
)  # pixels: left, top and bottom margin beside the window's panels, and distance of lines
NARROW = 12  # pixels: left, top and bottom margin without panels
SIZE = 1.0
DEPTH = 0.03  # m from the camera: nothing is nearer
INK = (0.08, 0.1, 0.16)


class _Line(NamedTuple):
    text: str
    color: tuple[float, ...]


class LiveText:
    """Lines of text at the top left, and others at the bottom, the first one lowest.

    Args:
        client: PyBullet's client of the window.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lines: dict[str, _Line] = {}
        self._foot: dict[str, _Line] = {}
        self._shown: dict[tuple[bool, str], tuple[int, Any]] = {}
        self.visible = self.keys_visible = True

    def write_line(self, name: str, text: str, color: Sequence[float] = INK, *, foot: bool = False) -> None:
        """Add or replace a line; an empty text removes it, and the lines below move up."""
        lines = self._foot if foot else self._lines
        if text:
            lines[name] = _Line(text, tuple(color))
        else:
            lines.pop(name, None)

    def write(self, camera: Sequence[Any], beside_panels: bool) -> None:
        """Update the window's text for the state of its camera (`getDebugVisualizerCamera`)."""
        width, height, view, projection, *_ = camera
        axes = np.reshape(view, (4, 4))[:3, :3]  # columns: right, up, backwards
        eye = -axes @ np.reshape(view, (4, 4))[3, :3]
        left, top, bottom = (LEFT, TOP, BOTTOM) if beside_panels else (NARROW, 2 * NARROW, NARROW)
        wanted = {}
        lines = self._lines.items() if self.visible else ()
        for row, (name, line) in enumerate(lines):
            wanted[False, name] = (line, top + row * LEADING)
        foot = self._foot.items() if self.keys_visible else ()
        for row, (name, line) in enumerate(foot):
            wanted[True, name] = (line, height - bottom - row * LEADING)
        for key in [key for key in self._shown if key not in wanted]:
            self._client.removeUserDebugItem(self._shown.pop(key)[0])
        for key, (line, down) in wanted.items():
            x = (2.0 * left / width - 1.0) / projection[0]
            y = (1.0 - 2.0 * down / height) / projection[5]
            place = (eye + DEPTH * (axes @ (x, y, -1.0))).tolist()
            number, before = self._shown.get(key, (-1, None))
            if before == (line, place):
                continue
            add, what = self._client.addUserDebugText, (line.text, place, line.color, SIZE)
            number = add_item(self._client, add, *what, replaced=number)
            self._shown[key] = number, (line, place)


OUT_OF_SIGHT = [0.0, 0.0, -1000.0]  # m
MOST_LINKS = 127
"""Largest number of links of a body in PyBullet; an arm with more parts has one colour per link."""


class Ghost:
    """Arm that is drawn at given joint positions.

    PyBullet's window has one colour per link.  A part of another colour becomes an additional link, fixed to
    it.

    Args:
        client: PyBullet's client of the world for drawings.
        robot: robot to draw, at first in its zero pose.
        color: red, green and blue, 0 to 1, of all links but the base; by default each part has its colour.
        opacity: 0 to 1, for an arm with a `color`.
    """

    def __init__(
        self, client: Any, robot: Robot, color: Sequence[float] | None = None, opacity: float = 1.0
    ) -> None:
        self.robot, self.color, self.visible, self.removed = robot, color, True, False
        self._client, self._shapes = client, link_shapes(robot)
        if color is not None:
            moving = [shape for shape in self._shapes if shape.link >= 0]  # the base is drawn with the arm
            self._shapes = [shape._replace(color=(*color, opacity)) for shape in moving]
        self.body, self._joints = -1, list(range(robot.tree.n))
        self._colors: dict[int, tuple[float, ...]] = {}
        self._q, self._opacity = np.zeros(robot.n), 1.0
        self._shown: Any = None

    def _create(self, folder: Path) -> int:
        client, tree = self._client, self.robot.tree
        looks = [meshes_by_colour(self._shapes, link) for link in range(-1, tree.n)]
        if tree.n + sum(len(meshes[1:]) for meshes in looks) > MOST_LINKS:
            plain = [shape._replace(color=PLAIN) for shape in self._shapes]
            looks = [meshes_by_colour(plain, link) for link in range(-1, tree.n)]
        parts = [(link, mesh) for link, meshes in enumerate(looks) for mesh in meshes[1:]]  # 0 is the base
        first = [self._visual(meshes[0], folder) if meshes else -1 for meshes in looks]
        kinds = {"revolute": client.JOINT_REVOLUTE, "prismatic": client.JOINT_PRISMATIC}
        many = tree.n + len(parts)
        return client.createMultiBody(
            baseMass=0,
            baseCollisionShapeIndex=-1,
            baseVisualShapeIndex=first[0],
            linkMasses=[0.0] * many,
            linkCollisionShapeIndices=[-1] * many,
            linkVisualShapeIndices=first[1:] + [self._visual(mesh, folder) for _, mesh in parts],
            linkPositions=tree.T_parent_joint[:, :3, 3].tolist() + [[0.0] * 3] * len(parts),
            linkOrientations=Rotation.from_matrix(tree.T_parent_joint[:, :3, :3]).as_quat().tolist()
            + [[0.0, 0.0, 0.0, 1.0]] * len(parts),
            linkInertialFramePositions=[[0.0] * 3] * many,
            linkInertialFrameOrientations=[[0.0, 0.0, 0.0, 1.0]] * many,
            linkParentIndices=[parent + 1 for parent in tree.parents] + [link for link, _ in parts],
            linkJointTypes=[kinds[kind] for kind in tree.kinds] + [client.JOINT_FIXED] * len(parts),
            linkJointAxis=tree.axes.tolist() + [[0.0, 0.0, 1.0]] * len(parts),
        )

    def _visual(self, look: tuple[tuple[float, ...], Any], folder: Path) -> int:
        """Return PyBullet's number of a coloured mesh; its file goes into the folder."""
        color, mesh = look
        file = folder / f"{len(list(folder.iterdir()))}.stl"
        # Binary, because numbers as text would be read in the locale of the process.
        file.write_bytes(mesh.export(file_type="stl"))
        return self._client.createVisualShape(
            shapeType=self._client.GEOM_MESH, fileName=str(file), rgbaColor=list(color)
        )

    def place(self, q: ArrayLike) -> None:
        """Place the joints at q (n,), in [rad], at the next picture."""
        self._q = joint_vector(self.robot, "q", q)

    def show(self, visible: bool) -> None:
        """Show or hide the arm."""
        self.visible = visible

    def fade(self, opacity: float) -> None:
        """Make the arm transparent, to show what is inside; 1 restores its opacity."""
        self._opacity = opacity

    def remove(self) -> None:
        """Remove the arm."""
        self.removed = True

    def write(self) -> None:
        """Update the window."""
        client = self._client
        if self.body < 0 and not self.removed:
            with tempfile.TemporaryDirectory() as folder:
                self.body = self._create(Path(folder))
            self._colors = {shape[1]: shape[7] for shape in client.getVisualShapeData(self.body)}
            many = client.getNumJoints(self.body)
            names = [client.getJointInfo(self.body, index)[1] for index in range(many)]
            self._joints = [names.index(b"joint%d" % (i + 1)) for i in self._joints]
            self._shown = (None, 1.0, True)
        if self.removed:
            if self.body >= 0:
                client.removeBody(self.body)
                self.body = -1
            return
        q, opacity, visible = self._shown
        positions = self.robot.tree_positions(self._q)[:, None].tolist()
        if positions != q:
            client.resetJointStatesMultiDof(self.body, self._joints, positions)
        if self._opacity != opacity:
            for link, (*color, opaque) in self._colors.items():
                client.changeVisualShape(self.body, link, rgbaColor=[*color, self._opacity * opaque])
        if self.visible != visible:
            place = [0.0] * 3 if self.visible else OUT_OF_SIGHT
            client.resetBasePositionAndOrientation(self.body, place, [0.0, 0.0, 0.0, 1.0])
        self._shown = (positions, self._opacity, self.visible)

    def link_poses(self) -> np.ndarray:
        """Return the poses (n_tree, 4, 4) of the links' frames as drawn, in single precision."""
        states = self._client.getLinkStates(self.body, self._joints, computeForwardKinematics=1)
        T = np.tile(np.eye(4), (len(states), 1, 1))
        T[:, :3, :3] = Rotation.from_quat([state[5] for state in states]).as_matrix()
        T[:, :3, 3] = [state[4] for state in states]
        return T

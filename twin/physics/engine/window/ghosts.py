"""Arm that is drawn but not simulated."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from twin.physics.robot.evaluation import joint_vector
from twin.physics.robot.loading.link_shapes import PLAIN, link_shapes, meshes_by_colour
from twin.physics.robot.robot import Robot

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

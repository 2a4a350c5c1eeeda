"""An arm that is drawn, not simulated: it stands where it is put."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from twin.loading.link_shapes import link_shapes
from twin.robot.evaluation import joint_vector
from twin.robot.robot import Robot
from twin.window.link_meshes import mesh_files, meshes_by_colour, visual_shape

OUT_OF_SIGHT = [0.0, 0.0, -1000.0]  # m
MOST_LINKS = 127
"""That PyBullet takes of one body."""


class Ghost:
    """An arm in the window's world, whose joints are put where one wants them; nothing in it ever moves.

    PyBullet's window has one colour a link: what has another one becomes a link of its own, fixed to it.

    Args:
        client: PyBullet's, of the window.
        robot: what is drawn, at its positions of zero.
        color: red, green and blue, 0 to 1; by default each part has its own.
        opacity: 0 to 1, of an arm with a `color`.
    """

    def __init__(
        self, client: Any, robot: Robot, color: Sequence[float] | None = None, opacity: float = 1.0
    ) -> None:
        self.robot = robot
        self._client = client
        self._placed: np.ndarray | None = None
        self._colors: dict[int, tuple[float, ...]] = {}
        self._fading = 1.0
        self.color, self.visible, self.removed = color, True, False
        with tempfile.TemporaryDirectory() as folder:
            self.body = self._create(Path(folder), color, opacity)
        for shape in client.getVisualShapeData(self.body):
            self._colors[shape[1]] = shape[7]
        names = [client.getJointInfo(self.body, index)[1] for index in range(client.getNumJoints(self.body))]
        self._joints = [names.index(b"joint%d" % (i + 1)) for i in range(robot.tree.n)]

    def _create(self, folder: Path, color: Sequence[float] | None, opacity: float) -> int:
        client, tree, files = self._client, self.robot.tree, mesh_files(folder)
        shapes = link_shapes(self.robot)
        if color is not None:
            shapes = [shape._replace(color=(*color, opacity)) for shape in shapes]
        looks = [meshes_by_colour(shapes, link) for link in range(-1, tree.n)]
        parts = [(link, mesh) for link, meshes in enumerate(looks) for mesh in meshes[1:]]  # 0 is the base
        if tree.n + len(parts) > MOST_LINKS:
            parts = []
        kinds = {"revolute": client.JOINT_REVOLUTE, "prismatic": client.JOINT_PRISMATIC}
        many = tree.n + len(parts)
        return client.createMultiBody(
            baseMass=0,
            baseCollisionShapeIndex=-1,
            baseVisualShapeIndex=visual_shape(client, looks[0][:1], files),
            linkMasses=[0.0] * many,
            linkCollisionShapeIndices=[-1] * many,
            linkVisualShapeIndices=[visual_shape(client, meshes[:1], files) for meshes in looks[1:]]
            + [visual_shape(client, [mesh], files) for _, mesh in parts],
            linkPositions=tree.T_parent_joint[:, :3, 3].tolist() + [[0.0] * 3] * len(parts),
            linkOrientations=Rotation.from_matrix(tree.T_parent_joint[:, :3, :3]).as_quat().tolist()
            + [[0.0, 0.0, 0.0, 1.0]] * len(parts),
            linkInertialFramePositions=[[0.0] * 3] * many,
            linkInertialFrameOrientations=[[0.0, 0.0, 0.0, 1.0]] * many,
            linkParentIndices=[parent + 1 for parent in tree.parents] + [link for link, _ in parts],
            linkJointTypes=[kinds[kind] for kind in tree.kinds] + [client.JOINT_FIXED] * len(parts),
            linkJointAxis=tree.axes.tolist() + [[0.0, 0.0, 1.0]] * len(parts),
        )

    def place(self, q: ArrayLike) -> None:
        """Put its joints at q (n,), in [rad]."""
        q = joint_vector(self.robot, "q", q)
        if self._placed is not None and np.array_equal(q, self._placed):
            return
        self._placed = q.copy()
        positions = self.robot.tree_positions(q)[:, None].tolist()
        self._client.resetJointStatesMultiDof(self.body, self._joints, positions)

    def link_poses(self) -> np.ndarray:
        """Poses (n_tree, 4, 4) of the links' frames, as they are drawn, which is in single precision."""
        states = self._client.getLinkStates(self.body, self._joints, computeForwardKinematics=1)
        T = np.tile(np.eye(4), (len(states), 1, 1))
        T[:, :3, :3] = Rotation.from_quat([state[5] for state in states]).as_matrix()
        T[:, :3, 3] = [state[4] for state in states]
        return T

    def fade(self, opacity: float) -> None:
        """Let it be seen through, so that what is inside shows; 1 for as it was."""
        if opacity != self._fading:
            self._fading = opacity
            for link, (*color, opaque) in self._colors.items():
                self._client.changeVisualShape(self.body, link, rgbaColor=[*color, opacity * opaque])

    def show(self, visible: bool) -> None:
        """Show it or hide it."""
        if visible != self.visible:
            self.visible = visible
            place = [0.0] * 3 if visible else OUT_OF_SIGHT
            self._client.resetBasePositionAndOrientation(self.body, place, [0.0, 0.0, 0.0, 1.0])

    def remove(self) -> None:
        """Take it away for good."""
        if not self.removed:
            self.removed = True
            self._client.removeBody(self.body)

"""An arm that is drawn, not simulated: it stands where it is put."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from twin.robot.evaluation import joint_vector
from twin.robot.loading.link_shapes import link_shapes, mesh_files, meshes_by_colour, visual_shape
from twin.robot.robot import Robot

OUT_OF_SIGHT = [0.0, 0.0, -1000.0]  # m
MOST_LINKS = 127
"""That PyBullet takes of one body."""


class Ghost:
    """An arm in the window's world, whose joints are put where one wants them; nothing in it ever moves.

    PyBullet's window has one colour a link: what has another one becomes a link of its own, fixed to it.

    Args:
        client: PyBullet's, of the window.
        robot: what is drawn, at its positions of zero.
        color: red, green and blue, 0 to 1, of the links without the base; by default each part has its own.
        opacity: 0 to 1, of an arm with a `color`.
    """

    def __init__(
        self, client: Any, robot: Robot, color: Sequence[float] | None = None, opacity: float = 1.0
    ) -> None:
        self.robot, self.color, self.visible, self.removed = robot, color, True, False
        self._client, self._shapes = client, link_shapes(robot)
        if color is not None:
            moving = [shape for shape in self._shapes if shape.link >= 0]  # the base is where the arm's is
            self._shapes = [shape._replace(color=(*color, opacity)) for shape in moving]
        self.body, self._joints = -1, list(range(robot.tree.n))
        self._colors: dict[int, tuple[float, ...]] = {}
        self._q, self._opacity = np.zeros(robot.n), 1.0
        self._shown: Any = None

    def _create(self, folder: Path) -> int:
        client, tree, files, shapes = self._client, self.robot.tree, mesh_files(folder), self._shapes
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
        """Put its joints at q (n,), in [rad], with the next picture."""
        self._q = joint_vector(self.robot, "q", q)

    def show(self, visible: bool) -> None:
        """Show it or hide it."""
        self.visible = visible

    def fade(self, opacity: float) -> None:
        """Let it be seen through, so that what is inside shows; 1 for as it was."""
        self._opacity = opacity

    def remove(self) -> None:
        """Take it away for good."""
        self.removed = True

    def write(self) -> None:
        """Bring the window up to date."""
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
        """Poses (n_tree, 4, 4) of the links' frames, as they are drawn, which is in single precision."""
        states = self._client.getLinkStates(self.body, self._joints, computeForwardKinematics=1)
        T = np.tile(np.eye(4), (len(states), 1, 1))
        T[:, :3, :3] = Rotation.from_quat([state[5] for state in states]).as_matrix()
        T[:, :3, 3] = [state[4] for state in states]
        return T

"""A URDF as PyBullet itself reads it, for a comparison with the robot of the twin."""

from __future__ import annotations

import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import TwinError
from twin.physics.engine.client import connected, disconnect, suppress_output
from twin.physics.robot.loading.urdf_document import read_document
from twin.physics.robot.robot import Robot


def file_dynamics(robot: Robot, q: Floats) -> tuple[Floats, Floats]:
    """Return mass matrices (N, n, n) and tool positions (N, 3) as PyBullet has them for the robot's URDF.

    Only shapes are left out, because their files may be missing.

    Args:
        robot: robot with a URDF.
        q: (N, n) positions, in [rad] or [m].

    Raises:
        TwinError: PyBullet cannot load the file, or not compute its mass matrix.
    """
    assert robot.urdf is not None
    root = read_document(robot.urdf, exact=False).root
    for link in root.iter("link"):
        for shape in [part for part in link if part.tag in ("visual", "collision")]:
            link.remove(shape)
    client = connected()
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "robot.urdf"
            ET.ElementTree(root).write(path)
            with suppress_output():
                body = client.loadURDF(str(path), useFixedBase=True, flags=client.URDF_USE_INERTIA_FROM_FILE)
        infos = [client.getJointInfo(body, index) for index in range(client.getNumJoints(body))]
        moving = [info[1].decode() for info in infos if info[2] != client.JOINT_FIXED]
        tool = [info[12].decode() for info in infos].index(robot.tool_frame)
        rows = [moving.index(name) for name in robot.tree.names]
        masses, tools = [], []
        for tree_positions in robot.tree_positions(q):
            at = dict(robot.locked) | dict(zip(robot.tree.names, tree_positions.tolist(), strict=True))
            M = np.array(client.calculateMassMatrix(body, [at[name] for name in moving]))
            masses.append(robot.embedding.T @ M[np.ix_(rows, rows)] @ robot.embedding)
            for index, info in enumerate(infos):
                if info[2] != client.JOINT_FIXED:
                    client.resetJointState(body, index, at[info[1].decode()])
            tools.append(client.getLinkState(body, tool, computeForwardKinematics=True)[4])
        return np.array(masses), np.array(tools)
    except (client.error, SystemError, ValueError) as error:  # the second one of its inverse dynamics
        raise TwinError(f"PyBullet cannot read {robot.urdf}: {error.__cause__ or error}") from error
    finally:
        disconnect(client)

"""Bare PyBullet, used without the twin's engine, with its output suppressed."""

from typing import Any

from twin.physics.engine.client import suppress_output
from twin.physics.robot.robot import Robot


def loaded(robot: Robot) -> tuple[Any, int, list[int]]:
    """Load a robot into a new PyBullet world; return the client, the body's id and its moving joints' ids."""
    with suppress_output():
        import pybullet
        from pybullet_utils.bullet_client import BulletClient

        client: Any = BulletClient(pybullet.DIRECT)
        flags = pybullet.URDF_USE_INERTIA_FROM_FILE
        body = client.loadURDF(str(robot.urdf), useFixedBase=True, flags=flags)
    client.setGravity(*robot.gravity)
    numbers = range(client.getNumJoints(body))
    return client, body, [i for i in numbers if client.getJointInfo(body, i)[2] != client.JOINT_FIXED]

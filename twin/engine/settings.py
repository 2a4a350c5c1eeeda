"""The physics that PyBullet adds to a robot unless it is told otherwise, and how to tell it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

UNCLAMPED = 1e9  # rad/s or m/s


def remove_hidden_physics(client: Any, body: int, joints: Sequence[int]) -> None:
    """Take away damping, clamped speeds and motors: everything that the model does not have.

    Args:
        client: PyBullet's world.
        body: its number for the robot.
        joints: PyBullet's index of every moving joint.
    """
    for link in range(-1, client.getNumJoints(body)):
        # Links are slowed by 0.04 /s unless told otherwise, and joints cannot exceed 100 rad/s.
        client.changeDynamics(body, link, linearDamping=0, angularDamping=0, jointDamping=0)
        client.changeDynamics(body, link, maxJointVelocity=UNCLAMPED)
    # Every joint starts with a motor that brakes it.
    free = [0.0] * len(joints)
    client.setJointMotorControlArray(body, joints, client.VELOCITY_CONTROL, forces=free)

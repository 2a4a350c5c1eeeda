"""Whether the motors of a robot can carry its own weight."""

from __future__ import annotations

import numpy as np

from twin.multibody import recursions
from twin.robot.joint_units import joint_unit
from twin.robot.limits import folded
from twin.robot.robot import Robot

POSES = 400
"""Half of them anywhere within the joints' ranges, half at quarter turns, where links lie level."""

TURN = np.pi
"""Joints without ranges are moved so far to either side, in [rad] or [m]."""


def weak_motors(robot: Robot) -> list[str]:
    """A sentence for each motor that cannot hold the arm still somewhere, without payload and friction.

    The arm stands as its gravity says.  At `POSES` poses within its ranges the torque that holds it is
    compared with what the motors give at standstill: the worst pose may ask for a little more.
    """
    if robot.drives is None or not robot.has_inertia:
        return []
    with np.errstate(all="ignore"):  # a robot of any numbers may be loaded
        held = np.abs(_holding_torques(robot) @ np.linalg.inv(robot.drives.coupling))
    needed, given = np.max(held, axis=0, initial=0.0), robot.drives.torque_max
    units = [joint_unit(kind, "torque") for kind in robot.joint_kinds]
    return [
        f"robot {robot.name!r}: the motor of axis {i + 1} gives {given[i]:.4g} {units[i]} at the joint, "
        f"the arm's own weight asks it for {needed[i]:.4g} {units[i]}"
        for i in range(robot.n)
        if not needed[i] <= given[i]
    ]


def _holding_torques(robot: Robot) -> np.ndarray:
    """Torques (N, n) that hold the arm at poses within its ranges, all of them at once."""
    q = _poses(robot)
    columns = list((q @ robot.embedding.T + robot.embedding_offset).T)
    still = [np.zeros(len(q))] * robot.tree.n
    at = recursions.placements(robot.tree, columns, np)
    x, y, z = robot.gravity.tolist()
    tau = recursions.newton_euler(robot.tree, at, still, still, robot.tree.inertias.tolist(), (x, y, z))
    return np.column_stack([np.broadcast_to(torque, len(q)) for torque in tau]) @ robot.embedding


def _poses(robot: Robot) -> np.ndarray:
    """Joint positions (N, n), always the same."""
    rng = np.random.default_rng(1)
    low, high = np.maximum(robot.q_min, -TURN), np.minimum(robot.q_max, TURN)
    low, high = np.minimum(low, high), np.maximum(low, high)
    anywhere = rng.uniform(low, high, (POSES // 2, robot.n))
    quarters = np.clip(rng.choice([-np.pi / 2, 0.0, np.pi / 2, np.pi], anywhere.shape), low, high)
    q = np.vstack([np.clip(np.zeros(robot.n), low, high), anywhere, quarters])
    return q[~folded(robot, q).any(axis=-1)] if robot.passive else q

"""A robot with a parallelogram as Norrlöf's report simplifies it: the parameters, and the robot of them."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from twin.dynamics.main_axes import MainAxes
from twin.errors import RobotError
from twin.multibody.tree import frozen, inertial_parameters, transformed_parameters
from twin.robot.robot import Robot

JOINTS = ("joint_1", "joint_2", "joint_elbow", "joint_3", "joint_rod")
"""Joints of the column, the lower arm, the upper arm, the lever and the rod."""
AXES = ((0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0), (0, 1, 0))
PARENTS = (-1, 0, 1, 0, 3)
OFFSETS = ((2,), (0, 2), (2,), (), (0,))
"""Along which axes each joint may lie off its parent's; the lever's is counted from axis 2."""
EMBEDDING = ((1, 0, 0), (0, 1, 0), (0, -1, 1), (0, 0, 1), (0, 1, -1))
WANTED = "the report's main axes are those of an arm with a parallelogram, as the irb1400's"


def main_axes_parameters(robot: Robot) -> MainAxes:
    """The report's parameters of a robot with a parallelogram, simplified as `main_axes_robot` says.

    Raises:
        RobotError: see `main_axes_robot`; or gravity does not act along the base's z axis.
    """
    robot = main_axes_robot(robot)
    if np.any(robot.gravity[:2] != 0):
        raise RobotError(
            f"robot {robot.name!r}: the report's model stands upright, "
            f"and gravity is {robot.gravity.tolist()} m/s^2 instead of along z"
        )
    _, lower, upper, lever, rod = (_planar(row) for row in robot.tree.inertias)
    at = robot.tree.T_parent_joint[:, :3, 3]
    (m2, x2, z2, I2), (m3, x3, z3, I3), (m4, x4, z4, I4), (m5, x5, z5, I5) = lower, upper, rod, lever
    return MainAxes(
        *(float(robot.tree.inertias[0, 6]), I2, I3, I4, I5, m2, m3, m4, m5),
        *(float(at[1, 0]), float(at[2, 2]), float(at[4, 0]), x2, z2, x3, z3, x4, z4, x5, z5),
        gz=-float(robot.gravity[2]),
    )


def main_axes_robot(robot: Robot) -> Robot:
    """The robot of three joints that the report's formulas describe exactly.

    The wrist joints are frozen at zero, and what they carry, payload included, is a part of the upper arm.
    Then the report's simplifications: every centre of mass is moved into the plane y = 0 of the arm, that of
    the column onto axis 1; of the tensors about the centres of mass only Iyy of links 2 to 5 remains, and of
    the column its moment about axis 1 as it was.  The drives are ideal, as the report's.

    Raises:
        RobotError: the robot has no such parallelogram, by the names, axes and places of its joints.
    """
    where = _main_joints(robot)
    tree = robot.tree
    merged = tree.inertias.copy()
    for joint in reversed(range(tree.n)):
        if joint not in where and tree.parents[joint] >= 0:
            merged[tree.parents[joint]] += transformed_parameters(merged[joint], tree.T_parent_joint[joint])
    merged = merged[where]
    inertias = [inertial_parameters(merged[0, 0], np.zeros(3), np.diag([0, 0, merged[0, 6]]))]
    for row in merged[1:]:
        mass, x, z, Iyy = _planar(row)
        inertias.append(inertial_parameters(mass, np.array([x, 0, z]), np.diag([0, Iyy, 0])))
    T_elbow_flange = np.eye(4)
    for joint in tree.carriers(tree.flange_joint)[3:]:
        T_elbow_flange = T_elbow_flange @ tree.T_parent_joint[joint]
    passive = [robot.passive.index(where[i]) for i in (2, 4)]
    return replace(
        robot,
        name=f"{robot.name}, main axes",
        tree=replace(
            tree,
            names=JOINTS,
            links=tuple(tree.links[i] for i in where),
            kinds=tuple(tree.kinds[i] for i in where),
            parents=PARENTS,
            T_parent_joint=frozen(tree.T_parent_joint[where]),
            axes=frozen(tree.axes[where]),
            inertias=frozen(inertias),
            flange_joint=2,
            T_joint_flange=frozen(T_elbow_flange @ tree.T_joint_flange),
        ),
        **{name: frozen(getattr(robot, name)[:3]) for name in ("q_min", "q_max", "qd_max", "tau_max")},
        **{name: frozen(getattr(robot, name)[passive]) for name in ("passive_min", "passive_max")},
        dh_coupling=frozen(robot.dh_coupling[:3, :3]),
        embedding=frozen(EMBEDDING),
        embedding_offset=frozen(np.zeros(5)),
        driven=(0, 1, 3),
        loops=(),
        dh=None,
        poses=MappingProxyType({name: frozen(q[:3]) for name, q in robot.poses.items()}),
        published=MappingProxyType({}),
        payload=None,
        bare=None,
        drives=None,
        drive_mode="ideal",
    )


def _main_joints(robot: Robot) -> list[int]:
    """The tree's index of each of `JOINTS`."""
    tree = robot.tree
    missing = [name for name in JOINTS if name not in tree.names]
    if missing:
        raise RobotError(f"robot {robot.name!r} has no joint {missing[0]!r}: {WANTED}")
    where = [tree.names.index(name) for name in JOINTS]
    at = tree.T_parent_joint[where]
    embedding = np.zeros((5, robot.n))
    embedding[:, :3] = EMBEDDING
    for i, name in enumerate(JOINTS):
        place = at[i, :3, 3]
        offset = place - at[1, :3, 3] if name == "joint_3" else place
        if not np.all(np.abs(np.delete(offset, OFFSETS[i])) <= 1e-12):
            raise RobotError(f"robot {robot.name!r} has its joint {name!r} at {place.tolist()} m: {WANTED}")
        if (
            tree.parents[where[i]] != (where[PARENTS[i]] if i else -1)
            or not np.array_equal(at[i, :3, :3], np.eye(3))
            or not np.array_equal(tree.axes[where[i]], AXES[i])
            or not np.array_equal(robot.embedding[where[i]], embedding[i])
        ):
            raise RobotError(f"robot {robot.name!r} has a joint {name!r} that moves otherwise: {WANTED}")
    if np.any(robot.embedding_offset != 0):
        raise RobotError(f"robot {robot.name!r} has joints that are not at zero with the pendant's: {WANTED}")
    return where


def _planar(row: np.ndarray) -> tuple[float, float, float, float]:
    """Mass, x and z of the centre of mass, and Iyy about it, of a link's (10,) inertial parameters."""
    mass = float(row[0])
    x, z = (float(row[1]) / mass, float(row[3]) / mass) if mass > 0 else (0.0, 0.0)
    return mass, x, z, float(row[5]) - mass * (x * x + z * z)

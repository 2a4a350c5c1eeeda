"""Arms whose outer joints are locked, so that their links are one body with the last moving link."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from twin.errors import RobotError
from twin.multibody.axis_torques import UserColumn
from twin.multibody.tree import frozen, transformed_parameters
from twin.robot.robot import Frame, Robot


def locked(robot: Robot, axes: int) -> Robot:
    """Return the arm with its first `axes` joints, the others locked at 0.

    Springs and balancers over locked joints do no work.  The arm has no DH table, no drives and no named
    poses, because these are those of the whole arm.

    Raises:
        RobotError: the arm has a closed loop, fewer joints, or a user's column, which is over all joints.

    Example:
        >>> import twin
        >>> from twin.robot.locking import locked
        >>> arm = locked(twin.load("irb140"), 3)
        >>> arm.joint_names
        ('joint_1', 'joint_2', 'joint_3')
    """
    if robot.loops or robot.tree.n != robot.n:
        names = ", ".join(robot.tree.names[joint] for joint in robot.passive)
        raise RobotError(f"robot {robot.name!r} has joints without a motor ({names}), so none can be locked")
    if not 1 <= axes <= robot.n:
        raise RobotError(
            f"robot {robot.name!r} has {robot.n} joints: expected 1 to {robot.n} axes, got {axes}"
        )
    tree = robot.tree
    if columns := [one.name for one in tree.torques if isinstance(one, UserColumn)]:
        raise RobotError(
            f"robot {robot.name!r} has the column {columns[0]} over all its joints, so none can be locked"
        )
    inertias = np.vstack([tree.inertias[:axes], tree.base_inertia])  # the base, of index -1, is the last
    home: list[
        tuple[int, np.ndarray]
    ] = []  # of each link: the moving joint that carries it, and its pose there
    for i, parent in enumerate(tree.parents):
        if i < axes:
            home.append((i, np.eye(4)))
            continue
        carrier, T = home[parent] if parent >= 0 else (-1, np.eye(4))
        home.append((carrier, T @ tree.T_parent_joint[i]))
        inertias[carrier] += transformed_parameters(tree.inertias[i], home[i][1])
    flange, T_flange = home[tree.flange_joint]
    first = slice(0, axes)
    reduced = replace(
        tree,
        names=tree.names[first],
        links=tree.links[first],
        kinds=tree.kinds[first],
        parents=tree.parents[first],
        T_parent_joint=frozen(tree.T_parent_joint[first]),
        axes=frozen(tree.axes[first]),
        inertias=frozen(inertias[:-1]),
        base_inertia=frozen(inertias[-1]),
        flange_joint=flange,
        T_joint_flange=frozen(T_flange @ tree.T_joint_flange),
        torques=tuple(one for one in tree.torques if getattr(one, "joint", 0) < axes),
    )
    limits = (robot.q_min, robot.q_max, robot.qd_max, robot.tau_max)
    return Robot(
        f"{robot.name}_{axes}_axes",
        robot.urdf,
        reduced,
        *(frozen(limit[first]) for limit in limits),
        dh_coupling=frozen(np.eye(axes)),
        embedding=frozen(np.eye(axes)),
        embedding_offset=frozen(np.zeros(axes)),
        driven=tuple(range(axes)),
        passive_min=frozen([]),
        passive_max=frozen([]),
        gravity=robot.gravity,
        inertia_fault=robot.inertia_fault,
        frames=MappingProxyType(
            {
                name: Frame(frame.joint, frame.T)
                if frame.joint < axes
                else Frame(home[frame.joint][0], frozen(home[frame.joint][1] @ frame.T))
                for name, frame in robot.frames.items()
            }
        ),
        tool_frame=robot.tool_frame,
    )

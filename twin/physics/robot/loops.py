"""Models with fewer freedoms: closed loops, arms without their loops, and arms with locked joints.

The links beyond a locked joint, as those of a gripper's finger, are one body with the one before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from twin.base.errors import RobotError, UnknownNameError, near
from twin.physics.multibody import recursions
from twin.physics.multibody.axis_torques import UserColumn
from twin.physics.multibody.recursions import ACCEPT, moved_mass_fault, placements
from twin.physics.multibody.tree import Loop, Tree, frozen, transformed_parameters
from twin.physics.robot.robot import Frame, NamedPoses, Robot


def gaps(robot: Robot, q_tree: np.ndarray) -> np.ndarray:
    """Return the gaps of the loops.

    Args:
        robot: robot with m loops.
        q_tree: (n_tree,) positions of all joints of the tree, in [rad].

    Returns:
        (m, 3) vector from the shared point computed by the second link to that by the first, base axes, in
        [m].
    """
    frames = link_frames(robot, q_tree)
    return np.array([recursions.loop_gap(loop, frames) for loop in robot.loops]).reshape(-1, 3)


def gap_rates(robot: Robot, q_tree: np.ndarray) -> np.ndarray:
    """Return the derivatives of `gaps` with respect to the joints of the tree.

    Args:
        robot: robot with m loops.
        q_tree: (n_tree,) positions of all joints of the tree, in [rad].

    Returns:
        (3 m, n_tree) in [m/rad] (of a prismatic joint in [1]); its product with `robot.embedding` is 0, as
        the loops stay closed.
    """
    frames = link_frames(robot, q_tree)
    rates = np.zeros((len(robot.loops), 3, robot.tree.n))
    for rate, loop in zip(rates, robot.loops, strict=True):
        for side, sign in enumerate((1.0, -1.0)):
            point = np.array(recursions.shared_point(loop, frames, side))
            for joint in robot.tree.carriers(loop.joints[side]):
                z = np.array(frames.z[joint])
                revolute = robot.tree.kinds[joint] == "revolute"
                rate[:, joint] += sign * (np.cross(z, point - frames.o[joint]) if revolute else z)
    return rates.reshape(-1, robot.tree.n)


def clearance(robot: Robot, loop: Loop, q: np.ndarray) -> float:
    """Return the distance of a loop from folding flat, in [m]; it is 0 if its links are aligned.

    It is the distance of the second link's joint from the line through the first link's joint and the shared
    point: in a parallelogram the distance between its two long sides.

    Args:
        robot: robot with the loop.
        loop: one of `robot.loops`.
        q: (n,) joint positions, in [rad].
    """
    return float(np.linalg.norm(_across(robot, loop, q)))


def is_past_fold(robot: Robot, loop: Loop, q: np.ndarray) -> bool:
    """Return whether a loop is beyond its fold, as seen from the zero pose.

    Args:
        robot: robot with the loop.
        loop: one of `robot.loops`.
        q: (n,) joint positions, in [rad].
    """
    return bool(_across(robot, loop, q) @ _across(robot, loop, np.zeros(robot.n)) < 0)


def _across(robot: Robot, loop: Loop, q: np.ndarray) -> np.ndarray:
    """Return the clearance, in [m], as a vector (3,) along the loop's axis, in the first link's frame."""
    frames = link_frames(robot, robot.tree_positions(q))
    first, second = (np.array(frames.o[joint]) for joint in loop.joints)
    along = np.array(recursions.shared_point(loop, frames, 0)) - first
    return np.cross(second - first, along) @ frames.R[loop.joints[0]] / np.linalg.norm(along)


def link_frames(robot: Robot, q_tree: np.ndarray) -> recursions.WorldFrames:
    """Return the poses of all link frames in the base frame at positions (n_tree,) of the tree's joints."""
    return recursions.world_frames(robot.tree, recursions.placements(robot.tree, q_tree.tolist(), math))


def without_loop_links(robot: Robot) -> Robot:
    """Return the robot without the mass of the links that only close its loops; the coupling remains.

    For the IRB 1400, this is the arm without lever and parallel rod, with the third motor on the column.

    Example:
        >>> import twin
        >>> from twin.physics.robot.loops import without_loop_links
        >>> robot = twin.load("irb1400")
        >>> difference = robot.tree.inertias - without_loop_links(robot).tree.inertias
        >>> round(float(difference[:, 0].sum()), 3)  # mass of lever and rod, in [kg]
        3.091
    """
    bare = None if robot.bare is None else _without(robot.bare, robot.loops)
    return replace(robot, tree=_without(robot.tree, robot.loops), bare=bare)


def _without(tree: Tree, loops: Sequence[Loop]) -> Tree:
    """Return the tree without the masses on its loops that do not carry the flange."""
    closing = {joint for loop in loops for end in loop.joints for joint in tree.carriers(end)}
    inertias = tree.inertias.copy()
    inertias[sorted(closing - set(tree.carriers(tree.flange_joint)))] = 0.0
    return replace(tree, inertias=frozen(inertias))


def open_chain(robot: Robot) -> Robot:
    """Return the robot as an open chain, each joint angle measured between successive links.

    For the IRB 1400, `q3` is then the angle between the arms, and the third motor sits in the elbow.  Ranges
    and named poses keep their numbers, which now mean those angles.  The drives are ideal, as the real ones
    turn other angles.

    Raises:
        RobotError: the joints from the base to the flange are not as many as the motors, or are dependent.

    Example:
        >>> import twin
        >>> from twin.physics.robot.loops import open_chain
        >>> robot, q = twin.load("irb1400"), [0, 0.3, 0, 0, 0, 0]
        >>> arms = (robot, open_chain(robot))  # the lower arm carries the upper one along in the chain only
        >>> [round(float(twin.forward_kinematics(arm, q)[0, 2]), 4) for arm in arms]  # 1 and cos(0.3)
        [1.0, 0.9553]
    """
    tree = robot.tree
    carriers = tree.carriers(tree.flange_joint)
    if len(carriers) != robot.n:
        raise RobotError(
            f"robot {robot.name!r} has {len(carriers)} joints from the base to its flange, expected {robot.n}"
        )
    # The DH angles are those of the same posture, in which q is `inv(carried) q_chain`; so are followers.
    carried = robot.embedding[list(carriers)]
    if not np.linalg.matrix_rank(carried) == robot.n:
        raise RobotError(
            f"robot {robot.name!r}: its {robot.n} motors do not move all joints from the base to its flange"
        )
    G, followers = np.zeros_like(robot.embedding), list(robot.followers)
    G[list(carriers)] = np.eye(robot.n)
    G[followers] = np.linalg.solve(carried.T, robot.embedding[followers].T).T
    endless = frozen(np.full(len(robot.passive), np.inf))
    return replace(
        without_loop_links(robot),
        dh_coupling=frozen(np.linalg.solve(carried.T, robot.dh_coupling.T).T),
        embedding=frozen(G),
        passive_min=frozen(-endless),
        passive_max=endless,
        unjudged=MappingProxyType({}),
        loops=(),
        drives=None,
        drive_mode="ideal",
    )


def locked(robot: Robot, joints: int | Mapping[str, float]) -> Robot:
    """Return the arm with joints locked, and with those that follow them by `<mimic>`.

    Springs and balancers over locked joints do no work.  The arm has no DH table, no drives and no published
    poses, because these are those of the whole arm.

    Args:
        robot: the whole arm.
        joints: positions of the joints to lock, by name, in [rad] or [m]; or the number of the first axes
            that stay, the others being locked at 0.

    Raises:
        RobotError: the arm has a closed loop, fewer joints, or a user's column, which is over all joints; a
            position is outside the range; or nothing would move the tool frame.
        UnknownNameError: there is no such joint.

    Example:
        >>> import twin
        >>> arm = twin.robot.locked(twin.load("irb140"), {"joint_4": 0.5, "joint_6": 0.0})
        >>> arm.joint_names
        ('joint_1', 'joint_2', 'joint_3', 'joint_5')
    """
    names, name = robot.joint_names, robot.name
    if not isinstance(joints, Mapping):
        if not 1 <= joints <= robot.n:
            raise RobotError(
                f"robot {robot.name!r} has {robot.n} joints: expected 1 to {robot.n} axes, got {joints}"
            )
        name = f"{name}_{joints}_axes"
        joints = dict.fromkeys(names[joints:], 0.0)
    if not joints:
        return robot
    _check(robot, joints)
    bare, load = robot.with_payload(None), robot.payload
    tree = bare.tree
    keep = [i for i, name in enumerate(names) if name not in joints]
    q = np.array([joints.get(name, 0.0) for name in names])
    offset = robot.embedding @ q + robot.embedding_offset
    moves = np.any(robot.embedding[:, keep] != 0.0, axis=1)
    left = np.flatnonzero(moves).tolist()
    at = placements(tree, offset.tolist(), math)
    inertias = np.vstack([tree.inertias[moves], tree.base_inertia])  # the base, of index -1, is the last
    parents, poses = list[int](), list[np.ndarray]()
    home = {-1: (-1, np.eye(4))}  # of each link: the moving joint that carries it, and its pose there
    for i, parent in enumerate(tree.parents):
        carrier, T = home[parent]
        if moves[i]:
            home[i] = len(parents), np.eye(4)
            parents.append(carrier)
            poses.append(T @ tree.T_parent_joint[i])
        else:
            home[i] = carrier, T @ np.vstack([np.column_stack([at.R[i], at.p[i]]), [0, 0, 0, 1]])
            inertias[carrier] += transformed_parameters(tree.inertias[i], home[i][1])
    flange, T_flange = home[tree.flange_joint]
    if flange < 0:
        raise RobotError(f"robot {robot.name!r}: with {', '.join(joints)} locked, no joint moves its tool")
    reduced = replace(
        tree,
        names=tuple(tree.names[i] for i in left),
        links=tuple(tree.links[i] for i in left),
        kinds=tuple(tree.kinds[i] for i in left),
        parents=tuple(parents),
        T_parent_joint=frozen(poses),
        axes=frozen(tree.axes[moves]),
        inertias=frozen(inertias[:-1]),
        base_inertia=frozen(inertias[-1]),
        flange_joint=flange,
        T_joint_flange=frozen(T_flange @ tree.T_joint_flange),
        torques=tuple(
            replace(one, joint=keep.index(one.joint))  # type: ignore[attr-defined]
            for one in tree.torques
            if one.joint in keep  # type: ignore[attr-defined]
        ),
    )
    G, fault, kept = robot.embedding[np.ix_(left, keep)], robot.inertia_fault, [names[i] for i in keep]
    if fault and np.any(tree.inertias) and (fault := moved_mass_fault(reduced, kept, G, offset[left])):
        fault = f"{fault}, or {ACCEPT}"
    passive = [k for k, i in enumerate(robot.passive) if moves[i]]
    limits = {name: frozen(getattr(robot, name)[keep]) for name in ("q_min", "q_max", "qd_max", "tau_max")}
    arm = replace(
        bare,
        name=name,
        tree=reduced,
        **limits,
        dh=None,
        dh_coupling=frozen(np.eye(len(keep))),
        embedding=frozen(G),
        inertia_fault=fault,
        embedding_offset=frozen(offset[left]),
        driven=tuple(left.index(robot.driven[i]) for i in keep),
        passive_min=frozen(robot.passive_min[passive]),
        passive_max=frozen(robot.passive_max[passive]),
        poses=MappingProxyType(NamedPoses((name, frozen(pose[keep])) for name, pose in robot.poses.items())),
        published=MappingProxyType({}),
        drives=None,
        drive_mode="ideal",
        frames=MappingProxyType(
            {
                name: Frame(home[frame.joint][0], frozen(home[frame.joint][1] @ frame.T))
                for name, frame in robot.frames.items()
            }
        ),
        locked=MappingProxyType(
            {**robot.locked, **{tree.names[i]: float(offset[i]) for i in np.flatnonzero(~moves)}}
        ),
    )
    return arm.with_payload(load)


def _check(robot: Robot, joints: Mapping[str, float]) -> None:
    """Raise an error if these joints cannot be locked at these positions."""
    if robot.loops:
        names = ", ".join(robot.tree.names[joint] for joint in robot.passive)
        raise RobotError(f"robot {robot.name!r} has joints without a motor ({names}), so none can be locked")
    if columns := [one.name for one in robot.tree.torques if isinstance(one, UserColumn)]:
        raise RobotError(
            f"robot {robot.name!r} has the column {columns[0]} over all its joints, so none can be locked"
        )
    for name, position in joints.items():
        if name not in robot.joint_names:
            why = near(name, robot.joint_names)
            if name in robot.tree.names:
                leads = robot.embedding[robot.tree.names.index(name)]
                why = f", it follows {robot.joint_names[np.flatnonzero(leads)[0]]!r}"
            why = ", it is locked" if name in robot.locked else why
            raise UnknownNameError(
                f"robot {robot.name!r} has no joint {name!r} to lock{why}: known are "
                f"{', '.join(robot.joint_names)}"
            )
        i = robot.joint_names.index(name)
        low, high, kind = robot.q_min[i], robot.q_max[i], robot.joint_kinds[i]
        if not (low <= position <= high and math.isfinite(position)):
            raise RobotError(
                f"robot {robot.name!r}: {name} cannot be locked at {position:g}, expected a position of "
                f"{low:.6g} to {high:.6g} {'m' if kind == 'prismatic' else 'rad'}"
            )

"""Closed loops: their gaps and their clearance from folding, and models without the loop."""

import math
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from twin.base.errors import RobotError
from twin.physics.multibody import recursions
from twin.physics.multibody.tree import Loop, Tree, frozen
from twin.physics.robot.robot import Robot


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

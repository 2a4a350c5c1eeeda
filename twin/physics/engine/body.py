"""The robot as a multibody of PyBullet, created from the numbers of the `Robot` instead of a file.

PyBullet rounds or changes the numbers of most URDFs.  Therefore it gets poses, masses, principal axes and
moments as doubles.  It simulates exactly the robot that it is given, including changes made after loading.
Physics that PyBullet adds is removed by `remove_hidden_physics`.  The multibody has no shapes; another body,
in a world where nothing moves, is drawn.

Nothing collides: the robot is alone in its world, and its links pass through each other as in the model.
"""

import math
import struct
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from twin.base.errors import LoopError, RobotError, TwinError
from twin.physics.engine.client import suppress_output
from twin.physics.multibody.recursions import require_moved_mass
from twin.physics.multibody.tree import InertialFrame, inertial_frame
from twin.physics.robot.evaluation import joint_vector
from twin.physics.robot.limits import check_folding
from twin.physics.robot.robot import Robot
from twin.physics.rotations.rotations import pose_matrix


def state_reader(n: int) -> Callable[[Sequence[Any], np.ndarray], None]:
    """Return a function `(states, out)` that stores the `getJointStates` of n joints in out (2, n).

    Its source is generated for n joints: it runs at every step, and `zip(*states)` takes three times as long.
    """
    joints = ", ".join(f"(q{i}, qd{i}, _, _)" for i in range(n))
    values = ", ".join([f"q{i}" for i in range(n)] + [f"qd{i}" for i in range(n)])
    made: dict[str, Any] = {"pack": struct.Struct(f"{2 * n}d").pack_into}
    exec(f"def read(states, out):\n    {joints}, = states\n    pack(out, 0, {values})", made)
    return made["read"]


def checked_out(out: np.ndarray, n: int) -> np.ndarray:
    """Check the array that `state_reader` fills, and return it.

    Raises:
        ValueError: it is not a writable C-contiguous float64 array of the right shape.
    """
    if not (
        isinstance(out, np.ndarray)
        and out.shape == (2, n)
        and out.dtype == np.float64
        and out.flags.c_contiguous
        and out.flags.writeable
    ):
        got = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else repr(out)
        raise ValueError(f"expected out to be a writable C-contiguous float64 array (2, {n}), got {got}")
    return out


def finite_list(robot: Robot, tau: ArrayLike) -> list[float]:
    """Return torques as a list; raise `TypeError`, as PyBullet does, if they are not finite."""
    forces = (tau if type(tau) is np.ndarray else joint_vector(robot, "tau", tau)).tolist()
    if not isfinite(sum(forces)):
        raise TypeError
    return forces


def link_pose(position: Sequence[float], quaternion: Sequence[float]) -> np.ndarray:
    """Return the pose (4, 4) of a position and a quaternion in PyBullet's order, scalar last."""
    x, y, z, w = quaternion
    return pose_matrix([*position, w, x, y, z])


def inertial_pose(client: Any, body: int, link: int) -> np.ndarray:
    """Return the pose (4, 4) of a link's inertial frame in its joint's frame."""
    return link_pose(*client.getDynamicsInfo(body, link)[3:5])


def tree_jacobian(
    client: Any, body: int, link: int, point: np.ndarray, q_tree: np.ndarray, joints: Sequence[int]
) -> np.ndarray:
    """Return the Jacobian (6, n_tree) `[v; omega]` of a point of a link, columns in the tree's order.

    Args:
        client: client of PyBullet.
        body: PyBullet's number of the robot.
        link: PyBullet's number of the link.
        point: (3,) position relative to the joint's origin, in the axes of the link's inertial frame, in [m].
        q_tree: (n_tree,) positions of all joints, in [rad].
        joints: PyBullet's index of every joint of the tree.
    """
    ordered, zeros = q_tree[np.argsort(joints)].tolist(), [0.0] * len(q_tree)
    return np.vstack(client.calculateJacobian(body, link, point.tolist(), ordered, zeros, zeros))[:, joints]


LOOP_AXES = Rotation.align_vectors([[1, 1, 1]], [[0, 0, 1]])[0].as_matrix()
"""Rotation (3, 3) from the base of an arm with loops to PyBullet's world: axis 1 is the world's diagonal.

PyBullet holds the shared point of a loop along the axes of its world, three rows where the plane of the loop
has two directions. Where an axis is nearly normal to this plane, its row nearly vanishes, and the rounding of
the others becomes an error: with axis 1 along z, up to 2e-10 rad/s at q1 = 0 and 90 degrees. The plane of a
parallelogram contains axis 1. So its normal is at least 35 degrees from the axes here: 2e-13 rad/s remain."""


def world_axes(robot: Robot) -> np.ndarray:
    """Return the rotation (3, 3) from the robot's base to PyBullet's world."""
    return LOOP_AXES if robot.loops else np.eye(3)


MOST_JOINTS = 121
"""PyBullet stores 128 coordinates, 7 of them for the base; beyond that its states are silently wrong."""


def create_body(client: Any, robot: Robot) -> tuple[int, list[int]]:
    """Create the robot, payload included, in a world, with a fixed base.

    Args:
        client: client of PyBullet.
        robot: robot to simulate; its gravity is set elsewhere.

    Returns:
        PyBullet's number of the body, and PyBullet's index of every joint of the robot's tree.

    Raises:
        TwinError: PyBullet rejects the robot.
        RobotError: the links' masses are unknown or impossible, a joint moves no mass, or there are more
            joints than PyBullet supports.
    """
    inertias, tree = robot.inertias, robot.tree
    _require_joints(robot)
    frames = [
        inertial_frame(f"link {link!r} of robot {robot.name!r}", row)
        for link, row in zip(tree.links, inertias, strict=True)
    ]
    # A joint that moves no mass has no acceleration, even if a closed loop guides it.
    require_moved_mass(f"robot {robot.name!r} cannot be simulated", tree)
    try:
        with suppress_output():
            body = _multibody(client, robot, frames)
    except client.error as error:
        raise TwinError(f"PyBullet rejects robot {robot.name!r} ({error})") from error
    # PyBullet orders the joints of a branched tree differently; it names them by our numbers, from 1.
    names = [client.getJointInfo(body, index)[1] for index in range(tree.n)]
    joints = [names.index(b"joint%d" % (i + 1)) for i in range(tree.n)]
    for joint, frame in zip(joints, frames, strict=True):
        # Otherwise PyBullet computes the moments from collision shapes.
        client.changeDynamics(body, joint, localInertiaDiagonal=frame.moments.tolist())
    return body, joints


def _multibody(client: Any, robot: Robot, frames: list[InertialFrame]) -> int:
    """Return PyBullet's number of the robot's body, whose links have these inertial frames."""
    tree = robot.tree
    T = tree.T_parent_joint.copy()
    first = np.array(tree.parents) < 0
    T[first, :3] = world_axes(robot) @ T[first, :3]
    kinds = {"revolute": client.JOINT_REVOLUTE, "prismatic": client.JOINT_PRISMATIC}
    orientations = Rotation.from_matrix([frame.axes for frame in frames]).as_quat().tolist()
    return client.createMultiBody(
        baseMass=0,  # mass 0 fixes the base
        baseCollisionShapeIndex=-1,
        baseVisualShapeIndex=-1,
        linkMasses=[frame.mass for frame in frames],
        linkCollisionShapeIndices=[-1] * tree.n,
        linkVisualShapeIndices=[-1] * tree.n,
        linkPositions=T[:, :3, 3].tolist(),
        linkOrientations=Rotation.from_matrix(T[:, :3, :3]).as_quat().tolist(),
        linkInertialFramePositions=[frame.com.tolist() for frame in frames],
        linkInertialFrameOrientations=orientations,
        linkParentIndices=[parent + 1 for parent in tree.parents],  # 0 is the base
        linkJointTypes=[kinds[kind] for kind in tree.kinds],
        linkJointAxis=tree.axes.tolist(),
    )


def _require_joints(robot: Robot) -> None:
    """Raise `RobotError` if there are too many joints, or if q are not the angles of the motors."""
    tree, driven = robot.tree, robot.embedding[list(robot.driven)]
    coupled = not np.array_equal(driven, np.eye(robot.n))
    if tree.n > MOST_JOINTS:
        raise RobotError(
            f"robot {robot.name!r} has {tree.n} moving joints, PyBullet simulates at most {MOST_JOINTS}"
        )
    if coupled and (robot.passive or np.linalg.matrix_rank(driven) < robot.n):
        raise RobotError(
            f"robot {robot.name!r} cannot be simulated: its q are not the angles that its motors turn"
        )


UNCLAMPED = 1e9  # rad/s or m/s


def remove_hidden_physics(client: Any, body: int, joints: Sequence[int]) -> None:
    """Remove damping, speed clamps and motors, which the model does not have.

    Args:
        client: client of PyBullet.
        body: PyBullet's number of the robot.
        joints: PyBullet's index of every moving joint.
    """
    for link in range(-1, client.getNumJoints(body)):
        # By default links are damped by 0.04 /s, and joint speeds are clamped at 100 rad/s.
        client.changeDynamics(body, link, linearDamping=0, angularDamping=0, jointDamping=0)
        client.changeDynamics(body, link, maxJointVelocity=UNCLAMPED)
    # Every joint starts with a motor that brakes it.
    free = [0.0] * len(joints)
    client.setJointMotorControlArray(body, joints, client.VELOCITY_CONTROL, forces=free)


LARGEST_GAP = 1e-9
"""Largest gap of a loop, in [m], that is not an error; the constraint below limits it to 1e-14 m."""

LARGEST_FORCE = 1e9  # N: no loop needs more

CORRECTION = 0.005
"""Share of a gap that the engine corrects in a step.  Every step rounds the gap by 1e-16 m.  Correcting it
with PyBullet's default of 0.2 causes 1e-12 rad/s in the speeds; with 0 the gap drifts slowly."""


NEAR = 1e-6
"""Distance from the end of its range, in [rad], below which a passive joint is checked by means of the driven
joints, as everywhere else.  Farther inside, the small gap of the loop has no effect on the check."""


def hold_followers(client: Any, body: int, robot: Robot, joints: Sequence[int]) -> None:
    """Gear every joint that follows another one to it.

    Args:
        client: client of PyBullet.
        body: PyBullet's number of the robot.
        robot: robot to simulate.
        joints: PyBullet's index of every joint of the robot's tree.

    Raises:
        RobotError: a joint follows several others.
    """
    if robot.followers:
        client.setPhysicsEngineParameter(numSolverIterations=5000, solverResidualThreshold=1e-30, erp=0.0)
    for joint in robot.followers:
        leaders = np.flatnonzero(robot.embedding[joint])
        if len(leaders) > 1:
            raise RobotError(
                f"robot {robot.name!r} cannot be simulated: {robot.tree.names[joint]!r} follows "
                f"{len(leaders)} joints, PyBullet gears it to one"
            )
        leader = int(leaders[0]) if len(leaders) else 0
        links = joints[joint], joints[robot.driven[leader]]
        gear = client.createConstraint(
            body, links[0], body, links[1], client.JOINT_GEAR, [0, 0, 1], [0, 0, 0], [0, 0, 0]
        )
        # PyBullet holds `speed_0 + gearRatio speed_1 = 0`, whatever the axis.
        client.changeConstraint(gear, gearRatio=-robot.embedding[joint, leader], maxForce=LARGEST_FORCE)


LARGEST_SLIP = 1e-10
"""Largest difference of a follower from its leader, in [rad] or [m], that is not an error."""


def check_slip(robot: Robot, q_tree: np.ndarray) -> None:
    """Raise `LoopError` if a joint of the engine no longer follows its leader.

    Args:
        robot: robot with followers.
        q_tree: (n_tree,) positions of all joints of its tree in the engine, in [rad].
    """
    followers = list(robot.followers)
    slip = np.abs(q_tree - robot.tree_positions(robot.joint_positions(q_tree)))[followers]
    worst = int(np.argmax(slip))
    if not slip[worst] <= LARGEST_SLIP:
        raise LoopError(
            f"PyBullet holds joint {robot.tree.names[followers[worst]]!r} of {robot.name!r} only within "
            f"{slip[worst]:.3g} of what it follows, expected {LARGEST_SLIP:g}; the analytic model is exact"
        )


def close_loops(
    client: Any,
    body: int,
    robot: Robot,
    joints: Sequence[int],
    inertial_pose: Callable[[int], np.ndarray],
) -> None:
    """Constrain the two links of every loop to the point that they share.

    Args:
        client: client of PyBullet.
        body: PyBullet's number of the robot.
        robot: robot with the loops.
        joints: PyBullet's index of every joint of the robot's tree.
        inertial_pose: function of PyBullet's index of a link that returns the pose (4, 4) of the link's
            inertial frame in the link's frame.
    """
    if not robot.loops:
        return
    # By default a loop is solved to 1e-6 only. The solver stops once the residual, a square, is below the
    # threshold; far below this one rounding keeps it from ever stopping early.
    client.setPhysicsEngineParameter(numSolverIterations=5000, solverResidualThreshold=1e-27, erp=CORRECTION)
    for loop in robot.loops:
        links, pivots = [joints[joint] for joint in loop.joints], []
        for link, point in zip(links, loop.points, strict=True):
            # The points of a constraint are expressed in the inertial frames, including their rotation.
            T = np.linalg.inv(inertial_pose(link))
            pivots.append((T[:3, :3] @ point + T[:3, 3]).tolist())
        held = client.createConstraint(
            body, links[0], body, links[1], client.JOINT_POINT2POINT, [0, 0, 0], *pivots
        )
        client.changeConstraint(held, maxForce=LARGEST_FORCE)


def checked_gap(robot: Robot, q_tree: np.ndarray) -> float:
    """Return the largest gap of the loops, in [m].

    Args:
        robot: robot with loops.
        q_tree: (n_tree,) positions of all joints of its tree in the engine, in [rad].

    Raises:
        LoopError: a loop is open by more than `LARGEST_GAP`.
        LimitError: a loop folds.
    """
    # This runs at every step: for a few floats, numpy would take ten times as long.
    gaps = np.empty(3 * len(robot.loops))
    robot.kernels.loop_gaps(q_tree, gaps)
    x_y_z, widest = iter(gaps.tolist()), 0.0
    for loop in robot.loops:
        gap = math.hypot(next(x_y_z), next(x_y_z), next(x_y_z))
        if not gap <= LARGEST_GAP:
            first, second = (robot.tree.links[joint] for joint in loop.joints)
            raise LoopError(
                f"loop {loop.name} came open: the gap between {first} and {second} is {gap:.3g} m, expected "
                f"at most {LARGEST_GAP:g} m; is the motion too fast for the time step?"
            )
        widest = max(widest, gap)
    angles = q_tree.tolist()
    ranges = zip(robot.passive, robot.passive_min.tolist(), robot.passive_max.tolist(), strict=True)
    if not all(low + NEAR <= angles[joint] <= high - NEAR for joint, low, high in ranges):
        check_folding(robot, robot.joint_positions(q_tree))
    return widest

"""The robot as PyBullet's multibody: made of the numbers of the `Robot` itself, not of a file.

PyBullet reads most URDFs nearly right, and each file in its own way.  Here it reads none: it is handed poses,
masses, principal axes and moments as doubles, so that it simulates the robot that it is given, whatever was
done to it since it was loaded, and no number is parsed twice.  What of its own it adds is taken away in
`twin/engine/body.py`.  It has no shapes: what is drawn is another body, in a world that nothing moves in.

Nothing collides: the robot is alone in its world, and its links pass through each other as in the model.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from twin.engine.client import suppress_output
from twin.errors import LoopError, RobotError, TwinError
from twin.multibody.composite_bodies import require_moved_mass
from twin.multibody.tree import body_from_parameters
from twin.robot.limits import check_folding
from twin.robot.robot import Robot

MOST_JOINTS = 121
"""PyBullet keeps 128 coordinates, 7 of them the base's: beyond, its states are wrong without a word."""

ROUNDING = 1e-15
"""Products of inertia so small, relative to the moments about the joint, are what rounding left of zero."""


class InertialFrame(NamedTuple):
    """A link's mass in [kg], its centre of mass (3,) in [m], and its principal axes.

    They are the columns of `axes` (3, 3); `moments` (3,) are about them, in [kg m^2].
    """

    mass: float
    com: np.ndarray
    axes: np.ndarray
    moments: np.ndarray


def create_body(client: Any, robot: Robot) -> tuple[int, list[int]]:
    """Put the robot, payload included, into a world; its base is fixed.

    Args:
        client: PyBullet's.
        robot: what is simulated; gravity is the world's affair.

    Returns:
        PyBullet's number of the body, and its index of every joint of the robot's tree.

    Raises:
        TwinError: PyBullet does not take it.
        RobotError: the masses of its links are not known or cannot be, a joint moves none, or there are more
            joints than PyBullet takes.
    """
    inertias, tree = robot.inertias, robot.tree
    _require_joints(robot)
    frames = [
        _inertial_frame(f"link {link!r} of robot {robot.name!r}", row)
        for link, row in zip(tree.links, inertias, strict=True)
    ]
    # A joint that moves nothing has no acceleration, not even where a closed loop holds it.
    require_moved_mass(f"robot {robot.name!r} cannot be simulated", tree)
    try:
        with suppress_output():
            body = _multibody(client, robot, frames)
    except client.error as error:
        raise TwinError(f"PyBullet does not take robot {robot.name!r} ({error})") from error
    # PyBullet counts a branched tree in an order of its own; it names joints after ours, from 1.
    names = [client.getJointInfo(body, index)[1] for index in range(tree.n)]
    joints = [names.index(b"joint%d" % (i + 1)) for i in range(tree.n)]
    for joint, frame in zip(joints, frames, strict=True):
        # It would make the moments up from collision shapes.
        client.changeDynamics(body, joint, localInertiaDiagonal=frame.moments.tolist())
    return body, joints


def _multibody(client: Any, robot: Robot, frames: list[InertialFrame]) -> int:
    """PyBullet's number of the robot's body, whose links have these masses."""
    tree = robot.tree
    kinds = {"revolute": client.JOINT_REVOLUTE, "prismatic": client.JOINT_PRISMATIC}
    orientations = Rotation.from_matrix([frame.axes for frame in frames]).as_quat().tolist()
    return client.createMultiBody(
        baseMass=0,  # which fixes it
        baseCollisionShapeIndex=-1,
        baseVisualShapeIndex=-1,
        linkMasses=[frame.mass for frame in frames],
        linkCollisionShapeIndices=[-1] * tree.n,
        linkVisualShapeIndices=[-1] * tree.n,
        linkPositions=tree.T_parent_joint[:, :3, 3].tolist(),
        linkOrientations=Rotation.from_matrix(tree.T_parent_joint[:, :3, :3]).as_quat().tolist(),
        linkInertialFramePositions=[frame.com.tolist() for frame in frames],
        linkInertialFrameOrientations=orientations,
        linkParentIndices=[parent + 1 for parent in tree.parents],  # 0 is the base
        linkJointTypes=[kinds[kind] for kind in tree.kinds],
        linkJointAxis=tree.axes.tolist(),
    )


def _require_joints(robot: Robot) -> None:
    """Raise `RobotError` where there are too many joints, or the motors turn other joints than q."""
    tree, driven = robot.tree, list(robot.driven)
    if tree.n > MOST_JOINTS:
        raise RobotError(
            f"robot {robot.name!r} has {tree.n} moving joints, PyBullet simulates at most {MOST_JOINTS}"
        )
    if not (
        np.array_equal(robot.embedding[driven], np.eye(robot.n))
        and not np.any(robot.embedding_offset[driven])
    ):
        raise RobotError(
            f"robot {robot.name!r} cannot be simulated: its q are not the angles that its motors turn"
        )


def _inertial_frame(where: str, row: np.ndarray) -> InertialFrame:
    """The principal axes of (10,) inertial parameters; PyBullet takes tensors in no other form."""
    mass, com, tensor = body_from_parameters(row)
    if not (0 <= mass < np.inf and np.all(np.isfinite(row))):
        raise RobotError(f"{where} has a mass of {mass:g} kg or a mass property that is not finite")
    if mass == 0 and np.any(row[1:4] != 0):
        raise RobotError(f"{where} has a first moment and no mass; give it a mass above 0 kg")
    between = np.abs(tensor - np.diag(np.diag(tensor)))
    if np.max(between) <= ROUNDING * np.max(np.abs(row[4:])):
        return InertialFrame(mass, com, np.eye(3), np.diag(tensor))  # whose rotation adds no rounding
    moments, axes = np.linalg.eigh(tensor)
    return InertialFrame(mass, com, axes * np.sign(np.linalg.det(axes)), moments)


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


LARGEST_GAP = 1e-9
"""A loop that is open by more than this, in [m], is an error; held as below it stays at 1e-14."""

LARGEST_FORCE = 1e9  # N: more than any loop needs

CORRECTION = 0.005
"""What part of a gap the engine takes back in a step. Each step rounds the gap anew by 1e-16 m, and taking
that back at PyBullet's own 0.2 shows as 1e-12 rad/s in the speeds; with 0 the gap wanders off slowly."""


NEAR = 1e-6
"""So near to the end of its range, in [rad], a passive joint of the engine is judged by the driven joints
that it follows, as everywhere else; further inside the gap, small as it is, cannot matter."""


def close_loops(
    client: Any,
    body: int,
    robot: Robot,
    joints: Sequence[int],
    inertial_frame: Callable[[int], np.ndarray],
) -> None:
    """Hold the two links of every loop together at the point that they share.

    Args:
        client: PyBullet's world.
        body: its number for the robot.
        robot: whose loops are held.
        joints: PyBullet's index of every joint of the robot's tree.
        inertial_frame: gives, for PyBullet's index of a link, the pose (4, 4) of its inertial frame in it.
    """
    if not robot.loops:
        return
    # By default a loop is solved to 1e-6 only. The solver stops once the residual, a square, is below the
    # threshold; far below this one rounding keeps it from ever stopping early.
    client.setPhysicsEngineParameter(numSolverIterations=5000, solverResidualThreshold=1e-27, erp=CORRECTION)
    for loop in robot.loops:
        links, pivots = [joints[joint] for joint in loop.joints], []
        for link, point in zip(links, loop.points, strict=True):
            # A constraint's points are in the inertial frames, their rotation included.
            T = np.linalg.inv(inertial_frame(link))
            pivots.append((T[:3, :3] @ point + T[:3, 3]).tolist())
        held = client.createConstraint(
            body, links[0], body, links[1], client.JOINT_POINT2POINT, [0, 0, 0], *pivots
        )
        client.changeConstraint(held, maxForce=LARGEST_FORCE)


def checked_gap(robot: Robot, q_tree: np.ndarray) -> float:
    """How far the loops are open at most, in [m].

    Args:
        robot: with loops.
        q_tree: (n_tree,) positions of all joints of its tree in the engine, in [rad].

    Raises:
        LoopError: a loop is open by more than `LARGEST_GAP`.
        LimitError: a loop folds.
    """
    # Called at every step: arithmetic on a few floats, which numpy would take ten times as long for.
    gaps = np.empty(3 * len(robot.loops))
    robot.kernels.loop_gaps(q_tree, gaps)
    x_y_z, widest = iter(gaps.tolist()), 0.0
    for loop in robot.loops:
        gap = math.hypot(next(x_y_z), next(x_y_z), next(x_y_z))
        if not gap <= LARGEST_GAP:
            first, second = (robot.tree.links[joint] for joint in loop.joints)
            raise LoopError(
                f"loop {loop.name} came open: {first} and {second} are {gap:.3g} m apart where they meet, "
                f"at most {LARGEST_GAP:g} m is allowed; is the motion too fast for the time step?"
            )
        widest = max(widest, gap)
    angles = q_tree.tolist()
    ranges = zip(robot.passive, robot.passive_min.tolist(), robot.passive_max.tolist(), strict=True)
    if not all(low + NEAR <= angles[joint] <= high - NEAR for joint, low, high in ranges):
        check_folding(robot, q_tree[list(robot.driven)])
    return widest

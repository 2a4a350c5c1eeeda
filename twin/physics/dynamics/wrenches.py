"""Forces and moments in the joints of an arm, at its foundation, and at the pins of its closed loops.

The recursion of Newton and Euler computes the wrench that each link receives from its parent.  The component
along a joint's axis is the torque of its drive; the structure bears the other five.  A spring over an axis
and a user's column share the torque about it with the drive.  A cylinder, which connects two links beside
their joint, relieves the joint of its force and its moment.

The pins of a closed loop transmit a force between two links of the tree.  Passive joints have no torque,
which determines the components of this force that they feel.  For a parallelogram these are the components in
the plane of the arm.  Rigid bodies do not determine the component across that plane; it is set to 0, which is
true of a rod with spherical eyes.

Source: Norrlöf 1999, section 3.2.2; Featherstone 2008, section 5.3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, real_array
from twin.base.errors import UnknownNameError
from twin.base.formatting import short_repr
from twin.physics.kinematics.forward import forward_kinematics, link_poses
from twin.physics.multibody.axis_torques import Cylinder, torque_columns
from twin.physics.robot.evaluation import evaluate, joint_vectors
from twin.physics.robot.robot import Robot

Frame = Literal["link", "base"]


@dataclass(frozen=True)
class JointWrenches:
    """Wrenches `[f; mu]` in all joints of the tree, in [N, N m].

    `wrenches["joint_2"]` (..., 6) is the wrench that the parent link exerts at a joint on the link that the
    joint moves, about the origin of the link's frame.  The name of
    the link is accepted, too, with or without `link_`: `wrenches["rod"]`.

    Attributes:
        names: names of the joints of the tree, passive ones included.
        links: names of the links that the joints move.
        joints: (..., n_tree, 6) wrenches of all joints.
        base: (..., 6) wrench of the foundation on the base, about the base's origin, in base axes; the weight
            of the base link is included.
        pins: force (..., 3) of each closed loop's second link on its first at the shared point, in base axes,
            by the name of the loop.
    """

    names: tuple[str, ...]
    links: tuple[str, ...]
    joints: Floats
    base: Floats
    pins: Mapping[str, Floats]

    __repr__ = short_repr

    def __getitem__(self, name: str) -> Floats:
        """Return the wrench (..., 6) of a joint by its name, or by the name of the link that it moves."""
        for names, full in ((self.names, name), (self.links, name), (self.links, f"link_{name}")):
            if full in names:
                return self.joints[..., names.index(full), :]
        known = ", ".join((*self.names, *self.links))
        raise UnknownNameError(f"unknown joint or link {name!r}: known are {known}")


def joint_wrenches(
    robot: Robot, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None = None,
    T_flange_tool: ArrayLike | None = None, *, frame: Frame = "link",
) -> JointWrenches:  # fmt: skip
    """Return the forces and moments in all joints, at the base, and at the pins of closed loops.

    Args:
        robot: robot with its payload and mounting; its drives, which act before the joints, do not matter.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].
        qdd: (..., n) joint accelerations, in [rad/s^2].
        wrench: (..., 6) `[f; mu]` on the robot at the tool's origin, base axes, in [N, N m].
        T_flange_tool: (4, 4) pose of the tool on the flange.
        frame: axes of the joints' wrenches, `"link"` for those of each link, or `"base"`.

    Returns:
        Wrenches with the shape of the samples.

    Raises:
        RobotError: the masses of the links are unknown.
        ValueError: a vector has a wrong shape or is not finite, or the frame is unknown.

    Example:
        >>> import twin
        >>> robot, still = twin.load("irb140"), [0, 0, 0, 0, 0, 0]
        >>> wrenches = twin.joint_wrenches(robot, still, still, still)
        >>> round(float(wrenches.base[2]), 2)  # 98 kg weigh on the foundation, in N
        961.38
    """
    if frame not in ("link", "base"):
        raise ValueError(f"expected frame 'link' or 'base', got {frame!r}")
    robot.require_inertia()
    q, qd, qdd = np.broadcast_arrays(*joint_vectors(robot, q=q, qd=qd, qdd=qdd))
    inertial = (robot.single_sample.inertias, robot.single_sample.gravity)
    shape = (robot.tree.n + 1, 6)
    rows = evaluate(robot.kernels.joint_wrenches_batch, (q, qd, qdd), inertial, shape)
    joints, base = rows[..., :-1, :], rows[..., -1, :] + _base_weight(robot)
    if wrench is not None:
        F, p_tool = real_array(wrench, "wrench"), forward_kinematics(robot, q, T_flange_tool)[..., :3, 3]
        base = base - _wrench_about(F, p_tool)
    if robot.tree.torques:
        joints = joints + _beside_joints(robot, q, qd, qdd)
    pins: dict[str, Floats] = {}
    if robot.loops or frame == "base" or wrench is not None:
        T = link_poses(robot, q)
        joints = _rotated(joints, T[..., :3, :3])
        if wrench is not None:
            for joint in robot.tree.carriers(robot.tree.flange_joint):
                joints[..., joint, :] -= _wrench_about(F, p_tool - T[..., joint, :3, 3])
        if robot.loops:
            joints, pins = _with_pins(robot, joints, T)
        if frame == "link":
            joints = _rotated(joints, np.swapaxes(T[..., :3, :3], -1, -2))
    return JointWrenches(robot.tree.names, robot.tree.links, joints, base, MappingProxyType(pins))


def _wrench_about(wrench: Floats, arm: Floats) -> Floats:
    """Return a wrench (..., 6) at a point about another one, from which `arm` (..., 3) leads to it."""
    f = wrench[..., :3]
    return np.concatenate([f, wrench[..., 3:] + np.cross(arm, f)], axis=-1)


def _beside_joints(robot: Robot, q: Floats, qd: Floats, qdd: Floats) -> Floats:
    """Return what springs, cylinders and columns add to the wrenches (..., n_tree, 6), in the links' axes."""
    tree, driven, n = robot.tree, list(robot.driven), robot.n
    rows = [v.reshape(-1, n) for v in (q, qd, qdd)]
    added = np.zeros((len(rows[0]), tree.n, 6))
    for torque in tree.torques:
        if isinstance(torque, Cylinder):
            joint = driven[torque.joint]
            added[:, joint] -= torque.wrench(rows[0][:, torque.joint], tree.axes[joint])
        else:
            over_joints = torque_columns([torque], *rows) @ torque.values
            along = np.linalg.solve(robot.embedding[driven].T, over_joints.T).T  # over the axes with motors
            for k, joint in enumerate(driven):
                part = slice(3, 6) if tree.kinds[joint] == "revolute" else slice(0, 3)
                added[:, joint, part] += along[:, k, None] * tree.axes[joint]
    return added.reshape(*q.shape[:-1], tree.n, 6)


def _rotated(wrenches: Floats, R: Floats) -> Floats:
    """Return wrenches (..., 6) in axes rotated by R (..., 3, 3)."""
    parts = wrenches.reshape(*wrenches.shape[:-1], 2, 3)
    return np.einsum("...ij,...kj->...ki", R, parts).reshape(wrenches.shape)


def _base_weight(robot: Robot) -> Floats:
    """Return the wrench (6,) of the foundation that carries the base link alone, about the base's origin."""
    mass, first_moment = robot.tree.base_inertia[0], robot.tree.base_inertia[1:4]
    return np.concatenate([-mass * robot.gravity, -np.cross(first_moment, robot.gravity)])


def _with_pins(robot: Robot, joints: Floats, T: Floats) -> tuple[Floats, dict[str, Floats]]:
    """Return the wrenches with the forces of the pins, and these forces, all in base axes.

    Args:
        robot: robot with m closed loops.
        joints: (..., n_tree, 6) wrenches of the tree without pins, in base axes.
        T: (..., n_tree, 4, 4) poses of the links.
    """
    tree, origins = robot.tree, T[..., :3, 3]
    axes = np.einsum("...ij,...j->...i", T[..., :3, :3], tree.axes)
    revolute = np.array([kind == "revolute" for kind in tree.kinds])
    # Arms from every joint to the two points of every loop, for the joints that carry the point's link.
    sides = [
        (number, side, joint, tree.carriers(joint))
        for number, loop in enumerate(robot.loops)
        for side, joint in enumerate(loop.joints)
    ]
    rates = np.zeros((*joints.shape[:-1], 3 * len(robot.loops)))  # of the gaps, for unit speed of each joint
    arms = {}
    for number, side, joint, carriers in sides:
        offset = np.einsum("...ij,j->...i", T[..., joint, :3, :3], robot.loops[number].points[side])
        point = origins[..., joint, :] + offset
        sign = 1.0 if side == 0 else -1.0
        for i in carriers:
            arm = point - origins[..., i, :]
            arms[number, side, i] = arm
            motion = np.cross(axes[..., i, :], arm) if revolute[i] else axes[..., i, :]
            rates[..., i, 3 * number : 3 * number + 3] += sign * motion
    along = np.where(
        revolute, np.einsum("...i,...i", axes, joints[..., 3:]), np.einsum("...i,...i", axes, joints[..., :3])
    )
    passive = [joint for joint in robot.passive if joint not in robot.followers]
    # A force = torque with A = rates[passive]; the least-norm solution A^T (A A^T)^-1 torque has no component
    # across the arm's plane.
    A = rates[..., passive, :]
    A_T = np.swapaxes(A, -1, -2)
    force = A_T @ np.linalg.solve(A @ A_T, along[..., passive, None])
    force = force[..., 0].reshape(*along.shape[:-1], len(robot.loops), 3)
    joints = joints.copy()
    for (number, side, i), arm in arms.items():
        on_link = force[..., number, :] if side == 0 else -force[..., number, :]
        joints[..., i, :3] -= on_link
        joints[..., i, 3:] -= np.cross(arm, on_link)
    return joints, {loop.name: force[..., number, :] for number, loop in enumerate(robot.loops)}

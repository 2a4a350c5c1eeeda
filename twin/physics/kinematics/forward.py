"""Forward kinematics and Jacobians of the tool, or of a point on any link.

Every function takes one sample `(n,)` or a batch `(..., n)` of joint angles in [rad], and the tool's pose on
the flange, `T_flange_tool` (4, 4), which is the flange itself if left out.  With `link=` the frame of that
link takes the place of the flange, and with `point=` a point in that frame, in [m].  The first call for each
link compiles functions for it, which takes a second or two; they are cached in files.
"""

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import real_array
from twin.base.errors import RobotError
from twin.physics.multibody.kernels import FLANGE
from twin.physics.multibody.recursions import placements, world_frames
from twin.physics.robot.evaluation import evaluate, joint_vectors
from twin.physics.robot.robot import DH, Robot
from twin.physics.rotations.rotations import quaternion_from_matrix, quaternion_rate, rigid_poses


def forward_kinematics(
    robot: Robot,
    q: ArrayLike,
    T_flange_tool: ArrayLike | None = None,
    *,
    link: str | None = None,
    point: ArrayLike | None = None,
    T_world_base: ArrayLike | None = None,
    T_world_object: ArrayLike | None = None,
) -> np.ndarray:
    """Return the pose of the tool in the base frame, in the world, or in the frame of an object.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        T_flange_tool: (4, 4) pose of the tool on the flange.
        link: name of a link, whose frame is used instead of the tool's.
        point: (3,) origin of the frame on this link, in its frame, in [m].
        T_world_base: (4, 4) pose of the base in the world; the pose is then that in the world.
        T_world_object: (4, 4) pose of an object (RAPID's work object); the pose is then that in its frame.

    Returns:
        (..., 4, 4) `T_base_tool`, `T_world_tool` or `T_object_tool`, lengths in [m].

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> T = twin.forward_kinematics(robot, robot.poses["zero"])
        >>> T[:3, 3].round(4).tolist()
        [0.515, 0.0, 0.712]

    Source: Aliaga 2019, eq. (2.4), (3.2), over the URDF tree instead of the DH table.
    """
    try:
        one = robot.single_sample
    except AttributeError:
        raise ValueError(f"expected a Robot, as twin.load gives it, got {robot!r}") from None
    placed = not (T_world_base is None and T_world_object is None)
    if link is not None or point is not None:
        robot, T_flange_tool = _on_link(robot, link, point, T_flange_tool)
    elif T_flange_tool is None and not placed and (T := one.tool_pose(q)) is not None:
        return T
    (q,) = joint_vectors(robot, q=q)
    T = evaluate(robot.kernels.tool_pose_batch, (q,), (tool_pose(T_flange_tool),), (4, 4))
    return base_in_object(T_world_base, T_world_object) @ T if placed else T


def jacobian(
    robot: Robot,
    q: ArrayLike,
    T_flange_tool: ArrayLike | None = None,
    *,
    link: str | None = None,
    point: ArrayLike | None = None,
) -> np.ndarray:
    """Return the geometric Jacobian of the tool: `[v; omega] = J qd`, in the base frame.

    Its columns belong to the joint angles of the pendant. With `S = robot.dh_coupling`, those of
    `J @ inv(S)` belong to the DH angles `theta = S q + theta0`. The two differ for an IRB 1400, where Norrlöf
    differentiates by the DH angles.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        T_flange_tool: (4, 4) pose of the tool on the flange.
        link: name of a link, whose frame is used instead of the tool's.
        point: (3,) point on this link, in its frame, in [m].

    Returns:
        (..., 6, n), linear rows first, in [m] and [1].

    Example:
        >>> import twin
        >>> robot = twin.load("irb1400")
        >>> J = twin.jacobian(robot, [0, 0, 0, 0, 0, 0])
        >>> J_theta = J @ np.linalg.inv(robot.dh_coupling)  # as the report prints it
        >>> J[0, 1:3].round(4).tolist(), J_theta[0, 1:3].round(4).tolist()  # v_x by joints 2 and 3
        ([0.6, 0.12], [0.72, 0.12])

    Source: Norrlöf 1999, eq. (2.51)-(2.65).
    """
    if link is not None or point is not None:
        robot, T_flange_tool = _on_link(robot, link, point, T_flange_tool)
    elif T_flange_tool is None and (J := robot.single_sample.jacobian(q)) is not None:
        return J
    (q,) = joint_vectors(robot, q=q)
    return evaluate(robot.kernels.jacobian_batch, (q,), (tool_pose(T_flange_tool),), (6, robot.n))


def jacobian_dot(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike,
    T_flange_tool: ArrayLike | None = None,
    *,
    link: str | None = None,
    point: ArrayLike | None = None,
) -> np.ndarray:
    """Return the time derivative of `jacobian` along the motion, so that `[vd; omegad] = J qdd + Jd qd`.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].
        T_flange_tool: (4, 4) pose of the tool on the flange.
        link: name of a link, whose frame is used instead of the tool's.
        point: (3,) point on this link, in its frame, in [m].

    Returns:
        (..., 6, n), in [m/s] and [1/s].

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> J_dot = twin.jacobian_dot(robot, [0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0])
        >>> round(float(J_dot[0, 0]), 4)  # centripetal, along x
        -0.515

    Source: Norrlöf 1999, eq. (2.67); Aliaga 2019, eq. (2.16), whose minus sign is a misprint.
    """
    if link is not None or point is not None:
        robot, T_flange_tool = _on_link(robot, link, point, T_flange_tool)
    elif T_flange_tool is None and (J_dot := robot.single_sample.jacobian_rate(q, qd)) is not None:
        return J_dot
    q, qd = joint_vectors(robot, q=q, qd=qd)
    return evaluate(robot.kernels.jacobian_rate_batch, (q, qd), (tool_pose(T_flange_tool),), (6, robot.n))


def pose_jacobian(robot: Robot, q: ArrayLike, T_flange_tool: ArrayLike | None = None) -> np.ndarray:
    """Return the Jacobian of the pose vector `[x y z a b c d]`, whose rates are this matrix times `qd`.

    The rows of the quaternion (scalar first, `a >= 0`) follow from its rate equation
    `quat_dot = 1/2 (0, omega) * quat`.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        T_flange_tool: (4, 4) pose of the tool on the flange.

    Returns:
        (..., 7, n), in [m] and [1].

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> J = twin.kinematics.pose_jacobian(robot, [0, 0, 0, 0, 0, 0])
        >>> J[3:, 0].round(4).tolist()  # rates of the quaternion
        [0.0, -0.3536, 0.0, 0.3536]

    Source: Aliaga 2019, eq. (2.13)-(2.15), (3.3).
    """
    J = jacobian(robot, q, T_flange_tool)
    quat = quaternion_from_matrix(forward_kinematics(robot, q, T_flange_tool)[..., :3, :3])
    omega = np.moveaxis(J[..., 3:, :], -1, -2)  # (..., n, 3)
    rates = quaternion_rate(quat[..., None, :], omega)
    return np.concatenate([J[..., :3, :], np.moveaxis(rates, -1, -2)], axis=-2)


def dh_from_joint_angles(robot: Robot, q: ArrayLike) -> np.ndarray:
    """Return the Denavit-Hartenberg angles of joint angles: `theta = S q + theta0`.

    S is the identity for independent joints; for an IRB 1400 it contains the parallelogram.  The
    angle of a prismatic joint is constant.

    Args:
        robot: robot with a DH table.
        q: (..., n) joint angles as the pendant shows them, in [rad].

    Returns:
        (..., n) in [rad].

    Raises:
        RobotError: the robot has no DH table.

    Example:
        >>> import twin
        >>> robot = twin.load("irb1400")
        >>> theta = twin.kinematics.dh_from_joint_angles(robot, [0, 0.2, 0.1, 0, 0, 0])
        >>> round(float(theta[2]), 4)  # q3 - q2, because of the parallelogram
        -0.1

    Source: Norrlöf 1999, eq. (2.25); his `abb2dh`.
    """
    (q,) = joint_vectors(robot, q=q)
    return q @ robot.dh_coupling.T + _dh(robot).theta0


def joint_from_dh_angles(robot: Robot, theta: ArrayLike) -> np.ndarray:
    """Return the joint angles of Denavit-Hartenberg angles; the inverse of `dh_from_joint_angles`.

    Args:
        robot: robot with a DH table.
        theta: (..., n) DH angles, in [rad].

    Returns:
        (..., n) joint angles as the pendant shows them, in [rad].

    Raises:
        RobotError: the robot has no DH table, or a prismatic joint, whose position is not an angle.

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> theta = twin.kinematics.dh_from_joint_angles(robot, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
        >>> twin.kinematics.joint_from_dh_angles(robot, theta).round(4).tolist()
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    """
    (theta,) = joint_vectors(robot, theta=theta)
    if "prismatic" in robot.joint_kinds:
        joint = robot.joint_names[robot.joint_kinds.index("prismatic")]
        raise RobotError(f"joint {joint!r} of robot {robot.name!r} is prismatic: it has no DH angle")
    return np.linalg.solve(robot.dh_coupling, (theta - _dh(robot).theta0)[..., None])[..., 0]


def _dh(robot: Robot) -> DH:
    if robot.dh is None:
        raise RobotError(f"robot {robot.name!r} has no DH table; only a robot.toml or a dh.toml can give one")
    return robot.dh


def velocity(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike,
    T_flange_tool: ArrayLike | None = None,
    *,
    link: str | None = None,
    point: ArrayLike | None = None,
) -> np.ndarray:
    """Return the twist `[v; omega]` of the tool, or of a point on a link, in the base frame.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].
        T_flange_tool: (4, 4) pose of the tool on the flange.
        link: name of a link, whose frame is used instead of the tool's.
        point: (3,) point on this link, in its frame, in [m].

    Returns:
        (..., 6), in [m/s] and [rad/s].

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> V = twin.kinematics.velocity(robot, [0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0])
        >>> V.round(4).tolist()
        [0.0, 0.515, 0.0, 0.0, 0.0, 1.0]
    """
    q, qd = joint_vectors(robot, q=q, qd=qd)
    return np.einsum("...ij,...j->...i", jacobian(robot, q, T_flange_tool, link=link, point=point), qd)


def acceleration(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    T_flange_tool: ArrayLike | None = None,
    *,
    link: str | None = None,
    point: ArrayLike | None = None,
) -> np.ndarray:
    """Return the rate `[vd; omegad]` of `velocity`, in the base frame and without gravity.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].
        qdd: (..., n) joint accelerations, in [rad/s^2].
        T_flange_tool: (4, 4) pose of the tool on the flange.
        link: name of a link, whose frame is used instead of the tool's.
        point: (3,) point on this link, in its frame, in [m].

    Returns:
        (..., 6), in [m/s^2] and [rad/s^2].

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> q, qd, qdd = [0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0]
        >>> twin.kinematics.acceleration(robot, q, qd, qdd).round(4).tolist()
        [-0.515, 1.03, 0.0, 0.0, 0.0, 2.0]
    """
    q, qd, qdd = joint_vectors(robot, q=q, qd=qd, qdd=qdd)
    J = jacobian(robot, q, T_flange_tool, link=link, point=point)
    Jd = jacobian_dot(robot, q, qd, T_flange_tool, link=link, point=point)
    return np.einsum("...ij,...j->...i", J, qdd) + np.einsum("...ij,...j->...i", Jd, qd)


def _on_link(
    robot: Robot, link: str | None, point: ArrayLike | None, T_flange_tool: ArrayLike | None
) -> tuple[Robot, np.ndarray]:
    """Return the robot with its flange on a link, and the pose (4, 4) of the point's frame on it."""
    if link is None or T_flange_tool is not None:
        raise ValueError("expected link, or link and point, or T_flange_tool alone")
    T = np.eye(4)
    if point is not None:
        p = real_array(point, "point")
        if p.shape != (3,) or not np.all(np.isfinite(p)):
            raise ValueError(f"expected point to be 3 finite numbers, got {p.tolist()}")
        T[:3, 3] = p
    frame = robot.frame_of(link)
    return robot.with_flange_on(frame.joint), frame.T @ T


def tool_pose(T_flange_tool: ArrayLike | None, name: str = "T_flange_tool") -> np.ndarray:
    """Return the checked pose (4, 4) of a tool on the flange; the flange itself for `None`."""
    if T_flange_tool is None:
        return FLANGE
    T = np.array(real_array(T_flange_tool, name))
    if T.shape != (4, 4):
        raise ValueError(f"expected {name} of shape (4, 4), got {T.shape}")
    return rigid_poses(T, name)


class LastTool:
    """Pose of a tool that is used again and again, checked once if nobody can write to it.

    The check takes longer than a step of an engine.

    Example:
        >>> import numpy as np
        >>> from twin.physics.kinematics.forward import LastTool
        >>> tool, pose = LastTool(), np.eye(4)
        >>> pose.setflags(write=False)
        >>> tool(pose) is tool(pose)
        True
    """

    def __init__(self) -> None:
        self._given: ArrayLike | None = None
        self._checked = FLANGE

    def __call__(self, T_flange_tool: ArrayLike | None) -> np.ndarray:
        """Return the checked pose (4, 4); the flange itself for `None`."""
        fixed = isinstance(T_flange_tool, np.ndarray) and not T_flange_tool.flags.writeable
        if T_flange_tool is not self._given or not fixed:
            self._given, self._checked = T_flange_tool, tool_pose(T_flange_tool)
        return self._checked


def base_in_object(T_world_base: ArrayLike | None, T_world_object: ArrayLike | None) -> np.ndarray:
    """Return the pose (4, 4) of the base in an object's frame; `None` stands for the world's frame."""
    T = tool_pose(T_world_base, "T_world_base")
    return T if T_world_object is None else np.linalg.inv(tool_pose(T_world_object, "T_world_object")) @ T


def link_poses(robot: Robot, q: ArrayLike) -> np.ndarray:
    """Return the pose of every moving link in the base frame, passive links of closed loops included.

    Args:
        robot: the robot.
        q: (..., n) joint positions, in [rad].

    Returns:
        (..., n_tree, 4, 4) `T_base_link`, in the order of the tree's joints, lengths in [m].

    Raises:
        ValueError: q is not (..., n).

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> T = twin.kinematics.link_poses(robot, robot.poses["zero"])
        >>> T[2, :3, 3].round(4).tolist()  # joint 3, 0.36 m above joint 2
        [0.07, 0.0, 0.712]
    """
    (q,) = joint_vectors(robot, q=q)
    q_tree = robot.tree_positions(q)
    frames = world_frames(robot.tree, placements(robot.tree, list(np.moveaxis(q_tree, -1, 0)), np))
    T = np.zeros((*q_tree.shape, 4, 4))
    T[..., 3, 3] = 1.0
    for link, (R, origin) in enumerate(zip(frames.R, frames.o, strict=True)):
        for row in range(3):
            T[..., link, row, 3] = origin[row]
            for column in range(3):
                T[..., link, row, column] = R[row][column]
    return T

"""Inverse kinematics by iteration, for robots without a closed form and of any number of joints.

Least squares by Levenberg and Marquardt: with e the error of the pose, position in lengths of the arm and
orientation as a rotation vector, each step solves

    (J^T J + damping I) dq = J^T e,    damping = |e|^2 / 2

The damping keeps steps finite in singular configurations and fades on the way to the solution, so that the
last steps are Newton's and end at round-off.  Joints are held within their limits: one that a step would
take beyond is moved to its limit, and held there while the error would drive it outwards.  If a start
fails, random starts follow, the same for every pose.

All poses of a batch step together, each with its own damping and until its own end, so that each has the same
solution as alone, to the bit.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from twin.base.arrays import Floats
from twin.base.errors import UnreachableError
from twin.physics.kinematics.forward import tool_pose
from twin.physics.robot.evaluation import evaluate, joint_vectors
from twin.physics.robot.limits import folded
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import unit_doubt
from twin.physics.rotations.rotations import rigid_poses

STEPS = 200
"""The most steps from one start; ten are common, some dozens at full stretch, where convergence is linear."""

LEAST_ERROR = 1e-12
"""Error of the least damping, so that round-off does not move singular joints."""


def numerical_inverse_kinematics(
    robot: Robot,
    T_base_tool: ArrayLike,
    *,
    near: ArrayLike | None = None,
    T_flange_tool: ArrayLike | None = None,
    limits: bool = True,
    restarts: int = 50,
    seed: int = 0,
    tolerance: float = 1e-12,
) -> Floats:
    """Return joint angles that reach a tool pose.

    It is the solution of the first successful start, from `near` if possible, which is often but
    not always the nearest.  An arm of fewer than six joints reaches few poses; one of more has many
    solutions.

    Args:
        robot: the robot, of any number of joints, revolute or prismatic.
        T_base_tool: (..., 4, 4) tool poses in the base frame, positions in [m].
        near: (..., n) joint angles to start from, in [rad]; the middle of the joint ranges by default.
        T_flange_tool: (4, 4) pose of the tool on the flange.
        limits: whether joint limits apply, including those between joints (ranges of passive joints).
        restarts: largest number of random starts.
        seed: seed of the random starts.
        tolerance: the largest error of position over the arm's length, and of orientation in [rad].

    Returns:
        (..., n) joint angles, in [rad].

    Raises:
        UnreachableError: no start succeeds; the message contains the pose and the best error.  It is no proof
            that there is no solution.
        ValueError: an array of the wrong shape, not finite, or a pose that is not rigid.

    Example:
        >>> import twin
        >>> robot, q = twin.load("irb140"), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
        >>> T = twin.forward_kinematics(robot, q)
        >>> twin.numerical_inverse_kinematics(robot, T, near=[0, 0, 0, 0, 0.2, 0]).round(4).tolist()
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]

    Source: Sugihara 2011, "Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method".
    """
    T, tool = rigid_poses(T_base_tool, "T_base_tool"), tool_pose(T_flange_tool)
    low = np.array(robot.q_min) if limits else np.full(robot.n, -np.inf)
    high = np.array(robot.q_max) if limits else np.full(robot.n, np.inf)
    if near is None:
        bounded = np.isfinite(low) & np.isfinite(high)
        near = np.where(bounded, 0.5 * (np.where(bounded, low, 0.0) + np.where(bounded, high, 0.0)), 0.0)
    (q_near,) = joint_vectors(robot, near=near)
    batch = np.broadcast_shapes(T.shape[:-2], q_near.shape[:-1])
    T = np.broadcast_to(T, (*batch, 4, 4)).reshape(-1, 4, 4)
    starts = np.array(np.broadcast_to(q_near, (*batch, robot.n))).reshape(-1, robot.n)
    if not (restarts >= 0 and tolerance > 0.0):
        raise ValueError(
            f"expected restarts of at least 0 and a tolerance above 0, got {restarts}, {tolerance}"
        )

    length, rng = arm_length(robot, tool), np.random.default_rng(seed)
    q, least, unsolved = starts.copy(), np.full(len(T), np.inf), np.arange(len(T))
    for attempt in range(restarts + 1):
        if attempt > 0:
            starts[unsolved] = _random_start(rng, low, high)
        start = np.clip(starts[unsolved], low, high)
        found, error = _descend(robot, T[unsolved], tool, start, low, high, length)
        better = error < least[unsolved]
        if limits:
            better &= ~folded(robot, found).any(axis=-1)
        q[unsolved[better]], least[unsolved[better]] = found[better], error[better]
        unsolved = unsolved[~(least[unsolved] <= tolerance)]
        if not len(unsolved):
            return q.reshape(*batch, robot.n)
    first = unsolved[0]
    at = f"sample {list(map(int, np.unravel_index(first, batch)))}: " if batch else ""
    raise UnreachableError(at + _failure(robot, T[first], tool, q[first], low, high, restarts + 1))


def _descend(
    robot: Robot, T: Floats, tool: Floats, q: Floats, low: Floats, high: Floats, length: float
) -> tuple[Floats, Floats]:
    """Return the results (N, n) of the iterations, and the largest component (N,) of each error.

    T is (N, 4, 4); the poses step together, and those that are done leave.
    """
    scale = np.array([1.0 / length] * 3 + [1.0] * 3)
    q, error = q.copy(), _pose_error(robot, T, tool, q) * scale
    raised, going = np.ones(len(q)), np.arange(len(q))
    for _ in range(STEPS):
        if not len(going):
            break
        q_now, e, square = q[going], error[going], np.sum(error[going] ** 2, axis=1)
        J = evaluate(robot.kernels.jacobian_batch, (q_now,), (tool,), (6, robot.n)) * scale[:, None]
        gradient = np.sum(J * e[:, :, None], axis=1)
        held = ((q_now <= low) & (gradient < 0.0)) | ((q_now >= high) & (gradient > 0.0))
        damping = 0.5 * raised * np.maximum(square, LEAST_ERROR**2)
        q_next = np.clip(q_now + _step(np.where(held[:, None], 0.0, J), e, damping), low, high)
        e_next = _pose_error(robot, T[going], tool, q_next) * scale
        better = np.sum(e_next**2, axis=1) < square
        done = ~better & ((raised > 1e6) | (square < 1e-30))  # no descent, or round-off
        q[going[better]], error[going[better]] = q_next[better], e_next[better]
        raised = np.where(better, np.maximum(raised / 4.0, 1.0), raised * 10.0)[~done]
        going = going[~done]
    return q, np.max(np.abs(error), axis=1)


def _step(J: Floats, error: Floats, damping: Floats) -> np.ndarray:
    """Return the damped steps (N, n), exactly 0 where a column of J (N, 6, n) is 0.

    They are least squares of J with the root of the damping below it, by QR, which does not square J.
    """
    N, rows, n = J.shape
    stacked = np.zeros((N, rows + n, n + 1))
    stacked[:, :rows, :n], stacked[:, :rows, n] = J, error
    stacked[:, rows + np.arange(n), np.arange(n)] = np.sqrt(damping)[:, None]
    R = np.asarray(np.linalg.qr(stacked, mode="r"))
    return np.linalg.solve(R[:, :n, :n], R[:, :n, n:])[..., 0]


def _pose_error(robot: Robot, T: Floats, tool: Floats, q: Floats) -> Floats:
    """Return displacements and rotation vectors (N, 6) from the poses of q to T, base axes, in [m, rad]."""
    there = evaluate(robot.kernels.tool_pose_batch, (q,), (tool,), (4, 4))
    turn = Rotation.from_matrix(T[:, :3, :3] @ np.swapaxes(there[:, :3, :3], 1, 2)).as_rotvec()
    return np.concatenate([T[:, :3, 3] - there[:, :3, 3], turn], axis=1)


def arm_length(robot: Robot, tool: Floats) -> float:
    """Return the unit of positions: the summed distances from joint to joint and to the tool, in [m]."""
    tree = robot.tree
    ways = [tree.T_parent_joint[joint, :3, 3] for joint in tree.carriers(tree.flange_joint)]
    total = sum(float(np.linalg.norm(way)) for way in (*ways, (tree.T_joint_flange @ tool)[:3, 3]))
    return total if total > 0.0 else 1.0


def _random_start(rng: np.random.Generator, low: Floats, high: Floats) -> Floats:
    """Return random joint angles (n,) within the limits, or within a turn about 0 without limits."""
    return rng.uniform(np.where(np.isfinite(low), low, -np.pi), np.where(np.isfinite(high), high, np.pi))


def _failure(robot: Robot, T: Floats, tool: Floats, q: Floats, low: Floats, high: Floats, starts: int) -> str:
    """Return a sentence with the unreached pose, the best error, and the joints at their limits."""
    error = _pose_error(robot, T[None], tool, q[None])[0]
    stopped = [name for name, at in zip(robot.joint_names, (q <= low) | (q >= high), strict=True) if at]
    held = f", with {', '.join(stopped)} at a limit" if stopped else ""
    x, y, z = T[:3, 3]
    return (
        f"no joint angles found for the tool pose at x = {x:.6g} m, y = {y:.6g} m, z = {z:.6g} m: "
        f"of {starts} starts the best comes within {np.linalg.norm(error[:3]):.3g} m and "
        f"{np.rad2deg(np.linalg.norm(error[3:])):.3g} deg{held}"
        f"{unit_doubt(T[:3, 3], arm_length(robot, tool))}"
    )

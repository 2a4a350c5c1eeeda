"""Inverse kinematics by iteration, for robots without a closed form and of any number of joints.

Least squares by Levenberg and Marquardt: with e the error of the pose, position in lengths of the arm and
orientation as a rotation vector, each step solves

    (J^T J + damping I) dq = J^T e,    damping = |e|^2 / 2

The damping keeps steps finite in singular configurations and fades on the way to the solution, so that the
last steps are Newton's and end at round-off.  Joints are held within their limits: one that a step would
take beyond is put onto its limit, and left there while the error would drive it on outwards.  What a start
does not lead to, another may: random starts follow, the same ones every time.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from twin.batch import joint_vectors
from twin.errors import LimitError, UnreachableError
from twin.kinematics import forward_kinematics, jacobian, tool_pose
from twin.limits import Floats, check_folding
from twin.robot import Robot
from twin.rotations import float_array

STEPS = 200
"""The most steps from one start; ten are common, some dozens at full stretch, where convergence is linear."""

RIGID_TOLERANCE = 1e-9
"""How far a given pose may be from rigid; its solutions meet the nearest rotation to round-off."""


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

    It is the solution that the first successful start leads to: the one from `near` if possible, often but
    not always the nearest.  An arm of fewer than six joints reaches few poses; one of more has many
    solutions.

    Args:
        robot: the robot, of any number of joints, revolute or prismatic.
        T_base_tool: (..., 4, 4) tool poses in the base frame, positions in [m].
        near: (..., n) joint angles to start from, in [rad]; the middle of the joint ranges by default.
        T_flange_tool: (4, 4) pose of the tool on the flange.
        limits: whether the joint limits hold, those between joints (ranges of passive joints) included.
        restarts: how many random starts may follow.
        seed: of the random starts.
        tolerance: the largest error of position over the arm's length, and of orientation in [rad].

    Returns:
        (..., n) joint angles, in [rad].

    Raises:
        UnreachableError: no start leads there; with the pose, and how near the best came.  It is no proof
            that there is no solution.
        ValueError: an array of the wrong shape, not finite, or a pose that is not rigid.

    Source: Sugihara 2011, "Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method".
    """
    T, tool = _poses(T_base_tool), tool_pose(T_flange_tool)
    low = np.array(robot.q_min) if limits else np.full(robot.n, -np.inf)
    high = np.array(robot.q_max) if limits else np.full(robot.n, np.inf)
    if near is None:
        bounded = np.isfinite(low) & np.isfinite(high)
        near = np.where(bounded, 0.5 * (np.where(bounded, low, 0.0) + np.where(bounded, high, 0.0)), 0.0)
    (q_near,) = joint_vectors(robot, near=near)
    batch = np.broadcast_shapes(T.shape[:-2], q_near.shape[:-1])
    T = np.broadcast_to(T, (*batch, 4, 4)).reshape(-1, 4, 4)
    starts = np.broadcast_to(q_near, (*batch, robot.n)).reshape(-1, robot.n)
    if not (restarts >= 0 and tolerance > 0.0):
        raise ValueError(
            f"expected restarts of at least 0 and a tolerance above 0, got {restarts}, {tolerance}"
        )

    length = _length(robot, tool)
    q = np.empty((len(T), robot.n))
    for sample in range(len(T)):
        rng = np.random.default_rng(seed)
        best, least = starts[sample], np.inf
        for attempt in range(restarts + 1):
            start = starts[sample] if attempt == 0 else _random_start(rng, low, high)
            found, error = _descend(robot, T[sample], tool, np.clip(start, low, high), low, high, length)
            if error < least and not (limits and _folds(robot, found)):
                best, least = found, error
            if least <= tolerance:
                break
        if not least <= tolerance:
            at = f"sample {list(map(int, np.unravel_index(sample, batch)))}: " if batch else ""
            raise UnreachableError(at + _failure(robot, T[sample], tool, best, low, high, restarts + 1))
        q[sample] = best
    return q.reshape(*batch, robot.n)


def _descend(
    robot: Robot, T: Floats, tool: Floats, q: Floats, low: Floats, high: Floats, length: float
) -> tuple[Floats, float]:
    """Return the joint angles at which the iteration ends, and the largest component of their error."""
    scale = np.array([1.0 / length] * 3 + [1.0] * 3)
    error = _pose_error(robot, T, tool, q) * scale
    square, raised = error @ error, 1.0
    for _ in range(STEPS):
        J = jacobian(robot, q, tool) * scale[:, None]
        gradient = J.T @ error
        held = ((q <= low) & (gradient < 0.0)) | ((q >= high) & (gradient > 0.0))
        step = np.zeros_like(q)
        free = J[:, ~held]
        # Solved as least squares of J and the root of the damping below it, which does not square J.
        root = np.sqrt(0.5 * raised * square)
        stacked = np.vstack([free, root * np.eye(free.shape[1])])
        step[~held] = np.linalg.lstsq(stacked, np.concatenate([error, np.zeros(free.shape[1])]), rcond=None)[
            0
        ]
        q_next = np.clip(q + step, low, high)
        error_next = _pose_error(robot, T, tool, q_next) * scale
        square_next = error_next @ error_next
        if square_next < square:
            q, error, square, raised = q_next, error_next, square_next, max(raised / 4.0, 1.0)
        elif raised > 1e6 or square < 1e-30:
            break  # no way down, or round-off
        else:
            raised *= 10.0
    return q, float(np.max(np.abs(error)))


def _pose_error(robot: Robot, T: Floats, tool: Floats, q: Floats) -> Floats:
    """Return the way and the rotation vector (6,) from the pose of q to T, base axes, in [m] and [rad]."""
    there = forward_kinematics(robot, q, tool)
    turn = Rotation.from_matrix(T[:3, :3] @ there[:3, :3].T).as_rotvec()
    return np.concatenate([T[:3, 3] - there[:3, 3], turn])


def _folds(robot: Robot, q: Floats) -> bool:
    """Return whether joint angles bring a passive joint beyond its range."""
    try:
        check_folding(robot, q)
    except LimitError:
        return True
    return False


def _length(robot: Robot, tool: Floats) -> float:
    """Return the length of the way from joint to joint to the tool, in [m]: the unit of position errors."""
    tree = robot.tree
    ways = [tree.T_parent_joint[joint, :3, 3] for joint in tree.carriers(tree.flange_joint)]
    total = sum(float(np.linalg.norm(way)) for way in (*ways, (tree.T_joint_flange @ tool)[:3, 3]))
    return total if total > 0.0 else 1.0


def _random_start(rng: np.random.Generator, low: Floats, high: Floats) -> Floats:
    """Return random joint angles (n,) within the limits; where there is none, within a turn about 0."""
    return rng.uniform(np.where(np.isfinite(low), low, -np.pi), np.where(np.isfinite(high), high, np.pi))


def _poses(T_base_tool: ArrayLike) -> Floats:
    """Return the checked poses (..., 4, 4)."""
    T = float_array(T_base_tool, "T_base_tool", (4, 4))
    if not np.all(np.isfinite(T)):
        raise ValueError("expected T_base_tool to be finite")
    R = T[..., :3, :3].reshape(-1, 3, 3)
    if not np.all(np.linalg.det(R) > 0.0):
        raise ValueError("expected T_base_tool to be rigid: its rotation is not right-handed")
    deviation = np.max(np.abs(R @ np.swapaxes(R, 1, 2) - np.eye(3)), initial=0.0)
    deviation = max(deviation, np.max(np.abs(T[..., 3, :] - (0.0, 0.0, 0.0, 1.0)), initial=0.0))
    if not deviation <= RIGID_TOLERANCE:
        raise ValueError(
            f"expected T_base_tool to be rigid within {RIGID_TOLERANCE:g} (a rotation, last row 0 0 0 1), "
            f"got a deviation of {deviation:.3g}"
        )
    return T


def _failure(robot: Robot, T: Floats, tool: Floats, q: Floats, low: Floats, high: Floats, starts: int) -> str:
    """Return what was not reached, how near the best came, and which joints stopped it."""
    error = _pose_error(robot, T, tool, q)
    stopped = [name for name, at in zip(robot.joint_names, (q <= low) | (q >= high), strict=True) if at]
    held = f", with {', '.join(stopped)} at a limit" if stopped else ""
    x, y, z = T[:3, 3]
    return (
        f"no joint angles found for the tool pose at x = {x:.6g} m, y = {y:.6g} m, z = {z:.6g} m: "
        f"of {starts} starts the best comes within {np.linalg.norm(error[:3]):.3g} m and "
        f"{np.rad2deg(np.linalg.norm(error[3:])):.3g} deg{held}"
    )

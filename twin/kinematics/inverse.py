"""Inverse kinematics: the joint angles that reach a tool pose, of an arm with a spherical wrist.

Here are the rules, checks and broadcasting; the solution itself is in `twin.kinematics.spherical_wrist`.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.arrays import real_array
from twin.jit import compiled
from twin.kinematics.arm_family import arm_constants
from twin.kinematics.forward import tool_pose
from twin.kinematics.free_angles import NOISE_TOLERANCE, solve
from twin.kinematics.joint_turns import choose_nearest
from twin.kinematics.spherical_wrist import SINGULAR_TOLERANCE
from twin.robot.evaluation import WORTH_A_THREAD, joint_vectors
from twin.robot.robot import Robot
from twin.spatial.rotations import RIGID_TOLERANCE, rigid_poses, rigidity_error
from twin.threads import in_chunks

BRANCHES = tuple(
    f"wrist centre {axis_1} axis 1, {lower_arm} the lower arm, axis 5 {axis_5}"
    for axis_1 in ("in front of", "behind")
    for lower_arm in ("in front of", "behind")
    for axis_5 in ("positive", "negative")
)
"""What each of the eight rows is, in words; the row is the number `cfx` of RAPID's `confdata`."""

_rigidity_error = compiled(rigidity_error)


def inverse_kinematics(
    robot: Robot,
    T_base_tool: ArrayLike,
    *,
    T_flange_tool: ArrayLike | None = None,
    limits: bool = True,
    near: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Return the joint angles that reach a tool pose: all eight solutions, or the one nearest to `near`.

    Row `4 * rear + 2 * elbow + wrist` of the result, as RAPID's `cfx` (`BRANCHES` has the words):

    - rear: 0 wrist centre in front of axis 1, on the side to which axis 1 turns the arm; 1 behind it.
    - elbow: 0 wrist centre in front of the lower arm, where the forearm points at q = 0; 1 behind it.
    - wrist: 0 axis 5 positive (DH angle theta_5 in [0, pi]); 1 negative.

    A row is NaN where there is no solution or a limit forbids it. Without `near` every other row meets the
    pose to round-off, 1e-15 and at singularities 1e-13, in [m] and [1]. At a singularity, where some angles
    are free, these rules hold:

    - shoulder (wrist centre on axis 1): q1 keeps near's value, or is 0 without `near`;
    - wrist (axes 4 and 6 in line): q4 keeps near's value, or is 0 without `near`;
    - elbow (arm fully stretched or folded): both elbow rows hold the same angles;
    - wrist centre on axis 2 (only where `|a2| = hypot(a3, d4)`): q2 keeps near's value, or is 0 without
      `near`.

    A value taken from near that lies outside its limits is moved onto the nearer one first. Where limits
    forbid a row with q1, q2 or q4 so, the first is taken that they allow of the values 15, -15, 30, ..., 180
    degrees further, and of the two q1 that bring axis 6 into the plane of the arm.

    A singularity is met without `near` within 1e-13: the sine of axis 5, the distance of the wrist centre
    over the length of the stretched arm. With `near` it is 1e-8, below which a pose of nine decimals, as
    measured or printed, says nothing of the free angle; keeping that of near then misses the pose by no more
    than that sine in [rad] or distance in [m].

    Each angle is the representative modulo 2 pi nearest to near's, without `near` the one in (-pi, pi]; with
    `limits`, the nearest to that among those within `[q_min, q_max]`. The nearest solution has the least sum
    of squared joint differences, in [rad^2], over these representatives; among equals it is the lowest row.

    Args:
        robot: the arm; its DH table and joint limits are used.
        T_base_tool: (..., 4, 4) tool poses in the base frame, positions in [m].
        T_flange_tool: (4, 4) pose of the tool in the flange frame; None means the flange itself.
        limits: whether the joint limits hold, those between joints (ranges of passive joints) included.
        near: (..., 6) joint angles in [rad] to stay close to; broadcasts against the poses.

    Returns:
        (..., 8, 6) joint angles in [rad]; with `near` (..., 6), NaN if there is no solution.

    Raises:
        ValueError: an array of the wrong shape, a pose that is not rigid within 1e-9 (or NaN), a NaN in near.
        RobotError: the arm has no DH table, or one outside the family above.
    """
    limits = bool(limits)
    if near is None and T_flange_tool is None and type(T_base_tool) is np.ndarray:
        q = np.empty((8, 6))
        try:
            if _one_pose(T_base_tool, _packed(robot, limits), q):
                return q
        except TypeError:  # no C-contiguous array of float64: the long way copies it, or says what is wrong
            pass
    constants = _constants(robot, limits)
    T = _poses(T_base_tool)
    if T_flange_tool is not None:
        T = T @ np.linalg.inv(tool_pose(T_flange_tool))
    if near is None:
        q = np.empty((*T.shape[:-2], 8, 6))
        _solve(T.reshape(-1, 4, 4), constants, SINGULAR_TOLERANCE, q.reshape(-1, 8, 6))
        return q

    (q_near,) = joint_vectors(robot, near=near)
    batch = np.broadcast_shapes(T.shape[:-2], q_near.shape[:-1])
    # Copies, all writable and contiguous: the kernel is compiled once for each combination of array types.
    T = np.array(np.broadcast_to(T, (*batch, 4, 4)), order="C").reshape(-1, 4, 4)
    q_near = np.array(np.broadcast_to(q_near, (*batch, 6)), order="C").reshape(-1, 6)
    arm, theta0, inverse_S, bounds, _, _, folding = constants
    theta_free = np.clip(q_near, *bounds) @ robot.dh_coupling.T + theta0
    q, nearest = np.empty((len(T), 8, 6)), np.empty((len(T), 6))
    _solve(T, (arm, theta0, inverse_S, bounds, theta_free, q_near, folding), NOISE_TOLERANCE, q)
    choose_nearest(q, q_near, nearest)
    return nearest.reshape(*batch, 6)


@lru_cache(maxsize=32)
def _constants(robot: Robot, limits: bool) -> tuple[NDArray[np.float64], ...]:
    """Return what `solve` asks for between the poses and the result, for solutions near q = 0."""
    arm, theta0, inverse_S = arm_constants(robot)
    bounds, folding = np.array([[-np.inf] * 6, [np.inf] * 6]), np.empty((0, 9))
    if limits:
        passive = list(robot.passive)
        bounds = np.array([robot.q_min, robot.q_max])
        ranges = robot.embedding_offset[passive], robot.passive_min, robot.passive_max
        folding = np.ascontiguousarray(np.column_stack([robot.embedding[passive], *ranges]))
    q_near = np.zeros((1, 6))
    theta_free = np.clip(q_near, *bounds) @ robot.dh_coupling.T + theta0
    return arm, theta0, inverse_S, bounds, theta_free, q_near, folding


@lru_cache(maxsize=32)
def _packed(robot: Robot, limits: bool) -> NDArray[np.float64]:
    """Return these one after the other: each array that is handed over costs a tenth of a microsecond."""
    packed = np.concatenate([array.ravel() for array in _constants(robot, limits)])
    _one_pose(np.eye(4), packed, np.empty((8, 6)))
    if hasattr(_one_pose, "disable_compile"):
        _one_pose.disable_compile()  # for arrays of other types
    return packed


def _solve(
    T: NDArray[np.float64],
    constants: tuple[NDArray[np.float64], ...],
    tolerance: float,
    q: NDArray[np.float64],
) -> None:
    """Fill q (N, 8, 6) with the solutions of poses (N, 4, 4), shared between the cores."""
    *fixed, theta_free, q_near, folding = constants

    def work(part: slice) -> None:
        own = [rows[part] if len(rows) > 1 else rows for rows in (theta_free, q_near)]
        solve(T[part], *fixed, *own, folding, tolerance, q[part])

    in_chunks(work, len(T), WORTH_A_THREAD)


def _poses(T_base_tool: ArrayLike) -> NDArray[np.float64]:
    """Return T_base_tool as an array of rigid poses of shape (..., 4, 4), writable and C-contiguous."""
    T = real_array(T_base_tool, "T_base_tool")
    if T.shape[-2:] == (4, 4):
        if not T.flags.carray:
            T = np.array(T, order="C")
        if _all_rigid(T.reshape(-1, 4, 4)):
            return T
    return rigid_poses(T, "T_base_tool")


@compiled
def _one_pose(T, packed, q):
    """Fill q (8, 6) with the solutions of one pose; false, and nothing is done, if it is no pose (4, 4)."""
    if T.shape != (4, 4) or not _rigidity_error(T) <= RIGID_TOLERANCE:
        return False
    arm, theta0, inverse_S = packed[:8], packed[8:14], packed[14:50].reshape(6, 6)
    bounds, theta_free, q_near = packed[50:62].reshape(2, 6), packed[62:68], packed[68:74]
    folding = packed[74:].reshape((len(packed) - 74) // 9, 9)
    one = T.reshape(1, 4, 4), theta_free.reshape(1, 6), q_near.reshape(1, 6), q.reshape(1, 8, 6)
    solve(one[0], arm, theta0, inverse_S, bounds, one[1], one[2], folding, SINGULAR_TOLERANCE, one[3])
    return True


@compiled
def _all_rigid(T):
    """Return whether poses (N, 4, 4) are rigid and finite."""
    rigid = True
    for pose in range(len(T)):
        rigid = rigid and _rigidity_error(T[pose]) <= RIGID_TOLERANCE
    return rigid

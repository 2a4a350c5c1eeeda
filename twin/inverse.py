"""Inverse kinematics: the joint angles that reach a tool pose, of an arm with a spherical wrist.

Here are the rules, checks and broadcasting; the solution itself is in `twin.spherical_wrist`.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin import spherical_wrist
from twin.arm_family import arm_constants
from twin.batch import joint_vectors
from twin.kernel_cache import compiled
from twin.kinematics import tool_pose
from twin.robot import Robot

BRANCHES = tuple(
    f"wrist centre {axis_1} axis 1, {lower_arm} the lower arm, axis 5 {axis_5}"
    for axis_1 in ("in front of", "behind")
    for lower_arm in ("in front of", "behind")
    for axis_5 in ("positive", "negative")
)
"""What each of the eight rows is, in words; the row is the number `cfx` of RAPID's `confdata`."""

RIGID_TOLERANCE = 1e-9
"""How far a given pose may be from rigid, deviations added up; its solutions can meet it no better."""


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

    A row is NaN where there is no solution or a limit forbids it. Every other row meets the pose to
    round-off, however near a singularity. At a singularity, where some angles are free, these rules hold:

    - shoulder (wrist centre on axis 1): q1 keeps near's value, or is 0 without `near`;
    - wrist (axes 4 and 6 in line): q4 keeps near's value, or is 0 without `near`;
    - elbow (arm fully stretched or folded): both elbow rows hold the same angles;
    - wrist centre on axis 2 (only where |a2| = hypot(a3, d4)): q2 keeps near's value, or is 0 without `near`.

    A value taken from near that lies outside its limits is moved onto the nearer one first.

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
    arm, theta0, inverse_S = arm_constants(robot)
    T = _poses(T_base_tool)
    if T_flange_tool is not None:
        T = T @ np.linalg.inv(tool_pose(T_flange_tool))
    (q_near,) = joint_vectors(robot, near=np.zeros(6) if near is None else near)

    # Copies, all writable and contiguous: the kernel is compiled once for each combination of array types.
    batch = np.broadcast_shapes(T.shape[:-2], q_near.shape[:-1])
    T = np.array(np.broadcast_to(T, (*batch, 4, 4)), order="C").reshape(-1, 4, 4)
    q_near = np.array(np.broadcast_to(q_near, (*batch, 6)), order="C").reshape(-1, 6)
    q_max = np.array(robot.q_max) if limits else np.full(6, np.inf)
    q_min = np.array(robot.q_min) if limits else -q_max
    theta_free = np.clip(q_near, q_min, q_max) @ robot.S.T + theta0

    q = np.empty((len(T), 8, 6))
    spherical_wrist.solve(T, arm, theta0, inverse_S, theta_free, q_near, q_min, q_max, q)
    if limits and robot.passive:
        _drop_folded(robot, q)
    if near is None:
        return q.reshape(*batch, 8, 6)
    nearest = np.empty((len(T), 6))
    spherical_wrist.choose_nearest(q, q_near, nearest)
    return nearest.reshape(*batch, 6)


def _drop_folded(robot: Robot, q: NDArray[np.float64]) -> None:
    """Put NaN into the rows of q (N, 8, 6) that bring a passive joint beyond its range."""
    angles, slack = robot.passive_angles(q), spherical_wrist.LIMIT_TOLERANCE
    inside = (angles >= robot.passive_min - slack) & (angles <= robot.passive_max + slack)
    q[~inside.all(axis=-1)] = np.nan


def _poses(T_base_tool: ArrayLike) -> NDArray[np.float64]:
    """Return T_base_tool as an array of rigid poses of shape (..., 4, 4)."""
    T = np.array(T_base_tool, dtype=np.float64, order="C")
    if T.shape[-2:] != (4, 4):
        raise ValueError(f"expected T_base_tool of shape (..., 4, 4), got {T.shape}")
    finite = np.isfinite(T)
    if not np.all(finite):
        where = np.argwhere(~finite)[0]
        raise ValueError(f"expected T_base_tool to be finite, got {T[tuple(where)]} at {where.tolist()}")
    errors = _rigidity_errors(T.reshape(-1, 4, 4)).reshape(T.shape[:-2])
    wrong = np.argwhere(~(errors <= RIGID_TOLERANCE))
    if len(wrong):
        where, deviation = wrong[0].tolist(), errors[tuple(wrong[0])]
        raise ValueError(
            f"expected T_base_tool{where or ''} to be rigid within {RIGID_TOLERANCE:g} (a right-handed "
            f"rotation, last row 0 0 0 1), got a deviation of {deviation:.3g}"
        )
    return T


@compiled
def _rigidity_errors(T):
    """Return (N,) how far poses (N, 4, 4) are from rigid, as a sum of deviations."""
    errors = np.empty(len(T))
    for n in range(len(T)):
        R = T[n]
        error = abs(R[3, 0]) + abs(R[3, 1]) + abs(R[3, 2]) + abs(R[3, 3] - 1.0)
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            # Row i is a unit vector and the cross product of the next two.
            error += abs(R[i, 0] ** 2 + R[i, 1] ** 2 + R[i, 2] ** 2 - 1.0)
            for c in range(3):
                d, e = (c + 1) % 3, (c + 2) % 3
                error += abs(R[i, c] - (R[j, d] * R[k, e] - R[j, e] * R[k, d]))
        errors[n] = error
    return errors

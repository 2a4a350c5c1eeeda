"""Inverse kinematics: the joint angles that reach a tool pose, in closed form or by iteration.

For an arm with a spherical wrist, here are the rules, checks and broadcasting; the solution itself is in
`twin.kinematics.spherical_wrist`.

Iteration serves robots without a closed form and of any number of joints.  It is least squares by Levenberg
and Marquardt: with e the error of the pose, position in lengths of the arm and orientation as a rotation
vector, each step solves

    (J^T J + damping I) dq = J^T e,    damping = |e|^2 / 2

The damping keeps steps finite in singular configurations and fades on the way to the solution, so that the
last steps are Newton's and end at round-off.  Joints are held within their limits: one that a step would
take beyond is moved to its limit, and held there while the error would drive it outwards.  If a start
fails, random starts follow, the same for every pose.

All poses of a batch step together, each with its own damping and until its own end, so that each has the same
solution as alone, to the bit.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from twin.base.arrays import Floats, real_array
from twin.base.errors import RobotError, UnreachableError
from twin.base.jit import compiled
from twin.base.threads import in_chunks
from twin.physics.kinematics import spherical_wrist
from twin.physics.kinematics.dh_fit import family_dh, fitted_dh
from twin.physics.kinematics.forward import base_in_object, forward_kinematics, jacobian, tool_pose
from twin.physics.kinematics.spherical_wrist import NOISE_TOLERANCE, SINGULAR_TOLERANCE, choose_nearest, solve
from twin.physics.robot.evaluation import WORTH_A_THREAD, evaluate, joint_vectors
from twin.physics.robot.limits import folded
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import unit_doubt
from twin.physics.rotations.rotations import (
    RIGID_TOLERANCE,
    float_array,
    rigid_poses,
    rigidity_error,
    rotation_matrices,
)


@lru_cache(maxsize=16)
def arm_constants(robot: "Robot") -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the constants of an arm of the family for the kernel.

    They are cached for the last robots, which are immutable, because the checks cost as much as twenty poses.

    Args:
        robot: any robot.

    Returns:
        arm: (9,) d1, a1, a2, d6 and the forearm's length hypot(a3, d4) in [m]; the forearm's direction in
            frame 3, seen in the arm's plane, in [rad]; sin alpha_3; -sin alpha_4; d2 + d3 in [m].
        theta0: (6,) DH angles at q = 0, in [rad].
        inverse_S: (6, 6) inverse of the matrix S in theta = S q + theta0, whole numbers.

    Raises:
        RobotError: the arm, or its DH table, is outside the family; the message names the axes or the entry.
    """
    dh, S = family_dh(robot)
    outside = f"robot {robot.name!r} is outside the family of closed-form inverse kinematics:"
    if len(dh.d) != 6:
        raise RobotError(f"{outside} it has {len(dh.d)} DH rows, expected 6")
    if "prismatic" in robot.joint_kinds:
        raise RobotError(f"{outside} joint {robot.joint_kinds.index('prismatic') + 1} is prismatic")
    right = math.pi / 2
    allowed = {
        "alpha": ((-right,), (0.0,), (-right, right), (-right, right), (-dh.alpha[3],), (0.0,)),
        "a": (None, None, None, (0.0,), (0.0,), (0.0,)),
        "d": (None, None, None, None, (0.0,), None),
    }
    for letter, entries in allowed.items():
        for axis, (value, choices) in enumerate(zip(getattr(dh, letter), entries, strict=True), start=1):
            if choices is None or any(abs(value - choice) <= 1e-12 for choice in choices):
                continue
            unit, scale = ("degrees", 180.0 / math.pi) if letter == "alpha" else ("m", 1.0)
            expected = " or ".join(f"{choice * scale:g}" for choice in choices)
            raise RobotError(f"{outside} DH {letter}_{axis} is {value * scale:g} {unit}, expected {expected}")
    for name, length in (("a_2", abs(dh.a[1])), ("hypot(a_3, d_4)", math.hypot(dh.a[2], dh.d[3]))):
        if not length > 0:
            raise RobotError(f"{outside} DH {name} is {length:g} m, expected more than 0")
    # Then a full turn of any DH angle is full turns of joints, and the other way round.
    if not (np.all(np.rint(S) == S) and abs(abs(np.linalg.det(S)) - 1.0) <= 1e-9):
        raise RobotError(f"{outside} S must hold whole numbers and have determinant 1 or -1")
    sigma, kappa = np.sign(dh.alpha[2]), -np.sign(dh.alpha[3])
    forearm, beta = math.hypot(dh.a[2], dh.d[3]), math.atan2(-sigma * dh.d[3], dh.a[2])
    arm = np.array([dh.d[0], dh.a[0], dh.a[1], dh.d[5], forearm, beta, sigma, kappa, dh.d[1] + dh.d[2]])
    return arm, np.array(dh.theta0), np.ascontiguousarray(np.rint(np.linalg.inv(S)))


BRANCHES = tuple(
    f"wrist centre {axis_1} axis 1, {lower_arm} the lower arm, axis 5 {axis_5}"
    for axis_1 in ("in front of", "behind")
    for lower_arm in ("in front of", "behind")
    for axis_5 in ("positive", "negative")
)
"""Description of each of the eight rows; the row is the number `cfx` of RAPID's `confdata`."""

_rigidity_error = compiled(rigidity_error)


def inverse_kinematics(
    robot: Robot,
    T_base_tool: ArrayLike,
    *,
    T_flange_tool: ArrayLike | None = None,
    T_world_base: ArrayLike | None = None,
    T_world_object: ArrayLike | None = None,
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
        robot: the arm; its DH table, or that of `twin.kinematics.fitted_dh`, and its joint limits are used.
        T_base_tool: (..., 4, 4) tool poses in the base frame, positions in [m]; those in the world, or in the
            frame of an object, if one of the next poses is given.
        T_flange_tool: (4, 4) pose of the tool in the flange frame; None means the flange itself.
        T_world_base: (4, 4) pose of the base in the world.
        T_world_object: (4, 4) pose of an object in the world, RAPID's work object.
        limits: whether joint limits apply, including those between joints (ranges of passive joints).
        near: (..., 6) joint angles in [rad] to stay close to; broadcasts against the poses.

    Returns:
        (..., 8, 6) joint angles in [rad]; with `near` (..., 6), NaN if there is no solution.

    Raises:
        ValueError: an array of the wrong shape, a pose that is not rigid within 1e-9 (or NaN), a NaN in near.
        RobotError: the arm is outside the family.

    Example:
        >>> import twin
        >>> robot, q = twin.load("irb140"), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
        >>> T = twin.forward_kinematics(robot, q)
        >>> twin.inverse_kinematics(robot, T).shape
        (8, 6)
        >>> twin.inverse_kinematics(robot, T, near=q).round(4).tolist()
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    """
    limits = bool(limits)
    placed = not (T_world_base is None and T_world_object is None)
    if robot.dh is None:
        T = _flange_poses(robot, T_base_tool, T_flange_tool, T_world_base, T_world_object)
        return _from_fit(robot, T, limits, near)
    if near is None and T_flange_tool is None and not placed and type(T_base_tool) is np.ndarray:
        q = np.empty((8, 6))
        try:
            if _one_pose(T_base_tool, _packed(robot, limits), q):
                return q
        except TypeError:  # no C-contiguous array of float64: the long way copies it, or says what is wrong
            pass
    T = _flange_poses(robot, T_base_tool, T_flange_tool, T_world_base, T_world_object)
    return _solutions(robot, T, limits, near)


def _flange_poses(
    robot: Robot,
    T_base_tool: ArrayLike,
    T_flange_tool: ArrayLike | None,
    T_world_base: ArrayLike | None,
    T_world_object: ArrayLike | None,
) -> NDArray[np.float64]:
    """Return the poses of the flange in the base frame; the arguments are those of `inverse_kinematics`."""
    arm_constants(robot)  # raises if there is no solution, whatever the poses are
    T = _poses(T_base_tool)
    if not (T_world_base is None and T_world_object is None):
        T = np.linalg.inv(base_in_object(T_world_base, T_world_object)) @ T
    return T if T_flange_tool is None else T @ np.linalg.inv(tool_pose(T_flange_tool))


POLISHING = 5
"""Largest number of Newton steps for solutions of a fitted table."""


def _from_fit(
    robot: Robot, T: NDArray[np.float64], limits: bool, near: ArrayLike | None
) -> NDArray[np.float64]:
    """Return the solutions of an arm without a DH table, for poses (..., 4, 4) of its flange.

    They are those of the table that fits its axes.  If the URDF is rounded, so that the table does not fit to
    round-off, Newton steps bring them to the poses by the kinematics of the URDF.
    """
    fit = fitted_dh(robot)
    wanted = np.linalg.inv(fit.T_base_0) @ T @ np.linalg.inv(fit.T_6_flange)
    q = _solutions(robot, np.ascontiguousarray(wanted), limits, near)
    if fit.is_exact:
        return q
    targets = T if near is not None else T[..., None, :, :]
    targets = np.broadcast_to(targets, (*q.shape[:-1], 4, 4))
    found = np.isfinite(q[..., 0])
    rows, targets = q[found], targets[found]
    for _ in range(POLISHING if len(rows) else 0):
        reached = forward_kinematics(robot, rows)
        turn = Rotation.from_matrix(targets[:, :3, :3] @ np.swapaxes(reached[:, :3, :3], -1, -2)).as_rotvec()
        error = np.concatenate([targets[:, :3, 3] - reached[:, :3, 3], turn], axis=-1)
        step = np.linalg.pinv(jacobian(robot, rows), rcond=1e-6) @ error[..., None]
        rows = rows + step[..., 0]
    q[found] = rows
    return q


def _solutions(
    robot: Robot, T: NDArray[np.float64], limits: bool, near: ArrayLike | None
) -> NDArray[np.float64]:
    """Return the solutions for poses (..., 4, 4) of DH frame 6 in frame 0."""
    constants = _constants(robot, limits)
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
    theta_free = np.clip(q_near, *bounds) @ np.linalg.inv(inverse_S).T + theta0
    q, nearest = np.empty((len(T), 8, 6)), np.empty((len(T), 6))
    _solve(T, (arm, theta0, inverse_S, bounds, theta_free, q_near, folding), NOISE_TOLERANCE, q)
    choose_nearest(q, q_near, nearest)
    return nearest.reshape(*batch, 6)


@lru_cache(maxsize=32)
def _constants(robot: Robot, limits: bool) -> tuple[NDArray[np.float64], ...]:
    """Return the arguments of `solve` between the poses and the result, for solutions near q = 0."""
    arm, theta0, inverse_S = arm_constants(robot)
    bounds, folding = np.array([[-np.inf] * 6, [np.inf] * 6]), np.empty((0, 9))
    if limits:
        passive = list(robot.passive)
        bounds = np.array([robot.q_min, robot.q_max])
        ranges = robot.embedding_offset[passive], robot.passive_min, robot.passive_max
        folding = np.ascontiguousarray(np.column_stack([robot.embedding[passive], *ranges]))
    q_near = np.zeros((1, 6))
    theta_free = np.clip(q_near, *bounds) @ np.linalg.inv(inverse_S).T + theta0
    return arm, theta0, inverse_S, bounds, theta_free, q_near, folding


@lru_cache(maxsize=32)
def _packed(robot: Robot, limits: bool) -> NDArray[np.float64]:
    """Return the constants as one array, because passing each array costs a tenth of a microsecond."""
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
    """Fill q (8, 6) with the solutions of one pose; return false, without effect, if T is no pose (4, 4)."""
    if T.shape != (4, 4) or not _rigidity_error(T) <= RIGID_TOLERANCE:
        return False
    arm, theta0, inverse_S = packed[:9], packed[9:15], packed[15:51].reshape(6, 6)
    bounds, theta_free, q_near = packed[51:63].reshape(2, 6), packed[63:69], packed[69:75]
    folding = packed[75:].reshape((len(packed) - 75) // 9, 9)
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


PRINTED_ORDER = [0, 1, 3, 2]
"""Compiled rows, `2 * rear + elbow`, in the report's order; behind axis 1 the other elbow is up."""


def main_axis_angles(robot: Robot, p_wrist: ArrayLike) -> NDArray[np.float64]:
    """Return the DH angles of the main axes that bring the wrist centre to a point: all four solutions.

    The rows are in the order of the report, after the signs of its eq. (2.33):

    - 0: wrist centre in front of axis 1, elbow up;
    - 1: in front, elbow down;
    - 2: wrist centre behind axis 1, elbow up;
    - 3: behind, elbow down.

    Elbow up is a positive angle in (2.33), where a2 is the length of the lower arm: axis 3 is then above the
    line from axis 2 to the wrist centre, unless the latter is horizontally between axes 1 and 2.

    A row is NaN where the wrist centre is out of reach; joint limits are ignored. An angle that is
    undefined, theta_1 with the wrist centre on axis 1 or theta_2 with it on axis 2, is that of q = 0.

    Args:
        robot: an arm of the family of `inverse_kinematics`.
        p_wrist: (..., 3) wrist centres in the base frame, in [m]; `d6 - d_6 z6` of a flange pose (2.28).

    Returns:
        (..., 4, 3) DH angles theta_1, theta_2, theta_3 in (-pi, pi], in [rad]; `joint_from_dh_angles`
        converts six of them to joint angles.

    Raises:
        ValueError: a wrong shape, or a number that is not finite.
        RobotError: the arm has no DH table, or one outside the family.

    Example:
        >>> import numpy as np
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> theta = twin.kinematics.main_axis_angles(robot, [0.3, 0.3, 0.7])
        >>> np.degrees(theta[:2]).round(2).tolist()  # elbow up and down
        [[45.0, 85.93, 5.75], [45.0, -174.9, 174.25]]

    Source: Norrlöf 1999, eq. (2.29)-(2.40), his `ikin1`. The second theta_1 is that of (2.38), which the text
    after (2.29) misprints; a1 and d1 are taken off along the arm, not by R01 as in (2.30); and the quotient
    in (2.34) is horizontal over vertical distance from axis 2, an arctan2.
    """
    arm, theta0, _ = arm_constants(robot)
    p_wrist = _finite(float_array(p_wrist, "p_wrist", (3,)), "p_wrist")
    rows = np.array(p_wrist, order="C").reshape(-1, 3)
    theta = np.empty((len(rows), 4, 3))
    spherical_wrist.main_axes(rows, arm, theta0, theta)
    return theta[:, PRINTED_ORDER].reshape(*p_wrist.shape[:-1], 4, 3)


def wrist_axis_angles(robot: Robot, R_36: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return both solutions for the wrist's DH angles, given the orientation of frame 6 in frame 3.

    At a wrist singularity, where axes 4 and 6 are in line, theta_4 is that of q = 0 in both rows, and theta_6
    makes up the rest.

    Args:
        robot: an arm of the family of `inverse_kinematics`.
        R_36: (..., 3, 3) orientations of DH frame 6 in DH frame 3, `R_03.T @ R_06`.

    Returns:
        Two arrays.

        - theta: (..., 2, 3) DH angles theta_4, theta_5, theta_6 in (-pi, pi], in [rad]: row 0 with theta_5 of
          at least 0, row 1 with its opposite.
        - s: (..., 2) of each row: 0 away from the singularity, 1 where only theta_4 + theta_6 is determined
          (theta_5 is 0), -1 where only theta_4 - theta_6 is (theta_5 is pi, or by rounding -pi).

    Raises:
        ValueError: a wrong shape, a number that is not finite, or no rotation within 1e-9.
        RobotError: the arm has no DH table, or one outside the family.

    Example:
        >>> import twin
        >>> R_36 = twin.rotations.matrix_from_euler([0.1, 0.2, 0.3], "zyz")
        >>> theta, s = twin.kinematics.wrist_axis_angles(twin.load("irb140"), R_36)
        >>> theta.round(4).tolist()
        [[0.1, 0.2, 0.3], [-3.0416, -0.2, -2.8416]]

    Source: Norrlöf 1999, eq. (2.43)-(2.50), his `ikin2`. Of (2.48) the second form holds, the first prints
    r11, r21, r31 for r13, r23, r33; and the arccos of (2.50) loses the angle's sign, which arctan2 keeps.
    """
    arm, theta0, _ = arm_constants(robot)
    R_36 = rotation_matrices(R_36, "R_36")
    rows = np.array(R_36, order="C").reshape(-1, 3, 3)
    theta, s = np.empty((len(rows), 2, 3)), np.empty(len(rows), dtype=np.int64)
    spherical_wrist.wrist_axes(rows, arm, theta0, theta, s)
    shape = R_36.shape[:-2]
    return theta.reshape(*shape, 2, 3), np.repeat(s[:, None], 2, axis=1).reshape(*shape, 2)


def _finite(values: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """Return the values; raise `ValueError` for the first value that is not finite."""
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        where = wrong[0].tolist()
        raise ValueError(f"expected {name} to be finite, got {values[tuple(where)]} at {where}")
    return values


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

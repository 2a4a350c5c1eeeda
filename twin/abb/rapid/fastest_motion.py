"""Fastest motion along a joint path within the speeds of the joints and the torques of their drives.

The torque of a drive is `a u + b x + g`, plus its friction: `x` is the square of the path's speed and `u` its
acceleration; `a`, `b` and `g` come from the inverse dynamics. Friction, a user's columns and the torque that
a motor has at its speed depend on the result, so the law is solved several times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline, PPoly

from twin.abb.rapid.time_law import PathMotion, fastest
from twin.base.arrays import Floats, float_array
from twin.base.errors import LimitError, RobotError
from twin.physics.dynamics.equation_of_motion import gravity_torque, inverse_dynamics
from twin.physics.multibody.axis_torques import torque_columns
from twin.physics.robot.drives.drives import Drives
from twin.physics.robot.drives.friction import GONE
from twin.physics.robot.drives.motors import MotorLimits, available_torque, motor_side
from twin.physics.robot.limits import check_position
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import joint_unit

UNLIMITED = 1e6
"""Speed in [rad/s] or [m/s] of joints without a limit."""

SPEED_SHARE = 0.995
"""Share of the joint speeds that is planned: speeds between the points of a path are a little larger."""

PASSES = 6
"""Most solutions of a time law."""

SETTLED = 1e-4
"""Change of x, as a share of its largest one, at which no further solution is needed."""

LEAST_PARTS, CUTS = 500, 16
"""Least number of a path's parts, and of those of an interval near a reversal: torques bend within them."""

NEAR = np.arange(-3, 2)
"""Intervals that are near a reversal, counted from the point after it."""


class Torques(NamedTuple):
    """Torques on the arm along a path: per u, per x, and at rest; with the path and its second derivative.

    All are (..., n).  Springs are those at rest.  A user's columns that depend on speed are left out.
    """

    a: Floats
    b: Floats
    g: Floats
    q: Floats
    ddq: Floats


class Law(NamedTuple):
    """Time law: x at the points (N + 1,), and torques with their limits at the intervals' ends (N, 2, n)."""

    x: Floats
    torque: Floats
    limit: Floats


class RestError(LimitError):
    """Torque at rest that a drive does not have; `interval` is the place on the path."""

    def __init__(self, message: str, interval: int) -> None:
        super().__init__(message)
        self.interval = interval


def time_optimal(robot: Robot, path: ArrayLike, *, share: float = 1.0) -> PathMotion:
    """Return the fastest motion along joint angles, from rest to rest.

    Speeds keep `qd_max`, and torques keep the drives' limits with rotors, friction and payload.  Both hold
    between the points, too: the intervals are cut, finely where a joint or a shaft with friction reverses.

    Args:
        robot: the arm, with the drives that act.
        path: (N, n) joint angles of at least 4 points, in [rad]; a cubic spline goes through them.
        share: share, above 0 and at most 1, that is used of the torque which gravity and friction leave.

    Example:
        >>> robot = twin.load("irb140")
        >>> quintic = twin.quintic(robot.poses["zero"], robot.poses["test_1"], duration=1.0)
        >>> motion = twin.time_optimal(robot, quintic(np.linspace(0.05, 0.95, 201))[0])
        >>> motion.duration < 0.5
        True

    Raises:
        LimitError: an angle is outside its range, or a drive cannot hold the arm at rest.
        RobotError: the robot has no masses, or no torque limit of a joint is known.
        ValueError: a wrong shape, neighbouring points that are equal, or a wrong share.
    """
    robot.require_inertia()
    if unknown := robot.joints_without_torque_limit:
        raise RobotError(
            f"no torque limit is known of {', '.join(unknown)} of robot {robot.name!r}, so the fastest "
            "motion is not known: expected effort, or motor_torque_max of its drives"
        )
    q = float_array(path, "path", (robot.n,))
    if q.ndim != 2 or len(q) < 4:
        raise ValueError(f"expected a path of shape (N, {robot.n}) with N at least 4, got {q.shape}")
    if not 0.0 < share <= 1.0:
        raise ValueError(f"expected a share above 0 and at most 1, got {share:g}")
    for one in q:
        check_position(robot, one)
    width = np.linalg.norm(np.diff(q, axis=0), axis=1)
    s = np.concatenate([[0.0], np.cumsum(width)])
    if not np.diff(s).min() > 1e-12 * s[-1]:
        raise ValueError(
            f"expected different points, points {np.argmin(np.diff(s)) + 1} and the next are equal"
        )
    spline = CubicSpline(s, q)
    s = _finer(
        spline, np.eye(robot.n) if robot.active_drives is None else robot.active_drives.friction_matrix
    )
    width, q, dq, ddq = np.diff(s), spline(s), spline(s, 1), spline(s, 2)
    torques = Torques(*map(both_ends, path_torques(robot, q, dq, ddq)))
    x_max = at_points(largest_x(robot, both_ends(dq)))
    law = torque_law(robot, width, both_ends(dq), torques, np.full(len(width), share), x_max)
    return PathMotion(width, law.x, q, dq)


def _finer(spline: CubicSpline, R: Floats) -> Floats:
    """Return the parameters of a path's points, of cuts between them, and of the reversals of `R q`."""
    s, slopes = spline.x, spline.derivative()
    found = PPoly(slopes.c @ R.T, slopes.x).roots(extrapolate=False)
    reversals = np.concatenate([one[np.isfinite(one)] for one in found])
    parts = np.full(len(s) - 1, -(-LEAST_PARTS // (len(s) - 1)))
    near = np.clip(np.searchsorted(s, reversals)[:, None] + NEAR, 0, len(parts) - 1)
    parts[near] = np.maximum(parts[near], CUTS)
    first = np.repeat(np.cumsum(parts) - parts, parts)
    within = (np.arange(len(first)) - first) / np.repeat(parts, parts)
    cuts = np.repeat(s[:-1], parts) + np.repeat(np.diff(s), parts) * within
    every = np.unique(np.concatenate([cuts, reversals]))
    inner = every[(every > s[0]) & (every < s[-1])]
    apart = np.diff(inner, prepend=s[0]) > 1e-9 * s[-1]
    return np.concatenate([s[:1], inner[apart & (s[-1] - inner > 1e-9 * s[-1])], s[-1:]])


def both_ends(values: Floats) -> Floats:
    """Return values at N + 1 points as values (N, 2, ...) at both ends of the intervals."""
    return np.stack([values[:-1], values[1:]], axis=1)


def at_points(ends: Floats) -> Floats:
    """Return values at points (N + 1,): the smaller one of both neighbouring intervals (N, 2)."""
    points = np.concatenate([ends[:, 0], ends[-1:, 1]])
    points[1:-1] = np.minimum(points[1:-1], ends[:-1, 1])
    return points


def largest_x(robot: Robot, dq: Floats) -> Floats:
    """Return the largest x (N, 2) that the joint speeds allow for the derivatives (N, 2, n) at both ends.

    The speeds are kept in the middle of an interval, too, where x is the mean of both ends.
    """
    limit = np.minimum(SPEED_SHARE * robot.qd_max, UNLIMITED)
    x = np.min((limit / np.maximum(np.abs(dq), 1e-12)) ** 2, axis=-1)
    middle = np.abs(dq.mean(axis=1)) * np.sqrt(x.mean(axis=1))[:, None] / limit
    return x / np.maximum(np.max(middle, axis=1), 1.0)[:, None] ** 2


def path_torques(robot: Robot, q: Floats, dq: Floats, ddq: Floats) -> Torques:
    """Return the torques at points of a path from its derivatives, each (N, n)."""
    arm, g = robot.arm, gravity_torque(robot, q)
    a = inverse_dynamics(arm, q, np.zeros_like(q), dq) - g
    b = inverse_dynamics(arm, q, dq, ddq) - g - _columns(robot, q, dq)
    return Torques(a, b, g, q, ddq)


def _columns(robot: Robot, q: Floats, qd: Floats) -> Floats:
    """Return what the torques (..., n) of a user's columns are at a speed more than at rest."""
    if not robot.tree.torques:
        return np.zeros_like(q)
    positions, speeds = q.reshape(-1, robot.n), qd.reshape(-1, robot.n)
    still = np.zeros_like(speeds)
    moving, resting = (
        torque_columns(robot.tree.torques, positions, one, still) @ robot.tree.torque_values
        for one in (speeds, still)
    )
    return (moving - resting).reshape(q.shape)


def torque_law(
    robot: Robot,
    width: Floats,
    dq: Floats,
    torques: Torques,
    share: Floats,
    x_max: Floats,
    x_begin: float = 0.0,
) -> Law:
    """Return the fastest law within the torques of the drives.

    Args:
        robot: arm with its drives.
        width: (N,) lengths of the intervals.
        dq: (N, 2, n) derivatives of the path at their ends.
        torques: torques there.
        share: (N,) share of the torque that is used beside gravity and friction.
        x_max: (N + 1,) largest x by speeds.
        x_begin: x at the beginning, 0 at rest.

    Raises:
        RestError: a drive cannot hold the arm.
    """
    motors, drives = MotorLimits.of(robot.active_drives, robot.tau_max), robot.active_drives
    A = np.zeros((robot.n, robot.n)) if drives is None else drives.reflected_inertia
    used = share[:, None, None]
    x, u = np.minimum(x_max, 1.0), np.zeros((len(width), 1, 1))
    a, b, held, up, down = (np.empty_like(dq) for _ in range(5))
    for _ in range(PASSES):
        path_speed = np.sqrt(both_ends(x))[..., None]
        speeds = dq * path_speed
        rest = torques.g + _columns(robot, torques.q, speeds)
        before, load = x.copy(), rest + torques.a * u + torques.b * path_speed**2
        friction = _friction(drives, dq, speeds)
        by_load = [_friction_by_load(drives, dq, load, one) for one in (torques.a, torques.b, rest)]
        a = motor_side(motors.coupling, 1, torques.a + by_load[0] + dq @ A)
        b = motor_side(motors.coupling, 1, torques.b + by_load[1] + torques.ddq @ A)
        resisted = [motor_side(motors.coupling, 1, rest + by_load[2] + one) for one in friction]
        held = resisted[0]
        motor_speed = motor_side(motors.coupling, 0, speeds)
        up, down = (
            np.array(available_torque(motors, np.full(a.shape, sign), motor_speed)) for sign in (1.0, -1.0)
        )
        low = used * (-down - np.min(resisted, axis=0))
        high = used * (up - np.max(resisted, axis=0))
        blocked = fastest(width, a, b, low, high, x_max, x, x_begin)
        if blocked >= 0:
            joint = int(np.argmax((np.abs(held[blocked]) / np.maximum(up[blocked], 1e-9)).max(axis=0)))
            unit = joint_unit(robot.joint_kinds[joint], "torque")
            raise RestError(
                f"{robot.joint_names[joint]} needs {np.abs(held[blocked, :, joint]).max():.4g} {unit} at "
                f"rest, its drive gives {up[blocked, :, joint].min():.4g} {unit}",
                blocked,
            )
        u = (np.diff(x) / (2.0 * width))[:, None, None]
        if np.max(np.abs(x - before)) <= SETTLED * np.max(x):
            break
    torque = a * u + b * both_ends(x)[..., None] + held
    return Law(x, torque, np.where(torque > 0, up, down))


def _directions(drives: Drives, dq: Floats) -> Floats:
    """Return the directions (N, 2, n) in which the shafts with friction turn, 0 for one that rests.

    At rest the direction is that of the motion which begins or ends there.
    """
    direction = np.sign(np.round(dq @ drives.friction_matrix.T, 12))
    return np.where(direction == 0.0, direction[:, ::-1], direction)


def _friction_by_load(drives: Drives | None, dq: Floats, load: Floats, part: Floats) -> Floats:
    """Return the friction (N, 2, n) that a part of the torque on the arm causes; `load` is about its sum."""
    if drives is None or not np.any(drives.coulomb_per_load):
        return np.zeros_like(part)
    W, R = drives.transmission, drives.friction_matrix
    rub = drives.coulomb_per_load * _directions(drives, dq) * np.sign(load @ W.T)
    return (rub * (part @ W.T)) @ R


def _friction(drives: Drives | None, dq: Floats, speeds: Floats) -> list[Floats]:
    """Return the friction torques without those by load, first the present ones, that act on the intervals.

    The level lies between those of both ends.  Where a joint reverses within an interval or at its end, both
    directions act: a controller's sample may begin in one interval and end in the next.
    """
    if drives is None:
        return [np.zeros_like(speeds)]
    R = drives.friction_matrix
    direction, w = _directions(drives, dq), speeds @ R.T
    gone = np.minimum(np.abs(w) / np.maximum(drives.stribeck_speed, 1e-300), GONE)
    level = drives.coulomb + (drives.static - drives.coulomb) * np.exp(-(gone**2))
    level += drives.viscous_root * np.sqrt(np.abs(w))
    smooth = drives.viscous * w + drives.viscous_difference * np.abs(w) + drives.offset
    before = np.concatenate([direction[:1, :1], direction[:-1, :1]])
    after = np.concatenate([direction[1:, 1:], direction[-1:, 1:]])
    levels, directions = (level, level[:, ::-1]), (direction, direction[:, ::-1], before, after)
    return [(size * sign + smooth) @ R for size in levels for sign in directions]

"""Fastest motion along a joint path within the speeds of the joints and the torques of their drives.

The torque of a drive is `a u + b x + g`, plus its friction: `x` is the square of the path's speed and `u` its
acceleration; `a`, `b` and `g` come from the inverse dynamics. Friction and the torque that a motor has at its
speed depend on the result, so the law is solved three times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from twin.arrays import Floats, float_array
from twin.dynamics.equation_of_motion import gravity_torque, inverse_dynamics
from twin.errors import LimitError
from twin.rapid.time_law import PathMotion, fastest
from twin.robot.drives.motors import MotorLimits, available_torque, motor_side
from twin.robot.limits import check_position
from twin.robot.robot import Robot

SPEED_SHARE = 0.995
"""Share of the joint speeds that is planned: speeds between the points of a path are a little larger."""

PASSES = 3
"""Solutions of a time law."""


class Torques(NamedTuple):
    """Torques along a path: per u, per x, and of gravity; rotors are included, friction is not."""

    a: Floats
    b: Floats
    g: Floats


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

    Speeds keep `qd_max`, and torques keep the drives' limits with rotors, friction and payload.

    Args:
        robot: the arm.
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
        RobotError: the robot has no masses.
        ValueError: a wrong shape, neighbouring points that are equal, or a wrong share.
    """
    robot.require_inertia()
    q = float_array(path, "path", (robot.n,))
    if q.ndim != 2 or len(q) < 4:
        raise ValueError(f"expected a path of shape (N, {robot.n}) with N at least 4, got {q.shape}")
    if not 0.0 < share <= 1.0:
        raise ValueError(f"expected a share above 0 and at most 1, got {share:g}")
    for one in q:
        check_position(robot, one)
    width = np.linalg.norm(np.diff(q, axis=0), axis=1)
    if not width.min() > 0.0:
        raise ValueError(f"expected different points, points {np.argmin(width) + 1} and the next are equal")
    s = np.concatenate([[0.0], np.cumsum(width)])
    spline = CubicSpline(s, q)
    dq, ddq = spline(s, 1), spline(s, 2)
    torques = Torques(*map(both_ends, path_torques(robot, q, dq, ddq)))
    x_max = at_points(largest_x(robot, both_ends(dq)))
    law = torque_law(robot, width, both_ends(dq), torques, np.full(len(width), share), x_max)
    return PathMotion(width, law.x, q, dq)


def both_ends(values: Floats) -> Floats:
    """Return values at N + 1 points as values (N, 2, ...) at both ends of the intervals."""
    return np.stack([values[:-1], values[1:]], axis=1)


def at_points(ends: Floats) -> Floats:
    """Return values at points (N + 1,): the smaller one of both neighbouring intervals (N, 2)."""
    points = np.concatenate([ends[:, 0], ends[-1:, 1]])
    points[1:-1] = np.minimum(points[1:-1], ends[:-1, 1])
    return points


def largest_x(robot: Robot, dq: Floats) -> Floats:
    """Return the largest x (...) that the joint speeds allow for a path's derivatives (..., n)."""
    return np.min((SPEED_SHARE * robot.qd_max / np.maximum(np.abs(dq), 1e-12)) ** 2, axis=-1)


def path_torques(robot: Robot, q: Floats, dq: Floats, ddq: Floats) -> Torques:
    """Return the torques at points of a path from its derivatives, each (N, n)."""
    g = gravity_torque(robot, q)
    a = inverse_dynamics(robot, q, np.zeros_like(q), dq) - g
    b = inverse_dynamics(robot, q, dq, ddq) - g
    drives = robot.active_drives
    if drives is None:
        return Torques(a, b, g)
    rotors = drives.reflected_inertia.T
    return Torques(a + dq @ rotors, b + ddq @ rotors, g)


def torque_law(
    robot: Robot, width: Floats, dq: Floats, torques: Torques, share: Floats, x_max: Floats
) -> Law:
    """Return the fastest law within the torques of the drives.

    Args:
        robot: arm with its drives.
        width: (N,) lengths of the intervals.
        dq: (N, 2, n) derivatives of the path at their ends.
        torques: torques there.
        share: (N,) share of the torque that is used beside gravity and friction.
        x_max: (N + 1,) largest x by speeds.

    Raises:
        RestError: a drive cannot hold the arm.
    """
    motors = MotorLimits.of(robot.active_drives, robot.tau_max)
    a, b = (motor_side(motors.coupling, 1, one) for one in torques[:2])
    used = share[:, None, None]
    x = np.minimum(x_max, 1.0)
    held, up, down = (np.empty_like(a) for _ in range(3))
    for _ in range(PASSES):
        speeds = dq * np.sqrt(both_ends(x))[..., None]
        held, reversed_ = (
            motor_side(motors.coupling, 1, torques.g + one) for one in _friction(robot, dq, speeds)
        )
        motor_speed = motor_side(motors.coupling, 0, speeds)
        up, down = (
            np.array(available_torque(motors, np.full(a.shape, sign), motor_speed)) for sign in (1.0, -1.0)
        )
        low = used * (-down - np.minimum(held, reversed_))
        high = used * (up - np.maximum(held, reversed_))
        blocked = fastest(width, a, b, low, high, x_max, x)
        if blocked >= 0:
            joint = int(np.argmax((np.abs(held[blocked]) / np.maximum(up[blocked], 1e-9)).max(axis=0)))
            raise RestError(
                f"{robot.joint_names[joint]} needs {np.abs(held[blocked, :, joint]).max():.4g} N m at rest, "
                f"its drive gives {up[blocked, :, joint].min():.4g} N m",
                blocked,
            )
    u = np.diff(x) / (2.0 * width)
    torque = a * u[:, None, None] + b * both_ends(x)[..., None] + held
    return Law(x, torque, np.where(torque > 0, up, down))


def _friction(robot: Robot, dq: Floats, speeds: Floats) -> tuple[Floats, Floats]:
    """Return the friction torque, and that with the direction at the other end of the interval.

    Both act where a joint reverses within an interval. At rest the direction is that of the motion which
    begins or ends there.  Friction that grows with the load is left out.
    """
    drives = robot.active_drives
    if drives is None:
        return np.zeros_like(speeds), np.zeros_like(speeds)
    R = drives.friction_matrix
    direction, w = np.sign(np.round(dq @ R.T, 12)), speeds @ R.T
    level = drives.coulomb + drives.viscous_root * np.sqrt(np.abs(w))
    smooth = drives.viscous * w + drives.viscous_difference * np.abs(w) + drives.offset
    return (level * direction + smooth) @ R, (level * direction[:, ::-1] + smooth) @ R

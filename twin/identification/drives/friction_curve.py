"""Friction over speed, from runs at constant speeds: a point a run and direction.

At constant speed a motor holds the arm's weight and overcomes friction.  The weight is taken off by a model,
or cancels between both directions over the same way, if friction is the same in both.  The twin's step takes
the viscous part and the sign at the speed after it and the level at the speed before it
(`twin/drives/friction.py`): at constant speed that is one speed, and the points lie on the law to round-off.

The law that moves the arm has to hold the speed.  Where friction falls with speed, one that does not know of
it sticks and slips, and the mean of that is no point of a curve: such runs are left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import real_array
from twin.drives.drives import Drives
from twin.dynamics.drive_torques import drive_inverse_dynamics
from twin.errors import IdentificationError, RobotError
from twin.logs.log import Log
from twin.robot.limits import check_position
from twin.robot.robot import Robot
from twin.trajectories.joint_trajectories import Trajectory, cruising_trapezoid, sequence

CONSTANT = 1e-6
"""Of a joint's largest acceleration in the reference: below, its speed counts as constant."""

SETTLING = 0.2
"""Of a run at constant speed: left out at both ends, so that the way is the same in both directions."""

STEADY = 0.02
"""Standard deviation of the speed over its mean: what varies more was not at constant speed."""

LEAST = 5
"""Samples of a run at constant speed, settling included."""

SAME = 1e-3
"""Relative difference of the speeds of two runs that are one, in opposite directions."""


class FrictionCurve(NamedTuple):
    """Friction of one drive in m runs at constant speed, in joint units, by rising speed.

    Attributes:
        speed: (m,) mean speed of the shaft that rubs, in [rad/s].
        torque: (m,) mean friction, in [N m].
        deviation: (m,) standard deviation of that mean, if samples err independently, in [N m].
        samples: (m,) how many samples it is the mean of.
    """

    speed: np.ndarray
    torque: np.ndarray
    deviation: np.ndarray
    samples: np.ndarray


def constant_speed_motion(
    robot: Robot, start: ArrayLike, speeds: ArrayLike, seconds: float = 0.5, ramp: float = 0.1
) -> Trajectory:
    """Back and forth at constant speeds, one speed after the other, from a pose and back to it.

    Args:
        robot: whose ranges are kept.
        start: (n,) pose, in [rad].
        speeds: (m, n) of each joint in each run, in [rad/s]; 0 where a joint stands still.
        seconds: at each constant speed, each way, in [s].
        ramp: time to speed up, and to brake, in [s].

    Raises:
        LimitError: a run would leave a joint's range.
        ValueError: a shape is another, or a time not above 0.
    """
    pose, rows = real_array(start, "start"), real_array(speeds, "speeds")
    if pose.shape != (robot.n,) or rows.ndim != 2 or rows.shape[1] != robot.n:
        raise ValueError(
            f"expected start ({robot.n},) and speeds (m, {robot.n}), got {pose.shape}, {rows.shape}"
        )
    for name, value in (("seconds", seconds), ("ramp", ramp)):
        if not 0 < value < np.inf:
            raise ValueError(f"expected {name} to be above 0, got {value}")
    parts = []
    for row in rows:
        there = pose + (seconds + ramp) * row
        check_position(robot, there)
        fastest = float(np.max(np.abs(row)))
        for a, b in ((pose, there), (there, pose)):
            parts.append(cruising_trapezoid(a, b, fastest, fastest / ramp))
    return sequence(*parts)


def friction_curve(log: Log, joint: int, robot: Robot | None = None) -> FrictionCurve:
    """Friction of a drive in a log, all else taken off by a model.

    Args:
        log: of a run with rigid drives, in which the reference has parts of constant speed.
        joint: its number, from 0.
        robot: the model, with rotors, payload and gravity; its friction is not used. The log's by default.

    Raises:
        IdentificationError: the joint has no part of constant speed, or the drives are elastic.
        RobotError: the model has no drives.
    """
    drives, friction, speed = _friction(log, log.robot if robot is None else robot)
    shaft = np.linalg.solve(drives.friction_matrix.T, friction.T)[joint]
    return _curve(log, joint, (drives.friction_matrix @ speed.T)[joint], shaft)


def friction_by_direction(log: Log, joint: int) -> FrictionCurve:
    """Friction of a drive from runs there and back, without any model: half of what their torques differ by.

    It is the mean of both directions, told at the positive speed.  The way of both must be the same, and what
    settles must be short; the drive must turn with the joint alone.

    Args:
        log: as `friction_curve` takes it.
        joint: its number, from 0.

    Raises:
        IdentificationError: the joint has no part of constant speed, or one without the way back.
    """
    both = _curve(log, joint, _next(log.qd)[:, joint], log.tau[:-1, joint])
    points = []
    for speed, torque, deviation, count in zip(*both, strict=True):
        if speed > 0:
            back = int(np.argmin(np.abs(both.speed + speed)))
            if not abs(both.speed[back] + speed) <= SAME * speed:
                raise IdentificationError(
                    f"{log.robot.joint_names[joint]} moves at {speed:.4g} rad/s and never back at it, "
                    "so that its weight does not cancel"
                )
            spread = np.hypot(deviation, both.deviation[back]) / 2
            points.append((speed, (torque - both.torque[back]) / 2, spread, count + both.samples[back]))
    if not points:
        raise IdentificationError(f"{log.robot.joint_names[joint]} never moves at a constant speed above 0")
    speed, torque, deviation, count = (np.array(column) for column in zip(*points, strict=True))
    return FrictionCurve(speed, torque, deviation, count)


def _friction(log: Log, model: Robot) -> tuple[Drives, np.ndarray, np.ndarray]:
    """Drives of the model, friction (N - 1, n) at the joints, and the speeds (N - 1, n) at which it acted."""
    if model.drives is None:
        raise RobotError(f"robot {model.name!r} has no drives, so that the share of its rotors is not known")
    if log.drives == "elastic":
        raise IdentificationError("friction is found of rigid drives: in this log they are elastic")
    smooth = model.with_drives("rigid", model.drives.without_friction())
    period = log.time_step * log.steps_per_period
    q, qd, after = log.q[:-1], log.qd[:-1], _next(log.qd)
    needed = drive_inverse_dynamics(smooth, q, qd, (after - qd) / period)
    return model.drives, log.tau[:-1] - needed, after


def _next(values: np.ndarray) -> np.ndarray:
    return values[1:]


def _curve(log: Log, joint: int, speed: np.ndarray, torque: np.ndarray) -> FrictionCurve:
    """Means of speed and torque (N - 1,) where the reference of a joint has a constant speed that it kept."""
    qd, qdd = log.qd_ref[:-1, joint], np.abs(log.qdd_ref[:-1, joint])
    steady = (qdd <= CONSTANT * np.max(qdd)) & (np.abs(qd) > CONSTANT * np.max(np.abs(qd)))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], steady, [False]]).astype(int)))
    points = []
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        if end - first < LEAST:
            continue
        settling = int(SETTLING * (end - first))
        part = slice(first + settling, end - settling)
        F, w = torque[part], speed[part]
        if not np.std(w) < STEADY * abs(np.mean(w)):
            continue
        deviation = np.std(F, ddof=1) / np.sqrt(len(F)) if len(F) > 1 else np.nan
        points.append((np.mean(w), np.mean(F), deviation, len(F)))
    if not points:
        raise IdentificationError(
            f"{log.robot.joint_names[joint]} has no part of constant speed in this log: its reference has "
            f"none of {LEAST} samples, or it did not keep it"
        )
    points.sort()
    found = [np.array(column) for column in zip(*points, strict=True)]
    return FrictionCurve(*found)

"""The friction law of the drives, fitted to a curve of friction over speed.

    F(v) = [Fc + (Fs - Fc) exp(-(v / vs)^2)] sgn(v) + Fv v + F0

All but the Stribeck speed vs enters linearly.  So the fit starts from the best of many vs, with the others by
linear least squares, none below 0, and goes on with all together.  F0, an offset, is 0 unless asked for: the
law of the drives has none, measured torques do.

Source of the law: see `twin/robot/drives/friction.py`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import real_array
from twin.dynamics.equation_of_motion import drive_inverse_dynamics
from twin.errors import IdentificationError, RobotError
from twin.logs.log import Log
from twin.robot.drives.drives import Drives
from twin.robot.limits import check_position
from twin.robot.robot import Robot
from twin.trajectories.joint_trajectories import Trajectory, cruising_trapezoid, sequence

TRIED = 30
"""Stribeck speeds that are tried."""

SLOWER = 3.0
"""The slowest of them is so much slower than the slowest run: what is below cannot be seen."""


@dataclass(frozen=True, eq=False)
class FrictionFit:
    """The law of a drive with standard deviations, in joint units as `twin.Drives` takes them.

    Attributes:
        coulomb, static, stribeck_speed, viscous: see `twin.robot.drives.drives.Drives`, in [N m], [N m],
            [rad/s] and [N m s/rad]. Without the Stribeck effect `static` is `coulomb`, and `stribeck_speed`
            is 0.
        offset: torque that does not change with direction, in [N m].
        deviations: (5,) of these five, in their order; 0 of what was not fitted.
        noise: standard deviation of what the law leaves, in [N m]; over the points' own, if they were given.
    """

    coulomb: float
    static: float
    stribeck_speed: float
    viscous: float
    offset: float
    deviations: np.ndarray
    noise: float

    def torque(self, speed: ArrayLike) -> np.ndarray:
        """Friction (...,) at speeds (...,), in [rad/s], in [N m]; the offset at rest."""
        v = real_array(speed, "speed")
        given = np.array([self.coulomb, self.static - self.coulomb, self.viscous, self.offset])
        return _columns(v.ravel(), self.stribeck_speed).dot(given).reshape(v.shape)


def fit_friction(
    speed: ArrayLike,
    torque: ArrayLike,
    deviation: ArrayLike | None = None,
    *,
    stribeck: bool = True,
    offset: bool = False,
) -> FrictionFit:
    """Fit the friction law of the drives.

    Args:
        speed: (m,) constant speeds, in [rad/s]; those at rest tell nothing and are left out.
        torque: (m,) friction at them, in [N m].
        deviation: (m,) standard deviations of the torques, by which points are weighted; only their ratios
            count, for what the law leaves tells their size.
        stribeck: fit static friction and Stribeck speed, too, which takes runs slower than that speed.
        offset: fit a constant torque, too, which takes runs in both directions.

    Raises:
        IdentificationError: there are too few points, or they do not tell some parameter.
        ValueError: a shape is another, or a value not finite, or a deviation not above 0.
    """
    v, F = real_array(speed, "speed"), real_array(torque, "torque")
    s = np.ones_like(v) if deviation is None else real_array(deviation, "deviation")
    if v.ndim != 1 or not v.shape == F.shape == s.shape:
        raise ValueError(f"expected speed and torque of one shape (m,), got {v.shape} and {F.shape}")
    if not (np.all(np.isfinite(v)) and np.all(np.isfinite(F)) and np.all((s > 0) & (s < np.inf))):
        raise ValueError("expected finite speeds and torques, and deviations above 0")
    moves = v != 0.0
    v, F, s = v[moves], F[moves], s[moves]
    free = np.array([True, stribeck, True, offset, stribeck])  # Fc, Fs - Fc, Fv, F0 and vs
    if not len(v) > np.count_nonzero(free):
        raise IdentificationError(
            f"{len(v)} points do not tell {np.count_nonzero(free)} parameters of friction: take more speeds"
        )
    if offset and (np.all(v > 0) or np.all(v < 0)):
        raise IdentificationError("an offset is told from Coulomb friction by runs in both directions alone")
    found, triangle, cost = _fit(v, F, s, free)
    root = _inverse(triangle, free, v)
    noise = float(np.sqrt(cost / (len(v) - np.count_nonzero(free))))
    spread = np.zeros((5, 5))
    spread[np.ix_(free, free)] = noise**2 * root @ root.T
    Fc, excess, Fv, F0, vs = found.tolist()
    static = np.array([1.0, 1.0, 0, 0, 0])
    deviations = np.sqrt(
        np.array([spread[0, 0], static @ spread @ static, spread[4, 4], spread[2, 2], spread[3, 3]])
    )
    if stribeck and not (np.sqrt(spread[1, 1]) < excess and deviations[2] < vs):
        raise _no_stribeck(v)
    return FrictionFit(Fc, Fc + excess, vs, Fv, F0, deviations, noise)


def _columns(v: np.ndarray, vs: float) -> np.ndarray:
    """What Fc, Fs - Fc, Fv and F0 are multiplied with (m, 4) at speeds (m,)."""
    falling = np.exp(-((v / vs) ** 2)) if vs > 0 else np.zeros_like(v)
    return np.column_stack([np.sign(v), np.sign(v) * falling, v, np.ones_like(v)])


def _fit(
    v: np.ndarray, F: np.ndarray, s: np.ndarray, free: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Parameters (5,), the triangle R of the derivatives of those that are free, and the sum of squares."""
    from scipy.optimize import least_squares, nnls

    linear, slowest = free[:4], np.min(np.abs(v))

    def linear_fit(vs: float) -> tuple[np.ndarray, float]:
        """The linear parameters (4,) for a Stribeck speed, and the norm of what they leave."""
        columns = (_columns(v, vs) / s[:, None])[:, linear]
        scale = np.linalg.norm(columns, axis=0) + (np.linalg.norm(columns, axis=0) == 0)
        signed = (
            np.column_stack([columns / scale, -columns[:, -1:] / scale[-1]]) if free[3] else columns / scale
        )
        weights, left = nnls(signed, F / s)
        if free[3]:
            weights = np.concatenate([weights[:-2], [weights[-2] - weights[-1]]])
        given = np.zeros(4)
        given[linear] = weights / scale
        return given, left

    tried = np.geomspace(slowest / SLOWER, np.max(np.abs(v)), TRIED) if free[4] else np.zeros(1)
    starts = [linear_fit(vs) for vs in tried]
    best = int(np.argmin([left for _, left in starts]))
    whole = np.append(starts[best][0], tried[best])

    def completed(x: np.ndarray) -> np.ndarray:
        given = whole.copy()
        given[free] = x
        return given

    def residual(x: np.ndarray) -> np.ndarray:
        given = completed(x)
        return (_columns(v, given[4]) @ given[:4] - F) / s

    def jacobian(x: np.ndarray) -> np.ndarray:
        given = completed(x)
        columns = _columns(v, given[4])
        by_vs = 2 * given[1] * columns[:, 1] * v**2 / given[4] ** 3 if free[4] else np.zeros_like(v)
        return (np.column_stack([columns, by_vs]) / s[:, None])[:, free]

    derivatives: Any = jacobian  # scipy's own types know of its names alone
    low = np.array([0.0, 0.0, 0.0, -np.inf, slowest / SLOWER / 2])[free]
    high = np.array([np.inf, np.inf, np.inf, np.inf, 2 * np.max(np.abs(v))])[free]
    end = least_squares(
        residual, np.clip(whole[free], low, high), jac=derivatives, bounds=(low, high), x_scale="jac",
        xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=200,
    )  # fmt: skip
    return completed(end.x), np.asarray(np.linalg.qr(jacobian(end.x), mode="r")), 2 * float(end.cost)


def _inverse(triangle: np.ndarray, free: np.ndarray, v: np.ndarray) -> np.ndarray:
    """R^-1, of which `R^-1 R^-T` is the covariance."""
    scale = np.linalg.norm(triangle, axis=0)
    if not (np.all(scale > 0) and np.linalg.cond(triangle / scale) < 1e12):
        if free[4]:
            raise _no_stribeck(v)
        raise IdentificationError(
            "the speeds do not tell the parameters of friction apart: several different ones are needed"
        )
    return np.linalg.inv(triangle)


def _no_stribeck(v: np.ndarray) -> IdentificationError:
    return IdentificationError(
        "the points do not tell static friction and Stribeck speed: the slowest is at "
        f"{np.min(np.abs(v)):.3g} rad/s; add slower runs, or fit without them (stribeck=False)"
    )


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
    both = _curve(log, joint, log.qd[1:, joint], log.tau[:-1, joint])
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
    q, qd, after = log.q[:-1], log.qd[:-1], log.qd[1:]
    needed = drive_inverse_dynamics(smooth, q, qd, (after - qd) / period)
    return model.drives, log.tau[:-1] - needed, after


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

"""Fit of the drives' friction law to a curve of friction over speed.

    F(v) = [Fc + (Fs - Fc) exp(-(v / vs)^2)] sgn(v) + Fv v + F0

All parameters except the Stribeck speed vs enter linearly.  The fit therefore starts from the best of many
vs, with the others from non-negative linear least squares, and then varies all of them together.  The offset
F0 is 0 unless requested: the drives' law has none, but measured torques do.

Source of the law: see `robot/drives/friction.py`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import real_array
from twin.base.errors import IdentificationError, RobotError
from twin.data.logs.log import Log
from twin.physics.dynamics.equation_of_motion import inverse_dynamics
from twin.physics.robot.drives.drives import Drives
from twin.physics.robot.limits import check_position
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.joint_trajectories import Trajectory, cruising_trapezoid, sequence

TRIED = 30
"""Number of Stribeck speeds for the start."""

SLOWER = 3.0
"""Factor between the slowest run and the slowest of these speeds; the data do not show slower ones."""


@dataclass(frozen=True, eq=False)
class FrictionFit:
    """Friction law of a drive with standard deviations, in joint units as for `twin.Drives`.

    Attributes:
        coulomb, static, stribeck_speed, viscous: see `twin.robot.drives.drives.Drives`, in [N m], [N m],
            [rad/s] and [N m s/rad]. Without the Stribeck effect `static` is `coulomb`, and `stribeck_speed`
            is 0.
        offset: torque that does not change with direction, in [N m].
        deviations: (5,) standard deviations of these parameters, in their order; 0 if not fitted.
        noise: standard deviation of the residuals, in [N m]; relative to those of the points, if given.
    """

    coulomb: float
    static: float
    stribeck_speed: float
    viscous: float
    offset: float
    deviations: np.ndarray
    noise: float

    def torque(self, speed: ArrayLike) -> np.ndarray:
        """Return the friction (...,) at speeds (...,) in [rad/s], in [N m]; at rest it is the offset."""
        v = real_array(speed, "speed")
        parameters = np.array([self.coulomb, self.static - self.coulomb, self.viscous, self.offset])
        return _columns(v.ravel(), self.stribeck_speed).dot(parameters).reshape(v.shape)


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
        speed: (m,) constant speeds, in [rad/s]; speeds of 0 are ignored.
        torque: (m,) friction at these speeds, in [N m].
        deviation: (m,) standard deviations of the torques, by which points are weighted; only their ratios
            matter, since the residuals determine their size.
        stribeck: whether to fit static friction and Stribeck speed, which requires runs below that speed.
        offset: whether to fit a constant torque, which requires runs in both directions.

    Raises:
        IdentificationError: there are too few points, or they do not determine a parameter.
        ValueError: a shape does not match, a value is not finite, or a deviation is not above 0.

    Example:
        >>> import twin
        >>> speed = [-1.0, -0.5, 0.5, 1.0]
        >>> fit = twin.identification.fit_friction(speed, [-5.0, -4.0, 4.0, 5.0], stribeck=False)
        >>> round(fit.coulomb, 6), round(fit.viscous, 6)
        (3.0, 2.0)
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
            f"{len(v)} points do not determine {np.count_nonzero(free)} parameters of friction: use more "
            "speeds"
        )
    if offset and (np.all(v > 0) or np.all(v < 0)):
        raise IdentificationError(
            "an offset can be distinguished from Coulomb friction only by runs in both directions"
        )
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
    """Return the columns (m, 4) of Fc, Fs - Fc, Fv and F0 at speeds (m,)."""
    falling = np.exp(-((v / vs) ** 2)) if vs > 0 else np.zeros_like(v)
    return np.column_stack([np.sign(v), np.sign(v) * falling, v, np.ones_like(v)])


def _fit(
    v: np.ndarray, F: np.ndarray, s: np.ndarray, free: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return parameters (5,), the triangle R of the derivatives by the free ones, and the sum of squares."""
    from scipy.optimize import least_squares, nnls

    linear, slowest = free[:4], np.min(np.abs(v))

    def linear_fit(vs: float) -> tuple[np.ndarray, float]:
        """The linear parameters (4,) for a Stribeck speed, and the norm of what they leave."""
        columns = (_columns(v, vs) / s[:, None])[:, linear]
        scale = np.linalg.norm(columns, axis=0) + (np.linalg.norm(columns, axis=0) == 0)
        signed = (
            np.column_stack([columns / scale, -columns[:, -1:] / scale[-1]]) if free[3] else columns / scale
        )
        weights, remainder = nnls(signed, F / s)
        if free[3]:
            weights = np.concatenate([weights[:-2], [weights[-2] - weights[-1]]])
        parameters = np.zeros(4)
        parameters[linear] = weights / scale
        return parameters, remainder

    tried = np.geomspace(slowest / SLOWER, np.max(np.abs(v)), TRIED) if free[4] else np.zeros(1)
    starts = [linear_fit(vs) for vs in tried]
    best = int(np.argmin([remainder for _, remainder in starts]))
    start = np.append(starts[best][0], tried[best])

    def completed(x: np.ndarray) -> np.ndarray:
        parameters = start.copy()
        parameters[free] = x
        return parameters

    def residual(x: np.ndarray) -> np.ndarray:
        parameters = completed(x)
        return (_columns(v, parameters[4]) @ parameters[:4] - F) / s

    def jacobian(x: np.ndarray) -> np.ndarray:
        parameters = completed(x)
        columns = _columns(v, parameters[4])
        by_vs = 2 * parameters[1] * columns[:, 1] * v**2 / parameters[4] ** 3 if free[4] else np.zeros_like(v)
        return (np.column_stack([columns, by_vs]) / s[:, None])[:, free]

    derivatives: Any = jacobian  # scipy's type stubs accept only the names of methods
    low = np.array([0.0, 0.0, 0.0, -np.inf, slowest / SLOWER / 2])[free]
    high = np.array([np.inf, np.inf, np.inf, np.inf, 2 * np.max(np.abs(v))])[free]
    end = least_squares(
        residual, np.clip(start[free], low, high), jac=derivatives, bounds=(low, high), x_scale="jac",
        xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=200,
    )  # fmt: skip
    return completed(end.x), np.asarray(np.linalg.qr(jacobian(end.x), mode="r")), 2 * float(end.cost)


def _inverse(triangle: np.ndarray, free: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return R^-1; the covariance is `R^-1 R^-T`."""
    scale = np.linalg.norm(triangle, axis=0)
    if not (np.all(scale > 0) and np.linalg.cond(triangle / scale) < 1e12):
        if free[4]:
            raise _no_stribeck(v)
        raise IdentificationError(
            "the speeds do not determine the parameters of friction: use several different ones"
        )
    return np.linalg.inv(triangle)


def _no_stribeck(v: np.ndarray) -> IdentificationError:
    return IdentificationError(
        "the points do not determine static friction and Stribeck speed: the slowest is at "
        f"{np.min(np.abs(v)):.3g} rad/s; add slower runs, or fit without them (stribeck=False)"
    )


CONSTANT = 1e-6
"""Share of a joint's largest reference acceleration below which its speed counts as constant."""

SETTLING = 0.2
"""Share of a run at constant speed that is omitted at both ends, so that both directions cover the same
path.
"""

STEADY = 0.02
"""Largest ratio of the standard deviation of the speed to its mean in a run at constant speed."""

LEAST = 5
"""Smallest number of samples of a run at constant speed, including settling."""

SAME = 1e-3
"""Largest relative difference between the speeds of runs that form a pair in opposite directions."""


class FrictionCurve(NamedTuple):
    """Friction of one drive in m runs at constant speed, in joint units, by increasing speed.

    Attributes:
        speed: (m,) mean speed of the shaft with friction, in [rad/s].
        torque: (m,) mean friction, in [N m].
        deviation: (m,) standard deviation of that mean for independent errors of the samples, in [N m].
        samples: (m,) number of samples in the mean.
    """

    speed: np.ndarray
    torque: np.ndarray
    deviation: np.ndarray
    samples: np.ndarray


def constant_speed_motion(
    robot: Robot, start: ArrayLike, speeds: ArrayLike, seconds: float = 0.5, ramp: float = 0.1
) -> Trajectory:
    """Create a motion back and forth at constant speeds, one after the other, that starts and ends in a pose.

    Args:
        robot: robot whose joint ranges are checked.
        start: (n,) pose, in [rad].
        speeds: (m, n) speed of each joint in each run, in [rad/s]; 0 for a joint that stands still.
        seconds: time at each constant speed in each direction, in [s].
        ramp: time to accelerate and to brake, in [s].

    Raises:
        LimitError: a run would leave a joint's range.
        ValueError: a shape does not match, or a time is not above 0.

    Example:
        >>> import twin
        >>> from twin.data.identification.friction_law import constant_speed_motion
        >>> motion = constant_speed_motion(twin.load("irb140"), [0] * 6, [[0.5] * 6], seconds=0.2, ramp=0.1)
        >>> samples = twin.sample(motion, 1e-3)
        >>> samples.qd[[200, 600], 0].round(3).tolist(), round(float(samples.q.max()), 3)  # 0.5 (0.2 + 0.1)
        ([0.5, -0.5], 0.15)
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
    """Return the friction of a drive in a log, computed by subtracting all other torques of a model.

    Args:
        log: log of a run with rigid drives, whose reference has parts of constant speed.
        joint: index of the joint, from 0.
        robot: model with rotors, payload and gravity; its friction is not used. The log's robot by default.

    Raises:
        IdentificationError: the joint has no part of constant speed, or the drives are elastic.
        RobotError: the model has no drives.

    Example:
        >>> import controllers, twin, twin.identification.friction_law as friction
        >>> law = controllers.make("computed_torque", twin.load("irb140").with_drives("rigid"))
        >>> motion = friction.constant_speed_motion(law.robot, [0] * 6, [[0.5] * 6])
        >>> log = twin.run_closed_loop(twin.AnalyticPlant(law.robot), law, twin.sample(motion, 1e-3))
        >>> friction.friction_curve(log, 0).torque.round(1).tolist()  # 29 + 5.2 * 0.5, in [N m]
        [-31.6, 31.6]
    """
    drives, friction, speed = _friction(log, log.robot if robot is None else robot)
    shaft = np.linalg.solve(drives.friction_matrix.T, friction.T)[joint]
    return _curve(log, joint, (drives.friction_matrix @ speed.T)[joint], shaft)


def friction_by_direction(log: Log, joint: int) -> FrictionCurve:
    """Return the friction of a drive from runs in both directions, without a model.

    Friction is half the difference of the torques in both directions, and is assigned to the positive speed.
    Both runs must cover the same path, settling must be short, and the drive must turn with this joint only.

    Args:
        log: log as for `friction_curve`.
        joint: index of the joint, from 0.

    Raises:
        IdentificationError: the joint has no part of constant speed, or a run without its opposite.

    Example:
        >>> import controllers, twin, twin.identification.friction_law as friction
        >>> law = controllers.make("computed_torque", twin.load("irb140").with_drives("rigid"))
        >>> motion = friction.constant_speed_motion(law.robot, [0] * 6, [[0.5] * 6])
        >>> log = twin.run_closed_loop(twin.AnalyticPlant(law.robot), law, twin.sample(motion, 1e-3))
        >>> friction.friction_by_direction(log, 0).torque.round(1).tolist()  # 29 + 5.2 * 0.5, in [N m]
        [31.6]
    """
    both = _curve(log, joint, log.qd[1:, joint], log.tau[:-1, joint])
    points = []
    for speed, torque, deviation, count in zip(*both, strict=True):
        if speed > 0:
            back = int(np.argmin(np.abs(both.speed + speed)))
            if not abs(both.speed[back] + speed) <= SAME * speed:
                raise IdentificationError(
                    f"{log.robot.joint_names[joint]} moves at {speed:.4g} rad/s but never at "
                    f"{-speed:.4g} rad/s, so that gravity does not cancel"
                )
            spread = np.hypot(deviation, both.deviation[back]) / 2
            points.append((speed, (torque - both.torque[back]) / 2, spread, count + both.samples[back]))
    if not points:
        raise IdentificationError(f"{log.robot.joint_names[joint]} never moves at a constant speed above 0")
    speed, torque, deviation, count = (np.array(column) for column in zip(*points, strict=True))
    return FrictionCurve(speed, torque, deviation, count)


def _friction(log: Log, model: Robot) -> tuple[Drives, np.ndarray, np.ndarray]:
    """Return the model's drives, and friction (N - 1, n) at the joints with the speeds of its action."""
    if model.drives is None:
        raise RobotError(f"robot {model.name!r} has no drives, so the torque of its rotors is not known")
    if log.drives == "elastic":
        raise IdentificationError(
            "friction can be computed only for rigid drives; those of this log are elastic"
        )
    smooth = model.with_drives("rigid", model.drives.without_friction())
    period = log.time_step * log.steps_per_period
    q, qd, after = log.q[:-1], log.qd[:-1], log.qd[1:]
    needed = inverse_dynamics(smooth, q, qd, (after - qd) / period)
    return model.drives, log.tau[:-1] - needed, after


def _curve(log: Log, joint: int, speed: np.ndarray, torque: np.ndarray) -> FrictionCurve:
    """Return the mean speed and torque of each part in which a joint followed a constant reference speed.

    Args:
        log: log of the run.
        joint: index of the joint.
        speed: (N - 1,) speeds of the shaft.
        torque: (N - 1,) friction torques.
    """
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
            f"none of {LEAST} samples, or the joint did not follow it"
        )
    points.sort()
    found = [np.array(column) for column in zip(*points, strict=True)]
    return FrictionCurve(*found)

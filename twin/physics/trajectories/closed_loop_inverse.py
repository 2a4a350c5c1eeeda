"""Closed-loop inverse kinematics: joint angles that follow a tool path by feedback, without solving for them.

With x the coordinates of the desired pose and `x_hat = k(q_hat)` those of the pose of the joint angles,
the joints move at

    q_hat_dot = J_A(q_hat)^-1 (xd + K e),    e = x - x_hat          Ljubljana lab manual, (3.43), (3.45)

so that `e_dot + K e = 0` (3.46): with K positive definite any error decays as `exp(-K t) e(0)`, that of a
wrong start as well as the drift of the integration.  This holds exactly for Euler angles and six joints or
more, away from singularities.  The error of a quaternion is at right angles to it and turns as it does:
with one gain for all its length dies away so, but for higher orders of it.  An arm of fewer joints does
its best approximation, and the rest remains in the error.

Without feedback, `q_hat_dot = J_A(q_hat)^-1 xd`, as in the manual's Figure 2.2, an error stays, and the
drift of the integration grows with time.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import expm

from twin.base.arrays import Floats, float_array, real_array
from twin.base.errors import SingularityError, UnreachableError
from twin.base.formatting import short_repr
from twin.physics.kinematics.differential import (
    SIZES,
    Coordinates,
    analytic_jacobian,
    analytic_jacobian_dot,
    coordinate_accelerations,
    coordinate_rates,
    coordinates_from_pose,
    require_coordinates,
    tool_coordinates,
)
from twin.physics.robot.evaluation import joint_vector
from twin.physics.robot.robot import Robot
from twin.physics.rotations.linear_maps import full_rank_inverse, pseudo_inverse_dot
from twin.physics.trajectories.sampling import Samples, sample_times
from twin.physics.trajectories.tool_paths import ToolMotion, ToolPath

Integration: TypeAlias = Literal["euler", "runge-kutta"]

ORDERS = {"euler": 1, "runge-kutta": 4}

LARGEST_STEP = 0.5
"""Largest step, in [rad] and [m]: a Jacobian does not predict a longer one, so the path is lost."""


class TrackedPath(NamedTuple):
    """Joint angles that followed a tool path, at N instants.

    Attributes:
        samples: t, q, qd, qdd; qd is the law's and qdd its derivative, so q differs from their integral by
            the errors of the integration.
        error: (N, 6) or, with a quaternion, (N, 7) `x - x_hat`, in [m] and [rad] or [1], angles modulo 2 pi.
    """

    samples: Samples
    error: Floats


@dataclass(frozen=True, eq=False)
class FeedbackLaw:
    """The law (3.45) for one robot, tool and gain; every method takes one instant or a batch.

    Attributes:
        robot: the robot, of any number of joints.
        gain: K, a number, its diagonal or the matrix, for the 6 or 7 coordinates, in [1/s]; `None` for no
            feedback.
        T_flange_tool: (4, 4) pose of the tool on the flange.
        coordinates: in which the error is taken: "zyx", "zyz" or "quaternion".

    Raises:
        ValueError: unknown coordinates, or a gain that is not positive definite.
    """

    robot: Robot
    gain: ArrayLike | None
    T_flange_tool: ArrayLike | None = None
    coordinates: Coordinates = "zyx"

    __repr__ = short_repr

    def __post_init__(self) -> None:
        require_coordinates(self.coordinates)
        size = SIZES[self.coordinates]
        gain = np.zeros((size, size)) if self.gain is None else gain_matrix(self.gain, size)
        object.__setattr__(self, "gain", gain)

    def error(self, q_hat: ArrayLike, T_base_tool: ArrayLike) -> Floats:
        """Return the error e (..., 6) or (..., 7) of joint angles (..., n) for desired poses (..., 4, 4)."""
        x_hat = tool_coordinates(self.robot, q_hat, self.T_flange_tool, self.coordinates)
        return coordinate_error(coordinates_from_pose(T_base_tool, self.coordinates), x_hat, self.coordinates)

    def speeds(self, q_hat: ArrayLike, motion: ToolMotion) -> Floats:
        """Return the joint speeds (..., n) of the law, in [rad/s].

        Args:
            q_hat: (..., n) joint angles, in [rad].
            motion: desired motion of the tool.

        Raises:
            SingularityError: the analytic Jacobian lacks rank, or the Euler angles of a pose are singular.
        """
        J_A = analytic_jacobian(self.robot, q_hat, self.T_flange_tool, self.coordinates)
        return _times(full_rank_inverse(J_A, "the analytic Jacobian"), self._desired(q_hat, motion))

    def remainder(self, q_hat: ArrayLike, qd: ArrayLike, motion: ToolMotion) -> Floats:
        """Return the part (..., 6) or (..., 7) of the rates `xd + K e` that speeds qd (..., n) miss.

        For `speeds` of at least six joints, it is rounding; for fewer joints, the part that is impossible.
        """
        J_A = analytic_jacobian(self.robot, q_hat, self.T_flange_tool, self.coordinates)
        return self._desired(q_hat, motion) - _times(J_A, np.asarray(qd))

    def accelerations(self, q_hat: ArrayLike, qd: ArrayLike, motion: ToolMotion) -> Floats:
        """Return the time derivative (..., n) of `speeds`, in [rad/s^2], of joints moving at qd (..., n)."""
        robot, tool, coordinates = self.robot, self.T_flange_tool, self.coordinates
        J_A = analytic_jacobian(robot, q_hat, tool, coordinates)
        J_A_dot = analytic_jacobian_dot(robot, q_hat, qd, tool, coordinates)
        inverse = full_rank_inverse(J_A, "the analytic Jacobian")
        x, _ = self._coordinates(q_hat, motion)
        error_rate = coordinate_rates(x, motion.twist, coordinates) - _times(J_A, np.asarray(qd))
        desired_rate = coordinate_accelerations(x, motion.twist, motion.twist_rate, coordinates)
        desired_rate = desired_rate + _times(np.asarray(self.gain), error_rate)
        law_rate = _times(pseudo_inverse_dot(J_A, inverse, J_A_dot), self._desired(q_hat, motion))
        return _times(inverse, desired_rate) + law_rate

    def _desired(self, q_hat: ArrayLike, motion: ToolMotion) -> Floats:
        """Return `xd + K e`."""
        x, x_hat = self._coordinates(q_hat, motion)
        error = coordinate_error(x, x_hat, self.coordinates)
        return coordinate_rates(x, motion.twist, self.coordinates) + _times(np.asarray(self.gain), error)

    def _coordinates(self, q_hat: ArrayLike, motion: ToolMotion) -> tuple[Floats, Floats]:
        """Return desired and actual coordinates; the signs of quaternions are made equal."""
        x_hat = tool_coordinates(self.robot, q_hat, self.T_flange_tool, self.coordinates)
        x = coordinates_from_pose(motion.T_base_tool, self.coordinates)
        return _on_the_side_of(x_hat, x, self.coordinates), x_hat


def coordinate_error(x: ArrayLike, x_hat: ArrayLike, coordinates: Coordinates) -> Floats:
    """Return `x - x_hat`, angles modulo 2 pi within [-pi, pi], quaternions on the same side.

    Args:
        x: (..., 6) or (..., 7) desired coordinates.
        x_hat: actual coordinates, whose quaternion determines the sign.
        coordinates: "zyx", "zyz" or "quaternion".

    Example:
        >>> from twin.physics.trajectories.closed_loop_inverse import coordinate_error
        >>> e = coordinate_error([0.5, 0, 0.7, 3.1, 0, 0], [0.4, 0.1, 0.5, -3.1, 0.2, 0.1], "zyx")
        >>> e.round(4).tolist()
        [0.1, -0.1, 0.2, -0.0832, -0.2, -0.1]
    """
    require_coordinates(coordinates)
    x, x_hat = (float_array(v, name, (SIZES[coordinates],)) for v, name in ((x, "x"), (x_hat, "x_hat")))
    error = _on_the_side_of(x_hat, x, coordinates) - x_hat
    if coordinates != "quaternion":
        error[..., 3:] -= 2.0 * np.pi * np.rint(error[..., 3:] / (2.0 * np.pi))
    return error


def error_decay(error: ArrayLike, gain: ArrayLike, t: ArrayLike) -> Floats:
    """Return an error after some time under the law, `exp(-K t) e`.

    Args:
        error: (m,) at time 0.
        gain: K, a number, (m,) of its diagonal, or (m, m), in [1/s].
        t: (...,) times, in [s].

    Returns:
        (..., m).

    Example:
        >>> from twin.physics.trajectories.closed_loop_inverse import error_decay
        >>> error_decay([0.1, 0.2], gain=10.0, t=0.1).round(4).tolist()  # by 1/e
        [0.0368, 0.0736]

    Source: Ljubljana lab manual, eq. (3.46).
    """
    error, t = real_array(error, "error"), real_array(t, "t")
    K = gain_matrix(gain, error.shape[-1])
    return expm(-K * t[..., None, None]) @ error


def gain_matrix(gain: ArrayLike, size: int) -> Floats:
    """Return the gain K (size, size), in [1/s], from a number, its diagonal, or itself.

    Raises:
        ValueError: another shape, or not positive definite, so that the error would not decay.

    Example:
        >>> from twin.physics.trajectories.closed_loop_inverse import gain_matrix
        >>> gain_matrix([10, 20], 2).tolist()
        [[10.0, 0.0], [0.0, 20.0]]
    """
    given = real_array(gain, "gain")
    if given.shape not in ((), (size,), (size, size)):
        raise ValueError(f"expected a gain of shape (), ({size},) or ({size}, {size}), got {given.shape}")
    K = given if given.ndim == 2 else np.diag(np.broadcast_to(given, size))
    if not (np.all(np.isfinite(K)) and np.min(np.linalg.eigvalsh((K + K.T) / 2.0)) > 0.0):
        raise ValueError("expected a gain that is positive definite, in 1/s")
    return K


def track(
    law: FeedbackLaw,
    tool_path: ToolPath,
    q_start: ArrayLike,
    period: float,
    *,
    integration: Integration = "euler",
) -> TrackedPath:
    """Return the joint angles that follow a tool path by closed-loop inverse kinematics.

    Joint limits are not checked: pass the samples to `twin.trajectories.sampling.check_limits`.

    Args:
        law: robot, tool, gain and coordinates.
        tool_path: pose, twist and twist rate of the tool over time.
        q_start: (n,) joint angles to start with, in [rad]; they need not meet the path.
        period: step of the integration and of the samples, in [s].
        integration: "euler", (3.41) of the manual, whose drift the feedback holds at the order of the period;
            or "runge-kutta", of fourth order, which shows the error dynamics themselves.

    Raises:
        SingularityError: at some time the analytic Jacobian lacks rank, or the angles are singular.
        UnreachableError: the path leaves the arm's reach, or comes so near a singularity that it is lost.
        ValueError: a gain so high that in steps of this period the error would grow.

    Example:
        >>> from twin import forward_kinematics, load
        >>> from twin.physics.trajectories import closed_loop_inverse as clik, tool_paths
        >>> robot, q = load("irb140"), [[0, 0, 0, 0, 0.3, 0], [0.2, 0, 0, 0, 0.5, 0]]
        >>> path = tool_paths.through_poses(forward_kinematics(robot, q), durations=1.0)
        >>> clik.track(clik.FeedbackLaw(robot, 10.0), path, q[0], 0.01).samples.q[-1, ::4].round(2).tolist()
        [0.2, 0.5]

    Source: Ljubljana lab manual, eq. (3.39)-(3.46), and its Figure 3.4.
    """
    if integration not in ORDERS:
        raise ValueError(f"unknown integration {integration!r}: known are {', '.join(map(repr, ORDERS))}")
    t = sample_times(tool_path.duration, period)
    _require_decay(np.asarray(law.gain), period, integration)
    motion, middle = tool_path(t), tool_path(t + 0.5 * period)

    def speeds(q_hat: Floats, motion: ToolMotion, k: int) -> Floats:
        try:
            return law.speeds(q_hat, ToolMotion(*(part[k] for part in motion)))
        except SingularityError as error:
            raise SingularityError(f"sample {k} at t = {t[k]:.6g} s: {error}") from None

    q, qd = np.empty((2, len(t), law.robot.n))
    q_hat = joint_vector(law.robot, "q_start", q_start)
    for k in range(len(t)):
        q[k], qd[k] = q_hat, speeds(q_hat, motion, k)
        mean = qd[k]
        if integration == "runge-kutta" and k + 1 < len(t):
            half = speeds(q_hat + 0.5 * period * qd[k], middle, k)
            again = speeds(q_hat + 0.5 * period * half, middle, k)
            mean = (qd[k] + 2.0 * (half + again) + speeds(q_hat + period * again, motion, k + 1)) / 6.0
        if not np.max(np.abs(period * mean)) <= LARGEST_STEP:
            off = np.linalg.norm(law.error(q_hat, motion.T_base_tool[k])[:3])
            step = np.max(np.abs(period * mean))
            raise UnreachableError(
                f"sample {k} at t = {t[k]:.6g} s: the joints lost the path, {off:.3g} m off it: the law "
                f"asks for a step of {step:.3g} rad, at most {LARGEST_STEP:g} can be followed, so the "
                "pose there is out of reach, or beside a singularity"
            )
        q_hat = q_hat + period * mean
    samples = Samples(t, q, qd, law.accelerations(q, qd, motion))
    return TrackedPath(samples, law.error(q, motion.T_base_tool))


def step_decay(gain: Floats, period: float, integration: Integration) -> Floats:
    """Return the matrix by which one step of the integration multiplies an error, for a constant path.

    Args:
        gain: K (m, m), in [1/s].
        period: T, in [s].
        integration: "euler", with `1 - K T`, or "runge-kutta", with the series of exp(-K T) up to T^4.

    Returns:
        (m, m).

    Example:
        >>> from twin.physics.trajectories.closed_loop_inverse import gain_matrix, step_decay
        >>> step_decay(gain_matrix(10.0, 1), 0.01, "euler").round(6).tolist()
        [[0.9]]
        >>> step_decay(gain_matrix(10.0, 1), 0.01, "runge-kutta").round(6).tolist()  # exp(-0.1)
        [[0.904838]]
    """
    step, term = np.eye(len(gain)), np.eye(len(gain))
    for order in range(1, ORDERS[integration] + 1):
        term = term @ gain * (-period / order)
        step = step + term
    return step


def _require_decay(K: Floats, period: float, integration: Integration) -> None:
    """Raise `ValueError` where one step of the integration lets an error grow."""
    if not K.any():  # no feedback: an error stays
        return
    factor = np.max(np.abs(np.linalg.eigvals(step_decay(K, period, integration))))
    if not factor < 1.0:
        raise ValueError(
            f"the gain is too high for steps of {period:g} s: with {integration} integration each step would "
            f"multiply an error by up to {factor:.4g}, which must be less than 1"
        )


def _on_the_side_of(x_hat: Floats, x: Floats, coordinates: Coordinates) -> Floats:
    """Return coordinates x, a quaternion with the sign that is nearer to that of x_hat."""
    if coordinates != "quaternion":
        return x
    turned = np.sum(x[..., 3:] * x_hat[..., 3:], axis=-1, keepdims=True) < 0.0
    return np.where(turned, np.array([1.0, 1, 1, -1, -1, -1, -1]), 1.0) * x


def _times(A: Floats, b: Floats) -> Floats:
    """Return the products (..., m) of matrices (..., m, n) and vectors (..., n)."""
    return np.einsum("...ij,...j->...i", A, b)


def decayed_error(law: FeedbackLaw, error: Floats, N: int, period: float, integration: Integration) -> Floats:
    """Return an error after 0, 1, ... N-1 steps along a path without acceleration.

    Args:
        law: of Euler angles, with a diagonal gain.
        error: (6,) at the start, in [m] and [rad].
        N: number of instants.
        period: T, in [s].
        integration: "euler", for `(1 - K T)^k e`, or "runge-kutta".

    Returns:
        (N, 6).

    Raises:
        ValueError: see `drift_bound`.
    """
    return _step_factors(law, period, integration) ** np.arange(N)[:, None] * error


def drift_bound(
    law: FeedbackLaw, samples: Samples, motion: ToolMotion, period: float, integration: Integration
) -> Floats:
    """Return the bound of the distance of the error from `decayed_error`, for each coordinate: (2).

    J_A_dot(qd) qd is taken at both ends of every step, and so is xdd; between them it is larger by no more
    than a share of second order in the step.

    Args:
        law: of Euler angles, with a diagonal gain or none; without feedback the bound is that of all N steps.
        samples: of `track`: joint angles and speeds at N instants.
        motion: desired motion at these instants.
        period: T, in [s].
        integration: as given to `track`.

    Returns:
        (6,) in [m] and [rad].

    Raises:
        ValueError: another law, for which the error does not obey (1) coordinate by coordinate, or
            a gain too high for the period.
    """
    factor = np.abs(_step_factors(law, period, integration))
    feedback = bool(np.any(np.asarray(law.gain)))
    if feedback and not np.all(factor < 1.0):
        raise ValueError(f"expected a gain that lets errors decay in steps of {period:g} s")
    robot, tool, coordinates = law.robot, law.T_flange_tool, law.coordinates
    x = coordinates_from_pose(motion.T_base_tool, coordinates)
    xdd = np.abs(coordinate_accelerations(x, motion.twist, motion.twist_rate, coordinates))
    q, qd = samples.q[:-1], samples.qd[:-1]
    turning = np.zeros_like(x[:-1])
    for end in (q, q + period * qd):
        J_A_dot = analytic_jacobian_dot(robot, end, qd, tool, coordinates)
        turning = np.maximum(turning, np.abs(np.einsum("kij,kj->ki", J_A_dot, qd)))
    d = np.max(np.maximum(xdd[:-1], xdd[1:]) + turning, axis=0)
    r = np.max(np.abs(law.remainder(samples.q, samples.qd, motion)), axis=0)
    added = 1.0 / (1.0 - factor) if feedback else len(q)  # that of all steps over that of one
    return (period * r + 0.5 * period**2 * d) * added


def _step_factors(law: FeedbackLaw, period: float, integration: Integration) -> Floats:
    """Return the factor (6,) by which one step multiplies each coordinate's error."""
    K = np.asarray(law.gain)
    factors = np.diagonal(step_decay(K, period, integration))
    diagonal = not np.any(K - np.diag(np.diagonal(K)))
    if law.coordinates == "quaternion" or not diagonal:
        raise ValueError(
            "the drift of each coordinate is bounded for Euler angles and a diagonal gain, got "
            f"{law.coordinates!r} and {'such' if diagonal else 'another'} a gain"
        )
    return factors

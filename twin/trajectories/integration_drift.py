"""What integration in steps leaves of, and adds to, the error of closed-loop inverse kinematics.

By Taylor's formula Euler's step `q_hat + T qd` gives the tool coordinates `x_hat + T J_A qd` and a remainder
`T^2/2 J_A_dot(qd) qd`, the wanted ones go on by `T xd + T^2/2 xdd`, and J_A qd is `xd + K e - r`: r is
nothing, or what fewer than six joints cannot do, or what a limit on xd takes away.  The step of the error is
therefore

    e[k+1] = (1 - K T) e[k] + T r[k] + T^2/2 d[k],    d = xdd - J_A_dot(qd) qd,                     (1)

each term of d taken somewhere within the step, and after any number of steps with a diagonal gain

    |e[k] - (1 - K T)^k e[0]| <= (T max|r| + T^2/2 max|d|) / (1 - |1 - K T|),                       (2)

which is `max|r| / K + T max|d| / (2 K)` for K T <= 1: the feedback holds the drift of the integration, and
where it could not (K = 0) the drift would go on.  The linear part of a Runge-Kutta step is a longer series,
what it adds is smaller than d.
"""

import numpy as np

from twin.arrays import Floats
from twin.kinematics.differential import analytic_jacobian_dot
from twin.kinematics.pose_coordinates import coordinate_accelerations, coordinates_from_pose
from twin.trajectories.closed_loop_inverse import FeedbackLaw, Integration, step_decay
from twin.trajectories.sampling import Samples
from twin.trajectories.tool_paths import ToolMotion


def decayed_error(law: FeedbackLaw, error: Floats, N: int, period: float, integration: Integration) -> Floats:
    """Return what is left of an error after 0, 1, ... N-1 steps, of a path without acceleration.

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
    """Return how far the error may be from `decayed_error`, for each coordinate: (2).

    J_A_dot(qd) qd is taken at both ends of every step, and so is xdd; between them it is larger by no more
    than a share of second order in the step.

    Args:
        law: of Euler angles, with a diagonal gain.
        samples: of `track`: joint angles and speeds at N instants.
        motion: the wanted motion at these.
        period: T, in [s].
        integration: as given to `track`.

    Returns:
        (6,) in [m] and [rad].

    Raises:
        ValueError: another law, for which the error does not obey (1) coordinate by coordinate, or
            a gain too high for the period.
    """
    factor = np.abs(_step_factors(law, period, integration))
    if not np.all(factor < 1.0):
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
    r = np.max(np.abs(law.left_over(samples.q, samples.qd, motion)), axis=0)
    return (period * r + 0.5 * period**2 * d) / (1.0 - factor)


def _step_factors(law: FeedbackLaw, period: float, integration: Integration) -> Floats:
    """Return what one step makes of each coordinate's error: (6,)."""
    K = np.asarray(law.gain)
    factors = np.diagonal(step_decay(K, period, integration))
    diagonal = np.count_nonzero(K) == len(K)  # positive definite, so that no entry there is 0
    if law.coordinates == "quaternion" or not diagonal:
        raise ValueError(
            "the drift of each coordinate is bounded for Euler angles and a diagonal gain, got "
            f"{law.coordinates!r} and {'such' if diagonal else 'another'} a gain"
        )
    return factors

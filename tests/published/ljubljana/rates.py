"""Ljubljana lab manual, chapters 2 and 3: forward and inverse differential kinematics of the tool."""

from __future__ import annotations

import numpy as np

from tests.published.items import SAMPLES, Finding, Item, computes, largest, rng
from tests.published.ljubljana.arms import Floats, arm, configurations
from tests.published.norrlof.jacobians import STEP, accelerated, differentiated, times, turning
from twin.kinematics import differential
from twin.kinematics.forward import forward_kinematics, jacobian
from twin.robot.robot import Robot
from twin.rotations.euler_angles import euler_rate_matrix
from twin.trajectories.closed_loop_inverse import FeedbackLaw, error_decay, track
from twin.trajectories.tool_paths import ToolMotion, through_poses


@computes("B-2.11")
def velocity(item: Item) -> Finding:
    """Check that J qd is the derivative of the pose, not of the velocity; least squares invert it."""
    robot = arm("youbot")
    q = configurations(robot.n)[::4]
    qd, qdd = rng().uniform(-1, 1, (2, *q.shape))
    V = times(jacobian(robot, q), qd)
    derivative = [differentiated(robot, one) @ rate for one, rate in zip(q, qd, strict=True)]
    met = times(jacobian(robot, q), differential.inverse_velocity(robot, q, V))
    V_dot = [accelerated(robot, *sample) for sample in zip(q, qd, qdd, strict=True)]
    return Finding(f"{len(q)} motions", largest(V - derivative, met - V), largest(V - V_dot))


@computes("B-xref")
def reference_velocity(item: Item) -> Finding:
    """Check (2.20) in its right reading, with the arm in the x-z plane, where five joints suffice."""
    robot, desired = arm("youbot"), np.array(item.inputs["rates"])
    q = configurations(robot.n) * [0, 1, 1, 1, 1]
    q = q[np.linalg.matrix_rank(jacobian(robot, q), tol=1e-3) == robot.n]
    qd = differential.inverse_velocity(robot, q, desired)
    return Finding(f"{len(q)} configurations", largest(times(jacobian(robot, q), qd) - desired))


def differentiated_coordinates(robot: Robot, q: Floats) -> Floats:
    """Return dx/dq (6, n) of (3.27), with the angles (3.25) by the chain rule."""
    J_A = np.empty((6, robot.n))
    for joint, direction in enumerate(np.eye(robot.n)):
        _, R, p = turning(robot, q + 1j * STEP * direction)
        r, dr = np.real(R), np.imag(R) / STEP
        J_A[:3, joint] = np.imag(p) / STEP
        J_A[3:, joint] = (
            (r[0, 0] * dr[1, 0] - r[1, 0] * dr[0, 0]) / (r[0, 0] ** 2 + r[1, 0] ** 2),
            -dr[2, 0] / np.hypot(r[2, 1], r[2, 2]),
            (r[2, 2] * dr[2, 1] - r[2, 1] * dr[2, 2]) / (r[2, 1] ** 2 + r[2, 2] ** 2),
        )
    return J_A


@computes("B-3.38")
def jacobians(item: Item) -> Finding:
    """Check J_A as the derivative of x, and J = T_A J_A.

    Near theta = +-90 degrees, where half of the youBot's samples are, J_A grows as 1 / cos(theta), and its
    condition number by the same factor again.
    """
    errors = []
    for robot in (arm("rx90"), arm("youbot")):
        q = configurations(robot.n)[SAMPLES // 2 :: 2]
        if robot.name == "youbot":  # theta = q2 + q3 + q4 for q5 = 0
            theta = np.resize([1, -1], 25) * np.pi / 2 + np.resize([0.01, 1e-4, -1e-4], 25)
            q[:25, 3:] = np.stack([theta - q[:25, 1] - q[:25, 2], 0 * theta], axis=-1)
        x = differential.tool_coordinates(robot, q)
        T_A = np.tile(np.eye(6), (len(q), 1, 1))
        T_A[:, 3:, 3:] = euler_rate_matrix(x[:, 3:], "zyx")
        J_A = differential.analytic_jacobian(robot, q)
        derivative = np.array([differentiated_coordinates(robot, one) for one in q])
        cosine = np.abs(np.cos(x[:, 4, None, None]))
        errors += [cosine * (T_A @ J_A - jacobian(robot, q)), cosine**2 * (derivative - J_A)]
    return Finding(f"{len(q)} configurations of each arm", largest(*errors))


@computes("B-3.46")
def error_dynamics(item: Item) -> Finding:
    """Check that an initial error of the RX90 decays as exp(-K t), with e_dot + K e = 0 at any time.

    For the youBot's five joints, the remainder is orthogonal to all feasible rates: J_A^T (e_dot + K e) = 0.
    """
    K, ends = np.array(item.inputs["K"]), np.array(item.inputs["q"])
    path = through_poses(forward_kinematics(arm("rx90"), ends), durations=1.0)
    law = FeedbackLaw(arm("rx90"), K)
    tracked = track(law, path, ends[0] + 0.02, 0.01, integration="runge-kutta")
    t = tracked.samples.t
    errors = [tracked.error - error_decay(tracked.error[0], K, t)]
    for robot in (arm("rx90"), arm("youbot")):
        q = configurations(robot.n)[SAMPLES // 4 :]
        q = q[np.linalg.cond(differential.analytic_jacobian(robot, q)) < 100]
        J_A, T = differential.analytic_jacobian(robot, q), forward_kinematics(robot, q + 0.05)
        twists = rng().uniform(-1, 1, (len(q), 6))
        law = FeedbackLaw(robot, K)
        x_dot = differential.coordinate_rates(differential.coordinates_from_pose(T, "zyx"), twists, "zyx")
        e_dot = x_dot - times(J_A, law.speeds(q, ToolMotion(T, twists, 0 * twists)))
        left = e_dot + K * law.error(q, T)
        errors.append(left if robot.n == 6 else times(np.swapaxes(J_A, -1, -2), left))
    return Finding(f"{len(t)} instants, {len(q)} states", largest(*errors))

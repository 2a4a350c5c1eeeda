"""The three kinds of singularity of an arm with a spherical wrist: how far a motion stays from each."""

import numpy as np

from twin.arrays import Floats
from twin.errors import RobotError, SingularityError
from twin.kinematics.inverse import arm_constants
from twin.robot.robot import Robot
from twin.trajectories.sampling import Samples

SINGULAR = 1e-3
"""Sines of wrist and elbow, and the wrist centre's distance from axis 1 in [m], must stay above this."""

KINDS = (
    ("shoulder", 0, "the wrist centre's distance from axis 1", " m"),
    ("elbow", 2, "the sine of the angle between lower arm and forearm", ""),
    ("wrist", 4, "the sine of the angle between axes 4 and 6", ""),
)
"""Name, DH axis, quantity and its unit."""


def singular_distances(robot: Robot, q: Floats, qd: Floats) -> tuple[Floats, Floats]:
    """Return how far an arm with a spherical wrist is from its three kinds of singularity, and the rates.

    The determinant of its Jacobian is, but for a constant, the product of the three.

    Args:
        robot: an arm of the family of `inverse_kinematics`.
        q: (N, 6) joint angles in [rad].
        qd: (N, 6) joint speeds in [rad/s].

    Returns:
        Two arrays.

        - distances: (N, 3) wrist centre from axis 1, positive in front of it, in [m]; sine of the angle
          between lower arm and forearm; sine of theta_5.
        - rates: (N, 3) their time derivatives.
    """
    dh = robot.dh
    assert dh is not None  # inverse kinematics has asked for it
    theta, theta_dot = q @ robot.dh_coupling.T + dh.theta0, qd @ robot.dh_coupling.T
    forearm = np.hypot(dh.a[2], dh.d[3])
    bend = theta[:, 2] + np.arctan2(-np.sin(dh.alpha[2]) * dh.d[3], dh.a[2])
    raised = theta[:, 1] + bend
    distances = [
        dh.a[0] + dh.a[1] * np.cos(theta[:, 1]) + forearm * np.cos(raised),
        np.sin(bend),
        np.sin(theta[:, 4]),
    ]
    rates = [
        -dh.a[1] * np.sin(theta[:, 1]) * theta_dot[:, 1]
        - forearm * np.sin(raised) * (theta_dot[:, 1] + theta_dot[:, 2]),
        np.cos(bend) * theta_dot[:, 2],
        np.cos(theta[:, 4]) * theta_dot[:, 4],
    ]
    return np.column_stack(distances), np.column_stack(rates)


def nearest_singularity(robot: Robot, q: Floats) -> str:
    """Return what of the three an arm that is close to a singularity is close to, as a part of a sentence.

    Args:
        robot: any robot; of those outside the family of `inverse_kinematics` nothing is told.
        q: (n,) joint angles in [rad].
    """
    try:
        lengths = arm_constants(robot)[0]
    except RobotError:
        return ""
    distances = np.abs(singular_distances(robot, q[None], np.zeros((1, len(q))))[0][0])
    shares = distances / (abs(lengths[2]) + abs(lengths[4]), 1.0, 1.0)
    least = int(np.argmin(shares))
    name, _, what, unit = KINDS[least]
    return f" of the {name} ({what} is {distances[least]:.3g}{unit})"


def check_singularities(robot: Robot, samples: Samples) -> None:
    """Check that a sampled motion meets no singularity and passes none between its samples.

    On one branch of the inverse kinematics the distances do not change their signs: a path through a
    singularity leaves with the sign that it came with, and between two samples it would not be seen. So each
    distance must be more than its rate covers in one period.

    Args:
        robot: an arm of the family of `inverse_kinematics`.
        samples: N samples of the motion; `qdd` is not used.

    Raises:
        SingularityError: of the earliest sample, the kind, time, joints and distance, and what is needed.
    """
    distances, rates = singular_distances(robot, samples.q, samples.qd)
    step = np.diff(samples.t).max(initial=0.0)
    near = ~(np.abs(distances) > np.maximum(SINGULAR, np.abs(rates) * step))
    if not near.any():
        return
    k, kind = np.argwhere(near)[0]
    name, axis, what, unit = KINDS[kind]
    value, covered = abs(distances[k, kind]), abs(rates[k, kind]) * step
    need = f"at least {SINGULAR:g}{unit} is needed"
    if value > SINGULAR:
        need = f"the motion covers {covered:.3g}{unit} in one sample, so it passes through"
    turning = ", ".join(  # where joints are coupled, several turn one DH axis
        f"{robot.joint_names[i]} at {np.rad2deg(samples.q[k, i]):.6g} deg"
        for i in np.flatnonzero(robot.dh_coupling[axis])
    )
    raise SingularityError(
        f"sample {k} at t = {samples.t[k]:.6g} s: {name} singularity, {what} is {value:.3g}{unit} "
        f"({turning}); {need}"
    )

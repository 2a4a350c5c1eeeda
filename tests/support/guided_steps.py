"""Guidance in the steps of a control loop, and its control law solved in closed form."""

import numpy as np
import pytest

from tests.support.dh_arms import dh_pose
from twin.abb.egm.guidance.guidance import GuidanceStop
from twin.physics.rotations.rotations import pose_matrix

PERIOD = 1e-3
START = np.deg2rad([10.0, 20.0, -15.0, 30.0, 50.0, 20.0])
TOOL = pose_matrix((0.03, -0.02, 0.11, 0.8, 0.6, 0.0, 0.0))


def poses(robot, q):
    """Compute tool poses from the DH table, independent of the guidance code."""
    return dh_pose(robot, q) @ TOOL


def same(value, expected, within=1e-12):
    np.testing.assert_allclose(value, np.broadcast_to(expected, np.shape(value)), rtol=0, atol=within)


def fault_of(guidance, message):
    """Return the fault at which a guidance stops because of a message."""
    with pytest.raises(GuidanceStop) as stop:
        guidance.take(message, START)
    return stop.value.fault


def driven(guidance, q, periods, left=None):
    """Compute joint angles (periods + 1, n) from q on.

    `left(speed)` is the share of the guidance's speed, in excess of the program's, that the joints carry out.
    """
    angles = [q]
    for _ in range(periods):
        speed, program = guidance.speed(angles[-1]), guidance.programmed()
        if left is not None:
            speed = program + left(speed - program) * (speed - program)
        guidance.follow(speed)
        angles.append(angles[-1] + PERIOD * speed)
    return np.array(angles)


def decay(gain, bandwidth, periods):
    """Return the remaining distances (periods + 1,) from a distance of 1 at rest, in closed form.

    The step of (distance e, speed v) is `v+ = v + s (k e - v)`, `e+ = e - dt v+`, with the filter's share s.
    Its powers follow from the eigenvalues of one matrix.
    """
    share = 1.0 if bandwidth is None else 1.0 - np.exp(-2.0 * np.pi * bandwidth * PERIOD)
    step = np.array([[1.0 - PERIOD * share * gain, -PERIOD * (1.0 - share)], [share * gain, 1.0 - share]])
    values, vectors = np.linalg.eig(step)
    start = np.linalg.solve(vectors, np.array([1.0, 0.0]))
    powers = values[None, :] ** np.arange(periods + 1)[:, None]
    return np.real(powers @ (vectors[0] * start))

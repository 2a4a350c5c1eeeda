"""Random states, a coupled wrist, and an opened loop for tests of the engine."""

from dataclasses import replace

import numpy as np

from scenarios.judging.motion_range import random_positions
from twin.physics.robot.robot import Payload

BODY = Payload(5.0, [0.02, 0.03, 0.1], np.diag([0.02, 0.03, 0.025]))
WRIST = np.eye(6)
WRIST[4, 3], WRIST[5, 3], WRIST[5, 4] = 0.3, -0.2, 0.6
"""Coupling matrix of a wrist: motor 5 turns with joint 4, motor 6 with joints 4 and 5."""


def with_coupled_wrist(robot):
    return replace(robot, drives=replace(robot.drives, coupling=WRIST))


def random_states(robot, count, seed=1):
    rng = np.random.default_rng(seed)
    qd, tau = rng.uniform(-1, 1, (2, count, robot.n))
    return zip(random_positions(robot, rng, count), qd * robot.qd_max, tau * robot.tau_max, strict=True)


def relative(found, expected):
    return np.max(np.abs(found - expected)) / np.max(np.abs(expected))


ZERO = np.zeros(6)
WEIGHTLESS = (0.0, 0.0, 0.0)


def open_loop(simulation, angle):
    """Turn the rod to an angle in [rad] that opens the loop."""
    rod = simulation._joints[simulation.robot.tree.names.index("joint_rod")]
    simulation._client.resetJointState(simulation._body, rod, angle, 0.0)

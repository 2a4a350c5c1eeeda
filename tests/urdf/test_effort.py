"""The effort limits of the URDFs follow from the scenarios by the rule that the robot.toml files state."""

import math

import numpy as np
import pytest

import twin
from tests.support.effort_rule import BEYOND_FLANGE, OFF_AXIS_6, paths_of
from twin.trajectories.sampling import sample

MARGIN = 1.5


def peak_torques(robot, path):
    """Largest |tau| of each joint with the payload, the path hurried until a joint is at its speed limit."""
    samples = sample(path, 1e-3)
    hurry = 1.0 / np.max(np.abs(samples.qd) / robot.qd_max)
    motion = (samples.q, hurry * samples.qd, hurry**2 * samples.qdd)
    peaks = []
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        com = (x * OFF_AXIS_6, y * OFF_AXIS_6, BEYOND_FLANGE)
        loaded = robot.with_payload(twin.Payload(robot.rating.payload, com))
        peaks.append(np.max(np.abs(twin.inverse_dynamics(loaded, *motion)), axis=0))
    return np.max(peaks, axis=0)


@pytest.mark.parametrize("name", ["irb140", "irb1400"])
def test_effort_is_the_rule_applied_to_the_scenarios(name):
    robot = twin.load(name)
    peak = np.max([peak_torques(robot, path) for path in paths_of(robot)], axis=0)
    assert robot.tau_max.tolist() == [math.ceil(MARGIN * tau) for tau in peak.tolist()]

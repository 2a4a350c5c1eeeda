"""The effort limits of the URDFs follow from the scenarios by the rule that the robot.toml files state."""

import math

import numpy as np
import pytest

import twin
from scenarios import joint_tracking, parallelogram, payload_mismatch, pose_path
from twin.trajectories.sampling import sample

MARGIN = 1.5
BEYOND_FLANGE = 0.080  # m
OFF_AXIS_6 = 4.91 / (6.0 * 9.81)  # m: the weight of the IRB 140's 6 kg is then its rating of axis 6, 4.91 N m


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


def paths_of(robot):
    """The motions of the scenarios that it suits."""
    modules = [joint_tracking, pose_path, payload_mismatch]
    if parallelogram.suits(robot):
        modules.append(parallelogram)
    as_fine = {"robot": robot.name, "time_step": 1e-6}  # stops put on samples of 1 ms wait for them
    return [module.trajectory(robot, module.Config(**as_fine)) for module in modules]


@pytest.mark.parametrize("name", ["irb140", "irb1400"])
def test_effort_is_the_rule_applied_to_the_scenarios(name):
    robot = twin.load(name)
    peak = np.max([peak_torques(robot, path) for path in paths_of(robot)], axis=0)
    assert robot.tau_max.tolist() == [math.ceil(MARGIN * tau) for tau in peak.tolist()]

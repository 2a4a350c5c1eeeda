"""The effort limits of the IRB 140's URDF follow from the scenarios by the rule that robot.toml states."""

import math

import numpy as np

import twin
from scenarios import joint_tracking, payload_mismatch, pose_path
from twin.sampling import sample

MARGIN = 1.5
PAYLOAD = 6.0  # kg, rated
BEYOND_FLANGE = 0.080  # m
OFF_AXIS_6 = 4.91 / (PAYLOAD * 9.81)  # m: the weight is then the published rating of axis 6, 4.91 N m


def peak_torques(robot, path):
    """Largest |tau| of each joint with the payload, the path hurried until a joint is at its speed limit."""
    samples = sample(path, 1e-3)
    hurry = 1.0 / np.max(np.abs(samples.qd) / robot.qd_max)
    motion = (samples.q, hurry * samples.qd, hurry**2 * samples.qdd)
    peaks = []
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        loaded = robot.with_payload(twin.Payload(PAYLOAD, (x * OFF_AXIS_6, y * OFF_AXIS_6, BEYOND_FLANGE)))
        peaks.append(np.max(np.abs(twin.inverse_dynamics(loaded, *motion)), axis=0))
    return np.max(peaks, axis=0)


def test_effort_is_the_rule_applied_to_the_scenarios():
    robot = twin.load("irb140")
    paths = [
        module.trajectory(robot, module.Config()) for module in (joint_tracking, pose_path, payload_mismatch)
    ]
    peak = np.max([peak_torques(robot, path) for path in paths], axis=0)
    assert robot.tau_max.tolist() == [math.ceil(MARGIN * tau) for tau in peak.tolist()]

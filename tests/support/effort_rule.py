"""Rule behind the effort limits of the URDFs: position of the load, motions that count, and their peak."""

import numpy as np

import twin
from scenarios.joint_tracking import JointTracking
from scenarios.parallelogram import Parallelogram
from scenarios.payload_mismatch import PayloadMismatch
from scenarios.pose_path import PosePath
from scenarios.setup import Sampling
from twin.physics.trajectories.joint_paths import joint_path
from twin.physics.trajectories.sampling import sample

BEYOND_FLANGE = 0.080  # m
OFF_AXIS_6 = 4.91 / (6.0 * 9.81)
"""Distance in [m] at which a load of 6 kg reaches 4.91 N m, the rating of the IRB 140's axis 6."""


def paths_of(robot):
    """Return the motions of the scenarios that suit the robot."""
    scenarios = [one for one in (JointTracking(), PayloadMismatch(), Parallelogram()) if one.suits(robot)]
    motions = [scenario.motion(robot) for scenario in scenarios]
    sampling = Sampling(time_step=1e-6)  # steps of 1 ms would delay stops to the next sample
    tour = joint_path(robot, PosePath().tour(robot, sampling), near=robot.poses[robot.tour[0]])
    return [*motions, tour]


def peak_torques(robot):
    """Return the largest |tau| (n,) with the rated payload on the worst of four sides of axis 6, in [N m].

    Each motion is hurried until a joint is at its speed limit.
    """
    peaks = []
    for motion in paths_of(robot):
        samples = sample(motion, 1e-3)
        hurry = 1.0 / np.max(np.abs(samples.qd) / robot.qd_max)
        states = samples.q, hurry * samples.qd, hurry**2 * samples.qdd
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            com = (x * OFF_AXIS_6, y * OFF_AXIS_6, BEYOND_FLANGE)
            loaded = robot.with_payload(twin.Payload(robot.rating.payload, com))
            peaks.append(np.max(np.abs(twin.inverse_dynamics(loaded, *states)), axis=0))
    return np.max(peaks, axis=0)

"""Rule behind the effort limits of the URDFs: position of the load, and the motions that count."""

from scenarios.joint_tracking import JointTracking
from scenarios.parallelogram import Parallelogram
from scenarios.payload_mismatch import PayloadMismatch
from scenarios.pose_path import PosePath
from scenarios.setup import Sampling
from twin.trajectories.joint_paths import joint_path

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

"""Rule behind the effort limits of the URDFs: position of the load, and the motions that count."""

from scenarios import joint_tracking, parallelogram, payload_mismatch, pose_path

BEYOND_FLANGE = 0.080  # m
OFF_AXIS_6 = 4.91 / (6.0 * 9.81)
"""Distance in [m] at which a load of 6 kg reaches 4.91 N m, the rating of the IRB 140's axis 6."""


def paths_of(robot):
    """Return the motions of the scenarios that suit the robot."""
    modules = [joint_tracking, pose_path, payload_mismatch]
    if parallelogram.suits(robot):
        modules.append(parallelogram)
    settings = {"robot": robot.name, "time_step": 1e-6}  # steps of 1 ms would delay stops to the next sample
    return [module.trajectory(robot, module.Config(**settings)) for module in modules]

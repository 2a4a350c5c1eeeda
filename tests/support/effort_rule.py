"""The rule behind the effort limits of the URDFs: where the load hangs, and which motions count."""

from scenarios import joint_tracking, parallelogram, payload_mismatch, pose_path

BEYOND_FLANGE = 0.080  # m


OFF_AXIS_6 = 4.91 / (6.0 * 9.81)  # m: the weight of the IRB 140's 6 kg is then its rating of axis 6, 4.91 N m


def paths_of(robot):
    """The motions of the scenarios that it suits."""
    modules = [joint_tracking, pose_path, payload_mismatch]
    if parallelogram.suits(robot):
        modules.append(parallelogram)
    as_fine = {"robot": robot.name, "time_step": 1e-6}  # stops put on samples of 1 ms wait for them
    return [module.trajectory(robot, module.Config(**as_fine)) for module in modules]

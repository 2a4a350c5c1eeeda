"""The tool moves through published poses of the robot, or along a recording of your own.

What it shows: the whole chain from a tool path to the arm. Tool poses become joint angles, speeds and
accelerations by inverse kinematics on one branch, and a controller makes the simulated arm follow them. By
default the tool visits the poses that the robot's `robot.toml` lists as its tour, straight and at rest in
each: for the IRB 140 those of the tests 3, 1, 2, 1, 3 of Aliaga 2019, section 3.1.2, on the branch of the
printed joint angles (in the order 1, 2, 3 axis 4 would leave its range); for the IRB 1400 the example of
Norrlöf 1999 and some of our own.
`--csv FILE` takes a timed recording instead (columns t,x,y,z,a,b,c,d; seconds, metres, unit quaternion with
the scalar first).

What must hold: forward kinematics at the joint angles of a published pose gives what was printed, and the
path begins and ends at the angles of the tour's ends. Computed torque on its own model, with a reference that
obeys the engine's recursion and a torque every engine step, tracks to 1e-10 rad; otherwise the error stays
under the bound of `scenarios.bounds`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from scenarios import base
from scenarios.base import Metric, option, positive
from scenarios.tracking import follow, sampled, tracking_metrics, with_arrays
from twin.errors import RecordingError, RobotError

if TYPE_CHECKING:
    from twin.log import Log
    from twin.robot import Robot
    from twin.trajectories import Trajectory


@dataclass(frozen=True)
class Config(base.Config):
    """Settings of the path."""

    csv: str | None = option(None, "recording to follow instead of the test poses")
    speed: float = option(0.25, "peak speed of the tool between the test poses, in m/s")
    angular_speed: float = option(1.0, "peak angular speed of the tool between the test poses, in rad/s")

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self.speed, "tool speed", "m/s")
        positive(self.angular_speed, "angular speed of the tool", "rad/s")
        if self.csv is not None and not Path(self.csv).is_file():
            raise RecordingError(f"there is no recording {self.csv!r}")


VARIANTS = (Config(reference="continuous"), Config(steps_per_period=2), Config(steps_per_period=5))


def suits(robot: Robot) -> bool:
    """Whether the robot has test poses."""
    return bool(robot.tour)


def trajectory(robot: Robot, config: Config) -> Trajectory:
    """The joint motion of the tool path that the settings ask for."""
    from twin.joint_paths import joint_path
    from twin.kinematics import forward_kinematics
    from twin.recording import read_recording
    from twin.tool_paths import through_poses, through_recording

    if config.csv is not None:
        return joint_path(robot, through_recording(read_recording(config.csv)), near=np.zeros(robot.n))
    if not robot.tour:
        raise RobotError(
            f"robot {robot.name!r} has no [tour] of poses in a robot.toml; give a --csv recording"
        )
    poses = forward_kinematics(robot, np.array([robot.poses[name] for name in robot.tour]))
    path = through_poses(poses, speed=config.speed, angular_speed=config.angular_speed)
    return joint_path(robot, path, near=robot.poses[robot.tour[0]])


def run(config: Config) -> Log:
    """Follow the path."""
    robot = config.load_robot()
    log = follow(config, sampled(config, trajectory(robot, config)), robot)
    return with_arrays(log, tour=np.array(config.csv is None))


def metrics(log: Log) -> tuple[Metric, ...]:
    """Tracking error; for the tour also the published figures."""
    return (*(tour_metrics(log) if log.arrays["tour"] else ()), *tracking_metrics(log))


def tour_metrics(log: Log) -> tuple[Metric, ...]:
    """Forward kinematics against the printed poses, and the ends of the path against the named angles."""
    from twin.kinematics import forward_kinematics
    from twin.rotations import pose_vector

    robot = log.robot
    checks = [
        Metric(
            f"pose {name} - printed",
            float(np.max(np.abs(pose_vector(forward_kinematics(robot, robot.poses[name])) - printed.flange))),
            "",
            printed.tolerance,
            "forward kinematics at its joint angles, position in m and quaternion, as far as printed",
        )
        for name, printed in robot.published.items()
    ]
    ends = log.q_ref[[0, -1]] - np.array([robot.poses[robot.tour[0]], robot.poses[robot.tour[-1]]])
    return (
        *checks,
        Metric(
            "ends of the path - named angles",
            float(np.max(np.abs(ends))),
            "rad",
            1e-12,
            "inverse kinematics of the first and the last pose on the branch of their angles",
        ),
    )

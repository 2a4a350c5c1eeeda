"""The tool moves through the thesis' test poses, or along a recording of your own.

What it shows: the whole chain of the thesis. Tool poses become joint angles, speeds and accelerations by
inverse kinematics on one branch, and a controller makes the simulated arm follow them. By default the tool
visits the poses of the tests 3, 1, 2, 1, 3 (Aliaga 2019, section 3.1.2), straight and at rest in each, on the
branch of the printed joint angles of tests 1 and 3; in the order 1, 2, 3 axis 4 would leave its range.
`--csv FILE` takes a timed recording instead (columns t,x,y,z,a,b,c,d; seconds, metres, unit quaternion with
the scalar first).

What must hold: forward kinematics at the printed joint angles of tests 1 and 3 gives the printed poses to
1e-15, and the path begins and ends at the printed angles of test 3. Computed torque on its own model, with a
reference that obeys the engine's recursion and a torque every engine step, tracks to 1e-10 rad; otherwise
the error stays under the bound of `scenarios.bounds`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from scenarios import base
from scenarios.base import Metric, named_pose, option, positive
from scenarios.tracking import follow, sampled, tracking_metrics, with_arrays
from twin.errors import RecordingError

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

ORDER = ("test_3", "test_1", "test_2", "test_1", "test_3")

PRINTED = {
    # Aliaga 2019, section 3.1.4.1, input of test 1: x, y, z in m, quaternion a, b, c, d
    "test_1": (
        (0.256169020979862, 0.146951811198975, 0.719041733432580),
        (0.355266700974361, 0.220219321995462, 0.809549214980808, 0.412212433003434),
    ),
    # Aliaga 2019, section 3.1.2.3, result of test 3
    "test_3": (
        (0.651650430407853, -0.143535605813641, 0.481847014812847),
        (0.542604000206256, 0.158528784053503, 0.703280404944469, 0.431098823482308),
    ),
}


def trajectory(robot: Robot, config: Config) -> Trajectory:
    """The joint motion of the tool path that the settings ask for."""
    from twin.joint_paths import joint_path
    from twin.kinematics import forward_kinematics
    from twin.recording import read_recording
    from twin.tool_paths import through_poses, through_recording

    if config.csv is not None:
        return joint_path(robot, through_recording(read_recording(config.csv)), near=np.zeros(robot.n))
    poses = forward_kinematics(robot, np.array([named_pose(robot, name) for name in ORDER]))
    path = through_poses(poses, speed=config.speed, angular_speed=config.angular_speed)
    return joint_path(robot, path, near=robot.poses[ORDER[0]])


def run(config: Config) -> Log:
    """Follow the path."""
    robot = config.load_robot()
    log = follow(config, sampled(config, trajectory(robot, config)), robot)
    return with_arrays(log, thesis=np.array(config.csv is None))


def metrics(log: Log) -> tuple[Metric, ...]:
    """Tracking error; for the thesis' poses also the published figures."""
    published = published_metrics(log) if log.arrays["thesis"] else ()
    return (*published, *tracking_metrics(log))


def published_metrics(log: Log) -> tuple[Metric, ...]:
    """Forward kinematics against the printed poses, and the ends of the path against the printed angles."""
    from twin.kinematics import forward_kinematics
    from twin.rotations import pose_vector

    robot = log.robot
    found = pose_vector(forward_kinematics(robot, np.array([robot.poses[name] for name in PRINTED])))
    printed = np.array([(*position, *quaternion) for position, quaternion in PRINTED.values()])
    ends = log.q_ref[[0, -1]] - np.array([robot.poses[ORDER[0]], robot.poses[ORDER[-1]]])
    return (
        Metric(
            "poses of tests 1, 3 - printed",
            float(np.max(np.abs(found - printed))),
            "",
            1e-15,
            "forward kinematics at the printed angles, position in m and quaternion; 15 decimals are "
            "printed, and computed with rounding",
        ),
        Metric(
            "ends of the path - printed angles",
            float(np.max(np.abs(ends))),
            "rad",
            1e-12,
            "inverse kinematics of test 3's pose on the branch of its printed angles",
        ),
    )

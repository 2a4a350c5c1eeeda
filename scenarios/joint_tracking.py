"""Scenario `joint_tracking`: cosines of all joints at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenarios.judging.motion_range import cosines
from scenarios.options import option, positive, share
from scenarios.scenario import TrackingScenario
from twin.physics.robot.robot import Robot

if TYPE_CHECKING:
    from twin.physics.trajectories.joint_trajectories import Trajectory

SLOWEST, FASTEST = 0.25, 0.55  # Hz, of the first and of the last joint


class JointTracking(TrackingScenario):
    """Follow cosines with all joints at once, each at a different frequency.

    What it shows: how well each controller follows a fast, coupled motion. Every joint moves as a cosine
    about the middle of its range, from rest, at up to a fraction of its speed limit. The frequencies differ,
    so that the combination of speeds and accelerations changes throughout the motion.

    What must hold: computed torque with an exact model, a reference that obeys the engine's recursion, and a
    new torque in every engine step tracks to round-off (1e-10 rad): the model and the engine are the same
    robot. With another sampling, and under controllers without a model, the error stays below the bound that
    `scenarios.judging.bounds` derives. The motion stays within every joint's range, speed limit and torque
    limit.
    """

    duration: float = option(4.0, "length of the motion, in s")
    speed_fraction: float = option(0.4, "peak speed of every joint, as a fraction of its limit")
    variants = ({"reference": "continuous"}, {"steps_per_period": 2}, {"steps_per_period": 5})

    def __post_init__(self) -> None:
        positive(self.duration, "duration", "s")
        share(self.speed_fraction, "speed fraction")

    def motion(self, robot: Robot) -> Trajectory:
        """Return the cosines."""
        return cosines(robot, self.duration, self.speed_fraction, SLOWEST, FASTEST)


if __name__ == "__main__":
    from scenarios.shell.process import run_script

    raise SystemExit(run_script(__file__))

"""Follow cosines with all joints at once, each at a different frequency.

What it shows: how well each controller follows a fast, coupled motion. Every joint moves as a cosine about
the middle of its range, from rest, at up to a fraction of its speed limit. The frequencies differ, so that
the combination of speeds and accelerations changes throughout the motion.

What must hold: computed torque with an exact model, a reference that obeys the engine's recursion, and a new
torque in every engine step tracks to round-off (1e-10 rad): the model and the engine are the same robot. With
another sampling, and under controllers without a model, the error stays below the bound that
`scenarios.checks.bounds` derives. The motion stays within every joint's range, speed limit and torque limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scenarios import base
from scenarios.base import Metric, option, positive
from scenarios.checks.closed_loop import closed_loop
from scenarios.checks.motion_range import cosines
from scenarios.checks.tracking import follow, sampled, tracking_metrics
from twin.robot.robot import Robot

if TYPE_CHECKING:
    from twin.logs.log import Log
    from twin.trajectories.joint_trajectories import Trajectory
    from twin.trajectories.sampling import Samples


@dataclass(frozen=True)
class Config(base.Config):
    """Settings of the motion."""

    duration: float = option(4.0, "length of the motion, in s")
    speed_fraction: float = option(0.4, "peak speed of every joint, as a fraction of its limit")

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self.duration, "duration", "s")
        if not 0 < self.speed_fraction <= 1:
            raise ValueError(f"expected a speed fraction above 0 and up to 1, got {self.speed_fraction}")


VARIANTS = (Config(reference="continuous"), Config(steps_per_period=2), Config(steps_per_period=5))

SLOWEST, FASTEST = 0.25, 0.55  # Hz, of the first and of the last joint


def trajectory(robot: Robot, config: Config) -> Trajectory:
    """Return the cosines of the settings."""
    return cosines(robot, config.duration, config.speed_fraction, SLOWEST, FASTEST)


def reference(robot: Robot, config: Config) -> Samples:
    """Return the cosines, sampled."""
    return sampled(config, trajectory(robot, config))


def run(config: Config) -> Log:
    """Follow the cosines."""
    return follow(config, *closed_loop(config, reference))


def metrics(log: Log) -> tuple[Metric, ...]:
    """Return the tracking error and its limits."""
    return tracking_metrics(log)


if __name__ == "__main__":
    from scenarios.cli.process import run_script

    raise SystemExit(run_script(__file__))

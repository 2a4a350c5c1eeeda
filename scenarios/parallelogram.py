"""Drop, hold and drive an arm with a parallelogram, also with a wrong controller model.

What it shows: an arm whose third motor acts through a lever and a parallel rod. The engine closes the loop by
a constraint, the model has it in closed form.

1. *Free fall*: released at rest in the pose `--start`, the arm falls in the engine and in the model, for
   `--free-time` or until the parallelogram would fold.
2. *Held and driven*: the controller holds the arm, swings lower and upper arm against each other at speed,
   and holds it again.
3. *Cost of ignoring it* (`--model`): the controller's model is the arm without the masses of lever and rod
   (`no_rod`), or an open chain (`open_chain`, a common simplification of the parallelogram). In the open
   chain q3 is the angle between the arms, and the third motor is in the elbow.

What must hold: the loop stays closed to 1e-12 m, and engine and model agree on the fall and on the run, with
every model of the controller. With the exact model computed torque tracks to 1e-11 rad.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from scenarios import base
from scenarios.base import Metric, named_pose, one_of, option, positive
from scenarios.checks import bounds
from scenarios.checks.closed_loop import Arms, closed_loop
from scenarios.checks.free_motion import check_free_time, free_metrics, free_motion
from scenarios.checks.motion_range import finite_speed, middle_and_half
from scenarios.checks.replay import LOOP_GAP
from scenarios.checks.tracking import (
    agreement_metrics,
    error_metrics,
    follow,
    sampled,
    tracking_metrics,
    validity_metrics,
    with_arrays,
)
from twin.errors import RobotError
from twin.robot.robot import Robot

if TYPE_CHECKING:
    from twin.logs.log import Log
    from twin.trajectories.joint_trajectories import Trajectory
    from twin.trajectories.sampling import Samples

MODELS = ("exact", "no_rod", "open_chain")


@dataclass(frozen=True)
class Config(base.Config):
    """Settings of the fall and of the motion."""

    robot: str = option("irb1400", "name of a robot with a closed loop, or path of its robot.toml")
    model: str = option("exact", "robot model of the controller", MODELS)
    start: str = option("zero", "named pose at the start of the free fall")
    free_time: float = option(0.4, "length of the free fall, in s")
    duration: float = option(3.0, "length of the driven motion, in s")
    speed_fraction: float = option(0.5, "peak speed of every joint, as a fraction of its limit")

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.model, "model", MODELS)
        check_free_time(self.free_time, self.time_step)
        positive(self.duration, "duration", "s")
        if not 0 < self.speed_fraction <= 1:
            raise ValueError(f"expected a speed fraction above 0 and up to 1, got {self.speed_fraction}")

    @property
    def known_law(self) -> bool:
        """Whether a bound of the tracking error may apply; requires the exact model."""
        return super().known_law and self.model == "exact"


VARIANTS = (
    Config(model="no_rod"),
    Config(model="open_chain"),
    Config(start="hanging", duration=10.0),
)

ROUND_OFF = 1e-11  # rad: computed torque with the exact model; observed: 2e-15
FREQUENCY = 0.6  # Hz, approximately
HOLD = 0.5  # s, before and after
SHARE_OF_RANGE = 0.4  # largest amplitude of a joint, over the distance from its middle to its limit


def suits(robot: Robot) -> bool:
    """Return whether the robot has a closed loop."""
    return bool(robot.loops)


def trajectory(robot: Robot, config: Config) -> Trajectory:
    """Return the motion: hold, swing every second joint against its neighbours, hold."""
    from twin.trajectories.joint_trajectories import hold, sequence, sines

    middle, half = middle_and_half(robot)
    speed = finite_speed(robot)
    frequency = max(1, round(FREQUENCY * config.duration)) / config.duration  # whole swings
    widest = np.minimum(config.speed_fraction * speed / (2 * np.pi * frequency), SHARE_OF_RANGE * half)
    swing = widest * (-1.0) ** np.arange(robot.n)
    still = hold(middle - swing, HOLD)
    return sequence(still, sines(middle, swing, frequency, config.duration, phase=-np.pi / 2), still)


def reference(robot: Robot, config: Config) -> Samples:
    """Return the driven motion, sampled."""
    return sampled(config, trajectory(robot, config))


def arms(robot: Robot, config: Config) -> Arms:
    """Return the robot as plant, and the controller's model of the settings."""
    from twin.robot.loops import open_chain, without_loop_links

    if not suits(robot):
        raise RobotError(f"robot {robot.name!r} has no closed loop, which this scenario requires")
    plant = config.with_plant_payload(robot)
    models = {"no_rod": without_loop_links, "open_chain": open_chain}
    return Arms(plant, models[config.model](plant) if config.model in models else None)


def run(config: Config) -> Log:
    """Let the arm fall, then drive it."""
    loop = closed_loop(config, reference, arms)
    robot = config.with_plant_changes(loop.plant)
    start = named_pose(robot, config.start)
    fall = free_motion(robot, start, np.zeros(robot.n), config.free_time, config.time_step, config.gui)
    log = follow(config, *loop)
    return with_arrays(log, exact=np.array(config.model == "exact"), **fall)


def metrics(log: Log) -> tuple[Metric, ...]:
    """Return the metrics of the fall and of the driven motion."""
    fall = (
        Metric(
            "largest gap of a closed loop, falling",
            float(np.max(log.arrays["free_gap"])),
            "m",
            LOOP_GAP,
            "the loop's constraint is affine in the joint angles, so that integration preserves it",
        ),
        *free_metrics(log),
    )
    if not log.arrays["exact"]:
        run = (*error_metrics(log), *agreement_metrics(log))
        return (*fall, *run, *validity_metrics(log))
    error, *others = tracking_metrics(log)
    if bounds.is_exact(log):
        error = replace(error, limit=ROUND_OFF)
    return (*fall, error, *others)


if __name__ == "__main__":
    from scenarios.cli.process import run_script

    raise SystemExit(run_script(__file__))

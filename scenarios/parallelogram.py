"""Scenario `parallelogram`: an arm with a closed loop, falling, held and driven."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from scenarios.judging import bounds
from scenarios.judging.agreement import gap_metric
from scenarios.judging.motion_range import (
    FreeMotion,
    check_free_time,
    finite_speed,
    free_metrics,
    free_motion,
    middle_and_half,
)
from scenarios.judging.run import TrackingRun
from scenarios.judging.tracking import tracking_metrics
from scenarios.metric import Metric
from scenarios.options import one_of, option, positive, share
from scenarios.scenario import TrackingScenario
from scenarios.setup import Arms, Setup, named_pose
from twin.base.errors import RobotError
from twin.physics.robot.robot import Payload, Robot

if TYPE_CHECKING:
    from twin.physics.trajectories.joint_trajectories import Trajectory

MODELS = ("exact", "no_rod", "open_chain")

ROUND_OFF = 1e-11  # rad: computed torque with the exact model; observed: 2e-15
FREQUENCY = 0.6  # Hz, approximately
HOLD = 0.5  # s, before and after
SHARE_OF_RANGE = 0.4  # largest amplitude of a joint, over the distance from its middle to its limit


@dataclass(frozen=True, eq=False, kw_only=True)
class FallingRun(TrackingRun):
    """Run with a free fall before it."""

    fall: FreeMotion


class Parallelogram(TrackingScenario):
    """Drop, hold and drive an arm with a parallelogram, also with a wrong controller model.

    What it shows: an arm whose third motor acts through a lever and a parallel rod. The engine closes the
    loop by a constraint, the model has it in closed form.

    1. *Free fall*: released at rest in the pose `--start`, the arm falls in the engine and in the model, for
       `--free-time` or until the parallelogram would fold.
    2. *Held and driven*: the controller holds the arm, swings lower and upper arm against each other at
       speed, and holds it again.
    3. *Cost of ignoring it* (`--model`): the controller's model is the arm without the masses of lever and
       rod (`no_rod`), or an open chain (`open_chain`, a common simplification of the parallelogram). In the
       open chain q3 is the angle between the arms, and the third motor is in the elbow.

    What must hold: the loop stays closed to 1e-12 m, and engine and model agree on the fall and on the run,
    with every model of the controller. With the exact model computed torque tracks to 1e-11 rad.
    """

    defaults = {"robot": "irb1400"}
    model: str = option("exact", "robot model of the controller", choices=MODELS, motion=False)
    start: str = option("zero", "named pose at the start of the free fall", motion=False)
    free_time: float = option(0.4, "length of the free fall, in s", motion=False)
    duration: float = option(3.0, "length of the driven motion, in s")
    speed_fraction: float = option(0.5, "peak speed of every joint, as a fraction of its limit")
    variants = ({"model": "no_rod"}, {"model": "open_chain"}, {"start": "hanging", "duration": 10.0})

    def __post_init__(self) -> None:
        one_of(self.model, "model", MODELS)
        positive(self.duration, "duration", "s")
        share(self.speed_fraction, "speed fraction")

    def check(self, setup: Setup) -> None:
        """Raise ValueError if the fall is shorter than a step."""
        check_free_time(self.free_time, setup.time_step)

    def suits(self, robot: Robot) -> bool:
        """Return whether the robot has a closed loop."""
        return bool(robot.loops)

    def motion(self, robot: Robot) -> Trajectory:
        """Return the motion: hold, swing every second joint against its neighbours, hold."""
        from twin.physics.trajectories.joint_trajectories import hold, sequence, sines

        middle, half = middle_and_half(robot)
        speed = finite_speed(robot)
        frequency = max(1, round(FREQUENCY * self.duration)) / self.duration  # whole swings
        widest = np.minimum(self.speed_fraction * speed / (2 * np.pi * frequency), SHARE_OF_RANGE * half)
        swing = widest * (-1.0) ** np.arange(robot.n)
        still = hold(middle - swing, HOLD)
        return sequence(still, sines(middle, swing, frequency, self.duration, phase=-np.pi / 2), still)

    def arms(self, robot: Robot, payload: Payload | None) -> Arms:
        """Return the robot as plant, and the controller's model of the options."""
        from twin.physics.robot.loops import open_chain, without_loop_links

        if not self.suits(robot):
            raise RobotError(f"robot {robot.name!r} has no closed loop, which this scenario requires")
        plant = super().arms(robot, payload).plant
        models = {"no_rod": without_loop_links, "open_chain": open_chain}
        return Arms(plant, models[self.model](plant) if self.model in models else None)

    def run(self, setup: Setup | None = None) -> FallingRun:
        """Let the arm fall, then drive it."""
        setup = self.checked(setup)
        robot = setup.with_plant_changes(self.arms(setup.nominal_robot(), setup.plant_payload).plant)
        start = named_pose(robot, self.start)
        fall = free_motion(robot, start, np.zeros(robot.n), self.free_time, setup)
        return FallingRun(**vars(super().run(setup)), fall=fall)

    def metrics(self, run: FallingRun) -> tuple[Metric, ...]:
        """Return the metrics of the fall and of the driven motion."""
        error, *others = tracking_metrics(run)
        if bounds.is_exact(run):
            error = replace(error, limit=ROUND_OFF)
        gap = gap_metric("largest gap of a closed loop, falling", run.fall.gap)
        return (gap, *free_metrics(run.log, run.fall), error, *others)


if __name__ == "__main__":
    from scenarios.shell.process import run_script

    raise SystemExit(run_script(__file__))

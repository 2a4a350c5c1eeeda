"""Scenario `drive_check`: whether the motors carry arm and payload at the joints' speed limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from scenarios.joint_tracking import FASTEST, SLOWEST
from scenarios.judging.drive_load import (
    DriveLoad,
    drive_load,
    known_drives,
    load_table,
    with_rated_payload,
    worst_axis,
)
from scenarios.judging.motion_range import cosines
from scenarios.judging.run import TrackingRun
from scenarios.judging.tracking import tracking_metrics
from scenarios.metric import Metric
from scenarios.options import at_least, one_of, option, positive, share
from scenarios.scenario import ScenarioTable, TrackingScenario
from scenarios.setup import Arms, Sampling, Setup
from twin.base.errors import RobotError
from twin.physics.robot.robot import Payload, Robot

if TYPE_CHECKING:
    from twin.data.logs.log import Log
    from twin.physics.trajectories.sampling import Samples

TORQUE_SHARE = 0.75
"""Largest share of a motor's torque along the reference; the rest is for the feedback."""
SLOWER = 0.95  # factor of the speed from one attempt to the next, until the torque suffices
LEAST_SPEED = 0.01  # smallest share of the speed limits


@dataclass(frozen=True, eq=False, kw_only=True)
class LoadedRun(TrackingRun):
    """Run with the load of each motor, its axis moving alone."""

    load: DriveLoad


class DriveCheck(TrackingScenario):
    """Check that the motors carry the arm and its payload at the joints' speed limits.

    What it shows: each axis moves alone at its speed limit. The scenario reports the share of the motor's
    torque that weight and friction take in the worst pose, the time to reach that speed, and the motor's
    speed. Poses are drawn at random over the joints' ranges; the payload is a point 0.080 m beyond the flange
    and 0.083 m off the last axis, so that it loads every axis. Then all joints swing at once in the engine.
    The speed of the swing is limited by the first joint near its speed limit or by three quarters of a
    motor's torque. `--picture` draws the torque of every motor over its speed, between the curves of its
    torque limit and the dotted lines of the joint's speed limit.

    What must hold: every motor has enough torque and stays below its maximum speed, and no motor reaches its
    torque limit during the motion. Estimated drive data make the verdict an estimate, too.
    """

    defaults = {"drives": "rigid"}
    states: int = option(10_000, "random poses", motion=False)
    duration: float = option(2.0, "length of the motion, in s")
    speed_fraction: float = option(0.8, "peak speed of a joint in the motion, as a fraction of its limit")
    variants = ({"speed_fraction": 1.0},)
    needs = ("payload",)

    def __post_init__(self) -> None:
        positive(self.duration, "duration", "s")
        at_least(self.states, "states")
        share(self.speed_fraction, "speed fraction")

    def check(self, setup: Setup) -> None:
        """Raise UnknownNameError if the drives are ideal."""
        one_of(setup.drives, "drives for this scenario", ("rigid", "elastic"))

    def suits(self, robot: Robot) -> bool:
        """Return whether the drives and the masses of the robot are known."""
        return robot.drives is not None and robot.has_inertia

    def arms(self, robot: Robot, payload: Payload | None) -> Arms:
        """Return the robot with its rated payload, as plant and as model."""
        return Arms(with_rated_payload(super().arms(robot, payload).plant))

    def reference(self, robot: Robot, sampling: Sampling) -> Samples:
        """Return the fastest cosines for which no motor needs more than `TORQUE_SHARE` of its torque.

        Raises:
            RobotError: there is no such speed.
        """
        from twin.physics.dynamics.equation_of_motion import inverse_dynamics

        robot, speed = with_rated_payload(sampling.loaded(robot)), self.speed_fraction
        while speed > LEAST_SPEED:
            samples = sampling.sampled(cosines(robot, self.duration, speed, SLOWEST, FASTEST))
            tau = inverse_dynamics(robot, samples.q, samples.qd, samples.qdd)
            if np.all(np.abs(tau) <= TORQUE_SHARE * robot.drive_torque_max):
                return samples
            speed *= SLOWER
        raise RobotError(
            f"robot {robot.name!r}: its motors need more than {TORQUE_SHARE:.0%} of their torque to move the "
            "arm and its rated payload at all"
        )

    def run(self, setup: Setup | None = None) -> LoadedRun:
        """Compute the load of each axis alone, then run the swing of all joints."""
        setup = self.checked(setup)
        known_drives(setup.bare_robot())
        plant = self.arms(setup.nominal_robot(), setup.plant_payload).plant
        load = drive_load(setup.with_plant_changes(plant), setup.seed, self.states)
        return LoadedRun(**vars(super().run(setup)), load=load)

    def metrics(self, run: LoadedRun) -> tuple[Metric, ...]:
        """Return the largest torque and speed of all axes, then the tracking metrics of the motion."""
        robot, load = run.log.robot, run.load
        why = "weight in the worst pose and friction"
        return (
            worst_axis(robot, "torque at a speed limit / motor's", load.use, why),
            worst_axis(
                robot, "motor speed at a speed limit / its maximum", load.speed, "gear ratio x that limit"
            ),
            *tracking_metrics(run),
        )

    def table(self, run: LoadedRun) -> ScenarioTable:
        """Return a row for each axis."""
        return load_table(run.load, run.log.robot)

    @staticmethod
    def picture(logs: Sequence[Log], path: Path) -> None:
        """Draw the torque of every motor over its speed."""
        from twin.studies.views.plots import draw_motors

        draw_motors(logs, path)


if __name__ == "__main__":
    from scenarios.shell.process import run_script

    raise SystemExit(run_script(__file__))

"""A payload that the controller does not know hangs from the flange.

What it shows: what a wrong model costs. The plant carries the robot's rated payload, a point mass 0.080 m
beyond the flange; the controller believes in the bare arm (`--payload-known` tells it the truth, for
comparison). The arm picks up, carries over and puts down along straight lines with the flange pointing down.

Why down: the gains come from the bare arm's inertia, and about axis 5 of the IRB 140 that is 4e-4 kg m^2, a
300th of what the payload of 6 kg adds. At 20 rad/s axis 5 is a spring of 0.16 N m/rad, and the payload held
out sideways weighs 8.5 N m on it. No feedback law of this bandwidth carries that; hanging straight down, the
payload swings about axis 5 like a pendulum.

What must hold: the whole run in the engine is the one that the model of the loaded arm predicts under the
same controller, to rounding: the mismatch is exactly the payload. With the payload known, computed
torque tracks to 1e-10 rad again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scenarios import base
from scenarios.base import Metric, option, positive
from scenarios.checks.closed_loop import Arms, closed_loop
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
from twin.robot.robot import Payload, Rating, Robot

if TYPE_CHECKING:
    from twin.logs.log import Log
    from twin.trajectories.joint_trajectories import Trajectory
    from twin.trajectories.sampling import Samples


@dataclass(frozen=True)
class Config(base.Config):
    """Settings of the payload."""

    payload_mass: float | None = option(None, "mass of the payload, in kg (default the robot's rating)")
    payload_distance: float = option(0.080, "how far beyond the flange its centre of mass lies, in m")
    payload_known: bool = option(False, "tell the controller about the payload")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.payload_mass is not None:
            positive(self.payload_mass, "payload mass", "kg")
            if self.payload is not None:
                raise ValueError("expected a payload or a payload mass, got both")
        positive(self.payload_distance, "payload distance", "m")

    @property
    def known_law(self) -> bool:
        """Whether it is known how far the law may stray: the payload has to be known to it."""
        return super().known_law and self.payload_known


VARIANTS = (Config(payload_known=True),)

WAYPOINTS = np.array([[45, -25, 25], [45, -25, 45], [45, 25, 45], [45, 25, 25]]) / 81
"""Of the flange, base frame, as multiples of the robot's reach: pick, lift, carry, put."""
DURATIONS = (1.0, 1.5, 1.0)  # s
DOWN = np.array(
    [[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]]
)  # flange axes z down, x towards the base


def flange_poses(reach: float) -> NDArray:
    """The waypoints as poses `T_base_tool` (4, 4, 4), for a reach in [m]."""
    T = np.tile(np.eye(4), (len(WAYPOINTS), 1, 1))
    T[:, :3, :3] = DOWN
    T[:, :3, 3] = reach * WAYPOINTS
    return T


def suits(robot: Robot) -> bool:
    """Whether it is known what the robot may carry, and how far it reaches."""
    return robot.rating is not None


def trajectory(robot: Robot, config: Config) -> Trajectory:
    """The joint motion of the carry."""
    from twin.trajectories.joint_paths import joint_path
    from twin.trajectories.tool_paths import through_poses

    poses = flange_poses(rating(robot).reach)
    return joint_path(robot, through_poses(poses, durations=DURATIONS), near=np.zeros(robot.n))


def rating(robot: Robot) -> Rating:
    """The robot's rating; `RobotError` where it has none."""
    if robot.rating is None:
        raise RobotError(f"robot {robot.name!r} has no [rating] of payload and reach in a robot.toml")
    return robot.rating


def reference(robot: Robot, config: Config) -> Samples:
    """The joint motion, sampled."""
    return sampled(config, trajectory(robot, config))


def arms(robot: Robot, config: Config) -> Arms:
    """The arm with the payload, and without it."""
    plant = robot.with_payload(config.plant_payload or rated_payload(robot, config))
    return Arms(plant, None if config.payload_known else robot)


def run(config: Config) -> Log:
    """Carry the payload."""
    log = follow(config, *closed_loop(config, reference, arms))
    return with_arrays(log, payload_known=np.array(config.payload_known))


def rated_payload(robot: Robot, config: Config) -> Payload:
    """A point beyond the flange, of the mass of the settings, or of the robot's rating."""
    from twin.robot.robot import Payload

    mass = rating(robot).payload if config.payload_mass is None else config.payload_mass
    return Payload(mass, (0.0, 0.0, config.payload_distance))


def metrics(log: Log) -> tuple[Metric, ...]:
    """The cost of not knowing, and the proof that nothing but the payload caused it."""
    if log.arrays["payload_known"]:
        return tracking_metrics(log)
    return (*error_metrics(log), *agreement_metrics(log), *validity_metrics(log))

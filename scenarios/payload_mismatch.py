"""Move a payload that is missing from the controller's model.

What it shows: the cost of a wrong model. The plant has the robot's rated payload, a point mass 0.080 m beyond
the flange; the controller's model is the bare arm. (`--payload-known` adds the payload to the model, for
comparison.) The arm picks the payload up, moves it and puts it down along straight lines, with the flange
pointing down.

Why down: the gains come from the bare arm's inertia. About axis 5 of the IRB 140 that is 4e-4 kg m^2, a 300th
of what the payload of 6 kg adds. At 20 rad/s axis 5 is a spring of 0.16 N m/rad, and a payload held sideways
loads it with 8.5 N m. No feedback law of this bandwidth can hold that; straight below the flange, the payload
swings about axis 5 like a pendulum.

What must hold: the whole run in the engine agrees with the model of the loaded arm under the same controller,
to rounding, so that the mismatch is exactly the payload. With the payload in its model, computed torque
tracks to 1e-10 rad.
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
    payload_distance: float = option(0.080, "distance of its centre of mass from the flange, in m")
    payload_known: bool = option(False, "add the payload to the controller's model")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.payload_mass is not None:
            positive(self.payload_mass, "payload mass", "kg")
            if self.payload is not None:
                raise ValueError("expected a payload or a payload mass, got both")
        positive(self.payload_distance, "payload distance", "m")

    @property
    def known_law(self) -> bool:
        """Whether a bound of the tracking error may apply; requires the payload in the model."""
        return super().known_law and self.payload_known


VARIANTS = (Config(payload_known=True),)

WAYPOINTS = np.array([[45, -25, 25], [45, -25, 45], [45, 25, 45], [45, 25, 25]]) / 81
"""Positions (4, 3) of the flange in the base frame, over the robot's reach: pick, lift, move, put down."""
DURATIONS = (1.0, 1.5, 1.0)  # s
# Orientation of the flange: z axis down, x axis towards the base.
DOWN = np.array([[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]])


def flange_poses(reach: float) -> NDArray:
    """Return the waypoints as poses `T_base_tool` (4, 4, 4), for a reach in [m]."""
    T = np.tile(np.eye(4), (len(WAYPOINTS), 1, 1))
    T[:, :3, :3] = DOWN
    T[:, :3, 3] = reach * WAYPOINTS
    return T


def suits(robot: Robot) -> bool:
    """Return whether the robot's rated payload and reach are known."""
    return robot.rating is not None


def trajectory(robot: Robot, config: Config) -> Trajectory:
    """Return the joint motion through the waypoints."""
    from twin.trajectories.joint_paths import joint_path
    from twin.trajectories.tool_paths import through_poses

    poses = flange_poses(rating(robot).reach)
    return joint_path(robot, through_poses(poses, durations=DURATIONS), near=np.zeros(robot.n))


def rating(robot: Robot) -> Rating:
    """Return the robot's rating; raise RobotError if it has none."""
    if robot.rating is None:
        raise RobotError(f"robot {robot.name!r} has no [rating] of payload and reach in a robot.toml")
    return robot.rating


def reference(robot: Robot, config: Config) -> Samples:
    """Return the joint motion, sampled."""
    return sampled(config, trajectory(robot, config))


def arms(robot: Robot, config: Config) -> Arms:
    """Return the arm with the payload as plant; without it as model, unless the payload is known."""
    plant = robot.with_payload(config.plant_payload or rated_payload(robot, config))
    return Arms(plant, None if config.payload_known else robot)


def run(config: Config) -> Log:
    """Move the payload along the waypoints."""
    log = follow(config, *closed_loop(config, reference, arms))
    return with_arrays(log, payload_known=np.array(config.payload_known))


def rated_payload(robot: Robot, config: Config) -> Payload:
    """Return a point mass beyond the flange, with the mass of the settings or of the robot's rating."""
    from twin.robot.robot import Payload

    mass = rating(robot).payload if config.payload_mass is None else config.payload_mass
    return Payload(mass, (0.0, 0.0, config.payload_distance))


def metrics(log: Log) -> tuple[Metric, ...]:
    """Return the tracking errors, and the checks that the payload alone causes them."""
    if log.arrays["payload_known"]:
        return tracking_metrics(log)
    return (*error_metrics(log), *agreement_metrics(log), *validity_metrics(log))


if __name__ == "__main__":
    from scenarios.cli.process import run_script

    raise SystemExit(run_script(__file__))

"""Scenario `payload_mismatch`: a payload that is missing from the controller's model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scenarios.options import option, positive
from scenarios.scenario import TrackingScenario
from scenarios.setup import Arms, Setup
from twin.base.errors import RobotError
from twin.physics.robot.robot import Payload, Rating, Robot

if TYPE_CHECKING:
    from twin.physics.trajectories.joint_trajectories import Trajectory

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


def rating(robot: Robot) -> Rating:
    """Return the robot's rating; raise RobotError if it has none."""
    if robot.rating is None:
        raise RobotError(f"robot {robot.name!r} has no [rating] of payload and reach in a robot.toml")
    return robot.rating


class PayloadMismatch(TrackingScenario):
    """Move a payload that is missing from the controller's model.

    What it shows: the cost of a wrong model. The plant has the robot's rated payload, a point mass 0.080 m
    beyond the flange; the controller's model is the bare arm. (`--payload-known` adds the payload to the
    model, for comparison.) The arm picks the payload up, moves it and puts it down along straight lines, with
    the flange pointing down.

    Why down: the gains come from the bare arm's inertia. About axis 5 of the IRB 140 that is 4e-4 kg m^2, a
    300th of what the payload of 6 kg adds. At 20 rad/s axis 5 is a spring of 0.16 N m/rad, and a payload held
    sideways loads it with 8.5 N m. No feedback law of this bandwidth can hold that; straight below the
    flange, the payload swings about axis 5 like a pendulum.

    What must hold: the whole run in the engine agrees with the model of the loaded arm under the same
    controller, to rounding, so that the mismatch is exactly the payload. With the payload in its model,
    computed torque tracks to 1e-10 rad.
    """

    payload_mass: float | None = option(
        None, "mass of the payload, in kg (default the robot's rating)", motion=False
    )
    payload_distance: float = option(
        0.080, "distance of its centre of mass from the flange, in m", motion=False
    )
    payload_known: bool = option(False, "add the payload to the controller's model", motion=False)
    variants = ({"payload_known": True},)

    def __post_init__(self) -> None:
        if self.payload_mass is not None:
            positive(self.payload_mass, "payload mass", "kg")
        positive(self.payload_distance, "payload distance", "m")

    def check(self, setup: Setup) -> None:
        """Raise ValueError if the payload is given twice."""
        if self.payload_mass is not None and setup.payload is not None:
            raise ValueError("expected a payload or a payload mass, got both")

    def suits(self, robot: Robot) -> bool:
        """Return whether the robot's rated payload and reach are known."""
        return robot.rating is not None

    def motion(self, robot: Robot) -> Trajectory:
        """Return the joint motion through the waypoints."""
        from twin.physics.trajectories.joint_paths import joint_path
        from twin.physics.trajectories.tool_paths import through_poses

        poses = flange_poses(rating(robot).reach)
        return joint_path(robot, through_poses(poses, durations=DURATIONS), near=np.zeros(robot.n))

    def arms(self, robot: Robot, payload: Payload | None) -> Arms:
        """Return the arm with the payload as plant; without it as model, unless the payload is known."""
        if payload is None:
            mass = rating(robot).payload if self.payload_mass is None else self.payload_mass
            payload = Payload(mass, (0.0, 0.0, self.payload_distance))
        return Arms(robot.with_payload(payload), None if self.payload_known else robot)


if __name__ == "__main__":
    from scenarios.shell.process import run_script

    raise SystemExit(run_script(__file__))

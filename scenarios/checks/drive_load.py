"""What the motors of a robot have to carry: its rated payload, each axis at its speed limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scenarios.checks.motion_range import finite_speed, random_positions
from twin.errors import RobotError
from twin.robot.robot import Payload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from twin.drives.drives import Drives
    from twin.robot.robot import Robot

PAYLOAD_COM = (0.083, 0.0, 0.080)
"""[m], flange frame: 0.080 m beyond the flange and 0.083 m off the last axis, so that every axis feels it."""


def known_drives(robot: Robot) -> Drives:
    """The drives of the robot, whichever of them act.

    Raises:
        RobotError: they are not known.
    """
    if robot.drives is None:
        raise RobotError(
            f"robot {robot.name!r} has no drives to show: its file has no table [drives] of gears, rotors "
            "and friction"
        )
    return robot.drives


def with_rated_payload(robot: Robot) -> Robot:
    """The robot with its rated payload as a point at `PAYLOAD_COM`.

    As it is where no rating is known, and where it carries something already.
    """
    if robot.rating is None or robot.payload is not None:
        return robot
    return robot.with_payload(Payload(robot.rating.payload, PAYLOAD_COM))


class DriveLoad(NamedTuple):
    """Every axis moving alone at its speed limit, the others at rest: (n,) each, of its motor, at the joint.

    Attributes:
        gravity: the largest weight of any pose, in [N m].
        friction: at the speed limit, in [N m].
        torque_max: what the motor gives at that speed, in [N m].
        rotor_share: of the inertia that the motor turns, in the median pose.
        time: to the speed limit in the worst and the median pose (2, n), in [s], with the torque left there.
        speed: of the motor at the joint's speed limit, over its maximum.
    """

    gravity: NDArray
    friction: NDArray
    torque_max: NDArray
    rotor_share: NDArray
    time: NDArray
    speed: NDArray

    @property
    def use(self) -> NDArray:
        """The share of the motor's torque that the speed takes in the worst pose."""
        with np.errstate(divide="ignore"):  # of a motor that cannot turn so fast
            return (self.gravity + self.friction) / self.torque_max


def drive_load(robot: Robot, seed: int, states: int) -> DriveLoad:
    """What each motor has to give, over the poses that the joints' ranges allow.

    An axis that moves alone at constant speed turns no rotor faster and meets no Coriolis torque, so that its
    motor carries weight and friction. The torque that is left accelerates its rotor and the arm.

    Args:
        robot: with its payload, and with drives that are not ideal.
        seed: of the poses.
        states: how many.
    """
    from twin.drives.motors import MotorLimits, torque_at_speed
    from twin.dynamics.equation_of_motion import friction_torque, gravity_torque, mass_matrix

    drives, v = known_drives(robot), finite_speed(robot)
    to_motors = np.linalg.inv(drives.coupling)  # of rows of torques at the joints
    q = random_positions(robot, np.random.default_rng(seed), states)
    gravity = np.abs(gravity_torque(robot, q) @ to_motors)
    inertia = np.diagonal(to_motors.T @ mass_matrix(robot, q), axis1=1, axis2=2)
    rotor = np.diagonal(to_motors.T @ drives.reflected_inertia)
    friction = np.diagonal(friction_torque(robot, np.diag(v)) @ to_motors)
    limits = MotorLimits.of(drives, robot.tau_max).limits
    torque_max = np.array([torque_at_speed(limits, i, limits[0, i], v[i]) for i in range(robot.n)])
    with np.errstate(divide="ignore"):
        time = (inertia + rotor) * v / np.maximum(torque_max - gravity - friction, 0.0)
    return DriveLoad(
        gravity=gravity.max(axis=0),
        friction=friction.copy(),
        torque_max=torque_max,
        rotor_share=rotor / (rotor + np.median(inertia, axis=0)),
        time=np.array([time.max(axis=0), np.median(time, axis=0)]),
        speed=np.abs(drives.ratio) * v / drives.motor_speed_max,
    )

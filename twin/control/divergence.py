"""When a run has diverged: the bounds of position and speed, and the message that names what left them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twin.dynamics.equation_of_motion import mass_matrix
from twin.robot.evaluation import copied
from twin.robot.joint_units import joint_unit
from twin.robot.robot import Robot

RUNAWAY_SPEED = 20.0
"""A joint at so many times its speed limit has run away: no gain or mismatch study comes near, and a step of
1 ms still resolves the motion, so that the log shows how it came about."""

RUNAWAY_ENERGY = 25.0
"""So has a robot with so many times the kinetic energy of its joints at their speed limits, taken one by one
at q = 0.  A heavy joint reaches this long before 20 times its limit; a wrist joint hardly shows in it."""

UNLIMITED_SPEED = 1e3
"""What stands for 20 times the speed limit, in [rad/s] or [m/s], where the URDF names none."""


class Bounds(NamedTuple):
    """What the state of a run is held against.

    Attributes:
        watched: (n,) 1 / speed limits, or what stands for them.
        energy: so much kinetic energy, in [J], and the robot has run away.
    """

    watched: np.ndarray
    energy: float

    @classmethod
    def of(cls, robot: Robot) -> Bounds:
        """The bounds of a robot."""
        limit = np.where(np.isfinite(robot.qd_max), robot.qd_max, UNLIMITED_SPEED / RUNAWAY_SPEED)
        energy = 0.5 * float(np.diag(mass_matrix(robot, np.zeros(robot.n))) @ limit**2)
        return cls(copied(1.0 / limit), RUNAWAY_ENERGY * energy)


def divergence_message(robot: Robot, q: np.ndarray, qd: np.ndarray) -> str:
    """What is wrong with a state (n,), (n,) that is not finite or has run away; empty where nothing is."""
    names = robot.joint_names
    broken = ~(np.isfinite(q) & np.isfinite(qd))
    if broken.any():
        joint = int(np.argmax(broken))
        unit = joint_unit(robot.joint_kinds[joint])
        return f"{names[joint]} is at {q[joint]} {unit} with {qd[joint]} {unit}/s"
    bounds = Bounds.of(robot)
    ratio = np.abs(qd * bounds.watched)
    joint = int(np.argmax(ratio))
    unit, limit = joint_unit(robot.joint_kinds[joint], "speed"), robot.qd_max[joint]
    fastest = f"{names[joint]} runs away: {qd[joint]:.6g} {unit}, with a limit of {limit:.6g} {unit},"
    if not ratio[joint] <= RUNAWAY_SPEED:
        return fastest
    kinetic = 0.5 * float(qd @ mass_matrix(robot, q) @ qd)
    return "" if kinetic <= bounds.energy else f"{fastest} and a kinetic energy of {kinetic:.6g} J"

"""When a run has run away: the bounds of a robot, the test, and what is said of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twin.batch import copied
from twin.dynamics import mass_matrix
from twin.robot import Robot

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
        inertias: (n_tree, 10) of the robot that moves.
        tau_max: (n,) torque limits of its drives, in [N m].
        per_speed: (n,) 1 / speed limits.
        runaway: so many times its speed limit, and a joint has run away.
        energy: so much kinetic energy, in [J], and the robot has.
    """

    inertias: np.ndarray
    tau_max: np.ndarray
    per_speed: np.ndarray
    runaway: float
    energy: float

    @classmethod
    def of(cls, robot: Robot) -> Bounds:
        """The bounds of a robot."""
        limit = np.where(np.isfinite(robot.qd_max), robot.qd_max, UNLIMITED_SPEED / RUNAWAY_SPEED)
        energy = 0.5 * float(np.diag(mass_matrix(robot, np.zeros(robot.n))) @ limit**2)
        return cls(
            copied(robot.inertias), copied(robot.tau_max), copied(1.0 / limit),
            RUNAWAY_SPEED, RUNAWAY_ENERGY * energy,
        )  # fmt: skip


def beyond_reason(mass_matrix, q, qd, bounds):
    """Whether a state is not finite or has run away; for numba, with the kernel `mass_matrix`."""
    n = len(q)
    for i in range(n):
        if not (abs(q[i]) < np.inf and abs(qd[i] * bounds.per_speed[i]) <= bounds.runaway):
            return True
    M = np.empty((n, n))
    mass_matrix(q, bounds.inertias, M)
    kinetic = 0.0
    for i in range(n):
        for j in range(n):
            kinetic += 0.5 * qd[i] * M[i, j] * qd[j]
    return not kinetic <= bounds.energy


def what_is_beyond(robot: Robot, q: np.ndarray, qd: np.ndarray) -> str:
    """What is wrong with a state that is beyond reason."""
    names = robot.joint_names
    broken = ~(np.isfinite(q) & np.isfinite(qd))
    if broken.any():
        joint = int(np.argmax(broken))
        return f"{names[joint]} is at {q[joint]} rad with {qd[joint]} rad/s"
    bounds = Bounds.of(robot)
    ratio = np.abs(qd * bounds.per_speed)
    joint = int(np.argmax(ratio))
    fastest = (
        f"{names[joint]} runs away: {qd[joint]:.6g} rad/s, with a limit of {robot.qd_max[joint]:.6g} rad/s,"
    )
    if not ratio[joint] <= bounds.runaway:
        return fastest
    kinetic = 0.5 * float(qd @ mass_matrix(robot, q) @ qd)
    return f"{fastest} and a kinetic energy of {kinetic:.6g} J"

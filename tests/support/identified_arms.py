"""Simulated measurements of an arm, and a wrong initial model of it."""

from dataclasses import replace

import numpy as np

import twin
from twin.data.identification.excitation import stored_excitation
from twin.data.identification.measurements import Measurements

GAS_SPRING = """
[cylinder.balancer]
joint = 2
from = [-0.25, 0.0, 0.30]
to = [0.05, 0.0, 0.62]
length = 0.45
force = 900.0
stiffness = 700.0
source = "made up"
"""
"""Table of a gas spring over axis 2, for the file of the IRB 140."""


def measured(robot, noise=0.0, count=400, seed=1):
    """Draw random states of a robot and compute their torques, with noise of that deviation in [N m]."""
    rng = np.random.default_rng(seed)
    q, qd, qdd = rng.uniform(-2, 2, (count, robot.n)), *rng.normal(size=(2, count, robot.n))
    tau = twin.inverse_dynamics(robot, q, qd, qdd) + noise * rng.normal(size=q.shape)
    t = 0.01 * np.arange(count, dtype=np.float64)
    known = np.ones(q.shape, dtype=bool)
    return Measurements("noise", t, q, qd, qdd, qd, tau, known, None, 100.0, "as it is")


def believed(robot):
    """Return the robot with wrong inertial parameters, as an initial model."""
    factors = np.linspace(0.7, 1.4, robot.tree.n)[:, None]
    return replace(robot, tree=replace(robot.tree, inertias=robot.tree.inertias * factors))


def slides_as_it_starts(robot):
    """Return the robot with rigid drives whose friction is no higher at rest."""
    return robot.with_drives("rigid", replace(robot.drives, static=robot.drives.coulomb))


def excited(robot, periods, step):
    """Return times, positions and torques of the robot's excitation motion, in continuous time."""
    t = np.arange(0.0, 5.0 * periods, step)
    q, qd, qdd = replace(stored_excitation(robot), periods=periods)(t)
    return t, q, twin.inverse_dynamics(robot, q, qd, qdd)

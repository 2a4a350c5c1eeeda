"""An arm as it is believed to be, and motions of it that tell what it is."""

from dataclasses import replace

import numpy as np

import twin
from twin.identification.measurements import Measurements


def measured(robot, noise=0.0, count=400, seed=1):
    """Any motion of a robot, its torques with noise, in [N m]."""
    rng = np.random.default_rng(seed)
    q, qd, qdd = rng.uniform(-2, 2, (count, robot.n)), *rng.normal(size=(2, count, robot.n))
    tau = twin.drive_inverse_dynamics(robot, q, qd, qdd) + noise * rng.normal(size=q.shape)
    t = 0.01 * np.arange(count, dtype=np.float64)
    return Measurements(
        "noise", t, q, qd, qdd, qd, tau, np.ones(q.shape, dtype=bool), None, 100.0, "as it is"
    )


def believed(robot):
    """The robot with other links, as one knows them beforehand."""
    factors = np.linspace(0.7, 1.4, robot.tree.n)[:, None]
    return replace(robot, tree=replace(robot.tree, inertias=robot.tree.inertias * factors))

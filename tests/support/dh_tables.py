"""Random robots from DH tables, and the plain product of a table's rows as a second oracle."""

import numpy as np

import twin
from tests.support.dh_arms import dh_frames
from twin.physics.robot.dh_tables import LinkBody, dh_robot
from twin.physics.robot.evaluation import uncompiled
from twin.physics.robot.robot import DH

MIXED = ("revolute", "prismatic", "revolute", "revolute", "prismatic", "revolute")


def plain(robot):
    """Return a robot, given itself or by name, whose kernels run as plain Python."""
    return uncompiled(twin.load(robot) if isinstance(robot, str) else robot)


def dh_product(robot, q):
    """Return the pose of the last DH frame as a product of elementary transforms; rows may be prismatic."""
    slides = np.array(robot.joint_kinds) == "prismatic"
    rows = robot.dh._replace(d=robot.dh.d + slides * q)
    return dh_frames(rows, robot.dh.theta0 + ~slides * q)[-1]


def random_robot(rng, kinds, **settings):
    """Draw a robot of random DH rows and physically possible bodies."""
    n = len(kinds)
    bodies = []
    for _ in range(n):
        points = rng.normal(size=(8, 3)) * 0.1
        spread = points.T @ points
        tensor = np.trace(spread) * np.eye(3) - spread
        bodies.append(LinkBody(rng.uniform(0.2, 5), rng.normal(size=3) * 0.2, tensor))
    table = DH(rng.uniform(-3, 3, n), *rng.normal(size=(2, n)) * 0.4, rng.uniform(-3, 3, n))
    numbers = {"q_min": -3.0, "q_max": 3.0, "qd_max": 5.0, "tau_max": 100.0}
    limits = {name: np.full(n, number) for name, number in numbers.items()}
    return uncompiled(dh_robot("random", table, kinds=kinds, bodies=bodies, **limits | settings))

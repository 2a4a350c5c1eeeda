"""Random robots from DH tables, and the plain product of a table's rows as a second oracle."""

import numpy as np

import twin
from tests.support.random_trees import interpreted
from twin.robot.loading.dh_tables import LinkBody, dh_robot
from twin.robot.robot import DH

MIXED = ("revolute", "prismatic", "revolute", "revolute", "prismatic", "revolute")


def plain(robot):
    """Return a robot, given itself or by name, whose kernels run as plain Python."""
    return interpreted(twin.load(robot) if isinstance(robot, str) else robot)


def dh_product(robot, q):
    """Return the pose of the last DH frame as a product of elementary transforms; rows may be prismatic."""
    T = np.eye(4)
    for theta0, d, a, alpha, kind, x in zip(*robot.dh, robot.joint_kinds, q, strict=True):
        theta, d = (theta0 + x, d) if kind == "revolute" else (theta0, d + x)
        c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
        turn = np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
        shift = np.array([[1, 0, 0, a], [0, 1, 0, 0], [0, 0, 1, d], [0, 0, 0, 1]])
        T = T @ turn @ shift @ np.array([[1, 0, 0, 0], [0, ca, -sa, 0], [0, sa, ca, 0], [0, 0, 0, 1]])
    return T


def random_robot(rng, kinds, **settings):
    """Draw a robot of random DH rows and physically possible bodies."""
    n = len(kinds)
    bodies = []
    for _ in range(n):
        points = rng.normal(size=(8, 3)) * 0.1
        spread = points.T @ points
        bodies.append(
            LinkBody(rng.uniform(0.2, 5), rng.normal(size=3) * 0.2, np.trace(spread) * np.eye(3) - spread)
        )
    table = DH(rng.uniform(-3, 3, n), *rng.normal(size=(2, n)) * 0.4, rng.uniform(-3, 3, n))
    limits = {"q_min": np.full(n, -3.0), "q_max": np.full(n, 3.0), "qd_max": np.full(n, 5.0)}
    limits["tau_max"] = np.full(n, 100.0)
    return interpreted(dh_robot("random", table, kinds=kinds, bodies=bodies, **limits | settings))

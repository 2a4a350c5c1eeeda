"""The Ljubljana laboratory's arms, and what the rows on them are tried on."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from tests.published.items import SAMPLES, rng
from twin.robot.evaluation import uncompiled
from twin.robot.loading.loading import load
from twin.robot.robot import DH, Robot

Floats = NDArray[np.float64]
AWKWARD = (0.0, 1e-8, np.pi / 2, np.pi - 1e-8, np.pi, -np.pi / 2)


@cache
def arm(name: str) -> Robot:
    """A robot of the manual, not compiled: little is asked of it."""
    return uncompiled(load(name))


def table(robot: Robot) -> DH:
    """The Denavit-Hartenberg table of a robot that has one."""
    assert robot.dh is not None
    return robot.dh


def configurations(n: int) -> Floats:
    """Joint angles (N, n): random, and at quarter turns and beside, where arms are stretched or folded."""
    q = rng().uniform(-np.pi, np.pi, (SAMPLES, n))
    q[: SAMPLES // 4] = rng().choice(AWKWARD, (SAMPLES // 4, n))
    q[0] = 0.0
    return q

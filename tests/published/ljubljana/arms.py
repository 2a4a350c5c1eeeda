"""Arms of the Ljubljana laboratory, and the joint angles on which their items are checked."""

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
    """Load a robot of the manual, without compilation, since it is used little."""
    return uncompiled(load(name))


def table(robot: Robot) -> DH:
    """Return the Denavit-Hartenberg table of a robot that has one."""
    assert robot.dh is not None
    return robot.dh


def configurations(n: int) -> Floats:
    """Return joint angles (N, n): random, and at or near multiples of 90 degrees (stretched, folded)."""
    q = rng().uniform(-np.pi, np.pi, (SAMPLES, n))
    q[: SAMPLES // 4] = rng().choice(AWKWARD, (SAMPLES // 4, n))
    q[0] = 0.0
    return q

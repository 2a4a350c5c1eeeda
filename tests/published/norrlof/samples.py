"""Samples for the items of Norrlöf's kinematics: random ones, and special cases."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.published.items import SAMPLES, rng
from twin.robot.loading.loading import load
from twin.robot.robot import DH, Robot, dh_poses

NEAR = (0.0, 1e-8, -1e-8)


@lru_cache(maxsize=1)
def irb1400() -> tuple[Robot, DH]:
    """Return the robot of the report and its Denavit-Hartenberg table."""
    robot = load("irb1400")
    assert robot.dh is not None
    return robot, robot.dh


def rotations() -> NDArray[np.float64]:
    """Return unit quaternions (N, 4): random, and rotations by 0 and pi (exact, or off by 1e-8)."""
    random = rng()
    free = random.normal(size=(SAMPLES, 4))
    axes = np.concatenate([np.eye(3), -np.eye(3), random.normal(size=(20, 3)), random.normal(size=(20, 3))])
    axes[26:, 0] = 0.0  # in a coordinate plane
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    half = np.array([(turn + d) / 2 for turn in (0.0, np.pi) for d in NEAR])[:, None]
    awkward = np.concatenate(
        [np.repeat(np.cos(half), len(axes), axis=1)[..., None], np.sin(half)[..., None] * axes], axis=-1
    )
    return np.concatenate([free / np.linalg.norm(free, axis=1, keepdims=True), awkward.reshape(-1, 4)])


def configurations() -> NDArray[np.float64]:
    """Return DH angles (N, 6) of the IRB 1400: random, and singular in wrist, elbow and shoulder.

    Joint limits are ignored.
    """
    _, dh = irb1400()
    theta = rng().uniform(-np.pi, np.pi, (SAMPLES + 36, 6))
    wrist, elbow, shoulder = np.split(theta[SAMPLES:], 3)
    beside, turned = np.tile(NEAR, 4), np.repeat([0.0, np.pi], 6)
    gamma, b3 = np.arctan2(dh.d[3], dh.a[2]), np.hypot(dh.a[2], dh.d[3])
    wrist[:, 4] = turned + beside
    elbow[:, 2] = turned + beside - gamma  # stretched, and folded
    # The wrist centre, along and across the lower arm from axis 2, is rotated onto axis 1.
    bend = shoulder[:, 2] / 2
    shoulder[:, 2] = bend - gamma
    along, across = dh.a[1] + b3 * np.cos(bend), b3 * np.sin(bend)
    lean = np.arcsin(-dh.a[0] / np.hypot(along, across)) - np.arctan2(across, along)
    shoulder[:, 1] = lean + beside - np.pi / 2
    return theta


def modulo_turn(difference: Any) -> NDArray[np.float64]:
    """Reduce differences of angles to [-pi, pi] by full turns."""
    difference = np.asarray(difference, dtype=float)
    return difference - 2 * np.pi * np.round(difference / (2 * np.pi))


def wrist_centres(theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the common origin (..., 3) of frames 4 and 5 of the IRB 1400, in the base frame, in [m]."""
    return dh_poses(irb1400()[1], theta)[..., 3, :3, 3]

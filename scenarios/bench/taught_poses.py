"""Poses taught at the window, the motion through them, and their recording for `pose_path`."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from twin.physics.robot.units import SHOWN
from twin.physics.trajectories.joint_trajectories import Trajectory, quintic, sequence

if TYPE_CHECKING:
    from twin.physics.robot.robot import Robot

FILE_PERIOD = 0.02  # s, between rows of the file
SAME = 1e-9  # rad: largest difference of equal poses


def motion(poses: list[NDArray], qd_max: NDArray) -> Trajectory | None:
    """Return a motion that stops in each pose; `None` if all poses are equal.

    Args:
        poses: joint angles of the poses, (n,) each, in [rad].
        qd_max: (n,) largest speeds, in [rad/s].
    """
    moves = [
        quintic(a, b, qd_max=qd_max) for a, b in pairwise(poses) if np.max(np.abs(b - a), initial=0.0) > SAME
    ]
    return sequence(*moves) if moves else None


def write(path: Path, robot: Robot, poses: list[NDArray], qd_max: NDArray) -> bool:
    """Write the motion as a recording of joints, `t,q1,...`; return False if there is no motion to write.

    Raises:
        OSError: the file cannot be written.
    """
    from twin.data.logs.recordings.recording import joint_recording, write_recording

    trajectory = motion(poses, qd_max)
    if trajectory is None:
        return False
    rows = max(2, int(np.ceil(trajectory.duration / FILE_PERIOD)) + 1)
    t = np.linspace(0.0, trajectory.duration, rows)
    write_recording(path, joint_recording(t, trajectory(t)[0], robot))
    return True


def table(robot: Robot, poses: list[NDArray]) -> list[list[str]]:
    """Return a table with a row for each pose, headings first, in degrees or, for prismatic joints, mm."""
    rows = [["pose", *robot.joint_names]]
    for number, q in enumerate(poses, start=1):
        cells = [
            f"{SHOWN[kind][1] * position:.2f} {SHOWN[kind][0]}"
            for position, kind in zip(q, robot.joint_kinds, strict=True)
        ]
        rows.append([str(number), *cells])
    return rows

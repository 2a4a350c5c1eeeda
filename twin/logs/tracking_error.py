"""How far a run strayed from its reference, per joint and per component of the tool's pose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from twin.robot.joint_units import joint_unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from twin.logs.log import Log

POSE_COMPONENTS = ("x", "y", "z", "a", "b", "c", "d")
"""Tool position in [m] and orientation quaternion, scalar first."""


def joint_error(log: Log) -> NDArray:
    """Reference minus position: (N, n) in [rad]."""
    return log.q_ref - log.q


def pose_error(log: Log) -> NDArray:
    """Reference minus pose: (N, 7), in [m] and without unit; the log gives both quaternions one sign."""
    return log.pose_ref - log.pose


def tool_distance(log: Log) -> NDArray:
    """Distance between the tool and where it should be: (N,) in [m]."""
    return np.linalg.norm(log.pose_ref[:, :3] - log.pose[:, :3], axis=1)


def tool_turn(log: Log) -> NDArray:
    """Angle between the tool's orientation and the wanted one: (N,) in [rad], 0 to pi.

    Unit quaternions that are an angle `a` of the rotation apart are `2 sin(a / 4)` apart as vectors.
    """
    wanted, found = log.pose_ref[:, 3:], log.pose[:, 3:]
    apart = np.minimum(np.linalg.norm(wanted - found, axis=1), np.linalg.norm(wanted + found, axis=1))
    return 4.0 * np.arcsin(np.minimum(0.5 * apart, 1.0))


def rms(error: NDArray) -> NDArray:
    """Root of the mean square over time: (N, k) -> (k,); of no sample, NaN."""
    if len(error) == 0:
        return np.full(error.shape[1:], np.nan)
    return np.sqrt(np.mean(error**2, axis=0))


def largest(error: NDArray) -> NDArray:
    """Largest magnitude over time: (N, k) -> (k,); a NaN stays one, and no sample makes one."""
    if len(error) == 0:
        return np.full(error.shape[1:], np.nan)
    return np.max(np.abs(error), axis=0)


def place_of_largest(log: Log, error: NDArray) -> str:
    """Where an error is largest, as "joint_3 at t = 0.412 s" or "at t = 0.412 s"; "" where there is none.

    Args:
        log: of the run.
        error: (N, n) of the joints, or (N,) of something else; a NaN is larger than any number.
    """
    size = np.where(np.isnan(error), np.inf, np.abs(error))
    if not np.max(size, initial=0.0) > 0:
        return ""
    sample, *joint = np.unravel_index(np.argmax(size), size.shape)
    names = [f"{log.robot.joint_names[k]} " for k in joint]
    return "".join(names) + f"at t = {log.t[sample]:.6g} s"


def unit_of_largest(log: Log, error: NDArray, dimension: str = "position") -> str:
    """Return the unit of the joint whose error (N, n) is largest: a joint may turn or slide.

    Args:
        log: of the run.
        error: (N, n) of the joints; a NaN is larger than any number.
        dimension: of the error, see `twin.robot.joint_units`.
    """
    largest_of_joints = np.max(np.where(np.isnan(error), np.inf, np.abs(error)), axis=0, initial=0.0)
    return joint_unit(log.robot.joint_kinds[int(np.argmax(largest_of_joints))], dimension)

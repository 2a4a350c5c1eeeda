"""What a rollout sums up while it runs, so that nobody has to keep its samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twin.control.rollout_batch import Record
from twin.control.rollout_loop import (
    ITS_SAMPLE,
    LARGEST_ERROR,
    POSITION,
    SPEED,
    SQUARED_ERRORS,
    SQUARED_TORQUES,
)


class Figures(NamedTuple):
    """Of all samples that were reached, kept or not; `...` is the shape of the batch.

    Attributes:
        samples: (...) how many there were.
        trouble: (...) what ended the rollout early, 0 where nothing did; see `twin.control.rollout_loop`.
        joint_error: (..., n) the largest `|q_ref - q|`, in [rad].
        joint_error_time: (..., n) when that was, in [s].
        rms_error: (..., n) root of the mean of its square, in [rad].
        rms_torque: (..., n) root of the mean square of the motors' torque at the joint, in [N m].
        tool_error: (...) the largest distance of the tool from where it should be, in [m]; NaN where nobody
            asked.
        tool_error_time: (...) when that was, in [s].
        beyond_range: (...) how far a joint was beyond its range, in [rad], 0 where none was.
        speed_ratio: (...) the largest speed over its limit.
    """

    samples: np.ndarray
    trouble: np.ndarray
    joint_error: np.ndarray
    joint_error_time: np.ndarray
    rms_error: np.ndarray
    rms_torque: np.ndarray
    tool_error: np.ndarray
    tool_error_time: np.ndarray
    beyond_range: np.ndarray
    speed_ratio: np.ndarray


def figures_of(record: Record, shape: tuple[int, ...], t: np.ndarray, tool: bool) -> Figures:
    """The figures in a record.

    Args:
        record: that the loop filled.
        shape: of the batch.
        t: (N,) times of the samples, in [s].
        tool: whether the tool was asked for.
    """
    samples = record.samples
    mean = np.sqrt(
        record.summed[:, [SQUARED_ERRORS, SQUARED_TORQUES]] / np.maximum(samples, 1)[:, None, None]
    )
    where = np.where(tool, record.tool.T, np.nan)
    seconds = t[record.tool[:, 1].astype(np.int64)] if tool else where[1]
    each = Figures(
        samples=samples,
        trouble=record.trouble,
        joint_error=record.summed[:, LARGEST_ERROR],
        joint_error_time=t[record.summed[:, ITS_SAMPLE].astype(np.int64)],
        rms_error=mean[:, 0],
        rms_torque=mean[:, 1],
        tool_error=where[0],
        tool_error_time=seconds,
        beyond_range=record.worst[:, POSITION],
        speed_ratio=record.worst[:, SPEED],
    )
    return Figures(*(array.reshape(shape + array.shape[1:]) for array in each))

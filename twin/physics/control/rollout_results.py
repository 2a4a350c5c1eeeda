"""Results of a batch of rollouts from the records of the compiled loop: failures, violations and figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from twin.base.errors import LimitError
from twin.physics.control.closed_loop import divergence_message
from twin.physics.control.rollout_batch import Record
from twin.physics.control.rollout_loop import (
    FOLDED,
    LARGEST_ERROR,
    LARGEST_ERROR_SAMPLE,
    NOT_A_TORQUE,
    POSITION,
    SPEED,
    SQUARED_ERRORS,
    SQUARED_TORQUES,
    WRONG_SHAPE,
)
from twin.physics.control.signals import PLAIN_ROWS, joint_without_torque
from twin.physics.robot.limits import ROUND_OFF, Violation, check_folding, violation
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import joint_unit


class Failure(NamedTuple):
    """Rollout that ended early.

    Attributes:
        rollout: index in the batch, `()` for a single rollout.
        samples: number of samples reached.
        message: cause and time of the end.
    """

    rollout: tuple[int, ...]
    samples: int
    message: str


def worst_violations(
    record: Record, shape: tuple[int, ...], plants: np.ndarray, t: np.ndarray
) -> Iterator[Violation]:
    """Yield the largest violation of each rollout and kind of limit."""
    for r, kind in np.argwhere(record.worst > [ROUND_OFF, 1.0 + ROUND_OFF]).tolist():
        index = tuple(int(i) for i in np.unravel_index(r, shape))
        joint, sample = record.where[r, kind].tolist()
        quantity, value = ("position", "speed")[kind], float(record.value[r, kind])
        yield violation(plants[index], quantity, joint, float(t[sample]), value, index)


def collect_failures(
    record: Record, shape: tuple[int, ...], plants: np.ndarray, law: str, every: int, t: np.ndarray
) -> list[Failure]:
    """Return the rollouts that ended early, and fill the samples that they did not reach with NaN."""
    failures = []
    for r in np.flatnonzero(record.trouble).tolist():
        index = tuple(int(i) for i in np.unravel_index(r, shape))
        samples = int(record.samples[r])
        for log in (record.log, record.law):
            log[r, -(-samples // every) :] = np.nan
        message = _trouble(int(record.trouble[r]), plants[index], record.last[r], law, samples, t)
        failures.append(Failure(index, samples, message + rollout_suffix(index)))
    return failures


def _trouble(trouble: int, robot: Robot, last: np.ndarray, law: str, samples: int, t: np.ndarray) -> str:
    """Describe why, where and when a rollout ended early."""
    q, qd, demand, tau = last[:PLAIN_ROWS]
    k = samples if trouble not in (NOT_A_TORQUE, FOLDED) else samples - 1
    when = f"t = {t[k]:.6g} s (sample {k})"
    if trouble == WRONG_SHAPE:
        raise ValueError(f"law {law!r} returned tau of a wrong shape at {when}, expected ({robot.n},)")
    if trouble == NOT_A_TORQUE:
        joint = joint_without_torque(demand, tau)
        unit = joint_unit(robot.joint_kinds[joint], "torque")
        return f"law {law!r} demands {demand[joint]} {unit} of {robot.joint_names[joint]} at {when}"
    if trouble == FOLDED:
        try:
            check_folding(robot, q)
        except LimitError as error:
            return f"{error}, in the step after {when}"
        return f"a passive joint is at the end of its range in the step after {when}"
    return f"{divergence_message(robot, q, qd)} at {when}"


def rollout_suffix(index: tuple[int, ...]) -> str:
    """Return the end of a message that names the rollout; "" for a single rollout."""
    return f" in rollout {index[0] if len(index) == 1 else index}" if index else ""


class Figures(NamedTuple):
    """Figures over all samples that each rollout reached; `...` is the shape of the batch.

    Attributes:
        samples: (...) number of samples reached.
        trouble: (...) code of the cause of an early end, 0 without one; see `twin.control.rollout_loop`.
        joint_error: (..., n) largest `|q_ref - q|`, in [rad].
        joint_error_time: (..., n) time of the largest error, in [s].
        rms_error: (..., n) root mean square of `q_ref - q`, in [rad].
        rms_torque: (..., n) root mean square of the motors' torque at the joint, in [N m].
        tool_error: (...) largest distance of the tool from its reference, in [m]; NaN if not requested.
        tool_error_time: (...) time of the largest distance, in [s].
        beyond_range: (...) largest excess of a joint over its range, in [rad], 0 without one.
        speed_ratio: (...) largest ratio of a joint speed to its limit.
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
    """Return the figures of a record.

    Args:
        record: results of the loop.
        shape: shape of the batch.
        t: (N,) times of the samples, in [s].
        tool: whether the tool error was computed.
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
        joint_error_time=t[record.summed[:, LARGEST_ERROR_SAMPLE].astype(np.int64)],
        rms_error=mean[:, 0],
        rms_torque=mean[:, 1],
        tool_error=where[0],
        tool_error_time=seconds,
        beyond_range=record.worst[:, POSITION],
        speed_ratio=record.worst[:, SPEED],
    )
    return Figures(*(array.reshape(shape + array.shape[1:]) for array in each))

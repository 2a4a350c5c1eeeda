"""What the record of a batch of rollouts says of those that ended early, or went beyond the limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from twin.control.divergence import divergence_message
from twin.control.rollout_batch import Record
from twin.control.rollout_loop import FOLDED, NOT_A_TORQUE, WRONG_SHAPE
from twin.control.signals import PLAIN_ROWS, joint_without_torque
from twin.errors import LimitError
from twin.robot.joint_units import joint_unit
from twin.robot.limits import ROUND_OFF, check_folding
from twin.robot.robot import Robot
from twin.robot.violations import Violation, violation


class Failure(NamedTuple):
    """A rollout that ended early.

    Attributes:
        rollout: its place in the batch, `()` where there is one alone.
        samples: how many samples it reached.
        message: what ended it.
    """

    rollout: tuple[int, ...]
    samples: int
    message: str


def worst_violations(
    record: Record, shape: tuple[int, ...], plants: np.ndarray, t: np.ndarray
) -> Iterator[Violation]:
    """Report where the arms were furthest beyond their limits."""
    for r, kind in np.argwhere(record.worst > [ROUND_OFF, 1.0 + ROUND_OFF]).tolist():
        index = tuple(int(i) for i in np.unravel_index(r, shape))
        joint, sample = record.where[r, kind].tolist()
        quantity, value = ("position", "speed")[kind], float(record.value[r, kind])
        yield violation(plants[index], quantity, joint, float(t[sample]), value, index)


def early_ends(
    record: Record, shape: tuple[int, ...], plants: np.ndarray, law: str, every: int, t: np.ndarray
) -> list[Failure]:
    """Report the rollouts that ended early, and put NaN where they did not get to."""
    failures = []
    for r in np.flatnonzero(record.trouble).tolist():
        index = tuple(int(i) for i in np.unravel_index(r, shape))
        samples = int(record.samples[r])
        record.log[r, -(-samples // every) :] = np.nan
        message = _trouble(int(record.trouble[r]), plants[index], record.last[r], law, samples, t)
        failures.append(Failure(index, samples, message + of_rollout(index)))
    return failures


def _trouble(trouble: int, robot: Robot, last: np.ndarray, law: str, samples: int, t: np.ndarray) -> str:
    """What ended a rollout, where and when."""
    q, qd, demand, tau = last[:PLAIN_ROWS]
    k = samples if trouble not in (NOT_A_TORQUE, FOLDED) else samples - 1
    when = f"t = {t[k]:.6g} s (sample {k})"
    if trouble == WRONG_SHAPE:
        raise ValueError(f"law {law!r} returned tau of another shape than ({robot.n},) at {when}")
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


def of_rollout(index: tuple[int, ...]) -> str:
    """Which rollout, as the end of a message; nothing where there is one alone."""
    return f" in rollout {index[0] if len(index) == 1 else index}" if index else ""

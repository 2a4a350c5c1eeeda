"""What cannot be compared of logs, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from twin.logs.parts import first_fault
from twin.short_texts import figure

if TYPE_CHECKING:
    from twin.logs.log import Log

SAME_MOTION = 1e-3
"""[rad], [m]: references nearer than this are one motion, sampled at other times or in another way."""


def differences(logs: Mapping[str, Log]) -> tuple[str, ...]:
    """Sentences on what cannot be compared of logs, by name, and why; none where all can."""
    return (*_faults(logs), *_joints(logs), *_lengths(logs), *_motions(logs))


def _faults(logs: Mapping[str, Log]) -> Iterator[str]:
    for name, log in logs.items():
        fault = first_fault(log)
        if fault is not None:
            yield (
                f"{name} has numbers that are not finite from {fault:.6g} s on: its figures are of the "
                "samples before, and only what is finite is drawn"
            )


def _joints(logs: Mapping[str, Log]) -> Iterator[str]:
    if len({tuple(log.robot.joint_names) for log in logs.values()}) > 1:
        who = _who(logs, lambda log: f"{log.robot.name} with {log.robot.n} joints")
        yield f"the robots have different joints ({who}): those of the same name stand side by side"
    elif len({log.robot.name for log in logs.values()}) > 1:
        who = _who(logs, lambda log: log.robot.name)
        yield f"the robots differ ({who}): joints stand side by side by name, and limits are each robot's own"


def _lengths(logs: Mapping[str, Log]) -> Iterator[str]:
    if len({(f"{log.t[0]:.6g}", f"{log.t[-1]:.6g}") for log in logs.values()}) > 1:
        who = _who(logs, lambda log: f"{log.t[0]:.4g} to {log.t[-1]:.4g} s")
        yield f"the runs cover different times ({who}): every figure is of its own run"
    if len({f"{_period(log):.6g}" for log in logs.values()}) > 1:
        who = _who(logs, lambda log: f"{1e3 * _period(log):g} ms")
        yield f"the control periods differ ({who}): counts of samples cannot be compared"


def _period(log: Log) -> float:
    return log.time_step * log.steps_per_period


def _motions(logs: Mapping[str, Log]) -> Iterator[str]:
    """Where the arms were not asked for the same; of the first two logs with the same joints that differ."""
    for (name, log), (other_name, other) in combinations(logs.items(), 2):
        if log.robot.joint_names != other.robot.joint_names:
            continue
        shared = (log.t >= other.t[0]) & (log.t <= other.t[-1])
        if not shared.any():
            yield f"{name} and {other_name} have no time in common"
            return
        wanted = np.column_stack([np.interp(log.t[shared], other.t, q) for q in other.q_ref.T])
        apart = np.abs(wanted - log.q_ref[shared])
        if not np.max(apart) <= SAME_MOTION:
            k, joint = np.unravel_index(int(np.argmax(apart)), apart.shape)
            where = f"{log.robot.joint_names[joint]} at {log.t[shared][k]:.4g} s"
            yield (
                f"{name} and {other_name} were asked for different motions ({figure(float(apart[k, joint]))} "
                f"apart in {where}): every error is of its own motion"
            )
            return


def _who(logs: Mapping[str, Log], what: Callable[[Log], str]) -> str:
    """`irb140: pd, pid; irb1400: pd (2)`: the logs by what they have."""
    having: dict[str, list[str]] = {}
    for name, log in logs.items():
        having.setdefault(what(log), []).append(name)
    return "; ".join(f"{thing}: {', '.join(names)}" for thing, names in having.items())

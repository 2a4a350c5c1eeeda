"""Parts of a run: the samples between two times, or those before the first number that is not finite."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np

from twin.errors import TwinError
from twin.logs.columns import is_sampled

if TYPE_CHECKING:
    from twin.logs.log import Log


def between(log: Log, start: float | None = None, end: float | None = None) -> Log:
    """The samples of a log from one time to another, both included; the log itself where neither is given.

    Args:
        log: of a run.
        start: in [s]; `None` for the first sample.
        end: in [s]; `None` for the last.

    Raises:
        TwinError: there is no sample between them.
    """
    if start is None and end is None:
        return log
    low, high = -np.inf if start is None else start, np.inf if end is None else end
    room = 1e-6 * log.time_step  # a time that was read off the log, in fewer digits, is that sample's
    kept = (log.t >= low - room) & (log.t <= high + room)
    if not kept.any():
        raise TwinError(
            f"no sample between {low:g} s and {high:g} s: the run of {log.controller} on {log.robot.name} "
            f"lasts from {log.t[0]:g} s to {log.t[-1]:g} s"
        )
    arrays = {item.name: getattr(log, item.name) for item in fields(log)}
    parts: dict[int, np.ndarray] = {}  # by the array, so that one which stands for another goes on doing so

    def part(array: np.ndarray) -> np.ndarray:
        return parts.setdefault(id(array), array[kept])

    cut = {
        name: part(array)
        for name, array in arrays.items()
        if isinstance(array, np.ndarray) and name != "T_flange_tool"
    }
    own = {name: part(array) if is_sampled(array, len(kept)) else array for name, array in log.arrays.items()}
    return replace(log, **cut, arrays=own)


def first_fault(log: Log) -> float | None:
    """When a position, a speed or a torque was first not finite, in [s]; `None` where all are."""
    broken = ~np.all([np.isfinite(array).all(axis=1) for array in (log.q, log.qd, log.tau)], axis=0)
    return float(log.t[np.argmax(broken)]) if broken.any() else None


def finite_part(log: Log) -> Log:
    """The samples before the first that is not finite; the whole log where all are, or where none is."""
    fault = first_fault(log)
    if fault is None or fault == log.t[0]:
        return log
    return between(log, end=float(log.t[np.searchsorted(log.t, fault) - 1]))

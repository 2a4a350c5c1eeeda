"""The log of a run that comes in parts and has no end: its last samples, in memory that does not grow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from twin.logs.log import STANDS_FOR, Log

if TYPE_CHECKING:
    from twin.arrays import Floats

SERIES = (
    "t", "q_ref", "qd_ref", "qdd_ref", "q", "qd", "tau", "tau_demand", "saturated", "loop_gap", *STANDS_FOR,
)  # fmt: skip
"""The arrays of a log that have a row a sample."""


class RunningLog:
    """The last samples of a run in parts.

    Args:
        samples: how many are kept, at least 1.
    """

    def __init__(self, samples: int) -> None:
        if samples < 1:
            raise ValueError(f"expected to keep at least 1 sample, got {samples}")
        self._most = samples
        self.restart()

    def restart(self) -> None:
        """Forget all parts."""
        self._first: Log | None = None
        self._count = 0
        self._series: dict[str, np.ndarray] = {}

    def add(self, part: Log) -> None:
        """Take over a part that follows the one before; drives and sensors are those of the first."""
        if self._first is None:
            self._first = part
            for name in SERIES:
                array = getattr(part, name)
                if array is not getattr(part, STANDS_FOR.get(name, ""), None):
                    # Pages of memory that are not written to yet take none.
                    self._series[name] = np.empty((self._most, *array.shape[1:]), array.dtype)
        count = len(part.t)
        kept = min(count, self._most)
        rows = np.arange(self._count + count - kept, self._count + count) % self._most
        for name, series in self._series.items():
            series[rows] = getattr(part, name)[count - kept :]
        self._count += count

    def log(self, T_flange_tool: Floats, arrays: Mapping[str, np.ndarray]) -> Log | None:
        """The last samples as one log, with the robot and the law of the first part; `None` without any.

        Args:
            T_flange_tool: (4, 4) pose of the tool on the flange.
            arrays: what belongs to the log besides, by name.
        """
        if self._first is None:
            return None
        rows = np.arange(max(0, self._count - self._most), self._count) % self._most
        series = {name: array[rows] for name, array in self._series.items()}
        others = {name: None for name in STANDS_FOR if name not in series}
        return replace(self._first, T_flange_tool=T_flange_tool, arrays=arrays, **series, **others)

"""The last samples of a stream, in one piece of memory, however long the stream is."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from twin.arrays import Floats


class Window:
    """The last samples of shape `shape`, at least `reach` of them."""

    def __init__(self, reach: int, shape: tuple[int, ...]) -> None:
        self._reach = reach
        self._values = np.empty((4 * reach + 64, *shape))
        self._end = 0

    def __len__(self) -> int:
        return self._end

    def clear(self) -> None:
        """Forget them."""
        self._end = 0

    def append(self, values: Floats) -> None:
        """Add m samples (m, ...), m at most `reach`."""
        m = len(values)
        if self._end + m > len(self._values):
            kept = self._values[self._end - self._reach : self._end].copy()
            self._values[: self._reach], self._end = kept, self._reach
        self._values[self._end : self._end + m] = values
        self._end += m

    def last(self, count: int) -> Floats:
        """The last samples (count, ...), `count` at most `reach`."""
        return self._values[self._end - count : self._end]

    def filtered(self, weights: Floats, behind: int) -> Floats:
        """One filtered sample: the weights' last one meets the sample that is so many behind the newest."""
        end = self._end - behind
        values = self._values[end - len(weights) : end]
        return np.tensordot(weights, values, axes=(0, 0))

    def filtered_last(self, weights: Floats, count: int) -> Floats:
        """The last samples (count, ..., k) that weights (l, k) make."""
        values = self._values[self._end - count - len(weights) + 1 : self._end]
        return sliding_window_view(values, len(weights), axis=0) @ weights

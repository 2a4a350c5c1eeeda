"""Long series in few points, for curves: nothing that stands out is lost."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def thinned(values: ArrayLike, most: int) -> NDArray[np.intp]:
    """The samples of a series to draw, so that the curve looks as that of all of them.

    The series is cut into parts of equal length, each narrower than a curve can show. Of each part the lowest
    and the highest sample are kept, and one that is not a number if there is any, so that gaps stay gaps; and
    the first and the last sample of the series.

    Args:
        values: (N,) the series.
        most: how many samples to keep at most, at least 5.

    Returns:
        (K,) their indices, rising; all N of them where those are no more than `most`.

    Raises:
        ValueError: the series is not (N,), or `most` is less than 5.
    """
    series = np.asarray(values, dtype=np.float64)
    if series.ndim != 1 or not most >= 5:
        raise ValueError(f"expected a series of shape (N,) and at least 5 points, got {series.shape}, {most}")
    N = len(series)
    if most >= N:
        return np.arange(N)
    parts = (most - 2) // 3
    length = -(-N // parts)
    padded = np.full(parts * length, np.nan)
    padded[:N] = series
    gaps = np.isnan(padded)
    found = [
        np.argmin(np.where(gaps, np.inf, padded).reshape(parts, length), axis=1),
        np.argmax(np.where(gaps, -np.inf, padded).reshape(parts, length), axis=1),
        np.argmax(gaps.reshape(parts, length), axis=1),  # the first gap, or again the first sample
    ]
    starts = length * np.arange(parts)
    there = gaps.reshape(parts, length).any(axis=1)
    kept = np.concatenate([starts + found[0], starts + found[1], (starts + found[2])[there], [0, N - 1]])
    return np.unique(kept[kept < N])

"""Weights of a user for the equations of an identification.

The fit minimises the sum of `(w (tau - Y beta))^2` over all samples and joints.  Both sides of an equation
are multiplied by its weight w after they were filtered.  For noise of deviation sigma, `w = 1 / sigma` gives
the least variance.

Source: C. Gauss, "Theoria combinationis observationum" (1821), on weighted least squares.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, real_array
from twin.data.identification.measurements import Measurements


def with_weights(
    measured: Sequence[Measurements], weights: ArrayLike | Sequence[ArrayLike]
) -> list[Measurements]:
    """Return measurements with weights of their equations.

    Args:
        measured: measurements of the same robot.
        weights: (n,) for all of them; or (N, n) for each, where a log may have a row for its last sample.

    Raises:
        ValueError: the shapes do not fit, or a weight is negative or not finite; the message says which.
    """
    count = len(measured)
    given: Any = weights if isinstance(weights, np.ndarray | Sequence) else [weights]
    if all(np.ndim(one) == 0 for one in given):
        arrays: list[Any] = [weights] * count
    elif count == 1 and np.ndim(given[0]) == 1:
        arrays = [weights]
    elif len(given) == count:
        arrays = list(given)
    else:
        raise ValueError(f"expected weights for each of the {count} recordings, got {len(given)} arrays")
    return [
        replace(one, row_weights=_checked(array, one), how=f"{one.how}; equations weighted as given")
        for one, array in zip(measured, arrays, strict=True)
    ]


def _checked(weights: ArrayLike, measured: Measurements) -> Floats:
    """Return the weights (N, n) of the samples, one for each equation."""
    array, (N, n) = real_array(weights, "weights"), measured.q.shape
    rows = (N, N + 1) if measured.low_pass is None else (N,)  # exact equations of a log lack its last sample
    if array.shape != (n,) and not (array.ndim == 2 and len(array) in rows and array.shape[1] == n):
        raise ValueError(
            f"{measured.name}: expected weights of shape ({n},), one per joint, or (N, {n}), one per sample "
            f"and joint, with N = {' or '.join(map(str, rows))}, got {array.shape}"
        )
    if not np.all(valid := (array >= 0) & (array < np.inf)):
        place = tuple(np.argwhere(~valid)[0].tolist())
        sample = "" if array.ndim == 1 else f" at sample {place[0] + 1}"
        raise ValueError(
            f"{measured.name}: the weight of joint {place[-1] + 1}{sample} is {array[place]:g}; expected a "
            "finite number of at least 0"
        )
    return np.broadcast_to(array if array.ndim == 1 else array[:N], (N, n))


def used_equally(measured: Measurements) -> Measurements:
    """Return measurements whose weights are 1 where they are above 0."""
    weights = measured.row_weights
    return replace(measured, row_weights=None if weights is None else (weights > 0).astype(np.float64))

"""From a user's arrays to a compiled kernel and back: shapes checked, samples in rows, one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import real_array
from twin.robot.robot import Robot
from twin.threads import in_chunks

WORTH_A_THREAD = 5000
"""Samples: a thread costs some 50 us to start, and as many samples take a millisecond."""


def joint_vectors(robot: Robot, **vectors: ArrayLike) -> list[np.ndarray]:
    """The named joint vectors as finite float64 arrays `(..., n)` that fit together.

    Raises:
        ValueError: a value is not a number or not finite, a shape does not end in n, or shapes do not fit.
    """
    arrays = []
    for name, values in vectors.items():
        array = real_array(values, name)
        if array.ndim == 0 or array.shape[-1] != robot.n:
            raise ValueError(f"expected {name} of shape (..., {robot.n}), got {array.shape}")
        if not np.all(np.isfinite(array)):
            where = np.argwhere(~np.isfinite(array))[0]
            raise ValueError(f"expected {name} to be finite, got {array[tuple(where)]} at {where.tolist()}")
        arrays.append(array)
    if any(array.shape != arrays[0].shape for array in arrays):
        try:
            np.broadcast_shapes(*(array.shape for array in arrays))
        except ValueError:
            listed = ", ".join(f"{name} {np.shape(values)}" for name, values in vectors.items())
            raise ValueError(f"expected joint vectors of shapes that fit together, got {listed}") from None
    return arrays


def joint_vector(robot: Robot, name: str, values: ArrayLike) -> np.ndarray:
    """One joint vector as a finite float64 array `(n,)` of its own.

    Raises:
        ValueError: the shape is another, or a value is not finite.
    """
    array = np.array(real_array(values, name))
    if array.shape != (robot.n,):
        raise ValueError(f"expected {name} of shape ({robot.n},), got {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"expected {name} to be finite, got {array.tolist()}")
    return array


def copied(array: ArrayLike) -> np.ndarray:
    """A copy as compiled loops take it: float64, C-contiguous, writable."""
    return np.array(array, dtype=np.float64, order="C")


def evaluate(
    kernel: Callable[..., None],
    samples: Sequence[np.ndarray],
    shared: Sequence[np.ndarray],
    shape: tuple[int, ...],
) -> np.ndarray:
    """Run a batch kernel over samples `(..., n)`, broadcast to one shape; the result is `(..., *shape)`.

    Many samples are shared between the cores, see `twin/threads.py`.
    """
    leading = samples[0].shape[:-1]
    if any(s.shape[:-1] != leading for s in samples):
        leading = np.broadcast_shapes(*(s.shape[:-1] for s in samples))
        samples = [np.broadcast_to(s, (*leading, s.shape[-1])) for s in samples]
    # Writable like `out`: numba would compile the kernel again for arrays that are not.
    rows = [(s if s.flags.carray else np.array(s, order="C")).reshape(-1, s.shape[-1]) for s in samples]
    out = np.empty((rows[0].shape[0], *shape))
    in_chunks(lambda part: kernel(*(r[part] for r in rows), *shared, out[part]), len(out), WORTH_A_THREAD)
    return out.reshape(*leading, *shape)

"""Calls of a robot's kernels: batches with checked shapes, and kernels that run without compilation."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import real_array
from twin.base.errors import ShapeError
from twin.base.threads import in_chunks
from twin.physics.multibody import kernels
from twin.physics.multibody.kernels import shape_message
from twin.physics.robot import loops
from twin.physics.robot.robot import Robot

WORTH_A_THREAD = 5000
"""Samples that are worth a thread: they take a millisecond, and a thread takes some 50 us to start."""


def joint_vectors(robot: Robot, **vectors: ArrayLike) -> list[np.ndarray]:
    """Return the named joint vectors as finite float64 arrays `(..., n)` of compatible shapes.

    Raises:
        ValueError: a value is not a finite number, a shape does not end in n, or the shapes are incompatible.
    """
    arrays = []
    for name, values in vectors.items():
        array = real_array(values, name)
        if array.ndim == 0 or array.shape[-1] != robot.n:
            raise ValueError(f"expected {name} of shape (..., {robot.n}), got {array.shape}")
        if not np.isfinite(array).all():
            where = np.argwhere(~np.isfinite(array))[0]
            raise ValueError(f"expected {name} to be finite, got {array[tuple(where)]} at {where.tolist()}")
        arrays.append(array)
    if any(array.shape != arrays[0].shape for array in arrays):
        try:
            np.broadcast_shapes(*(array.shape for array in arrays))
        except ValueError:
            shapes = ", ".join(f"{name} {np.shape(values)}" for name, values in vectors.items())
            raise ValueError(f"expected joint vectors of compatible shapes, got {shapes}") from None
    return arrays


def joint_vector(robot: Robot, name: str, values: ArrayLike) -> np.ndarray:
    """Return one joint vector as a new finite float64 array `(n,)`.

    Raises:
        ValueError: the shape is wrong, or a value is not finite.
    """
    array = np.array(real_array(values, name))
    if array.shape != (robot.n,):
        raise ValueError(f"expected {name} of shape ({robot.n},), got {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"expected {name} to be finite, got {array.tolist()}")
    return array


def copied(array: ArrayLike) -> np.ndarray:
    """Return a float64, C-contiguous, writable copy for compiled loops."""
    return np.array(array, dtype=np.float64, order="C")


def evaluate(
    kernel: Callable[..., None],
    samples: Sequence[np.ndarray],
    shared: Sequence[np.ndarray],
    shape: tuple[int, ...],
) -> np.ndarray:
    """Run a batch kernel over samples `(..., n)`, broadcast to one shape; return the result `(..., *shape)`.

    Large batches are divided between the cores, see `twin/base/threads.py`.
    """
    leading = samples[0].shape[:-1]
    if any(s.shape[:-1] != leading for s in samples):
        leading = np.broadcast_shapes(*(s.shape[:-1] for s in samples))
        samples = [np.broadcast_to(s, (*leading, s.shape[-1])) for s in samples]
    # The rows are writable like `out`; for read-only arrays numba would compile the kernel again.
    rows = [(s if s.flags.carray else np.array(s, order="C")).reshape(-1, s.shape[-1]) for s in samples]
    out = np.empty((rows[0].shape[0], *shape))
    in_chunks(lambda part: kernel(*(r[part] for r in rows), *shared, out[part]), len(out), WORTH_A_THREAD)
    return out.reshape(*leading, *shape)


def uncompiled(robot: Robot) -> Robot:
    """Return the robot with kernels that run without compilation; robots derived from it compile again."""
    robot = replace(robot)
    functions: dict[str, Any] = {"np": np, "cached_njit": lambda **_: lambda function: function}
    exec(kernels.FOOTER, functions)
    for title, kernel in kernels.KERNELS.items():
        if kernel.trace is not None:
            functions[title] = _run_on_numbers(robot, title, kernel, kernel.trace)
        functions[f"{title}_batch"] = _over_rows(functions[title], len(kernel.samples))
        functions[f"{title}_one"] = lambda *_: False
    if robot.loops:
        functions["loop_gaps"] = _loop_gaps(robot)
    robot.__dict__["kernels"] = SimpleNamespace(**functions)  # the value of the cached_property
    return robot


class _Numbers:
    """Replacement of a `Trace` whose inputs are numbers, so that the recursions compute at once."""

    cos, sin, sqrt = map(staticmethod, (math.cos, math.sin, math.sqrt))
    scalar = staticmethod(float)

    def __init__(self, values: dict[str, np.ndarray]) -> None:
        self._values = values

    @staticmethod
    def reciprocal(x: float) -> float:
        """Return `1 / x`, or NaN unless x is positive."""
        return 1.0 / x if x > 0.0 else math.nan

    def inputs(self, name: str, count: int) -> list[float]:
        """Return the elements of an array argument; zeros if this kernel does not have it."""
        return self._values[name].tolist() if name in self._values else [0.0] * count

    def table(self, name: str, rows: int, columns: int) -> list[list[float]]:
        """Return the rows of a two-dimensional array argument, or zeros."""
        return self._values[name].tolist() if name in self._values else [[0.0] * columns] * rows


def _run_on_numbers(
    robot: Robot, title: str, kernel: kernels.Kernel, trace: Callable[[kernels.Symbols], list[float]]
) -> Callable[..., None]:
    shapes = kernel.signature(robot.n, robot.tree.n).shapes(robot.n, robot.tree.n)

    def run(*arguments: np.ndarray) -> None:
        values = dict(zip(shapes, arguments, strict=True))
        for name, shape in shapes.items():
            if values[name].shape != shape:
                raise ShapeError(shape_message(title, name, shape), values[name].shape)
        out = values.pop("out")
        on = kernels.Symbols(robot.tree, robot.embedding, robot.embedding_offset, _Numbers(values))
        out[...] = np.reshape(trace(on), out.shape)

    return run


def _loop_gaps(robot: Robot) -> Callable[..., None]:
    def run(q_tree: np.ndarray, out: np.ndarray) -> None:
        out[:] = loops.gaps(robot, q_tree).ravel()

    return run


def _over_rows(function: Callable[..., None], samples: int) -> Callable[..., None]:
    def run(*arguments: np.ndarray) -> None:
        *values, out = arguments
        for k in range(len(out)):
            function(*(rows[k] for rows in values[:samples]), *values[samples:], out[k])

    return run

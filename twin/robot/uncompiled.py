"""The kernels without compiling or tracing: slow to run, but there at once, for a robot that is met once.

They run the definitions of `twin/multibody/kernels.py` on the numbers themselves, where `kernels.source` runs
them on symbols.  A call takes a millisecond or so; compiling takes seconds, or a minute for a robot of many
joints.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from twin.errors import ShapeError
from twin.multibody import kernels
from twin.multibody.kernel_source import expected
from twin.robot import loops
from twin.robot.robot import Robot


def uncompiled(robot: Robot) -> Robot:
    """The same robot with kernels that are run, not compiled; what is made from it compiles again."""
    robot = replace(robot)
    functions: dict[str, Any] = {"np": np, "kept": lambda **_: lambda function: function}
    exec(kernels.FOOTER, functions)
    for title, kernel in kernels.KERNELS.items():
        if kernel.trace is not None:
            functions[title] = _run_on_numbers(robot, title, kernel, kernel.trace)
        functions[f"{title}_batch"] = _over_rows(functions[title], len(kernel.samples))
        functions[f"{title}_one"] = lambda *_: False
    if robot.loops:
        functions["loop_gaps"] = _loop_gaps(robot)
    robot.__dict__["kernels"] = SimpleNamespace(**functions)  # where cached_property looks first
    return robot


class _Numbers:
    """Stands in for a `Trace`: the inputs are their values, and an operation is done at once."""

    cos, sin, scalar = staticmethod(math.cos), staticmethod(math.sin), staticmethod(float)

    def __init__(self, values: dict[str, np.ndarray]) -> None:
        self._values = values

    @staticmethod
    def reciprocal(x: float) -> float:
        """`1 / x` of what is positive."""
        return 1.0 / x if x > 0.0 else math.nan

    def inputs(self, name: str, count: int) -> list[float]:
        """The elements of an array argument; zeros for one that this kernel does not have."""
        return self._values[name].tolist() if name in self._values else [0.0] * count

    def table(self, name: str, rows: int, columns: int) -> list[list[float]]:
        """The rows of a two-dimensional array argument."""
        return self._values[name].tolist() if name in self._values else [[0.0] * columns] * rows


def _run_on_numbers(
    robot: Robot, title: str, kernel: kernels.Kernel, trace: Callable[[kernels.Symbols], list[float]]
) -> Callable[..., None]:
    shapes = kernel.signature(robot.n).shapes(robot.n, robot.tree.n)

    def run(*arguments: np.ndarray) -> None:
        values = dict(zip(shapes, arguments, strict=True))
        for name, shape in shapes.items():
            if values[name].shape != shape:
                raise ShapeError(expected(title, name, shape), values[name].shape)
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

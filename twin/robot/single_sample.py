"""The compiled functions of a robot for one sample, reached by the shortest way from Python.

A public function first tries these.  Each answers with the result if its vectors are arrays of n finite
numbers of float64, which is checked in compiled code, and else with `None`.  Then the public function goes
the long way, which copies what can be used and says what is wrong with the rest, at fifteen times the cost.

All arrays here can be written to, though nobody may: numba takes 0.1 us longer to tell the type of one that
cannot, and would compile the kernels again for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import empty, ndarray

if TYPE_CHECKING:
    from twin.robot.robot import Robot

FALLBACK_ERRORS = (TypeError, AttributeError)
"""What compiled code raises for arguments that are not C-contiguous arrays of float64, as compiling for other
types is turned off."""

FLANGE = np.eye(4)
"""The tool where there is none."""


class SingleSample:
    """The functions of one robot, an attribute each, made ready when it is first asked for.

    An attribute takes the sample's vectors (n,), and knows the rest: inertias and gravity, or the flange as
    the tool.  `robot.single_sample.mass_matrix(q)` is M (n, n), or `None`.

    Attributes:
        n: number of joints.
        inertias, gravity: copies of those of the robot.
    """

    def __init__(self, robot: Robot) -> None:
        self.n = robot.n
        self.inertias = robot.tree.inertias.copy()
        self.gravity = robot.gravity.copy()
        self._has_inertia, self._kernels = robot.has_inertia, robot.kernels

    def __getattr__(self, title: str) -> Callable[..., np.ndarray | None]:
        from twin.multibody.kernels import KERNELS

        if title not in KERNELS:
            raise AttributeError(title)
        samples, shared, shape = KERNELS[title].signature(self.n)
        if "inertias" in shared and not self._has_inertia:
            return lambda *_: None
        known = {"inertias": self.inertias, "gravity": self.gravity, "T_flange_tool": FLANGE}
        constants = tuple(known[name] for name in shared)
        compute = getattr(self._kernels, f"{title}_one")
        with _ONE_AT_A_TIME:  # another thread may be at it, and none can compile what is disabled
            compute(*(np.zeros(self.n) for _ in samples), *constants, np.empty(shape))
            if hasattr(compute, "disable_compile"):
                compute.disable_compile()
        function = _OF_VECTORS[len(samples)](compute, constants, shape)
        setattr(self, title, function)
        return function


_ONE_AT_A_TIME = threading.Lock()


# Written out for each number of vectors: a list of them would cost as much as a joint.


def _of_one(compute: Any, constants: tuple[np.ndarray, ...], shape: tuple[int, ...]) -> Callable[..., Any]:
    def function(q: Any) -> np.ndarray | None:
        if type(q) is ndarray and q.ndim == 1:
            out = empty(shape)
            try:
                if compute(q, *constants, out):
                    return out
            except FALLBACK_ERRORS:
                pass
        return None

    return function


def _of_two(compute: Any, constants: tuple[np.ndarray, ...], shape: tuple[int, ...]) -> Callable[..., Any]:
    def function(q: Any, qd: Any) -> np.ndarray | None:
        if type(q) is ndarray and type(qd) is ndarray and q.ndim == 1:
            out = empty(shape)
            try:
                if compute(q, qd, *constants, out):
                    return out
            except FALLBACK_ERRORS:
                pass
        return None

    return function


def _of_three(compute: Any, constants: tuple[np.ndarray, ...], shape: tuple[int, ...]) -> Callable[..., Any]:
    def function(q: Any, qd: Any, third: Any) -> np.ndarray | None:
        if type(q) is ndarray and type(qd) is ndarray and type(third) is ndarray and q.ndim == 1:
            out = empty(shape)
            try:
                if compute(q, qd, third, *constants, out):
                    return out
            except FALLBACK_ERRORS:
                pass
        return None

    return function


_OF_VECTORS = {1: _of_one, 2: _of_two, 3: _of_three}

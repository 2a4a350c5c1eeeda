"""Fast path from Python to the compiled functions of a robot, for one sample.

A public function first calls one of these.  It returns the result if its vectors are float64 arrays of n
finite numbers, which compiled code checks, and `None` otherwise.  After `None` the public function takes the
slow path.  That one converts its arguments, or raises an error that describes what is wrong, and costs
fifteen times as much.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import empty, ndarray

FALLBACK_ERRORS = (TypeError, AttributeError)
"""Exceptions of compiled code for arguments that are not C-contiguous float64 arrays.

Compilation for other types is disabled."""


FLANGE = np.eye(4)
"""Pose of the tool on the flange if there is no tool."""


class SingleSample:
    """Functions of one robot for one sample, as attributes that are prepared at their first use.

    An attribute is a function of the sample's vectors (n,).  It supplies the other arguments: inertias and
    gravity, or the flange as the tool.  `robot.single_sample.mass_matrix(q)` is M (n, n), or `None`.

    Args:
        n: number of joints.
        kernels: compiled kernels of the robot.
        inertias: inertial parameters of the links, as in a `Tree`.
        gravity: (3,) acceleration of gravity, base frame, in [m/s^2].
        has_inertia: whether the masses of the links are known.
    """

    def __init__(
        self, n: int, kernels: Any, inertias: np.ndarray, gravity: np.ndarray, has_inertia: bool
    ) -> None:
        self.n, self._kernels, self._has_inertia = n, kernels, has_inertia
        # Writable copies, which must not be changed: numba takes 0.1 us longer to determine the type of a
        # read-only array, and would compile the kernels again for it.
        self.inertias, self.gravity = inertias.copy(), gravity.copy()

    def __getattr__(self, title: str) -> Callable[..., np.ndarray | None]:
        from twin.physics.multibody.kernels import KERNELS  # loaded with the first robot that computes

        if title not in KERNELS:
            raise AttributeError(title)
        samples, shared, shape = KERNELS[title].signature(self.n, len(self.inertias))
        if "inertias" in shared and not self._has_inertia:
            return lambda *_: None
        known = {"inertias": self.inertias, "gravity": self.gravity, "T_flange_tool": FLANGE}
        constants = tuple(known[name] for name in shared)
        compute = getattr(self._kernels, f"{title}_one")
        with _COMPILE_LOCK:  # another thread may be compiling, and after `disable_compile` none can compile
            compute(*(np.zeros(self.n) for _ in samples), *constants, np.empty(shape))
            if hasattr(compute, "disable_compile"):
                compute.disable_compile()
        function = _vector_function(compute, constants, shape, len(samples))
        setattr(self, title, function)
        return function


_COMPILE_LOCK = threading.Lock()


def _vector_function(
    compute: Any, constants: tuple[np.ndarray, ...], shape: tuple[int, ...], count: int
) -> Callable[..., np.ndarray | None]:
    """Return the function that evaluates a compiled kernel for `count` vectors of one sample.

    Each number of vectors has its function, because `*vectors` would take a tenth of the time of a call.
    They refuse other types than arrays, because numba would treat a masked array as a plain one.
    """

    def of_one(a: Any) -> np.ndarray | None:
        if type(a) is ndarray and a.ndim == 1:
            out = empty(shape)
            try:
                return out if compute(a, *constants, out) else None
            except FALLBACK_ERRORS:
                pass
        return None

    def of_two(a: Any, b: Any) -> np.ndarray | None:
        if type(a) is type(b) is ndarray and a.ndim == b.ndim == 1:
            out = empty(shape)
            try:
                return out if compute(a, b, *constants, out) else None
            except FALLBACK_ERRORS:
                pass
        return None

    def of_three(a: Any, b: Any, c: Any) -> np.ndarray | None:
        if type(a) is type(b) is type(c) is ndarray and a.ndim == b.ndim == c.ndim == 1:
            out = empty(shape)
            try:
                return out if compute(a, b, c, *constants, out) else None
            except FALLBACK_ERRORS:
                pass
        return None

    return (of_one, of_two, of_three)[count - 1]

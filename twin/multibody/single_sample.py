"""The compiled functions of a robot for one sample, reached by the shortest path from Python.

A public function first tries these.  Each answers with the result if its vectors are arrays of n finite
numbers of float64, which is checked in compiled code, and else with `None`.  Then the public function takes
the long path, which copies what can be used and says what is wrong with the rest, at fifteen times the cost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import empty, ndarray

FALLBACK_ERRORS = (TypeError, AttributeError)
"""What compiled code raises for arguments that are not C-contiguous arrays of float64, as compiling for other
types is turned off."""


FLANGE = np.eye(4)
"""The tool where there is none."""


class SingleSample:
    """The functions of one robot, an attribute each, made ready when it is first asked for.

    An attribute takes the sample's vectors (n,), and knows the rest: inertias and gravity, or the flange as
    the tool.  `robot.single_sample.mass_matrix(q)` is M (n, n), or `None`.

    Args:
        n: number of joints.
        kernels: the compiled kernels of the robot.
        inertias: of its links, as a `Tree` has them.
        gravity: (3,) base frame, in [m/s^2].
        has_inertia: whether the masses of its links are known.
    """

    def __init__(
        self, n: int, kernels: Any, inertias: np.ndarray, gravity: np.ndarray, has_inertia: bool
    ) -> None:
        self.n, self._kernels, self._has_inertia = n, kernels, has_inertia
        # Copies that can be written to, though nobody may: numba takes 0.1 us longer to tell the type of an
        # array that cannot, and would compile the kernels again for it.
        self.inertias, self.gravity = inertias.copy(), gravity.copy()

    def __getattr__(self, title: str) -> Callable[..., np.ndarray | None]:
        from twin.multibody.kernels import KERNELS  # loaded with the first robot that computes

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
        function = _of_vectors(compute, constants, shape)
        setattr(self, title, function)
        return function


_ONE_AT_A_TIME = threading.Lock()


def _of_vectors(
    compute: Any, constants: tuple[np.ndarray, ...], shape: tuple[int, ...]
) -> Callable[..., Any]:
    """Return the function that evaluates a compiled kernel for the vectors of one sample."""

    def function(*vectors: Any) -> np.ndarray | None:
        for vector in vectors:
            if type(vector) is not ndarray or vector.ndim != 1:  # numba takes a masked array for a plain one
                return None
        out = empty(shape)
        try:
            return out if compute(*vectors, *constants, out) else None
        except FALLBACK_ERRORS:
            return None

    return function

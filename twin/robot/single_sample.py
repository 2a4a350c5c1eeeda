"""The compiled functions of a robot for one sample, reached by the shortest way from Python.

A public function first tries these.  Each checks in compiled code that its vectors have n finite entries, and
answers false where they do not; arrays of another type than it was compiled for raise `TypeError`, because
compiling for further types is turned off.  In both cases the public function goes the long way, which copies
what can be used and says what is wrong with the rest.  That way costs fifteen times as much.

All arrays here can be written to, though nobody may: numba takes 0.1 us longer to tell the type of one that
cannot, and would compile the kernels again for it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from twin.robot.robot import Robot

FALLBACK_ERRORS = (TypeError, AttributeError)
"""What a function here raises for arguments that are not arrays of float64 in one piece."""

FLANGE = np.eye(4)
"""The tool where there is none."""


class SingleSample:
    """The functions of one robot, an attribute each, made ready when it is first asked for.

    An attribute is the function and what it wants to know besides the sample: inertias and gravity, or the
    tool's pose, in the order of its arguments.

    Attributes:
        n: number of joints.
        inertias, gravity: copies of those of the robot.
    """

    def __init__(self, robot: Robot) -> None:
        self.n = robot.n
        self.inertias = robot.tree.inertias.copy()
        self.gravity = robot.gravity.copy()
        self._has_inertia, self._kernels = robot.has_inertia, robot.kernels

    def __getattr__(self, title: str) -> tuple[Any, ...]:
        from twin.multibody.kernels import KERNELS

        if title not in KERNELS:
            raise AttributeError(title)
        samples, shared, shape = KERNELS[title].signature(self.n)
        known = {"inertias": self.inertias, "gravity": self.gravity, "T_flange_tool": FLANGE}
        besides = tuple(known[name] for name in shared)
        if "inertias" in shared and not self._has_inertia:
            return _unable, *besides
        function = getattr(self._kernels, f"{title}_one")
        with _ONE_AT_A_TIME:  # another thread may be at it, and none can compile what is disabled
            function(*(np.zeros(self.n) for _ in samples), *besides, np.empty(shape))
            if hasattr(function, "disable_compile"):
                function.disable_compile()
        setattr(self, title, (function, *besides))
        return function, *besides


_ONE_AT_A_TIME = threading.Lock()


def _unable(*_: Any) -> bool:
    """Stands for a function of inertias that are not known."""
    return False

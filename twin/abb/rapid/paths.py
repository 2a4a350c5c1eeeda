"""Export of a joint path as a RAPID module."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import ArrayLike

from twin.abb.rapid.values import PREDEFINED
from twin.base.arrays import float_array
from twin.physics.robot.limits import check_position
from twin.physics.robot.robot import Robot

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}")


def export(
    robot: Robot,
    q: ArrayLike,
    *,
    speed: str = "v100",
    zone: str = "z1",
    name: str = "Path",
    tool: str = "tool0",
) -> str:
    """Return a RAPID module that moves through joint angles by `MoveAbsJ`.

    Args:
        robot: the arm, whose ranges the angles must keep.
        q: (N, 6) joint angles, in [rad].
        speed: name of predefined speed data.
        zone: name of predefined zone data, or `fine`; the arm stops at the last point.
        name: name of the module.
        tool: name of the tool data.

    Example:
        >>> robot = twin.load("irb140")
        >>> module = twin.rapid.export(robot, [robot.poses["zero"], robot.poses["test_1"]])
        >>> module.count("MoveAbsJ")
        2

    Raises:
        LimitError: an angle is outside its range.
        ValueError: a wrong shape, or an unknown name of a speed or a zone.
    """
    angles = np.atleast_2d(float_array(q, "q", (6,)))
    if angles.ndim != 2 or angles.shape[1] != 6 or robot.n != 6:
        raise ValueError(f"expected q of shape (N, 6), got {angles.shape}")
    for kind, given in (("speeddata", speed), ("zonedata", zone)):
        if given.lower() not in PREDEFINED or PREDEFINED[given.lower()].type != kind:
            raise ValueError(f"expected predefined {kind} such as v100 or z10, got {given!r}")
    if not NAME.fullmatch(name):
        raise ValueError(f"expected a name of letters, digits and _ for the module, got {name!r}")
    lines = [f"MODULE {name}", "  PROC main()"]
    for k, one in enumerate(angles):
        check_position(robot, one)
        axes = ",".join(f"{angle:.9f}" for angle in np.degrees(one))
        stop = "fine" if k == len(angles) - 1 else zone
        lines.append(f"    MoveAbsJ [[{axes}],[9E9,9E9,9E9,9E9,9E9,9E9]],{speed},{stop},{tool};")
    return "\n".join([*lines, "  ENDPROC", "ENDMODULE", ""])

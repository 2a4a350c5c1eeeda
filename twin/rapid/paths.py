"""Export of a joint path as a RAPID module, and the fit of a plan to measured times."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares

from twin.arrays import Floats, float_array
from twin.errors import RapidError
from twin.rapid.planning import Limits, Plan
from twin.rapid.programs import Program, check
from twin.rapid.values import PREDEFINED
from twin.robot.limits import check_position
from twin.robot.robot import Robot

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


def stop_times(plan: Plan, settling: float = 0.0) -> dict[int, float]:
    """Return the times from stop to stop with a rest at the end, in [s], by the line of the last move.

    Lines that run more than once are left out.
    """
    times: dict[int, float] = {}
    repeated: set[int] = set()
    since = 0.0
    for one in plan.moves:
        since += one.time
        if one.move.stops:
            repeated |= {one.move.line} & set(times)
            times[one.move.line], since = since + settling, 0.0
    return {line: time for line, time in times.items() if line not in repeated}


def fit(program: Program, robot: Robot, measured: Mapping[int, float]) -> tuple[Limits, Floats]:
    """Return the share of the torque and the settling time that explain measured times of stop-to-stop moves.

    Args:
        program: program whose moves end in stops.
        robot: the arm.
        measured: times from stop to stop by the line of the move, in [s].

    Returns:
        The limits, and the residuals of the times, in [s].

    Example:
        >>> robot = twin.load("irb140").with_drives("rigid")
        >>> q = [[0.1 * k * k, 0, 0, 0, 0.1 * k, 0] for k in range(4)]
        >>> source = twin.rapid.parse(twin.rapid.export(robot, q, zone="fine", speed="v5000"))
        >>> program = twin.rapid.interpret(source, robot)
        >>> round(twin.rapid.fit(program, robot, {4: 0.178, 5: 0.239, 6: 0.297})[0].share, 2)
        0.8

    Raises:
        RapidError: fewer than three times, or a line without a move that stops.
    """
    if len(measured) < 3:
        raise RapidError(f"expected times of at least 3 moves, got {len(measured)}", "time")
    known = stop_times(check(program, robot)[0])
    for line in measured:
        if line not in known:
            raise RapidError(
                f"line {line} has no move that stops and runs once; such lines are {sorted(known)}", "time"
            )
    lines, times = list(measured), np.array(list(measured.values()))

    def residuals(values: Floats) -> Floats:
        planned, fault = check(program, robot, Limits(share=float(values[0])))
        if fault is not None:
            raise fault
        found = stop_times(planned, float(values[1]))
        return np.array([found[line] for line in lines]) - times

    result = least_squares(residuals, [0.8, 0.1], bounds=([0.05, 0.0], [1.0, 5.0]), diff_step=1e-3)
    return Limits(share=float(result.x[0]), settling=float(result.x[1])), result.fun

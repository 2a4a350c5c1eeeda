"""Fit of a plan to measured times: share of the torque, settling time, and how well both are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from twin.abb.rapid.planning import Limits, Plan
from twin.abb.rapid.programs import Program, check
from twin.base.arrays import Floats
from twin.base.errors import RapidError
from twin.physics.robot.robot import Robot

SHARES, SETTLINGS = (0.05, 1.0), (0.0, 5.0)
"""Bounds of the share of the torque, and of the settling time in [s]."""

AT_BOUND = 1e-3
"""Distance from a bound, as a share of its range, within which a number is at it."""


class Measured(NamedTuple):
    """Measured time.

    Attributes:
        time: time in [s].
        line: line of a move that stops; the time is that from the stop before. None for a whole program.
        program: index of the program.
    """

    time: float
    line: int | None = None
    program: int = 0


class Fit(NamedTuple):
    """Share and settling time that explain measured times.

    Attributes:
        limits: the limits of a plan with both.
        residuals: (N,) planned minus measured times, in [s].
        share_deviation: standard deviation of the share; infinite if the times do not tell it.
        settling_deviation: standard deviation of the settling time, in [s].
        correlation: correlation of both, -1 to 1; NaN if the times do not tell them apart.
        at_bounds: sentences on numbers that end at a bound.
    """

    limits: Limits
    residuals: Floats
    share_deviation: float
    settling_deviation: float
    correlation: float
    at_bounds: tuple[str, ...]


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


def fit(
    programs: Program | Sequence[Program],
    robot: Robot,
    measured: Sequence[Measured],
    *,
    accelerations: Floats | None = None,
) -> Fit:
    """Return the share of the torque and the settling time that explain measured times.

    The deviations are those of linear least squares at the result, with the variance of the residuals.

    Args:
        programs: executed programs.
        robot: the arm.
        measured: times of moves between stops, and of whole programs.
        accelerations: (6,) largest accelerations in [rad/s^2] of which a share is used, for a robot without
            masses.

    Example:
        >>> robot = twin.load("irb140").with_drives("rigid")
        >>> q = [[0.1 * k * k, 0, 0, 0, 0.1 * k, 0] for k in range(4)]
        >>> source = twin.rapid.parse(twin.rapid.export(robot, q, zone="fine", speed="v5000"))
        >>> times = [twin.rapid.Measured(time, line) for time, line in ((0.178, 4), (0.239, 5), (0.297, 6))]
        >>> round(twin.rapid.fit(twin.rapid.interpret(source, robot), robot, times).limits.share, 2)
        0.8

    Raises:
        RapidError: fewer than three times, one that is not positive and finite, or a line without a move that
            stops and runs once.
        RobotError: the robot has no masses, and no accelerations are given.
    """
    programs = [programs] if isinstance(programs, Program) else list(programs)
    _check_times(programs, robot, measured, accelerations)
    plans: dict[float, list[Plan]] = {}  # by the share: the settling time is added to them

    def residuals(values: Floats) -> Floats:
        share, settling = map(float, values)
        if share not in plans:
            plans[share] = [_planned(one, robot, Limits(share, 0.0, accelerations)) for one in programs]
        found = [_time(plans[share][one.program], one.line, settling) for one in measured]
        return np.array(found) - [one.time for one in measured]

    bounds = tuple(zip(SHARES, SETTLINGS, strict=True))
    result = least_squares(residuals, [0.8, 0.1], bounds=bounds, diff_step=1e-3)
    share, settling = map(float, result.x)
    deviations, correlation = _known(result.jac, result.fun)
    ends = [("the share", share, SHARES, SHARES, ""), ("settling", settling, SETTLINGS, SETTLINGS[1:], " s")]
    at_bounds = [  # no settling is no fault of the times
        f"{name} ends at its bound of {bound:g}{unit}: the times do not fit the plan"
        for name, value, (low, high), bounds_of, unit in ends
        for bound in bounds_of
        if abs(value - bound) <= AT_BOUND * (high - low)
    ]
    return Fit(Limits(share, settling, accelerations), result.fun, *deviations, correlation, tuple(at_bounds))


def _check_times(
    programs: Sequence[Program], robot: Robot, measured: Sequence[Measured], accelerations: Floats | None
) -> None:
    if len(measured) < 3:
        raise RapidError(f"expected at least 3 times, got {len(measured)}", "time")
    known = [stop_times(_planned(one, robot, Limits(accelerations=accelerations))) for one in programs]
    for one in measured:
        where = "the program" if one.line is None else f"line {one.line}"
        if not 0.0 < one.time < math.inf:
            raise RapidError(f"{where} has a time of {one.time:g} s, expected a positive finite one", "time")
        if not 0 <= one.program < len(programs):
            raise RapidError(f"there is no program {one.program}, of {len(programs)}", "time")
        if one.line is not None and one.line not in known[one.program]:
            lines = sorted(known[one.program])
            raise RapidError(
                f"line {one.line} has no move that stops and runs once; such lines are {lines}", "time"
            )


def _planned(program: Program, robot: Robot, limits: Limits) -> Plan:
    plan, fault = check(program, robot, limits)
    if fault is not None:
        raise fault
    return plan


def _time(plan: Plan, line: int | None, settling: float) -> float:
    """Return the planned time of a whole program, or of the move on a line since the stop before, in [s]."""
    return plan.time + settling * _stops(plan) if line is None else stop_times(plan, settling)[line]


def _stops(plan: Plan) -> int:
    """Return the number of stops after a motion, each of which has a settling time."""
    count, moving = 0, False
    for k, one in enumerate(plan.moves):
        moving |= one.time > 0.0
        if one.move.stops or k == len(plan.moves) - 1:
            count, moving = count + moving, False
    return count


def _known(jacobian: Floats, residuals: Floats) -> tuple[tuple[float, float], float]:
    """Return the standard deviations of both numbers, and their correlation."""
    normal = jacobian.T @ jacobian
    if np.linalg.cond(normal) > 1e12:
        return (math.inf, math.inf), math.nan
    variance = float(residuals @ residuals) / max(len(residuals) - 2, 1)
    covariance = variance * np.linalg.inv(normal)
    share, settling = np.sqrt(np.diag(covariance))
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    correlation = float(covariance[0, 1] / scale[0, 1]) if scale[0, 1] > 0 else math.nan
    return (float(share), float(settling)), correlation

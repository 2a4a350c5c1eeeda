"""Figures and checks of the tracking of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scenarios.judging import bounds
from scenarios.judging.agreement import agreement_metrics
from scenarios.judging.feedback import feedback_metrics
from scenarios.judging.motion_range import beyond_passive_range, finite_range
from scenarios.metric import Metric
from twin.base.formatting import figure
from twin.data.logs.figures import (
    joint_error,
    largest,
    place_of_largest,
    tool_distance,
    unit_of_largest,
)
from twin.physics.robot.units import joint_unit

if TYPE_CHECKING:
    from scenarios.judging.run import TrackingRun
    from twin.data.logs.log import Log


def tracking_metrics(run: TrackingRun) -> tuple[Metric, ...]:
    """Return the tracking errors, the checks of engine against model, and the checks of the reference.

    Example:
        >>> from scenarios.judging.tracking import tracking_metrics
        >>> from scenarios.gravity_hold import GravityHold
        >>> metrics = tracking_metrics(GravityHold(duration=0.1).run())
        >>> len(metrics), [metric.name for metric in metrics if not metric.passes]
        (12, [])
    """
    return (
        *error_metrics(run), *found_payload(run.log), *agreement_metrics(run), *validity_metrics(run.log)
    )  # fmt: skip


def found_payload(log: Log) -> tuple[Metric, ...]:
    """Return the mass that the controller found beside its model's payload; empty unless it seeks one.

    Example:
        >>> from scenarios.judging.tracking import found_payload
        >>> from scenarios.gravity_hold import GravityHold
        >>> from scenarios.setup import Setup
        >>> setup = Setup(controller="adaptive", drives="rigid", payload="3", model_payload="0")
        >>> [(metric.name, metric.unit) for metric in found_payload(GravityHold().run(setup).log)]
        [('payload that the controller found', 'kg')]
    """
    payload = log.law_signals.get("payload")
    if payload is None:
        return ()
    why = "mass beside that of its model's payload, at the end of the run; as true as the motion tells"
    return (Metric("payload that the controller found", float(payload[-1, 0]), "kg", None, why),)


def error_metrics(run: TrackingRun) -> tuple[Metric, ...]:
    """Return the largest errors, with a limit if only rounding can cause an error or a bound is known.

    Example:
        >>> from scenarios.judging.tracking import error_metrics
        >>> from scenarios.gravity_hold import GravityHold
        >>> metrics = error_metrics(GravityHold(duration=0.1).run(GravityHold.setup(controller="pd")))
        >>> for metric in metrics:
        ...     print(metric.name, "=", round(metric.value, 4))
        largest joint error = 0.0348
        largest tool error = 0.0275
        joint error / its bound = 0.1926
    """
    log, exact = run.log, bounds.is_exact(run)
    return (
        Metric(
            "largest joint error",
            float(np.max(largest(joint_error(log)))),
            unit_of_largest(log, joint_error(log)),
            bounds.ROUND_OFF if exact else None,
            "exact model, reference in the engine's steps: only rounding is left"
            if exact
            else "error of this controller on this motion",
            place_of_largest(log, joint_error(log)),
        ),
        Metric(
            "largest tool error",
            float(np.max(tool_distance(log))),
            "m",
            None,
            "of the tool's origin, the flange's centre without --tool",
            place_of_largest(log, tool_distance(log)),
        ),
        *motor_metrics(log),
        *feedback_metrics(run),
        *((bound_metric(run),) if bounds.has_bound(run) else ()),
    )


def motor_metrics(log: Log) -> tuple[Metric, ...]:
    """Return the error on the motors' side of the springs, which the controller can measure.

    Empty without springs.

    Example:
        >>> from scenarios.judging.tracking import motor_metrics
        >>> from scenarios.gravity_hold import GravityHold
        >>> from scenarios.setup import Setup
        >>> setup = Setup(drives="elastic", payload="6,0.1,0.1,0.1")
        >>> [metric.name for metric in motor_metrics(GravityHold(duration=0.1).run(setup).log)]
        ['largest motor error']
    """
    if log.drives != "elastic":
        return ()
    error = log.q_ref - log.q_motor
    why = "in joint units, before the springs, where the controller measures"
    where = place_of_largest(log, error)
    unit = unit_of_largest(log, error)
    return (Metric("largest motor error", float(np.max(largest(error))), unit, None, why, where),)


def bound_metric(run: TrackingRun) -> Metric:
    """Return the check of the largest error of a joint over its bound.

    A bound beyond the range of its joint says nothing: the figure is then not judged, unless the error of
    another joint exceeds its bound.

    Example:
        >>> from scenarios.judging.tracking import bound_metric
        >>> from scenarios.gravity_hold import GravityHold
        >>> from scenarios.setup import Setup
        >>> metric = bound_metric(GravityHold(duration=0.1).run(Setup(controller="pd")))
        >>> metric.passes, round(metric.value, 4), metric.limit
        (True, 0.1926, 1.0)
    """
    log, (bound, why) = run.log, bounds.tracking_bound(run)
    low, high = finite_range(log.robot)
    silent = bound > high - low
    ratio = joint_error(log) / np.where(silent, np.inf, bound)
    value, where = float(np.max(largest(ratio))), place_of_largest(log, ratio)
    judged = not (silent.any() and value <= 1.0)
    joint = int(np.argmax(largest(ratio) if judged else silent))
    name, unit = log.robot.joint_names[joint], joint_unit(log.robot.joint_kinds[joint])
    if not judged:
        where, why = name, f"the bound of {name} is beyond its range"
        value = float(np.max(largest(joint_error(log)) / bound))
    where += f", whose bound is {figure(float(bound[joint]))} {unit}" if where else ""
    return Metric("joint error / its bound", value, "", 1.0 if judged else None, why, where)


def torque_limit_metric(log: Log, why: str) -> Metric:
    """Return the check that no motor reached its torque limit; not judged if a limit is not known."""
    saturated, limit = log.saturated, 0.0
    unknown = log.robot.joints_without_torque_limit
    if unknown and not np.any(saturated):
        limit, why = None, f"not judged: no torque limit is known of {', '.join(unknown)}"
    where = place_of_largest(log, saturated.astype(float))  # the first saturated sample
    return Metric("samples at the torque limit", float(np.count_nonzero(saturated)), "", limit, why, where)


def validity_metrics(log: Log) -> tuple[Metric, ...]:
    """Return the checks that a real arm could make the motion: its torques, ranges and speed limits.

    Example:
        >>> from scenarios.judging.tracking import validity_metrics
        >>> from scenarios.gravity_hold import GravityHold
        >>> metrics = validity_metrics(GravityHold(duration=0.1).run().log)
        >>> for metric in metrics:
        ...     print(metric.name, "=", metric.value)
        samples at the torque limit = 0.0
        reference beyond the range = 0.0
        reference speed / its limit = 0.0
    """
    robot = log.robot
    excess = np.maximum(np.maximum(log.q_ref - robot.q_max, robot.q_min - log.q_ref), 0.0)
    beyond = np.maximum(np.max(excess), np.max(beyond_passive_range(robot, log.q_ref)))
    ratio = log.qd_ref / robot.qd_max
    return (
        torque_limit_metric(log, "the motion should stay within the torque limits of the drives"),
        Metric(
            "reference beyond the range",
            float(np.maximum(beyond, 0.0)),
            unit_of_largest(log, excess),
            0.0,
            "joint limits of the robot's URDF, those of passive joints included",
            place_of_largest(log, excess),
        ),
        Metric(
            "reference speed / its limit",
            float(np.max(np.abs(ratio))),
            "",
            1.0,
            "speed limits of the robot's URDF",
            place_of_largest(log, ratio),
        ),
    )

"""Figures and checks of the tracking of a run, and the verdict on its error: limit, outcome, or reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from scenarios.judging import bounds
from scenarios.judging.agreement import agreement_metrics
from scenarios.judging.following import DECAY, RADIUS, feedback_metrics
from scenarios.judging.motion_range import beyond_passive_range, finite_range
from scenarios.metric import Metric, Outcome
from scenarios.setup import Setup
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


ERROR, RATIO = "largest joint error", "joint error / its bound"
"""Names of the checks that judge the tracking error."""
FIGURES = {"joint_error": ERROR, "tool_error": "largest tool error"}
"""Names of the figures of `--limit` that most scenarios also check, and names of these checks."""


@dataclass(frozen=True)
class TrackingVerdict:
    """Verdict on the largest tracking error of a run.

    Attributes:
        verdict: `exact` if the error may only be rounding, `bounded` if theory bounds it, `limited` if
            `--limit` limits it; `not_judged` if no limit is known; `undetermined` if rounding decides.
        outcome: outcome of the check.
        range: smallest and largest error of runs that differ by rounding alone, in `unit`; two equal numbers
            if rounding does not matter.
        unit: `rad`, or `m` for a prismatic joint.
        joint: name of the joint with this error.
        limit: largest allowed error, in `unit`; None if the error is not judged.
        from_s: time from which rounding decides the path, in [s]; None if it does not.
        reason: why no limit is known; empty if there is a limit.
        feedback: what the feedback does with an initial error, for an error that can only be rounding.
    """

    verdict: Literal["exact", "bounded", "limited", "not_judged", "undetermined"]
    outcome: Outcome
    range: tuple[float, float]
    unit: str
    joint: str
    limit: float | None
    from_s: float | None
    reason: str
    feedback: str = ""

    @property
    def sentence(self) -> str:
        """Verdict as text, as `largest error 0.262 rad, within its estimated bound of 0.863 rad`."""
        low, high = map(figure, self.range)
        error = f"largest error {high if low == high else f'{low} to {high}'} {self.unit}"
        limit = "" if self.limit is None else f"{figure(self.limit)} {self.unit}"
        if self.outcome == "not computed":
            return "tracking NOT COMPUTED: its error is not a number"
        if self.verdict == "undetermined":
            since = "" if self.from_s is None else f" from t = {self.from_s:.6g} s"
            error = f"tracking UNDETERMINED by rounding{since}, {error}"
            return f"{error}, limit {limit}" if limit else f"{error}, {self.joint}; {ADVICE}"
        if self.verdict == "not_judged":
            return f"tracking NOT JUDGED ({self.reason}), {error}, {self.joint}; {ADVICE}"
        passes = self.outcome == "passes"
        if self.verdict == "exact":
            limit = "" if passes else f" (limit {figure(self.limit or 0.0)})"
            return f"{'' if passes else 'NOT '}exact, {error}{limit}{self.feedback}"
        what = "its estimated bound" if self.verdict == "bounded" else "the limit"
        return f"{error}, {'within' if passes else 'BEYOND'} {what} of {limit}"


ADVICE = "--limit joint_error=... judges it"
NO_CHECK = "this scenario does not check it"


def tracking_verdict(setup: Setup, run: TrackingRun, metrics: tuple[Metric, ...]) -> TrackingVerdict | None:
    """Return the verdict on the tracking error of a run; None if the run has no tracking error.

    Args:
        setup: setup of the run.
        run: the run.
        metrics: all figures and checks of the run.
    """
    named = {metric.name: metric for metric in metrics}
    log = run.log
    if ERROR not in named and run.loop is None:
        return None
    errors = largest(joint_error(log))
    joint = int(np.argmax(errors))
    error = named.get(ERROR, Metric(ERROR, float(errors[joint]), "rad", None, ""))
    by_theory = named.get(RATIO, error)
    judge, limit = (error, error.limit) if error.limit is not None else (by_theory, None)
    kind = "limited" if judge is error else "bounded"
    if judge.outcome == "not judged":
        kind = "not_judged"
    elif judge is error and bounds.is_exact(run):
        kind = "exact"
    elif kind == "bounded":
        bound, _ = bounds.tracking_bound(run)
        joint = joint if judge.outcome == "passes" else int(np.argmax(errors / bound))
        limit = float(bound[joint])
    since = None if run.prediction is None else run.prediction.rounding.undetermined_from
    if judge.outcome == "undetermined" or (since is not None and kind == "not_judged"):
        kind = "undetermined"
    value = float(errors[joint])
    return TrackingVerdict(
        kind, judge.outcome, error.span or (value, value),
        joint_unit(log.robot.joint_kinds[joint]), log.robot.joint_names[joint],
        limit, since,
        "" if limit is not None else _reason(setup, run, named),
        _feedback(named) if kind == "exact" else "",
    )  # fmt: skip


def _feedback(named: Mapping[str, Metric]) -> str:
    """Return what the feedback does with an initial error, as the end of a sentence."""
    if DECAY not in named:
        return ""
    judges, time = named.get(RADIUS, named[DECAY]), named[DECAY].value
    if time is None or not judges.passes:
        return "; UNSTABLE: an error of 1 mrad does not decay"
    if time < np.inf:
        return f"; 1 mrad decays to a tenth in {time:.2f} s"
    return "; feedback not judged" if judges.outcome == "not judged" else "; 1 mrad decays slowly"


def _reason(setup: Setup, run: TrackingRun, named: Mapping[str, Metric]) -> str:
    """Return why no limit of the tracking error is known: the first reason that applies."""
    if ERROR not in named:
        return NO_CHECK
    if RATIO in named:
        return named[RATIO].why
    log = run.log
    exact = setup.known_law if run.loop is None else run.loop.known_law
    whys = {
        "for this controller": not setup.builtin_law,
        "under a wrench on the tool": log.surroundings is not None,
        "with sensors": setup.sensors is not None,
        "with elastic drives": log.drives == "elastic",
        "for gains set by hand": bool(setup.law_settings),
        "where the controller's model is not the plant": not exact or log.model_drives != log.drives,
        "for this controller in this scenario": True,
    }
    return f"no bound known {next(why for why, applies in whys.items() if applies)}"


def limited(
    metrics: tuple[Metric, ...],
    log: Log,
    limits: tuple[tuple[str, float], ...],
    of_scenario: Mapping[str, float],
) -> tuple[Metric, ...]:
    """Return the checks of a run with the limits of `--limit` and of its scenario.

    A limit applies to the check of its figure; a figure without a check gets a new one. The strictest limit
    remains.

    Args:
        metrics: figures and checks of the run.
        log: log of the run.
        limits: names of `twin.sweeps.trial.FIGURES` and their largest allowed values.
        of_scenario: those of the scenario.
    """
    if not limits and not of_scenario:
        return metrics
    from twin.studies.sweeps.evaluation import figures_of_log
    from twin.studies.sweeps.running import UNITS

    row, found = figures_of_log(log), {metric.name: metric for metric in metrics}
    given = [("limit", name, limit, "limit of the scenario") for name, limit in of_scenario.items()]
    given += [("--limit", name, limit, "the limit that --limit sets") for name, limit in limits]
    for origin, figure_name, limit, why in given:
        name = FIGURES.get(figure_name, f"{origin} {figure_name}")
        new = Metric(name, float(row[figure_name]), UNITS.get(figure_name, ""), None, "")
        metric = found.get(name, new)
        if metric.limit is None or limit < metric.limit:
            found[name] = replace(metric, limit=limit, why=why)
    return tuple(found.values())

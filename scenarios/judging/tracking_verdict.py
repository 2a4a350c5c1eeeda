"""Verdict on the tracking error of a run: its limit and outcome, or why it was not judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from scenarios.judging import bounds
from scenarios.judging.feedback import DECAY, RADIUS
from scenarios.metric import Metric, Outcome
from scenarios.setup import Setup
from twin.base.formatting import figure
from twin.data.logs.figures import joint_error, largest
from twin.physics.robot.units import joint_unit

if TYPE_CHECKING:
    from scenarios.judging.run import TrackingRun
    from twin.data.logs.log import Log

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

"""How the tracking error of a run was judged: by what, with what outcome, or why by nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from scenarios.base import Config
from scenarios.checks import bounds
from scenarios.metric import Metric, Outcome
from twin.formatting import figure
from twin.logs.figures import joint_error, largest
from twin.robot.limits import joint_unit

if TYPE_CHECKING:
    from twin.logs.log import Log

ERROR, RATIO = "largest joint error", "joint error / its bound"
"""Names of the checks that judge it."""
FIGURES = {"joint_error": ERROR, "tool_error": "largest tool error"}
"""Figures of `--limit` that are checks of most scenarios, and these checks' names."""


@dataclass(frozen=True)
class TrackingVerdict:
    """How the largest tracking error of a run was judged.

    Attributes:
        verdict: `exact` where only rounding is left, `bounded` by theory, `limited` by somebody's limit;
            `not_judged` where nothing is known; `undetermined` where rounding decides.
        outcome: of the check.
        range: the least and the largest error of runs that differ by rounding alone, in `unit`; twice the
            same where rounding decides nothing.
        unit: `rad`, or `m` of a sliding joint.
        joint: whose error it is.
        limit: what it may be, in `unit`; None where it is not judged.
        from_s: the time from which rounding decides the path, in [s]; None where it does not.
        reason: why no limit is known; empty where one is.
    """

    verdict: Literal["exact", "bounded", "limited", "not_judged", "undetermined"]
    outcome: Outcome
    range: tuple[float, float]
    unit: str
    joint: str
    limit: float | None
    from_s: float | None
    reason: str

    @property
    def sentence(self) -> str:
        """The verdict in words, as `largest error 0.262 rad, within its estimated bound of 0.863 rad`."""
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
        kept = self.outcome == "passes"
        if self.verdict == "exact":
            return f"{'' if kept else 'NOT '}exact, {error} (limit {figure(self.limit or 0.0)})"
        what = "its estimated bound" if self.verdict == "bounded" else "the limit"
        return f"{error}, {'within' if kept else 'BEYOND'} {what} of {limit}"


ADVICE = "--limit joint_error=... judges it"
NO_CHECK = "no check of this scenario is about it"


def tracking_verdict(config: Config, log: Log, metrics: tuple[Metric, ...]) -> TrackingVerdict | None:
    """The verdict on the tracking error of a run; None where neither its checks nor its log are about one.

    Args:
        config: the run's settings.
        log: the run.
        metrics: all its checks.
    """
    named = {metric.name: metric for metric in metrics}
    if ERROR not in named and "known_law" not in log.arrays:
        return None
    errors = largest(joint_error(log))
    joint = int(np.argmax(errors))
    error = named.get(ERROR, Metric(ERROR, float(errors[joint]), "rad", None, ""))
    by_theory = named.get(RATIO, error)
    judge, limit = (error, error.limit) if error.limit is not None else (by_theory, None)
    kind = "limited" if judge is error else "bounded"
    if judge.outcome == "not judged":
        kind = "not_judged"
    elif judge is error and "known_law" in log.arrays and bounds.is_exact(log):
        kind = "exact"
    elif kind == "bounded":
        bound, _ = bounds.tracking_bound(log)
        joint = joint if judge.outcome == "passes" else int(np.argmax(errors / bound))
        limit = float(bound[joint])
    since = log.arrays.get("undetermined_from")
    if judge.outcome == "undetermined" or (since is not None and kind == "not_judged"):
        kind = "undetermined"
    value = float(errors[joint])
    return TrackingVerdict(
        kind, judge.outcome, error.span or (value, value),
        joint_unit(log.robot.joint_kinds[joint]), log.robot.joint_names[joint],
        limit, None if since is None else float(since),
        "" if limit is not None else _reason(config, log) if ERROR in named else NO_CHECK,
    )  # fmt: skip


def _reason(config: Config, log: Log) -> str:
    """Why no limit of the tracking error is known: the first of these that is so."""
    other = not config.known_law or log.arrays.get("model_drives", log.drives) != log.drives
    whys = {
        "for this controller": not config.builtin_law,
        "with sensors": config.sensors is not None,
        "with elastic drives": log.drives == "elastic",
        "for gains that were set": bool(config.law_settings),
        "where the controller's model is not the plant": other,
        "for this law in this scenario": True,
    }
    return f"no bound known {next(why for why, so in whys.items() if so)}"


def limited(
    metrics: tuple[Metric, ...], log: Log, limits: tuple[tuple[str, float], ...]
) -> tuple[Metric, ...]:
    """The checks of a run with those that `--limit` asks for: a figure that is there gets the limit, too.

    Args:
        metrics: the run's checks.
        log: the run.
        limits: names of `twin.sweeps.trial.FIGURES`, and the largest values allowed.
    """
    if not limits:
        return metrics
    from twin.sweeps.evaluation import figures_of_log
    from twin.sweeps.table_files import UNITS

    row, found = figures_of_log(log), {metric.name: metric for metric in metrics}
    for figure_name, limit in limits:
        name = FIGURES.get(figure_name, f"--limit {figure_name}")
        made = Metric(name, float(row[figure_name]), UNITS.get(figure_name, ""), None, "")
        metric = found.get(name, made)
        if metric.limit is None or limit < metric.limit:
            found[name] = replace(metric, limit=limit, why="the limit that --limit sets")
    return tuple(found.values())

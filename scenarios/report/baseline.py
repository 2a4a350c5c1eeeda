"""Compare results with those of an earlier run: what got worse, and what is missing."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.report.files import FORMAT
from scenarios.report.results import GROWN, Comparison
from scenarios.running.provenance import all_settings, provenance
from twin.base.errors import TwinError
from twin.base.formatting import figure

if TYPE_CHECKING:
    from scenarios.running.runs import Run

ROUNDING_RATIO = "engine - model, every state / its limit"
"""Check whose figure is a share of rounding, which has no meaning below its limit."""
ROUNDING = 1e-9
"""Values up to this, in SI units, are rounding errors, which differ between machines."""


class BaselineError(TwinError):
    """Raised for a file with which results cannot be compared."""


@dataclass(frozen=True)
class Baseline:
    """Results in a file of ``irb-twin validate --json``."""

    path: Path
    runs: Mapping[str, Mapping[str, Any]]
    provenance: Mapping[str, str]
    selection: Mapping[str, Any] | None


def read_baseline(path: Path) -> Baseline:
    """Read a file of `write_json`.

    Raises:
        BaselineError: the file is missing, invalid, or has another format.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BaselineError(f"cannot read the baseline {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise BaselineError(f"the baseline {path} is not valid JSON ({error})") from error
    if not isinstance(document, dict) or "runs" not in document:
        raise BaselineError(f"the baseline {path} is not a file of irb-twin validate --json: it has no runs")
    if document.get("format") != FORMAT:
        raise BaselineError(
            f"the baseline {path} was written by another version of irb-twin: its format is "
            f"{document.get('format', 'not named')}, expected {FORMAT}; write it again with this version"
        )
    try:
        runs = {str(run["name"]): _checked(run) for run in document["runs"]}
        made_with = {str(name): str(value) for name, value in dict(document["provenance"]).items()}
        return Baseline(path, runs, made_with, document.get("selection"))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BaselineError(f"the baseline {path} is damaged: {type(error).__name__} {error}") from error


def _checked(run: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a run of the file, after checking the entries that are compared."""
    for name in ("config", "passes", "metrics"):
        run[name]
    for metric in run["metrics"]:
        for name in ("value", "limit"):
            if not isinstance(metric[name], (int, float, type(None))):
                raise TypeError(f"{name} of {metric['name']} is {metric[name]!r}")
        bool(metric["passes"])
    return run


def compare(
    runs: Sequence[Run], baseline: Baseline, selection: Mapping[str, Any], factor: float = GROWN
) -> Comparison:
    """Compare results with earlier results.

    Args:
        runs: the runs.
        baseline: the earlier results.
        selection: the selection on the command line. If the baseline's selection differs, missing runs are
            not reported.
        factor: ratio to the baseline above which a value has grown.

    Raises:
        BaselineError: the results have no run in common.
    """
    found = Comparison(compared=sum(run.name in baseline.runs for run in runs), factor=factor)
    if not found.compared:
        raise BaselineError(
            f"the baseline {baseline.path} has none of these {len(runs)} runs: it was made with different "
            "scenarios, robots, controllers or settings"
        )
    _note_versions(baseline, found)
    for run in runs:
        if run.name in baseline.runs:
            _compare_run(run, baseline.runs[run.name], found)
    if baseline.selection == selection:
        names = {run.name for run in runs}
        found.missing.extend(f"{name}: this run is missing" for name in baseline.runs if name not in names)
    else:
        found.notes.append(
            f"the baseline was made with a different command line: only the {found.compared} runs in both "
            "are compared, and missing runs are not reported"
        )
    return found


def _note_versions(baseline: Baseline, found: Comparison) -> None:
    """Note the versions that the baseline was made with, if they differ."""
    now = provenance()
    other = [
        f"{name} {baseline.provenance.get(name, 'unknown')} (here {now.get(name, 'unknown')})"
        for name in dict.fromkeys((*baseline.provenance, *now))
        if baseline.provenance.get(name) != now.get(name) and name != "commit"
    ]
    if other:
        found.notes.append(
            f"the baseline was made with {', '.join(other)}: values may differ for that reason"
        )


def _compare_run(run: Run, before: Mapping[str, Any], found: Comparison) -> None:
    """Add what got worse in one run to the comparison."""
    now = all_settings(run)
    others = [
        f"{name} {before['config'].get(name)} (here {now.get(name)})"
        for name in now
        if name in before["config"] and before["config"][name] != now[name]
    ]
    if others:
        found.notes.append(
            f"{run.name}: not compared, because its settings were different: {', '.join(others)}"
        )
        return
    if before["passes"] and run.error is not None:
        found.worse.append(f"{run.name}: it does not finish any more: {run.error}")
    earlier = {metric["name"]: metric for metric in before["metrics"]}
    for metric in run.metrics:
        old = earlier.pop(metric.name, None)
        if old is None or metric.span is not None or old.get("span") is not None:
            continue  # rounding decides its value
        if metric.value is None:
            if old["value"] is not None:
                found.missing.append(f"{run.name}: {metric.name}: this check is not judged any more")
            continue
        was = None if old["value"] is None else float(old["value"])
        old_text = "not a number" if was is None else figure(was)
        change = f"{old_text} -> {figure(metric.value)} {metric.unit}".strip()
        if old["passes"] and not metric.passes:
            found.worse.append(f"{run.name}: {metric.name} passed before and fails now: {change}")
        elif metric.name == ROUNDING_RATIO:
            continue
        elif was is not None and _has_grown(was, metric.value, found.factor):
            found.grown.append(f"{run.name}: {metric.name} grew: {change}")
    if run.error is None:  # a run that ended early has no checks
        found.missing.extend(f"{run.name}: {name}: this check is missing" for name in earlier)


def _has_grown(before: float, now: float, factor: float) -> bool:
    """Return whether a value exceeds its old value by the factor; rounding errors count as `ROUNDING`."""
    return math.isfinite(now) and now > factor * max(before, ROUNDING)

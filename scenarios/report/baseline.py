"""Results beside those of an earlier time: what got worse, and what is not there any more."""

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
from twin.errors import TwinError
from twin.formatting import figure

if TYPE_CHECKING:
    from scenarios.running.runs import Run

ROUNDING = 1e-9
"""A figure up to here, in SI units, is one of rounding, and differs from machine to machine."""


class BaselineError(TwinError):
    """A file that results cannot be compared with."""


@dataclass(frozen=True)
class Baseline:
    """The results in a file of ``irb-twin validate --json``."""

    path: Path
    runs: Mapping[str, Mapping[str, Any]]
    provenance: Mapping[str, str]
    selection: Mapping[str, Any] | None


def read_baseline(path: Path) -> Baseline:
    """Read a file that `write_json` wrote.

    Raises:
        BaselineError: it is not there, it is something else, or of a version that wrote it differently.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BaselineError(f"cannot read the baseline {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise BaselineError(f"the baseline {path} is no JSON ({error})") from error
    if not isinstance(document, dict) or "runs" not in document:
        raise BaselineError(f"the baseline {path} is no file of irb-twin validate --json: it has no runs")
    if document.get("format") != FORMAT:
        raise BaselineError(
            f"the baseline {path} is of another version of irb-twin: its format is "
            f"{document.get('format', 'not named')}, expected {FORMAT}; make it anew with this version"
        )
    try:
        runs = {str(run["name"]): _checked(run) for run in document["runs"]}
        made_with = {str(name): str(value) for name, value in dict(document["provenance"]).items()}
        return Baseline(path, runs, made_with, document.get("selection"))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BaselineError(f"the baseline {path} is damaged: {type(error).__name__} {error}") from error


def _checked(run: Mapping[str, Any]) -> Mapping[str, Any]:
    """A run of the file, if it has the parts that are compared."""
    for name in ("config", "passes", "metrics"):
        run[name]
    for metric in run["metrics"]:
        for name in ("value", "limit"):
            if not isinstance(metric[name], (int, float, type(None))):
                raise TypeError(f"{name} of {metric['name']} is {metric[name]!r}")
        bool(metric["passes"])
    return run


def compare(
    runs: Sequence[Run],
    baseline: Baseline,
    selection: Mapping[str, Any],
    factor: float = GROWN,
) -> Comparison:
    """Compare results with earlier ones.

    Args:
        runs: what was run.
        baseline: the earlier results.
        selection: what the command was told to run; if the baseline's differs,
            runs are not missed.
        factor: how many times what it was a figure must be to have grown.

    Raises:
        BaselineError: they have no run in common.
    """
    found = Comparison(compared=sum(run.name in baseline.runs for run in runs), factor=factor)
    if not found.compared:
        raise BaselineError(
            f"the baseline {baseline.path} has none of these {len(runs)} runs: it was made with other "
            "scenarios, robots, controllers or settings"
        )
    _note_versions(baseline, found)
    for run in runs:
        if run.name in baseline.runs:
            _compare_run(run, baseline.runs[run.name], found)
    if baseline.selection == selection:
        names = {run.name for run in runs}
        found.missing.extend(
            f"{name}: this run is not there any more" for name in baseline.runs if name not in names
        )
    else:
        found.notes.append(
            f"the baseline was made with other words: only the {found.compared} results that both have are "
            "compared, and runs that are missing are not named"
        )
    return found


def _note_versions(baseline: Baseline, found: Comparison) -> None:
    """Say what it was made with, where that is something else."""
    now = provenance()
    other = [
        f"{name} {baseline.provenance.get(name, 'unknown')} (here {now.get(name, 'unknown')})"
        for name in dict.fromkeys((*baseline.provenance, *now))
        if baseline.provenance.get(name) != now.get(name) and name != "commit"
    ]
    if other:
        found.notes.append(
            f"the baseline was made with {', '.join(other)}: figures may differ for that reason"
        )


def _compare_run(run: Run, before: Mapping[str, Any], found: Comparison) -> None:
    """Add what got worse in one run."""
    now = all_settings(run)
    others = [
        f"{name} {before['config'].get(name)} (here {now.get(name)})"
        for name in now
        if name in before["config"] and before["config"][name] != now[name]
    ]
    if others:
        found.notes.append(f"{run.name}: not compared, its settings were others: {', '.join(others)}")
        return
    if before["passes"] and run.error is not None:
        found.worse.append(f"{run.name}: it finished, and does not any more: {run.error}")
    earlier = {metric["name"]: metric for metric in before["metrics"]}
    for metric in run.metrics:
        old = earlier.pop(metric.name, None)
        if old is None or metric.span is not None or old.get("span") is not None:
            continue  # rounding decides what it is
        was = None if old["value"] is None else float(old["value"])
        told = "not a number" if was is None else figure(was)
        change = f"{told} -> {figure(metric.value)} {metric.unit}".strip()
        if old["passes"] and not metric.passes:
            found.worse.append(f"{run.name}: {metric.name} held and does not any more: {change}")
        elif was is not None and _has_grown(was, metric.value, found.factor):
            found.grown.append(f"{run.name}: {metric.name} grew: {change}")
    if run.error is None:  # else there are none
        found.missing.extend(f"{run.name}: {name} is not checked any more" for name in earlier)


def _has_grown(before: float, now: float, factor: float) -> bool:
    """Whether a figure is more than the factor allows; what may be rounding counts as the most of it."""
    return math.isfinite(now) and now > factor * max(before, ROUNDING)

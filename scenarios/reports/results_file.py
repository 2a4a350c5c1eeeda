"""Results for programs: JSON with every figure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.running.provenance import all_settings, provenance
from scenarios.running.registry import repeat_command
from twin.logs.figures import POSE_COMPONENTS

if TYPE_CHECKING:
    from scenarios.running.runs import Run

FORMAT = 1
"""Of the document; it changes when what was there means something else, not when something is added."""


def write_json(
    runs: Sequence[Run],
    path: Path,
    selection: Mapping[str, Any] | None = None,
) -> None:
    """Write settings, errors, torques and checks of every run.

    A number that is not finite is written as null: JSON has no word for it.  Times are left out, so that two
    results of the same code are the same file.

    Args:
        runs: what was run.
        path: where to.
        selection: what the command was told to run, by which a later one knows whether runs are missing.
    """
    holds = all(run.holds for run in runs)
    document: dict[str, Any] = {"format": FORMAT, "holds": holds, "provenance": provenance()}
    if selection is not None:
        document["selection"] = dict(selection)
    document["runs"] = [_as_json(run) for run in runs]
    text = json.dumps(document, indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _numbers(values: Any) -> list[float | None]:
    return [_number(value) for value in values]


def _as_json(run: Run) -> dict[str, Any]:
    result: dict[str, Any] = {
        "name": run.name,
        "scenario": run.scenario,
        "config": all_settings(run),
        "repeat": repeat_command(run),
        "holds": run.holds,
        "outcome": run.outcome,
        "error": run.error,
        "metrics": [
            {
                "name": metric.name,
                "value": _number(metric.value),
                "unit": metric.unit,
                "limit": None if metric.limit is None else _number(metric.limit),
                "holds": metric.holds,
                "outcome": metric.outcome,
                "span": metric.span and _numbers(metric.span),
                "why": metric.why,
                "where": metric.where,
            }
            for metric in run.metrics
        ],
    }
    if (tracking := run.tracking) is not None:
        limit = None if tracking.limit is None else _number(tracking.limit)
        result["tracking"] = asdict(tracking) | {"range": _numbers(tracking.range), "limit": limit}
    if run.table is not None:
        result["table"] = {"caption": run.table[0], "rows": [list(row) for row in run.table[1]]}
    if (figures := run.figures) is not None:
        result["drives"], result["model_drives"] = run.drives
        result["joints"] = {
            "names": list(figures.joint_names),
            "rms_error_rad": _numbers(figures.joint_rms),
            "max_error_rad": _numbers(figures.joint_largest),
            "peak_torque_N_m": _numbers(figures.peak_torque),
            "torque_limit_N_m": _numbers(figures.torque_limit),
            "saturated_samples": [int(count) for count in figures.saturated_samples],
        }
        result["tool"] = {
            "components": list(POSE_COMPONENTS),
            "rms_error": _numbers(figures.pose_rms),
            "max_error": _numbers(figures.pose_largest),
        }
    return result

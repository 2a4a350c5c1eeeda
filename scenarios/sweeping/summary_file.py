"""The summary of a sweep for programs: JSON with every figure that is printed."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scenarios.running.provenance import provenance
from scenarios.sweeping.findings import Findings
from scenarios.sweeping.plan import Plan
from scenarios.sweeping.worst_cases import WorstCase
from twin.sweeps.trial import OUTCOME, TROUBLES

FORMAT = 1
"""Of the document; it changes when what was there means something else, not when something is added."""


def write_summary(
    path: Path, plan: Plan, laws: Sequence[Findings], worst: Sequence[Sequence[WorstCase]]
) -> None:
    """Write what was run, and of each law what `scenarios.sweeping.summary` prints.

    A number that is not finite is written as null: JSON has no word for it.

    Args:
        path: where to.
        plan: the sweep.
        laws: what was found of each law.
        worst: the worst cases of each.
    """
    document = {
        "format": FORMAT,
        "provenance": provenance(),
        "scenario": plan.scenario.name,
        "varied": [{"name": one.name, "text": one.text} for one in plan.variations],
        "draws": plan.design.draws,
        "design": plan.design.kind,
        "seed": plan.design.seed,
        "limits": dict(plan.limits),
        "laws": [law_document(found, cases) for found, cases in zip(laws, worst, strict=True)],
    }
    path.write_text(json.dumps(plain(document), indent=1, allow_nan=False) + "\n", encoding="utf-8")


def law_document(found: Findings, worst: Sequence[WorstCase]) -> dict[str, Any]:
    """What was found of one law."""
    swept = found.swept
    return {
        "controller": swept.config.controller,
        "label": swept.label,
        "runs": len(swept.table),
        "nominal": _outcome(swept.nominal),
        "share_that_holds": found.share._asdict(),
        "failed": dict(found.failed),
        "figures": [spread._asdict() for spread in found.spreads],
        "importance": {"of": swept.figure, "inputs": [row._asdict() for row in found.importance]},
        "share_on_grid": [at._asdict() for at in found.on_grid],
        "worst": [_case(case, swept.names) for case in worst],
    }


def _case(case: WorstCase, names: Sequence[str]) -> dict[str, Any]:
    return {
        "sample": case.sample,
        "inputs": {name: case.row[name] for name in names},
        "outcome": _outcome(case.row),
        "repeat": case.command,
        "engine": {
            "error": case.run.error,
            "joint_error": case.engine_error,
            "apart": case.apart,
            "limit": case.limit,
            "agrees": case.agrees,
        },
    }


def _outcome(row: np.void) -> dict[str, Any]:
    return {name: row[name] for name in OUTCOME.names or ()} | {"trouble": TROUBLES[int(row["trouble"])]}


def plain(value: Any) -> Any:
    """The same as JSON can have it."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value

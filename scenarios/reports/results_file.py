"""Results for machines: JSON with every figure, and JUnit XML for whatever shows test results."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.checks.tracking_error import POSE_COMPONENTS, joint_error, largest, pose_error, rms
from scenarios.running.options import fields

if TYPE_CHECKING:
    from scenarios.ledger.rows import Row
    from scenarios.running.runs import Run


def write_json(runs: Sequence[Run], path: Path, published: Sequence[Row] = ()) -> None:
    """Write settings, errors, torques and checks of every run, and the published items if there are any.

    A number that is not finite is written as null: JSON has no word for it.
    """
    holds = all(run.holds for run in runs) and all(row.holds for row in published)
    document: dict[str, Any] = {"holds": holds, "runs": [_as_json(run) for run in runs]}
    if published:
        from scenarios.reports.ledger_report import as_json

        document["published"] = [as_json(row) for row in published]
    text = json.dumps(document, indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _setting(value: object) -> object:
    return _number(value) if isinstance(value, float) else value


def _numbers(values: Any) -> list[float | None]:
    return [_number(value) for value in values]


def _as_json(run: Run) -> dict[str, Any]:
    result: dict[str, Any] = {
        "scenario": run.scenario,
        "config": {name: _setting(getattr(run.config, name)) for name in fields(type(run.config))},
        "holds": run.holds,
        "error": run.error,
        "metrics": [
            {
                "name": metric.name,
                "value": _number(metric.value),
                "unit": metric.unit,
                "limit": _setting(metric.limit),
                "holds": metric.holds,
                "why": metric.why,
                "where": metric.where,
            }
            for metric in run.metrics
        ],
    }
    if run.table is not None:
        result["table"] = {"caption": run.table[0], "rows": [list(row) for row in run.table[1]]}
    if run.log is not None:
        result["drives"], result["model_drives"] = run.drives
        joints, pose = joint_error(run.log), pose_error(run.log)
        result["joints"] = {
            "names": list(run.log.robot.joint_names),
            "rms_error_rad": _numbers(rms(joints)),
            "max_error_rad": _numbers(largest(joints)),
            "peak_torque_N_m": _numbers(largest(run.log.tau)),
            "torque_limit_N_m": _numbers(run.log.robot.drive_torque_max),
            "saturated_samples": [int(count) for count in run.log.saturated.sum(axis=0)],
        }
        result["tool"] = {
            "components": list(POSE_COMPONENTS),
            "rms_error": _numbers(rms(pose)),
            "max_error": _numbers(largest(pose)),
        }
    return result


def write_junit(runs: Sequence[Run], path: Path, published: Sequence[Row] = ()) -> None:
    """Write a test suite a robot and scenario, a test case a check; one that does not hold is a failure.

    The published items, if there are any, are a suite of their own.
    """
    from junitparser import Failure, JUnitXml, TestCase, TestSuite

    document = JUnitXml("irb-twin validate")
    suites: dict[str, list[Run]] = {}
    for run in runs:
        suites.setdefault(f"{run.config.robot}.{run.scenario}", []).append(run)
    for name, members in suites.items():
        suite = TestSuite(_text(name))
        for run in members:
            own = ((key, value) for key, value in run.settings.items() if key != "robot")
            settings = "".join(f", {key}={value}" for key, value in own)
            where = f"{name}.{run.config.controller}{settings}"
            # A figure without a limit is a report, not a check, as long as it is a number.
            checks = [metric for metric in run.metrics if metric.limit is not None or not metric.holds]
            share = run.seconds / max(len(checks), 1)
            for metric in checks:
                case = TestCase(_text(metric.name), _text(where), share)
                if not metric.holds:
                    wanted = "a number" if metric.limit is None else f"at most {metric.limit:g} {metric.unit}"
                    found = f"{metric.value:g} {metric.unit}, wanted {wanted}: {metric.why}"
                    if metric.where:
                        found += f" ({metric.where})"
                    case.result = [Failure(_text(found))]
                suite.add_testcase(case)
            if run.error is not None:
                case = TestCase("finishes", _text(where), run.seconds)
                case.result = [Failure(_text(run.error))]
                suite.add_testcase(case)
        document.add_testsuite(suite)
    if published:
        from scenarios.reports.ledger_report import fault

        suite = TestSuite("published")
        for row in published:
            case = TestCase(row.item.id, f"published.{row.item.source}", row.seconds)
            if not row.holds:
                case.result = [Failure(fault(row))]
            suite.add_testcase(case)
        document.add_testsuite(suite)
    document.update_statistics()
    document.write(str(path), pretty=True)


def _text(text: str) -> str:
    """A text as XML can have it: most control characters have no place there."""
    return re.sub("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)

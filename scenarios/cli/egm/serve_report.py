"""What came of robots on the wire: the table at the end, and the same for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scenarios.cli.egm.serving import settings_of

if TYPE_CHECKING:
    from rich.table import Table

    from scenarios.cli.egm.serving import Job, Served

FORMAT = 1
"""Of the file for programs."""


def table(jobs: Sequence[Job], results: Sequence[Served]) -> Table:
    """A column a robot: messages, lateness, how runs ended, torques."""
    from scenarios.reports.report import own_table

    columns = [rows(job, served) for job, served in zip(jobs, results, strict=True)]
    names = list(dict.fromkeys(name for column in columns for name in column))
    head = ["", *(job.label for job in jobs)]
    return own_table([head, *([name, *(column.get(name, "") for column in columns)] for name in names)])


def rows(job: Job, served: Served) -> dict[str, str]:
    """The figures of one robot, in words."""
    if not served.sent or served.counts is None or served.lateness is None:
        return {"messages sent": str(served.sent)}
    counts, late = served.counts, served.lateness
    lost = {
        "repeated": counts.again, "overtaken": counts.old, "skipped": counts.skipped,
        "dropped": counts.dropped,
        "unreadable": counts.broken, "of strangers": served.strangers,
    }  # fmt: skip
    found = {
        "messages sent": f"{served.sent}" + f", {served.unsent} not" * bool(served.unsent),
        "answers taken": f"{counts.taken}" + f", {counts.unused} more in pauses" * bool(counts.unused),
        "answers lost": ", ".join(f"{count} {why}" for why, count in lost.items() if count) or "none",
    }
    if job.limit is not None:
        found["time"] = "virtual"
    else:
        found["sent late by more than 1 ms"] = f"{late.late} of {late.cycles} ({late.share:.2%})"
        found["lateness: median, 99 %, worst"] = ", ".join(
            f"{1e3 * seconds:.2f}" for seconds in (late.median, late.percentile_99, late.worst)
        )
        found["lateness: median, 99 %, worst"] += " ms"
        if late.restarts:
            found["clock set anew"] = str(late.restarts)
    found["runs that ended well"] = f"{served.well} of {served.runs}"
    for fault, number in _counted(served):
        found[f"fault {fault}"] = str(number)
    if served.tau_peak is not None and served.tau_max is not None:
        for name, tau, most in zip(served.joints, served.tau_peak, served.tau_max, strict=True):
            share = f" ({tau / most:.0%})" if np.isfinite(most) and most > 0 else ""
            found[f"{name}, largest torque of the last 2 min"] = f"{tau:.3g} N m{share}"
    return found


def _counted(served: Served) -> list[tuple[str, int]]:
    """Every kind of fault, and how often it was."""
    names = [f"{fault.number} {fault.name}" if fault.number else fault.name for fault in served.faults]
    return [(name, names.count(name)) for name in dict.fromkeys(names)]


def write_json(jobs: Sequence[Job], results: Sequence[Served], path: Path) -> None:
    """Write settings, events and figures of every robot."""
    from scenarios.running.provenance import provenance

    robots = [_as_json(job, served) for job, served in zip(jobs, results, strict=True)]
    document = {"format": FORMAT, "provenance": provenance(), "robots": robots}
    path.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _as_json(job: Job, served: Served) -> dict[str, Any]:
    return {
        "label": job.label,
        "settings": settings_of(job),
        "error": served.error,
        "events": [event._asdict() for event in served.events],
        "faults": [fault._asdict() for fault in served.faults],
        "runs": served.runs,
        "well": served.well,
        "sent": served.sent,
        "unsent": served.unsent,
        "counts": vars(served.counts) if served.counts is not None else None,
        "strangers": served.strangers,
        "lateness": vars(served.lateness) if served.lateness is not None else None,
        "tau_peak": None if served.tau_peak is None else served.tau_peak.tolist(),
        "joints": list(served.joints),
    }

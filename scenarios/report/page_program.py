"""Program of a run on the page: its text beside the replay, and the lines over time in the curves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from twin.data.logs.log import Log

MOST_MARKS = 12
"""Largest number of line numbers above a column of curves."""


class Listing(NamedTuple):
    """Text of a program for the page.

    Attributes:
        lines: file's index, number and text of each line; number 0 is the name of a file.
        marks: time in [s], file's index and number of each line when it begins.
    """

    lines: list[tuple[int, int, str]]
    marks: list[tuple[float, int, int]]


def listing(log: Log) -> Listing | None:
    """Return the text of the program of a log, and when its lines begin; `None` without a program."""
    if log.program is None:
        return None
    lines: list[tuple[int, int, str]] = []
    for file, (name, text) in enumerate(zip(log.program.files, log.program.texts, strict=True)):
        lines.append((file, 0, str(name)))
        lines += [(file, number, line) for number, line in enumerate(str(text).splitlines(), start=1)]
    return Listing(lines, line_starts(log))


def line_starts(log: Log) -> list[tuple[float, int, int]]:
    """Return time, file's index and number of each line when it begins."""
    if log.program is None:
        return []
    line, file = log.program.line, log.program.file
    begins = np.flatnonzero(np.any(np.diff(np.stack([line, file]), prepend=-1), axis=0) & (line > 0))
    return [(float(log.t[k]), int(file[k]), int(line[k])) for k in begins]


def line_numbers(log: Log, number: str) -> list[dict[str, Any]]:
    """Return annotations of plotly.js with line numbers at the top of a panel, as many as there is room for.

    Args:
        log: log of the run.
        number: number of the panel's axes, "" for the first.
    """
    starts = line_starts(log)
    room = (log.t[-1] - log.t[0]) / MOST_MARKS
    found: list[dict[str, Any]] = []
    for t, _, line in starts:
        if not found or t - found[-1]["x"] >= room:
            found.append({
                "text": str(line), "x": t, "y": 1.0, "xref": f"x{number}", "yref": f"y{number} domain",
                "xanchor": "left", "yanchor": "top", "showarrow": False,
                "font": {"size": 9.5, "color": "#777"},
            })  # fmt: skip
    return found

"""Lines of the program that led a run.

The log of a program has these arrays.  `line` (N,) is the line that each sample executes, `file` (N,) the
index of its file in `files` (F,), and `texts` (F,) are the contents of the files.  `move` (N,) is the index
of the last move that began, -1 before the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def line_at(arrays: Mapping[str, Any], sample: int) -> str:
    """Return the line of a sample, as `pick.mod line 12`; "" without a program, or before its first line.

    Args:
        arrays: arrays of the log.
        sample: index of the sample.
    """
    if "line" not in arrays or not arrays["line"][sample]:
        return ""
    return f"{arrays['files'][arrays['file'][sample]]} line {arrays['line'][sample]}"


def line_text(arrays: Mapping[str, Any], sample: int) -> str:
    """Return the line of a sample with its text, as `pick.mod line 12: MoveL p1, v100, fine, tool0;`."""
    where = line_at(arrays, sample)
    if not where:
        return ""
    lines = str(arrays["texts"][arrays["file"][sample]]).splitlines()
    number = int(arrays["line"][sample])
    return f"{where}: {lines[number - 1].strip()}" if number <= len(lines) else where

"""The table of a comparison of logs, as text: a column a log, sections of rows."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from twin.logs.columns import unit_of
from twin.short_texts import figure, shortened

if TYPE_CHECKING:
    from twin.logs.figures import Figures
    from twin.logs.log import Log

NAME = 30  # characters of a log's name, and of a joint's
GAP = "   "


class Row(NamedTuple):
    """A row: what it is, and a cell a log; a heading has none."""

    head: str
    cells: Sequence[str] = ()


def table(logs: Mapping[str, Log], figures: Mapping[str, Figures], width: int | None = None) -> str:
    """The text of the table.

    Args:
        logs: by name, at least one.
        figures: of each of them, by the same names.
        width: characters of a line; logs that do not fit go below. `None` for all abreast.
    """
    common, rows = _told(logs)
    rows = [Row("", shortened(list(logs), NAME)), *rows, *_figure_rows(figures)]
    left = max(len(row.head) for row in rows if row.cells)
    right = max(len(cell) for row in rows for cell in row.cells)
    abreast = len(logs) if width is None else max(1, (width - left) // (right + len(GAP)))
    blocks = [_text(rows, left, slice(k, k + abreast)) for k in range(0, len(logs), abreast)]
    return "\n\n".join([*([wrapped(common, width)] if common else []), *blocks])


def wrapped(text: str, width: int | None) -> str:
    """A sentence in lines of at most so many characters."""
    return text if width is None else textwrap.fill(text, width, break_long_words=False)


def _text(rows: Sequence[Row], left: int, part: slice) -> str:
    """Some of the logs, each column as wide as it needs."""
    cells = [row.cells[part] for row in rows if row.cells]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rule = "-" * (left + sum(widths) + len(GAP) * len(widths))
    lines = []
    for row in rows:
        if row.cells:
            texts = [cell.rjust(room) for cell, room in zip(row.cells[part], widths, strict=True)]
            lines.append(GAP.join([row.head.ljust(left), *texts]).rstrip())
        else:
            lines += [rule, row.head]
    return "\n".join(lines)


def _told(logs: Mapping[str, Log]) -> tuple[str, list[Row]]:
    """What the runs were: in a line what they have in common, in rows what they have not."""
    facts: dict[str, Callable[[Log], str]] = {
        "robot": lambda log: log.robot.name,
        "controller": lambda log: log.controller,
        "drives": lambda log: log.drives,
        "payload": lambda log: (
            "none" if log.robot.payload is None else f"{figure(float(log.robot.payload.mass))} kg"
        ),
        "time": lambda log: f"{log.t[0]:.4g} to {log.t[-1]:.4g} s",
        "control period": lambda log: f"{1e3 * log.time_step * log.steps_per_period:g} ms",
    }
    told = {name: [fact(log) for log in logs.values()] for name, fact in facts.items()}
    common = ", ".join(f"{name} {texts[0]}" for name, texts in told.items() if len(set(texts)) == 1)
    differing = [Row(name, texts) for name, texts in told.items() if len(set(texts)) > 1]
    return common, [row for row in differing if tuple(row.cells) != tuple(logs)]


def _figure_rows(figures: Mapping[str, Figures]) -> list[Row]:
    """The figures, section by section."""
    of = list(figures.values())

    def error(rms: float, largest: float) -> str:
        return f"{figure(rms)} / {figure(largest)}"

    def joint_error(one: Figures, k: int) -> str:
        return error(one.joint_rms[k], one.joint_largest[k])

    return [
        Row("tracking error: root mean square / largest"),
        *_joint_rows(of, "error", joint_error),
        Row("tool, distance [m]", [error(one.tool_rms, one.tool_largest) for one in of]),
        Row("tool, angle [rad]", [error(one.turn_rms, one.turn_largest) for one in of]),
        Row("worst joint", [_worst(one) for one in of]),
        Row("tool furthest off", [f"at {one.tool_time:.4g} s" for one in of]),
        Row("peak torque (share of its limit)"),
        *_joint_rows(of, "tau", lambda one, k: _of_limit(one.peak_torque[k], one.torque_limit[k])),
        Row("peak speed (share of its limit)"),
        *_joint_rows(of, "qd", lambda one, k: _of_limit(one.peak_speed[k], one.speed_limit[k])),
        Row("samples whose torque was cut to its limit"),
        *(_joint_rows(of, "saturated", _cut) if any(one.saturated_samples.any() for one in of) else
          [Row("all joints", ["none" for _ in of])]),
    ]  # fmt: skip


def _joint_rows(of: Sequence[Figures], quantity: str, cell: Callable[[Figures, int], str]) -> list[Row]:
    """A row for each joint, by name and unit; empty cells for robots that do not have it."""
    places = [{(name, unit_of(kind, quantity)): k for k, (name, kind) in enumerate(one.joints)} for one in of]
    joints = list(dict.fromkeys(joint for place in places for joint in place))
    heads = shortened([name for name, _ in joints], NAME)
    return [
        Row(
            f"{head} [{joint[1]}]" if joint[1] else head,
            [
                cell(one, place[joint]) if joint in place else ""
                for one, place in zip(of, places, strict=True)
            ],
        )
        for head, joint in zip(heads, joints, strict=True)
    ]


def _worst(one: Figures) -> str:
    return f"{one.worst_joint} at {one.worst_time:.4g} s" if one.worst_joint else "unknown"


def _of_limit(peak: float, limit: float) -> str:
    """`12.5 (6.1 %)`: a peak, and what part of its limit that is, if it has one."""
    if not 0 < limit < np.inf:
        return f"{figure(peak)} ({'no limit' if limit > 0 else 'limit 0'})"
    return f"{figure(peak)} ({f'{100 * peak / limit:.1f} %)':>8}"


def _cut(one: Figures, k: int) -> str:
    count = int(one.saturated_samples[k])
    return f"{count} of {one.samples}, first at {one.first_saturated[k]:.4g} s" if count else "0"

"""Logs side by side: figures for programs, a table for people, and pictures of their curves."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from twin.formatting import figure, shorten
from twin.logs.columns import finite_part, first_fault, unit_of
from twin.logs.figures import Figures, figures_of
from twin.logs.log import Log
from twin.logs.views import curves


@dataclass(frozen=True, eq=False)
class Comparison:
    """Logs side by side; make it with `twin.compare`.

    Attributes:
        logs: by name, in order.
        figures: of each log, by name; of a run with numbers that are not finite, of its samples before them.
        notes: sentences on what cannot be compared, and why; empty where all can.
    """

    logs: Mapping[str, Log]
    figures: Mapping[str, Figures]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        return self.table()

    def table(self, width: int | None = None) -> str:
        """The table and the notes as text, a column a log.

        Args:
            width: characters of a line; logs that do not fit beside the others go below them. `None` for all
                abreast.
        """
        notes = [wrapped(f"note: {note}", width) for note in self.notes]
        return "\n".join([table(self.logs, self.figures, width), *notes])

    def picture(
        self, path: str | Path, what: str = "error", joints: Sequence[str] | None = None
    ) -> Comparison:
        """Draw the logs over time, overlaid, a panel a joint; whole or not at all.

        Args:
            path: of a PNG, PDF or SVG file.
            what: "error", "torque", "speed", "position" or "pose".
            joints: names of those to draw; `None` for all, and for the error also that of the tool.

        Returns:
            The comparison itself.

        Raises:
            ValueError: there is nothing of that name to draw, or no such kind of file.
            UnknownNameError: none of the robots has such a joint.
            OSError: the file cannot be written.
        """
        curves.draw(self.logs, path, what, joints)
        return self


def compare(
    logs: Log | str | Path | Iterable[Log | str | Path] | Mapping[str, Log | str | Path],
) -> Comparison:
    """Put logs side by side: `print(twin.compare(logs))`, `twin.compare(logs).picture("error.png")`.

    Robots, lengths and periods may differ: joints are matched by name, and every figure is of its own run.

    Args:
        logs: runs, or the files that `Log.save` or `irb-twin run --log` wrote; a mapping gives them names.
            Without one they are called after their controllers if these differ and none of them is a file
            of another's name, else after their files; equal names are numbered.

    Raises:
        ValueError: there is no log, or something else in its place.
        TwinError: a file is missing or no log, or its robot is not there any more.
    """
    if isinstance(logs, (Log, str, Path)):
        logs = [logs]
    given = list(logs.values()) if isinstance(logs, Mapping) else list(logs)
    if not given:
        raise ValueError("expected at least one log to compare, got none")
    read = [_log(one) for one in given]
    names = [str(name) for name in logs] if isinstance(logs, Mapping) else _names(given, read)
    named = MappingProxyType(dict(zip(names, read, strict=True)))
    figures = {name: figures_of(finite_part(log)) for name, log in named.items()}
    return Comparison(named, MappingProxyType(figures), differences(named))


def _log(given: object) -> Log:
    if isinstance(given, Log):
        return given
    if isinstance(given, (str, Path)):
        return Log.load(given)
    raise ValueError(f"expected a Log or the path of one, got {type(given).__name__}")


def _names(given: Sequence[object], logs: Sequence[Log]) -> list[str]:
    """The controllers' names if they differ, else those of the files; equal ones are numbered."""
    names = [log.controller for log in logs]
    if len(set(names)) < len(names):
        names = [Path(one).stem if isinstance(one, (str, Path)) else log.controller
                 for one, log in zip(given, logs, strict=True)]  # fmt: skip
    taken: list[str] = []
    for name in names:
        numbered = (name if number == 1 else f"{name} ({number})" for number in range(1, len(names) + 2))
        taken.append(next(one for one in numbered if one not in taken))
    return taken


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
    rows = [Row("", shorten(list(logs), NAME)), *rows, *_figure_rows(figures)]
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
    heads = shorten([name for name, _ in joints], NAME)
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


SAME_MOTION = 1e-3
"""[rad], [m]: references nearer than this are one motion, sampled at other times or in another way."""


def differences(logs: Mapping[str, Log]) -> tuple[str, ...]:
    """Sentences on what cannot be compared of logs, by name, and why; none where all can."""
    return (*_faults(logs), *_joints(logs), *_lengths(logs), *_motions(logs))


def _faults(logs: Mapping[str, Log]) -> Iterator[str]:
    for name, log in logs.items():
        fault = first_fault(log)
        if fault is not None:
            yield (
                f"{name} has numbers that are not finite from {fault:.6g} s on: its figures are of the "
                "samples before, and only what is finite is drawn"
            )


def _joints(logs: Mapping[str, Log]) -> Iterator[str]:
    if len({tuple(log.robot.joint_names) for log in logs.values()}) > 1:
        who = _who(logs, lambda log: f"{log.robot.name} with {log.robot.n} joints")
        yield f"the robots have different joints ({who}): those of the same name stand side by side"
    elif len({log.robot.name for log in logs.values()}) > 1:
        who = _who(logs, lambda log: log.robot.name)
        yield f"the robots differ ({who}): joints stand side by side by name, and limits are each robot's own"


def _lengths(logs: Mapping[str, Log]) -> Iterator[str]:
    if len({(f"{log.t[0]:.6g}", f"{log.t[-1]:.6g}") for log in logs.values()}) > 1:
        who = _who(logs, lambda log: f"{log.t[0]:.4g} to {log.t[-1]:.4g} s")
        yield f"the runs cover different times ({who}): every figure is of its own run"
    if len({f"{_period(log):.6g}" for log in logs.values()}) > 1:
        who = _who(logs, lambda log: f"{1e3 * _period(log):g} ms")
        yield f"the control periods differ ({who}): counts of samples cannot be compared"


def _period(log: Log) -> float:
    return log.time_step * log.steps_per_period


def _motions(logs: Mapping[str, Log]) -> Iterator[str]:
    """Where the arms were not asked for the same; of the first two logs with the same joints that differ."""
    for (name, log), (other_name, other) in combinations(logs.items(), 2):
        if log.robot.joint_names != other.robot.joint_names:
            continue
        shared = (log.t >= other.t[0]) & (log.t <= other.t[-1])
        if not shared.any():
            yield f"{name} and {other_name} have no time in common"
            return
        wanted = np.column_stack([np.interp(log.t[shared], other.t, q) for q in other.q_ref.T])
        apart = np.abs(wanted - log.q_ref[shared])
        if not np.max(apart) <= SAME_MOTION:
            k, joint = np.unravel_index(int(np.argmax(apart)), apart.shape)
            where = f"{log.robot.joint_names[joint]} at {log.t[shared][k]:.4g} s"
            yield (
                f"{name} and {other_name} were asked for different motions ({figure(float(apart[k, joint]))} "
                f"apart in {where}): every error is of its own motion"
            )
            return


def _who(logs: Mapping[str, Log], what: Callable[[Log], str]) -> str:
    """`irb140: pd, pid; irb1400: pd (2)`: the logs by what they have."""
    having: dict[str, list[str]] = {}
    for name, log in logs.items():
        having.setdefault(what(log), []).append(name)
    return "; ".join(f"{thing}: {', '.join(names)}" for thing, names in having.items())

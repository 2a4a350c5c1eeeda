"""Comparison of logs: key figures for programs, a table for people, and pictures of their curves."""

from __future__ import annotations

import textwrap
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from twin.base.formatting import figure, html_table, shorten
from twin.data.logs.columns import finite_part, first_non_finite, unit_of
from twin.data.logs.figures import Figures, figures_of, joint_error, unit_of_largest
from twin.data.logs.log import Log
from twin.studies.views import curves

if TYPE_CHECKING:
    from twin.studies.views.browser import Replay
    from twin.studies.views.plots import Plot


@dataclass(frozen=True, eq=False)
class Comparison:
    """Comparison of logs; `twin.compare` creates it.

    Attributes:
        logs: logs by name, in order.
        figures: key figures of each log by name; of a run that diverged, those of its finite samples.
        notes: sentences on what cannot be compared, and why; empty if everything can.
    """

    logs: Mapping[str, Log]
    figures: Mapping[str, Figures]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(map(repr, self.logs.values()))}>"

    def _repr_html_(self) -> str:
        """Return a line per log, and the plot of the errors."""
        rows = [("controller", "robot", "drives", "payload", "time", "worst joint", "largest error")]
        for name, log in self.logs.items():
            one, load = self.figures[name], log.robot.payload
            worst = _worst(one)
            size = unit_of_largest(log, joint_error(log))
            rows.append((
                name, log.robot.name, log.drives, "none" if load is None else f"{load.mass:.4g} kg",
                f"{log.t[0]:.4g} to {log.t[-1]:.4g} s", worst,
                f"{figure(float(np.max(one.joint_largest)))} {size}",
            ))  # fmt: skip
        picture = b64encode(self.plot().png(dpi=60)).decode()
        image = f'<img alt="tracking errors over time" src="data:image/png;base64,{picture}">'
        return html_table("Tracking errors", rows) + image

    def plot(self, what: str = "error", joints: Sequence[str] | None = None) -> Plot:
        """Return a figure of the logs over time, overlaid, one panel per joint; a notebook shows it.

        Args:
            what: "error", "torque", "speed", "position", "pose", "force", "moment", "wrench", or the name of
                a signal of a controller, as "disturbance".
            joints: names of the joints to draw; `None` for all, and for the error also that of the tool.

        Raises:
            ValueError: an unknown quantity.
            UnknownNameError: none of the robots has such a joint.
        """
        return curves.plotted(self.logs, what, joints)

    def replay(self) -> Replay:
        """Return a three-dimensional replay with a time slider; a notebook shows and stores it.

        Raises:
            TwinError: no sample has a finite position, or a shape of a robot cannot be drawn.
        """
        from twin.studies.views.browser import Replay

        return Replay.of(self.logs)

    def table(self, width: int | None = None) -> str:
        """Return the table and the notes as text, one column per log.

        Args:
            width: number of characters in a line; logs that do not fit beside the others go below them.
                `None` for
                unlimited width.
        """
        notes = [wrapped(f"note: {note}", width) for note in self.notes]
        return "\n".join([table(self.logs, self.figures, width), *notes])

    def picture(
        self, path: str | Path, what: str = "error", joints: Sequence[str] | None = None
    ) -> Comparison:
        """Draw the logs over time, overlaid, one panel per joint, and write the picture atomically.

        Args:
            path: path of a PNG, PDF or SVG file.
            what: "error", "torque", "speed", "position" or "pose".
            joints: names of the joints to draw; `None` for all, and for the error also that of the tool.

        Returns:
            The comparison itself.

        Raises:
            ValueError: an unknown quantity or file format.
            UnknownNameError: none of the robots has such a joint.
            OSError: the file cannot be written.
        """
        curves.draw(self.logs, path, what, joints)
        return self


def compare(
    logs: Log | str | Path | Iterable[Log | str | Path] | Mapping[str, Log | str | Path],
) -> Comparison:
    """Compare logs: `print(twin.compare(logs))`, `twin.compare(logs).picture("error.png")`.

    Robots, durations and periods may differ: joints are matched by name, and each figure refers to its run.

    Args:
        logs: runs, or the files that `Log.save` or `irb-twin run --log` wrote.  The keys of a mapping are
            their names.  Otherwise the names are those of the controllers if these differ, else those of the
            files; equal names are numbered.

    Raises:
        ValueError: there is no log, or an object that is not a log.
        TwinError: a file is missing or is not a log, or its robot no longer exists.

    Example:
        >>> import twin
        >>> from scenarios.gravity_hold import GravityHold
        >>> names, hold = ("pd", "computed_torque"), GravityHold(duration=0.1)
        >>> logs = [hold.run(GravityHold.setup(controller=name)).log for name in names]
        >>> {name: round(one.tool_largest, 5) for name, one in twin.compare(logs).figures.items()}  # in [m]
        {'pd': 0.02748, 'computed_torque': 0.0}
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
    """Return the controllers' names if they differ, else the files' names; equal ones are numbered."""
    names = [log.controller for log in logs]
    if len(set(names)) < len(names):
        names = [Path(one).stem if isinstance(one, (str, Path)) else log.controller
                 for one, log in zip(given, logs, strict=True)]  # fmt: skip
    taken: list[str] = []
    for name in names:
        numbered = (name if number == 1 else f"{name} ({number})" for number in range(1, len(names) + 2))
        taken.append(next(one for one in numbered if one not in taken))
    return taken


NAME = 30  # largest number of characters of a log's or joint's name
GAP = "   "


class Row(NamedTuple):
    """Row of the table: a label and one cell per log, or a heading without cells."""

    head: str
    cells: Sequence[str] = ()


def table(logs: Mapping[str, Log], figures: Mapping[str, Figures], width: int | None = None) -> str:
    """Return the text of the table.

    Args:
        logs: logs by name, at least one.
        figures: key figures of each log by the same names.
        width: number of characters in a line; logs that do not fit go below. `None` for unlimited width.
    """
    common, rows = _properties(logs)
    rows = [Row("", shorten(list(logs), NAME)), *rows, *_figure_rows(figures)]
    left = max(len(row.head) for row in rows if row.cells)
    right = max(len(cell) for row in rows for cell in row.cells)
    abreast = len(logs) if width is None else max(1, (width - left) // (right + len(GAP)))
    blocks = [_text(rows, left, slice(k, k + abreast)) for k in range(0, len(logs), abreast)]
    return "\n\n".join([*([wrapped(common, width)] if common else []), *blocks])


def wrapped(text: str, width: int | None) -> str:
    """Wrap a sentence into lines of at most `width` characters."""
    return text if width is None else textwrap.fill(text, width, break_long_words=False)


def _text(rows: Sequence[Row], left: int, part: slice) -> str:
    """Format the columns of some logs, each as wide as its content."""
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


def _properties(logs: Mapping[str, Log]) -> tuple[str, list[Row]]:
    """Return the properties that all runs share as a line, and the differing ones as rows."""
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
    texts_by_name = {name: [fact(log) for log in logs.values()] for name, fact in facts.items()}
    common = ", ".join(f"{name} {texts[0]}" for name, texts in texts_by_name.items() if len(set(texts)) == 1)
    differing = [Row(name, texts) for name, texts in texts_by_name.items() if len(set(texts)) > 1]
    return common, [row for row in differing if tuple(row.cells) != tuple(logs)]


def _figure_rows(figures: Mapping[str, Figures]) -> list[Row]:
    """Return the rows of the key figures, section by section."""
    runs = list(figures.values())

    def error(rms: float, largest: float) -> str:
        return f"{figure(rms)} / {figure(largest)}"

    def joint_error(one: Figures, k: int) -> str:
        return error(one.joint_rms[k], one.joint_largest[k])

    return [
        Row("tracking error: root mean square / largest"),
        *_joint_rows(runs, "error", joint_error),
        Row("tool, distance [m]", [error(one.tool_rms, one.tool_largest) for one in runs]),
        Row("tool, angle [rad]", [error(one.turn_rms, one.turn_largest) for one in runs]),
        Row("worst joint", [_worst(one) for one in runs]),
        Row("largest tool distance", [f"at {one.tool_time:.4g} s" for one in runs]),
        Row("peak torque (share of its limit)"),
        *_joint_rows(runs, "tau", lambda one, k: _of_limit(one.peak_motor_torque[k], one.torque_limit[k])),
        Row("peak speed (share of its limit)"),
        *_joint_rows(runs, "qd", lambda one, k: _of_limit(one.peak_speed[k], one.speed_limit[k])),
        Row("samples whose torque was cut to its limit"),
        *(_joint_rows(runs, "saturated", _cut) if any(one.saturated_samples.any() for one in runs) else
          [Row("all joints", ["none" for _ in runs])]),
    ]  # fmt: skip


def _joint_rows(runs: Sequence[Figures], quantity: str, cell: Callable[[Figures, int], str]) -> list[Row]:
    """Return a row for each joint, by name and unit; cells of robots without the joint are empty."""
    places = [
        {(name, unit_of(kind, quantity)): k for k, (name, kind) in enumerate(one.joints)} for one in runs
    ]
    joints = list(dict.fromkeys(joint for place in places for joint in place))
    heads = shorten([name for name, _ in joints], NAME)
    return [
        Row(
            f"{head} [{joint[1]}]" if joint[1] else head,
            [
                cell(one, place[joint]) if joint in place else ""
                for one, place in zip(runs, places, strict=True)
            ],
        )
        for head, joint in zip(heads, joints, strict=True)
    ]


def _worst(one: Figures) -> str:
    place = f"{one.worst_joint} at {one.worst_time:.4g} s" + f", {one.worst_line}" * bool(one.worst_line)
    return place if one.worst_joint else "unknown"


def _of_limit(peak: float, limit: float) -> str:
    """Format a peak with its share of the limit, if there is one: `12.5 (6.1 %)`."""
    if not 0 < limit < np.inf:
        return f"{figure(peak)} ({'no limit' if limit > 0 else 'limit 0'})"
    return f"{figure(peak)} ({f'{100 * peak / limit:.1f} %)':>8}"


def _cut(one: Figures, k: int) -> str:
    count = int(one.saturated_samples[k])
    return f"{count} of {one.samples}, first at {one.first_saturated[k]:.4g} s" if count else "0"


SAME_MOTION = 1e-3
"""Largest difference between references of the same motion with different sampling, in [rad] or [m]."""


def differences(logs: Mapping[str, Log]) -> tuple[str, ...]:
    """Return sentences on what cannot be compared of logs, and why; none if everything can."""
    return (*_faults(logs), *_joints(logs), *_lengths(logs), *_motions(logs))


def _faults(logs: Mapping[str, Log]) -> Iterator[str]:
    for name, log in logs.items():
        fault = first_non_finite(log)
        if fault is not None:
            yield (
                f"{name} contains numbers that are not finite from {fault:.6g} s on: its figures are those "
                "of the earlier samples, and only finite values are drawn"
            )


def _joints(logs: Mapping[str, Log]) -> Iterator[str]:
    if len({tuple(log.robot.joint_names) for log in logs.values()}) > 1:
        who = _group(logs, lambda log: f"{log.robot.name} with {log.robot.n} joints")
        yield f"the robots have different joints ({who}): they are matched by name"
    elif len({log.robot.name for log in logs.values()}) > 1:
        who = _group(logs, lambda log: log.robot.name)
        yield f"the robots differ ({who}): joints are matched by name, and limits are those of each robot"


def _lengths(logs: Mapping[str, Log]) -> Iterator[str]:
    if len({(f"{log.t[0]:.6g}", f"{log.t[-1]:.6g}") for log in logs.values()}) > 1:
        who = _group(logs, lambda log: f"{log.t[0]:.4g} to {log.t[-1]:.4g} s")
        yield f"the runs cover different times ({who}): each figure refers to its run"
    if len({f"{_period(log):.6g}" for log in logs.values()}) > 1:
        who = _group(logs, lambda log: f"{1e3 * _period(log):g} ms")
        yield f"the control periods differ ({who}): counts of samples cannot be compared"


def _period(log: Log) -> float:
    return log.time_step * log.steps_per_period


def _motions(logs: Mapping[str, Log]) -> Iterator[str]:
    """Report the first two logs with the same joints whose references differ."""
    for (name, log), (other_name, other) in combinations(logs.items(), 2):
        if log.robot.joint_names != other.robot.joint_names:
            continue
        shared = (log.t >= other.t[0]) & (log.t <= other.t[-1])
        if not shared.any():
            yield f"{name} and {other_name} have no time in common"
            return
        reference = np.column_stack([np.interp(log.t[shared], other.t, q) for q in other.q_ref.T])
        apart = np.abs(reference - log.q_ref[shared])
        if not np.max(apart) <= SAME_MOTION:
            k, joint = np.unravel_index(int(np.argmax(apart)), apart.shape)
            where = f"{log.robot.joint_names[joint]} at {log.t[shared][k]:.4g} s"
            yield (
                f"{name} and {other_name} have different references ({figure(float(apart[k, joint]))} "
                f"apart in {where}): each error refers to its reference"
            )
            return


def _group(logs: Mapping[str, Log], what: Callable[[Log], str]) -> str:
    """Group the names of logs by a property: `irb140: pd, pid; irb1400: pd (2)`."""
    having: dict[str, list[str]] = {}
    for name, log in logs.items():
        having.setdefault(what(log), []).append(name)
    return "; ".join(f"{thing}: {', '.join(names)}" for thing, names in having.items())

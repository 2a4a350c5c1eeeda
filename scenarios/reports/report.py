"""What a run has to say, as tables for the terminal, for a pipe, and for a file.

Controllers stand side by side, one column each, so that a row can be read across. Nothing here prints by
itself: the functions return what rich renders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from scenarios.base import Metric
from scenarios.reports.broken_runs import broken_run
from scenarios.reports.listing import listing
from scenarios.reports.verdicts import verdict
from scenarios.running.runs import Run
from twin.logs.figures import POSE_COMPONENTS, joint_error, largest, pose_error, rms
from twin.robot.limits import caption_unit
from twin.short_texts import figure, shortened

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.console import RenderableType

    from twin.logs.log import Log


def describe(run: Run) -> str:
    """One line: robot, length of the run, step, drives, settings that are not the default."""
    log = run.log
    words = [run.config.robot]
    if log is not None:
        period = f"{1e3 * log.time_step * log.steps_per_period:g} ms"
        words += [f"{log.t[-1]:.4g} s", f"{len(log.t)} control periods of {period}"]
    drives, model = run.drives
    words.append(f"{drives} drives" + (f" ({model} ones in the model)" if model != drives else ""))
    told = ("robot", "drives", "model_drives")
    words += [f"{name} {value}" for name, value in run.settings.items() if name not in told]
    return ", ".join(words)


class Column(NamedTuple):
    """A run of the tables: what stands above its figures, and the run."""

    head: str
    run: Run


NAMES, FIGURES = 16, 20
"""Characters: the narrowest first column that reads well, and the figures of one controller."""


def scenario_report(title: str, runs: Sequence[Run], width: int) -> Iterator[RenderableType]:
    """Everything about one scenario's runs, one a controller.

    Args:
        title: what the scenario is.
        runs: at least one.
        width: of the page, in characters; controllers that do not fit beside the others go below them.
    """
    heads = shortened([run.label for run in runs], max(width - NAMES - 2, NAMES))
    columns = [Column(head, run) for head, run in zip(heads, runs, strict=True)]
    room = max(FIGURES, max(map(len, heads)) + 2)
    abreast = max(1, (width - NAMES) // room)
    left = max(NAMES, width - min(abreast, len(runs)) * room) - 2  # for the names of joints
    logged = [column for column in columns if column.run.log is not None]
    yield Text.assemble("\n", (runs[0].scenario, "bold"), f": {title}")
    yield Text(describe(runs[0]) + "\n", "dim")
    if logged:
        kinds = [kind for log in _logs(logged) for kind in log.robot.joint_kinds]
        position, torque = caption_unit(kinds), caption_unit(kinds, "{torque}")
        yield f"Tracking error, RMS / largest; joints in {position}, tool x y z in m, a b c d its quaternion"
        yield from (error_table(page, left) for page in _pages(logged, abreast))
        yield f"Peak torque in {torque}, and how many samples were cut to the drive's limit"
        yield from (torque_table(page, left) for page in _pages(logged, abreast))
    if runs[0].table is not None:
        caption, rows = runs[0].table
        yield caption
        yield own_table(rows)
    if any(run.metrics for run in runs):
        yield "Checks"
        yield from (check_table(page) for page in _pages(columns, abreast))
    for head, run in columns:
        if not run.holds:
            yield from broken_run(run, runs).told(head)


def _pages(items: Sequence[Column], abreast: int) -> list[Sequence[Column]]:
    return [items[k : k + abreast] for k in range(0, len(items), abreast)]


def table_of_laws(first: str, names: Iterable[str]) -> Table:
    """An empty table with a column a law.

    Args:
        first: heading of the first column, which says what a row is.
        names: of the laws.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, overflow="fold")
    for name in names:
        table.add_column(Text(name), justify="right", no_wrap=True)
    return table


def _logs(columns: Sequence[Column]) -> list[Log]:
    return [column.run.log for column in columns if column.run.log is not None]


def error_table(columns: Sequence[Column], left: int) -> Table:
    """RMS and largest tracking error per joint and per component of the tool's pose.

    Args:
        columns: runs with a log.
        left: how many characters the name of a joint may have.
    """
    table, logs = table_of_laws("", (column.head for column in columns)), _logs(columns)

    def rows(names: Sequence[str], errors: list[NDArray]) -> None:
        for k, name in enumerate(names):
            table.add_row(Text(name), *(f"{figure(rms(e)[k])} / {figure(largest(e)[k]):>8}" for e in errors))

    rows(shortened(logs[0].robot.joint_names, left), [joint_error(log) for log in logs])
    table.add_section()
    rows([f"tool {name}" for name in POSE_COMPONENTS], [pose_error(log) for log in logs])
    return table


def torque_table(columns: Sequence[Column], left: int) -> Table:
    """Peak torque per joint beside the drive's limit, and how many samples were cut to it.

    Args:
        columns: runs with a log.
        left: how many characters the name of a joint may have.
    """
    table, logs = table_of_laws("joint (limit)", (column.head for column in columns)), _logs(columns)
    for joint, name in enumerate(shortened(logs[0].robot.joint_names, left)):
        cells = []
        for log in logs:
            cut = np.count_nonzero(log.saturated[:, joint])
            cells.append(figure(largest(log.tau)[joint]) + (f", {cut} cut" if cut else ""))
        table.add_row(Text(f"{name} ({figure(logs[0].robot.drive_torque_max[joint])})"), *cells)
    return table


def own_table(rows: Sequence[Sequence[str]]) -> Table:
    """A scenario's own rows, headings first."""
    table = table_of_laws(rows[0][0], rows[0][1:])
    for row in rows[1:]:
        table.add_row(*map(Text, row))
    return table


def check_table(columns: Sequence[Column]) -> Table:
    """What was claimed: every figure, and under it its limit and whether it holds."""
    table = table_of_laws("check", (column.head for column in columns))
    runs = [column.run for column in columns]
    for name in check_names(runs):
        table.add_row(
            Text(name), *(check_cell(found) if (found := _metric(run, name)) else "" for run in runs)
        )
    return table


def check_cell(metric: Metric) -> Text:
    """Figure with unit; under it its range where rounding decides, limit and verdict where it has a limit."""
    cell = Text(f"{figure(metric.value)} {metric.unit}".strip())
    if metric.span is not None:
        cell.append("\n{} to {}".format(*map(figure, metric.span)))
    if metric.limit is not None:
        cell.append(f"\n<= {figure(metric.limit)} ")
        cell.append_text(verdict(metric.outcome))
    elif not metric.holds:
        cell.append_text(Text.assemble("\n", verdict(metric.outcome)))
    return cell


def explanations(runs: Sequence[Run], width: int) -> Iterator[RenderableType]:
    """Why every limit is what it is, each once over all runs; with whose it is where they differ.

    Args:
        runs: of one scenario or several.
        width: of the page, in characters.
    """
    several = len({run.scenario for run in runs}) > 1
    rows = []
    for name in check_names(runs):
        whys: dict[str, dict[str, list[str]]] = {}  # whose: the controllers by their scenario
        for run in runs:
            if found := _metric(run, name):
                whys.setdefault(found.why, {}).setdefault(run.scenario, []).append(run.label)
        told = [why if len(whys) == 1 else f"({_whose(who, several)}) {why}" for why, who in whys.items()]
        rows.append((name, "; ".join(told)))
    if rows:
        yield "\nWhere the limits come from, and what the other figures are"
        yield from listing(rows, width)


def _whose(controllers: dict[str, list[str]], several: bool) -> str:
    """`pd, pid`, or of several scenarios `pose_path: pd, pid; gravity_hold: pd`."""
    return "; ".join(f"{name}: " * several + ", ".join(laws) for name, laws in controllers.items())


def check_names(runs: Sequence[Run]) -> list[str]:
    """Names of all checks of the runs, in order, each once."""
    return list(dict.fromkeys(metric.name for run in runs for metric in run.metrics))


def _metric(run: Run, name: str) -> Metric | None:
    return next((metric for metric in run.metrics if metric.name == name), None)


def total(runs: Sequence[Run]) -> Text:
    """The last lines: how much was run, then a line a run, its checks and how its tracking was judged."""
    several = len({run.scenario for run in runs}) > 1
    count = sum(metric.limit is not None for run in runs for metric in run.metrics)
    seconds = sum(run.seconds for run in runs)
    lines = [f"{len(runs)} run{'s' * (len(runs) > 1)}, {count} checks in {seconds:.1f} s"]
    for run in runs:
        checks = [metric for metric in run.metrics if metric.limit is not None or not metric.holds]
        passed = sum(metric.holds for metric in checks)
        counted = (
            f"{passed} of {len(checks)} checks pass" if passed < len(checks) else f"{passed} checks pass"
        )
        counted = counted if run.error is None else "did not finish"
        told = f": {run.tracking.sentence}" if run.tracking else ""
        lines.append(f"{counted}; {f'{run.scenario}, ' * several}{run.label}{told}")
    return Text("\n".join(lines), "bold")

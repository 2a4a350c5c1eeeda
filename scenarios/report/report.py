"""Make the tables of `irb-twin run` and `irb-twin validate` for the terminal or a pipe.

The tables of `run` have one column per controller, so that a row compares controllers. The table of
`validate` has one row per run. Nothing is printed here: the functions return what rich renders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from scenarios.metric import Metric, Outcome
from scenarios.report.documents import listing, plain_table, table_of
from scenarios.report.results import (
    HEADINGS,
    WORDS,
    BrokenRun,
    Results,
    broken_run,
    check_names,
    describe,
    judged,
    metric_named,
    scenario_tables,
)
from scenarios.running.runs import Run
from twin.base.formatting import figure, shorten
from twin.data.logs.figures import POSE_COMPONENTS, joint_error, largest, motor_torque, pose_error, rms
from twin.physics.robot.units import caption_unit

if TYPE_CHECKING:
    from twin.data.logs.log import Log


STYLES = {"passes": "green", "not judged": "yellow"}
COLOURS = {"worse": "red", "warning": "yellow"}


def verdict(outcome: Outcome | bool) -> Text:
    """Return an outcome as coloured text: `passes` in green, `FAILS` in red, or another outcome."""
    found: Outcome = ("passes" if outcome else "fails") if isinstance(outcome, bool) else outcome
    return Text(WORDS[found], STYLES.get(found, "bold red"))


class Column(NamedTuple):
    """Column of the tables: its heading, and its run."""

    head: str
    run: Run


NAMES, FIGURES = 16, 20
"""Smallest readable width of the first column, and width of a controller's column, in characters."""


def scenario_report(title: str, runs: Sequence[Run], width: int) -> Iterator[RenderableType]:
    """Yield the report of one scenario's runs, one per controller.

    Args:
        title: title of the scenario.
        runs: the runs, at least one.
        width: width of the page, in characters; controllers that do not fit go into further tables below.
    """
    heads = shorten([run.label for run in runs], max(width - NAMES - 2, NAMES))
    columns = [Column(head, run) for head, run in zip(heads, runs, strict=True)]
    room = max(FIGURES, max(map(len, heads)) + 2)
    abreast = max(1, (width - NAMES) // room)
    left = max(NAMES, width - min(abreast, len(runs)) * room) - 2  # width of the joints' names
    logged = [column for column in columns if column.run.log is not None]
    yield Text.assemble("\n", (runs[0].scenario, "bold"), f": {title}")
    yield Text(describe(runs[0]) + "\n", "dim")
    if logged:
        kinds = [kind for log in _logs(logged) for kind in log.robot.joint_kinds]
        position, torque = caption_unit(kinds), caption_unit(kinds, "{torque}")
        yield f"Tracking error, RMS / largest; joints in {position}, tool x y z in m, quaternion a b c d"
        yield from (error_table(page, left) for page in _pages(logged, abreast))
        coupled = ", and its motor's where motors are coupled" if any(map(_coupled, _logs(logged))) else ""
        yield f"Peak torque in {torque}{coupled}, and number of samples saturated at the drive's limit"
        yield from (torque_table(page, left) for page in _pages(logged, abreast))
    for caption, rows in scenario_tables(runs):
        yield caption
        yield plain_table(rows)
    if any(run.metrics for run in runs):
        yield "Checks"
        yield from (check_table(page) for page in _pages(columns, abreast))
    for head, run in columns:
        if not run.passes:
            yield from broken_lines(broken_run(run, runs), head)


def broken_lines(broken: BrokenRun, title: str) -> Iterator[RenderableType]:
    """Yield the lines of a failing run: its failures, each after `title`, its cause, and its command."""
    yield from (Text(f"{title}: {sentence}", "bold red") for sentence in broken.sentences)
    yield Text(f"cause: {broken.cause}")
    # The command is one line, so that it can be copied; rich would join a bare text with others.
    yield Group(Text(f"repeat: {broken.repeat}", no_wrap=True, overflow="ignore"))


def _pages(items: Sequence[Column], abreast: int) -> list[Sequence[Column]]:
    return [items[k : k + abreast] for k in range(0, len(items), abreast)]


def _logs(columns: Sequence[Column]) -> list[Log]:
    return [column.run.log for column in columns if column.run.log is not None]


def error_table(columns: Sequence[Column], left: int) -> Table:
    """Return the RMS and largest tracking error per joint and per component of the tool's pose.

    Args:
        columns: runs with a log.
        left: largest number of characters of a joint's name.
    """
    table, logs = table_of("", numbers=(column.head for column in columns)), _logs(columns)

    def rows(names: Sequence[str], errors: list[NDArray]) -> None:
        for k, name in enumerate(names):
            table.add_row(Text(name), *(f"{figure(rms(e)[k])} / {figure(largest(e)[k]):>8}" for e in errors))

    rows(shorten(logs[0].robot.joint_names, left), [joint_error(log) for log in logs])
    table.add_section()
    rows([f"tool {name}" for name in POSE_COMPONENTS], [pose_error(log) for log in logs])
    return table


def torque_table(columns: Sequence[Column], left: int) -> Table:
    """Return the peak torque per joint, the motor's limit, and the number of saturated samples.

    Where motors are coupled, the peak torque of the motor, whose limit it is, stands beside the joint's.

    Args:
        columns: runs with a log.
        left: largest number of characters of a joint's name.
    """
    table, logs = table_of("joint (limit)", numbers=(column.head for column in columns)), _logs(columns)
    for joint, name in enumerate(shorten(logs[0].robot.joint_names, left)):
        cells = []
        for log in logs:
            saturated, text = np.count_nonzero(log.saturated[:, joint]), figure(largest(log.tau)[joint])
            if _coupled(log):
                text += f" / {figure(largest(motor_torque(log))[joint])}"
            cells.append(text + (f", {saturated} saturated" if saturated else ""))
        table.add_row(Text(f"{name} ({figure(logs[0].robot.drive_torque_max[joint])})"), *cells)
    return table


def _coupled(log: Log) -> bool:
    """Return whether a motor drives several joints, so that its torque is not that of a joint."""
    return motor_torque(log) is not log.tau


def check_table(columns: Sequence[Column]) -> Table:
    """Return a table of all checks: each value, its limit, and its outcome."""
    table = table_of("check", numbers=(column.head for column in columns))
    runs = [column.run for column in columns]
    for name in check_names(runs):
        table.add_row(
            Text(name), *(check_cell(found) if (found := metric_named(run, name)) else "" for run in runs)
        )
    return table


def check_cell(metric: Metric) -> Text:
    """Return a check's value with its unit, its range if rounding decides, and its limit with the outcome."""
    if metric.value is None:
        return Text("not judged", "dim")
    cell = Text(f"{figure(metric.value)} {metric.unit}".strip())
    if metric.span is not None:
        cell.append("\n{} to {}".format(*map(figure, metric.span)))
    if metric.limit is not None:
        cell.append(f"\n<= {figure(metric.limit)} ")
        cell.append_text(verdict(metric.outcome))
    elif not metric.passes:
        cell.append_text(Text.assemble("\n", verdict(metric.outcome)))
    return cell


def explanations(runs: Sequence[Run], width: int) -> Iterator[RenderableType]:
    """Yield the source of every limit, once for all runs; if it differs, with the controllers it applies to.

    Args:
        runs: runs of one or several scenarios.
        width: width of the page, in characters.
    """
    several = len({run.scenario for run in runs}) > 1
    rows = []
    for name in check_names(runs):
        whys: dict[str, dict[str, list[str]]] = {}  # source -> scenario -> controllers
        for run in runs:
            if found := metric_named(run, name):
                whys.setdefault(found.why, {}).setdefault(run.scenario, []).append(run.label)
        texts = [
            why if len(whys) == 1 else f"({_run_names(who, several)}) {why}" for why, who in whys.items()
        ]
        rows.append((name, "; ".join(texts)))
    if rows:
        yield "\nSources of the limits, and meaning of the other values"
        yield from listing(rows, width)


def _run_names(controllers: dict[str, list[str]], several: bool) -> str:
    """Return `pd, pid`, or for several scenarios `pose_path: pd, pid; gravity_hold: pd`."""
    return "; ".join(f"{name}: " * several + ", ".join(laws) for name, laws in controllers.items())


def total(runs: Sequence[Run]) -> Text:
    """Return the last lines: number of runs and checks, then each run's checks and tracking outcome."""
    several = len({run.scenario for run in runs}) > 1
    seconds = sum(run.seconds for run in runs)
    lines = [f"{len(runs)} run{'s' * (len(runs) > 1)}, {Results(runs).check_count} checks in {seconds:.1f} s"]
    for run in runs:
        checks = judged(run)
        passed = sum(metric.passes for metric in checks)
        of = f"of {len(checks)} " if passed < len(checks) else ""
        counted = f"{passed} {of}checks pass" if run.error is None else "did not finish"
        tracking = f": {run.tracking.sentence}" if run.tracking else ""
        lines.append(f"{counted}; {f'{run.scenario}, ' * several}{run.label}{tracking}")
    return Text("\n".join(lines), "bold")


def validation_report(results: Results) -> Iterator[RenderableType]:
    """Yield a table with one row per run, every failure with its cause and command, and the baseline."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, heading in enumerate(HEADINGS):
        table.add_column(
            heading, justify="right" if heading in ("largest error", "checks") else "left", no_wrap=place > 2
        )
    above = ("", "")
    for run, cells in zip(results.runs, results.rows(), strict=True):
        here = cells[:2]
        names = here if here[0] != above[0] else ("", here[1] if here != above else "")
        table.add_row(*map(Text, (*names, *cells[2:])), verdict(run.outcome))
        above = here
    yield table
    for broken in results.broken:
        yield from broken_lines(broken, broken.title)
        yield ""
    if (comparison := results.comparison) is not None:
        for what, sentence in comparison.sentences:
            head = f"{what} than the baseline" if what == "worse" else what
            yield Text(f"{head}: {sentence}", COLOURS.get(what, ""))
        yield Text(comparison.line)
    if results.unsuited:
        yield results.unsuited


def validation_total(results: Results, seconds: float, jobs: int) -> str:
    """Return the last line: number of runs and checks, their duration, and how many fail."""
    broken, count = len(results.failing), len(results.runs)
    outcome = results.summary(f"{broken} run{' fails' if broken == 1 else 's fail'}" if broken else "")
    where = f" in {jobs} processes" if jobs > 1 else ""
    return (
        f"{count} run{'s' * (count != 1)}, {results.check_count} checks in {seconds:.1f} s{where}: {outcome}"
    )

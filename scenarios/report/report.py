"""Results as tables for the terminal and for a pipe: those of `run`, and those of `validate`.

With `run`, controllers stand side by side, one column each, so that a row can be read across. With
`validate`, a run is a line. Nothing here prints by itself: the functions return what rich renders.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from scenarios.base import Metric
from scenarios.metric import Outcome
from scenarios.report.files import HEADINGS
from scenarios.report.results import (
    WORDS,
    BrokenRun,
    Results,
    broken_run,
    check_names,
    describe,
    judged,
    metric_named,
)
from scenarios.running.runs import Run
from twin.formatting import figure, shorten
from twin.logs.figures import POSE_COMPONENTS, joint_error, largest, pose_error, rms
from twin.robot.limits import caption_unit

if TYPE_CHECKING:
    from twin.logs.log import Log


STYLES = {"passes": "green", "not judged": "yellow"}
COLOURS = {"worse": "red", "warning": "yellow"}


def verdict(outcome: Outcome | bool) -> Text:
    """`holds` in green, `FAILS` in red, and the other outcomes; a truth is one of these two."""
    found: Outcome = ("passes" if outcome else "fails") if isinstance(outcome, bool) else outcome
    return Text(WORDS[found], STYLES.get(found, "bold red"))


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
    heads = shorten([run.label for run in runs], max(width - NAMES - 2, NAMES))
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
        if not run.passes:
            yield from broken_lines(broken_run(run, runs), head)


def broken_lines(broken: BrokenRun, title: str) -> Iterator[RenderableType]:
    """Sentences of a run that does not hold, each after `title`, whose fault it is, and the command."""
    yield from (Text(f"{title}: {sentence}", "bold red") for sentence in broken.sentences)
    yield Text(f"whose fault: {broken.cause}")
    # One line, however long, that can be copied as it is: a text alone would be joined with others.
    yield Group(Text(f"again: {broken.repeat}", no_wrap=True, overflow="ignore"))


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

    rows(shorten(logs[0].robot.joint_names, left), [joint_error(log) for log in logs])
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
    for joint, name in enumerate(shorten(logs[0].robot.joint_names, left)):
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
            Text(name), *(check_cell(found) if (found := metric_named(run, name)) else "" for run in runs)
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
    elif not metric.passes:
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
            if found := metric_named(run, name):
                whys.setdefault(found.why, {}).setdefault(run.scenario, []).append(run.label)
        told = [why if len(whys) == 1 else f"({_whose(who, several)}) {why}" for why, who in whys.items()]
        rows.append((name, "; ".join(told)))
    if rows:
        yield "\nWhere the limits come from, and what the other figures are"
        yield from listing(rows, width)


def _whose(controllers: dict[str, list[str]], several: bool) -> str:
    """`pd, pid`, or of several scenarios `pose_path: pd, pid; gravity_hold: pd`."""
    return "; ".join(f"{name}: " * several + ", ".join(laws) for name, laws in controllers.items())


def total(runs: Sequence[Run]) -> Text:
    """The last lines: how much was run, then a line a run, its checks and how its tracking was judged."""
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
    """One line a run, every check that fails, with its cause and what repeats it, and the baseline."""
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
    """The last line: how many runs and checks there were, how long they took, and what came of them."""
    broken, count = len(results.failing), len(results.runs)
    kept = results.summary(f"{broken} run{'s do' if broken > 1 else ' does'} not hold" if broken else "")
    where = f" in {jobs} processes" if jobs > 1 else ""
    return f"{count} run{'s' * (count != 1)}, {results.check_count} checks in {seconds:.1f} s{where}: {kept}"


NARROWEST = 20  # characters of a last column, below which the page is left to wrap it


def listing(rows: Sequence[Sequence[str]], width: int) -> Iterator[Text]:
    """A line or more for each row: the first column in bold, the last wrapped below itself and not padded.

    Args:
        rows: at least one, of the same number of texts.
        width: of the page, in characters.
    """
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)][:-1]
    indent = sum(widths)
    for *cells, last in rows:
        before = "".join(f"{cell:<{room}}" for cell, room in zip(cells, widths, strict=True))
        lines = textwrap.wrap(last, max(width - indent, NARROWEST), break_on_hyphens=False) or [""]
        text = Text.assemble((before[: widths[0]], "bold"), before[widths[0] :], lines[0])
        yield text.append("".join("\n" + " " * indent + line for line in lines[1:]))

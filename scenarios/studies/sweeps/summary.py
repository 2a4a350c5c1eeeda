"""Evaluate the runs of a sweep, and report them as tables for the terminal and as JSON.

Each controller has its share of passing runs, its kinds of failure, and the importance of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from scenarios.report.documents import table_of, write_document
from scenarios.report.report import verdict
from scenarios.running.provenance import provenance
from scenarios.studies.sweeps.plan import SweepPlan, Swept, WorstCase
from scenarios.studies.sweeps.scenario_experiment import OF_A_TRIAL
from twin.base.formatting import figure, shorten
from twin.physics.robot.limits import ROUND_OFF
from twin.physics.robot.quantities import Quantity
from twin.studies.sweeps.running import UNITS
from twin.studies.sweeps.trial import FIGURES, OUTCOME, TROUBLES

if TYPE_CHECKING:
    from twin.studies.sweeps.statistics import Importance, Share, SobolIndices


def title(name: str) -> str:
    """Return the title of a quantity: `joint_error` -> `joint error`."""
    titles = {
        "rms_error": "RMS joint error",
        "rms_torque": "RMS torque / limit",
        "cubic_torque": "cubic mean torque / limit",
        "speed_ratio": "speed / limit",
    }
    return titles.get(name, name.replace("_", " "))


def quantity(name: str, unit: str = "") -> str:
    """Return the title of a quantity with its unit, if it has one: `joint error [rad]`."""
    unit = unit or UNITS.get(name, "")
    return f"{title(name)} [{unit}]" if unit else title(name)


def percent(share: float) -> str:
    """Format a share as `87.4 %`, with more digits near 0 and 1."""
    text = f"{100 * share:.1f}"
    if text in ("0.0", "100.0") and 0 < share < 1:
        text = f"{100 * share:.3f}"
    return f"{text} %"


class Failure(NamedTuple):
    """Kind of failure: its name, and a mask (N,) of the runs that failed in this way."""

    name: str
    rows: NDArray[np.bool_]


def failures(table: np.ndarray, limits: Mapping[str, float], leaves_limits: bool) -> list[Failure]:
    """Return the kinds of failure of the runs in a table, the most serious first.

    A run that ended early has only this kind of failure. Any other run may have several kinds.

    Args:
        table: table of one controller, with the fields of `twin.sweeps.trial.OUTCOME`.
        limits: additional limits of quantities, in their units.
        leaves_limits: whether the arm is meant to leave its ranges and speed limits.
    """
    ended = [Failure(name, table["trouble"] == k) for k, name in enumerate(TROUBLES) if k]
    whole = (table["trouble"] == 0) & ~table["passes"]
    of_the_arm = [("beyond its range", "beyond_range", ROUND_OFF), ("too fast", "speed_ratio", 1 + ROUND_OFF)]
    judged = [*(of_the_arm if not leaves_limits else []), ("a drive saturated", "saturated", 0)]
    judged += [(f"{title(name)} above {figure(limit)}", name, limit) for name, limit in limits.items()]
    found = [*ended, *(Failure(name, whole & ~(table[key] <= limit)) for name, key, limit in judged)]
    checks = sorted(set(table["check"].tolist()) - {"", *OF_A_TRIAL})
    found += [Failure(f"check fails: {name}", whole & (table["check"] == name)) for name in checks]
    explained = np.any([failure.rows for failure in found], axis=0)
    found.append(Failure("joint error above rounding errors", ~table["passes"] & ~explained))
    return found


MOST_VALUES = 20
"""Largest number of values of a grid input for which the share at each value is reported."""


class Spread(NamedTuple):
    """Distribution of a quantity over the runs of a controller: nominal, median, 95 % quantile and worst."""

    figure: str
    unit: str
    nominal: float
    median: float
    most: float
    worst: float


class AtValue(NamedTuple):
    """Share of passing runs at one value of an input on a grid."""

    name: str
    value: float
    share: float


class Findings(NamedTuple):
    """Evaluation of one controller; `worst` has the worst runs, which were repeated in PyBullet."""

    swept: Swept
    share: Share
    failed: tuple[tuple[str, int], ...]
    spreads: tuple[Spread, ...]
    importance: Sequence[Importance]
    sobol_indices: SobolIndices
    on_grid: tuple[AtValue, ...]
    worst: Sequence[WorstCase] = ()


def findings(swept: Swept, worst: Sequence[WorstCase] = ()) -> Findings:
    """Evaluate the runs of a controller: count failures, and correlate the figure with the inputs."""
    from twin.studies.sweeps.statistics import importances, pass_share, sobol_indices

    table = swept.table
    failed = failures(table, swept.limits, swept.leaves_limits)
    return Findings(
        swept,
        pass_share(table["passes"], table["draw"], table["replicate"]),
        tuple((failure.name, int(count)) for failure in failed if (count := np.count_nonzero(failure.rows))),
        tuple(spread for name in (*FIGURES, *swept.metrics) if (spread := _spread(swept, name)) is not None),
        tuple(importances(table, swept.names, swept.figure)),
        sobol_indices(table, swept.names, swept.figure),
        tuple(_on_grid(swept)),
        worst,
    )


def _spread(swept: Swept, name: str) -> Spread | None:
    """Return the distribution of a quantity; `None` if it was not computed."""
    values = swept.table[name].astype(float)
    values = values[~np.isnan(values)]
    if not values.size:
        return None
    # Quantiles are values of runs: nothing can be interpolated between infinity and a number.
    median, most, worst = np.quantile(values, [0.5, 0.95, 1.0], method="inverted_cdf")
    unit = swept.metrics.get(name, UNITS.get(name, ""))
    return Spread(name, unit, float(swept.nominal[name]), median, most, worst)


def _on_grid(swept: Swept) -> list[AtValue]:
    found = []
    for name in swept.grid:
        column, passes = swept.table[name], swept.table["passes"]
        values = np.unique(column)
        if 1 < len(values) <= MOST_VALUES:
            found += [AtValue(name, float(value), float(passes[column == value].mean())) for value in values]
    return found


NAME_WIDTH, LAW_WIDTH = 24, 28
"""Widths of the first column, and of the column of a controller, in characters."""


def summary(plan: SweepPlan, laws: Sequence[Findings], width: int) -> Iterator[RenderableType]:
    """Yield the tables of a sweep.

    Args:
        plan: the plan of the sweep.
        laws: the evaluation of each controller, for the same draws.
        width: width of the page, in characters; controllers that do not fit go into further tables below.
    """
    yield Text.assemble("\n", (plan.scenario.name, "bold"), f": {plan.scenario.title}")
    facts = [
        laws[0].swept.setup.robot,
        plan.size_text(),
        f"{plan.design.kind} design, seed {plan.design.seed}",
    ]
    yield Text(", ".join(facts), "dim")
    varied = (f"{one.name}={one.text}" for one in plan.design.variations)
    yield Text(f"varied: {' '.join(varied)}", "dim")
    for law in laws:
        if absent := [name for name in plan.names if name not in law.swept.names]:
            yield Text(f"{law.swept.label} keeps its settings: it has no {', '.join(absent)}", "dim")
    yield Text(_pass_conditions(plan), "dim")
    for law in laws:
        if law.swept.further_checks:
            yield Text(f"Runs of {law.swept.label} pass if they meet all checks of the scenario", "dim")
    missing = dict.fromkeys(name for law in laws for name in law.swept.not_judged)
    yield Text(f"Not judged in these runs: {', '.join(missing)}", "dim")
    yield Text(f"{_chosen_figure(plan, laws)}\n", "dim")
    heads = shorten([law.swept.label for law in laws], LAW_WIDTH - 2)
    abreast = max(1, (width - NAME_WIDTH) // LAW_WIDTH)
    for start in range(0, len(laws), abreast):
        part = slice(start, start + abreast)
        yield from _tables(laws[part], heads[part])


def _tables(laws: Sequence[Findings], heads: Sequence[str]) -> Iterator[RenderableType]:
    yield "Share of passing runs"
    yield _shares(laws, heads)
    if any(law.failed for law in laws):
        yield "Number of failing runs by cause (a run may have several causes)"
        yield by_name(heads, [{name: f"{count}" for name, count in law.failed} for law in laws], "0")
    yield "Quantities: nominal; then median / 95 % quantile / worst"
    yield _spreads(laws, heads)
    yield (
        f"Importance of each input for the {title(laws[0].swept.figure)}: explained share of the "
        "variance of its ranks; rank correlation (+1: it increases with the input, -1: it decreases)"
    )
    rows = [
        {row.name: f"{percent(row.explained)}; {row.correlation:+.2f}" for row in law.importance}
        for law in laws
    ]
    yield by_name(heads, rows, "")
    yield (
        f"Sobol' indices for the {title(laws[0].swept.figure)}: share of its variance that an input explains "
        "alone; total, with its effects together with others (95 % confidence intervals)"
    )
    yield by_name(heads, [{row.name: str(row) for row in law.sobol_indices.rows} for law in laws], "")
    for head, law in zip(heads, laws, strict=True):
        if law.sobol_indices.reason:
            yield Text(f"{head}: not computed: {law.sobol_indices.reason}")


def _pass_conditions(plan: SweepPlan) -> str:
    """Return the conditions that a passing run meets."""
    within = "the arm stays within its ranges and speed limits"
    conditions = [] if plan.scenario.kind.leaves_limits else [within]
    conditions += ["no drive saturates"]
    conditions += [f"{quantity(name)} <= {figure(limit)}" for name, limit in plan.limits.items()]
    return (
        f"A run passes if {', '.join(conditions)} and, for an exact controller, it has rounding errors only"
    )


def _chosen_figure(plan: SweepPlan, laws: Sequence[Findings]) -> str:
    """Return the figure of importances and worst runs, and of several limits the reason for the choice."""
    name = laws[0].swept.figure
    reason = ""
    if plan.figure is None and len(plan.limits) > 1:
        beyond = sum(np.count_nonzero(~(law.swept.table[name] <= plan.limits[name])) for law in laws)
        reason = (
            f", whose limit most runs exceed: {beyond} of {plan.runs}" if beyond else ", nearest its limit"
        )
    return f"Importances and worst runs are of the {title(name)}{reason}"


def by_name(heads: Sequence[str], columns: Sequence[dict[str, str]], missing: str) -> Table:
    """Return a table with one row for every name in any column."""
    table = table_of("", numbers=heads)
    for name in dict.fromkeys(name for column in columns for name in column):
        table.add_row(Text(name), *(column.get(name, missing) for column in columns))
    return table


def _shares(laws: Sequence[Findings], heads: Sequence[str]) -> Table:
    table = table_of("", numbers=heads)

    def row(name: str, cell: Callable[[Findings], str | Text]) -> None:
        table.add_row(name, *(cell(law) for law in laws))

    row("with nominal values", lambda law: verdict(bool(law.swept.nominal["passes"])))
    row("of all runs", lambda law: percent(law.share.share))
    row("95 % confidence interval", lambda law: f"{percent(law.share.low)} to {percent(law.share.high)}")
    on_grid = [{(at.name, at.value): percent(at.share) for at in law.on_grid} for law in laws]
    for name, value in dict.fromkeys(point for shares in on_grid for point in shares):
        shares = (of_law.get((name, value), "") for of_law in on_grid)
        table.add_row(f"{name} = {figure(value)}", *shares)
    return table


def _spreads(laws: Sequence[Findings], heads: Sequence[str]) -> Table:
    """Return a row for each figure; the cell of a controller that lacks it stays empty."""

    def cell(spread: Spread) -> str:
        parts = [figure(value) for value in (spread.median, spread.most, spread.worst)]
        return f"{figure(spread.nominal)}; {' / '.join(f'{part:>8}' for part in parts)}"

    columns = [{quantity(one.figure, one.unit): cell(one) for one in law.spreads} for law in laws]
    return by_name(heads, columns, "")


def worst_report(found: Findings) -> Iterator[RenderableType]:
    """Yield the worst runs of a controller: inputs, result, result in PyBullet, and command."""
    swept = found.swept
    for place, case in enumerate(found.worst, start=1):
        values = ", ".join(f"{name} {figure(float(case.row[name]))}" for name in swept.names)
        yield Text.assemble((f"{swept.label}, worst {place}", "bold"), f" (sample {case.sample}): {values}")
        yield Text(
            f"  {_result(case, swept.figure)}; {_repetition(case, swept.in_engine)}",
            "" if case.agrees else "bold red",
        )
        yield Text(f"  {case.command}", "cyan")


def complaints(laws: Sequence[Findings], required: float | None = None) -> list[str]:
    """Return the reasons for exit status 1 of a finished sweep, one sentence each.

    Args:
        laws: the evaluation of each controller.
        required: required share of passing runs; `None` if none is required.
    """
    disagreeing = [
        f"PyBullet disagrees with sample {case.sample} of {law.swept.label}: {case.command}"
        for law in laws
        for case in law.worst
        if not case.agrees
    ]
    too_few = [
        f"{law.swept.label}: --require-share requires a share of at least {required:g}, but only "
        f"{law.share.low:.4f} is certain with 95 % confidence"
        for law in laws
        if required is not None and not law.share.low >= required
    ]
    return disagreeing + too_few


def total(plan: SweepPlan, seconds: float) -> str:
    """Return the last line: the number of runs, and their duration."""
    return f"\n{plan.runs} runs in {seconds:.1f} s"


def _result(case: WorstCase, of: str) -> str:
    row = case.row
    if row["trouble"]:
        return f"{TROUBLES[row['trouble']]} after {figure(row['duration'])} s"
    status = "passes" if row["passes"] else "fails" + (f" ({row['check']})" if row["check"] else "")
    worst = "" if of == "joint_error" else f"{quantity(of)} {figure(row[of])}, "
    where = f"of joint {row['joint_error_joint']} at {row['joint_error_time']:.4g} s"
    return f"{status}, {worst}largest joint error {figure(row['joint_error'])} {case.unit}, {where}"


def _repetition(case: WorstCase, in_engine: bool) -> str:
    """Return how the repetition in PyBullet ended; it proves nothing of a run that was in PyBullet itself."""
    if in_engine and case.agrees:
        return "this run was in PyBullet"
    return f"in PyBullet: {_engine_result(case)}"


def _engine_result(case: WorstCase) -> str:
    if not case.agrees:
        found = case.run.error or f"largest joint error {case.engine_error!r} {case.unit}"
        bound = f"differs by {figure(case.difference)} {case.unit}, rounding explains {figure(case.limit)}"
        return f"DISAGREES: {found}; {bound}"
    if case.ended_early:
        return "ends early, too"
    return f"agrees, difference {figure(case.difference)} {case.unit}"


MODEL = "model."


def rows_of(quantities: Iterable[Quantity]) -> list[tuple[str, str, str, str]]:
    """Return a row of name, nominal value, unit and meaning for each quantity, headings first.

    Args:
        quantities: quantities of all controllers; a name that several share has one row.
    """
    known = {one.name: one for one in quantities}
    rows = {"name": ("nominal", "unit", "")}
    of_model = []
    for name, one in known.items():
        if name.startswith(MODEL) and name.removeprefix(MODEL) in known:
            of_model.append(name.removeprefix(MODEL).partition(".")[0])
            continue
        of, _, axis = name.rpartition(".")
        if not axis.isdigit():
            rows[name] = figure(one.nominal), one.unit, one.meaning
        elif f"{of}.N" not in rows:
            rows[f"{of}.N"] = figure(one.nominal), one.unit, "of axis N only, counted from 1"
        else:
            rows[f"{of}.N"] = f"{rows[f'{of}.N'][0]}, {figure(one.nominal)}", *rows[f"{of}.N"][1:]
    if of_model:
        names = ", ".join(dict.fromkeys(of_model))
        rows[f"{MODEL}NAME"] = "", "", f"for names that begin with {names}: of the controller's model only"
    return [(name, *row) for name, row in rows.items()]


FORMAT = 2
"""Version of the JSON document; it changes if the meaning of an entry changes, not if an entry is added."""


def write_summary(path: Path, plan: SweepPlan, laws: Sequence[Findings]) -> None:
    """Write the plan of a sweep, and the results of each controller, as JSON.

    Args:
        path: path of the file.
        plan: the plan of the sweep.
        laws: the evaluation of each controller.
    """
    document = {
        "format": FORMAT,
        "provenance": provenance(),
        "scenario": plan.scenario.name,
        "varied": [{"name": one.name, "text": one.text} for one in plan.design.variations],
        "draws": plan.design.draws,
        "design": plan.design.kind,
        "seed": plan.design.seed,
        "limits": dict(plan.limits),
        "laws": list(map(law_document, laws)),
    }
    write_document(path, document)


def law_document(found: Findings) -> dict[str, Any]:
    """Return the evaluation of one controller for the JSON document."""
    swept = found.swept
    return {
        "controller": swept.setup.controller,
        "label": swept.label,
        "not_judged": swept.not_judged,
        "runs": len(swept.table),
        "nominal": _outcome(swept.nominal, swept.metrics),
        "pass_share": found.share._asdict(),
        "failed": dict(found.failed),
        "figures": [spread._asdict() for spread in found.spreads],
        "importance": {"of": swept.figure, "inputs": [row._asdict() for row in found.importance]},
        "sobol_indices": found.sobol_indices._asdict()
        | {"rows": [row._asdict() for row in found.sobol_indices.rows]},
        "share_on_grid": [at._asdict() for at in found.on_grid],
        "worst": [_case(case, swept) for case in found.worst],
    }


def _case(case: WorstCase, swept: Swept) -> dict[str, Any]:
    return {
        "sample": case.sample,
        "inputs": {name: case.row[name] for name in swept.names},
        "outcome": _outcome(case.row, swept.metrics),
        "repeat": case.command,
        "engine": {
            "error": case.run.error,
            "joint_error": case.engine_error,
            "apart": case.difference,
            "limit": case.limit,
            "agrees": case.agrees,
        },
    }


def _outcome(row: np.void, metrics: Iterable[str]) -> dict[str, Any]:
    names = [*(OUTCOME.names or ()), *metrics]
    return {name: row[name] for name in names} | {"trouble": TROUBLES[int(row["trouble"])]}

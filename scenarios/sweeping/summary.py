"""What a sweep has to say: as tables for the terminal, the laws side by side, and as JSON for programs."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from scenarios.report.report import table_of_laws, verdict
from scenarios.running.provenance import provenance
from scenarios.sweeping.execute import WorstCase
from scenarios.sweeping.findings import Findings, Swept, percent, quantity, title
from scenarios.sweeping.plan import Plan
from twin.formatting import figure, shorten
from twin.sweeps.robot_quantities import Quantity
from twin.sweeps.trial import OUTCOME, TROUBLES

NAMES, FIGURES = 24, 28
"""Characters of the first column, and of the figures of a law."""


def summary(plan: Plan, laws: Sequence[Findings], width: int) -> Iterator[RenderableType]:
    """Tables of a sweep.

    Args:
        plan: what was run.
        laws: what was found of each, under the same draws.
        width: of the page, in characters; laws that do not fit beside the others go below them.
    """
    yield Text.assemble("\n", (plan.scenario.name, "bold"), f": {plan.scenario.title}")
    words = [laws[0].swept.config.robot, plan.told(), f"{plan.design.kind} design, seed {plan.design.seed}"]
    yield Text(", ".join(words), "dim")
    varied = (f"{one.name}={one.text}" for one in plan.variations)
    yield Text(f"varied: {' '.join(varied)}", "dim")
    yield Text(f"{_what_holds(plan)}\n", "dim")
    heads = shorten([law.swept.label for law in laws], FIGURES - 2)
    abreast = max(1, (width - NAMES) // FIGURES)
    for start in range(0, len(laws), abreast):
        part = slice(start, start + abreast)
        yield from _tables(laws[part], heads[part])


def _tables(laws: Sequence[Findings], heads: Sequence[str]) -> Iterator[RenderableType]:
    yield "Runs that hold"
    yield _shares(laws, heads)
    if any(law.failed for law in laws):
        yield "Why runs do not hold, and how many (one may fail in several ways)"
        yield _by_name(heads, [{name: f"{count}" for name, count in law.failed} for law in laws], "0")
    yield "Figures: with nominal values; then median / 95 % of runs are below / worst"
    yield _spreads(laws, heads)
    yield (
        f"What the {title(laws[0].swept.figure)} depends on: the part of its scatter that an input "
        "explains by itself; its rank correlation, 1 where it grows along, -1 where it falls"
    )
    rows = [
        {row.name: f"{percent(row.explained)}; {row.correlation:+.2f}" for row in law.importance}
        for law in laws
    ]
    yield _by_name(heads, rows, "")


def _what_holds(plan: Plan) -> str:
    """What every run is judged by."""
    conditions = [] if plan.scenario.leaves_limits else ["the arm keeps its ranges and speed limits"]
    conditions += ["no drive is asked for more than it has"]
    conditions += [f"{quantity(name)} <= {figure(limit)}" for name, limit in plan.limits.items()]
    return f"A run holds if {', '.join(conditions)} and, where a law is exact, its error is rounding alone"


def _by_name(heads: Sequence[str], columns: Sequence[dict[str, str]], missing: str) -> Table:
    """A row for every name that any law has."""
    table = table_of_laws("", heads)
    for name in dict.fromkeys(name for column in columns for name in column):
        table.add_row(Text(name), *(column.get(name, missing) for column in columns))
    return table


def _shares(laws: Sequence[Findings], heads: Sequence[str]) -> Table:
    table = table_of_laws("", heads)

    def row(name: str, cell: Callable[[Findings], str | Text]) -> None:
        table.add_row(name, *(cell(law) for law in laws))

    row("with nominal values", lambda law: verdict(bool(law.swept.nominal["passes"])))
    row("of all runs", lambda law: percent(law.share.share))
    row("95 % interval of it", lambda law: f"{percent(law.share.low)} to {percent(law.share.high)}")
    for place, at in enumerate(laws[0].on_grid):
        row(f"{at.name} = {figure(at.value)}", lambda law, k=place: percent(law.on_grid[k].share))
    return table


def _spreads(laws: Sequence[Findings], heads: Sequence[str]) -> Table:
    table = table_of_laws("", heads)
    for place, spread in enumerate(laws[0].spreads):
        cells = []
        for law in laws:
            own = law.spreads[place]
            parts = [figure(value) for value in (own.median, own.most, own.worst)]
            cells.append(f"{figure(own.nominal)}; {' / '.join(f'{part:>8}' for part in parts)}")
        table.add_row(Text(quantity(spread.figure)), *cells)
    return table


def worst_report(swept: Swept, cases: Sequence[WorstCase]) -> Iterator[RenderableType]:
    """The worst runs of a law: values, what happened, what PyBullet says, and the command that repeats it."""
    for place, case in enumerate(cases, start=1):
        values = ", ".join(f"{name} {figure(float(case.row[name]))}" for name in swept.names)
        yield Text.assemble((f"{swept.label}, worst {place}", "bold"), f" (sample {case.sample}): {values}")
        yield Text(
            f"  {_happened(case, swept.figure)}; in PyBullet {_in_engine(case)}",
            "" if case.agrees else "bold red",
        )
        yield Text(f"  {case.command}", "cyan")


def complaints(
    laws: Sequence[Findings], worst: Sequence[Sequence[WorstCase]], required: float | None
) -> list[str]:
    """Why a sweep that was carried out ends with status 1, a sentence each.

    Args:
        laws: what was found of each.
        worst: the worst runs of each.
        required: share that has to hold; `None` where none has to.
    """
    unlike = [
        f"PyBullet disagrees with sample {case.sample} of {law.swept.label}: {case.command}"
        for law, cases in zip(laws, worst, strict=True)
        for case in cases
        if not case.agrees
    ]
    too_few = [
        f"{law.swept.label}: --require-share wants {required:g}, at least {law.share.low:.4f} of all hold"
        for law in laws
        if required is not None and not law.share.low >= required
    ]
    return unlike + too_few


def total(plan: Plan, seconds: float) -> str:
    """The last line: how many runs, in what time."""
    return f"\n{plan.runs} runs in {seconds:.1f} s"


def _happened(case: WorstCase, of: str) -> str:
    row = case.row
    if row["trouble"]:
        return f"{TROUBLES[row['trouble']]} after {figure(row['duration'])} s"
    kept = "passes" if row["passes"] else "does not hold"
    worst = "" if of == "joint_error" else f"{quantity(of)} {figure(row[of])}, "
    where = f"of joint {row['joint_error_joint']} at {row['joint_error_time']:.4g} s"
    return f"{kept}, {worst}largest joint error {figure(row['joint_error'])} {case.unit}, {where}"


def _in_engine(case: WorstCase) -> str:
    if not case.agrees:
        found = case.run.error or f"largest joint error {case.engine_error!r} {case.unit}"
        beside = f"{figure(case.apart)} {case.unit} apart, by rounding at most {figure(case.limit)}"
        return f"NOT SO: {found}; {beside}"
    if case.ended_early:
        return "it ends early, too"
    return f"{figure(case.apart)} {case.unit} apart"


MODEL = "model."


def rows_of(quantities: Iterable[Quantity]) -> list[tuple[str, str, str, str]]:
    """Name, nominal value, unit and meaning of each, headings first.

    Args:
        quantities: of all laws; those of one name are told once.
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
            rows[f"{of}.N"] = figure(one.nominal), one.unit, "of axis N alone, from 1"
        else:
            rows[f"{of}.N"] = f"{rows[f'{of}.N'][0]}, {figure(one.nominal)}", *rows[f"{of}.N"][1:]
    if of_model:
        names = ", ".join(dict.fromkeys(of_model))
        rows[f"{MODEL}NAME"] = "", "", f"what begins with {names}, of the controller's model alone"
    return [(name, *row) for name, row in rows.items()]


FORMAT = 2
"""Of the document; it changes when what was there means something else, not when something is added."""


def write_summary(
    path: Path, plan: Plan, laws: Sequence[Findings], worst: Sequence[Sequence[WorstCase]]
) -> None:
    """Write what was run, and of each law what `scenarios.sweeping.summary` prints.

    A number that is not finite is written as null: JSON has no word for it.

    Args:
        path: where to.
        plan: the sweep.
        laws: what was found of each law.
        worst: the worst cases of each.
    """
    document = {
        "format": FORMAT,
        "provenance": provenance(),
        "scenario": plan.scenario.name,
        "varied": [{"name": one.name, "text": one.text} for one in plan.variations],
        "draws": plan.design.draws,
        "design": plan.design.kind,
        "seed": plan.design.seed,
        "limits": dict(plan.limits),
        "laws": [law_document(found, cases) for found, cases in zip(laws, worst, strict=True)],
    }
    path.write_text(json.dumps(plain(document), indent=1, allow_nan=False) + "\n", encoding="utf-8")


def law_document(found: Findings, worst: Sequence[WorstCase]) -> dict[str, Any]:
    """What was found of one law."""
    swept = found.swept
    return {
        "controller": swept.config.controller,
        "label": swept.label,
        "runs": len(swept.table),
        "nominal": _outcome(swept.nominal),
        "pass_share": found.share._asdict(),
        "failed": dict(found.failed),
        "figures": [spread._asdict() for spread in found.spreads],
        "importance": {"of": swept.figure, "inputs": [row._asdict() for row in found.importance]},
        "share_on_grid": [at._asdict() for at in found.on_grid],
        "worst": [_case(case, swept.names) for case in worst],
    }


def _case(case: WorstCase, names: Sequence[str]) -> dict[str, Any]:
    return {
        "sample": case.sample,
        "inputs": {name: case.row[name] for name in names},
        "outcome": _outcome(case.row),
        "repeat": case.command,
        "engine": {
            "error": case.run.error,
            "joint_error": case.engine_error,
            "apart": case.apart,
            "limit": case.limit,
            "agrees": case.agrees,
        },
    }


def _outcome(row: np.void) -> dict[str, Any]:
    return {name: row[name] for name in OUTCOME.names or ()} | {"trouble": TROUBLES[int(row["trouble"])]}


def plain(value: Any) -> Any:
    """The same as JSON can have it."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value

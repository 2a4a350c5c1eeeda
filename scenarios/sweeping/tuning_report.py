"""What a tuning found: tables and sentences for the terminal, a file of gains, and all figures as JSON."""

import dataclasses
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

import controllers
from scenarios.base import Config
from scenarios.running.provenance import provenance
from scenarios.running.runs import Run, repeat_command
from scenarios.sweeping.findings import percent, quantity, title
from scenarios.sweeping.summary import law_document, plain
from scenarios.sweeping.tuning import DEFAULT, LAW, TUNED, Compared, Side, Task
from twin.errors import printable
from twin.formatting import figure
from twin.sweeps.tuning import Tuning

FIGURES = ("joint_error", "rms_error", "tool_error", "rms_torque")
"""Those that are told, besides the one that is minimised."""


def report(
    task: Task, tuning: Tuning, on_draws: Compared, on_fresh: Compared | None, sentences: Sequence[str]
) -> Iterator[RenderableType]:
    """Gains, what became of them, and what to think of it."""
    config = task.law.scenario.settings
    yield Text.assemble(
        "\n", (f"{config.controller} in {task.scenario.name}", "bold"), f": {task.scenario.title}"
    )
    yield from (Text(line, "dim") for line in told(task))
    yield ""
    yield _gains(task, tuning)
    draws = on_draws.plan.design.draws
    yield f"Under the {draws} draw{'s' * (draws != 1)} that they were tuned on: median / worst"
    yield _figures(on_draws, task.minimise, interval=False)
    if on_fresh is not None:
        design = on_fresh.plan.design
        yield f"Under {design.draws} fresh draws, of seed {design.seed}: median / worst"
        yield _figures(on_fresh, task.minimise, interval=True)
    yield from (Text(sentence) for sentence in sentences)


def told(task: Task) -> list[str]:
    """What was tuned, and for what, in lines."""
    config, design = task.law.scenario.settings, task.design
    varied = " ".join(f"{one.name}={one.text}" for one in design.variations) or "nothing"
    limits = "".join(f", {name} at most {value:g}" for name, value in task.limits.items())
    return [
        f"{config.robot}, {config.drives} drives, varied: {varied}",
        f"{design.draws} draws, {design.kind} design, seed {design.seed}",
        f"wanted: runs that hold{limits}, then the least {task.of} {quantity(task.minimise)}",
    ]


def _gains(task: Task, tuning: Tuning) -> Table:
    """What was searched, where, and what was found."""
    table = _table("searched", "from", "to", DEFAULT, TUNED)
    for gain, default, best in zip(tuning.gains, tuning.default.values, tuning.best.values, strict=True):
        name = gain.name.removeprefix(LAW)
        vector = isinstance(task.law.numbers[name], np.ndarray)
        words = [figure(value) for value in (gain.low, gain.high, default, best)]
        table.add_row(Text(name), *(f"{word} times" if vector else word for word in words))
    return table


def _figures(compared: Compared, minimised: str, *, interval: bool) -> Table:
    """Shares and figures of both gains."""
    sides = compared.default, compared.tuned
    table = _table("", DEFAULT, TUNED)
    table.add_row("runs that hold", *(percent(side.found.share.share) for side in sides))
    if interval:
        ends = [(side.found.share.low, side.found.share.high) for side in sides]
        table.add_row("95 % interval of it", *(f"{percent(low)} to {percent(high)}" for low, high in ends))
    for name in dict.fromkeys((minimised, *FIGURES)):
        cells = [_spread(side, name) for side in sides]
        if all(cells):
            table.add_row(Text(quantity(name)), *cells)
    return table


def _spread(side: Side, name: str) -> str:
    """`0.012 /    0.034`; empty where nobody asked for the figure."""
    for one in side.found.spreads:
        if one.figure == name:
            return f"{figure(one.median)} / {figure(one.worst):>8}"
    return ""


def _table(first: str, *heads: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, overflow="fold")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    return table


WORTH = 0.01
"""Relative improvement of the figure below which tuning does not help."""

ROUNDING = 1e-10
"""Errors below it are rounding, in [rad] and [m]."""


def conclusions(task: Task, tuning: Tuning, on_draws: Compared, on_fresh: Compared | None) -> Iterator[str]:
    """Sentences for a person: what was gained, and what is wrong with it.

    Args:
        task: what was tuned.
        tuning: what was found.
        on_draws: both gains under the draws that were tuned on.
        on_fresh: the same under fresh draws, if anything is random.
    """
    judged = on_fresh or on_draws
    where = "on fresh draws" if on_fresh else "here, where nothing is random"
    yield from _gain(task, judged, where, on_draws)
    if not helps(judged.default, judged.tuned):
        yield from _instead(task, tuning, on_draws.default)
    yield from _failing(tuning, on_draws, on_fresh)
    for gain, end in tuning.at_ends:
        name = gain.name.removeprefix(LAW)
        yield (
            f"{name} ends at an end of its range, {end:g}: more may be gained beyond it (--gains "
            f"{name}={gain.low / (10 if end == gain.low else 1):g}:"
            f"{gain.high * (10 if end == gain.high else 1):g}), or the scenario has nothing that speaks "
            "against such gains, as noise or a delay does."
        )
    if not tuning.settled:
        yield (
            f"The search had not settled after {tuning.evaluations} sets of gains: more --evaluations may "
            "find better ones."
        )


def helps(default: Side, tuned: Side, least: float = WORTH) -> bool:
    """Whether fewer runs fail with tuned gains, or as many and the figure is less by more than that part."""
    if tuned.failing != default.failing:
        return tuned.failing < default.failing
    return tuned.figure < default.figure * (1.0 - least)


def _gain(task: Task, judged: Compared, where: str, on_draws: Compared) -> Iterator[str]:
    """What tuned gains are better or worse by."""
    default, tuned = judged.default, judged.tuned
    what = f"{task.of} {title(task.minimise)}"
    unit = quantity(task.minimise).removeprefix(title(task.minimise)).strip(" []")
    runs = len(tuned.found.swept.table)
    fail = f"{tuned.failing} instead of {default.failing} of {runs} fail"
    values = f"{figure(tuned.figure)} instead of {figure(default.figure)} {unit}".strip()
    if task.minimise.endswith("error") and default.failing == 0 and default.figure < ROUNDING:
        yield f"With default gains the {what} is rounding: tuning does not help."
    elif not helps(default, tuned):
        if helps(on_draws.default, on_draws.tuned):
            yield (
                "Tuning does not help: tuned gains are better under the draws that they were tuned on, "
                f"{where} they are not ({fail}, {what} {values}); more "
                "--samples tell more of what may come."
            )
        else:
            yield (
                f"Tuning does not help: no gains were found that are better than the default ones ({where} "
                f"{fail}, {what} {values})."
            )
    elif tuned.failing < default.failing:
        yield (
            f"Tuning helps: {where} {percent(tuned.found.share.share)} of the runs hold instead of "
            f"{percent(default.found.share.share)}; {what} {values}."
        )
    else:
        part = f", {tuned.figure / default.figure:.2g} of it" if 0 < default.figure < float("inf") else ""
        yield f"Tuning helps: {where} the {what} is {values}{part}."


def _instead(task: Task, tuning: Tuning, default: Side) -> Iterator[str]:
    """What else could be searched, if default gains do otherwise than the same ones would in all draws."""
    derived = (tuning.default.failing, tuning.default.figure) != (default.failing, default.figure)
    if derived and "bandwidth" in task.law.numbers:
        yield (
            "Tuned gains are the same in all draws, while the law derives its default ones anew from what it "
            "is told in each: --gains bandwidth goes on with that."
        )


def _failing(tuning: Tuning, on_draws: Compared, on_fresh: Compared | None) -> Iterator[str]:
    """Whether tuned gains hold."""
    runs = len(on_draws.tuned.found.swept.table)
    failing = on_draws.tuned.failing
    if failing == runs:
        yield f"No gains that were tried hold for any of the {runs} runs that they were tuned on."
    elif failing:
        yield (
            f"No gains that were tried hold for all of the {runs} runs that they were tuned on: the tuned "
            f"ones fail in {failing}."
        )
    if on_fresh is None:
        return
    share, fresh = on_fresh.tuned.found.share, on_fresh.tuned
    if not failing and fresh.failing:
        yield (
            f"Tuned gains hold for all draws that they were tuned on, and fail in {fresh.failing} of "
            f"{len(fresh.found.swept.table)} fresh runs: tune on more --samples."
        )
    if share.share > 0:
        yield f"They hold in at least {percent(share.low)} of all draws, with 95 % confidence."


FORMAT = 2
"""Of the JSON document; it changes when what was there means something else."""


def command(task: Task, tuning: Tuning, file: Path | None) -> str:
    """What runs the scenario with the tuned gains, from the file if there is one."""
    config = task.law.config(tuning.values)
    if file is None:
        return repeat_command(_run(task, config))
    words = repeat_command(_run(task, dataclasses.replace(config, law_settings=())))
    return f"{words} --settings {shlex.quote(str(file))}"


def write_gains(path: Path, task: Task, tuning: Tuning, file: Path, sentences: Sequence[str]) -> None:
    """Write the law's settings with the tuned gains, and in comments what they were tuned for.

    Args:
        path: where to, at first.
        task: what was tuned.
        tuning: what was found.
        file: the name that it will have.
        sentences: what it came to.
    """
    config = task.law.config(tuning.values)
    comments = [
        f"Gains of {config.controller}, tuned by irb-twin tune for {task.scenario.name}",
        *told(task),
        *sentences,
        command(task, tuning, file),
    ]
    label = controllers.label(config.controller)
    lines = [f"# {printable(line)}" for line in comments]
    lines += ["", f"[{label if re.fullmatch('[A-Za-z0-9_-]+', label) else json.dumps(label)}]"]
    lines += [f"{name} = {_value(value)}" for name, value in config.law_settings]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_figures(
    path: Path,
    task: Task,
    tuning: Tuning,
    on_draws: Compared,
    on_fresh: Compared | None,
    sentences: Sequence[str],
) -> None:
    """Write what was tuned, what was found, and all figures of both gains; what is not finite as null."""
    config = task.law.config(tuning.values)
    document = {
        "format": FORMAT,
        "provenance": provenance(),
        "scenario": task.scenario.name,
        "controller": config.controller,
        "varied": [{"name": one.name, "text": one.text} for one in task.design.variations],
        "limits": task.limits,
        "minimised": {"figure": task.minimise, "of": task.of},
        "gains": [
            gain._asdict() | {"default": default, "tuned": best}
            for gain, default, best in zip(
                tuning.gains, tuning.default.values, tuning.best.values, strict=True
            )
        ],
        "settings": dict(config.law_settings),
        "evaluations": tuning.evaluations,
        "settled": tuning.settled,
        "at_ends": [gain.name for gain, _ in tuning.at_ends],
        "tuned_on": _compared(on_draws),
        "fresh": None if on_fresh is None else _compared(on_fresh),
        "conclusions": list(sentences),
        "command": command(task, tuning, None),
    }
    path.write_text(json.dumps(plain(document), indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _compared(compared: Compared) -> dict[str, Any]:
    design = compared.plan.design
    return {
        "draws": design.draws,
        "design": design.kind,
        "seed": design.seed,
        "default": _side(compared.default),
        "tuned": _side(compared.tuned),
    }


def _side(side: Side) -> dict[str, Any]:
    return law_document(side.found, side.worst) | {"failing": side.failing, "minimised": side.figure}


def _run(task: Task, config: Config) -> Run:
    """A run that was not carried out, for its command."""
    return Run(task.scenario.name, config, None, (), 0.0, file=task.scenario.file)


def _value(value: Any) -> str:
    """A setting in TOML."""
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value) if isinstance(value, (bool, str)) else repr(value)

"""The files of a tuning: gains that `irb-twin run --settings` reads, and every figure as JSON."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import controllers
from scenarios.running.provenance import provenance
from scenarios.running.repeat import repeat_command
from scenarios.running.runs import Run
from scenarios.sweeping.summary_file import law_document, plain
from scenarios.tuning.report import told
from twin.errors import printable

if TYPE_CHECKING:
    from scenarios.base import Config
    from scenarios.tuning.comparison import Compared, Side, Task
    from twin.sweeps.tuning import Tuning

FORMAT = 1
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

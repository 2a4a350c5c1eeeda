"""The command line that repeats one run alone."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.cli.arguments import fields, flag
from scenarios.running import registry
from twin.own_code import announced

if TYPE_CHECKING:
    from scenarios.running.runs import Run


def repeat_command(run: Run) -> str:
    """The `irb-twin run` command of one run: scenario, controller, and every setting that is not a default.

    Files are named as they were, relative to the current folder; words are quoted for a POSIX shell.
    """
    words = [
        "irb-twin",
        "run",
        scenario_word(run.file, run.scenario),
        *_option("--controller", run.config.controller),
    ]
    for name, item in fields(type(run.config)).items():
        value = getattr(run.config, name)
        if name == "controller" or value == item.default:
            continue
        if isinstance(value, bool):
            words.append(flag(name) if value else flag(name).replace("--", "--no-", 1))
        elif value is not None:  # which no option can say
            words += _option(flag(name), _text(value))
    if run.config.law_settings:
        words += ["--set", *(f"{name}={_text(value)}" for name, value in run.config.law_settings)]
    if run.config.changes:
        words += ["--with", *(f"{name}={_text(value)}" for name, value in run.config.changes)]
    if run.config.limits:
        words += ["--limit", *(f"{name}={_text(value)}" for name, value in run.config.limits)]
    return shlex.join(words)


def scenario_word(path: str, name: str) -> str:
    """What to call a scenario on the command line: its name, or the path of somebody's own file."""
    file = Path(path)
    if file.suffix != ".py":  # it was not loaded, or has none
        return path or name
    if file.resolve().parent == registry.HERE:
        return file.stem  # the name in the report may have its folder's before it
    for name, entry in announced(registry.GROUP).items():
        if getattr(sys.modules.get(entry.value), "__file__", None) == path:
            return name
    near = os.path.relpath(file)
    return str(file) if near.startswith("..") else near if not near.startswith("-") else f"./{near}"


def _option(name: str, text: str) -> list[str]:
    """An option and its value; one that begins with a dash is no option of its own."""
    return [f"{name}={text}"] if text.startswith("-") else [name, text]


def _text(value: Any) -> str:
    """A value as it is typed: numbers with all their digits, several with commas between."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return ",".join(_text(part) for part in value)
    return repr(value)

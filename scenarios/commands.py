"""What the commands of `irb-twin` do, once `scenarios/command_line.py` has understood the words.

Each takes the parsed options and the scenarios that were named, prints, and returns the exit status.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import controllers
from scenarios import options, registry
from scenarios.options import WrongUse
from scenarios.output import apart, writable
from scenarios.validation import planned

if TYPE_CHECKING:
    from rich.console import Console

    from scenarios.registry import Scenario
    from scenarios.runs import Run


def show_list(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`list`: what there is, a line each."""
    from rich.table import Table

    import twin
    from twin.loading import robot_title

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    laws = [(name, (controllers.law(name).__doc__ or "").partition("\n")[0]) for name in controllers.NAMES]
    for heading, rows in (
        ("robots", [(name, robot_title(name)) for name in twin.robot_names()]),
        ("laboratory", [(name, robot_title(name)) for name in twin.laboratory_names()]),
        ("controllers", laws),
        ("scenarios", list(registry.titles().items())),
    ):
        for place, (name, title) in enumerate(rows):
            table.add_row(f"[bold]{heading}[/]" if place == 0 else "", name, title)
    _console().print(table)
    return 0


def run(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`run`: the named scenarios, controllers side by side."""
    if not scenarios:
        known = ", ".join(registry.titles())
        raise WrongUse(f"name at least one scenario, before any option: known are {known}")
    plan = [
        (scenario, config)
        for scenario in scenarios
        for config in options.configs(vars(given), scenario.Config, given.controller)
    ]
    for path, suffix, option in (
        (given.log, ".npz", "--log"),
        (given.picture, ".png", "--picture"),
        (given.json, ".json", "--json"),
    ):
        if path is not None:
            writable(path, suffix, option)

    from scenarios.progress import shown
    from scenarios.report import scenario_report, total
    from scenarios.runs import carry_out

    runs: list[Run] = []
    with shown(len(plan)) as begin:
        for scenario, config in plan:
            step = begin(f"{scenario.name}, {config.controller}")
            runs.append(carry_out(scenario, config, step))
    written = _write(given, runs)  # before anything is printed: a reader may hang up
    console = _console()
    for scenario in scenarios:
        done = [run for run in runs if run.scenario == scenario.name]
        console.print(*scenario_report(scenario.title, done, console.width), sep="\n")
    console.print(total(runs))
    _name(written, console)
    return 0 if all(run.holds for run in runs) else 1


def _write(given: argparse.Namespace, runs: list[Run]) -> list[Path]:
    """Write the files that were asked for, and name them."""
    logged = [(run, run.log) for run in runs if run.log is not None]
    names = list(dict.fromkeys(run.scenario for run, _ in logged))
    written = []
    if given.log:
        for run, log in logged:
            words = () if len(runs) == 1 else (run.scenario, run.config.controller)
            written.append(apart(given.log, *words))
            log.save(written[-1])
    if given.picture:
        from scenarios.picture import draw

        for name in names:
            written.append(given.picture if len(names) == 1 else apart(given.picture, name))
            draw([run for run, _ in logged if run.scenario == name], written[-1])
    if given.json:
        from scenarios.results_file import write_json

        write_json(runs, given.json)
        written.append(given.json)
    return written


def validate(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`validate`: every scenario with every robot, and the ledger; every limit checked."""
    import twin

    if given.junit:
        writable(given.junit, ".xml", "--junit")
    if given.json:
        writable(given.json, ".json", "--json")
    plan = planned(given.robot or twin.robot_names())  # wrong use if there is none of that name

    from scenarios.ledger.items import items
    from scenarios.ledger.report import faults
    from scenarios.ledger.report import total as ledger_total
    from scenarios.ledger.rows import rows
    from scenarios.progress import shown
    from scenarios.report import validation_report
    from scenarios.results_file import write_json, write_junit
    from scenarios.runs import carry_out_regardless

    runs = []
    ledger = [] if given.robot else items()  # the ledger is about no robot in particular
    with shown(len(plan) + len(ledger)) as begin:
        for scenario, config in plan:
            begin(f"{config.robot}, {scenario.name}, {config.controller}")
            runs.append(carry_out_regardless(scenario, config))
        published = []
        for item in ledger:
            begin(f"{item.id}, {item.what}")
            published += rows([item])
    written = []
    for path, write in ((given.junit, write_junit), (given.json, write_json)):
        if path:
            write(runs, path, published)
            written.append(path)
    console = _console()
    console.print(*validation_report(runs), sep="\n")
    if published:
        console.print(*faults(published), ledger_total(published), sep="\n")
    _name(written, console)
    return 0 if all(run.holds for run in runs) and all(row.holds for row in published) else 1


def published(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`published`: every published number and equation, computed now."""
    from scenarios.ledger import report
    from scenarios.ledger.items import chosen
    from scenarios.ledger.rows import rows
    from scenarios.progress import shown

    wanted = chosen(given.source, given.id)
    for path, suffix, option in (
        (given.json, ".json", "--json"),
        (given.markdown, ".md", "--markdown"),
    ):
        if path is not None:
            writable(path, suffix, option)
    found = []
    with shown(len(wanted)) as begin:
        for item in wanted:
            begin(f"{item.id}, {item.what}")
            found += rows([item])
    written = []
    for path, write in ((given.json, report.write_json), (given.markdown, report.write_markdown)):
        if path is not None:
            write(found, path)
            written.append(path)
    console = _console()
    console.print(*report.ledger_report(found, details=len(found) <= report.DETAILED), sep="\n")
    _name(written, console)
    return 0 if all(row.holds for row in found) else 1


def show_formulas(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`formulas`: equations of motion as text."""
    from twin.symbolic_models import formulas

    _console().print(formulas(given.model), highlight=False, markup=False, soft_wrap=True)
    return 0


def check_model(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`check-model`: a robot file looked over."""
    if given.json:
        writable(given.json, ".json", "--json")

    from scenarios.check_model import Report

    report = Report(given.file)
    if given.json:
        report.write_json(given.json)
    console = _console()
    console.print(*report.tables(), sep="\n", highlight=False)
    _name([given.json] if given.json else [], console)
    return 0 if report.holds else 1


def _name(written: list[Path], console: Console) -> None:
    """Name the files that were written."""
    for path in written:
        console.print(f"wrote {path}", highlight=False, soft_wrap=True)


def _console() -> Console:
    """Standard output; 100 columns where it is not a terminal, unless COLUMNS says otherwise."""
    from rich.console import Console

    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=100) if piped else Console()

"""What the commands of `irb-twin` do, once `scenarios/commands/command_line.py` has understood the words.

Each takes the parsed options and the scenarios that were named, prints, and returns the exit status.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import controllers
from scenarios.base import Config
from scenarios.commands.output import Files, apart, complain, console, writable
from scenarios.running import options, registry
from scenarios.running.faults import ScenarioError, is_interrupt, told, told_with_place
from scenarios.running.options import WrongUse
from scenarios.running.validation import planned
from twin.errors import TwinError

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario
    from scenarios.running.runs import Run


def show_list(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`list`: what there is, a line each."""
    from rich.table import Table
    from rich.text import Text

    import twin
    from twin.loading.loading import robot_title

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    scenario_titles = registry.titles()
    for heading, names, title in (
        ("robots", twin.robot_names(), robot_title),
        ("laboratory", twin.laboratory_names(), robot_title),
        ("controllers", controllers.NAMES, controllers.title),
        ("scenarios", scenario_titles, scenario_titles.__getitem__),
    ):
        for place, name in enumerate(names):
            table.add_row(Text(heading if place == 0 else "", "bold"), name, _or_fault(title, name))
    console().print(table)
    return 0


def _or_fault(title: Callable[[str], str], name: str) -> str:
    """The title of something, or why it has none: the rest of the list stands."""
    try:
        return title(name)
    except BaseException as error:
        if is_interrupt(error):
            raise
        return f"cannot be loaded: {told(error)}"


def run(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`run`: the named scenarios, controllers side by side."""
    if not scenarios:
        known = ", ".join(registry.titles())
        raise WrongUse(f"name at least one scenario, before any option: known are {known}")
    plan = [run for scenario in scenarios for run in _runs(given, scenario)]
    for path, suffix, option in (
        (given.log, ".npz", "--log"),
        (given.picture, ".png", "--picture"),
        (given.json, ".json", "--json"),
    ):
        if path is not None:
            writable(path, suffix, option)

    from scenarios.commands.progress import shown
    from scenarios.reports.report import scenario_report, total
    from scenarios.running.runs import carry_out

    runs: list[Run] = []
    with shown(len(plan)) as begin:
        for scenario, config in plan:
            step = begin(f"{scenario.name}, {config.controller}")
            runs.append(carry_out(scenario, config, step))
    files = _written(given, runs, scenarios)  # before anything is printed: a reader may hang up
    if all(run.refused for run in runs):
        for sentence in dict.fromkeys(str(run.error) for run in runs):
            complain(sentence)
        files.name(console())
        return 2
    page = console()
    for scenario in scenarios:
        done = [run for run in runs if run.scenario == scenario.name]
        page.print(*scenario_report(scenario.title, done, page.width), sep="\n")
    page.print(total(runs))
    complete = files.name(page)
    return 0 if complete and all(run.holds for run in runs) else 1


def _runs(given: argparse.Namespace, scenario: Scenario) -> list[tuple[Scenario, Config]]:
    """The runs of one scenario, one a controller; one that fails if the code of its settings does."""
    if scenario.fault is None:
        try:
            laws = given.controller or list(scenario.side_by_side)
            configs = options.configs(vars(given), scenario.Config, laws)
            return [(scenario, config) for config in configs]
        except (TwinError, ValueError):  # wrong use
            raise
        except BaseException as error:
            if is_interrupt(error):
                raise
            scenario = registry.failing(scenario, ScenarioError(told_with_place(error, scenario.file)))
    return [(scenario, Config())]


def _written(given: argparse.Namespace, runs: list[Run], scenarios: list[Scenario]) -> Files:
    """Write the files that were asked for."""
    files = Files()
    logged = [(run, run.log) for run in runs if run.log is not None]
    names = list(dict.fromkeys(run.scenario for run, _ in logged))
    if given.log:
        for run, log in logged:
            words = () if len(runs) == 1 else (run.scenario, run.config.controller)
            files.write(apart(given.log, *words), log.save)
    if given.picture:
        from scenarios.reports.picture import draw

        for name in names:
            members = [run for run, _ in logged if run.scenario == name]
            path = given.picture if len(names) == 1 else apart(given.picture, name)
            own = next(scenario.picture for scenario in scenarios if scenario.name == name)
            logs = [log for run, log in logged if run.scenario == name]
            files.write(path, partial(own, logs) if own else partial(draw, members))
    if given.json:
        from scenarios.reports.results_file import write_json

        files.write(given.json, partial(write_json, runs))
    return files


def validate(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`validate`: every scenario with every robot, and the ledger; every limit checked."""
    import twin

    if given.junit:
        writable(given.junit, ".xml", "--junit")
    if given.json:
        writable(given.json, ".json", "--json")
    plan = planned(given.robot or twin.robot_names())  # wrong use if there is none of that name

    from scenarios.commands.progress import shown
    from scenarios.ledger.items import items
    from scenarios.ledger.rows import rows
    from scenarios.reports.ledger_report import faults
    from scenarios.reports.ledger_report import total as ledger_total
    from scenarios.reports.report import validation_report
    from scenarios.reports.results_file import write_json, write_junit
    from scenarios.running.runs import carry_out

    runs = []
    ledger = [] if given.robot else items()  # the ledger is about no robot in particular
    with shown(len(plan) + len(ledger)) as begin:
        for scenario, config in plan:
            begin(f"{config.robot}, {scenario.name}, {config.controller}")
            runs.append(carry_out(scenario, config))
        published = []
        for item in ledger:
            begin(f"{item.id}, {item.what}")
            published += rows([item])
    files = Files()
    for path, write in ((given.junit, write_junit), (given.json, write_json)):
        files.write(path, partial(write, runs, published=published))
    page = console()
    page.print(*validation_report(runs), sep="\n")
    if published:
        page.print(*faults(published), ledger_total(published), sep="\n")
    complete = files.name(page)
    return 0 if complete and all(one.holds for one in (*runs, *published)) else 1


def published(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`published`: every published number and equation, computed now."""
    from scenarios.commands.progress import shown
    from scenarios.ledger.items import chosen
    from scenarios.ledger.rows import rows
    from scenarios.reports import ledger_report as report

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
    files = Files()
    files.write(given.json, partial(report.write_json, found))
    files.write(given.markdown, partial(report.write_markdown, found))
    page = console()
    page.print(*report.ledger_report(found, details=len(found) <= report.DETAILED), sep="\n")
    complete = files.name(page)
    return 0 if complete and all(row.holds for row in found) else 1


def show_formulas(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`formulas`: equations of motion as text."""
    from twin.dynamics.symbolic.models import formulas

    console().print(formulas(given.model), highlight=False, soft_wrap=True)
    return 0


def check_model(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`check-model`: a robot file looked over."""
    if given.json:
        writable(given.json, ".json", "--json")

    from scenarios.commands.check_model import Report

    report = Report(given.file)
    files = Files()
    files.write(given.json, report.write_json)
    page = console()
    page.print(*report.tables(), sep="\n", highlight=False)
    complete = files.name(page)
    return 0 if complete and report.holds else 1

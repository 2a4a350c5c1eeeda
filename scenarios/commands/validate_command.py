"""`irb-twin validate`: scenarios with robots and controllers, without a window, and every limit checked."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import controllers
from scenarios.base import Config
from scenarios.commands.sweep_options import add_limits, chosen_limits
from scenarios.console.output import Files, complain, console, writable
from scenarios.running import law_settings, options, registry
from scenarios.running.options import WrongUse

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario
    from scenarios.running.runs import Run
    from scenarios.running.validation import Plan

EXAMPLES = """examples:
  irb-twin validate                                                  everything that there is
  irb-twin validate ./reach.py --controller ./law.py:SlidingMode     your scenario with your law
  irb-twin validate joint_tracking --robot my_arm.urdf               your robot, all laws
  irb-twin validate --drives rigid --only irb140 --jobs 4
  irb-twin validate --junit results.xml --markdown summary.md --json results.json
  irb-twin validate --baseline results.json                          what got worse since then
"""
FILES = (("junit", ".xml"), ("json", ".json"), ("markdown", ".md"))
BESIDES = ("robot", "controller", "gui", "close_window")
"""Settings of every scenario that are no options here, or take several values."""


def add_parser(parsers: Any, scenarios: list[Scenario]) -> None:
    """Add the command to the command line, with the settings of the scenarios that were named."""
    parser = parsers.add_parser(
        "validate",
        help="run scenarios with robots and controllers, without a window, and check every limit",
        usage="irb-twin validate [SCENARIO ...] [options]",
        description="Run scenarios with every robot that suits them and every controller, and the variants "
        "that a scenario names, and check every limit. Without names and settings: all scenarios of this "
        "project. Exit status: 0 every check passes or has no limit; 1 one fails, "
        "is undetermined under a limit or was not computed, a file could not be written, or something got "
        "worse than the baseline; 2 wrong use.",
        epilog=EXAMPLES,
    )
    parser.set_defaults(parser=parser, carry_out=validate)
    parser.add_argument(
        "scenarios",
        nargs="*",
        metavar="SCENARIO",
        help=f"{', '.join(registry.titles())}, or a .py file of your own; before any option (default all)",
    )
    parser.add_argument(
        "--robot",
        nargs="+",
        default=[],
        metavar="NAME",
        help="names of robots or paths of their files (default: all arms, or the one a scenario is about)",
    )
    parser.add_argument(
        "--controller",
        nargs="+",
        default=[],
        metavar="NAME",
        help="control laws (default all of this project); a variant runs if its law is among them",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="TEXT",
        help="only runs with one of these texts in `robot, scenario, controller, settings`, as the table has "
        "them; * and ? stand for other signs",
    )
    parser.add_argument(
        "--jobs",
        type=options.count,
        default=None,
        metavar="N",
        help="processes to share the runs (default: the cores)",
    )
    add_limits(parser)
    files = parser.add_argument_group("files")
    files.add_argument("--junit", type=Path, metavar="FILE.xml", help="write the checks as JUnit XML")
    files.add_argument("--json", type=Path, metavar="FILE.json", help="write every figure")
    files.add_argument(
        "--markdown", type=Path, metavar="FILE.md", help="write a summary for the page of a CI"
    )
    files.add_argument(
        "--baseline", type=Path, metavar="FILE.json", help="compare with results that --json wrote earlier"
    )
    files.add_argument(
        "--grown",
        type=_factor,
        default=None,
        metavar="FACTOR",
        help="a figure has grown if it is more than so many times that of the baseline (default 1.1)",
    )
    files.add_argument("--grown-fails", action="store_true", help="such a figure makes the exit status 1")
    options.add(parser, {scenario.name: scenario.Config for scenario in scenarios}, BESIDES)


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 1.0 <= factor < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number of 1 or more, got {text!r}")
    return factor


def validate(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`validate`: plan the runs, carry them out, write the files, and tell what holds."""
    for name, suffix in FILES:
        if path := getattr(given, name):
            writable(path, suffix, f"--{name}")

    from scenarios.reports import baseline as baselines
    from scenarios.reports import files as writers
    from scenarios.reports.report import validation_report, validation_total
    from scenarios.reports.results import Results

    before = baselines.read_baseline(given.baseline) if given.baseline else None
    factor = given.grown or baselines.GROWN
    plan = _planned(given, scenarios)
    start = time.monotonic()
    runs, jobs = _carried_out(given, plan)
    seconds = time.monotonic() - start
    selection = _selection(given, scenarios)
    comparison = baselines.compare(runs, before, selection, factor) if before else None
    results = Results(runs, selection, comparison, _unsuited(plan.unsuited))
    files = Files()  # before anything is printed: a reader may hang up
    for path, write in (
        (given.junit, writers.write_junit),
        (given.json, writers.write_json),
        (given.markdown, writers.write_markdown),
    ):
        files.write(path, partial(write, results))
    if all(run.refused for run in runs):
        for sentence in dict.fromkeys(str(run.error) for run in runs):
            complain(sentence)
        files.name(console())
        return 2
    page = console()
    page.print(*validation_report(results), sep="\n")
    page.print(validation_total(results, seconds, jobs), style="bold")
    complete = files.name(page)
    worse = comparison is not None and (comparison.worse or (given.grown_fails and comparison.grown))
    return 0 if complete and not worse and results.holds else 1


def _planned(given: argparse.Namespace, scenarios: list[Scenario]) -> Plan:
    """What the command line asks for.

    Raises:
        WrongUse: that is nothing.
    """
    from scenarios.running.runs import run_name
    from scenarios.running.validation import Asked, matches, planned

    settings = _settings(given, scenarios)
    own_settings = law_settings.chosen(given.set, given.settings, given.controller or controllers.NAMES)
    plan = planned(given.robot, scenarios, Asked(given.controller, settings, own_settings))
    if limits := chosen_limits(given.limit):
        plan = replace(plan, runs=tuple((one, replace(config, limits=limits)) for one, config in plan.runs))
    if not plan.runs:
        raise WrongUse(f"nothing to run: {_unsuited(plan.unsuited)}")
    if given.only:
        names = [run_name(scenario.name, config) for scenario, config in plan.runs]
        chosen = [run for run, name in zip(plan.runs, names, strict=True) if matches(name, given.only)]
        plan = replace(plan, runs=tuple(chosen), unsuited=())
        if not chosen:
            raise WrongUse(
                f"--only {' '.join(given.only)}: none of {len(names)} runs has that in its name; "
                f"they are called as {names[0]!r}"
            )
    return plan


def _unsuited(unsuited: Sequence[tuple[str, str]]) -> str:
    """What was not run, and why; empty if there is nothing of the kind."""
    scenarios: dict[str, list[str]] = {}
    for scenario, robot in unsuited:
        scenarios.setdefault(robot, []).append(scenario)
    lists = [f"with {robot} {', '.join(names)}" for robot, names in scenarios.items()]
    return f"not run, as they say that they do not suit the robot: {'; '.join(lists)}" if lists else ""


def _settings(given: argparse.Namespace, scenarios: list[Scenario]) -> dict[str, Any]:
    """The settings of scenarios that were given."""
    known = {name for scenario in scenarios for name in options.fields(scenario.Config)}
    known |= options.fields(Config).keys()
    return {name: value for name, value in vars(given).items() if name in known - set(BESIDES)}


def _selection(given: argparse.Namespace, scenarios: list[Scenario]) -> dict[str, Any]:
    """What was asked for, as results keep it."""
    return {
        "scenarios": [scenario.name for scenario in scenarios],
        "robots": list(given.robot),
        "controllers": list(given.controller),
        "only": list(given.only),
        "settings": {name: str(value) for name, value in sorted(_settings(given, scenarios).items())},
        "law_settings": [*given.set, *([str(given.settings)] if given.settings else [])],
    }


def _carried_out(given: argparse.Namespace, plan: Plan) -> tuple[list[Run], int]:
    """What came of every run, and in how many processes."""
    from scenarios.console.progress import tallied
    from scenarios.running.runs import run_name
    from scenarios.running.workers import carried_out
    from twin.threads import thread_count

    jobs = min(given.jobs or thread_count(), len(plan.runs))
    titles = [run_name(scenario.name, config) for scenario, config in plan.runs]
    labels = controllers.labels(config.controller for _, config in plan.runs)
    with tallied(titles) as tally:
        runs = carried_out(plan.runs, jobs, tally.begun, tally.done)
    return [replace(run, label=labels[run.config.controller]) for run in runs], jobs

"""`irb-twin run`: scenarios carried out, controllers side by side."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import controllers
from scenarios.base import Config
from scenarios.commands.on_logs.replay_command import film_writable, write_film
from scenarios.commands.sweep_options import add_limits, chosen_limits
from scenarios.console.output import Files, apart, complain, console, writable
from scenarios.running import options, registry
from scenarios.running.options import WrongUse
from twin.errors import OwnCodeError, TwinError, is_interrupt, told_with_place
from twin.own_code import announced

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario
    from scenarios.running.runs import Run

EXAMPLES = """examples:
  irb-twin run {0} --controller computed_torque pd
  irb-twin run {0} --controller computed_torque ./my.py:Law --set Law.gain=3
  irb-twin run {0} --controller pid --bandwidth 30 --explain
  irb-twin run {0} --controller ./my.py:Law --limit joint_error=0.05
  irb-twin run {0} --picture error.png --log run.npz --json results.json
  irb-twin run {0} --report report.html
  irb-twin run {0} --controller computed_torque pd --film motion.gif
  irb-twin run {0} --drives rigid --model-drives ideal
  irb-twin run {0} --with mass=1.1 drives.coulomb=1.3 --drives rigid
  irb-twin run {0} --gui
"""
OTHERS = """  irb-twin run gravity_hold joint_tracking --controller pid
  irb-twin run ./my_scenario.py --help
"""


def add_parser(parsers: Any, scenarios: list[Scenario]) -> None:
    """Add the command to the command line, with the settings of the scenarios that were named."""
    configs = {scenario.name: scenario.Config for scenario in scenarios}
    about = "\n\n".join(f"{scenario.name}: {scenario.doc}" for scenario in scenarios)
    parser = parsers.add_parser(
        "run",
        help="run scenarios and show how well they went",
        usage="irb-twin run SCENARIO [SCENARIO ...] [options]",
        description=about
        or "Run scenarios, and show tracking errors, torques and checks, the control laws side by side. Name "
        "a scenario before --help to see what it shows and its own settings.",
        epilog=EXAMPLES.format(" ".join(scenario.name for scenario in scenarios) or "pose_path")
        + OTHERS * (not scenarios),
    )
    parser.set_defaults(parser=parser, carry_out=run)
    parser.add_argument(
        "scenarios",
        nargs="*",
        metavar="SCENARIO",
        help=f"{', '.join((*registry.titles(), *announced(registry.GROUP)))}, or a .py file of your own; "
        "before any option",
    )
    parser.add_argument(
        "--controller",
        nargs="+",
        default=[],
        metavar="NAME",
        help="control laws to run side by side: "
        f"{', '.join((*controllers.NAMES, *controllers.announced_names()))}, or one of your own as "
        f"./my.py:Law or package.module:Law (default {options.default('controller', configs)})",
    )
    parser.add_argument(
        "--explain", action="store_true", help="tell where every limit comes from, after the tables"
    )
    add_limits(parser)
    files = parser.add_argument_group("files (of several runs: one each, named after them)")
    files.add_argument(
        "--log", type=Path, metavar="FILE.npz", help="write reference, state and torque over time"
    )
    files.add_argument(
        "--picture", type=Path, metavar="FILE.png", help="draw the tracking error and the tool's path"
    )
    files.add_argument(
        "--report",
        type=Path,
        metavar="FILE.html",
        help="write one page: verdict, why, curves and a 3-D replay",
    )
    files.add_argument(
        "--film", type=Path, metavar="FILE", help="show the motion as a film, .gif or .mp4; see replay --film"
    )
    files.add_argument("--json", type=Path, metavar="FILE.json", help="write every figure of the tables")
    options.add(parser, configs)
    options.add_changes(parser)


def run(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`run`: the named scenarios, controllers side by side."""
    if not scenarios:
        known = ", ".join(registry.titles())
        raise WrongUse(f"name at least one scenario, before any option: known are {known}")
    limits = chosen_limits(given.limit)
    asked = [run for scenario in scenarios for run in _runs(given, scenario)]
    plan = [(scenario, replace(config, limits=limits)) for scenario, config in asked]
    for path, suffix, option in (
        (given.log, ".npz", "--log"),
        (given.picture, ".png", "--picture"),
        (given.json, ".json", "--json"),
        (given.report, ".html", "--report"),
    ):
        if path is not None:
            writable(path, suffix, option)
    if given.report:
        from scenarios.reports.page import missing

        if lacking := missing():
            needs = f"--report needs {' and '.join(lacking)}, not installed here"
            raise WrongUse(f"{needs}: pip install 'irb-twin[report]'")
    if given.film is not None:
        film_writable(given.film, max(len(_laws(given, scenario)) for scenario in scenarios))

    from scenarios.console.progress import shown
    from scenarios.reports.report import explanations, scenario_report, total
    from scenarios.running.side_by_side import carried_out

    with shown(len(plan)) as begin:
        runs = carried_out(plan, begin)
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
    if given.explain:
        page.print(*explanations(runs, page.width), sep="\n")
    page.print(total(runs), soft_wrap=True)
    if not given.explain and any(run.metrics for run in runs):
        page.print("--explain tells where the limits come from", style="dim", highlight=False)
    complete = files.name(page)
    return 0 if complete and all(run.holds for run in runs) else 1


def _laws(given: argparse.Namespace, scenario: Scenario) -> list[str]:
    """The control laws that a scenario is to run with; empty for its default."""
    return given.controller or list(scenario.side_by_side)


def _runs(given: argparse.Namespace, scenario: Scenario) -> list[tuple[Scenario, Config]]:
    """The runs of one scenario, one a controller; one that fails if the code of its settings does."""
    if scenario.fault is None:
        try:
            configs = options.configs(vars(given), scenario.Config, _laws(given, scenario))
            return [(scenario, config) for config in configs]
        except (WrongUse, TwinError, ValueError):
            raise
        except BaseException as error:
            if is_interrupt(error):
                raise
            scenario = registry.failing(scenario, OwnCodeError(told_with_place(error, scenario.file)))
    return [(scenario, Config())]


def _written(given: argparse.Namespace, runs: list[Run], scenarios: list[Scenario]) -> Files:
    """Write the files that were asked for."""
    from scenarios.running.provenance import stamped

    files = Files()
    logged = [(run, run.log) for run in runs if run.log is not None]
    names = list(dict.fromkeys(run.scenario for run, _ in logged))
    if given.log:
        words = [(run.scenario, run.label) for run, _ in logged]
        paths = [given.log] if len(runs) == 1 else apart(given.log, words)
        for path, (run, log) in zip(paths, logged, strict=False):
            files.write(path, stamped(run, log).save)
    if given.picture:
        from scenarios.reports.picture import draw

        paths = [given.picture] if len(names) == 1 else apart(given.picture, [(name,) for name in names])
        for name, path in zip(names, paths, strict=True):
            members = [run for run, _ in logged if run.scenario == name]
            own = next(scenario.picture for scenario in scenarios if scenario.name == name)
            logs = [log for run, log in logged if run.scenario == name]
            drawing = partial(own, logs) if own else partial(draw, members)
            files.write(path, partial(_stamped_picture, members, drawing))
    if given.film:
        paths = [given.film] if len(names) == 1 else apart(given.film, [(name,) for name in names])
        for name, path in zip(names, paths, strict=True):
            members = [(log, run.label) for run, log in logged if run.scenario == name]
            write_film(files, path, *map(list, zip(*members, strict=True)))
    if given.json:
        from scenarios.reports.files import write_json
        from scenarios.reports.results import Results

        files.write(given.json, partial(write_json, Results(runs)))
    if given.report:
        from scenarios.reports.page import write_page
        from scenarios.reports.results import Results

        titles = {scenario.name: scenario.title for scenario in scenarios}
        files.write(given.report, partial(write_page, Results(runs), titles=titles))
    return files


def _stamped_picture(runs: list[Run], draw: Callable[[Path], object], path: Path) -> None:
    """Draw a picture, and write into it what it was made with."""
    from scenarios.running.provenance import stamp_picture

    draw(path)
    stamp_picture(runs, path)

"""`irb-twin run`: run scenarios with one or several controllers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import controllers
from scenarios.judging.run import TrackingRun
from scenarios.options import argument, option, output_file, section
from scenarios.running import registry
from scenarios.running.registry import Entry, Task
from scenarios.shell.output import Files, apart, console, print_to_stderr, shown
from scenarios.shell.parser import Call, Command
from scenarios.shell.settings import (
    LAWS,
    LawSettings,
    changes_option,
    default,
    limit_option,
    limits_of,
    tasks_of,
)
from twin.base.errors import PluginError, TwinError, WrongUse, describe_error_with_location, is_interrupt

if TYPE_CHECKING:
    from scenarios.running.runs import Run
    from twin.data.logs.log import Log
    from twin.studies.cell.cell import Cell

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
  irb-twin run {0} --cell cell.toml
  irb-twin run {0} --gui
"""
OTHERS = """  irb-twin run gravity_hold joint_tracking --controller pid
  irb-twin run ./my_scenario.py --help
"""


FILES = "files (one per run if there are several runs)"


def _known_scenarios(_: Sequence[Entry]) -> str:
    names = ", ".join(registry.known_names())
    return f"{names}, or the path of a .py file or of a program in RAPID; scenarios stand before all options"


def _known_laws(scenarios: Sequence[Entry]) -> str:
    names = ", ".join((*controllers.NAMES, *controllers.plugin_names()))
    usual = default("controller", scenarios)
    return (
        f"controllers to compare: {names}, or a class of yours as ./my.py:Law or package.module:Law "
        f"(default {usual})"
    )


class RunScenarios(Command):
    """Run scenarios, and report tracking errors, torques and checks of each controller.

    Name a scenario before --help to see its description and its settings.
    """

    usage = "irb-twin run SCENARIO [SCENARIO ...] [options]"
    names_after = 0
    besides = ("controller",)

    scenarios: tuple[str, ...] = argument(_known_scenarios, "SCENARIO", ())
    controller: tuple[str, ...] = option((), _known_laws, "NAME")
    explain: bool = option(False, "print the source of every limit after the tables")
    limit: tuple[str, ...] = limit_option()
    log: Path | None = output_file(
        ".npz", "write the log: reference, state and torque over time", group=FILES
    )
    picture: Path | None = output_file(".png", "plot the tracking error and the tool's path")
    report: Path | None = output_file(
        ".html", "write one page: checks, causes of failures, curves and a 3-D replay"
    )
    film: Path | None = option(
        None, "write the motion as a film, .gif or .mp4; see `irb-twin replay`", "FILE"
    )
    json: Path | None = output_file(".json", "write all values of the tables")
    cell: Path | None = option(
        None, "file of a cell: check the distance to what stands around the arm", "CELL.toml"
    )
    laws: LawSettings = section(LawSettings, LAWS)
    changes: tuple[str, ...] = changes_option()

    @classmethod
    def texts(cls, scenarios: Sequence[Entry]) -> tuple[str, str]:
        """Return the descriptions of the scenarios, and examples with their names."""
        about, _ = super().texts(scenarios)
        names = " ".join(registry.scenario_argument_text(one.file, one.name) for one in scenarios)
        docs = "\n\n".join(f"{scenario.name}: {scenario.kind.description()}" for scenario in scenarios)
        return docs or about, EXAMPLES.format(names or "pose_path") + OTHERS * (not scenarios)

    def run(self, call: Call) -> int:
        """Run the named scenarios with each controller."""
        scenarios = call.scenarios
        if not scenarios:
            known = ", ".join(registry.BUILT_IN)
            raise WrongUse(f"name at least one scenario before all options: known are {known}")
        limits = tuple(limits_of(self.limit).items())
        asked = (task for scenario in scenarios for task in self._tasks(call, scenario))
        plan = [task.with_setup(limits=limits) for task in asked]
        cell = None
        if self.cell is not None:
            from scenarios.studies.cell.clearance import with_cell
            from twin.studies.cell.cell import load_cell

            cell = load_cell(self.cell)
            plan = [with_cell(task, cell) for task in plan]
        if self.film is not None:
            from scenarios.commands.logs import film_writable

            film_writable(self.film, max(len(self._laws(scenario)) or 1 for scenario in scenarios))

        from scenarios.report.report import explanations, scenario_report, total
        from scenarios.running.execution import run_sequence

        with shown(len(plan)) as begin:
            runs = run_sequence(plan, begin)
        if cell is not None:
            runs = [_with_clearance(run, cell) for run in runs]
        files = self._written(runs, scenarios, cell)  # before printing: the reader may close the pipe
        if print_refusals(runs, files):
            return 2
        page = console()
        for scenario in scenarios:
            done = [run for run in runs if run.scenario == scenario.name]
            page.print(*scenario_report(scenario.title, done, page.width), sep="\n")
        if self.explain:
            page.print(*explanations(runs, page.width), sep="\n")
        page.print(total(runs), soft_wrap=True)
        if not self.explain and any(run.metrics for run in runs):
            page.print("--explain prints the sources of the limits", style="dim")
        complete = files.name(page)
        return 0 if complete and all(run.passes for run in runs) else 1

    def _laws(self, scenario: Entry) -> Sequence[str]:
        """Return the controllers that a scenario is to run with; empty for its default."""
        return self.controller or scenario.kind.side_by_side

    def _tasks(self, call: Call, scenario: Entry) -> list[Task]:
        """Return the runs of a scenario, one per controller, or one failing run if its options raise."""
        if scenario.fault is not None:
            return [registry.failing(scenario, scenario.fault)]
        try:
            return tasks_of(call.settings, scenario, self._laws(scenario), self.laws, self.changes)
        except (WrongUse, TwinError, ValueError):
            raise
        except BaseException as error:
            if is_interrupt(error):
                raise
            fault = PluginError(describe_error_with_location(error, scenario.file))
            return [registry.failing(scenario, fault)]

    def _written(self, runs: list[Run], scenarios: list[Entry], cell: Cell | None) -> Files:
        """Write the requested files."""
        files = Files()
        logged = [(run, run.log) for run in runs if run.log is not None]
        names = list(dict.fromkeys(run.scenario for run, _ in logged))
        if self.log:
            from scenarios.running.provenance import described, stamped

            words = [(run.scenario, run.label) for run, _ in logged]
            paths = [self.log] if len(runs) == 1 else apart(self.log, words)
            for path, (run, log) in zip(paths, logged, strict=False):
                files.write(path, replace(run.run or TrackingRun(log), log=stamped(log, described(run))).save)

        def each(path: Path) -> Iterator[tuple[Path, str, list[tuple[Run, Log]]]]:
            """Yield the path of each scenario's file, its name, and its runs with their logs."""
            paths = [path] if len(names) == 1 else apart(path, [(name,) for name in names])
            for name, place in zip(names, paths, strict=True):
                yield place, name, [(run, log) for run, log in logged if run.scenario == name]

        if self.picture:
            from scenarios.report.files import draw

            kinds = {one.name: one.kind for one in scenarios}
            for path, name, members in each(self.picture):
                drawn, logs = [run for run, _ in members], [log for _, log in members]
                custom_picture = kinds[name].picture
                drawing = partial(custom_picture, logs) if custom_picture else partial(draw, drawn)
                files.write(path, partial(_stamped_picture, drawn, drawing))
        if self.film:
            from scenarios.commands.logs import write_film

            for path, _, members in each(self.film):
                write_film(files, path, [log for _, log in members], [run.label for run, _ in members])
        if self.json:
            from scenarios.report.files import write_json
            from scenarios.report.results import Results

            files.write(self.json, partial(write_json, Results(runs)))
        if self.report:
            from scenarios.report.page import write_page
            from scenarios.report.results import Results

            titles = {scenario.name: scenario.title for scenario in scenarios}
            files.write(self.report, partial(write_page, Results(runs), titles=titles, cell=cell))
        return files


def print_refusals(runs: Sequence[Run], files: Files) -> bool:
    """Print why all runs were refused; return whether they were."""
    if not all(run.refused for run in runs):
        return False
    for sentence in dict.fromkeys(str(run.error) for run in runs):
        print_to_stderr(sentence)
    files.name(console())
    return True


def _with_clearance(run: Run, cell: Cell) -> Run:
    """Return a run with the check of its distances; a run without a log is returned unchanged."""
    if run.log is None:
        return run
    from scenarios.studies.cell.clearance import clearance_metric, from_cell

    closest = cell.least_distance(run.log)
    metric = clearance_metric(closest, cell, run.log.robot)
    return replace(run, metrics=(*run.metrics, metric), cell=(str(cell.file), *from_cell(cell)))


def _stamped_picture(runs: list[Run], draw: Callable[[Path], object], path: Path) -> None:
    """Draw a picture, and store in it the settings and versions of its runs."""
    from scenarios.running.provenance import stamp_picture

    draw(path)
    stamp_picture(runs, path)

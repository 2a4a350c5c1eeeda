"""`irb-twin validate`: run scenarios with all robots, controllers and variants, and check every limit."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import controllers
from scenarios.commands.run import print_refusals
from scenarios.options import argument, fields, option, output_file, section
from scenarios.running import registry
from scenarios.running.registry import Entry, Task
from scenarios.setup import Setup
from scenarios.shell.output import Files, console, tallied
from scenarios.shell.parser import Call, Command, count, number_within
from scenarios.shell.settings import LAWS, LawSettings, limit_option, limits_of
from twin.base.errors import PluginError, WrongUse, describe_error_with_location, is_interrupt
from twin.physics.robot.robot import Robot

if TYPE_CHECKING:
    from scenarios.running.runs import Run

REPRESENTATIVE = ("irb140", "irb1400", "irb1600")
"""Arms that differ in kind: coupled motors of the wrist, a parallelogram, an open chain with turned gears.

All arms would take three times as long; their models differ from these in numbers alone, which tests check.
"""
ALL = "all"


@dataclass(frozen=True)
class ValidationPlan:
    """Plan of a validation.

    Attributes:
        tasks: scenario and setup of every run.
        unsuited: names of scenario and robot of the pairs that do not suit each other.
    """

    tasks: tuple[Task, ...]
    unsuited: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Selection:
    """Controllers and settings of a validation.

    Attributes:
        laws: names of controllers; if empty, all of this project and the default ones of each scenario. A
            variant is run if its controller is among them.
        settings: values of settings by name; a value applies to every scenario and variant that has the
            setting.
        law_settings: settings of controllers by the controller's name.
    """

    laws: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    law_settings: Mapping[str, tuple[tuple[str, Any], ...]] = field(default_factory=dict)

    def setup(self, **given: Any) -> Setup:
        """Return a setup with the settings that are of the setup, and those given."""
        of_setup = {name: value for name, value in self.settings.items() if name in fields(Setup)}
        return Setup(**of_setup | given)


def planned(
    robots: Sequence[str] = (), scenarios: Sequence[Entry] = (), selection: Selection | None = None
) -> ValidationPlan:
    """Return the runs of a validation, robot by robot; a scenario with a fault becomes a run that fails.

    Args:
        robots: names, paths of files, or `ALL` for all arms of this project; if empty, `REPRESENTATIVE`, or
            the robot of the scenario's `defaults`.
        scenarios: scenarios to run; if empty, all of this project.
        selection: controllers and settings.

    Raises:
        TwinError: a robot or controller does not exist, a robot's file is invalid, or its masses are unknown.
        ValueError: a setting is invalid.
    """
    import twin

    selection = selection or Selection()
    # Making the setups raises the errors of unknown controllers and invalid values before any run.
    for law in selection.laws or controllers.NAMES:
        selection.setup(controller=law)
    for entry in scenarios:
        if entry.fault is None and selection.settings:
            entry.task(_applicable(entry, selection.settings))
    chosen = list(scenarios) or [registry.find_regardless(name) for name in registry.BUILT_IN]
    given = [one for name in robots for one in (twin.robot_names() if name == ALL else (name,))]
    loaded = {name: selection.setup(robot=name).bare_robot() for name in given or REPRESENTATIVE}
    for robot in loaded.values():
        robot.require_inertia()
    made_for = {entry.name: "" if robots else entry.kind.defaults.get("robot", "") for entry in chosen}
    tasks, unsuited = [], []
    for name in dict.fromkeys((*loaded, *filter(None, made_for.values()))):
        for entry in chosen:
            if made_for[entry.name] not in ("", name) or (name not in loaded and not made_for[entry.name]):
                continue
            found = _tasks(entry, name, loaded.get(name), selection)
            tasks += found
            if not found:
                unsuited.append((entry.name, name))
    return ValidationPlan(tuple(tasks), tuple(unsuited))


def _tasks(entry: Entry, name: str, robot: Robot | None, selection: Selection) -> list[Task]:
    """Return the runs of one scenario with the robot of that name; load the robot if it is None."""
    if entry.fault is not None:
        return [registry.failing(entry, entry.fault).with_setup(robot=name)]
    try:
        tasks = list(_variants(entry, selection))
        robot = robot or selection.setup(robot=name).bare_robot()
        suits = tasks[0].scenario.suits(robot) if tasks else True
        return [task.with_setup(robot=name) for task in tasks if suits]
    except BaseException as error:
        if is_interrupt(error):
            raise
        fault = PluginError(describe_error_with_location(error, entry.file))
        return [registry.failing(entry, fault).with_setup(robot=name)]


def _variants(entry: Entry, selection: Selection) -> Iterator[Task]:
    """Yield the runs of a scenario with every controller, then its variants, without duplicates."""
    settings = _applicable(entry, selection.settings)
    default = entry.kind.setup().controller
    laws = selection.laws or dict.fromkeys((*controllers.NAMES, *entry.kind.side_by_side, default))
    variants = ({**variant, **settings} for variant in entry.kind.variants)
    found: list[Task] = []
    for given in (
        *({**settings, "controller": law} for law in laws),
        *(one for one in variants if not selection.laws or one.get("controller", default) in selection.laws),
    ):
        task = entry.task(given)
        law_settings = selection.law_settings.get(task.setup.controller, task.setup.law_settings)
        task = task.with_setup(law_settings=law_settings)
        if task not in found:
            found.append(task)
            yield task


def _applicable(entry: Entry, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are options of the scenario or settings of the setup."""
    known = (*entry.options, *fields(Setup))
    return {name: value for name, value in settings.items() if name in known}


def matches(name: str, texts: Sequence[str]) -> bool:
    """Return whether a name contains one of the texts, ignoring case; `*`, `?` and `[...]` are wildcards."""
    plain = name.casefold()
    return any(
        fnmatchcase(plain, f"*{text}*") if set("*?[") & set(text) else text in plain
        for text in map(str.casefold, texts)
    )


class Validate(Command):
    """Run scenarios with all robots and controllers, without a window, and check every limit.

    Each scenario runs with the robots that it suits, with every controller, and in its own variants. Without
    names and settings all scenarios of this project run, with three arms that differ in kind; `--robot all`
    takes all arms. Exit status: 0 every check passes or has no limit; 1 a
    check fails, has a limit but no definite result, or was not computed, a file could not be written, or a
    result is worse than the baseline; 2 wrong use.
    """

    usage = "irb-twin validate [SCENARIO ...] [options]"
    examples = """examples:
  irb-twin validate                                                  all scenarios, three arms
  irb-twin validate joint_tracking --robot all                       one scenario, all arms
  irb-twin validate ./reach.py --controller ./law.py:SlidingMode     your scenario, your controller
  irb-twin validate joint_tracking --robot my_arm.urdf               your robot, all controllers
  irb-twin validate --drives rigid --only irb140 --jobs 4
  irb-twin validate --junit results.xml --markdown summary.md --json results.json
  irb-twin validate --baseline results.json                          changes since the baseline
"""
    names_after = 0
    besides = ("robot", "controller", "gui", "close_window")

    scenarios: tuple[str, ...] = argument(
        lambda _: (
            f"{', '.join(registry.BUILT_IN)}, or the path of a .py file; scenarios stand before all options "
            "(default all)"
        ),
        "SCENARIO",
        (),
    )
    robot: tuple[str, ...] = option(
        (),
        "names of robots, paths of their files, or all, for all arms of ABB, which take some minutes each "
        "(default: irb140, irb1400, irb1600, which differ in kind, or the only robot of a scenario)",
        "NAME",
    )
    controller: tuple[str, ...] = option(
        (),
        "controllers (default all of this project); a variant runs if its controller is among them",
        "NAME",
    )
    only: tuple[str, ...] = option(
        (),
        "run only the runs with one of these texts in `robot, scenario, controller, settings`, as printed in "
        "the table; * and ? are wildcards",
        "TEXT",
    )
    jobs: int | None = option(
        None, "number of parallel processes (default: the number of cores)", "N", read=count
    )
    limit: tuple[str, ...] = limit_option()
    junit: Path | None = output_file(".xml", "write the checks as JUnit XML", group="files")
    json: Path | None = output_file(".json", "write all values")
    markdown: Path | None = output_file(".md", "write a summary for a CI page")
    baseline: Path | None = option(None, "compare with earlier results of --json", "FILE.json")
    grown: float | None = option(
        None,
        "report a value as grown if it exceeds FACTOR times its baseline (default 1.1)",
        "FACTOR",
        read=partial(number_within, low=1.0, high=sys.float_info.max, what="a number of 1 or more"),
    )
    grown_fails: bool = option(False, "exit with status 1 if a value has grown")
    laws: LawSettings = section(LawSettings, LAWS)

    def run(self, call: Call) -> int:
        """ValidationPlan and execute the runs, write the files, and print the results."""
        from scenarios.report.files import compare, read_baseline, write_json, write_junit, write_markdown
        from scenarios.report.report import validation_report, validation_total
        from scenarios.report.results import GROWN, Results

        before = read_baseline(self.baseline) if self.baseline else None
        factor = self.grown or GROWN
        plan = self._planned(call)
        start = time.monotonic()
        runs, jobs = self._execute(plan)
        seconds = time.monotonic() - start
        selection = self._selection(call)
        comparison = compare(runs, before, selection, factor) if before else None
        results = Results(runs, selection, comparison, _unsuited(plan.unsuited))
        files = Files()  # before anything is printed: the reader may close the pipe
        files.write(self.junit, partial(write_junit, results))
        files.write(self.json, partial(write_json, results))
        files.write(self.markdown, partial(write_markdown, results))
        if print_refusals(runs, files):
            return 2
        page = console()
        page.print(*validation_report(results), sep="\n")
        page.print(validation_total(results, seconds, jobs), style="bold")
        complete = files.name(page)
        worse = comparison is not None and (comparison.worse or (self.grown_fails and comparison.grown))
        return 0 if complete and not worse and results.passes else 1

    def _planned(self, call: Call) -> ValidationPlan:
        """Return the runs that the command line asks for.

        Raises:
            WrongUse: no run remains.
        """
        from scenarios.running.runs import run_name

        law_settings = self.laws.chosen(self.controller or controllers.NAMES)
        plan = planned(self.robot, call.scenarios, Selection(self.controller, call.settings, law_settings))
        if limits := tuple(limits_of(self.limit).items()):
            plan = replace(plan, tasks=tuple(task.with_setup(limits=limits) for task in plan.tasks))
        if not plan.tasks:
            raise WrongUse(f"nothing to run: {_unsuited(plan.unsuited)}")
        if self.only:
            names = [run_name(task) for task in plan.tasks]
            chosen = [task for task, name in zip(plan.tasks, names, strict=True) if matches(name, self.only)]
            plan = replace(plan, tasks=tuple(chosen), unsuited=())
            if not chosen:
                raise WrongUse(
                    f"--only {' '.join(self.only)}: none of {len(names)} runs has that in its name; "
                    f"a name looks like {names[0]!r}"
                )
        return plan

    def _selection(self, call: Call) -> dict[str, Any]:
        """Return the requested selection, as it is stored with the results."""
        return {
            "scenarios": [scenario.name for scenario in call.scenarios],
            "robots": list(self.robot),
            "controllers": list(self.controller),
            "only": list(self.only),
            "settings": {name: str(value) for name, value in sorted(call.settings.items())},
            "law_settings": [*self.laws.words, *([str(self.laws.file)] if self.laws.file else [])],
        }

    def _execute(self, plan: ValidationPlan) -> tuple[list[Run], int]:
        """Execute the runs; return them, and the number of processes that shared them."""
        from scenarios.running.execution import run_in_parallel
        from scenarios.running.runs import run_name
        from twin.base.threads import thread_count

        jobs = min(self.jobs or thread_count(), len(plan.tasks))
        titles = [run_name(task) for task in plan.tasks]
        labels = controllers.labels(task.setup.controller for task in plan.tasks)
        with tallied(titles) as tally:
            runs = run_in_parallel(plan.tasks, jobs, tally.begun, tally.done)
        return [replace(run, label=labels[run.setup.controller]) for run in runs], jobs


def _unsuited(unsuited: Sequence[tuple[str, str]]) -> str:
    """Return a sentence that names the scenarios unsuitable for a robot; empty if there are none."""
    scenarios: dict[str, list[str]] = {}
    for scenario, robot in unsuited:
        scenarios.setdefault(robot, []).append(scenario)
    lists = [f"with {robot} {', '.join(names)}" for robot, names in scenarios.items()]
    return f"not run, because the scenario does not suit the robot: {'; '.join(lists)}" if lists else ""

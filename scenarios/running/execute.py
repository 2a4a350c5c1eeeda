"""Runs carried out, in this process or in others: the same results, in the same order, to the same bits.

A run with code of the user's has a process of its own, which that code may end; it costs the run alone.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import controllers
from scenarios.base import Config
from scenarios.running import registry
from scenarios.running.registry import Scenario, scenario_argument_text
from scenarios.running.runs import Run, run_one
from twin.worker_processes import Answer, Started, Task, Workers

Work = tuple["Scenario", "Config"]
LONG = ("laboratory", "pose_path")
"""Scenarios of this project that take longest, some 2 s a run, and so begin first."""


def run_sequence(plan: Sequence[Work], begin: Callable[[str], Callable[[float], None]]) -> list[Run]:
    """Carry out runs one after the other, with their logs.

    Where they have a window, a scenario's first run is shown in it and can be touched, and its other runs
    are made before, without one, to move beside it.

    Args:
        plan: scenarios and settings.
        begin: called with the name of each run, returns what is called with the fraction done.

    Returns:
        The runs in the order of the plan.
    """
    labels = controllers.labels(config.controller for _, config in plan)
    runs: dict[int, Run] = {}

    def begun(place: int) -> Callable[[float], None]:
        scenario, config = plan[place]
        return begin(f"{scenario.name}, {labels[config.controller]}")

    tasks = _tasks_of_users_code(plan)
    for place in _order(plan):
        if place not in tasks:
            scenario, config = plan[place]
            if config.gui:
                config = _beside(plan, place, runs, labels)
            runs[place] = run_one(scenario, config, begun(place))
    for place, run in _run_apart(plan, tasks, 1):
        if run is None:
            begun(place)
        else:
            runs[place] = run
    return [replace(runs[place], label=labels[config.controller]) for place, (_, config) in enumerate(plan)]


def run_in_parallel(
    plan: Sequence[Work], jobs: int, begun: Callable[[int], None], done: Callable[[int, bool], None]
) -> list[Run]:
    """Carry out runs in so many other processes, without their logs.

    Args:
        plan: scenarios with their settings.
        jobs: how many processes.
        begun: called with the place of a run that begins.
        done: called with its place, and whether it holds, when it is done.

    Returns:
        The runs in the order of the plan; they have figures and no logs.
    """
    runs: dict[int, Run] = {}
    order = sorted(range(len(plan)), key=lambda place: plan[place][0].name not in LONG)
    tasks = {place: task for place in order if (task := _task(*plan[place], with_log=False)) is not None}
    for place in order:
        if place not in tasks:
            begun(place)
            runs[place] = run_one(*plan[place]).without_log()
            done(place, runs[place].passes)
    for place, run in _run_apart(plan, tasks, jobs):
        if run is None:
            begun(place)
        else:
            runs[place] = run
            done(place, run.passes)
    return [runs[place] for place in range(len(plan))]


def _run_apart(plan: Sequence[Work], tasks: dict[int, Task], jobs: int) -> Iterator[tuple[int, Run | None]]:
    """The runs of tasks in worker processes; each comes twice, as `None` when it begins."""
    with Workers(jobs) as workers:
        for place, event in workers.run(tasks.items()):
            if isinstance(event, Answer):
                yield place, _answered_run(plan[place], event)
            elif isinstance(event, Started):
                yield place, None


def _task(scenario: Scenario, config: Config, *, with_log: bool) -> Task | None:
    """A run as a task; `None` where it is known to fail, or cannot be sent to another process."""
    if scenario.fault is not None:
        return None
    try:
        found_by = scenario_argument_text(scenario.file, scenario.name)
        return _run_here, (found_by, scenario.name, pickle.dumps(config), with_log)
    except Exception:  # a setting of somebody's that pickle does not know
        return None


def _tasks_of_users_code(plan: Sequence[Work]) -> dict[int, Task]:
    """The runs with code of the user's, by their places; none where there is a window."""
    if any(config.gui for _, config in plan):
        return {}
    tasks = {
        place: _task(scenario, config, with_log=True)
        for place, (scenario, config) in enumerate(plan)
        if config.controller not in controllers.NAMES or Path(scenario.file).resolve().parent != registry.HERE
    }
    return {place: task for place, task in tasks.items() if task is not None}


def _run_here(found_by: str, name: str, config: bytes, with_log: bool) -> dict[str, Any]:
    """Carry out a run in a worker: its fields, but for its settings, which the asking process has."""
    scenario = replace(_found(found_by), name=name)
    run = run_one(scenario, pickle.loads(config))  # whose class is found once its scenario is
    run = run if with_log else run.without_log()
    return {field: value for field, value in vars(run).items() if field != "config"}


@cache
def _found(name: str) -> Scenario:
    """A scenario; somebody's file is loaded once, as in one process."""
    return registry.find_regardless(name)


def _answered_run(work: Work, answer: Answer) -> Run:
    """A run, of what a worker sent of it."""
    answer.reissue_warnings()
    scenario, config = work
    if answer.fault:
        return Run(scenario.name, config, None, (), 0.0, answer.fault, file=scenario.file)
    return Run(config=config, **answer.value)


def _order(plan: Sequence[Work]) -> Iterator[int]:
    """Places in the plan: a scenario's first run after its others, where it is shown in a window."""
    names = list(dict.fromkeys(scenario.name for scenario, _ in plan))
    for name in names:
        places = [k for k, (scenario, _) in enumerate(plan) if scenario.name == name]
        first = places[0]
        yield from [*places[1:], first] if plan[first][1].gui else places


def _beside(plan: Sequence[Work], k: int, runs: dict[int, Run], labels: dict[str, str]) -> Config:
    """The settings of a run that has a window; without one if another run of the scenario is shown."""
    scenario, config = plan[k]
    places = [place for place, (other, _) in enumerate(plan) if other.name == scenario.name]
    if k != places[0]:
        return replace(config, gui=False)
    beside = tuple(
        (labels[plan[place][1].controller], log)
        for place in places[1:]
        if (log := runs[place].log) is not None
    )
    return replace(config, beside=beside)

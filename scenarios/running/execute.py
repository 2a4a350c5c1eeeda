"""Execute runs, in this process or in others, with results that are identical to the last bit.

A run with user code has a separate process. If that code ends the process, only this run fails.
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
"""Longest scenarios of this project, some 2 s a run; they begin first."""

SLOW = (
    "scenarios.checks.closed_loop",
    "scenarios.running.registry:titles",
    "twin.engine.simulation",
    "twin.jit:prepare",
    "urchin",
    "pybullet",
)
"""Modules that almost every run of a user's code imports, and functions whose results it needs, in 1.1 s."""


def run_sequence(plan: Sequence[Work], begin: Callable[[str], Callable[[float], None]]) -> list[Run]:
    """Execute runs one after the other and return them with their logs.

    With a window, the first run of a scenario is shown in it and reacts to the user. The other runs of the
    scenario are executed before it, without a window, and shown beside it as ghosts.

    Args:
        plan: scenarios and settings.
        begin: function called with the name of each run; it returns a function that is called with the
            fraction done.

    Returns:
        The runs in the order of the plan.
    """
    labels = controllers.labels(config.controller for _, config in plan)
    runs: dict[int, Run] = {}

    def announce(place: int) -> Callable[[float], None]:
        scenario, config = plan[place]
        return begin(f"{scenario.name}, {labels[config.controller]}")

    tasks = _tasks_with_user_code(plan)
    for place in _order(plan):
        if place not in tasks:
            scenario, config = plan[place]
            if config.gui:
                config = _with_ghosts(plan, place, runs, labels)
            runs[place] = run_one(scenario, config, announce(place))
    for place, run in _run_in_workers(plan, tasks, 1):
        if run is None:
            announce(place)
        else:
            runs[place] = run
    return [replace(runs[place], label=labels[config.controller]) for place, (_, config) in enumerate(plan)]


def run_in_parallel(
    plan: Sequence[Work], jobs: int, begun: Callable[[int], None], done: Callable[[int, bool], None]
) -> list[Run]:
    """Execute runs in other processes and return them without their logs.

    Args:
        plan: scenarios with their settings.
        jobs: number of processes.
        begun: function called with the index of a run that begins.
        done: function called with the index of a finished run and whether it passes.

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
    for place, run in _run_in_workers(plan, tasks, jobs):
        if run is None:
            begun(place)
        else:
            runs[place] = run
            done(place, run.passes)
    return [runs[place] for place in range(len(plan))]


def _run_in_workers(
    plan: Sequence[Work], tasks: dict[int, Task], jobs: int
) -> Iterator[tuple[int, Run | None]]:
    """Execute tasks in worker processes; yield each index with `None` at the start and the run at the end."""
    with Workers(jobs, modules=SLOW) as workers:
        for place, event in workers.run(tasks.items()):
            if isinstance(event, Answer):
                yield place, _run_of_answer(plan[place], event)
            elif isinstance(event, Started):
                yield place, None


def _task(scenario: Scenario, config: Config, *, with_log: bool) -> Task | None:
    """Return a run as a task; `None` if the scenario did not load or a setting cannot be pickled."""
    if scenario.fault is not None:
        return None
    try:
        argument = scenario_argument_text(scenario.file, scenario.name)
        return _run_in_worker, (argument, scenario.name, pickle.dumps(config), with_log)
    except Exception:  # pickle passes on any error of a user's class
        return None


def _tasks_with_user_code(plan: Sequence[Work]) -> dict[int, Task]:
    """Return the runs with user code as tasks, by their index in the plan; none if there is a window."""
    if any(config.gui for _, config in plan):
        return {}
    tasks = {
        place: _task(scenario, config, with_log=True)
        for place, (scenario, config) in enumerate(plan)
        if config.controller not in controllers.NAMES or _is_user_file(scenario.file)
    }
    return {place: task for place, task in tasks.items() if task is not None}


def _is_user_file(path: str) -> bool:
    """Return whether a scenario is a Python file of the user; a program in RAPID cannot end the process."""
    return not registry.is_program(path) and Path(path).resolve().parent != registry.HERE


def _run_in_worker(argument: str, name: str, config: bytes, with_log: bool) -> dict[str, Any]:
    """Execute a run in a worker process; return its fields except the settings, which the parent has."""
    scenario = replace(_scenario(argument), name=name)
    # The scenario must be loaded before its settings, whose class it defines, can be unpickled.
    run = run_one(scenario, pickle.loads(config))
    run = run if with_log else run.without_log()
    return {field: value for field, value in vars(run).items() if field != "config"}


@cache
def _scenario(argument: str) -> Scenario:
    """Return a scenario; a user's file is loaded only once in each process."""
    return registry.find_regardless(argument)


def _run_of_answer(work: Work, answer: Answer) -> Run:
    """Return the run that a worker's answer describes, and repeat its warnings."""
    answer.reissue_warnings()
    scenario, config = work
    if answer.fault:
        return Run(scenario.name, config, None, (), 0.0, answer.fault, file=scenario.file)
    return Run(config=config, **answer.value)


def _order(plan: Sequence[Work]) -> Iterator[int]:
    """Yield indices into the plan; the first run of a scenario comes after its others if it has a window."""
    names = list(dict.fromkeys(scenario.name for scenario, _ in plan))
    for name in names:
        places = [k for k, (scenario, _) in enumerate(plan) if scenario.name == name]
        first = places[0]
        yield from [*places[1:], first] if plan[first][1].gui else places


def _with_ghosts(plan: Sequence[Work], k: int, runs: dict[int, Run], labels: dict[str, str]) -> Config:
    """Return the settings of run k with the scenario's other logs as ghosts; only its first run has a window.

    Args:
        plan: scenarios and settings; the window is requested for each.
        k: index of the run.
        runs: finished runs by index.
        labels: short names of the controllers.
    """
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

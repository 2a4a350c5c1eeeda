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
from scenarios.judging.run import PARTS, TrackingRun
from scenarios.options import fields
from scenarios.running import registry
from scenarios.running.registry import Entry, Task, scenario_argument_text
from scenarios.running.runs import Run, run_one
from scenarios.scenario import TrackingScenario
from twin.base.worker_processes import Answer, Started, Workers
from twin.base.worker_processes import Task as Work

LONG = ("laboratory", "pose_path")
"""Longest scenarios of this project, some 2 s a run; they begin first."""

SLOW = (
    "scenarios.judging.following",
    "scenarios.running.registry",
    "twin.physics.engine.simulation",
    "twin.base.jit:prepare",
    "urchin",
    "pybullet",
)
"""Modules that almost every run of a user's code imports, and functions whose results it needs, in 1.1 s."""


def run_sequence(plan: Sequence[Task], begin: Callable[[str], Callable[[float], None]]) -> list[Run]:
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
    _require_engine(plan)
    labels = controllers.labels(task.setup.controller for task in plan)
    runs: dict[int, Run] = {}

    def announce(place: int) -> Callable[[float], None]:
        task = plan[place]
        return begin(f"{task.entry.name}, {labels[task.setup.controller]}")

    tasks = _tasks_with_user_code(plan)
    for place in _order(plan):
        if place not in tasks:
            task = plan[place]
            if task.setup.gui:
                task = _with_ghosts(plan, place, runs, labels)
            runs[place] = run_one(task, announce(place))
    _run_in_workers(plan, tasks, 1, announce, runs.__setitem__)
    return [replace(runs[place], label=labels[task.setup.controller]) for place, task in enumerate(plan)]


def run_in_parallel(
    plan: Sequence[Task], jobs: int, begun: Callable[[int], None], done: Callable[[int, bool], None]
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
    _require_engine(plan)
    runs: dict[int, Run] = {}
    order = sorted(range(len(plan)), key=lambda place: plan[place].entry.name not in LONG)
    tasks = {place: work for place in order if (work := _work(plan[place], with_log=False)) is not None}

    def finished(place: int, run: Run) -> None:
        runs[place] = run
        done(place, run.passes)

    for place in order:
        if place not in tasks:
            begun(place)
            finished(place, run_one(plan[place]).without_log())
    _run_in_workers(plan, tasks, jobs, begun, finished)
    return [runs[place] for place in range(len(plan))]


def _require_engine(plan: Sequence[Task]) -> None:
    """Raise a TwinError if runs need PyBullet and it is missing, before anything is compiled for them."""
    from twin.physics.engine.client import require_engine

    if any(isinstance(task.scenario, TrackingScenario) for task in plan):
        require_engine()


def _run_in_workers(
    plan: Sequence[Task], tasks: dict[int, Work], jobs: int,
    begun: Callable[[int], object], finished: Callable[[int, Run], object],
) -> None:  # fmt: skip
    """Execute tasks in worker processes; call the functions with the index of each, and with its run."""
    with Workers(jobs, modules=SLOW) as workers:
        for place, event in workers.run(tasks.items()):
            if isinstance(event, Answer):
                event.reissue_warnings()
                task = plan[place]
                finished(place, Run(task, error=event.fault) if event.fault else Run(task, **event.value))
            elif isinstance(event, Started):
                begun(place)


def _work(task: Task, *, with_log: bool) -> Work | None:
    """Return a run as work for a process; `None` if its scenario did not load."""
    entry, scenario, setup = task
    if entry.fault is not None:
        return None
    options = {name: getattr(scenario, name) for name in fields(type(scenario))}
    settings = pickle.dumps((entry.name, options, replace(setup, progress=None, simulated=None)))
    return _run_in_worker, (scenario_argument_text(entry.file, entry.name), settings, with_log)


def _tasks_with_user_code(plan: Sequence[Task]) -> dict[int, Work]:
    """Return the runs with user code as work, by their index in the plan; none if there is a window."""
    if any(task.setup.gui for task in plan):
        return {}
    found = {
        place: _work(task, with_log=True)
        for place, task in enumerate(plan)
        if task.setup.controller not in controllers.NAMES or _is_user_file(task.entry.file)
    }
    return {place: work for place, work in found.items() if work is not None}


def _is_user_file(path: str) -> bool:
    """Return whether a scenario is a Python file of the user; a program in RAPID cannot end the process."""
    return not registry.is_program(path) and Path(path).resolve().parent != registry.HERE


def _run_in_worker(argument: str, settings: bytes, with_log: bool) -> dict[str, Any]:
    """Execute a run in a worker process; return its fields except the task, which the parent has."""
    name, options, setup = pickle.loads(settings)
    entry = replace(_entry(argument), name=name)
    run = run_one(Task(entry, entry.kind(**entry.given, **options), setup))
    if run.run is not None:  # its class may be one of a user's file, which the parent cannot unpickle
        run = replace(run, run=TrackingRun(**{name: getattr(run.run, name) for name in ("log", *PARTS)}))
    run = run if with_log else run.without_log()
    return {field: value for field, value in vars(run).items() if field != "task"}


@cache
def _entry(argument: str) -> Entry:
    """Return a scenario; a user's file is loaded only once in each process."""
    return registry.find_regardless(argument)


def _order(plan: Sequence[Task]) -> Iterator[int]:
    """Yield indices into the plan; the first run of a scenario comes after its others if it has a window."""
    names = list(dict.fromkeys(task.entry.name for task in plan))
    for name in names:
        places = [k for k, task in enumerate(plan) if task.entry.name == name]
        first = places[0]
        yield from [*places[1:], first] if plan[first].setup.gui else places


def _with_ghosts(plan: Sequence[Task], k: int, runs: dict[int, Run], labels: dict[str, str]) -> Task:
    """Return the task of run k with the scenario's other logs as ghosts; only its first run has a window.

    Args:
        plan: scenarios and setups; the window is requested for each.
        k: index of the run.
        runs: finished runs by index.
        labels: short names of the controllers.
    """
    places = [place for place, task in enumerate(plan) if task.entry.name == plan[k].entry.name]
    if k != places[0]:
        return plan[k].with_setup(gui=False)
    beside = tuple(
        (labels[plan[place].setup.controller], log)
        for place in places[1:]
        if (log := runs[place].log) is not None
    )
    return plan[k].with_setup(beside=beside)

"""The runs of a command, one after the other; in the window, one of them with the others as ghosts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import controllers
from scenarios.running import registry
from scenarios.running.runs import Run, carry_out

if TYPE_CHECKING:
    from scenarios.base import Config
    from scenarios.running.registry import Scenario

Plan = Sequence[tuple["Scenario", "Config"]]


def carried_out(plan: Plan, begin: Callable[[str], Callable[[float], None]]) -> list[Run]:
    """Carry out all runs of a plan.

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
    apart = _apart(plan)
    for k in _order(plan):
        if k in apart:
            continue
        scenario, config = plan[k]
        if config.gui:
            config = _beside(plan, k, runs, labels)
        label = labels[config.controller]
        run = carry_out(scenario, config, begin(f"{scenario.name}, {label}"))
        runs[k] = dataclasses.replace(run, label=label)
    if apart:
        from scenarios.running import workers

        with workers.Processes(list(apart.items()), 1) as processes:
            for k, answer in processes.answers():
                scenario, config = plan[k]
                label = labels[config.controller]
                if answer is None:
                    begin(f"{scenario.name}, {label}")
                else:
                    run = workers.result_of(plan[k], answer)
                    assert isinstance(run, Run)
                    runs[k] = dataclasses.replace(run, label=label)
    return [runs[k] for k in range(len(plan))]


def _apart(plan: Plan) -> dict[int, Any]:
    """What other processes carry out: runs with code of the user's, which may end the process; no windows."""
    users = {
        k: (scenario, config)
        for k, (scenario, config) in enumerate(plan)
        if config.controller not in controllers.NAMES or Path(scenario.file).resolve().parent != registry.HERE
    }
    if not users or any(config.gui for _, config in plan):
        return {}
    from scenarios.running import workers

    tasks = {k: workers.task_of(run, with_log=True) for k, run in users.items()}
    return {k: task for k, task in tasks.items() if task is not None}


def _order(plan: Plan) -> Iterator[int]:
    """Places in the plan: a scenario's first run after its others, where it is shown in a window."""
    names = list(dict.fromkeys(scenario.name for scenario, _ in plan))
    for name in names:
        places = [k for k, (scenario, _) in enumerate(plan) if scenario.name == name]
        first = places[0]
        yield from [*places[1:], first] if plan[first][1].gui else places


def _beside(plan: Plan, k: int, runs: dict[int, Run], labels: dict[str, str]) -> Config:
    """The settings of a run that has a window; without one if another run of the scenario is shown."""
    scenario, config = plan[k]
    places = [place for place, (other, _) in enumerate(plan) if other.name == scenario.name]
    if k != places[0]:
        return dataclasses.replace(config, gui=False)
    beside = tuple(
        (labels[plan[place][1].controller], log)
        for place in places[1:]
        if (log := runs[place].log) is not None
    )
    return dataclasses.replace(config, beside=beside)

"""Scenarios by name, with options and settings together."""

from scenarios.running import registry
from scenarios.running.runs import judged, run_one


def task(name="gravity_hold", **settings):
    """Return the task of a scenario; the settings are options of the scenario and settings of its setup."""
    return registry.find(name).task(settings)


def run(name="gravity_hold", **settings):
    """Run a scenario, and return its run."""
    _, scenario, setup = task(name, **settings)
    return scenario.run(setup)


def checks(name="gravity_hold", **settings):
    """Run a scenario, and return its own metrics by name."""
    _, scenario, setup = task(name, **settings)
    return {metric.name: metric for metric in scenario.metrics(scenario.run(setup))}


def judge(one, found):
    """Return all checks of a run of a task, by name."""
    return {metric.name: metric for metric in judged(one, found)}


def executed(name="gravity_hold", **settings):
    """Run a scenario as the command line does, and return the result."""
    return run_one(task(name, **settings))

"""A made-up run with known errors, and console output as text."""

import numpy as np
from rich.console import Console

import twin
from scenarios.base import Config, Metric
from scenarios.running.runs import Run
from tests.support.example_logs import made_log

N = 50


def made_up_log(controller, error=0.01):
    """Make a log: joint k (from 0) is off by +-(k + 1) * error, and joint 1 saturates in seven samples."""
    robot = twin.load("irb140")
    t = 1e-3 * np.arange(N)
    q_ref = 0.2 + np.outer(t, np.ones(6))
    q = q_ref + np.outer((-1.0) ** np.arange(N), error * np.arange(1, 7))
    saturated = np.zeros(q.shape, dtype=bool)
    saturated[:7, 1] = True
    arrays = {"tau": np.full(q.shape, -12.5), "saturated": saturated}
    return made_log(robot, q, q_ref, controller=controller, time_step=1e-3, **arrays)


def made_up_run(controller="pd", *metrics, error=0.01):
    passed = Metric("the check that holds", 1e-12, "rad", 1e-10, "its reason")
    config = Config(controller=controller)
    return Run("swing", config, made_up_log(controller, error), metrics or (passed,), 0.5)


def rendered(parts, width=100):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(*parts, sep="\n", crop=False)
    return console.export_text()

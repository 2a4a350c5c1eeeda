"""Example logs and runs whose errors are known."""

from dataclasses import replace

import numpy as np
from rich.console import Console

import twin
from scenarios.metric import Metric
from scenarios.running.registry import Entry, Task
from scenarios.running.runs import Run
from scenarios.scenario import TrackingScenario
from scenarios.setup import Setup
from tests.support.random_trees import interpreted
from twin.data.logs.log import Log

N = 60
PERIOD = 2e-3


def made_log(robot, q, q_ref=None, *, controller="pd", time_step=0.01, start=0.0, **others):
    """Make a log of positions (N, n), one per time step; speeds, torques and gaps are zero."""
    q = np.asarray(q, dtype=float)
    N, n = q.shape
    zeros = np.zeros((N, n))
    fields = dict.fromkeys(("qd_ref", "qdd_ref", "qd", "tau", "tau_demand"), zeros)
    fields |= {"t": start + time_step * np.arange(N), "q": q, "loop_gap": np.zeros(N)}
    fields["q_ref"] = q.copy() if q_ref is None else np.asarray(q_ref, dtype=float)
    fields["saturated"] = np.zeros((N, n), dtype=bool)
    return Log(robot, controller, time_step, 1, **(fields | others))


def swing(robot, joint, angle, *, samples=51, **others):
    """Make a log in which one joint moves from 0 to an angle in [rad] at constant speed."""
    q = np.zeros((samples, robot.n))
    q[:, joint] = np.linspace(0.0, angle, samples)
    return made_log(robot, q, **others)


def log_of(robot, controller="pd", period=PERIOD, samples=N, error=0.01, scale=1.0):
    """Make a log in which each joint swings at a different frequency, with a different tracking error."""
    t = 0.5 + period * np.arange(samples)
    numbers = np.arange(1, robot.n + 1)
    q_ref = 0.3 * scale * np.sin(np.outer(t, numbers))
    off = error * numbers * np.sin(40.0 * t[:, None] + numbers)
    qd = 0.3 * scale * numbers * np.cos(np.outer(t, numbers))
    tau = 10.0 * numbers * np.cos(np.outer(t, 7.0 * numbers))
    saturated = np.zeros(q_ref.shape, dtype=bool)
    saturated[3:9, 1] = True
    arrays = {"qd_ref": qd, "qdd_ref": -q_ref, "qd": qd + off, "tau": tau, "tau_demand": 1.5 * tau}
    settings = {"controller": controller, "time_step": period, "start": 0.5, "saturated": saturated}
    return made_log(robot, q_ref - off, q_ref, **arrays, **settings)


def irb140_log(controller="pd", **settings):
    return log_of(twin.load("irb140"), controller, **settings)


def sliding_log():
    """Make a log of a robot with a prismatic second joint and interpreted kernels."""
    return log_of(interpreted(twin.load("rtr")))


def broken_log(controller="pd", first=40, **settings):
    """Make a log that is not finite from sample `first` on, like that of a diverged run."""
    log = irb140_log(controller, **settings)
    arrays = {name: getattr(log, name).copy() for name in ("q", "qd", "tau")}
    for array in arrays.values():
        array[first:] = np.nan
    # These arrays default to copies of the replaced ones: None sets them again.
    return replace(log, **arrays, q_motor=None, qd_motor=None, q_seen=None, qd_seen=None, tau_joint=None)


# A made-up run with known errors, and console output as text.


SAMPLES = 50


def made_up_log(controller, error=0.01):
    """Make a log: joint k (from 0) is off by +-(k + 1) * error, and joint 1 saturates in seven samples."""
    robot = twin.load("irb140")
    t = 1e-3 * np.arange(SAMPLES)
    q_ref = 0.2 + np.outer(t, np.ones(6))
    q = q_ref + np.outer((-1.0) ** np.arange(SAMPLES), error * np.arange(1, 7))
    saturated = np.zeros(q.shape, dtype=bool)
    saturated[:7, 1] = True
    arrays = {"tau": np.full(q.shape, -12.5), "saturated": saturated}
    return made_log(robot, q, q_ref, controller=controller, time_step=1e-3, **arrays)


def made_up_task(name="swing", **settings):
    """Return a task of a scenario that no file defines; the settings are those of its setup."""
    return Task(Entry(name, TrackingScenario), TrackingScenario(), Setup(**settings))


def made_up_run(controller="pd", *metrics, error=0.01):
    passed = Metric("the check that holds", 1e-12, "rad", 1e-10, "its reason")
    task = made_up_task(controller=controller)
    return Run(task, made_up_log(controller, error), metrics or (passed,), 0.5)


def rendered(parts, width=100):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(*parts, sep="\n", crop=False)
    return console.export_text()

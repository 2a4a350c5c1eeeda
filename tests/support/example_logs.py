"""Logs made of numbers, without a run: for what tells, draws and shows logs."""

from dataclasses import replace

import numpy as np

import twin
from tests.support.random_trees import interpreted
from twin.logs.log import Log

N = 60
PERIOD = 2e-3


def made_log(robot, q, q_ref=None, *, controller="pd", time_step=0.01, start=0.0, **others):
    """A log of positions (N, n), one a time step, with nothing in it that they do not say."""
    q = np.asarray(q, dtype=float)
    N, n = q.shape
    zeros = np.zeros((N, n))
    fields = {
        "t": start + time_step * np.arange(N),
        "q_ref": q.copy() if q_ref is None else np.asarray(q_ref, dtype=float),
        "qd_ref": zeros,
        "qdd_ref": zeros,
        "q": q,
        "qd": zeros,
        "tau": zeros,
        "tau_demand": zeros,
        "saturated": np.zeros((N, n), dtype=bool),
        "loop_gap": np.zeros(N),
    }
    return Log(robot, controller, time_step, 1, **(fields | others))


def swing(robot, joint, angle, *, samples=51, **others):
    """A log in which one joint goes from 0 to an angle, in [rad], at even speed."""
    q = np.zeros((samples, robot.n))
    q[:, joint] = np.linspace(0.0, angle, samples)
    return made_log(robot, q, **others)


def log_of(robot, controller="pd", period=PERIOD, samples=N, error=0.01, scale=1.0):
    """Every joint swings at a frequency of its own, and is off by an error of its own."""
    t = 0.5 + period * np.arange(samples)
    numbers = np.arange(1, robot.n + 1)
    q_ref = 0.3 * scale * np.sin(np.outer(t, numbers))
    off = error * numbers * np.sin(40.0 * t[:, None] + numbers)
    qd = 0.3 * scale * numbers * np.cos(np.outer(t, numbers))
    tau = 10.0 * numbers * np.cos(np.outer(t, 7.0 * numbers))
    saturated = np.zeros(q_ref.shape, dtype=bool)
    saturated[3:9, 1] = True
    return Log(
        robot=robot, controller=controller, time_step=period, steps_per_period=1, t=t, q_ref=q_ref,
        qd_ref=qd, qdd_ref=-q_ref, q=q_ref - off, qd=qd + off, tau=tau, tau_demand=1.5 * tau,
        saturated=saturated, loop_gap=np.zeros(samples),
    )  # fmt: skip


def irb140_log(controller="pd", **settings):
    return log_of(twin.load("irb140"), controller, **settings)


def sliding_log():
    """Of a robot whose second joint slides, and whose kernels are not worth compiling."""
    return log_of(interpreted(twin.load("rtr")))


def broken_log(controller="pd", first=40, **settings):
    """From some sample on nothing is finite, as of a run that diverged."""
    log = irb140_log(controller, **settings)
    arrays = {name: getattr(log, name).copy() for name in ("q", "qd", "tau")}
    for array in arrays.values():
        array[first:] = np.nan
    # Not those that stood for them before.
    return replace(log, **arrays, q_motor=None, qd_motor=None, q_seen=None, qd_seen=None, tau_joint=None)

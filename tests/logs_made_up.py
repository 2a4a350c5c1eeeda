"""Logs made of numbers, without a run: what tables, figures and pictures of logs are tried on."""

from dataclasses import replace

import numpy as np

import twin
from tests.random_trees import interpreted
from twin.logs.log import Log

N = 60
PERIOD = 2e-3


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

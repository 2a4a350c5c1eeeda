"""Logs of motions that are given, not simulated: for what shows logs."""

import numpy as np

from twin.logs.log import Log


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

"""Sweeps: two threads against one, and the cost of the tool error; `start_up` times the whole command."""

from collections.abc import Iterator
from functools import partial

import numpy as np

import controllers
from tests.bench.rollouts import on_threads
from tests.bench.timing import Meter, Row, same
from twin import Robot, quintic, sample_semi_implicit, sweep

VARIED = {"payload": "0:6", "model.mass": "+-10%"}


def rows(robot: Robot, meter: Meter) -> Iterator[Row]:
    """Time runs of 4 s under computed torque; each run makes its arm and controller."""
    samples = 2 if meter.is_short else 200
    move = quintic(np.zeros(robot.n), np.full(robot.n, 0.8), duration=4.0)
    reference = sample_semi_implicit(move, 1e-3)
    law = partial(controllers.make, "computed_torque")

    def swept(threads, tool=None):
        with on_threads(threads):
            return sweep(robot, law, reference, VARIED, samples=samples, T_flange_tool=tool).table

    def same_errors(tooled, one):
        same(tooled["joint_error"], one["joint_error"], 0.0)
        same(tooled["tool_error"], tooled["tool_error"], 0.0)  # not NaN

    yield meter.compare(
        f"sweep of {samples} runs of 4 s, {robot.name}, two threads, a run", "one thread",
        lambda: swept(2), lambda: swept(1),
        ours_per_call=samples, theirs_per_call=samples, goal=0.62,
        agree=lambda two, one: same(two["joint_error"], one["joint_error"], 0.0),
    )  # fmt: skip
    yield meter.compare(
        f"sweep of {samples} runs of 4 s, {robot.name}, with the tool's error, a run", "joint errors alone",
        lambda: swept(1, np.eye(4)), lambda: swept(1),
        ours_per_call=samples, theirs_per_call=samples, goal=1.35, agree=same_errors,
    )  # fmt: skip

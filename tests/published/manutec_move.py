"""The published move of the Manutec r3 in the engine and in the model: how near to the reference simulation.

The arm moves 15 kg. Each motor has a position loop and a speed loop, without a model of the arm. The drives
have rotors, Coulomb and static friction, and in axes 1 to 3 elastic gears, on which the arm swings after the
motors have come to rest. The simulation differs from the published model in three points: the engine has
discrete steps, the speed loop sums its integral in these steps, and the motors produce the demanded torque
without delay. The omitted current loop has a time constant of a quarter of a millisecond, which causes an
error of 8e-5 rad.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import controllers
import twin
from scenarios.metric import Metric
from scenarios.setup import Sampling
from tests.published import manutec_r3

if TYPE_CHECKING:
    from twin.data.logs.log import Log

PER_STEP = {"consistent": 0.2, "continuous": 1.9}
"""[rad/s]: error of the discrete steps over the control period, by the sampling of the reference.

The speeds of the continuous one are half a step ahead of the engine's. Observed: 0.15 and 1.2.
"""
CURRENT_LOOP = 1e-4  # rad: largest error of the omitted current loop; observed: 7.5e-5
ROUNDING = 1e-12  # rad


def run(
    controller: str = "cascade", reference: str = "consistent", time_step: float = 1e-3
) -> tuple[Log, Log, tuple[Metric, ...]]:
    """Return the log of the engine, that of the model, and their figures; `cascade` has the published gains.

    Other controllers have no limits.
    """
    robot = twin.load(manutec_r3.NAME).with_payload(manutec_r3.LOAD).with_drives("elastic")
    move = twin.sequence(manutec_r3.published_move(robot), twin.hold(robot.poses["end"], manutec_r3.REST))
    samples = Sampling(time_step, reference=reference).sampled(move)
    published = controller == "cascade"
    law = (
        manutec_r3.published_law(robot, time_step)
        if published
        else controllers.make(controller, robot, bandwidth=20.0, period=time_step)
    )
    with twin.Simulation(robot, time_step=time_step) as simulation:
        log = twin.run_closed_loop(simulation, law, samples, learn=False)
    model = twin.run_closed_loop(twin.AnalyticPlant(robot, time_step), law, samples, learn=False)
    limit = PER_STEP[reference] * time_step + CURRENT_LOOP if published else None
    distance = deviation(log, manutec_r3.INSTANTS, manutec_r3.ANGLES)
    return log, model, (
        _largest("from the reference run, at 8 instants", distance, limit, "discrete steps and current loop"),
        _largest("engine - model, whole run", log.q - model.q, ROUNDING if published else None, "rounding"),
        _largest("largest joint error", log.q_ref - log.q, None, "no model of gravity, rotors or friction"),
        _largest("largest twist of a gear", log.q_motor - log.q, None, "at the joint"),
    )  # fmt: skip


def deviation(log: Log, t: NDArray, q: NDArray) -> NDArray:
    """Return the deviation (M, n) of the joints from the angles q (M, n) at the times t (M,), in [rad]."""
    return np.column_stack([np.interp(t, log.t, joint) for joint in log.q.T]) - q


def _largest(name: str, values: NDArray, limit: float | None, why: str) -> Metric:
    return Metric(name, float(np.max(np.abs(values))), "rad", limit, why)

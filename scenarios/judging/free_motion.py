"""Free motion of an arm in the engine and in the model: positions and energy without motor torques."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenarios.metric import Metric
from scenarios.options import positive
from twin.base.errors import LimitError, TouchedError
from twin.physics.robot.robot import Robot

if TYPE_CHECKING:
    from scenarios.setup import Setup
    from twin.data.logs.log import Log


def check_free_time(free_time: float, time_step: float) -> None:
    """Raise an error unless the free time, in [s], is finite and at least one time step, in [s].

    Raises:
        ValueError: it is not.
    """
    positive(free_time, "free time", "s")
    if not free_time >= time_step:
        raise ValueError(
            f"expected a free time of at least one time step, {time_step:g} s, got {free_time:g} s"
        )


class FreeMotion(NamedTuple):
    """Free motion of the engine's arm and of the model's.

    Attributes:
        engine, model: (N, 2, n) each, positions and speeds `[q, qd]`.
        gap: (N,) gap of the closed loops in the engine, in [m].
    """

    engine: NDArray
    model: NDArray
    gap: NDArray


def free_motion(robot: Robot, q: NDArray, qd: NDArray, duration: float, setup: Setup) -> FreeMotion:
    """Simulate the free motion in the engine and in `AnalyticPlant`; stop early if a closed loop would fold.

    Args:
        robot: the robot; its joints have no stops here.
        q: (n,) positions at the release, in [rad].
        qd: (n,) speeds at the release, in [rad/s].
        duration: length of the motion, in [s].
        setup: time step of engine and model, and whether a window shows the engine's motion.

    Raises:
        TouchedError: a person changed the motion at the window.
    """
    from twin.physics.control.plant import AnalyticPlant
    from twin.physics.engine.simulation import Simulation

    found: list[NDArray] = []
    loop_gaps: list[float] = []
    with Simulation(robot, time_step=setup.time_step, gui=setup.gui) as simulation:
        for plant in (simulation, AnalyticPlant(robot, setup.time_step)):
            plant.reset(q, qd)
            states, gaps = [plant.state()], [0.0]
            for _ in range(round(duration / setup.time_step)):
                try:
                    plant.step(np.zeros(robot.n))
                except LimitError:
                    break
                states.append(plant.state())
                gaps.append(plant.loop_gap)
            found.append(np.array(states))
            if plant is simulation:
                loop_gaps = gaps
        if simulation.bench is not None and simulation.bench.touches:
            from scenarios.bench.watched import touches_of

            raise TouchedError(touches_of(simulation.bench))
    return FreeMotion(found[0], found[1], np.array(loop_gaps))


def free_metrics(log: Log, free: FreeMotion) -> tuple[Metric, ...]:
    """Return the metrics of a free motion of the log's robot: length, positions and energy."""
    from twin.physics.dynamics.equation_of_motion import energy, gravity_torque

    engine, model = free.engine, free.model
    steps = min(len(engine), len(model))
    # If a loop folds in only one of the two, the difference is undefined: NaN fails the check.
    same_end = 0.0 if len(engine) == len(model) else np.nan
    engine, model = engine[:steps], model[:steps]
    energy_engine, energy_model = (energy(log.robot, *np.moveaxis(x, 1, 0)) for x in (engine, model))
    return (
        Metric(
            "length of the free motion",
            (steps - 1) * log.time_step,
            "s",
            None,
            "of the settings, or until a closed loop would fold",
        ),
        Metric(
            "free motion, engine - model",
            float(np.max(np.abs(engine[:, 0] - model[:, 0]))) + same_end,
            "rad",
            1e-11,
            "the rounding of every step, amplified along a tumbling motion; observed: 6e-14",
        ),
        Metric(
            "energy, engine - model",
            float(np.max(np.abs(energy_engine - energy_model))),
            "J",
            1e-11 * float(np.max(np.abs(gravity_torque(log.robot, model[:, 0])))),
            "1e-11 rad times the largest gravity torque along the motion",
        ),
        Metric(
            "energy change in free motion",
            float(np.max(np.abs(energy_engine - energy_engine[0]))),
            "J",
            None,
            "semi-implicit Euler conserves energy only to first order in its step, and friction dissipates "
            "some; equal in both",
        ),
    )

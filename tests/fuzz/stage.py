"""A short closed loop for the programs of `programs.py`, without compiled kernels."""

import numpy as np

from twin import AnalyticPlant, Log, hold, run_closed_loop, sample
from twin.robot.evaluation import uncompiled

TORQUE = (0.0, 1.0, 0.5, 0.0, 0.1, 0.0)


def driven(config, law) -> Log:
    """Hold the configured robot for 5 ms under a control law, and return the log."""
    robot = uncompiled(config.load_robot())
    return run_closed_loop(AnalyticPlant(robot), law, sample(hold(np.zeros(robot.n), 0.005), 1e-3))


def held(config) -> Log:
    """Hold the configured robot for 5 ms under a valid control law, and return the log."""
    return driven(config, lambda state, reference: np.array(TORQUE[: len(state.q)]))

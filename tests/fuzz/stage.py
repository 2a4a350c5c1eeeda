"""A short closed loop for the programs of `programs.py`, without anything that has to be compiled for it."""

import numpy as np

from twin.control.closed_loop import run_closed_loop
from twin.control.plant import AnalyticPlant
from twin.logs.log import Log
from twin.robot.evaluation import uncompiled
from twin.trajectories.joint_trajectories import hold
from twin.trajectories.sampling import sample

TORQUE = (0.0, 1.0, 0.5, 0.0, 0.1, 0.0)


def driven(config, law) -> Log:
    """Two joints' robot, or whichever is asked for, held for 5 ms by a law."""
    robot = uncompiled(config.load_robot())
    return run_closed_loop(AnalyticPlant(robot), law, sample(hold(np.zeros(robot.n), 0.005), 1e-3))


def held(config) -> Log:
    """As `driven`, by a law that is right."""
    return driven(config, lambda state, reference: np.array(TORQUE[: len(state.q)]))

"""A run in parts, as at the bench, whose reference is made as it goes."""

import numpy as np
import pytest

import controllers
from twin.control.closed_loop import run_closed_loop
from twin.engine.simulation import Simulation
from twin.trajectories.joint_trajectories import sines
from twin.trajectories.sampling import Samples, recursion_consistent


@pytest.mark.parametrize("drives", ["ideal", "elastic"])
def test_the_parts_of_a_run_are_the_run(irb140, drives):
    """The integral of the law and the springs of the drives are kept from part to part."""
    robot = irb140.with_drives(drives)
    swing = sines(np.full(6, 0.1), np.full(6, 0.5), np.array([0.31, 0.43, 0.57, 0.61, 0.73, 0.89]), 0.3)
    whole = Samples(*(series[:300] for series in recursion_consistent(swing, 1e-3)))
    law = controllers.make("pid", robot)
    with Simulation(robot) as simulation:
        once = run_closed_loop(simulation, law, whole)
        simulation.reset(whole.q[0], whole.qd[0])
        law.reset()
        parts = [
            run_closed_loop(simulation, law, Samples(*(series[some] for series in whole)), part=True)
            for some in (slice(0, 120), slice(120, 121), slice(121, 300))
        ]
        with pytest.raises(ValueError, match="a part of a run begins where the plant is"):
            run_closed_loop(simulation, law, whole, start=(whole.q[0], whole.qd[0]), part=True)
    for name in ("t", "q", "qd", "tau", "q_motor", "qd_motor"):
        joined = np.concatenate([getattr(log, name) for log in parts])
        assert joined.tobytes() == getattr(once, name).tobytes(), name
    joined = np.concatenate([log.tau_joint for log in parts])
    assert joined[:-1].tobytes() == once.tau_joint[:-1].tobytes()

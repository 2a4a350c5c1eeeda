"""The end of a run without an end."""

import numpy as np
import pytest

import controllers
from twin.control.closed_loop import run_closed_loop
from twin.engine.simulation import Simulation
from twin.logs.columns import between
from twin.logs.log import RunningLog
from twin.trajectories.joint_trajectories import sines
from twin.trajectories.sampling import Samples, sample_semi_implicit


@pytest.mark.parametrize("drives", ["ideal", "elastic"])
def test_it_is_the_end_of_the_whole(robot, drives):
    """Parts of any length, one of them longer than what is kept; arrays that stand for others still do."""
    motion = sines(np.full(6, 0.1), np.full(6, 0.3), np.full(6, 0.5), 0.1)
    whole = Samples(*(series[:90] for series in sample_semi_implicit(motion, 1e-3)))
    law = controllers.make("pd", robot)
    plant = robot.with_drives(drives)
    with Simulation(plant) as simulation:
        once = run_closed_loop(simulation, law, whole)
        for kept in (200, 33, 10):
            running = RunningLog(kept)
            assert running.log(np.eye(4), {}) is None
            simulation.reset(whole.q[0], whole.qd[0])
            for part in (slice(0, 1), slice(1, 40), slice(40, 44), slice(44, 90)):
                samples = Samples(*(series[part] for series in whole))
                running.add(run_closed_loop(simulation, law, samples, part=True))
            tail = running.log(np.eye(4), {"own": np.arange(3)})
            end = between(once, start=float(once.t[max(0, 90 - kept)]))
            assert list(tail.arrays) == ["own"]
            tail.require_consistent()
            for name in ("t", "q_ref", "q", "qd", "tau", "saturated", "q_motor", "q_seen"):
                assert getattr(tail, name).tobytes() == getattr(end, name).tobytes(), name
            assert (tail.q_motor is tail.q) == (drives == "ideal")
            assert tail.q_seen is tail.q_motor
    running.restart()
    assert running.log(np.eye(4), {}) is None
    with pytest.raises(ValueError, match="at least 1 sample, got 0"):
        RunningLog(0)

"""A run in parts, as at the bench, whose reference is made as it goes."""

import numpy as np
import pytest

import controllers
from twin.control.closed_loop import run_closed_loop
from twin.control.signals import RunningSensors
from twin.engine.simulation import Simulation
from twin.robot.drives.sensors import Sensors
from twin.trajectories.joint_trajectories import sines
from twin.trajectories.sampling import Samples, sample_semi_implicit


def swing():
    """300 samples of all joints."""
    motion = sines(np.full(6, 0.1), np.full(6, 0.5), np.array([0.31, 0.43, 0.57, 0.61, 0.73, 0.89]), 0.3)
    return Samples(*(series[:300] for series in sample_semi_implicit(motion, 1e-3)))


@pytest.mark.parametrize("drives", ["ideal", "elastic"])
def test_the_parts_of_a_run_are_the_run(irb140, drives):
    """The integral of the law and the springs of the drives are kept from part to part."""
    robot = irb140.with_drives(drives)
    whole = swing()
    law = controllers.make("pid", robot)
    with Simulation(robot) as simulation:
        once = run_closed_loop(simulation, law, whole)
        simulation.reset(whole.q[0], whole.qd[0])
        law.reset()
        parts = [
            run_closed_loop(simulation, law, Samples(*(series[some] for series in whole)), part=True)
            for some in (slice(0, 120), slice(120, 121), slice(121, 300))
        ]
        with pytest.raises(ValueError, match="a part of a run begins at the plant's present state"):
            run_closed_loop(simulation, law, whole, start=(whole.q[0], whole.qd[0]), part=True)
    for name in ("t", "q", "qd", "tau", "q_motor", "qd_motor"):
        joined = np.concatenate([getattr(log, name) for log in parts])
        assert joined.tobytes() == getattr(once, name).tobytes(), name
    joined = np.concatenate([log.tau_joint for log in parts])
    assert joined[:-1].tobytes() == once.tau_joint[:-1].tobytes()


@pytest.mark.parametrize("delay", [0, 3])
def test_sensors_go_on_from_part_to_part(irb140, delay):
    """Noise, the filter of the speeds and what is still on its way are those of the whole run."""
    whole, law = swing(), controllers.make("pid", irb140)
    sensors = Sensors(encoder=True, noise=1e-5, speed_cutoff=50.0, delay=delay, seed=3)
    running = RunningSensors(sensors, irb140.n)
    with Simulation(irb140) as simulation:
        once = run_closed_loop(simulation, law, whole, sensors=sensors)
        again = run_closed_loop(simulation, law, whole, sensors=running)
        with pytest.raises(ValueError, match="expected RunningSensors"):
            run_closed_loop(simulation, law, whole, sensors=sensors, part=True)
        running.restart()
        simulation.reset(whole.q[0], whole.qd[0])
        law.reset()
        parts = [
            run_closed_loop(
                simulation, law, Samples(*(series[some] for series in whole)), part=True, sensors=running
            )
            for some in (slice(0, 2), slice(2, 3), slice(3, 7), slice(7, 300))
        ]
    assert once.identical(again)
    for name in ("q", "tau", "q_seen", "qd_seen"):
        joined = np.concatenate([getattr(log, name) for log in parts])
        assert joined.tobytes() == getattr(once, name).tobytes(), name

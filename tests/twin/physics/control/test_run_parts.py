"""A run in parts, as at the bench, whose reference is made as it goes; the torque that a law receives."""

import numpy as np
import pytest

import controllers
import twin
from twin.data.logs.closed_loop import run_closed_loop
from twin.physics.control.signals import RunningSensors
from twin.physics.engine.simulation import Simulation
from twin.physics.robot.drives.motors import Sensors
from twin.physics.trajectories.joint_trajectories import sines
from twin.physics.trajectories.sampling import Samples, sample_semi_implicit


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


# The torque that the motors gave since the sample before, as a controller receives it.

REFERENCE = twin.sample(twin.quintic([0.0] * 6, [0.5, -0.5, 0.5, 0.5, 0.5, 0.5], 0.3), 1e-3)


class Witness:
    """Controller that stores the torques that it receives.

    Args:
        robot: the robot.
        scale: factor on the torque of PD, to exceed the limits.
    """

    def __init__(self, robot, scale=1.0):
        self.law, self.scale, self.received = controllers.make("pd", robot), scale, []

    def __call__(self, state, reference):
        self.received.append(state.tau.copy())
        state.tau[:] = 99.0  # must not reach the robot
        return self.scale * self.law(state, reference)


@pytest.mark.parametrize(("scale", "engine"), [(1.0, True), (8.0, False)])
def test_controller_receives_the_torque_of_the_motors(irb140, scale, engine):
    law = Witness(irb140, scale)
    with twin.Simulation(irb140) as simulation:
        plant = simulation if engine else twin.AnalyticPlant(irb140)
        log = twin.run_closed_loop(plant, law, REFERENCE, start=([0.3] * 6, [0.0] * 6))
    assert log.saturated.any() == (scale > 1.0)
    assert not law.received[0].any()
    assert np.array_equal(law.received[1:], log.tau[:-1])


def test_parts_of_a_run_receive_the_torque_of_the_part_before(irb140):
    whole, parted = Witness(irb140), Witness(irb140)
    log = twin.run_closed_loop(twin.AnalyticPlant(irb140), whole, REFERENCE)
    plant = twin.AnalyticPlant(irb140)
    plant.reset(REFERENCE.q[0], REFERENCE.qd[0])
    for first, last in ((0, 100), (100, 101), (101, len(REFERENCE.t))):
        part = type(REFERENCE)(*(array[first:last] for array in REFERENCE))
        twin.run_closed_loop(plant, parted, part, part=True)
    assert np.array_equal(whole.received, parted.received)
    assert np.array_equal(plant.tau, log.tau[-1])
    plant.reset([0.0] * 6)
    assert not plant.tau.any()


def test_engine_forgets_its_torque_at_a_reset(irb140):
    with twin.Simulation(irb140) as simulation:
        simulation.reset([0.1] * 6)
        simulation.step(np.arange(6.0))
        assert simulation.tau.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
        simulation.reset([0.1] * 6)
        assert not simulation.tau.any()

"""A payload that is attached or dropped in the midst of a simulation."""

import numpy as np
import pytest

from twin.physics.control.plant import AnalyticPlant
from twin.physics.dynamics.equation_of_motion import gravity_torque
from twin.physics.engine.simulation import Simulation
from twin.physics.robot.robot import Payload

LOAD = Payload(4.0, (0.02, -0.03, 0.1), np.diag([0.02, 0.03, 0.01]))
STEPS = 40


def in_motion(simulation, steps=STEPS):
    """From rest in a bent pose, under the weight and some torque."""
    robot = simulation.robot
    simulation.reset(np.array([0.3, -0.2, 0.2, 0.4, 0.5, -0.3]))
    for _ in range(steps):
        simulation.step(0.9 * gravity_torque(robot, simulation.state()[0]) + 1.0)


def test_it_goes_on_as_a_simulation_of_the_loaded_robot_from_there(irb1400):
    """To the bit; and back without it as one of the robot without it."""
    robot = irb1400
    with Simulation(robot) as simulation:
        in_motion(simulation)
        for payload in (LOAD, None):
            q, qd = simulation.state()
            simulation.change_payload(payload)
            assert simulation.robot.payload is payload
            with Simulation(robot.with_payload(payload)) as fresh:
                fresh.reset(q, qd)
                for tau in (np.zeros(6), np.arange(6.0), -np.ones(6)):
                    simulation.step(tau)
                    fresh.step(tau)
                    assert np.array_equal(simulation.state(), fresh.state())
                    assert simulation.loop_gap == fresh.loop_gap
        assert simulation.picture(32, 24).shape == (24, 32, 3)


@pytest.mark.filterwarnings("ignore::twin.errors.DriveWarning")
def test_the_motors_of_elastic_drives_keep_their_place_and_speed(irb140):
    """As in our own model of the loaded arm, put where the engine's was."""
    robot = irb140.with_drives("elastic")
    with Simulation(robot) as simulation:
        in_motion(simulation)
        (q, qd), motors = simulation.state(), simulation.motor_state()
        assert np.max(np.abs(motors - (q, qd))) > 1e-4, "the springs are wound"
        simulation.change_payload(LOAD)
        assert np.array_equal(simulation.state(), (q, qd))
        assert np.array_equal(simulation.motor_state(), motors)
        model = AnalyticPlant(robot.with_payload(LOAD))
        model.reset(q, qd)
        model._drives._motors[:] = motors
        for _ in range(STEPS):
            simulation.step(np.zeros(6))
            model.step(np.zeros(6))
        assert np.max(np.abs(simulation.state() - model.state())) < 1e-10
        assert np.max(np.abs(simulation.motor_state() - model.motor_state())) < 1e-10
        assert np.max(np.abs(simulation.state()[1] - qd)) > 0.01, "it moved"

"""The torque that the motors gave since the sample before, as a controller receives it."""

import numpy as np
import pytest

import controllers
import twin

ROBOT = twin.load("irb140")
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
def test_controller_receives_the_torque_of_the_motors(scale, engine):
    law = Witness(ROBOT, scale)
    with twin.Simulation(ROBOT) as simulation:
        plant = simulation if engine else twin.AnalyticPlant(ROBOT)
        log = twin.run_closed_loop(plant, law, REFERENCE, start=([0.3] * 6, [0.0] * 6))
    assert log.saturated.any() == (scale > 1.0)
    assert not law.received[0].any()
    assert np.array_equal(law.received[1:], log.tau[:-1])


def test_parts_of_a_run_receive_the_torque_of_the_part_before():
    whole, parted = Witness(ROBOT), Witness(ROBOT)
    log = twin.run_closed_loop(twin.AnalyticPlant(ROBOT), whole, REFERENCE)
    plant = twin.AnalyticPlant(ROBOT)
    plant.reset(REFERENCE.q[0], REFERENCE.qd[0])
    for first, last in ((0, 100), (100, 101), (101, len(REFERENCE.t))):
        part = type(REFERENCE)(*(array[first:last] for array in REFERENCE))
        twin.run_closed_loop(plant, parted, part, part=True)
    assert np.array_equal(whole.received, parted.received)
    assert np.array_equal(plant.tau, log.tau[-1])
    plant.reset([0.0] * 6)
    assert not plant.tau.any()


def test_engine_forgets_its_torque_at_a_reset():
    with twin.Simulation(ROBOT) as simulation:
        simulation.reset([0.1] * 6)
        simulation.step(np.arange(6.0))
        assert simulation.tau.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
        simulation.reset([0.1] * 6)
        assert not simulation.tau.any()

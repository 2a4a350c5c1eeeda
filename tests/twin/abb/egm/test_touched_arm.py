"""An arm under EGM that is pushed and touches a surface: its log, and the force that a client reads."""

import numpy as np
import pytest
from twin.dynamics import Environment, pushes, surface

import controllers
import twin
from twin.abb.egm.robot.guided_arm import GuidedArm, standing_samples

Q = np.array([0.3, 0.4, -0.2, 0.5, 0.7, -0.4])


@pytest.fixture
def robot():
    return twin.load("irb140").with_drives("rigid")


def test_blocks_of_a_pushed_arm_are_one_run(robot):
    """The wrench of the log, of the closed loop in one piece, and of the message to a client agree."""
    p = twin.forward_kinematics(robot, Q)[:3, 3]
    floor = surface(f"plane=0,0,1 at=0,0,{p[2] - 1e-4} stiffness=5e4 damping=300")
    world = Environment(pushes("0.1:0.3 0,0,-150; 0.2:0.3 20,0,0"), [floor])
    law = controllers.make("pd_gravity", robot, bandwidth=8.0)
    arm = GuidedArm(robot, law, Q, environment=world)
    try:
        for _ in range(80):
            arm.move(standing_samples(Q, 4))
            if arm.t == pytest.approx(0.24):
                np.testing.assert_array_equal(arm.push()[:2], [20, 0])
        log = arm.log(np.eye(4), {})
    finally:
        arm.close()
    with twin.Simulation(robot) as simulation:
        motion = twin.sample(twin.hold(Q, 0.319), 1e-3)
        whole = twin.run_closed_loop(simulation, law, motion, environment=world)
    np.testing.assert_array_equal(log.wrench, whole.wrench)
    np.testing.assert_array_equal(log.q, whole.q)
    assert np.max(log.wrench[:, 2]) > 1.0
    assert log.model_residual() < 1e-13


def test_start_in_a_surface_is_refused(robot):
    floor = surface("plane=0,0,1 at=0,0,2 stiffness=5e4")
    with pytest.raises(ValueError, match="mm inside surface 1, a plane"):
        GuidedArm(robot, controllers.make("pd", robot), Q, environment=Environment((), [floor]))


def test_surface_far_from_the_start_is_not_refused(robot):
    floor = surface("plane=0,0,1 at=0,0,-1 stiffness=5e4")
    GuidedArm(robot, controllers.make("pd", robot), Q, environment=Environment((), [floor])).close()

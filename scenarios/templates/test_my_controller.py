"""Tests of the controller in my_controller.py; `python -m pytest test_my_controller.py` runs them."""

import numpy as np
from my_controller import MyController

import twin
from twin.physics.trajectories.sampling import Reference, State

ROBOT = twin.load("irb140")
START, END = ROBOT.poses["test_3"], ROBOT.poses["test_1"]
AT_REST = np.zeros(ROBOT.n)


def test_without_an_error_the_torque_holds_the_arm_at_rest():
    """Compare with the torque of inverse dynamics at rest."""
    tau = MyController(ROBOT)(State(0.0, START, AT_REST), Reference(START, AT_REST, AT_REST))
    np.testing.assert_allclose(tau, twin.inverse_dynamics(ROBOT, START, AT_REST, AT_REST), atol=1e-9)


def test_an_error_of_one_joint_changes_the_torque_of_this_joint_only():
    """Put joint 3 0.01 rad behind its reference: only its torque changes, in positive direction."""
    law = MyController(ROBOT)
    ahead = START + np.array([0, 0, 0.01, 0, 0, 0])
    weight = law(State(0.0, START, AT_REST), Reference(START, AT_REST, AT_REST))
    tau = law(State(0.0, START, AT_REST), Reference(ahead, AT_REST, AT_REST)) - weight
    assert tau[2] > 0
    np.testing.assert_allclose(np.delete(tau, 2), 0, atol=1e-9)


def test_controller_follows_a_motion_in_the_engine():
    """Move for two seconds from pose to pose in PyBullet; test the largest and the final error."""
    path = twin.quintic(START, END, duration=2.0)
    with twin.Simulation(ROBOT) as arm:
        log = twin.run_closed_loop(arm, MyController(ROBOT), twin.sample_semi_implicit(path, 1e-3))
    error = np.abs(log.q_ref - log.q)  # (samples, joints), in [rad]
    assert error.max() < 0.03  # the error that you accept for your controller
    assert error[-1].max() < 0.01

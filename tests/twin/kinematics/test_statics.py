"""Joint torques of a wrench, and mobility; the transforms of twists and wrenches are in tests/published."""

import numpy as np
import pytest

import twin
from tests.support.refusals import refused
from twin.kinematics.statics import cross_matrix, mobility, wrench_torque, wrench_transform


@pytest.mark.parametrize("name", ["irb140", "irb1400", "irb1600"])
def test_joint_torques_do_the_work_of_the_wrench(name):
    robot = twin.load(name)
    rng = np.random.default_rng(6)
    q, qd = rng.uniform(-1, 1, (2, 100, robot.n))
    F, T_tool = rng.normal(size=(100, 6)), twin.pose_matrix([0.1, -0.4, 0.2, 0.5, -0.5, 0.1, 0.7])
    tau = wrench_torque(robot, q, F, T_tool)
    V = np.einsum("kij,kj->ki", twin.jacobian(robot, q, T_tool), qd)
    np.testing.assert_allclose(np.sum(tau * qd, axis=1), np.sum(F * V, axis=1), rtol=0, atol=1e-14)
    # A wrench on the robot is the same as these torques in the equation of motion.
    zeros = np.zeros_like(q)
    pushed = twin.inverse_dynamics(robot, q, zeros, zeros, wrench=F, T_flange_tool=T_tool)
    np.testing.assert_allclose(pushed, twin.gravity_torque(robot, q) - tau, rtol=0, atol=1e-12)
    assert wrench_torque(robot, q[0], F[0], T_tool).shape == (6,)


def test_mobility_of_plain_arms_and_closed_chains():
    assert mobility(6, 6 * [1]) == 6
    assert mobility(0, []) == 0
    assert mobility(3, 4 * [1]) == -2  # a planar four-bar, whose axes are parallel: it has 1


def test_misuse_is_one_clear_sentence(robot):
    refused(
        (lambda r: cross_matrix([1, 2]), "expected r of shape (..., 3), got (2,)"),
        (lambda r: wrench_transform(np.eye(6)), "expected T_AB of shape (..., 4, 4), got (6, 6)"),
        (lambda r: wrench_torque(r, np.zeros(6), np.ones(3)), "expected wrench of shape (..., 6), got (3,)"),
        (lambda r: wrench_torque(r, np.zeros(6), [0, 0, np.nan, 0, 0, 0]), "expected a finite wrench"),
        (lambda r: mobility(-1, [1]), "expected an integer number of moving links, got -1"),
        (lambda r: mobility(2, [1, 6]), "expected joints of 1 to 5 freedoms, got 6"),
        given=(robot,),
    )

"""Kernels run on numbers against the compiled ones: the same definitions, so the same values to rounding."""

import numpy as np

import twin
from tests.support.peers import largest_relative_error
from twin.robot.evaluation import uncompiled

T_TOOL = np.array([[0.0, 0, 1, 0.05], [1, 0, 0, -0.02], [0, 1, 0, 0.12], [0, 0, 0, 1]])


def test_every_function_of_either_arm(arm, rng):
    robot = uncompiled(arm)
    q, qd, qdd = rng.uniform(-1, 1, (3, 4, 6))
    for function, arguments in (
        (twin.inverse_dynamics, (q, qd, qdd)),
        (twin.forward_dynamics, (q, qd, 20 * qdd)),
        (twin.mass_matrix, (q,)),
        (twin.coriolis_matrix, (q, qd)),
        (twin.gravity_torque, (q,)),
        (twin.forward_kinematics, (q, T_TOOL)),
        (twin.jacobian, (q, T_TOOL)),
        (twin.jacobian_dot, (q, qd, T_TOOL)),
    ):
        found = function(robot, *arguments)
        assert largest_relative_error(found, function(arm, *arguments)) < 1e-14, function.__name__
        sample = (a[1] if a.ndim == 2 and a is not T_TOOL else a for a in arguments)
        np.testing.assert_array_equal(found[1], function(robot, *sample))
    if arm.loops:
        gaps = np.empty((2, 3 * len(arm.loops)))
        for each, out in zip((robot, arm), gaps, strict=True):
            each.kernels.loop_gaps(np.arange(8.0), out)
        np.testing.assert_allclose(*gaps, atol=1e-15)
    np.testing.assert_allclose(twin.energy(robot, q, qd), twin.energy(arm, q, qd), rtol=1e-14)


def test_payload_and_gravity_are_the_robot_s_which_stays_as_it_was(arm, rng):
    changed = arm.with_payload(twin.Payload(3.0, (0.0, 0.1, 0.05))).mounted("wall")
    q, qd, tau = rng.uniform(-1, 1, (3, 6))
    found, expected = (twin.forward_dynamics(one, q, qd, tau) for one in (uncompiled(changed), changed))
    assert largest_relative_error([found], [expected]) < 1e-13
    assert uncompiled(arm).kernels is not arm.kernels
    assert uncompiled(arm).tree is arm.tree

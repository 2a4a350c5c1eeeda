"""One sample, and kernels run on numbers, give the numbers of a batch; nothing slips past the checks."""

from dataclasses import replace

import numpy as np
import pytest

import twin
from tests.support.peers import largest_relative_error
from tests.support.sample_drives import RUBBING
from twin.physics.kinematics import forward
from twin.physics.multibody import kernels
from twin.physics.robot.evaluation import uncompiled

CALLS = {
    "inverse_dynamics": 3, "forward_dynamics": 3, "coriolis_matrix": 2, "mass_matrix": 1,
    "gravity_torque": 1, "forward_kinematics": 1, "jacobian": 1, "jacobian_dot": 2,
}  # fmt: skip


def frozen(vector):
    vector = vector.copy()
    vector.setflags(write=False)
    return vector


@pytest.mark.parametrize("mode", ["ideal", "rigid"])
def test_one_sample_has_the_bits_of_a_batch(arm, mode, rng):
    robot = arm.with_drives(mode, replace(RUBBING, coulomb_per_load=0.02))
    for name, count in CALLS.items():
        vectors, function = rng.uniform(-0.5, 0.5, (count, 6)), getattr(twin, name)
        one = function(robot, *vectors).tobytes()
        assert one == function(robot, *vectors[:, None])[0].tobytes(), name
        for strange in (np.ndarray.tolist, lambda vector: np.repeat(vector, 2)[::2], frozen):
            assert function(robot, *map(strange, vectors)).tobytes() == one, name


@pytest.mark.parametrize("name", CALLS)
def test_vectors_that_are_not_finite_or_of_another_length_are_refused(robot, name):
    function, count = getattr(twin, name), CALLS[name]
    for place in range(count):
        vectors = [np.full(6, 0.1) for _ in range(count)]
        for bad in (np.nan, np.inf, -np.inf):
            vectors[place][4] = bad
            with pytest.raises(ValueError, match=rf"to be finite, got {bad} at \[4\]"):
                function(robot, *vectors)
        vectors[place] = np.zeros(5)
        with pytest.raises(ValueError, match=r"of shape \(\.\.\., 6\), got \(5,\)"):
            function(robot, *vectors)
    with pytest.raises(ValueError, match=r"got \(10000000,\)"):  # before anything is made for it
        function(robot, *[np.zeros(10_000_000)] * count)


def test_large_numbers_use_the_general_path(arm):
    """Their sum overflows, so the short way takes them for infinite."""
    qdd = np.array([1e308, 1e308, 0, 0, 0, 0])
    with np.errstate(over="ignore", invalid="ignore"):
        one = twin.inverse_dynamics(arm, np.zeros(6), np.zeros(6), qdd)
        many = twin.inverse_dynamics(arm, np.zeros((1, 6)), np.zeros((1, 6)), qdd[None])
    assert one.tobytes() == many[0].tobytes()


def test_a_payload_and_a_mounting_are_not_forgotten(arm):
    q = np.full(6, 0.3)
    plain = twin.gravity_torque(arm, q)
    loaded = twin.gravity_torque(arm.with_payload(twin.Payload(5.0)), q)
    hanging = twin.gravity_torque(arm.mounted("inverted"), q)
    assert np.max(np.abs(loaded - plain)) > 1
    np.testing.assert_allclose(hanging, -plain, rtol=1e-12)
    assert twin.gravity_torque(arm, q).tobytes() == plain.tobytes()


def test_wrench_and_tool_use_the_general_path(arm, rng):
    q, F = rng.uniform(-0.5, 0.5, 6), rng.uniform(-9, 9, 6)
    zeros = np.zeros(6)
    moved = twin.inverse_dynamics(arm, q, zeros, zeros) - twin.inverse_dynamics(arm, q, zeros, zeros, F)
    np.testing.assert_allclose(moved, twin.jacobian(arm, q).T @ F, rtol=0, atol=1e-11)
    tool = np.eye(4)
    tool[2, 3] = 0.1
    apart = twin.forward_kinematics(arm, q, tool)[:3, 3] - twin.forward_kinematics(arm, q)[:3, 3]
    np.testing.assert_allclose(np.linalg.norm(apart), 0.1, rtol=1e-12)


def test_what_the_functions_share_can_be_written_to_and_is_nobody_else_s(arm):
    """numba knows the type of such arrays sooner; the robot itself must stay as it is."""
    for own, robots in ((arm.single_sample.inertias, arm.inertias), (arm.single_sample.gravity, arm.gravity)):
        assert own.flags.writeable
        assert not robots.flags.writeable
        assert not np.shares_memory(own, robots)
        np.testing.assert_array_equal(own, robots)


def test_a_name_that_is_no_kernel_is_no_attribute(arm):
    with pytest.raises(AttributeError):
        _ = arm.single_sample.nonsense
    assert forward.FLANGE is kernels.FLANGE


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

"""Twists and wrenches from frame to frame, their duality, and mobility."""

import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import twin
from tests.support.laboratory_arms import RX90, urdf_of
from twin.engine.simulation import Simulation
from twin.kinematics.statics import cross_matrix, mobility, twist_transform, wrench_torque, wrench_transform


def random_poses(count, seed=0):
    rng = np.random.default_rng(seed)
    T = np.zeros((count, 4, 4))
    T[:, :3, :3] = Rotation.random(count, rng).as_matrix()
    half = Rotation.from_rotvec([(np.pi - 1e-8, 0, 0), (0, np.pi, 0), (0, 0, 1e-8), (0, 0, 0)]).as_matrix()
    T[:4, :3, :3] = half
    T[:, :3, 3], T[:, 3, 3] = rng.normal(size=(count, 3)), 1.0
    return T


def shift(z):
    T = np.eye(4)
    T[2, 3] = z
    return T


def test_cross_matrix_is_the_vector_product_and_skew():
    rng = np.random.default_rng(1)
    r, a = rng.normal(size=(2, 50, 3))
    S = cross_matrix(r)
    np.testing.assert_allclose(np.einsum("kij,kj->ki", S, a), np.cross(r, a), rtol=0, atol=2e-15)
    np.testing.assert_array_equal(S, -np.swapaxes(S, 1, 2))
    R = Rotation.random(50, rng).as_matrix()
    turned = cross_matrix(np.einsum("kij,kj->ki", R, r))
    np.testing.assert_allclose(turned, R @ S @ np.swapaxes(R, 1, 2), rtol=0, atol=2e-15)  # manual, (4.50)


def test_the_printed_third_row_is_not_skew():
    """Norrlöf 1999, eq. (3.28), prints [w2 w1 0]."""
    w, v = (1.0, 2.0, 3.0), (0.5, -1.0, 2.0)
    S = cross_matrix(w)
    np.testing.assert_array_equal(S @ v, (7.0, -0.5, -2.0))
    np.testing.assert_array_equal(S[2], (-2.0, 1.0, 0.0))
    S[2] = (2.0, 1.0, 0.0)
    np.testing.assert_array_equal(S @ v, (7.0, -0.5, 0.0))


def test_a_twist_moves_to_another_frame_of_the_body():
    """Against the motion of the body itself: both frames' origins and axes, differenced."""
    T_AB = random_poses(40)
    rng = np.random.default_rng(2)
    V_A = rng.normal(size=(40, 6))
    h = 1e-5

    def moved(step):  # body after a time step, in the place of A at time 0
        T = np.zeros((40, 4, 4))
        T[:, :3, :3] = Rotation.from_rotvec(step * V_A[:, 3:]).as_matrix()
        T[:, :3, 3], T[:, 3, 3] = step * V_A[:, :3], 1.0
        return T @ T_AB

    rate = (moved(h) - moved(-h)) / (2 * h)
    R_BA = np.swapaxes(T_AB[:, :3, :3], 1, 2)
    v_B = np.einsum("kij,kj->ki", R_BA, rate[:, :3, 3])
    spin = R_BA @ rate[:, :3, :3]
    omega_B = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
    V_B = np.einsum("kij,kj->ki", twist_transform(T_AB), V_A)
    np.testing.assert_allclose(V_B, np.concatenate([v_B, omega_B], axis=1), rtol=0, atol=2e-9)


def test_transforms_compose_and_keep_the_power():
    T_AB, T_BC = random_poses(60), random_poses(60, seed=3)
    X = twist_transform(T_AB)
    through = twist_transform(T_BC) @ X
    np.testing.assert_allclose(twist_transform(T_AB @ T_BC), through, rtol=0, atol=4e-15)
    np.testing.assert_allclose(np.linalg.inv(X), twist_transform(np.linalg.inv(T_AB)), rtol=0, atol=1e-14)
    rng = np.random.default_rng(4)
    V_A, F_B = rng.normal(size=(2, 60, 6))
    F_A = np.einsum("kij,kj->ki", wrench_transform(T_AB), F_B)
    power_A, power_B = np.sum(F_A * V_A, axis=1), np.sum(F_B * np.einsum("kij,kj->ki", X, V_A), axis=1)
    np.testing.assert_allclose(power_A, power_B, rtol=0, atol=2e-14)


def test_a_wrench_is_the_printed_blocks():
    """Manual, eq. (4.67): f_1 = R f_2, mu_1 = S(r) R f_2 + R mu_2."""
    T = random_poses(10)
    R, r = T[:, :3, :3], T[:, :3, 3]
    f, mu = np.random.default_rng(5).normal(size=(2, 10, 3))
    turned = np.einsum("kij,kj->ki", R, f)
    expected = np.concatenate([turned, np.cross(r, turned) + np.einsum("kij,kj->ki", R, mu)], axis=1)
    found = np.einsum("kij,kj->ki", wrench_transform(T), np.concatenate([f, mu], axis=1))
    np.testing.assert_allclose(found, expected, rtol=0, atol=4e-15)


SENSOR = np.array([1.0, 2, 3, 4, 5, 6])


def test_published_wrench_at_the_handle():
    """Manual, ft2endeffector: from the sensor to the handle 0.14 m before it."""
    T_handle_sensor = np.linalg.inv(shift(0.14))
    np.testing.assert_allclose(
        wrench_transform(T_handle_sensor) @ SENSOR, (1, 2, 3, 4.28, 4.86, 6), rtol=0, atol=1e-15
    )


def test_published_wrench_in_the_base(load):
    """Manual, ft2base, with the arm's pose by its own forward kinematics."""
    robot = load(urdf_of(RX90))
    T_base_sensor = twin.forward_kinematics(robot, np.arange(1.0, 7), shift(0.035))
    expected = (-1.4153, -0.7634, 3.3785, -5.1061, -1.9701, 6.8875)
    np.testing.assert_allclose(wrench_transform(T_base_sensor) @ SENSOR, expected, rtol=0, atol=5e-5)


@pytest.mark.parametrize("name", ["irb140", "irb1400", "irb1600"])
def test_joint_torques_do_the_work_of_the_wrench(name):
    robot = twin.load(name)
    rng = np.random.default_rng(6)
    q, qd = rng.uniform(-1, 1, (2, 100, robot.n))
    F, T_tool = rng.normal(size=(100, 6)), random_poses(9)[-1]
    tau = wrench_torque(robot, q, F, T_tool)
    V = np.einsum("kij,kj->ki", twin.jacobian(robot, q, T_tool), qd)
    np.testing.assert_allclose(np.sum(tau * qd, axis=1), np.sum(F * V, axis=1), rtol=0, atol=1e-14)
    # A wrench on the robot is the same as these torques in the equation of motion.
    zeros = np.zeros_like(q)
    pushed = twin.inverse_dynamics(robot, q, zeros, zeros, wrench=F, T_flange_tool=T_tool)
    np.testing.assert_allclose(pushed, twin.gravity_torque(robot, q) - tau, rtol=0, atol=1e-12)
    assert wrench_torque(robot, q[0], F[0], T_tool).shape == (6,)


def test_torques_that_oppose_a_wrench_hold_the_arm_in_the_engine(robot):
    q, F = robot.poses["test_1"], np.array([30.0, -20, 50, 3, 4, -5])
    tau = twin.gravity_torque(robot, q) - wrench_torque(robot, q, F)
    with Simulation(robot) as simulation:
        simulation.reset(q)
        simulation.step(tau, F)
        assert np.max(np.abs(simulation.state()[1])) / simulation.time_step < 1e-9
        simulation.reset(q)
        simulation.step(tau)
        assert np.max(np.abs(simulation.state()[1])) / simulation.time_step > 1


def test_mobility_of_the_stewart_platform_and_of_plain_arms():
    assert mobility(2 * 6 + 1, 12 * [3] + 6 * [1]) == 12  # Kawasaki, the example below (1)
    assert mobility(2 * 6 + 1, 6 * [3] + 6 * [2] + 6 * [1]) == 6  # with universal joints no leg spins
    assert mobility(6, 6 * [1]) == 6
    assert mobility(0, []) == 0
    assert mobility(3, 4 * [1]) == -2  # a planar four-bar, whose axes are parallel: it has 1
    printed = lambda links, joints: 6 * links - sum(6 - freedoms for freedoms in joints)  # noqa: E731
    assert printed(13, 12 * [3] + 6 * [1]) == 12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: cross_matrix([1, 2]), "expected r of shape (..., 3), got (2,)"),
        (lambda r: twist_transform(np.eye(3)), "expected T_AB of shape (..., 4, 4), got (3, 3)"),
        (lambda r: wrench_transform(np.eye(6)), "expected T_AB of shape (..., 4, 4), got (6, 6)"),
        (lambda r: wrench_torque(r, np.zeros(6), np.ones(3)), "expected wrench of shape (..., 6), got (3,)"),
        (lambda r: wrench_torque(r, np.zeros(6), [0, 0, np.nan, 0, 0, 0]), "expected a finite wrench"),
        (lambda r: wrench_torque(r, np.zeros(5), np.ones(6)), "expected q of shape (..., 6), got (5,)"),
        (lambda r: mobility(2.5, [1]), "expected an integer number of moving links, got 2.5"),
        (lambda r: mobility(-1, [1]), "expected an integer number of moving links, got -1"),
        (lambda r: mobility(np.nan, [1]), "expected an integer number of moving links, got nan"),
        (lambda r: mobility(2, [1, 6]), "expected joints of 1 to 5 freedoms, got 6"),
    ],
)
def test_misuse_is_one_clear_sentence(robot, call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call(robot)

"""The traps of PyBullet that the engine's room keeps shut, one test a trap; those of the file are elsewhere.

Each test fails when its cure is taken out; the name says which trap is open again.
"""

import numpy as np
import pytest

from tests.support.random_trees import random_urdf
from tests.support.small_robots import ROTOR, arm, inertial, one_step_error
from twin.physics.control.plant import AnalyticPlant
from twin.physics.engine.simulation import Simulation
from twin.physics.kinematics.forward import forward_kinematics, jacobian
from twin.physics.robot.robot import Payload

WEIGHTLESS = (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("qd", "steps"), [(2.0, 200), (30.0, 200), (5000.0, 3)])
def test_no_motor_damping_limit_or_largest_speed_slows_a_wheel_down(load, qd, steps):
    with Simulation(load(ROTOR).with_gravity(WEIGHTLESS)) as simulation:
        simulation.reset([0.0], [qd])
        for _ in range(steps):
            simulation.step(np.zeros(1))
        assert simulation.state()[1] == qd
        np.testing.assert_allclose(simulation.state()[0], 1e-3 * steps * qd, rtol=1e-13)


def test_torque_acts_at_every_step_and_no_longer(load):
    with Simulation(load(ROTOR).with_gravity(WEIGHTLESS)) as simulation:
        simulation.reset([0.0])
        for _ in range(100):
            simulation.step(np.array([0.3]))
        np.testing.assert_allclose(simulation.state()[1], 100 * 1e-3 * 0.3 / 0.1, rtol=1e-13)
        before = simulation.state()[1]
        simulation._advance()  # a step that no torque was given for
        assert simulation.state()[1] == before


# ---- reading and acting --------------------------------------------------------------------------


def test_the_tool_pose_is_double_precision_and_of_this_step(irb140, rng):
    T_flange_tool = np.eye(4)
    T_flange_tool[:3, 3] = [0.1, -0.05, 0.2]
    with Simulation(irb140) as simulation:
        simulation.reset(rng.uniform(-1, 1, 6), rng.uniform(-3, 3, 6))
        for _ in range(20):
            simulation.step(rng.uniform(-20, 20, 6))
            T = forward_kinematics(irb140, simulation.state()[0], T_flange_tool)
            np.testing.assert_allclose(simulation.tool_pose(T_flange_tool), T, atol=1e-13)


def test_the_jacobian_is_the_tool_s_not_the_centre_of_mass_s(load, rng):
    T_flange_tool = np.eye(4)
    T_flange_tool[:3, 3] = [0.1, -0.05, 0.2]
    robot = load(arm(second=inertial(rpy="0.4 1.1 -2", tensor=(0.1, 0.12, 0.09, 0, 0, 0))))
    q = rng.uniform(-3, 3, robot.n)
    with Simulation(robot) as simulation:
        found = simulation.jacobian(q, T_flange_tool)
    np.testing.assert_allclose(found, jacobian(robot, q, T_flange_tool), atol=1e-13)


def test_a_wrench_acts_where_the_tool_is_now(irb140, rng):
    """After a step the engine's own link poses are one step old, and so would be the point of attack."""
    wrench, tau = np.array([30.0, -20.0, 10.0, 0.3, 0.2, -0.1]), np.zeros(6)
    twin_of_it = AnalyticPlant(irb140)
    with Simulation(irb140) as simulation:
        for plant in (simulation, twin_of_it):
            plant.reset(np.full(6, 0.4), np.full(6, 2.0))
            for _ in range(20):
                plant.step(tau, wrench)
            plant.step(tau)  # and is gone in a step without it
        for ours, theirs in zip(twin_of_it.state(), simulation.state(), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)


# ---- the world -----------------------------------------------------------------------------------


def test_later_simulation_uses_its_own_robot(irb140, load, rng):
    """PyBullet caches the model behind its inverse dynamics and Jacobian; payloads must not go through it."""
    robots = (irb140, load(arm()), irb140.with_payload(Payload(6.0, [0.0, 0.0, 0.08])), load(arm()))
    for robot in robots:
        q = rng.uniform(-3, 3, robot.n)
        with Simulation(robot) as simulation:
            np.testing.assert_allclose(simulation.jacobian(q), jacobian(robot, q), atol=1e-13)
            assert one_step_error(simulation, rng) < 1e-11
            np.testing.assert_allclose(simulation.jacobian(q), jacobian(robot, q), atol=1e-13)


@pytest.mark.parametrize("seed", range(2))
def test_any_tree_is_simulated_exactly(load, seed):
    rng = np.random.default_rng(seed)
    robot = load(random_urdf(rng, 7, kinds=("revolute", "continuous", "prismatic")))
    q = rng.uniform(-3, 3, robot.n)
    with Simulation(robot) as simulation:
        assert one_step_error(simulation, rng, 4) < 1e-11
        simulation.reset(q)
        np.testing.assert_allclose(simulation.tool_pose(), forward_kinematics(robot, q), atol=1e-13)
        np.testing.assert_allclose(simulation.jacobian(q), jacobian(robot, q), atol=1e-13)


@pytest.mark.parametrize("kind", ["continuous", "revolute", "prismatic"])
def test_a_joint_may_move_without_end(load, kind):
    robot = load(ROTOR.replace('"revolute"', f'"{kind}"')).with_gravity(WEIGHTLESS)
    with Simulation(robot) as simulation:
        for q in (999.9, 1e6, -1e6):
            simulation.reset([q], [np.sign(q) * 50.0])
            for _ in range(10):
                simulation.step(np.zeros(1))
            moved, qd = simulation.state()
            np.testing.assert_allclose(qd, np.sign(q) * 50.0, rtol=0 if kind != "prismatic" else 1e-14)
            np.testing.assert_allclose(moved, q + np.sign(q) * 0.5, rtol=1e-14)

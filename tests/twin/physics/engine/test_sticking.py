"""Joints that stick in the engine: to the bit, up to the torque that breaks them away, loops closed."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.engine_states import BODY, with_coupled_wrist
from tests.support.sample_drives import uncoupled
from twin.physics.dynamics.equation_of_motion import gravity_torque
from twin.physics.engine.simulation import Simulation

AT = np.array([0.3, -0.2, 0.25, 0.4, 0.7, -1.1])
SECONDS = 1000  # steps


def held(simulation, tau, steps):
    """Whether state, to the bit, is the one before at every step; the torques change within the friction."""
    before = simulation.state()
    same = True
    for k in range(steps):
        simulation.step(tau(k))
        same = same and np.array_equal(simulation.state(), before)
    return same


def within_friction(robot, part=0.9):
    """Torques (n,) of a step that stay by so much below what breaks any axis away."""
    g, static = gravity_torque(robot, AT), robot.drives.static
    phase = np.arange(robot.n)
    return lambda k: g + part * static * np.sin(0.013 * k + phase)


def tree_state(simulation):
    """Positions and speeds of all joints, as PyBullet itself tells them."""
    states = simulation._client.getJointStates(simulation._body, simulation._joints)
    return np.array([state[:2] for state in states]).T


def test_below_its_static_friction_an_arm_stands_for_seconds(arm):
    robot = arm.with_drives("rigid")
    with Simulation(robot) as simulation:
        simulation.reset(AT)
        tree = tree_state(simulation)
        assert held(simulation, within_friction(robot), SECONDS)
        np.testing.assert_array_equal(tree_state(simulation), tree)
        assert simulation.loop_gap < 1e-15


def test_coupled_motors_stick_too(irb140):
    robot = with_coupled_wrist(irb140).with_drives("rigid")
    with Simulation(robot) as simulation:
        simulation.reset(AT)
        assert held(simulation, within_friction(robot, 0.5), SECONDS)


@pytest.mark.parametrize("friction_at", ["motor", "joint"])
def test_elastic_joint_with_joint_friction_sticks(irb1400, friction_at):
    """Axis 1 is rigid: it stands whatever the side; the others on springs do if their joints rub."""
    stiffness = np.r_[np.inf, irb1400.drives.stiffness[1:]]
    drives = replace(irb1400.drives, stiffness=stiffness, friction_at=(friction_at,) * 6)
    robot = irb1400.with_payload(BODY).with_drives("elastic", drives)
    tau = within_friction(robot, 0.3)
    with Simulation(robot) as simulation:
        simulation.reset(AT)
        for k in range(SECONDS):
            simulation.step(tau(k))
            q, qd = simulation.state()
            assert q[0] == AT[0]
            assert qd[0] == 0.0
            stays = np.array_equal(q, AT) and not np.any(qd)
            assert stays or friction_at == "motor"
        assert np.max(np.abs(simulation.state()[0] - AT)) < 1e-14
        swings = np.max(np.abs(simulation.motor_state()[1])) > 1e-6
        assert swings == (friction_at == "joint")


def test_every_axis_breaks_away_at_its_static_friction(arm):
    robot = uncoupled(arm).with_drives("rigid")
    g = gravity_torque(robot, AT)
    with Simulation(robot) as simulation:
        for breakaway in (*np.diag(robot.drives.static), *np.diag(-robot.drives.static)):
            simulation.reset(AT)
            assert held(simulation, lambda k, own=breakaway: g + (1 - 1e-9) * own, 100)
            for _ in range(200):
                simulation.step(g + (1 + 1e-6) * breakaway)
            moved = simulation.state()[0] - AT
            np.testing.assert_array_equal(np.sign(moved), np.sign(breakaway))


@pytest.mark.parametrize("coupled", [False, True])
def test_joints_come_to_rest_to_the_bit_and_stay(irb140, coupled):
    """Once all motors of a joint stick its speed is 0, not what rounding leaves of what stops them."""
    robot = with_coupled_wrist(irb140) if coupled else irb140
    with Simulation(robot.with_drives("rigid").with_gravity((0, 0, 0))) as simulation:
        simulation.reset(AT, np.array([0.5, -0.3, 0.2, 1.0, -1.0, 2.0]))
        for _ in range(500):
            simulation.step(np.zeros(6))
            speeds = np.abs(simulation.state()[1])
            assert np.all((speeds == 0.0) | (speeds > 1e-9))
        assert not np.any(speeds)
        assert held(simulation, lambda k: np.zeros(6), 500)


def test_a_thousandfold_friction_is_stable(arm):
    drives = arm.drives
    drives = replace(
        drives, coulomb=1e3 * drives.coulomb, static=1e3 * drives.static, viscous=1e3 * drives.viscous
    )
    robot = arm.with_drives("rigid", drives)
    with Simulation(robot) as simulation:
        simulation.reset(AT, 0.5 * robot.qd_max)
        speed = np.max(np.abs(simulation.state()[1]))
        for _ in range(200):
            simulation.step(robot.tau_max)
            assert np.max(np.abs(simulation.state()[1])) <= speed
        assert not np.any(simulation.state()[1])
        assert np.max(np.abs(simulation.state()[0] - AT)) < 0.01


def test_the_loop_stays_closed_while_joints_stick_and_slide(irb1400):
    robot = irb1400.with_drives("rigid")
    g, static, phase = gravity_torque(robot, AT), robot.drives.static, np.arange(6)
    stuck = np.zeros(6)
    with Simulation(robot) as simulation:
        simulation.reset(AT)
        for k in range(1500):
            simulation.step(g + 1.3 * static * np.sin(0.02 * k + phase))
            stuck += simulation.state()[1] == 0.0
            assert simulation.loop_gap < 1e-14
            q, qd = simulation.state()
            positions, speeds = tree_state(simulation)
            np.testing.assert_allclose(positions, robot.tree_positions(q), rtol=0, atol=1e-13)
            np.testing.assert_allclose(speeds, robot.embedding @ qd, rtol=0, atol=1e-11)
    assert np.all(stuck > 150)
    assert np.all(stuck < 1350)

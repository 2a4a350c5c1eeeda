"""One step of PyBullet against our forward dynamics, its link poses and Jacobians against our kinematics."""

import numpy as np
import pytest

from scenarios.judging.motion_range import random_positions
from tests.support.peers import one_step
from tests.support.sample_loads import BODY, TOOL
from twin.physics.dynamics.equation_of_motion import forward_dynamics, inverse_dynamics
from twin.physics.engine.simulation import Simulation
from twin.physics.kinematics.forward import forward_kinematics, jacobian

STATES = 60


def random_states(robot, count, seed=1):
    """Positions and speeds within the limits, torques within the drives'."""
    rng = np.random.default_rng(seed)
    q = random_positions(robot, rng, count)
    qd, tau = rng.uniform(-1, 1, (2, count, robot.n))
    return q, qd * robot.qd_max, tau * robot.tau_max


def errors(robot, q, qd, tau, F=None, tool=None):
    """Relative error of the acceleration of one step, of each state, and the widest gap of a loop."""
    found, gaps = np.empty_like(q), []
    with Simulation(robot) as simulation:
        for k in range(len(q)):
            found[k] = one_step(simulation, q[k], qd[k], tau[k], None if F is None else F[k], tool)
            q_next, qd_next = simulation.state()
            np.testing.assert_array_equal(q_next, q[k] + 1e-3 * qd_next)
            gaps.append(simulation.loop_gap)
    expected = forward_dynamics(robot, q, qd, tau, F, tool)
    return np.max(np.abs(found - expected), axis=1) / np.max(np.abs(expected), axis=1), max(gaps)


@pytest.mark.parametrize(("where", "wrench"), [("floor", True), ("wall", False), ("inverted", True)])
def test_one_step_is_our_forward_dynamics(arm, where, wrench):
    robot = arm.mounted(where).with_payload(BODY)
    F = np.random.default_rng(2).uniform(-100, 100, (STATES, 6)) if wrench else None
    worst, gap = errors(robot, *random_states(robot, STATES), F, TOOL if wrench else None)
    assert np.max(worst) < 1e-11
    assert gap < 1e-14


def test_random_states(arm):
    worst, gap = errors(arm, *random_states(arm, 200))
    assert np.max(worst) < 1e-12
    assert np.median(worst) < 1e-14
    assert gap < 1e-14


def test_torques_of_even_accelerations(arm):
    """Torques of the drives mostly accelerate the wrist, which hides the others' errors; these do not.

    A loop is solved until its impulses are right to 3e-14 N s: 1e-12 rad/s in the speed of a light lever.
    """
    q, qd, _ = random_states(arm, STATES)
    tau = inverse_dynamics(arm, q, qd, np.random.default_rng(3).uniform(-20, 20, q.shape))
    worst, _ = errors(arm, q, qd, tau)
    assert np.max(worst) < (5e-10 if arm.loops else 1e-12)
    assert np.median(worst) < (2e-11 if arm.loops else 1e-13)


def test_kinematics(arm):
    """The mounting turns gravity and leaves the base."""
    with Simulation(arm.mounted("wall")) as simulation:
        for q in random_states(arm, 10)[0]:
            simulation.reset(q)
            for tool in (None, TOOL):
                T, J = forward_kinematics(arm, q, tool), jacobian(arm, q, tool)
                np.testing.assert_allclose(simulation.tool_pose(tool), T, rtol=0, atol=1e-13)
                np.testing.assert_allclose(simulation.jacobian(q, tool), J, rtol=0, atol=1e-13)


def test_a_plate_of_six_printed_digits(load):
    """Rounding took its moments past the triangle inequality; engine and model take the same body for it."""
    robot = load("""<robot name="plate"><link name="base"/>
        <link name="plate"><inertial><origin xyz="0.1 0.02 0"/><mass value="1"/>
          <inertia ixx="0.111111" iyy="0.222222" izz="0.3333331" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="turn" type="continuous"><parent link="base"/><child link="plate"/>
          <axis xyz="0 0 1"/></joint>
        </robot>""")
    with Simulation(robot) as simulation:
        simulation.reset([0.4], [2.0])
        simulation.step(np.array([3.0]))
        gained = (simulation.state()[1] - 2.0) / 1e-3
    np.testing.assert_allclose(gained, forward_dynamics(robot, [0.4], [2.0], [3.0]), rtol=1e-12)

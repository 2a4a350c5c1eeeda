"""One step of PyBullet against our forward dynamics, its link poses and Jacobians against our kinematics."""

import numpy as np
import pytest

from twin.dynamics import forward_dynamics
from twin.engine import Simulation
from twin.kinematics import forward_kinematics, jacobian
from twin.loading import load
from twin.robot import Payload

STATES = 200
BODY = Payload(
    6.0, [0.02, -0.01, 0.08], [[0.03, 0.004, -0.002], [0.004, 0.02, 0.003], [-0.002, 0.003, 0.025]]
)
TOOL = np.array([[0, 0, 1, 0.05], [0.6, 0.8, 0, -0.03], [-0.8, 0.6, 0, 0.2], [0, 0, 0, 1]])


@pytest.mark.parametrize("wrench", [False, True], ids=["free", "wrench"])
@pytest.mark.parametrize("payload", [None, BODY], ids=["bare", "payload"])
@pytest.mark.parametrize("where", ["floor", "wall", "inverted"])
def test_one_step_is_our_forward_dynamics(irb140, where, payload, wrench):
    robot = irb140.mounted(where).with_payload(payload)
    rng = np.random.default_rng(1)
    q = rng.uniform(robot.q_min, robot.q_max, (STATES, 6))
    qd = rng.uniform(-1, 1, (STATES, 6)) * robot.qd_max
    tau = rng.uniform(-1, 1, (STATES, 6)) * robot.tau_max
    F = rng.uniform(-100, 100, (STATES, 6)) if wrench else [None] * STATES
    tool = TOOL if wrench else None
    with Simulation(robot) as simulation:
        for k in range(STATES):
            simulation.reset(q[k], qd[k])
            simulation.step(tau[k], F[k], tool)
            q_next, qd_next = simulation.state()
            qdd = forward_dynamics(robot, q[k], qd[k], tau[k], F[k], tool)
            error = np.max(np.abs((qd_next - qd[k]) / 1e-3 - qdd)) / np.max(np.abs(qdd))
            assert error <= 1e-11
            np.testing.assert_array_equal(q_next, q[k] + 1e-3 * qd_next)


def test_kinematics(irb140):
    rng = np.random.default_rng(2)
    with Simulation(irb140) as simulation:
        for q in rng.uniform(irb140.q_min, irb140.q_max, (STATES, 6)):
            simulation.reset(q)
            for tool in (None, TOOL):
                T, J = forward_kinematics(irb140, q, tool), jacobian(irb140, q, tool)
                np.testing.assert_allclose(simulation.tool_pose(tool), T, rtol=0, atol=1e-12)
                np.testing.assert_allclose(simulation.jacobian(q, tool), J, rtol=0, atol=1e-12)


def test_a_plate_of_six_printed_digits(tmp_path):
    """Rounding took its moments past the triangle inequality; engine and model take the same body for it."""
    path = tmp_path / "plate.urdf"
    path.write_text("""<robot name="plate"><link name="base"/>
        <link name="plate"><inertial><origin xyz="0.1 0.02 0"/><mass value="1"/>
          <inertia ixx="0.111111" iyy="0.222222" izz="0.3333331" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="turn" type="continuous"><parent link="base"/><child link="plate"/>
          <axis xyz="0 0 1"/></joint>
        </robot>""")
    robot = load(path)
    with Simulation(robot) as simulation:
        simulation.reset([0.4], [2.0])
        simulation.step(np.array([3.0]))
        gained = (simulation.state()[1] - 2.0) / 1e-3
    np.testing.assert_allclose(gained, forward_dynamics(robot, [0.4], [2.0], [3.0]), rtol=1e-12)

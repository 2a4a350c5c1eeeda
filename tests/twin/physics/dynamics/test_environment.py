"""Pushes: their texts and files, and their effect against Pinocchio, MuJoCo, energy and the engine."""

import re

import numpy as np
import pytest
from twin.dynamics import Environment, Plane, ToolOn, pushes

import twin
from tests.support.peers import MuJoCo, Pinocchio, one_step
from tests.support.sample_loads import BODY, TOOL
from twin.physics.dynamics.equation_of_motion import energy, forward_dynamics, mass_matrix
from twin.physics.dynamics.wrenches import joint_wrenches
from twin.physics.engine.simulation import Simulation
from twin.physics.kinematics.forward import jacobian
from twin.physics.trajectories.sampling import Reference, State

Q = np.array([0.3, 0.4, -0.2, 0.5, 0.7, -0.4])
TEXT = "0.05:0.2 20,-10,30; 0.1:0.25 3,5,-8,0.001,-0.002,0.003 tool"


def soft(robot):
    """A controller with springs and dampers at the joints, and their rates."""
    M = np.diag(mass_matrix(robot, np.zeros(robot.n)))
    return lambda state, desired: 400 * M * (desired.q - state.q) - 30 * M * state.qd


def push_by_hand(t, R):
    """The wrench of `TEXT` in base axes, for tool axes R."""
    F = np.zeros(6)
    if 0.05 - 1e-9 <= t < 0.2 - 1e-9:
        F[:3] += 20, -10, 30
    if 0.1 - 1e-9 <= t < 0.25 - 1e-9:
        F += [*(R @ [3, 5, -8]), *(R @ [0.001, -0.002, 0.003])]
    return F


def test_wrench_over_time_is_that_of_the_text():
    robot = twin.load("irb140")
    t, q = np.arange(300) * 1e-3, Q + np.zeros((300, 6))
    R = Pinocchio(robot.urdf, robot.tree.names).forward_kinematics(Q)[:3, :3]
    expected = [push_by_hand(one, R) for one in t]
    push = Environment(pushes(TEXT))
    np.testing.assert_allclose(push.wrench(robot, t, q, 0 * q), expected, rtol=0, atol=1e-13)
    np.testing.assert_array_equal([push.wrench(robot, *one, 0 * Q) for one in zip(t, q, strict=True)],
                                  push.wrench(robot, t, q, 0 * q))  # fmt: skip


def test_file_is_linear_between_its_rows(tmp_path):
    file = tmp_path / "Push.CSV"
    file.write_text("t, fx,fy,fz\n0.1,0,0,0\n0.2,10,0,-4\n0.4,10,2,0\n")
    push, robot = Environment(pushes(f"{file} ; 0.3:0.5 1,1,1,2,2,2")), twin.load("irb140")
    t = [0.05, 0.15, 0.2, 0.3, 0.4, 0.5]
    expected = [[0] * 6, [5, 0, -2, 0, 0, 0], [10, 0, -4, 0, 0, 0], [11, 2, -1, 2, 2, 2], [1, 1, 1, 2, 2, 2]]
    still = np.tile(Q, (6, 1)), np.zeros((6, 6))
    np.testing.assert_allclose(push.wrench(robot, t, *still), [*expected, [0] * 6], atol=1e-15)
    file.write_text("t,fx,fy,fz,mx,my,mz\n0,1,2,3,4,5,6\n1,1,2,3,4,5,6\n")
    assert Environment(pushes(str(file))).wrench(robot, 0.5, Q, 0 * Q).tolist() == [1, 2, 3, 4, 5, 6]
    assert pushes(f"{file} tool")[:, 1].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a push as start:end Fx,Fy,Fz or"),
        ("1:2", "got '1:2'"),
        ("1:2 1,2", "got '1:2 1,2'"),
        ("1:2 1,2,3,4", "got '1:2 1,2,3,4'"),
        ("1 1,2,3", "got '1 1,2,3'"),
        ("1:2 1,2,x", "got '1:2 1,2,x'"),
        ("1:2 1,2,3 flange", "got '1:2 1,2,3 flange'"),
        ("0:1 1,2,3; 1:2 1,2,nan", "push 2: expected finite numbers"),
        ("1:inf 1,2,3", "push 1: expected finite numbers"),
        ("2:1 1,2,3", "push 1: expected two or more rising times in s, got 2, 1"),
        ("1:1 1,2,3", "push 1: expected two or more rising times in s, got 1, 1"),
        ("none.csv", "cannot read the push none.csv: No such file or directory"),
    ],
)
def test_invalid_text_is_refused(text, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        pushes(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "expected columns t,fx,fy,fz[,mx,my,mz] of a push, got ''"),
        ("t,fx,fy\n0,1,2\n", "got 't,fx,fy'"),
        ("t,fx,fy,fz\n", "expected two or more rows of a push"),
        ("t,fx,fy,fz\n0,1,2,3\n", "push 1: expected two or more rising times in s, got 0"),
        ("t,fx,fy,fz\n0,1,2,3\n1,2,3\n", "expected 4 numbers in row 2, got ['1', '2', '3']"),
        ("t,fx,fy,fz\n0,1,2,3\n1,2,3,a\n", "expected 4 numbers in row 2"),
        ("t,fx,fy,fz\n0,1,2,3\n1,2,3,nan\n", "push 1: expected finite numbers"),
        ("t,fx,fy,fz\n1,1,2,3\n0,2,3,4\n", "push 1: expected two or more rising times in s, got 1, 0"),
        (b"\xff\xfe\x00", "cannot read the push"),
    ],
)
def test_invalid_file_is_refused(content, message, tmp_path):
    file = tmp_path / "push.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=re.escape(message)):
        pushes(str(file))


def test_rows_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"rows \(R, 9\) of pushes, got shape \(2, 7\)"):
        Environment(np.zeros((2, 7)))


@pytest.mark.parametrize("plant", [Simulation, twin.AnalyticPlant])
def test_run_equals_an_integration_with_pinocchio(plant):
    """Semi-implicit steps under `tau + J^T F`, with dynamics, Jacobian and tool axes of Pinocchio."""
    robot = twin.load("irb140")
    peer, law = Pinocchio(robot.urdf, robot.tree.names), soft(robot)
    reference, tool = twin.sample(twin.hold(Q, 0.3), 1e-3), TOOL.copy()
    tool[:3, 3] = 0, 0, 0.02  # beside its axis, a force would spin the bare wrist of 1e-5 kg m^2 off
    push = Environment(pushes(TEXT), T_flange_tool=tool)
    log = twin.run_closed_loop(plant(robot), law, reference, environment=push)
    q, qd = Q.copy(), np.zeros(6)
    for k, t in enumerate(reference.t):
        np.testing.assert_allclose(log.q[k], q, rtol=0, atol=1e-11)
        np.testing.assert_allclose(log.qd[k], qd, rtol=0, atol=1e-9)
        T, J = peer.forward_kinematics(q), peer.jacobian(q)
        F = push_by_hand(t, T[:3, :3] @ tool[:3, :3])
        np.testing.assert_allclose(log.wrench[k], F, rtol=0, atol=1e-9)
        F[3:] += np.cross(T[:3, :3] @ tool[:3, 3], F[:3])  # about the flange
        state = State(t, q, qd, np.zeros(6), np.zeros((0, 6)))
        qd = qd + 1e-3 * peer.forward_dynamics(q, qd, law(state, Reference(Q, 0 * Q, 0 * Q)) + J.T @ F)
        q = q + 1e-3 * qd
    assert np.max(np.abs(log.q - Q)) > 0.05


def test_one_step_is_that_of_mujoco():
    """MuJoCo takes a force at the centre of mass of the body of the flange, in world axes."""
    robot = twin.load("irb140")
    peer = MuJoCo(robot.urdf)
    body, rng = peer.model.nbody - 1, np.random.default_rng(5)
    with Simulation(robot) as simulation:
        for q, qd, F in zip(*(rng.uniform(-1, 1, (10, 6)) for _ in range(3)), strict=True):
            tau, F = np.zeros(6), 30 * F
            peer.inverse_dynamics(q, qd, tau)
            p_tool = twin.forward_kinematics(robot, q, TOOL)[:3, 3]
            moment = F[3:] + np.cross(p_tool - peer.data.xipos[body], F[:3])
            peer.data.xfrc_applied[body] = [*F[:3], *moment]
            expected = peer.forward_dynamics(q, qd, tau)
            peer.data.xfrc_applied[:] = 0.0
            found = one_step(simulation, q, qd, tau, F, TOOL)
            ours = forward_dynamics(robot, q, qd, tau, F, TOOL)
            for qdd in (found, ours):
                np.testing.assert_allclose(qdd, expected, rtol=0, atol=1e-11 * np.max(np.abs(expected)))


def test_push_does_the_work_that_the_energy_gains():
    """The error of semi-implicit steps halves with the step, and twice the half less the whole is left."""
    robot = twin.load("two_link").mounted("wall")
    errors = []
    for dt in (4e-4, 2e-4, 1e-4):
        plant, q = twin.AnalyticPlant(robot, dt), np.array([0.3, 0.6])
        reference = twin.sample(twin.hold(q, 0.4), dt)
        push = Environment(pushes("0.1:0.3 2,-1,4; 0.2:0.4 0,3,1 tool"))
        log = twin.run_closed_loop(plant, lambda state, _: -0.1 * state.qd, reference, environment=push)
        v = np.einsum("kij,kj->ki", jacobian(robot, log.q), log.qd)
        power = np.sum(log.tau * log.qd, axis=1) + np.sum(log.wrench * v, axis=1)
        gained = energy(robot, log.q[-1], log.qd[-1]) - energy(robot, q, 0 * q)
        errors.append(gained - dt * np.sum(power[:-1]))
    size = abs(dt * np.sum(np.sum(log.wrench * v, axis=1)))
    assert size > 0.1
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.02)
    # What the extrapolation leaves is of second order in the step: 1e-4 s squared over 0.4 s squared.
    assert abs(2 * errors[2] - errors[1]) < 1e-6 * size


CASES = [
    ("irb140", "ideal", {}), ("irb140", "rigid", {}), ("irb140", "elastic", {}), ("irb1400", "ideal", {}),
    ("irb1400", "rigid", {}), ("irb140", "rigid", {"steps_per_period": 3}),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::twin.base.errors.DriveWarning")
@pytest.mark.parametrize(("name", "drives", "more"), CASES)
def test_engine_is_the_model_under_a_push(name, drives, more):
    """Loaded, on a wall, with a tool; without friction a second agrees to 1e-11, else steps to 1e-12."""
    robot = twin.load(name).mounted("wall").with_payload(BODY)
    robot = robot.with_drives(drives)
    steps, q = more.get("steps_per_period", 1), Q[: robot.n]
    reference = twin.sample(twin.hold(q, 1.0), 1e-3 * steps)
    push = Environment(pushes(TEXT.replace("0.2 ", "0.9 ")), T_flange_tool=TOOL)
    with Simulation(robot) as simulation:
        log = twin.run_closed_loop(simulation, soft(robot), reference, environment=push, **more)
    model = twin.run_closed_loop(twin.AnalyticPlant(robot), soft(robot), reference, environment=push, **more)
    assert np.max(np.abs(log.q - q)) > 0.01
    change = np.max(np.abs(np.diff(log.qd, axis=0)))
    assert log.model_residual() < 1e-12 * max(1.0, change)
    if drives == "ideal":
        np.testing.assert_allclose(log.q, model.q, rtol=0, atol=1e-11)
        np.testing.assert_allclose(log.wrench, model.wrench, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["irb140", "irb1400"])
def test_forces_in_the_structure_carry_the_push(name):
    """The axes' components are `tau - J^T F`, and the foundation bears all forces that act on the arm."""
    robot = twin.load(name)
    F, still = np.array([20.0, -10, 30, 1, 2, 3]), np.zeros(robot.n)
    free, pushed = (joint_wrenches(robot, Q, still, still, one, TOOL, frame="base") for one in (None, F))
    p = twin.forward_kinematics(robot, Q, TOOL)[:3, 3]
    np.testing.assert_allclose(free.base - pushed.base, [*F[:3], *(F[3:] + np.cross(p, F[:3]))], atol=1e-11)
    own = joint_wrenches(robot, Q, still, still, F, TOOL)
    along = np.einsum("ij,ij->i", own.joints[:, 3:], robot.tree.axes) @ robot.embedding
    expected = twin.inverse_dynamics(robot, Q, still, still, F, TOOL)
    np.testing.assert_allclose(along, expected, rtol=0, atol=1e-11)


def test_plant_without_wrenches_is_refused():
    robot = twin.load("irb140")
    p = twin.forward_kinematics(robot, Q)[:3, 3]
    plant = twin.ConstrainedPlant(robot, ToolOn(Plane(p, [0, 0, 1])))
    still = twin.sample(twin.hold(Q, 0.1), 1e-3)
    with pytest.raises(ValueError, match="expected a plant whose step takes a wrench, got a Constrained"):
        twin.run_closed_loop(plant, soft(robot), still, environment=Environment(pushes(TEXT)))

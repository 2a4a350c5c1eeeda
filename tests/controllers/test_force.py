"""Force laws against the motion of the tool that their equations promise, by other formulas than theirs."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.spatial.transform import Rotation
from twin.dynamics import Environment, pushes, surface

import controllers
import twin
from tests.support.refusals import refused
from twin.physics.trajectories.sampling import Reference, State

T_TOOL = np.eye(4)
T_TOOL[:3, :3] = Rotation.from_euler("xyz", [0.3, -0.2, 0.5]).as_matrix()
T_TOOL[:3, 3] = 0.05, 0.02, 0.12
LOADED = twin.load("irb140").with_payload(twin.Payload(3.0, (0.01, 0.0, 0.1), np.diag([0.02, 0.02, 0.01])))
NORMAL = np.array([0.2, -0.1, 0.9]) / np.linalg.norm([0.2, -0.1, 0.9])
WRENCH = np.array([3.0, -8.0, 25.0, 0.5, -0.4, 0.3])
K = np.diag([900.0, 1500.0, 2100.0, 60.0, 90.0, 120.0])
K[0, 1] = K[1, 0] = 200.0
K[2, 4] = K[4, 2] = 50.0


def plane(at, stiffness=2e4):
    """The row of a tilted plane through a point."""
    return surface({"plane": NORMAL.tolist(), "at": at.tolist(), "stiffness": stiffness, "damping": 100.0})


@pytest.fixture(scope="module")
def case():
    """A state, a reference that differs from it in everything, and a plane between the tool and a point."""
    rng = np.random.default_rng(4)
    q, qd = LOADED.poses["test_1"], rng.uniform(-0.6, 0.6, 6)
    near = q + rng.uniform(-0.03, 0.03, 6), qd + rng.uniform(-0.2, 0.2, 6)
    reference = Reference(*near, rng.uniform(-3.0, 3.0, 6))
    above = twin.forward_kinematics(LOADED, reference.q, T_TOOL)[:3, 3] + 1e-3 * NORMAL
    return State(0.0, q, qd, np.zeros(6), wrench=WRENCH), reference, plane(above)


def tool_of(robot, q, qd, qdd):
    """Pose, twist and acceleration of the tool."""
    J, Jd = twin.jacobian(robot, q, T_TOOL), twin.jacobian_dot(robot, q, qd, T_TOOL)
    return twin.forward_kinematics(robot, q, T_TOOL), J @ qd, J @ qdd + Jd @ qd


def errors(state, reference, tau):
    """Errors of pose, twist and acceleration of the tool under a torque and the wrench of the state."""
    qdd = twin.forward_dynamics(
        LOADED, state.q, state.qd, tau + twin.jacobian(LOADED, state.q, T_TOOL).T @ state.wrench
    )
    T, V, Vd = tool_of(LOADED, state.q, state.qd, qdd)
    T_ref, V_ref, Vd_ref = tool_of(LOADED, *reference)
    turn = Rotation.from_matrix(T_ref[:3, :3] @ T[:3, :3].T).as_rotvec()
    return np.concatenate([T_ref[:3, 3] - T[:3, 3], turn]), V_ref - V, Vd_ref - Vd, V, Vd


def make(name, **settings):
    return controllers.make(name, LOADED, T_flange_tool=T_TOOL, **settings)


@pytest.mark.parametrize("damping", [None, 0.05 * K], ids=["double diagonalisation", "given"])
def test_impedance_is_a_mass_on_springs_that_the_force_pushes(case, damping):
    """`Lambda edd + D ed + K e = n F_d - F`, with D of Lambda and K by their common modes."""
    state, reference, surface_row = case
    law = make("impedance", stiffness=K, damping=damping, zeta=0.8, surface=surface_row, force=30.0)
    e, ed, edd, *_ = errors(state, reference, law(state, reference))
    inertia = twin.operational_space(LOADED, state.q, state.qd, T_TOOL).Lambda
    squares, modes = eigh(K, inertia)
    inverse = np.linalg.inv(modes)  # Lambda = inverse^T inverse
    D = 2 * 0.8 * inverse.T @ np.diag(np.sqrt(squares)) @ inverse if damping is None else damping
    left = inertia @ edd + D @ ed + K @ e
    np.testing.assert_allclose(left, 30.0 * np.r_[NORMAL, 0, 0, 0] - WRENCH, rtol=0, atol=1e-10)
    free = make("impedance", stiffness=K, surface=surface_row, force=30.0)
    above = Reference(state.q, reference.qd, reference.qdd)  # 30 mm outside: nothing is pressed
    assert twin.forward_kinematics(LOADED, state.q, T_TOOL)[:3, 3] @ NORMAL > surface_row[15:18] @ NORMAL
    np.testing.assert_array_equal(free(state, above), make("impedance", stiffness=K)(state, above))


def test_impedance_at_rest_is_deflected_by_force_over_stiffness():
    q, F = LOADED.poses["test_1"], WRENCH
    world = Environment(pushes(f"0:9 {','.join(map(str, F))}"), T_flange_tool=T_TOOL)
    reference = twin.sample(twin.hold(q, 6.0), 1e-3)
    law = make("impedance", stiffness=K, zeta=1.0)
    end = twin.run_rollouts(LOADED, law, reference, environment=world, every=6000).q[-1]
    T, T_ref = twin.forward_kinematics(LOADED, [end, q], T_TOOL)
    e = np.r_[(T_ref - T)[:3, 3], Rotation.from_matrix(T_ref[:3, :3] @ T[:3, :3].T).as_rotvec()]
    np.testing.assert_allclose(K @ e, -F, rtol=1e-7)
    assert np.linalg.norm(e) > 0.01


def test_joints_that_stick_hide_small_pushes_from_impedance():
    robot = twin.load("irb140").with_drives("rigid")
    q = robot.poses["test_1"]
    law = controllers.make("impedance", robot, stiffness=(2000.0, 200.0))
    T = twin.forward_kinematics(robot, q)
    for push, least, most in ((20.0, 0.0, 0.0), (200.0, 0.09, 0.11)):
        world = Environment(pushes(f"0.1:9 0,0,-{push}"))
        reference = twin.sample(twin.hold(q, 3.0), 1e-3)
        end = twin.run_rollouts(robot, law, reference, environment=world, every=3000).q[-1]
        assert least <= (T - twin.forward_kinematics(robot, end))[2, 3] <= most


def test_hybrid_accelerates_the_tool_along_the_surface_by_its_error_and_across_by_the_force(case):
    state, reference, surface_row = case
    settings = {"bandwidth": 15.0, "force_bandwidth": 25.0, "force": 30.0}
    law = make("hybrid", surface=surface_row, integral=2.0, **settings)
    e, ed, edd, V, Vd = errors(state, reference, law(state, reference))
    missing = 30.0 - NORMAL @ WRENCH[:3]
    pull = 25.0**2 / 2e4 * (1.0 + 2.0 * 1e-3) * missing
    np.testing.assert_allclose(NORMAL @ Vd[:3], -pull - 2 * 25.0 * NORMAL @ V[:3], rtol=1e-10)
    along = np.eye(6)
    along[:3, :3] -= np.outer(NORMAL, NORMAL)
    np.testing.assert_allclose(along @ (edd + 30.0 * ed + 225.0 * e), 0, atol=1e-9)
    law(state, reference)
    np.testing.assert_allclose(law.memory[0], 2 * 2.0 * 1e-3 * missing, rtol=1e-12)
    free = make("hybrid", **settings)  # without a surface it controls the position alone
    e, ed, edd, *_ = errors(state, reference, free(state, reference))
    np.testing.assert_allclose(edd + 30.0 * ed + 225.0 * e, 0, atol=1e-9)


def test_integral_removes_the_force_of_a_wrong_model():
    """A payload of 0.3 kg that the model lacks pulls the tool into the surface."""
    robot, q = (
        LOADED.with_payload(replace(LOADED.payload, mass=2.7)),
        np.array([0.0, 0.3, 0.2, 0.0, 1.0, 0.0]),
    )
    world = Environment(
        surfaces=[plane(twin.forward_kinematics(robot, q, T_TOOL)[:3, 3], 5e3)], T_flange_tool=T_TOOL
    )
    down = twin.jacobian(robot, q, T_TOOL)[:3]
    q_ref = q - np.linalg.pinv(down) @ (6e-3 * NORMAL)
    reference = twin.sample(twin.sequence(twin.quintic(q, q_ref, 0.5), twin.hold(q_ref, 3.5)), 1e-3)
    ends = {}
    for gain in (0.0, 5.0):
        law = controllers.make(
            "hybrid", robot, T_flange_tool=T_TOOL, surface=world.surfaces[0], force=30.0, integral=gain
        )
        run = twin.run_rollouts(LOADED, law, reference, environment=world)
        ends[gain] = world.wrench(LOADED, 4.0, run.q[-1], run.qd[-1])[:3] @ NORMAL
    assert abs(ends[0.0] - 30.0) > 0.3
    assert abs(ends[5.0] - 30.0) < 1e-3, ends


def test_admittance_moves_the_reference_as_a_mass_on_springs(case):
    """The recursion of x by hand; its speed moves the joints' reference, which computed torque follows."""
    state, reference, surface_row = case
    M, D, T = np.diag([4.0, 4, 4, 0.2, 0.2, 0.2]), 0.03 * K, 1e-3
    law = make("admittance", mass=M, damping=D, stiffness=K, carried=0.7, surface=surface_row, force=30.0)
    inner = controllers.make("computed_torque", LOADED)
    n, x, xd = np.r_[NORMAL, 0, 0, 0], np.zeros(6), np.zeros(6)
    q, qd = reference.q.copy(), reference.qd.copy()
    J = twin.jacobian(LOADED, state.q, T_TOOL)
    for _ in range(5):
        tau = law(state, reference)
        spring = K @ x - n * (n @ K @ x)
        xd = xd + T * np.linalg.solve(M, WRENCH - 30.0 * n - D @ xd - spring)
        x = x + T * xd
        T_ref, T_moved = twin.forward_kinematics(LOADED, [reference.q, q], T_TOOL)
        turn = Rotation.from_matrix(T_moved[:3, :3] @ T_ref[:3, :3].T).as_rotvec()
        rest = x - np.r_[(T_moved - T_ref)[:3, 3], turn]
        change = np.linalg.solve(twin.jacobian(LOADED, q, T_TOOL), rest)
        qdd = reference.qdd + (change / T - (qd - reference.qd)) / T
        expected = inner(state, Reference(q, qd, qdd)) - 0.7 * J.T @ WRENCH
        np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
        q, qd = q + change, reference.qd + change / T
    T_ref, T_moved = twin.forward_kinematics(LOADED, [reference.q, q], T_TOOL)
    np.testing.assert_allclose((T_moved - T_ref)[:3, 3], x[:3], rtol=1e-5)
    law.reset()
    assert not law.memory.any()


def test_admittance_yields_to_a_push_and_returns():
    q = LOADED.poses["test_1"]
    world = Environment(pushes(f"0.1:3 {','.join(map(str, WRENCH))}"), T_flange_tool=T_TOOL)
    reference = twin.sample(twin.hold(q, 5.0), 1e-3)
    run = twin.run_rollouts(LOADED, make("admittance", stiffness=K), reference, environment=world)
    T, T_end, T_ref = twin.forward_kinematics(LOADED, [run.q[2999], run.q[-1], q], T_TOOL)
    x = np.r_[(T - T_ref)[:3, 3], Rotation.from_matrix(T[:3, :3] @ T_ref[:3, :3].T).as_rotvec()]
    np.testing.assert_allclose(K @ x, WRENCH, rtol=1e-6)
    np.testing.assert_allclose(T_end, T_ref, atol=1e-7)


@pytest.mark.parametrize("name", ["impedance", "admittance", "hybrid"])
def test_laws_track_through_singular_poses_and_with_other_numbers_of_joints(name):
    """Where the tool loses a direction, the joints are under computed torque: its error decays there too."""
    for arm, q in (("irb140", [0.0] * 6), ("two_link", [0.3, 0.0]), ("youbot", [0.1] * 5)):
        robot, start = twin.load(arm), np.array(q, dtype=np.float64)
        law = controllers.make(name, robot)
        move = twin.sample_semi_implicit(twin.quintic(start, start + 0.3, 1.0), 1e-3)
        assert twin.run_rollouts(robot, law, move).figures.joint_error.max() < 1e-10
    robot, off = twin.load("irb140"), np.array([0, 0, 0, 1e-3, 0, -1e-3])  # the tool does not see this
    J = twin.jacobian(robot, np.zeros(6))
    assert np.linalg.svd(J)[1][-1] < 1e-12
    run = twin.run_rollouts(
        robot, controllers.make(name, robot, bandwidth=20.0), twin.sample(twin.hold([0.0] * 6, 1.0), 1e-3),
        start=(off, np.zeros(6)),
    )  # fmt: skip
    assert np.abs(run.q[-1]).max() < 1e-6


def test_default_springs_are_those_that_the_arm_can_follow():
    rng, arm = np.random.default_rng(1), twin.load("irb140")
    for robot, period in ((arm, 1e-3), (arm.with_drives("rigid"), 1e-3), (LOADED, 4e-3)):
        stiffness = controllers.make("impedance", robot, period=period).stiffness
        q = rng.uniform(robot.q_min, robot.q_max, (30, 6))
        J = twin.jacobian(robot, q)
        springs = np.swapaxes(J, 1, 2) @ np.diag(np.repeat(stiffness, 3)) @ J
        squares = np.linalg.eigvals(np.linalg.solve(twin.mass_matrix(robot, q), springs)).real.max()
        assert squares * period**2 < 0.3  # of 4, with critical damping of 0.6
        assert np.all(stiffness <= [2000.0, 200.0])
        assert (stiffness[1] == 200.0) == (robot.drive_mode == "rigid")


def test_settings_that_cannot_be_are_refused():
    lopsided = K + np.diag([1.0] * 5, k=1)
    refused(
        (lambda: make("impedance", force=-1.0), "force of 0 or more"),
        (lambda: make("impedance", zeta=np.nan), "zeta of 0 or more"),
        (
            lambda: make("impedance", stiffness=5.0),
            r"stiffness of finite numbers in the shape \(2,\) or \(6,\)",
        ),
        (
            lambda: make("impedance", stiffness=lopsided),
            "stiffness to be symmetric and positive semidefinite",
        ),
        (lambda: make("impedance", damping=(1.0, -1.0)), "damping to be symmetric and positive semidefinite"),
        (lambda: make("admittance", mass=(1.0, 0.0)), "mass above 0 along and about every axis"),
        (lambda: make("admittance", surface=[1.0] * 3), r"surface of finite numbers in the shape \(21,\)"),
        (lambda: make("hybrid", integral=np.inf), "integral of 0 or more"),
        (lambda: controllers.make("hybrid", LOADED, T_flange_tool=np.eye(3)), r"T_flange_tool .* \(4, 4\)"),
    )


def test_numbers_are_recorded_by_name():
    rows = make("impedance", stiffness=K, force=12.0).rows
    np.testing.assert_array_equal(rows["stiffness"], np.diag(K))
    assert rows["force"].tolist() == [12.0] * 6
    weightless = replace(LOADED, payload=None)
    assert set(controllers.make("hybrid", weightless).rows) == {
        "force", "bandwidth", "force_bandwidth", "integral",
    }  # fmt: skip

"""Dynamics against Pinocchio and MuJoCo on the same URDF, and against the identities that they must meet."""

import numpy as np
import pytest

import twin
from tests.support.peers import MuJoCo, Pinocchio, largest_relative_error
from tests.support.random_trees import interpreted, random_urdf
from twin.robot.evaluation import uncompiled

STATES = 1000


@pytest.fixture(scope="module", params=["irb140", "irb1600"])
def robot(request):
    return twin.load(request.param)


@pytest.fixture(scope="module")
def states(robot):
    """Random joint positions over the full range, velocities, accelerations, torques."""
    rng = np.random.default_rng(1)
    shape = (STATES, robot.n)
    return (
        rng.uniform(robot.q_min, robot.q_max, shape),
        rng.uniform(-robot.qd_max, robot.qd_max, shape),
        rng.normal(size=shape) * 20.0,
        rng.uniform(-robot.tau_max, robot.tau_max, shape),
    )


@pytest.fixture(scope="module")
def pinocchio(robot):
    return Pinocchio(robot.urdf, robot.joint_names)


@pytest.fixture(scope="module")
def mujoco(robot):
    return MuJoCo(robot.urdf)


def rows(function, *vectors):
    return np.array([function(*sample) for sample in zip(*vectors, strict=True)])


def test_inverse_dynamics_against_pinocchio(robot, states, pinocchio):
    q, qd, qdd, _ = states
    expected = rows(pinocchio.inverse_dynamics, q, qd, qdd)
    assert largest_relative_error(twin.inverse_dynamics(robot, q, qd, qdd), expected) < 1e-12


def test_mass_matrix_against_pinocchio(robot, states, pinocchio):
    q = states[0]
    assert largest_relative_error(twin.mass_matrix(robot, q), rows(pinocchio.mass_matrix, q)) < 1e-12


def test_coriolis_matrix_against_pinocchio(robot, states, pinocchio):
    q, qd, _, _ = states
    expected = rows(pinocchio.coriolis_matrix, q, qd)
    assert largest_relative_error(twin.coriolis_matrix(robot, q, qd), expected) < 1e-12
    slow = 1e-9 * qd  # C is linear in qd: no precision may be lost at small speeds
    assert largest_relative_error(twin.coriolis_matrix(robot, q, slow), 1e-9 * expected) < 1e-12


def test_gravity_against_pinocchio(robot, states, pinocchio):
    q = states[0]
    assert largest_relative_error(twin.gravity_torque(robot, q), rows(pinocchio.gravity_torque, q)) < 1e-12


def test_forward_dynamics_against_pinocchio(robot, states, pinocchio):
    q, qd, _, tau = states
    expected = rows(pinocchio.forward_dynamics, q, qd, tau)
    assert largest_relative_error(twin.forward_dynamics(robot, q, qd, tau), expected) < 1e-11


def test_energy_against_pinocchio(robot, states, pinocchio):
    q, qd, _, _ = states
    expected = rows(pinocchio.energy, q, qd)
    assert largest_relative_error(twin.energy(robot, q, qd)[:, None], expected[:, None]) < 1e-12


def test_everything_against_mujoco(robot, states, mujoco):
    q, qd, qdd, _ = states
    assert (
        largest_relative_error(
            twin.inverse_dynamics(robot, q, qd, qdd), rows(mujoco.inverse_dynamics, q, qd, qdd)
        )
        < 1e-12
    )
    assert largest_relative_error(twin.mass_matrix(robot, q), rows(mujoco.mass_matrix, q)) < 1e-12
    g = twin.gravity_torque(robot, q)
    assert largest_relative_error(g, rows(mujoco.gravity_torque, q)) < 1e-12
    coriolis = np.einsum("kij,kj->ki", twin.coriolis_matrix(robot, q, qd), qd)
    assert largest_relative_error(coriolis + g, rows(mujoco.bias, q, qd)) < 1e-12


def test_forward_dynamics_leaves_no_residual(robot, states):
    q, qd, _, tau = states
    qdd = twin.forward_dynamics(robot, q, qd, tau)
    bias = twin.inverse_dynamics(robot, q, qd, np.zeros(robot.n))
    residual = np.einsum("kij,kj->ki", twin.mass_matrix(robot, q), qdd) + bias - tau
    assert np.max(np.max(np.abs(residual), axis=1) / np.max(np.abs(tau), axis=1)) < 1e-13


def test_inverse_undoes_forward(robot, states):
    q, qd, _, tau = states
    again = twin.inverse_dynamics(robot, q, qd, twin.forward_dynamics(robot, q, qd, tau))
    assert largest_relative_error(again, tau) < 1e-12


def test_mass_rate_less_twice_coriolis_is_skew(robot, states):
    q, qd, _, _ = (s[:50] for s in states)
    step = 1e-5
    rate = (twin.mass_matrix(robot, q + step * qd) - twin.mass_matrix(robot, q - step * qd)) / (2 * step)
    N = rate - 2 * twin.coriolis_matrix(robot, q, qd)
    assert np.max(np.abs(N + np.swapaxes(N, 1, 2))) < 1e-6  # a central difference errs by step^2


def test_power_is_the_rate_of_energy(robot, states):
    q, qd, _, tau = (s[:50] for s in states)
    qdd = twin.forward_dynamics(robot, q, qd, tau)
    step = 1e-6
    after = twin.energy(robot, q + step * qd + 0.5 * step**2 * qdd, qd + step * qdd)
    before = twin.energy(robot, q - step * qd + 0.5 * step**2 * qdd, qd - step * qdd)
    power = np.sum(tau * qd, axis=1)
    assert np.max(np.abs((after - before) / (2 * step) - power)) < 1e-5 * np.max(np.abs(power))


def test_wrench_does_the_work_of_its_torque(robot, states):
    q, qd, qdd, _ = (s[:50] for s in states)
    rng = np.random.default_rng(2)
    F = rng.normal(size=(50, 6)) * 100
    T = np.eye(4)
    T[:3, 3] = (0.02, -0.01, 0.15)
    loaded = twin.inverse_dynamics(robot, q, qd, qdd, wrench=F, T_flange_tool=T)
    free = twin.inverse_dynamics(robot, q, qd, qdd)
    work = np.einsum("kij,kj->ki", twin.jacobian(robot, q, T), qd)
    np.testing.assert_allclose(np.sum((free - loaded) * qd, axis=1), np.sum(F * work, axis=1), rtol=1e-10)
    again = twin.forward_dynamics(robot, q, qd, loaded, wrench=F, T_flange_tool=T)
    assert largest_relative_error(again, qdd) < 1e-10


def test_hanging_weight_is_a_wrench(robot, states):
    """A point mass at rest on the flange and its weight as a force there ask for the same torque."""
    q = states[0]
    weight = np.zeros((STATES, 6))
    weight[:, 2] = -6.0 * 9.81
    T = np.eye(4)
    T[:3, 3] = (0.0, 0.01, 0.08)
    loaded = robot.with_payload(twin.Payload(6.0, T[:3, 3]))
    still = np.zeros_like(q)
    by_wrench = twin.inverse_dynamics(robot, q, still, still, wrench=weight, T_flange_tool=T)
    assert largest_relative_error(twin.gravity_torque(loaded, q), by_wrench) < 1e-12


def test_payload_is_a_link_in_pinocchio(robot, states, tmp_path):
    """The payload merged into link 6 is the payload hung on the flange by a fixed joint."""
    q, qd, qdd, _ = states
    inertia = np.array([[0.02, 0.001, -0.002], [0.001, 0.03, 0.003], [-0.002, 0.003, 0.025]])
    com = (0.01, -0.02, 0.08)
    urdf = tmp_path / "loaded.urdf"
    urdf.write_text(
        robot.urdf.read_text().replace(
            "</robot>",
            f'<link name="payload"><inertial><origin xyz="{com[0]} {com[1]} {com[2]}"/><mass value="6"/>'
            '<inertia ixx="0.02" iyy="0.03" izz="0.025" ixy="0.001" ixz="-0.002" iyz="0.003"/></inertial>'
            '</link><joint name="to_payload" type="fixed"><parent link="tool0"/><child link="payload"/>'
            "</joint></robot>",
        )
    )
    loaded = robot.with_payload(twin.Payload(6.0, com, inertia))
    expected = rows(Pinocchio(urdf, robot.joint_names).inverse_dynamics, q, qd, qdd)
    assert largest_relative_error(twin.inverse_dynamics(loaded, q, qd, qdd), expected) < 1e-12
    assert (
        largest_relative_error(
            twin.inverse_dynamics(loaded.with_payload(None), q, qd, qdd),
            twin.inverse_dynamics(robot, q, qd, qdd),
        )
        < 1e-12
    )


# The axes of the base in the world, as columns: the base plate on a wall, its x axis up; upside down.
MOUNTED = {"floor": np.eye(3), "wall": [[0, 0, 1], [0, -1, 0], [1, 0, 0]], "inverted": np.diag([1, -1, -1])}


@pytest.mark.parametrize("where", MOUNTED)
def test_mounting_turns_gravity(robot, states, where):
    """Against Pinocchio with its base turned instead."""
    R_world_base = np.array(MOUNTED[where], dtype=float)
    assert np.linalg.det(R_world_base) == 1.0
    q = states[0]
    peer = Pinocchio(robot.urdf, robot.joint_names)
    mounted = robot.mounted(where)
    np.testing.assert_array_equal(mounted.gravity, R_world_base.T @ [0, 0, -9.81])
    first = peer.model.jointPlacements[1]
    first.rotation, first.translation = R_world_base @ first.rotation, R_world_base @ first.translation
    peer.model.jointPlacements[1] = first
    peer.data = peer.model.createData()
    assert largest_relative_error(twin.gravity_torque(mounted, q), rows(peer.gravity_torque, q)) < 1e-12
    assert np.linalg.norm(mounted.gravity) == np.linalg.norm(robot.gravity)


def test_any_gravity_vector(robot, states):
    q = states[0][:50]
    peer = Pinocchio(robot.urdf, robot.joint_names)
    peer.model.gravity.linear[:] = (3.0, -5.0, 7.0)
    tilted = robot.with_gravity((3.0, -5.0, 7.0))
    assert largest_relative_error(twin.gravity_torque(tilted, q), rows(peer.gravity_torque, q)) < 1e-12


def test_wrenches_broadcast_against_states(robot, states):
    q, qd, qdd, tau = (s[0] for s in states)
    F = np.random.default_rng(6).normal(size=(2, 5, 6)) * 50
    for function, last in ((twin.inverse_dynamics, qdd), (twin.forward_dynamics, tau)):
        batch = function(robot, q, qd, last, wrench=F)
        assert batch.shape == (2, 5, 6)
        assert np.array_equal(batch[1, 3], function(robot, q, qd, last, wrench=F[1, 3]))
        assert function(robot, q, qd, last, wrench=F[:, :0]).shape == (2, 0, 6)
        with pytest.raises(ValueError, match="expected a wrench whose shape fits q"):
            function(robot, states[0][:3], states[1][:3], states[2][:3], wrench=F)


def test_one_sample_and_a_batch_agree_to_the_last_bit(robot, states):
    q, qd, qdd, tau = (s[:6].reshape(2, 3, 6) for s in states)
    for function, vectors in (
        (twin.inverse_dynamics, (q, qd, qdd)),
        (twin.forward_dynamics, (q, qd, tau)),
        (twin.mass_matrix, (q,)),
        (twin.coriolis_matrix, (q, qd)),
        (twin.gravity_torque, (q,)),
        (twin.energy, (q, qd)),
    ):
        batch = function(robot, *vectors)
        assert np.array_equal(batch[1, 2], function(robot, *(v[1, 2] for v in vectors)))


def test_random_trees_against_pinocchio(tmp_path):
    """Random axes, origins, rotated inertias, branches, prismatic joints."""
    rng = np.random.default_rng(3)
    for k in range(12):
        urdf = tmp_path / f"tree{k}.urdf"
        urdf.write_text(random_urdf(rng, joints=int(rng.integers(2, 9))))
        robot = interpreted(twin.load(urdf))
        peer = Pinocchio(urdf, robot.joint_names)
        q, qd, qdd, tau = rng.normal(size=(4, 5, robot.n))
        for function, expected, vectors in (
            (twin.inverse_dynamics, peer.inverse_dynamics, (q, qd, qdd)),
            (twin.mass_matrix, peer.mass_matrix, (q,)),
            (twin.coriolis_matrix, peer.coriolis_matrix, (q, qd)),
            (twin.gravity_torque, peer.gravity_torque, (q,)),
            (twin.forward_kinematics, peer.forward_kinematics, (q,)),
            (twin.jacobian, peer.jacobian, (q,)),
            (twin.jacobian_dot, peer.jacobian_dot, (q, qd)),
        ):
            error = largest_relative_error(function(robot, *vectors), rows(expected, *vectors))
            assert error < 1e-12, (k, function.__name__, error)
        qdd_peer = rows(peer.forward_dynamics, q, qd, tau)
        assert largest_relative_error(twin.forward_dynamics(robot, q, qd, tau), qdd_peer) < 1e-11


def test_two_hundred_random_trees_against_pinocchio(tmp_path):
    """Kernels of 2 to 12 joints are interpreted at 3 states each; compiling them would take an hour.."""
    rng, path = np.random.default_rng(4), tmp_path / "tree.urdf"
    branched = sliding = 0
    for k in range(200):
        path.write_text(random_urdf(rng, joints=int(rng.integers(2, 13))))
        robot = uncompiled(twin.load(path))
        peer = Pinocchio(path, robot.joint_names)
        q, qd, qdd, tau = rng.normal(size=(4, 3, robot.n))
        for function, expected, vectors in (
            (twin.inverse_dynamics, peer.inverse_dynamics, (q, qd, qdd)),
            (twin.mass_matrix, peer.mass_matrix, (q,)),
            (twin.forward_dynamics, peer.forward_dynamics, (q, qd, tau)),
            (twin.gravity_torque, peer.gravity_torque, (q,)),
        ):
            error = largest_relative_error(function(robot, *vectors), rows(expected, *vectors))
            assert error < 1e-11, (k, function.__name__, error)
        branched += len(set(robot.tree.parents)) < robot.n
        sliding += "prismatic" in robot.tree.kinds
    assert branched > 100
    assert sliding > 100

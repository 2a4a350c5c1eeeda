"""The IRB 1400's dynamics, its loop closed: against its tree reduced by G, and two solvers for loops."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import twin
from scenarios.checks.motion_range import random_positions
from tests.support.peers import MuJoCo, Pinocchio, PinocchioLoops, Reduced, largest_relative_error
from tests.support.random_trees import interpreted, random_urdf
from tests.support.sample_loads import BODY, TOOL
from twin.multibody.tree import frozen

STATES = 1000
MOUNTINGS = ("floor", "wall", "inverted")
# What each joint of the tree turns by, in the angles of the teach pendant.
TREE = {
    "joint_1": [1, 0, 0, 0, 0, 0],
    "joint_2": [0, 1, 0, 0, 0, 0],
    "joint_3": [0, 0, 1, 0, 0, 0],
    "joint_elbow": [0, -1, 1, 0, 0, 0],
    "joint_rod": [0, 1, -1, 0, 0, 0],
    "joint_4": [0, 0, 0, 1, 0, 0],
    "joint_5": [0, 0, 0, 0, 1, 0],
    "joint_6": [0, 0, 0, 0, 0, 1],
}


@pytest.fixture(scope="module")
def arm():
    return twin.load("irb1400")


@pytest.fixture(scope="module")
def states(arm):
    """Random positions within all limits, velocities, accelerations, torques."""
    rng = np.random.default_rng(1)
    q = random_positions(arm, rng, STATES)
    qd, qdd, tau = rng.uniform(-1, 1, (3, STATES, arm.n))
    return q, qd * arm.qd_max, 20 * qdd, tau * arm.tau_max


@pytest.fixture(scope="module")
def pinocchio(arm):
    return Reduced(arm, Pinocchio(arm.urdf, arm.tree.names))


def rows(function, *vectors):
    return np.array([function(*sample) for sample in zip(*vectors, strict=True)])


def test_the_six_angles_of_the_pendant_and_the_eight_of_the_tree(arm):
    assert arm.joint_names == ("joint_1", "joint_2", "joint_3", "joint_4", "joint_5", "joint_6")
    np.testing.assert_array_equal(arm.embedding, [TREE[name] for name in arm.tree.names])
    np.testing.assert_array_equal(arm.embedding_offset, np.zeros(8))
    assert [arm.tree.names[i] for i in arm.passive] == ["joint_elbow", "joint_rod"]
    np.testing.assert_allclose(arm.passive_max, np.deg2rad([75, 75]), rtol=1e-15)
    np.testing.assert_allclose(arm.passive_min, np.deg2rad([-75, -75]), rtol=1e-15)
    q = np.random.default_rng(0).normal(size=(3, 2, 6))
    np.testing.assert_array_equal(arm.passive_angles(q)[..., 0], q[..., 2] - q[..., 1])
    np.testing.assert_array_equal(arm.passive_angles(q)[..., 1], q[..., 1] - q[..., 2])
    np.testing.assert_array_equal(arm.tree_positions(q)[..., list(arm.driven)], q)


# ---- the tree reduced by G, and solvers that know nothing of G -----------------------------------


def test_the_tree_of_pinocchio_reduced(arm, states, pinocchio):
    q, qd, qdd, _ = states
    for function, vectors in (
        (twin.inverse_dynamics, (q, qd, qdd)),
        (twin.mass_matrix, (q,)),
        (twin.coriolis_matrix, (q, qd)),
        (twin.gravity_torque, (q,)),
        (twin.forward_kinematics, (q,)),
        (twin.jacobian, (q,)),
        (twin.jacobian_dot, (q, qd)),
    ):
        expected = rows(getattr(pinocchio, function.__name__), *vectors)
        error = largest_relative_error(function(arm, *vectors), expected)
        assert error < 1e-12, (function.__name__, error)


def test_the_energy_is_that_of_the_tree(arm, states, pinocchio):
    q, qd, _, _ = states
    expected = rows(pinocchio.energy, q, qd)[:, None]
    assert largest_relative_error(twin.energy(arm, q, qd)[:, None], expected) < 1e-12


def forces(arm, states):
    """Torques of the drives, which accelerate the wrist above all, and those of even accelerations."""
    q, qd, qdd, tau = states
    return (tau, 1e-12), (twin.inverse_dynamics(arm, q, qd, qdd), 1e-11)  # M's condition is 3e6


def test_gauss_principle_on_the_free_tree_of_pinocchio(arm, states, pinocchio):
    q, qd, _, _ = states
    for tau, tolerance in forces(arm, states):
        expected = rows(pinocchio.forward_dynamics, q, qd, tau)
        assert largest_relative_error(twin.forward_dynamics(arm, q, qd, tau), expected) < tolerance


@pytest.mark.parametrize("payload", [None, BODY], ids=["bare", "payload"])
@pytest.mark.parametrize("where", MOUNTINGS)
def test_closed_loop_solver_of_pinocchio_agrees(arm, states, where, payload):
    """It is told of the loop and of the motors, and finds the passive joints' accelerations itself."""
    robot = arm.mounted(where).with_payload(payload)
    peer = Reduced(arm, PinocchioLoops(arm.urdf, arm.tree.names, arm.loops))
    model = peer.peer.model
    model.gravity.linear[:] = robot.gravity
    if payload is not None:
        flange = model.frames[model.getFrameId("tool0")]
        body = pin.Inertia(payload.mass, payload.com, payload.inertia)
        model.appendBodyToJoint(flange.parentJoint, body, flange.placement)
        peer.peer.data = model.createData()
    q, qd, _, _ = (s[:300] for s in states)
    for tau, tolerance in forces(robot, [s[:300] for s in states]):
        expected = rows(peer.loop_dynamics, q, qd, tau)
        found = twin.forward_dynamics(robot, q, qd, tau) @ arm.embedding.T
        assert largest_relative_error(found, expected) < tolerance


def test_the_tree_of_mujoco_reduced(arm, states):
    q, qd, qdd, _ = states
    peer = Reduced(arm, MuJoCo(arm.urdf))
    for function, vectors in (
        (twin.inverse_dynamics, (q, qd, qdd)),
        (twin.mass_matrix, (q,)),
        (twin.gravity_torque, (q,)),
    ):
        expected = rows(getattr(peer, function.__name__), *vectors)
        assert largest_relative_error(function(arm, *vectors), expected) < 1e-12


def test_mujoco_s_soft_loop_and_the_rigid_one_that_it_tends_to(arm, states):
    """MuJoCo's loop is compliant, by at least 1e-4; four softnesses extrapolate to the rigid loop."""
    q, qd, _, tau = (s[:200] for s in states)
    ours = twin.forward_dynamics(arm, q, qd, tau) @ arm.embedding.T
    soft = []
    for k in (1, 2, 3, 4):
        peer = Reduced(arm, MuJoCo(arm.urdf, arm.loops, arm.tree.links, softness=k * 1.0001e-4))
        soft.append(rows(peer.loop_dynamics, q, qd, tau))
    assert 1e-5 < largest_relative_error(soft[0], ours) < 1e-3
    rigid = 4 * soft[0] - 6 * soft[1] + 4 * soft[2] - soft[3]
    assert largest_relative_error(rigid, ours) < 1e-11


# ---- any embedding -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_any_embedding_of_any_tree(tmp_path, seed):
    """Weights of all sizes, an offset, joints that follow several others: against the same reduction."""
    rng = np.random.default_rng(seed)
    joints = int(rng.integers(4, 8))
    urdf = tmp_path / "tree.urdf"
    urdf.write_text(random_urdf(rng, joints))
    tree = twin.load(urdf)
    n = joints - 2
    driven = rng.permutation(joints)[:n]
    G = rng.normal(size=(joints, n))
    G[driven] = np.eye(n)
    limits = frozen(np.full(n, np.inf))
    robot = interpreted(
        replace(
            tree,
            embedding=frozen(G),
            embedding_offset=frozen(rng.normal(size=joints)),
            driven=tuple(driven.tolist()),
            dh_coupling=frozen(np.eye(n)),
            q_min=-limits,
            q_max=limits,
            qd_max=limits,
            tau_max=limits,
        )
    )
    peer = Reduced(robot, Pinocchio(urdf, tree.tree.names))
    q, qd, qdd, tau = rng.normal(size=(4, 5, n))
    q_tree = np.array([G @ sample + robot.embedding_offset for sample in q])
    np.testing.assert_allclose(robot.tree_positions(q), q_tree, rtol=0, atol=1e-14)
    assert set(robot.passive) == set(range(joints)) - set(driven.tolist())
    np.testing.assert_allclose(robot.passive_angles(q), q_tree[:, list(robot.passive)], rtol=0, atol=1e-14)
    for function, vectors, tolerance in (
        (twin.inverse_dynamics, (q, qd, qdd), 1e-12),
        (twin.mass_matrix, (q,), 1e-12),
        (twin.coriolis_matrix, (q, qd), 1e-12),
        (twin.gravity_torque, (q,), 1e-12),
        (twin.forward_dynamics, (q, qd, tau), 1e-11),
        (twin.forward_kinematics, (q,), 1e-12),
        (twin.jacobian, (q,), 1e-12),
        (twin.jacobian_dot, (q, qd), 1e-12),
    ):
        expected = rows(getattr(peer, function.__name__), *vectors)
        error = largest_relative_error(function(robot, *vectors), expected)
        assert error < tolerance, (function.__name__, error)
    energy = rows(peer.energy, q, qd)[:, None]
    assert largest_relative_error(twin.energy(robot, q, qd)[:, None], energy) < 1e-12


def test_another_embedding_has_other_kernels(arm):
    """They are kept by what they are made of: G and its offset are folded into them."""
    G, g0 = arm.embedding.copy(), arm.embedding_offset.copy()
    G[2, 1], g0[2] = 1.0, 0.1
    others = [
        replace(arm, embedding=frozen(G)),
        replace(arm, embedding_offset=frozen(g0)),
        replace(arm, loops=()),
    ]
    assert replace(arm, payload=BODY).kernels is arm.kernels
    assert len({id(robot.kernels) for robot in (arm, *others)}) == 4
    q = np.full(6, 0.2)
    expected = Pinocchio(arm.urdf, arm.tree.names).forward_kinematics(arm.embedding @ q + g0)
    np.testing.assert_allclose(twin.forward_kinematics(others[1], q), expected, rtol=0, atol=1e-14)


# ---- what a parallelogram does -------------------------------------------------------------------


def test_axis_2_alone_keeps_the_direction_of_the_upper_arm(arm, states):
    q = states[0][:50].copy()
    T = twin.forward_kinematics(arm, q)
    moved = q.copy()
    moved[:, 1] += 0.3
    T_moved = twin.forward_kinematics(arm, moved)
    np.testing.assert_allclose(T_moved[:, :3, :3], T[:, :3, :3], rtol=0, atol=1e-14)
    # What it does move is the elbow, on a circle of the lower arm's 0.600 m.
    across = np.linalg.norm(T_moved[:, :3, 3] - T[:, :3, 3], axis=1)
    np.testing.assert_allclose(across, 2 * 0.600 * np.sin(0.15), rtol=1e-13)
    J = twin.jacobian(arm, q)
    np.testing.assert_allclose(J[:, 3:, 1], 0, rtol=0, atol=1e-15)
    assert np.min(np.linalg.norm(J[:, 3:, 2], axis=1)) > 1 - 1e-12


def test_gravity_on_one_arm_does_not_ask_where_the_other_is(arm, states):
    """Upper arm and lever keep their direction when axis 2 moves, lower arm and rod when axis 3 does."""
    q = states[0][:50]
    g = twin.gravity_torque(arm, q)
    for axis, other in ((1, 2), (2, 1)):
        moved = q.copy()
        moved[:, other] += 0.4
        np.testing.assert_allclose(twin.gravity_torque(arm, moved)[:, axis], g[:, axis], rtol=0, atol=1e-11)
    assert np.ptp(g[:, 1]) > 100
    assert np.ptp(g[:, 2]) > 100


def test_a_wrench_at_the_tool_acts_through_the_loop(arm, states):
    """`J^T F` in the pendant's coordinates, against the wrench as a force on its link in Pinocchio."""
    rng = np.random.default_rng(5)
    peer = Pinocchio(arm.urdf, arm.tree.names)
    q, qd, qdd, _ = (s[:50] for s in states)
    F = rng.uniform(-100, 100, (50, 6))
    expected = []
    for k in range(50):
        q_tree, qd_tree, qdd_tree = (v[k] @ arm.embedding.T for v in (q, qd, qdd))
        T = twin.forward_kinematics(arm, q[k], TOOL)
        at_tool = pin.SE3(np.eye(3), T[:3, 3])  # base axes, the tool's origin
        pin.forwardKinematics(peer.model, peer.data, *peer._reordered(q_tree))
        pin.updateFramePlacements(peer.model, peer.data)
        joint = peer.model.frames[peer.model.getFrameId("tool0")].parentJoint
        forces = pin.StdVec_Force()
        for i in range(peer.model.njoints):
            here = peer.data.oMi[i].actInv(at_tool)
            forces.append(here.act(pin.Force(F[k])) if i == joint else pin.Force.Zero())
        tau = pin.rnea(peer.model, peer.data, *peer._reordered(q_tree, qd_tree, qdd_tree), forces)
        expected.append(arm.embedding.T @ tau[peer.order])
    found = twin.inverse_dynamics(arm, q, qd, qdd, F, TOOL)
    assert largest_relative_error(found, np.array(expected)) < 1e-12
